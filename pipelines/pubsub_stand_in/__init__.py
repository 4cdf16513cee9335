"""A small Pub/Sub server on this machine: for tests, and for ``make live``."""
