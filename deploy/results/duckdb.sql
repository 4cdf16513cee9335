-- Results of a job as tables with one row per value. DuckDB over the files of a job: run it in their directory, after
-- schemas/sql/latest_duckdb.sql. Times are TIMESTAMP in UTC.

CREATE OR REPLACE VIEW latest_values AS
WITH rows AS (
  SELECT * EXCLUDE (estimates), COALESCE(latest_estimates.group, '') AS group_name, UNNEST(estimates) AS entry
  FROM latest_estimates
  WHERE status = 'ok'
)
SELECT
  collection_id, collection_version, fingerprint, window_start, window_end, group_name, num_reports,
  entry.value AS value, entry.frequency AS frequency, entry.ci_low AS ci_low, entry.ci_high AS ci_high,
  entry.display_low AS display_low, entry.display_high AS display_high,
  entry.raw_frequency AS raw_frequency, entry.standard_error AS standard_error
FROM rows;

CREATE OR REPLACE VIEW windows AS
SELECT
  collection_id, collection_version, fingerprint, window_start, window_end,
  COALESCE(latest_estimates.group, '') AS group_name, status, num_reports
FROM latest_estimates;

CREATE OR REPLACE VIEW alarms AS
WITH rows AS (
  SELECT
    collection_id, collection_version, fingerprint, window_start, window_end,
    COALESCE(latest_health.group, '') AS group_name, UNNEST(findings) AS finding
  FROM latest_health
)
SELECT
  collection_id, fingerprint, window_start, window_end,
  finding.name AS name, finding.p_value AS p_value, finding.sentence AS sentence,
  collection_version, group_name
FROM rows
WHERE finding.fired;

-- The whole period, if uldp reestimate --window all has written it.
CREATE OR REPLACE VIEW total_values AS
WITH written AS (
  SELECT *
  FROM read_json('totals*.jsonl', format = 'newline_delimited', union_by_name = true, sample_size = -1)
),
rows AS (
  SELECT * EXCLUDE (estimates), COALESCE(written.group, '') AS group_name, UNNEST(estimates) AS entry
  FROM written
  WHERE status = 'ok'
)
SELECT
  collection_id, collection_version, fingerprint, window_start, window_end, group_name, num_reports,
  entry.value AS value, entry.frequency AS frequency, entry.ci_low AS ci_low, entry.ci_high AS ci_high,
  entry.display_low AS display_low, entry.display_high AS display_high,
  entry.raw_frequency AS raw_frequency, entry.standard_error AS standard_error
FROM rows;
