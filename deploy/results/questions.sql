-- Four questions to the views of duckdb.sql or postgresql.sql; each statement runs in both. Replace the name and the
-- version of the collection, and the names of the groups. Version 0 of a question is estimated from all its versions;
-- rows of versions and of groups never add up. group_name is '' for everybody.

-- The last window: shares with intervals for values that are shown because they are large.
SELECT window_start, value, frequency, display_low, display_high, num_reports
FROM latest_values
WHERE collection_id = 'sleep' AND collection_version = 1 AND group_name = ''
  AND window_start = (
    SELECT MAX(window_start) FROM latest_values
    WHERE collection_id = 'sleep' AND collection_version = 1 AND group_name = '')
ORDER BY frequency DESC;

-- The whole period (rows of uldp reestimate --window all; never the mean of the windows, whose intervals would be wrong).
SELECT value, frequency, ci_low, ci_high, num_reports
FROM total_values
WHERE collection_id = 'sleep' AND collection_version = 1 AND group_name = ''
ORDER BY frequency DESC;

-- Treatment against control in each window: difference of unbiased shares, with a 95 % interval for one value in one
-- window, chosen beforehand, and different people in the groups. For many values: uldp compare --by arm.
SELECT
  treated.window_start,
  treated.value,
  treated.raw_frequency - control.raw_frequency AS difference,
  treated.raw_frequency - control.raw_frequency
    - 1.96 * SQRT(POWER(treated.standard_error, 2) + POWER(control.standard_error, 2)) AS low,
  treated.raw_frequency - control.raw_frequency
    + 1.96 * SQRT(POWER(treated.standard_error, 2) + POWER(control.standard_error, 2)) AS high
FROM latest_values AS treated
JOIN latest_values AS control
  ON treated.fingerprint = control.fingerprint AND treated.window_start = control.window_start
  AND treated.value = control.value
WHERE treated.collection_id = 'sleep' AND treated.collection_version = 1
  AND treated.group_name = 'arm=new' AND control.group_name = 'arm=control'
ORDER BY treated.window_start, treated.value;

-- What changed this week: the last seven days against the seven before. Means of windows weighted by their reports; the
-- interval assumes windows of different people, or reports without memos, whose errors are independent.
WITH recent AS (
  SELECT *, window_start >= (
      SELECT MAX(window_end) - INTERVAL '7 days' FROM latest_values
      WHERE collection_id = 'sleep' AND collection_version = 1 AND group_name = '')
    AS is_this_week
  FROM latest_values
  WHERE collection_id = 'sleep' AND collection_version = 1 AND group_name = ''
    AND window_start >= (
      SELECT MAX(window_end) - INTERVAL '14 days' FROM latest_values
      WHERE collection_id = 'sleep' AND collection_version = 1 AND group_name = '')
),
weeks AS (
  SELECT
    value,
    is_this_week,
    SUM(num_reports * raw_frequency) / SUM(num_reports) AS share,
    SQRT(SUM(POWER(num_reports * standard_error, 2))) / SUM(num_reports) AS error
  FROM recent
  GROUP BY value, is_this_week
)
SELECT
  now.value,
  now.share - before.share AS difference,
  now.share - before.share - 1.96 * SQRT(POWER(now.error, 2) + POWER(before.error, 2)) AS low,
  now.share - before.share + 1.96 * SQRT(POWER(now.error, 2) + POWER(before.error, 2)) AS high
FROM weeks AS now
JOIN weeks AS before ON now.value = before.value AND now.is_this_week AND NOT before.is_this_week
ORDER BY ABS(now.share - before.share) DESC;
