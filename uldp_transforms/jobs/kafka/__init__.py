"""Kafka read and written by Python: settings, secrets, offsets, producers."""
