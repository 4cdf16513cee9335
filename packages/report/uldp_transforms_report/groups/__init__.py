"""The section of a page about groups."""
