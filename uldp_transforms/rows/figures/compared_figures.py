"""What a row of a comparison is about, if not the share of a value: its ``figure``."""

from __future__ import annotations

MEAN, QUANTILE, SHARE_ABOVE = "mean", "quantile", "share_above"
"""Figures of numbers."""

SUM, WEIGHTED_SUM = "sum", "weighted_sum"
"""Sums over chosen values: shares of sets, and sums with other weights."""

WITH_UNIT = (MEAN, QUANTILE, WEIGHTED_SUM)
"""Those that are no shares."""
