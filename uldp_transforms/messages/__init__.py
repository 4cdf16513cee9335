"""From bytes to reports, without Beam: wire format, files of messages, and rejections with their reasons."""
