-- Results of a job as tables with one row per value. PostgreSQL 14 or newer, over the JSON rows of a job. Load the files
-- with psql, which reads a line of JSON as one cell because its quote and delimiter occur in none:
--
--   \copy uldp_estimates(content) FROM 'estimates.jsonl' WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')
--
-- and likewise health*.jsonl into uldp_health and totals.jsonl into uldp_totals. A file that is loaded twice is harmless
-- in the first two; empty uldp_totals before you load it again.

CREATE TABLE IF NOT EXISTS uldp_estimates (content jsonb NOT NULL);
CREATE TABLE IF NOT EXISTS uldp_health (content jsonb NOT NULL);
CREATE TABLE IF NOT EXISTS uldp_totals (content jsonb NOT NULL);

-- The rows that count, by the rule of docs/consume.md.
CREATE OR REPLACE VIEW latest_rows AS
SELECT *
FROM (
  SELECT kind, content, ROW_NUMBER() OVER (
    PARTITION BY kind, content->>'fingerprint', content->>'window_start', content->>'window_end',
      COALESCE(content->>'group', '')
    ORDER BY
      CASE WHEN content->>'status' = 'partial' THEN 1 ELSE 0 END,
      COALESCE(content->>'run', '') COLLATE "C" DESC,
      COALESCE((content->>'num_reports')::bigint, -1) DESC,
      (content->>'pane_index')::bigint DESC
  ) AS place
  FROM (
    SELECT 'estimates' AS kind, content FROM uldp_estimates
    UNION ALL SELECT 'health', content FROM uldp_health
  ) AS loaded
) AS ranked
WHERE place = 1;

CREATE OR REPLACE VIEW all_values AS
SELECT
  kind,
  content->>'collection_id' AS collection_id,
  (content->>'collection_version')::int AS collection_version,
  content->>'fingerprint' AS fingerprint,
  (content->>'window_start')::timestamptz AS window_start,
  (content->>'window_end')::timestamptz AS window_end,
  COALESCE(content->>'group', '') AS group_name,
  (content->>'num_reports')::bigint AS num_reports,
  entry->>'value' AS value,
  (entry->>'frequency')::float8 AS frequency,
  (entry->>'ci_low')::float8 AS ci_low,
  (entry->>'ci_high')::float8 AS ci_high,
  (entry->>'display_low')::float8 AS display_low,
  (entry->>'display_high')::float8 AS display_high,
  (entry->>'raw_frequency')::float8 AS raw_frequency,
  (entry->>'standard_error')::float8 AS standard_error
FROM (
  SELECT kind, content FROM latest_rows WHERE kind = 'estimates'
  UNION ALL SELECT 'totals', content FROM uldp_totals
) AS chosen, jsonb_array_elements(content->'estimates') AS entry
WHERE content->>'status' = 'ok';

CREATE OR REPLACE VIEW latest_values AS SELECT * FROM all_values WHERE kind = 'estimates';

-- The whole period, if uldp reestimate --window all has written it.
CREATE OR REPLACE VIEW total_values AS SELECT * FROM all_values WHERE kind = 'totals';

CREATE OR REPLACE VIEW windows AS
SELECT
  content->>'collection_id' AS collection_id,
  (content->>'collection_version')::int AS collection_version,
  content->>'fingerprint' AS fingerprint,
  (content->>'window_start')::timestamptz AS window_start,
  (content->>'window_end')::timestamptz AS window_end,
  COALESCE(content->>'group', '') AS group_name,
  content->>'status' AS status,
  (content->>'num_reports')::bigint AS num_reports
FROM latest_rows
WHERE kind = 'estimates';

CREATE OR REPLACE VIEW alarms AS
SELECT
  content->>'collection_id' AS collection_id,
  content->>'fingerprint' AS fingerprint,
  (content->>'window_start')::timestamptz AS window_start,
  (content->>'window_end')::timestamptz AS window_end,
  finding->>'name' AS name,
  (finding->>'p_value')::float8 AS p_value,
  finding->>'sentence' AS sentence,
  (content->>'collection_version')::int AS collection_version,  -- new columns last: a view that is there gets them too
  COALESCE(content->>'group', '') AS group_name
FROM latest_rows, jsonb_array_elements(content->'findings') AS finding
WHERE kind = 'health' AND (finding->>'fired')::boolean;
