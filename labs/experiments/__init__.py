"""Experiments of the papers that the collector implements; ``python -m pipelines.reproduce --list`` names them."""

from __future__ import annotations

from labs.experiments.estimators import Estimators
from labs.experiments.frame import Experiment
from labs.experiments.kairouz.alphabets import Figure3, Figure7, Figure8
from labs.experiments.kairouz.budgets import Figure9, Figure10
from labs.experiments.kairouz.crossover import Figure2
from labs.experiments.kairouz.decoders import Figure1, Figures11To16
from labs.experiments.repeated_reports import RepeatedReports
from labs.experiments.tang.missing_answers import TangFigure2
from labs.experiments.tang.priors import TangFigure1
from labs.experiments.uldp.figure_5 import TotalVariation
from labs.experiments.uldp.figure_6 import SensitiveValues
from labs.experiments.uldp.figure_7 import AlphabetSize
from labs.experiments.uldp.figure_8 import Personalised
from labs.experiments.uldp.l2 import SquaredError

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
