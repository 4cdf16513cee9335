"""Browsers' randomized answers about navigations over HTTP, kept as JSON lines."""
