SELECT fingerprint, window_start, window_end, group_name
FROM {{ ref("latest_windows") }}
GROUP BY ALL
HAVING COUNT(*) > 1
