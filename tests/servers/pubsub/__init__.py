"""A Pub/Sub server on this machine, for tests, `labs/` and trials."""
