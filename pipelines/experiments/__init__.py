"""Experiments of the papers that the collector implements; ``python -m pipelines.reproduce --list`` names them."""

from __future__ import annotations

from .estimators import Estimators
from .frame import Experiment
from .kairouz_alphabets import Figure3, Figure7, Figure8
from .kairouz_budget import Figure9, Figure10
from .kairouz_crossover import Figure2
from .kairouz_decoders import Figure1, Figures11To16
from .repeated_reports import RepeatedReports
from .tang_missing import TangFigure2
from .tang_priors import TangFigure1
from .uldp_figure_5 import TotalVariation
from .uldp_figure_6 import SensitiveValues
from .uldp_figure_7 import AlphabetSize
from .uldp_figure_8 import Personalised
from .uldp_l2 import SquaredError

EXPERIMENTS: tuple[Experiment, ...] = (
    TotalVariation(),
    SensitiveValues(),
    AlphabetSize(),
    Personalised(),
    SquaredError(),
    Figure1(),
    Figure2(),
    Figure3(),
    Figure7(),
    Figure8(),
    Figure9(),
    Figure10(),
    Figures11To16(),
    TangFigure1(),
    TangFigure2(),
    Estimators(),
    RepeatedReports(),
)
"""One line each, in the order in which they are listed."""
