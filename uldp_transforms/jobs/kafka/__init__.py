"""Kafka access from Python: settings, secrets, offsets, consumers and producers."""
