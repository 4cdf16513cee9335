"""Mechanisms: symbol -> report, and counts -> symbol frequencies. A new one is a file here and a name below."""

from uldp_transforms.ldp.mechanisms.base import SetReportMechanism as SetReportMechanism
from uldp_transforms.ldp.mechanisms.randomized_response import KaryRR as KaryRR
from uldp_transforms.ldp.mechanisms.randomized_response import UtilityOptimizedRR as UtilityOptimizedRR
from uldp_transforms.ldp.mechanisms.subset_selection import SubsetSelection as SubsetSelection
from uldp_transforms.ldp.mechanisms.subset_selection import (
    UtilityOptimizedSubsetSelection as UtilityOptimizedSubsetSelection,
)
from uldp_transforms.ldp.mechanisms.unary import Rappor as Rappor
from uldp_transforms.ldp.mechanisms.unary import UtilityOptimizedRappor as UtilityOptimizedRappor
from uldp_transforms.ldp.specs import Registry

MECHANISMS: Registry[SetReportMechanism] = Registry(
    "mechanism",
    (KaryRR, UtilityOptimizedRR, Rappor, UtilityOptimizedRappor, SubsetSelection, UtilityOptimizedSubsetSelection),
)
