-- What became of all reports, by collection and run; missing is 0 if every report is accounted for.
SELECT
  collection_id,
  run,
  SUM(received) AS received,
  SUM(accepted) AS accepted,
  SUM(duplicates) AS duplicates,
  SUM(LIST_SUM(LIST_CONCAT([0], MAP_VALUES(rejected)))) AS rejected,
  SUM(received) - SUM(accepted) - SUM(duplicates) - SUM(LIST_SUM(LIST_CONCAT([0], MAP_VALUES(rejected)))) AS missing
FROM read_parquet('{{ var("rows") }}/ledger*.parquet', union_by_name = true)
GROUP BY collection_id, run
