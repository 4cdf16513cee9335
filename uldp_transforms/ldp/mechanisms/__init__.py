"""Mechanisms: symbol -> report, and counts -> symbol frequencies. To add one, add a file here and its name below."""

from uldp_transforms.ldp.mechanisms.channels.declared_channel import DeclaredChannel as DeclaredChannel
from uldp_transforms.ldp.mechanisms.channels.missing_values import TwoStage as TwoStage
from uldp_transforms.ldp.mechanisms.channels.missing_values import UniformPerturbation as UniformPerturbation
from uldp_transforms.ldp.mechanisms.channels.square_wave import SquareWave as SquareWave
from uldp_transforms.ldp.mechanisms.channels.square_wave import UtilityOptimizedSquareWave as UtilityOptimizedSquareWave
from uldp_transforms.ldp.mechanisms.declared_priors import AttributeGRR as AttributeGRR
from uldp_transforms.ldp.mechanisms.declared_priors import AttributeOUE as AttributeOUE
from uldp_transforms.ldp.mechanisms.hadamard_response import HadamardResponse as HadamardResponse
from uldp_transforms.ldp.mechanisms.hadamard_response import (
    UtilityOptimizedHadamardResponse as UtilityOptimizedHadamardResponse,
)
from uldp_transforms.ldp.mechanisms.mechanism import Mechanism as Mechanism
from uldp_transforms.ldp.mechanisms.nested.nested_levels import NestedLevels as NestedLevels
from uldp_transforms.ldp.mechanisms.randomized_response import KaryRR as KaryRR
from uldp_transforms.ldp.mechanisms.randomized_response import UtilityOptimizedRR as UtilityOptimizedRR
from uldp_transforms.ldp.mechanisms.set_report import SetReportMechanism as SetReportMechanism
from uldp_transforms.ldp.mechanisms.subset_selection import SubsetSelection as SubsetSelection
from uldp_transforms.ldp.mechanisms.subset_selection import (
    UtilityOptimizedSubsetSelection as UtilityOptimizedSubsetSelection,
)
from uldp_transforms.ldp.mechanisms.unary import Rappor as Rappor
from uldp_transforms.ldp.mechanisms.unary import UtilityOptimizedRappor as UtilityOptimizedRappor
from uldp_transforms.ldp.registry import Registry

MECHANISMS: Registry[Mechanism] = Registry(
    "mechanism",
    (
        KaryRR,
        UtilityOptimizedRR,
        Rappor,
        UtilityOptimizedRappor,
        SubsetSelection,
        UtilityOptimizedSubsetSelection,
        AttributeGRR,
        AttributeOUE,
        TwoStage,
        UniformPerturbation,
        HadamardResponse,
        UtilityOptimizedHadamardResponse,
        DeclaredChannel,
        SquareWave,
        UtilityOptimizedSquareWave,
        NestedLevels,
    ),
)
