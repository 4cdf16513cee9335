-- The row of each window that counts, by the rule of docs/consume.md. DuckDB, over the files of a job: run it in the
-- directory in which they are. Times are TIMESTAMP in UTC.

CREATE OR REPLACE VIEW estimates AS
SELECT *
FROM read_json('estimates*.jsonl', format = 'newline_delimited', union_by_name = true, sample_size = -1);

CREATE OR REPLACE VIEW latest_estimates AS
SELECT *
FROM estimates
WHERE TRUE
QUALIFY
  ROW_NUMBER() OVER (
    PARTITION BY fingerprint, window_start, window_end, COALESCE(estimates.group, '')
    ORDER BY
      CASE WHEN status = 'partial' THEN 1 ELSE 0 END,
      COALESCE(run, '') DESC,
      COALESCE(num_reports, -1) DESC,
      pane_index DESC
  ) = 1;

CREATE OR REPLACE VIEW health AS
SELECT *
FROM read_json('health*.jsonl', format = 'newline_delimited', union_by_name = true, sample_size = -1);

CREATE OR REPLACE VIEW latest_health AS
SELECT *
FROM health
WHERE TRUE
QUALIFY
  ROW_NUMBER() OVER (
    PARTITION BY fingerprint, window_start, window_end, COALESCE(health.group, '')
    ORDER BY
      CASE WHEN status = 'partial' THEN 1 ELSE 0 END,
      COALESCE(run, '') DESC,
      COALESCE(num_reports, -1) DESC,
      pane_index DESC
  ) = 1;
