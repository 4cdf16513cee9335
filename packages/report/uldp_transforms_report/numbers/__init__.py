"""The part of a page about numbers: mean, quantiles, shares above limits, and the curve."""
