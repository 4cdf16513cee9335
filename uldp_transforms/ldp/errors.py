"""Exceptions of the library. Bad configuration raises one; bad data never does (see ``reasons``)."""

from __future__ import annotations


class UldpError(Exception):
    """Base class of all exceptions that this package raises deliberately.

    Examples:
        >>> from uldp_transforms.ldp import SpecError, UldpError
        >>> issubclass(SpecError, UldpError)
        True
    """


class SpecError(UldpError, ValueError):
    """A configuration is not allowed. The message names the class and the field, the allowed values and the given one.

    Examples:
        >>> from uldp_transforms.ldp import Budget, SpecError
        >>> try:
        ...     Budget(epsilon=-1.0)
        ... except SpecError as error:
        ...     print(error)
        Budget.epsilon must be a number above 0, got -1.0
    """


class BudgetSpentError(UldpError, ValueError):
    """A report was not made because it could exceed the remaining privacy budget of the person.

    Examples:
        >>> from uldp_transforms.ldp import Budget, BudgetSpentError
        >>> from uldp_transforms.ldp import Client, Collection, FileStorage
        >>> collection = Collection.from_json("C.json")  # epsilon is 1
        >>> budget = Budget(epsilon=1.0, lifetime=1.0)
        >>> client = Client(collection, FileStorage("one.json"), budget)
        >>> _ = client.report("flu", 0)
        >>> try:
        ...     client.report("flu", 86_400_000)  # a day later
        ... except BudgetSpentError:
        ...     print("nothing is sent")
        nothing is sent
    """


class EstimationError(UldpError, ValueError):
    """The counts do not allow this estimate.

    Examples:
        >>> from uldp_transforms.ldp import CohortCounts, Collection
        >>> from uldp_transforms.ldp import EstimationError
        >>> collection = Collection.from_json("C.json")
        >>> try:
        ...     collection.estimate(CohortCounts.empty(1, 4))
        ... except EstimationError as error:
        ...     print(error.status)
        empty

    Attributes:
        status: ``status`` of a windowed estimate with this error.
    """

    status = "failed"


class NoReportsError(EstimationError):
    """The counts contain no reports."""

    status = "empty"


class InsufficientCohortsError(EstimationError):
    """The cohorts with reports cannot distinguish the candidates (the system of equations is rank-deficient)."""

    status = "insufficient_cohorts"


class IllConditionedError(EstimationError):
    """The system of equations for the candidates is too close to singular."""

    status = "ill_conditioned"


class ConformanceError(UldpError, AssertionError):
    """A mechanism or an estimator does not behave as declared; the message names the instance and the fault."""
