"""Integration with Beam engines: coders, windows, panes, metrics and worker memory."""
