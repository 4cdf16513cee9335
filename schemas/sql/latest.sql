-- The row of each window that counts, by the rule of docs/consume.md: no partial row if there is another one, the
-- latest run, and of that run the row with the most reports and the highest pane_index. Plain SQL, for SQLite and
-- PostgreSQL. The column place is always 1.

CREATE VIEW latest_estimates AS
SELECT *
FROM (
  SELECT *, ROW_NUMBER() OVER (
    PARTITION BY fingerprint, window_start, window_end, COALESCE("group", '')
    ORDER BY
      CASE WHEN status = 'partial' THEN 1 ELSE 0 END,
      COALESCE(run, '') DESC,
      COALESCE(num_reports, -1) DESC,
      pane_index DESC
  ) AS place
  FROM estimates
) AS ranked
WHERE place = 1;

CREATE VIEW latest_health AS
SELECT *
FROM (
  SELECT *, ROW_NUMBER() OVER (
    PARTITION BY fingerprint, window_start, window_end, COALESCE("group", '')
    ORDER BY
      CASE WHEN status = 'partial' THEN 1 ELSE 0 END,
      COALESCE(run, '') DESC,
      COALESCE(num_reports, -1) DESC,
      pane_index DESC
  ) AS place
  FROM health
) AS ranked
WHERE place = 1;
