"""From bytes to reports, without Beam: the wire format, files of it, and what is refused and why."""
