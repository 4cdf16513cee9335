"""Comparisons of estimates of different people: differences, lifts, and whether groups differ at all."""

from uldp_transforms.ldp.comparisons.compare import Comparison as Comparison
from uldp_transforms.ldp.comparisons.compare import compare as compare
from uldp_transforms.ldp.comparisons.homogeneity import homogeneity as homogeneity
