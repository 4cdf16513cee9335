"""Errors of the library. Bad configuration is an error; bad data never is (see ``reasons``)."""

from __future__ import annotations


class UldpError(Exception):
    """Base of every error that this package raises on purpose."""


class SpecError(UldpError, ValueError):
    """A configuration that cannot be accepted. The sentence says class.field, what is allowed and what came."""


class BudgetSpentError(UldpError, ValueError):
    """A report that would cost a person more than is left; it was not made."""


class EstimationError(UldpError, ValueError):
    """Counts from which this estimate cannot be made.

    Attributes:
        status: the word that stands in the ``status`` field of a windowed estimate for this case.
    """

    status = "failed"


class NoReportsError(EstimationError):
    """There are no reports to estimate from."""

    status = "empty"


class InsufficientCohortsError(EstimationError):
    """The cohorts that reported cannot tell the candidates apart (rank too small)."""

    status = "insufficient_cohorts"


class IllConditionedError(EstimationError):
    """The candidates can be told apart in theory only: the system is too near to singular."""

    status = "ill_conditioned"


class ConformanceError(UldpError, AssertionError):
    """A mechanism or an estimator that does not do what it declares; the sentence names the instance and the fault."""
