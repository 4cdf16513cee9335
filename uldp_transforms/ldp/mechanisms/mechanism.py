"""What a mechanism is: symbol -> report on the client, reports -> counts -> symbol frequencies on the collector.

Letters: n reports, C cohorts, K symbols of which v sensitive, M = K counted cells, W payload bytes.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Hashable, Iterator
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from uldp_transforms.ldp.checks import is_number, require_int, require_number
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.mechanisms.outcomes import Outcomes
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.sampling import WordSource

MAX_EPSILON = 16.0
"""Largest epsilon; far below the 44 at which 64-bit weights saturate."""

MAX_SYMBOLS = 1 << 20


class About(NamedTuple):
    """What the pages say of a mechanism, in Markdown; tables and schemas are made from it.

    Attributes:
        sends: what a report is, and the fields that decide it.
        protects: what the promise is about.
        source: paper and section.
        payload: the bytes of a report.
    """

    sends: str
    protects: str
    source: str
    payload: str


class Kind(NamedTuple):
    """A kind of report and two kinds of input, with the probabilities of the report up to a factor that they share."""

    report: str
    inputs: tuple[str, str]
    probabilities: tuple[Fraction, Fraction]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mechanism(abc.ABC):
    """Perturbs symbols 0..K-1, the first v of which are sensitive.

    The JSON form holds the fields other than those that come from the alphabet. Each of these has a JSON Schema in its
    metadata.

    Attributes:
        num_symbols: K.
        num_sensitive: v, in [1, K].
        num_hashes: h, symbols that one value has at once; 1 except for Bloom filters.
        epsilon: the guarantee of one report, in (0, 16]; a mechanism that derives it may have a larger or infinite one.
    """

    id: ClassVar[str]
    about: ClassVar[About]
    protects_all: ClassVar[bool] = False
    """True for the LDP members, which protect every symbol, whatever the alphabet calls sensitive."""
    max_hashes: ClassVar[int] = 1
    """Largest h that the mechanism can carry."""
    last_is_missing: ClassVar[bool] = False
    """True if the last symbol stands for a missing answer."""
    independent_bits: ClassVar[bool] = False
    """True if noise supports each sensitive symbol by a coin of its own, whatever else it supports."""
    one_place: ClassVar[bool] = False
    """True if a report is an integer, that of the one cell in which it is counted."""
    names_values: ClassVar[bool] = False
    """True if its fields speak of single values, in the alphabet's order, each of which then needs its own symbol."""

    alike_in_blocks: ClassVar[bool] = True
    """True if sensitive symbols differ in their names only, and so do the others (answers and "missing")."""

    num_symbols: int
    num_sensitive: int
    num_hashes: int = 1
    epsilon: float = dataclasses.field(
        metadata={
            "schema": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": int(MAX_EPSILON),
                "description": "The guarantee of one report: its odds move by at most e**epsilon between any two "
                "(sensitive) values.",
            }
        }
    )

    def __post_init__(self) -> None:
        name = type(self).__name__
        require_int(f"{name}.num_symbols", self.num_symbols, 2, MAX_SYMBOLS)
        if self.protects_all:
            object.__setattr__(self, "num_sensitive", self.num_symbols)
        require_int(f"{name}.num_sensitive", self.num_sensitive, 1, self.num_symbols)
        require_int(f"{name}.num_hashes", self.num_hashes, 1, self.max_hashes)
        self.check_epsilon()
        self.check_own_fields()
        if not self.has_signal:
            raise SpecError(f"{name}.epsilon must be large enough to leave a signal in 64 bits, got {self.epsilon!r}")

    def check_epsilon(self) -> None:
        """Check epsilon and make it a float (raises SpecError)."""
        ok = is_number(self.epsilon) and 0 < self.epsilon <= MAX_EPSILON
        require_number(f"{type(self).__name__}.epsilon", self.epsilon, f"a number in (0, {MAX_EPSILON:g}]", ok)
        object.__setattr__(self, "epsilon", float(self.epsilon))

    def check_own_fields(self) -> None:  # noqa: B027  # most mechanisms have none
        """Check the fields that a subclass adds (raises SpecError); the others are checked already."""

    def check_clients(self) -> None:  # noqa: B027  # most mechanisms have clients of their own
        """Refuse to draw reports, or to tell clients how (raises SpecError), if they are only decoded."""

    def to_json(self) -> dict[str, Any]:
        """``{"id": ..., field: value}`` without what the alphabet determines."""
        fields = {f.name: getattr(self, f.name) for f in self.json_fields()}
        return {"id": self.id} | {name: _plain(value) for name, value in fields.items() if value is not None}

    @classmethod
    def json_fields(cls) -> list[dataclasses.Field[Any]]:
        """Fields that are in the JSON form: epsilon and those that a subclass adds."""
        outside = {f.name for f in dataclasses.fields(Mechanism)} - {"epsilon"}
        return [f for f in dataclasses.fields(cls) if f.init and f.name not in outside]

    @classmethod
    def takes(cls, name: str) -> bool:
        """Whether the JSON form may have a field of this name."""
        return name in {f.name for f in cls.json_fields()}

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """JSON Schema of the JSON form."""
        fields = cls.json_fields()
        return {
            "description": f"Sends {cls.about.sends}. Protects {cls.about.protects}.".replace("`", ""),
            "type": "object",
            "required": ["id", *(f.name for f in fields if f.default is dataclasses.MISSING)],
            "additionalProperties": False,
            "properties": {"id": {"const": cls.id}} | {f.name: f.metadata["schema"] for f in fields},
        }

    # ------------------------------------------------------------------ the definition

    @property
    @abc.abstractmethod
    def has_signal(self) -> bool:
        """False if rounding towards privacy leaves no informative report."""

    @property
    @abc.abstractmethod
    def effective_epsilon(self) -> float:
        """ln of the largest ratio that the client really has, at most ``epsilon``."""

    @property
    @abc.abstractmethod
    def exact_ratio(self) -> Fraction:
        """The largest ratio itself: of the probabilities of one report under two inputs that it must not tell apart.

        These are a sensitive symbol and any other one, or two states of a mechanism that declares priors.
        """

    @abc.abstractmethod
    def kinds(self) -> Iterator[Kind]:
        """Every structurally different pair of inputs and protected report, from the client's integers alone.

        It must not use ``exact_ratio``, which an audit compares it with.
        """

    def epsilon_after(self, num_reports: int) -> float:
        """The guarantee of so many reports of one person, whose symbol stays."""
        return num_reports * self.epsilon

    @property
    def caveats(self) -> list[str]:
        """What the promise does not say, in sentences."""
        return []

    @property
    @abc.abstractmethod
    def num_outputs(self) -> int:
        """How many different payloads ``perturb`` can make."""

    @property
    def protected_inputs(self) -> list[list[list[Fraction]]] | None:
        """Groups of distributions of the symbol; a report must not tell those of one group apart.

        None: every sensitive symbol against every other symbol, in protected reports.
        """
        return None

    @property
    @abc.abstractmethod
    def exact_weights(self) -> dict[str, Any]:
        """The integers that decide the client's probabilities; part of the fingerprint."""

    @property
    @abc.abstractmethod
    def client_sampler(self) -> dict[str, Any]:
        """How a client draws a report, spelt out: ``sampler`` names one of the ways of docs/client.md.

        The other keys are its integers, those of 64 bits as decimal texts.
        """

    @abc.abstractmethod
    def channel(self) -> tuple[list[bytes], list[list[Fraction]]]:
        """Every payload and its exact probability under every symbol, by enumeration of a small instance.

        Returns:
            payloads, and rows[i][x] = Q(payloads[i] | x).
        """

    @abc.abstractmethod
    def log_prob(self, payloads: np.ndarray) -> np.ndarray:
        """The definition in floating point: (n, K), ln Q(payload | symbol); -inf where impossible."""

    # ------------------------------------------------------------------ reports

    @property
    @abc.abstractmethod
    def payload_size(self) -> int:
        """W, bytes of every payload."""

    @property
    @abc.abstractmethod
    def client_payload(self) -> dict[str, Any]:
        """The bytes of a payload, spelt out: ``layout`` names one of docs/client.md, ``bytes`` is W."""

    @abc.abstractmethod
    def perturb(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """Run by the client: one payload per value.

        Args:
            symbols: (n,) int64 in [0, K); (n, h) if values have h > 1 symbols.
            source: of random words. How many are drawn depends on n and the fields; where a sampler draws some again
                (``ss``), on these words too.

        Returns:
            (n, W) uint8.
        """

    @property
    def layout(self) -> Hashable:
        """Equal for mechanisms that have the same ``payload_size``, ``violations`` and counts, whatever their noise."""
        return self

    @abc.abstractmethod
    def violations(self, payloads: np.ndarray) -> Iterator[tuple[Reason, np.ndarray]]:
        """Run by the collector: each way in which a payload cannot come from ``perturb``, with an (n,) mask.

        A payload that is in no mask is in the support of ``perturb``, exactly.
        """

    def is_valid(self, payloads: np.ndarray) -> np.ndarray:
        """(n,) bool: True for exactly the payloads that ``perturb`` can make."""
        valid = np.ones(len(payloads), dtype=bool)
        for _, mask in self.violations(payloads):
            valid &= ~mask
        return valid

    @property
    def num_cells(self) -> int:
        """M, what ``count`` counts in each group."""
        return self.num_symbols

    @abc.abstractmethod
    def count(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> np.ndarray:
        """Run by the collector: how often each cell is counted in each group of reports.

        Args:
            payloads: (n, W) uint8, valid.
            groups: (n,) integers in [0, num_groups), for instance cohorts.
            num_groups: number of rows to return.

        Returns:
            (num_groups, M) int64: c_x, the reports that support x, for x < v; R_z, the clear reports of z, for z >= v.
            Where M > K, parts of the c_x behind them: v numbers for each kind of report but the first.
        """

    def count_places(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> tuple[np.ndarray, np.ndarray]:
        """``count`` without what is 0.

        Args:
            payloads, groups, num_groups: as for ``count``.

        Returns:
            (N,) int64 places, increasing, of the numbers that are not 0 in the table row by row; (N,) int64 numbers.
        """
        table = self.count(payloads, groups, num_groups).reshape(-1)
        places = np.flatnonzero(table)
        return places, table[places]

    @property
    def num_patterns(self) -> int:
        """P, what ``count_patterns`` counts; 0 if there is nothing to see inside a report."""
        return 0

    def count_patterns(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> np.ndarray:
        """Run by the collector, if asked: what sentinels want to know of each report as a whole.

        Args:
            payloads, groups, num_groups: as for ``count``.

        Returns:
            (num_groups, P) int64.
        """
        return np.zeros((num_groups, 0), dtype=np.int64)

    def count_violations(self, counts: CohortCounts) -> Iterator[tuple[str, np.ndarray]]:
        """Run where stored counts are read: properties of all counts, each with a (C,) mask of cohorts that lack it.

        Counts of valid payloads have them all, whoever sent these, and so have sums of such counts.

        Args:
            counts: of C cohorts and M cells.
        """
        below: np.ndarray = np.minimum(counts.num_reports, counts.cells.min(axis=1)) < 0
        yield "no number below 0", below
        yield "no cell above the reports of its cohort", counts.cells.max(axis=1) > counts.num_reports
        if self.one_place:
            yield "cells that sum to the reports of their cohort", exact_sums(counts.cells) != counts.num_reports

    # ------------------------------------------------------------------ what counts say

    @abc.abstractmethod
    def response(self, frequencies: np.ndarray) -> np.ndarray:
        """Expected cells per report when symbols have these frequencies.

        Args:
            frequencies: (..., K) summing to 1 (to at most h, if values have h symbols).

        Returns:
            (..., M).
        """

    @abc.abstractmethod
    def invert(self, counts: CohortCounts) -> np.ndarray:
        """Unbiased, unclipped symbol frequencies of each cohort; rows of empty cohorts are 0.

        Args:
            counts: counts of C cohorts.

        Returns:
            (C, K) float64.
        """

    def invert_alone(self, counts: CohortCounts) -> np.ndarray:
        """``invert``, but symbols of which only their holders are counted by their own counts alone: 0 where unseen.

        That is the same unless protected reports are of several kinds.
        """
        return self.invert(counts)

    @abc.abstractmethod
    def variances(self, frequencies: np.ndarray) -> np.ndarray:
        """n times the variance of ``invert`` when n independent people hold symbols with these frequencies.

        Args:
            frequencies: (..., K) summing to 1.

        Returns:
            (..., K).
        """

    def variances_alone(self, frequencies: np.ndarray) -> np.ndarray:
        """``variances`` for ``invert_alone``."""
        return self.variances(frequencies)

    @abc.abstractmethod
    def null_variances(self, frequencies: np.ndarray) -> np.ndarray:
        """n times the variance of ``invert_alone`` of each symbol if nobody held it; (K,) -> (K,).

        Set reports: its people hold other sensitive symbols instead, so that as many people do. Otherwise: they are
        left out.
        """

    @abc.abstractmethod
    def variance_of(self, weights: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        """n times the variance of weighted sums of ``invert``.

        Args:
            weights: (..., K), of each sum.
            frequencies: (K,) summing to 1.

        Returns:
            (...).
        """

    @abc.abstractmethod
    def intervals(
        self, counts: CohortCounts, frequencies: np.ndarray, confidence: Confidence, strict: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Confidence intervals of the pooled symbol frequencies, which hold for rare symbols too.

        Args:
            counts: of one (pooled) cohort with at least one report.
            frequencies: (K,) point at which the noise of the other symbols is taken.
            confidence: of all intervals; of strict ones maybe (K,).
            strict: hold every frequency so often, however rare, and not those of a window on average.

        Returns:
            low (K,), high (K,), not cut to [0, 1].
        """

    @property
    @abc.abstractmethod
    def jumps(self) -> np.ndarray:
        """(K,): n times what one more report that is counted for a symbol adds to its frequency in ``invert``."""

    @property
    @abc.abstractmethod
    def largest_effects(self) -> np.ndarray:
        """(K,): the most that one report, chosen at will, adds to n times each frequency in ``invert``."""

    @property
    @abc.abstractmethod
    def reveal_rate(self) -> float:
        """Probability that a non-sensitive symbol is sent in clear."""

    @property
    def floor_rate(self) -> float | None:
        """The smallest rate of any sensitive symbol among protected reports of honest clients; None: unknown."""
        return None

    # ------------------------------------------------------------------ likelihood

    has_closed_form: ClassVar[bool] = False
    """True if ``most_likely`` is implemented."""

    def most_likely(self, cells: np.ndarray) -> np.ndarray:
        """The symbol frequencies (K,) under which counts (K,) of one cohort are most likely, in closed form."""
        raise NotImplementedError

    def outcomes_of_counts(self, counts: CohortCounts) -> Outcomes | None:
        """What the likelihood needs to know, from the counts; None if it needs more than they hold."""
        return None

    def outcomes_of_reports(self, payloads: np.ndarray, cohorts: np.ndarray) -> Outcomes | None:
        """The same from the reports themselves; None if the likelihood is not linear in symbol frequencies."""
        return None


def exact_sums(cells: np.ndarray) -> np.ndarray:
    """Sums of the rows of (C, M) integers, (C,) Python integers: 64 bits may not hold them."""
    high, low = (part.sum(axis=1).astype(object) for part in (cells >> 32, cells & 0xFFFFFFFF))
    sums: np.ndarray = (high << 32) + low
    return sums


def _plain(value: Any) -> Any:
    """Tuples as lists, as JSON has them."""
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
