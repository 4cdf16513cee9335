"""Estimates of values in public blocks, from the estimates within the blocks."""
