"""Pub/Sub on this machine: a small server, and a local stream that can be stopped."""
