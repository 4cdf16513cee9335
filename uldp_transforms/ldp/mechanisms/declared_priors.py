"""Mechanisms with less noise if the dependence of values on the protected state is public (inherent uncertainty).

The protected quantity is a *state* s that is never reported; the value is reported, and Pr(value | s) is declared for
every state. A value that is likely under all states reveals little about the state, so less noise is sufficient for

    Pr(report | s) <= e**epsilon Pr(report | s')    for all states s, s'.

The guarantee is about states and holds only under the declared priors; values themselves are not epsilon-LDP.

Source: Tang, Shao, Chen, Wang and Guo, "Enhanced Accuracy in Local Differential Privacy via Leveraging Inherent
Uncertainty".
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar

from uldp_transforms.ldp.checks import describe, is_number
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.bit_reports import ALL_BITS
from uldp_transforms.ldp.mechanisms.integer_reports import ONE_SYMBOL
from uldp_transforms.ldp.mechanisms.mechanism import About, Kind
from uldp_transforms.ldp.mechanisms.randomized_response import KaryRR
from uldp_transforms.ldp.mechanisms.unary import Rappor
from uldp_transforms.ldp.sampling import BIT_PLANES, WORD, exp_bounds, floor_weight

MAX_VALUES = 1024
"""Maximum number of values with declared priors, so that a person can read them."""

_SUM_SLACK = 1e-9

_CAVEAT = (
    "States are protected under the declared priors only. Values are not: the log ratio between two values is {:.6g}."
)

_PRIORS_SCHEMA = {
    "description": "One row a state: Pr(value | state) in the order of the values; each row sums to 1.",
    "type": "array",
    "minItems": 2,
    "items": {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}, "minItems": 2},
}

Priors = tuple[tuple[float, ...], ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttributeGRR(KaryRR):
    """AGRR: k-RR with the additional noise that the declared priors require; payload and counts of k-RR.

    A value is kept with probability (E - 1 + w) / (E - 1 + K w) and replaced by each other one with
    w / (E - 1 + K w), where w = max over values and states of [Pr(value | s) - E Pr(value | s')]+ and E = e**epsilon.
    w = 1 is k-RR; w = 0 needs no noise (one word in 2**64 is kept for it).

    Attributes:
        priors: one row per state, at least two; Pr(value | state) in the alphabet's order, each row summing to 1.
    """

    id: ClassVar[str] = "agrr"
    about: ClassVar[About] = About(
        sends="one symbol, with only as much noise as the declared `priors` Pr(value given state) require",
        protects="states, under these priors only",
        source="AGRR: Tang et al.",
        payload=ONE_SYMBOL,
    )
    names_values: ClassVar[bool] = True

    epsilon_inf: None = dataclasses.field(
        default=None, metadata={"schema": {"description": "Null or absent: there are no memos.", "type": "null"}}
    )
    priors: Priors = dataclasses.field(metadata={"schema": _PRIORS_SCHEMA})

    def check_own_fields(self) -> None:
        super().check_own_fields()
        object.__setattr__(self, "priors", checked_priors(type(self).__name__, self.priors, self.num_symbols))

    @functools.cached_property
    def noise_weight(self) -> int:
        """Number of the 2**64 words that send a given noise symbol; rounded up, in favour of privacy."""
        excess, e = self._excess, exp_bounds(self.epsilon)[0]
        share = WORD * excess / (e - 1 + self.num_symbols * excess)
        return max(1, -(-share.numerator // share.denominator))

    @property
    def _excess(self) -> Fraction:
        """w: the largest excess of a single value."""
        return max(max(differences) for differences in _excesses(self.priors, self.epsilon))

    @property
    def protected_inputs(self) -> list[list[list[Fraction]]]:
        return [_exact(self.priors)]

    @property
    def caveats(self) -> list[str]:
        return [_CAVEAT.format(super().effective_epsilon)]

    def kinds(self) -> Iterator[Kind]:
        """Each reported value under each state."""
        states, noise = _exact(self.priors), Fraction(self.noise_weight)
        for value in range(self.num_symbols):
            shares = [noise + self.keep_weight * state[value] for state in states]
            high, low = (shares.index(extreme(shares)) for extreme in (max, min))
            yield Kind(f"value {value}", (f"state {high}", f"state {low}"), (shares[high], shares[low]))

    @property
    def exact_ratio(self) -> Fraction:
        """The largest ratio over all states and reports."""
        gain, states = super().exact_ratio - 1, _exact(self.priors)
        return max((1 + gain * a) / (1 + gain * b) for one in states for other in states for a, b in zip(one, other))

    @property
    def effective_epsilon(self) -> float:
        return math.log(self.exact_ratio)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttributeOUE(Rappor):
    """AOUE: one bit per value, own bit 1 with probability 1/2, others with w / (E - 1 + 2 w); payload of RAPPOR.

    w is the worst hockey-stick divergence between two states, max of sum_value [Pr(value | s) - E Pr(value | s')]+.
    w = 1 is OUE; w = 0 needs no noise.

    Attributes:
        priors: as for AGRR.
    """

    id: ClassVar[str] = "aoue"
    about: ClassVar[About] = About(
        sends="one bit per symbol, with only as much noise as the declared `priors` require",
        protects="states, under these priors only",
        source="AOUE: Tang et al.",
        payload=ALL_BITS,
    )
    max_hashes: ClassVar[int] = 1
    names_values: ClassVar[bool] = True

    theta: None = dataclasses.field(
        default=None, metadata={"schema": {"description": "Null or absent: it is 1/2.", "type": "null"}}
    )
    epsilon_inf: None = dataclasses.field(
        default=None, metadata={"schema": {"description": "Null or absent: there are no memos.", "type": "null"}}
    )
    priors: Priors = dataclasses.field(metadata={"schema": _PRIORS_SCHEMA})

    def check_own_fields(self) -> None:
        if self.theta is not None:
            raise SpecError(f"{type(self).__name__}.theta must be absent (it is 1/2), got {describe(self.theta)}")
        super().check_own_fields()
        object.__setattr__(self, "priors", checked_priors(type(self).__name__, self.priors, self.num_symbols))

    @property
    def _excess(self) -> Fraction:
        """w: the worst hockey-stick divergence of order E."""
        return max(sum(differences, Fraction(0)) for differences in _excesses(self.priors, self.epsilon))

    @functools.cached_property
    def noise_numerator(self) -> int:
        """psi * 2**32, rounded up, in favour of privacy."""
        excess, e = self._excess, exp_bounds(self.epsilon)[0]
        share = (1 << BIT_PLANES) * excess / (e - 1 + 2 * excess)
        return max(1, -(-share.numerator // share.denominator))

    @functools.cached_property
    def keep_weight(self) -> int:
        """The weight with which the own bit is 1 with probability 1/2; nearly 1 if no noise is needed."""
        if not self._excess:
            return WORD - 1
        return floor_weight((Fraction(1, 2) - self.noise_rate) / (1 - self.noise_rate))

    @property
    def protected_inputs(self) -> list[list[list[Fraction]]]:
        return [_exact(self.priors)]

    @property
    def caveats(self) -> list[str]:
        return [_CAVEAT.format(super().effective_epsilon)]

    def kinds(self) -> Iterator[Kind]:
        """For each pair of states, the bit set that most favours the first one; common factors cancel."""
        states, keep, psi = _exact(self.priors), Fraction(self.keep_weight, WORD), self.noise_rate
        one, zero = (keep + (1 - keep) * psi) / psi, 1 - keep  # ratios of own to noise probability of a bit 1, 0
        for high, low in itertools.permutations(range(len(states)), 2):
            for chosen in _favouring(states[high], states[low]):
                shares = [zero + (one - zero) * sum(state[x] for x in chosen) for state in (states[high], states[low])]
                pair = (shares[0], shares[1])
                yield Kind(f"{len(chosen)} bits are 1", (f"state {high}", f"state {low}"), pair)

    @property
    def exact_ratio(self) -> Fraction:
        """The largest ratio over all states and bit sets; the worst set consists of the values that favour one state
        most."""
        gain, states = super().exact_ratio - 1, _exact(self.priors)
        return max(_worst_set(one, other, gain) for one in states for other in states)

    @property
    def effective_epsilon(self) -> float:
        return math.log(self.exact_ratio)


def checked_priors(owner: str, priors: object, num_values: int) -> Priors:
    """Priors as tuples of floats; raises SpecError if they are not valid priors."""
    if num_values > MAX_VALUES:
        raise SpecError(f"{owner}.priors must cover at most {MAX_VALUES} values, got {num_values}")
    if not isinstance(priors, (list, tuple)) or len(priors) < 2:
        raise SpecError(f"{owner}.priors must be a list of at least 2 rows, one per state, got {describe(priors)}")
    for row in priors:
        numbers = isinstance(row, (list, tuple)) and len(row) == num_values and all(map(is_number, row))
        if not numbers or not all(0 <= share <= 1 for share in row) or abs(sum(row) - 1) > _SUM_SLACK:
            raise SpecError(
                f"{owner}.priors must have rows of {num_values} shares in [0, 1] that sum to 1, got {describe(row)}"
            )
    return tuple(tuple(map(float, row)) for row in priors)


def _exact(priors: Priors) -> list[list[Fraction]]:
    """Priors as fractions whose rows sum to exactly 1."""
    rows = [list(map(Fraction, row)) for row in priors]
    return [[share / sum(row) for share in row] for row in rows]


def _excesses(priors: Priors, epsilon: float) -> list[list[Fraction]]:
    """[Pr(value | s) - E Pr(value | s')]+ of each value, for every pair of states; E rounded in favour of privacy."""
    e, rows = exp_bounds(epsilon)[0], _exact(priors)
    return [[max(a - e * b, Fraction(0)) for a, b in zip(one, other)] for one in rows for other in rows]


def _favouring(one: list[Fraction], other: list[Fraction]) -> Iterator[list[int]]:
    """Sets of values with the largest P / P', of every size: one of them has the largest ratio of all sets."""
    order = sorted((x for x, share in enumerate(one) if share), key=lambda x: other[x] / one[x])
    for size in range(1, len(order) + 1):
        yield order[:size]


def _worst_set(one: list[Fraction], other: list[Fraction], gain: Fraction) -> Fraction:
    """max over sets A of values of (1 + gain P(A)) / (1 + gain P'(A))."""
    ratios = (
        (1 + gain * sum(one[x] for x in chosen)) / (1 + gain * sum(other[x] for x in chosen))
        for chosen in _favouring(one, other)
    )
    return max(ratios, default=Fraction(1))
