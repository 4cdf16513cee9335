"""Pub/Sub: checks of access before a job starts, and a stream on Beam's local engine that can be stopped."""
