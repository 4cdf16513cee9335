-- The row of each window that counts, by the rule of docs/consume.md. DuckDB, over the Parquet files of a job
-- (--write_parquet): run it in the directory in which they are. Times are TIMESTAMP WITH TIME ZONE.

CREATE OR REPLACE VIEW estimates AS
SELECT *
FROM read_parquet('estimates*.parquet', union_by_name = true);

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
FROM read_parquet('health*.parquet', union_by_name = true);

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
