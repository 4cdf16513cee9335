"""Experiments of the papers that the collector implements; ``python -m pipelines.reproduce --list`` names them."""

from __future__ import annotations

from labs.experiments.carriers import Carriers
from labs.experiments.estimators import Estimators
from labs.experiments.frame import Experiment
from labs.experiments.group_coverage import GroupCoverage
from labs.experiments.kairouz import accuracy, decoder_grid, needed, sweeps
from labs.experiments.kairouz.alphabets import BucketsAndCohorts, ClosedCounters, OpenSurnames
from labs.experiments.kairouz.budgets import EpsilonByPeople, EpsilonByValues
from labs.experiments.kairouz.crossover import Crossover
from labs.experiments.kairouz.decoders import DecoderCurves, DecoderShapes
from labs.experiments.kairouz.equation_22 import Equation22
from labs.experiments.numbers.smooth_intervals import SmoothIntervals
from labs.experiments.public_blocks import PublicBlocks
from labs.experiments.repeated_reports import RepeatedReports
from labs.experiments.tang.missing_answers import MissingAnswers
from labs.experiments.tang.priors import DeclaredPriors
from labs.experiments.tang.two_stage import TangFigure1, TangFigure2
from labs.experiments.uldp.figure_5 import TotalVariation
from labs.experiments.uldp.figure_6 import SensitiveValues, SquaredSensitiveValues
from labs.experiments.uldp.figure_7 import AlphabetSize, SquaredAlphabetSize
from labs.experiments.uldp.figure_8 import Personalised, SquaredPersonalised
from labs.experiments.uldp.figure_9 import Distributions
from labs.experiments.uldp.l2 import SquaredError
from labs.experiments.uldp.table_1 import BoundTerms
from labs.experiments.value_levels import ValueLevels

KAIROUZ: tuple[Experiment, ...] = (
    decoder_grid.Figure1(),
    decoder_grid.Figure2(),
    accuracy.Figure3(),
    decoder_grid.Figure4(),
    decoder_grid.Figure5(),
    decoder_grid.Figure6(),
    accuracy.Figure7(),
    accuracy.Figure8(),
    needed.Figure9(),
    needed.Figure10(),
    sweeps.Figure11(),
    sweeps.Figure12(),
    accuracy.Figure13(),
    needed.Figure14(),
    sweeps.Figure15(),
    sweeps.Figure16(),
    DecoderCurves(),
    DecoderShapes(),
    Crossover(),
    OpenSurnames(),
    Equation22(),
    ClosedCounters(),
    BucketsAndCohorts(),
    EpsilonByPeople(),
    EpsilonByValues(),
)
"""The paper's figures by their numbers, then experiments of ours on the same questions."""

ULDP: tuple[Experiment, ...] = (
    TotalVariation(),
    SensitiveValues(),
    AlphabetSize(),
    Personalised(),
    Distributions(),
    SquaredError(),
    SquaredSensitiveValues(),
    SquaredAlphabetSize(),
    SquaredPersonalised(),
    BoundTerms(),
)
TANG: tuple[Experiment, ...] = (TangFigure1(), TangFigure2(), DeclaredPriors(), MissingAnswers())

OURS: tuple[Experiment, ...] = (
    Estimators(),
    RepeatedReports(),
    SmoothIntervals(),
    Carriers(),
    GroupCoverage(),
    PublicBlocks(),
    ValueLevels(),
)

EXPERIMENTS: tuple[Experiment, ...] = (*KAIROUZ, *TANG, *ULDP, *OURS)
"""All of them, in the order in which they are listed."""
