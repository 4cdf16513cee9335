-- The row of each window and group that counts, by the rule of docs/consume.md, without its values.
SELECT * EXCLUDE (estimates), COALESCE(rows.group, '') AS group_name, estimates AS entries
FROM read_parquet('{{ var("rows") }}/estimates*.parquet', union_by_name = true) AS rows
QUALIFY
  ROW_NUMBER() OVER (
    PARTITION BY fingerprint, window_start, window_end, COALESCE(rows.group, '')
    ORDER BY
      CASE WHEN status = 'partial' THEN 1 ELSE 0 END,
      COALESCE(run, '') DESC,
      COALESCE(num_reports, -1) DESC,
      pane_index DESC
  ) = 1
