-- One row per value of each window and group that has numbers.
SELECT
  collection_id, collection_version, fingerprint, window_start, window_end, group_name, num_reports, num_values,
  entry.value AS value, entry.frequency AS frequency, entry.ci_low AS ci_low, entry.ci_high AS ci_high,
  entry.display_low AS display_low, entry.display_high AS display_high,
  entry.raw_frequency AS raw_frequency, entry.standard_error AS standard_error
FROM (SELECT *, UNNEST(entries) AS entry FROM {{ ref("latest_windows") }} WHERE status = 'ok')
