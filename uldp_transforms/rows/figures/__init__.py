"""Figures of pages and printed tables: made from rows, and written for readers; sums over windows."""
