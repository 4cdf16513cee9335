"""Comparisons of estimates of different people: differences, lifts, and whether groups differ at all."""

from uldp_transforms_compare.comparisons.compare import Comparison as Comparison
from uldp_transforms_compare.comparisons.compare import compare as compare
from uldp_transforms_compare.comparisons.homogeneity import homogeneity as homogeneity

__all__ = ["Comparison", "compare", "homogeneity"]
