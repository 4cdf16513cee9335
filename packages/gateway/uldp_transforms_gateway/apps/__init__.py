"""Apps that may send: their shared keys, tokens that are signed with them, and limits."""
