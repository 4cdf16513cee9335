"""Plans of O-RR and O-RAPPOR (buckets k, cohorts C, hash functions h), with their expected errors.

The forecast needs no simulation and no matrix. With d different buckets of a value, on average over hash functions,

    n Var = r / (d (1 - d / k)) + 1 / (k - 1)  (+ what an own report adds, for values that are not rare)

where r is n times the variance of one inverted bucket (docs/decisions/0063-planning.md). Least squares over C cohorts
multiplies it by

    1 / (1 - S / (C (k - 1)))                              hashed
    (1 - 1 / C) / (1 - (S - 1) / (C (k - 1)))              permuted

The second is the trace of the inverse of a sum of C free projections of rank k - 1; with k = S it is 1: one permutation
is as good as many. Two permuted values share a bucket with probability c, the same for all pairs. With miss and delta
of an inverted bucket, a report therefore says (hit - miss - delta c) / (delta (1 - c)) of a value, and

    n Var = (miss (1 - miss) + (1 - 2 miss) delta (c + (1 - c) p)) / (delta (1 - c))^2 - (p + c / (1 - c))^2.

Centred least squares leaves out the mean of independent bits: for these the first term is multiplied by 1 - 1 / k, and
1 / (k (1 - c))^2 is added. More than 512 hashed candidates are estimated by message passing, whose error is that of
the library's planner (``hashed_noise``).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

import numpy as np

from labs.experiments.kairouz import inputs
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.mechanisms import SetReportMechanism
from uldp_transforms.ldp.model import MAX_CELLS
from uldp_transforms.ldp.solvers.linear import FEW_UNKNOWNS, MANY_COHORTS, MANY_EQUATIONS
from uldp_transforms.ldp.solvers.simplex import project_onto_simplex
from uldp_transforms_planner.planning.forecast import Groups
from uldp_transforms_planner.planning.hashed_forecast import hashed_noise

O_RR, O_RAPPOR = "O-RR", "O-RAPPOR"
IDS = {O_RR: "krr", O_RAPPOR: "rappor"}

NOBODY = Groups(np.zeros(0), np.zeros(0, dtype=np.int64))
FEW_TWINS = 0.001
"""Expected pairs of candidates that share their buckets in all cohorts, up to which exact least squares is tried."""

NEARLY = 1.01
"""Times the least variance, within which the smallest plan is taken: more counters would buy nearly nothing."""

FORECAST_DRAWS = 16
"""Normal errors over which the l1 loss of the projected estimate is averaged; the same ones for all plans."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """One plan for S values.

    Attributes:
        mechanism: O-RR or O-RAPPOR.
        closed: permutations of a list of known values; else hash functions of any texts.
        size: S.
        num_buckets: k.
        num_cohorts: C.
        num_hashes: h.
    """

    mechanism: str
    closed: bool
    size: int
    num_buckets: int
    num_cohorts: int
    num_hashes: int = 1

    @property
    def is_plain(self) -> bool:
        """Whether it is k-RR or k-RAPPOR: every value has a bucket of its own."""
        return self.closed and self.num_buckets == self.size

    @property
    def about(self) -> dict[str, int]:
        """The parameters, as columns."""
        return {"buckets": self.num_buckets, "cohorts": self.num_cohorts, "hashes": self.num_hashes}

    def collection(self, values: tuple[str, ...], epsilon: float) -> Collection:
        """The collection of a plan."""
        kind, sizes = IDS[self.mechanism], (self.num_buckets, self.num_cohorts)
        if self.is_plain:
            return inputs.closed(kind, self.size, epsilon)
        if self.closed:
            return inputs.permuted(kind, self.size, *sizes, epsilon)
        if len(values) != self.size:
            raise ValueError(f"a plan for {self.size} values must be used for as many, got {len(values)}")
        return inputs.hashed(kind, *sizes, epsilon, self.num_hashes)

    def variances(self, epsilon: float, people: inputs.Population) -> np.ndarray:
        """(S,) expected variances of the empirical estimates."""
        mechanism, n = self._mechanism(epsilon), people.number
        if self.is_plain:
            plain: np.ndarray = mechanism.variances(people.frequencies) / n
            return plain
        if self.closed:
            return self._permuted_variances(mechanism, people)
        fewer = max(round(n / self._cost_of_hashes(epsilon)), 1)  # hash functions cost as much as these people
        noise = hashed_noise(mechanism, self.num_cohorts, fewer, Groups.of(people.frequencies), 0.0, NOBODY)
        p = people.frequencies
        variances: np.ndarray = np.maximum(noise.common + (noise.own * p - p**2) / n, 0.0)
        return variances

    def _permuted_variances(self, mechanism: SetReportMechanism, people: inputs.Population) -> np.ndarray:
        """(S,): see the module."""
        p, k, (least, more) = people.frequencies, self.num_buckets, divmod(self.size, self.num_buckets)
        shared = (k * least * (least - 1) + 2 * more * least) / (self.size * (self.size - 1))
        rest, miss, delta = 1 - shared, mechanism.miss, mechanism.delta
        squares = (miss * (1 - miss) + (1 - 2 * miss) * delta * (shared + rest * p)) / (delta * rest) ** 2
        if mechanism.independent_bits:
            squares = squares * (1 - 1 / k) + 1 / (k * rest) ** 2
        rank = self.num_cohorts * (k - 1) / (self.size - 1)
        variances: np.ndarray = squares - (p + shared / rest) ** 2
        return np.maximum(variances * (1 - 1 / self.num_cohorts) / (1 - 1 / rank), 0.0) / people.number

    def _mechanism(self, epsilon: float) -> SetReportMechanism:
        """Over the buckets, with one hash function."""
        mechanism = inputs.over_symbols(IDS[self.mechanism], self.num_buckets, epsilon)
        assert isinstance(mechanism, SetReportMechanism)
        return mechanism

    def _cost_of_hashes(self, epsilon: float) -> float:
        """Factor by which h hash functions increase the variance of a rare value; 1 for one function."""
        if self.num_hashes == 1:
            return 1.0
        k = self.num_buckets
        different = k * -math.expm1(self.num_hashes * math.log1p(-1 / k))
        bit = inputs.over_symbols(IDS[self.mechanism], k, epsilon / self.num_hashes)
        several = _null_noise(bit) / (different * (1 - different / k)) + 1 / (k - 1)
        return several / (_null_noise(self._mechanism(epsilon)) * k / (k - 1) + 1 / (k - 1))


def _null_noise(mechanism: object) -> float:
    """n times the variance of the inverse of a bit under noise alone."""
    assert isinstance(mechanism, SetReportMechanism)
    psi = float(mechanism.noise_rate)
    return psi * (1 - psi) / mechanism.delta**2


def forecast_l1(variances: np.ndarray, frequencies: np.ndarray) -> float:
    """Expected l1 loss of the projected estimate, if raw errors are independent and normal with these
    variances, (S,)."""
    errors = np.random.default_rng(0).normal(size=(FORECAST_DRAWS, len(frequencies)))
    projected = project_onto_simplex(frequencies + errors * np.sqrt(variances))
    return float(np.abs(projected - frequencies).sum(axis=1).mean())


def powers_of_two(largest: int) -> tuple[int, ...]:
    """2, 4, 8, ..., up to the largest."""
    return tuple(1 << power for power in range(1, largest.bit_length()))


def grid(
    mechanism: str,
    size: int,
    *,
    closed: bool,
    buckets: Iterable[int],
    cohorts: Iterable[int],
    hashes: Sequence[int] = (1,),
) -> list[Plan]:
    """All plans with these numbers that distinguish the values and fit into the counters of one window."""
    plans = [
        Plan(mechanism=mechanism, closed=closed, size=size, num_buckets=k, num_cohorts=number, num_hashes=h)
        for h in (hashes if mechanism == O_RAPPOR and not closed else (1,))
        for k in buckets
        for number in cohorts
    ]
    return [plan for plan in plans if _is_possible(plan)]


def _is_possible(plan: Plan) -> bool:
    """Enough equations for the solver that will be used, and some to spare."""
    equations, size = plan.num_cohorts * (plan.num_buckets - 1), plan.size
    if plan.is_plain:
        return plan.num_cohorts == 1
    if plan.num_buckets * plan.num_cohorts > MAX_CELLS or plan.num_cohorts < 2:
        return False
    if (plan.closed and plan.num_buckets > size) or (plan.num_hashes > 1 and 2 * plan.num_hashes > plan.num_buckets):
        return False
    if not plan.closed and size > FEW_UNKNOWNS:
        return equations >= MANY_EQUATIONS and plan.num_cohorts > MANY_COHORTS
    twins = size**2 / 2 * math.exp(-plan.num_cohorts * math.log(plan.num_buckets))
    return equations > 1.05 * size and (plan.closed or twins < FEW_TWINS)


def best(plans: Sequence[Plan], epsilon: float, people: inputs.Population, few: int) -> list[tuple[Plan, float]]:
    """The plans with the least forecast l1 loss of the projected estimate, and these losses, best first.

    One plan for each number of buckets and of hash functions: the one with the fewest cohorts whose variance is within
    1 % of the least.
    """
    scored: dict[tuple[int, int], list[tuple[float, Plan]]] = {}
    for plan in plans:
        total = float(plan.variances(epsilon, people).sum())
        scored.setdefault((plan.num_buckets, plan.num_hashes), []).append((total, plan))
    found = []
    for alike in scored.values():
        enough = NEARLY * min(total for total, _ in alike)
        found.append(min((pair for pair in alike if pair[0] <= enough), key=lambda pair: pair[1].num_cohorts))
    found.sort(key=lambda pair: pair[0])
    losses = [
        (plan, forecast_l1(plan.variances(epsilon, people), people.frequencies)) for _, plan in _cheapest(found)[:few]
    ]
    return sorted(losses, key=lambda pair: pair[1])


def _cheapest(found: list[tuple[float, Plan]]) -> list[tuple[float, Plan]]:
    """In order of variance, but the first one is the smallest plan among those within 1 % of it."""
    near = [pair for pair in found if pair[0] <= NEARLY * found[0][0]]
    first = min(near, key=lambda pair: pair[1].num_buckets * pair[1].num_cohorts)
    return [first, *(pair for pair in found if pair not in near)]
