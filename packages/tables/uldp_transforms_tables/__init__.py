"""People's values from tables of all kinds, and ``uldp simulate``, which makes reports of them as clients would."""
