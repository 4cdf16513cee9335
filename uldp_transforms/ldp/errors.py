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
    """A configuration is not allowed. The message names the class and field, what is allowed and what was given.

    Examples:
        >>> from uldp_transforms.ldp import Budget, SpecError
        >>> try:
        ...     Budget(epsilon=-1.0)
        ... except SpecError as error:
        ...     print(error)
        Budget.epsilon must be a number above 0, got -1.0
    """


class BudgetSpentError(UldpError, ValueError):
    """A report was not made because it could cost more than what is left of a person's privacy budget.

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
        status: value of the ``status`` field of a windowed estimate in this case.
    """

    status = "failed"


class NoReportsError(EstimationError):
    """There are no reports."""

    status = "empty"


class InsufficientCohortsError(EstimationError):
    """The cohorts with reports cannot distinguish the candidates (the system of equations is rank-deficient)."""

    status = "insufficient_cohorts"


class IllConditionedError(EstimationError):
    """The system of equations for the candidates is too close to singular."""

    status = "ill_conditioned"


class ConformanceError(UldpError, AssertionError):
    """A mechanism or an estimator that does not do what it declares; the sentence names the instance and the fault."""
