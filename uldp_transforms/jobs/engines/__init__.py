"""Beam's runners: which one runs a job, what it must be told, and how it is stopped."""
