"""Experiments of the papers that the collector implements; ``python -m pipelines.reproduce --list`` names them."""

from __future__ import annotations

from pipelines.experiments.frame import Experiment
from pipelines.experiments.kairouz_alphabets import Figure3, Figure7, Figure8
from pipelines.experiments.kairouz_budget import Figure9, Figure10
from pipelines.experiments.kairouz_crossover import Figure2
from pipelines.experiments.kairouz_decoders import Figure1, Figures11To16
from pipelines.experiments.tang_missing import TangFigure2
from pipelines.experiments.tang_priors import TangFigure1
from pipelines.experiments.uldp_figure_5 import TotalVariation
from pipelines.experiments.uldp_figure_6 import SensitiveValues
from pipelines.experiments.uldp_figure_7 import AlphabetSize
from pipelines.experiments.uldp_figure_8 import Personalised
from pipelines.experiments.uldp_l2 import SquaredError

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
)
"""One line each, in the order in which they are listed."""
