SELECT *
FROM {{ ref("latest_values") }}
WHERE NOT (0 <= ci_low AND ci_low <= frequency AND frequency <= ci_high AND ci_high <= 1)
  OR NOT (display_low <= ci_low AND ci_high <= display_high)
