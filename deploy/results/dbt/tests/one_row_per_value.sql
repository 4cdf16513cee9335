SELECT fingerprint, window_start, window_end, group_name, value
FROM {{ ref("latest_values") }}
GROUP BY ALL
HAVING COUNT(*) > 1
