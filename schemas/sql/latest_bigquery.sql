-- The row of each window that counts, by the rule of docs/consume.md. BigQuery; put your dataset for my_dataset.

CREATE OR REPLACE VIEW my_dataset.latest_estimates AS
SELECT *
FROM my_dataset.estimates
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

CREATE OR REPLACE VIEW my_dataset.latest_health AS
SELECT *
FROM my_dataset.health
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
