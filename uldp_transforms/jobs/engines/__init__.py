"""Beam's runners: selection, options, and how jobs are stopped."""
