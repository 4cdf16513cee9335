"""Base class of mechanisms: symbol -> report on the client, reports -> counts -> symbol frequencies on the collector.

Notation: n reports, C cohorts, K symbols, v of them sensitive, M = K counted cells, W payload bytes.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Hashable, Iterator, Mapping
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
"""Maximum epsilon; far below the 44 at which 64-bit weights saturate."""

MAX_SYMBOLS = 1 << 20

_DECIMALS = 6  # of expected counts: a count that is whole but for rounding stays what it is


class About(NamedTuple):
    """Description of a mechanism in Markdown, for generated tables and schemas.

    Attributes:
        sends: content of a report, and the fields that determine it.
        protects: what the guarantee covers.
        source: paper and section.
        payload: byte layout of a report.
    """

    sends: str
    protects: str
    source: str
    payload: str


class Kind(NamedTuple):
    """A kind of report and two kinds of input, with the probabilities of the report up to a common factor.

    ``guarantee`` is the place in ``Mechanism.guarantees`` of the one that covers such reports.
    """

    report: str
    inputs: tuple[str, str]
    probabilities: tuple[Fraction, Fraction]
    guarantee: int = 0


class Guarantee(NamedTuple):
    """A bound for the reports of some symbols.

    Attributes:
        of: whose reports; for tables.
        epsilon: their odds move by at most e**epsilon between these symbols, those of all later guarantees, and those
            that have none.
        symbols: the symbols, which reports of later guarantees rule out.
        exact_ratio: the largest ratio of the client's actual probabilities.
    """

    of: str
    epsilon: float
    symbols: tuple[int, ...]
    exact_ratio: Fraction


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mechanism(abc.ABC):
    """Perturbs symbols 0..K-1, the first v of which are sensitive.

    The JSON form contains all fields except those that come from the alphabet. Each of these fields has a JSON Schema
    in its metadata.

    Attributes:
        num_symbols: K.
        num_sensitive: v, in [1, K].
        num_hashes: h, number of symbols that one value has at once; 1 except for Bloom filters.
        num_others: sensitive symbols that have no place in the order of symbols, the last of the v; most mechanisms
            ignore the order.
        epsilon: the guarantee of one report, in (0, 16]; a mechanism that derives it may have a larger or infinite one.
    """

    id: ClassVar[str]
    about: ClassVar[About]
    protects_all: ClassVar[bool] = False
    """True for LDP mechanisms, which protect every symbol, including symbols that the alphabet declares
    non-sensitive."""
    max_hashes: ClassVar[int] = 1
    """Maximum h that the mechanism supports."""
    last_is_missing: ClassVar[bool] = False
    """True if the last symbol stands for a missing answer."""
    independent_bits: ClassVar[bool] = False
    """True if noise supports each sensitive symbol by an independent coin."""
    one_place: ClassVar[bool] = False
    """True if a report is an integer that names the single cell in which it is counted."""
    names_values: ClassVar[bool] = False
    """True if its fields refer to single values, in the alphabet's order; each value then needs its own symbol."""

    alike_in_blocks: ClassVar[bool] = True
    """True if all sensitive symbols are exchangeable, and so are all others (for TSP: answers and "missing")."""

    num_symbols: int
    num_sensitive: int
    num_hashes: int = 1
    num_others: int = dataclasses.field(default=0, repr=False)
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
        require_int(f"{name}.num_others", self.num_others, 0, self.num_sensitive)
        self.check_epsilon()
        self.check_own_fields()
        if not self.has_signal:
            raise SpecError(self.no_signal)

    def check_epsilon(self) -> None:
        """Check epsilon and convert it to a float (raises SpecError)."""
        ok = is_number(self.epsilon) and 0 < self.epsilon <= MAX_EPSILON
        require_number(f"{type(self).__name__}.epsilon", self.epsilon, f"a number in (0, {MAX_EPSILON:g}]", ok)
        object.__setattr__(self, "epsilon", float(self.epsilon))

    @property
    def no_signal(self) -> str:
        """The refusal of an epsilon that 64-bit weights cannot express."""
        name = f"{type(self).__name__}.epsilon"
        return f"{name} must be large enough for a signal in 64-bit weights, got {self.epsilon!r}"

    def check_own_fields(self) -> None:  # noqa: B027  # most mechanisms have none
        """Check the fields that a subclass adds (raises SpecError); all other fields have been checked."""

    def check_clients(self) -> None:  # noqa: B027  # most mechanisms have clients of their own
        """Refuse to draw reports or to describe a client (raises SpecError) if reports come from foreign clients
        only."""

    def to_json(self) -> dict[str, Any]:
        """``{"id": ..., field: value}`` without the fields that the alphabet determines."""
        fields = {f.name: getattr(self, f.name) for f in self.json_fields()}
        return {"id": self.id} | {name: _plain(value) for name, value in fields.items() if value is not None}

    @classmethod
    def json_fields(cls) -> list[dataclasses.Field[Any]]:
        """Fields that are in the JSON form: epsilon and those that a subclass adds."""
        outside = {f.name for f in dataclasses.fields(Mechanism)} - {"epsilon"}
        return [f for f in dataclasses.fields(cls) if "schema" in f.metadata and f.init and f.name not in outside]

    @classmethod
    def takes(cls, name: str) -> bool:
        """Whether the JSON form can have a field with this name."""
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
        """ln of the largest ratio of the client's actual probabilities, at most ``epsilon``."""

    @property
    @abc.abstractmethod
    def exact_ratio(self) -> Fraction:
        """The largest ratio of the probabilities of one report under two inputs that it must not distinguish.

        The inputs are a sensitive symbol and any other one, or two states of a mechanism that declares priors.
        """

    @abc.abstractmethod
    def kinds(self) -> Iterator[Kind]:
        """Every structurally different pair of inputs and protected report, from the client's integers alone.

        It must not use ``exact_ratio``, against which an audit compares it.
        """

    @property
    def guarantees(self) -> list[Guarantee]:
        """The guarantees of sensitive symbols: one for all, unless there are levels of them."""
        return [Guarantee("sensitive", self.epsilon, tuple(range(self.num_sensitive)), self.exact_ratio)]

    @property
    def examples(self) -> dict[str, int]:
        """A symbol of each kind that has a precision of its own, by what its values are called."""
        protected = {f"value of {one.of}": one.symbols[0] for one in self.guarantees}
        protected = protected if len(protected) > 1 else {"protected value": 0}
        return protected | ({"other value": self.num_symbols - 1} if self.num_sensitive < self.num_symbols else {})

    @property
    def named_symbols(self) -> Mapping[str, int]:
        """Values to which the fields give a symbol, which must be the one of the alphabet."""
        return {}

    def epsilon_after(self, num_reports: int) -> float:
        """Guarantee of ``num_reports`` reports of one person whose symbol stays the same."""
        return num_reports * self.epsilon

    def epsilons_after(self, num_reports: int) -> list[float]:
        """The same for the symbols of each of ``guarantees``; reports of several levels have no memos."""
        if len(self.guarantees) == 1:
            return [self.epsilon_after(num_reports)]
        return [num_reports * one.epsilon for one in self.guarantees]

    @property
    def described(self) -> About:
        """``about``, with the parts that the fields of this mechanism determine."""
        return self.about

    @property
    def states(self) -> tuple[str, ...]:
        """What every report says about its value in clear, as nouns for a reader; nothing by default."""
        return ()

    @property
    def confusable(self) -> list[range | list[int]]:
        """Groups of symbols: what a report must not tell apart; by default all symbols."""
        return [range(self.num_symbols)]

    @property
    def sends_clear(self) -> bool:
        """Whether some report can come from one symbol only, and thus reveals it.

        By default, such reports come from symbols that are not sensitive. Tests compare this with the channel.
        """
        return self.num_sensitive < self.num_symbols

    @property
    def caveats(self) -> list[str]:
        """Limitations of the guarantee, as sentences; a subclass adds its own."""
        if self.num_sensitive == self.num_symbols or not self.sends_clear:
            return []
        return [
            f"Non-sensitive symbols are not protected: each is sent in clear with probability {self.reveal_rate:.3g}."
        ]

    @property
    @abc.abstractmethod
    def num_outputs(self) -> int:
        """Number of different payloads that ``perturb`` can produce."""

    @property
    def protected_inputs(self) -> list[list[list[Fraction]]] | None:
        """Groups of distributions of the symbol; a report must not distinguish those of one group.

        None: every sensitive symbol against every other symbol, in protected reports.
        """
        return None

    @property
    @abc.abstractmethod
    def exact_weights(self) -> dict[str, Any]:
        """The integers that determine the client's probabilities; part of the fingerprint."""

    @property
    @abc.abstractmethod
    def client_sampler(self) -> dict[str, Any]:
        """Instructions for a client that draws a report: ``sampler`` names one of the methods in docs/client.md.

        The other keys are its integers; 64-bit integers are decimal texts.
        """

    @abc.abstractmethod
    def channel(self) -> tuple[list[bytes], list[list[Fraction]]]:
        """Every payload and its exact probability under every symbol, by enumeration of a small instance.

        Returns:
            Payloads, and rows[i][x] = Q(payloads[i] | x).
        """

    @abc.abstractmethod
    def log_prob(self, payloads: np.ndarray) -> np.ndarray:
        """(n, K): ln Q(payload | symbol) in floating point; -inf where impossible."""

    # ------------------------------------------------------------------ reports

    @property
    @abc.abstractmethod
    def payload_size(self) -> int:
        """W, number of bytes of every payload."""

    @property
    @abc.abstractmethod
    def client_payload(self) -> dict[str, Any]:
        """The byte layout of a payload: ``layout`` names one of docs/client.md, ``bytes`` is W."""

    @abc.abstractmethod
    def perturb(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """Run by the client: one payload per value.

        Args:
            symbols: (n,) int64 in [0, K); (n, h) if values have h > 1 symbols.
            source: source of random words. The number of words depends on n and the fields only, except for
                samplers with rejection (``ss``) and for unary bits of many reports (``noise_bits``).

        Returns:
            (n, W) uint8.
        """

    @property
    def layout(self) -> Hashable:
        """Equal for mechanisms with the same ``payload_size``, ``violations`` and counts, for any noise."""
        return self

    @abc.abstractmethod
    def violations(self, payloads: np.ndarray) -> Iterator[tuple[Reason, np.ndarray]]:
        """Run by the collector: each way in which a payload cannot come from ``perturb``, with an (n,) mask.

        A payload that is in no mask is in the support of ``perturb``.
        """

    @property
    def tail(self) -> tuple[int, int]:
        """Number of last bytes of a payload, at most 7, and a limit: a payload is valid if and only if these bytes are
        a little-endian integer below the limit. (0, 0) if validity needs more than that (the default)."""
        return 0, 0

    def is_valid(self, payloads: np.ndarray) -> np.ndarray:
        """(n,) bool: True for exactly the payloads that ``perturb`` can produce."""
        valid = np.ones(len(payloads), dtype=bool)
        for _, mask in self.violations(payloads):
            valid &= ~mask
        return valid

    @property
    def num_cells(self) -> int:
        """M, number of cells that ``count`` counts in each group."""
        return self.num_symbols

    @abc.abstractmethod
    def count(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> np.ndarray:
        """Run by the collector: count each cell in each group of reports.

        Args:
            payloads: (n, W) uint8, valid.
            groups: (n,) integers in [0, num_groups), for instance cohorts.
            num_groups: number of rows of the result.

        Returns:
            (num_groups, M) int64: c_x, the reports that support x, for x < v; R_z, the clear reports of z, for z >= v.
            If M > K, these are followed by parts of the c_x: v numbers for each kind of report except the first.
        """

    def count_places(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> tuple[np.ndarray, np.ndarray]:
        """``count`` restricted to non-zero cells.

        Args:
            payloads, groups, num_groups: as for ``count``.

        Returns:
            (N,) int64 places of the nonzero numbers in the table, row by row, increasing; (N,) int64 numbers.
        """
        table = self.count(payloads, groups, num_groups).reshape(-1)
        places = np.flatnonzero(table)
        return places, table[places]

    @property
    def num_patterns(self) -> int:
        """P, number of patterns that ``count_patterns`` counts; 0 if the mechanism has no bit patterns."""
        return 0

    def count_patterns(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> np.ndarray:
        """Run by the collector on request: count bit patterns of whole reports, for the sentinels.

        Args:
            payloads, groups, num_groups: as for ``count``.

        Returns:
            (num_groups, P) int64.
        """
        return np.zeros((num_groups, 0), dtype=np.int64)

    def count_violations(self, counts: CohortCounts) -> Iterator[tuple[str, np.ndarray]]:
        """Run on stored counts: properties of all valid counts, each with a (C,) mask of the cohorts that violate it.

        Counts of valid payloads, from any sender, satisfy all of them, and so do sums of such counts.

        Args:
            counts: counts of C cohorts and M cells.
        """
        below: np.ndarray = np.minimum(counts.num_reports, counts.cells.min(axis=1)) < 0
        yield "no number below 0", below
        yield "no cell above the reports of its cohort", counts.cells.max(axis=1) > counts.num_reports
        if self.one_place:
            yield "cells that sum to the reports of their cohort", exact_sums(counts.cells) != counts.num_reports

    # ------------------------------------------------------------------ estimation from counts

    @abc.abstractmethod
    def response(self, frequencies: np.ndarray) -> np.ndarray:
        """Expected cells per report if symbols have these frequencies.

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

    def stated_sums(self, counts: CohortCounts) -> list[tuple[np.ndarray, int]]:
        """For each public block, its symbols (K_b,) and the number of reports that state it; none without blocks."""
        return []

    def invert_alone(self, counts: CohortCounts) -> np.ndarray:
        """``invert``, except that symbols of which only holders are counted use their own counts alone: 0 if
        unobserved.

        Both are equal unless there are several kinds of protected reports.
        """
        return self.invert(counts)

    def inverses(self, counts: CohortCounts) -> tuple[np.ndarray, np.ndarray]:
        """``invert`` and ``invert_alone``, which have steps in common."""
        return self.invert(counts), self.invert_alone(counts)

    @property
    def has_equal_rows(self) -> bool:
        """Whether ``inverses``, ``variances`` and ``null_variances`` of several windows, one row each, are the same,
        bit for bit, as of each window alone; products of matrices, for example, are not."""
        return False

    @abc.abstractmethod
    def variances(self, frequencies: np.ndarray) -> np.ndarray:
        """n times the variance of ``invert`` if n independent people hold symbols with these frequencies.

        Args:
            frequencies: (..., K) summing to 1.

        Returns:
            (..., K).
        """

    def variances_alone(self, frequencies: np.ndarray) -> np.ndarray:
        """``variances`` for ``invert_alone``."""
        return self.variances(frequencies)

    @functools.cached_property
    def own_slopes(self) -> np.ndarray:
        """(K,) increase of ``variances_alone`` of each symbol per unit of its frequency p, without the -p^2 term.

        It does not depend on the other frequencies, so it is computed at an arbitrary distribution.
        """
        even = np.full(self.num_symbols, 1 / self.num_symbols)
        slopes: np.ndarray = (self.variances_alone(even) - self.null_variances(even)) / even + even
        return slopes

    @abc.abstractmethod
    def null_variances(self, frequencies: np.ndarray) -> np.ndarray:
        """n times the variance of ``invert_alone`` of each symbol if nobody held it; (K,) -> (K,).

        Set reports: its holders are moved to other sensitive symbols, so that the sensitive share is unchanged. Other
        mechanisms: its holders are left out.
        """

    def private_variances(self, frequencies: np.ndarray) -> np.ndarray:
        """The part of ``variances`` that hashed symbols, the first of the sensitive ones, do not share.

        On contrasts between them the covariance matrix of ``invert`` acts as ``diag(private) - p p^T``; centred least
        squares relies on this. Mechanisms that need values with symbols of their own do not implement it.

        Args:
            frequencies: (..., K) summing to 1.

        Returns:
            (..., number of these symbols).
        """
        raise NotImplementedError

    @abc.abstractmethod
    def variance_of(self, weights: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        """n times the variance of weighted sums of ``invert``.

        Args:
            weights: (..., K), weights of each sum.
            frequencies: (K,) summing to 1.

        Returns:
            (...).
        """

    @abc.abstractmethod
    def covariance(self, frequencies: np.ndarray) -> np.ndarray:
        """n times the covariance of ``invert``.

        Args:
            frequencies: (K,) summing to 1.

        Returns:
            (K, K), symmetric.
        """

    @abc.abstractmethod
    def intervals(
        self, counts: CohortCounts, frequencies: np.ndarray, confidence: Confidence, strict: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Confidence intervals of the pooled symbol frequencies, valid for rare symbols too.

        Args:
            counts: counts of one (pooled) cohort with at least one report.
            frequencies: (K,) point at which the noise of the other symbols is evaluated.
            confidence: of all intervals; may be (K,), with nan where no interval is needed.
            strict: guarantee the coverage for every frequency, not only on average over the values of a window.

        Returns:
            low (K,), high (K,), not clipped to [0, 1].
        """

    def intervals_of_windows(
        self, counts: CohortCounts, frequencies: np.ndarray, confidence: Confidence, strict: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """``intervals`` of W windows, each the same, bit for bit, as alone.

        Args:
            counts: one row for each window.
            frequencies: (W, K).
            confidence: of all intervals; may be (W, K).
            strict: as for ``intervals``.

        Returns:
            low (W, K), high (W, K).
        """
        levels = (
            np.broadcast_to(confidence, frequencies.shape) if np.ndim(confidence) else [confidence] * len(frequencies)
        )
        windows = [CohortCounts(*rows) for rows in zip(counts.num_reports[:, np.newaxis], counts.cells[:, np.newaxis])]
        ends = np.array([self.intervals(*each, strict) for each in zip(windows, frequencies, levels)])
        return ends[:, 0], ends[:, 1]

    def intervals_at(
        self, frequencies: np.ndarray, num_reports: int, whole: np.ufunc, confidence: Confidence, strict: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """``intervals`` of the counts that are expected with these frequencies, as whole numbers; moved outwards by
        what the rounding changes.

        Args:
            frequencies: (K,) summing to 1.
            num_reports: n.
            whole: ``np.floor`` or ``np.ceil``, how expected counts are rounded.
            confidence, strict: as for ``intervals``.
        """
        expected = self.expected_counts(frequencies, num_reports, whole)
        low, high = self.intervals(expected, frequencies, confidence, strict)
        beside = frequencies - self.invert(expected)[0]
        return low + np.minimum(beside, 0), high + np.maximum(beside, 0)

    def intervals_at_windows(
        self,
        frequencies: np.ndarray,
        num_reports: np.ndarray,
        whole: np.ufunc,
        confidence: np.ndarray,
        strict: bool = False,
    ) -> tuple[np.ndarray, np.ndarray]:
        """``intervals_at`` of W windows, each the same, bit for bit, as alone; frequencies (W, K), numbers (W,),
        confidence (W, K)."""
        of_each = zip(frequencies, num_reports.tolist(), confidence)
        ends = np.array([self.intervals_at(one, number, whole, level, strict) for one, number, level in of_each])
        return ends[:, 0], ends[:, 1]

    def expected_counts(self, frequencies: np.ndarray, num_reports: int | np.ndarray, whole: np.ufunc) -> CohortCounts:
        """Whole counts of one cohort; arguments as for ``intervals_at``, or those of W windows."""
        sizes = np.reshape(num_reports, (-1, 1))
        cells = whole(np.round(sizes * self.response(frequencies), _DECIMALS)).astype(np.int64)
        return CohortCounts(sizes[:, 0], cells)

    def lower_ends_of_everybody(self, num_reports: int, confidence: Confidence, strict: bool = False) -> np.ndarray:
        """(K,): for each symbol, the lower end of ``intervals_at`` the frequencies if everybody has it, with counts
        rounded down; nan where ``confidence`` is."""
        levels, low = np.broadcast_to(confidence, self.num_symbols), np.full(self.num_symbols, np.nan)
        for symbol in np.flatnonzero(~np.isnan(levels)).tolist():
            everybody = np.eye(1, self.num_symbols, symbol)[0]
            level = np.where(everybody > 0, levels, np.nan)
            low[symbol] = self.intervals_at(everybody, num_reports, np.floor, level, strict)[0][symbol]
        return low

    @property
    @abc.abstractmethod
    def jumps(self) -> np.ndarray:
        """(K,): n times the contribution of one more counted report of a symbol to its frequency in ``invert``."""

    @property
    def largest_jump(self) -> float:
        """Maximum of n times the contribution of one more counted report to a frequency; 0 if unknown."""
        return 0.0

    @property
    @abc.abstractmethod
    def largest_effects(self) -> np.ndarray:
        """(K,): largest contribution of one arbitrary report to n times each frequency in ``invert``."""

    @property
    def smallest_effects(self) -> np.ndarray | None:
        """(K,): smallest contribution, usually below 0, of one arbitrary report to the same; None if it is unknown."""
        return None

    def effects_of_sums(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest contribution of one arbitrary report to n times weighted sums of ``invert``.

        Here, bounds from those of single symbols, which may be further apart than any report can reach.

        Args:
            weights: (..., K), weights of each sum.

        Returns:
            (...), (...).
        """
        assert self.smallest_effects is not None, "the mechanism states it"
        ends = np.array([weights * self.smallest_effects, weights * self.largest_effects])
        return ends.min(axis=0).sum(axis=-1), ends.max(axis=0).sum(axis=-1)

    @property
    @abc.abstractmethod
    def reveal_rate(self) -> float:
        """Probability that a non-sensitive symbol is sent as a clear report."""

    def clear_reports(self, counts: CohortCounts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each of G parts of the reports, which are public, the numbers (G,) of clear ones and of all, and the
        largest probability (G,) of a clear one."""
        clear = counts.cells[:, self.num_sensitive : self.num_symbols].sum()
        return np.array([clear]), np.array([counts.total]), np.array([self.reveal_rate])

    @property
    def floor_rate(self) -> float | None:
        """The smallest rate of any sensitive symbol among protected reports of honest clients; None if unknown."""
        return None

    # ------------------------------------------------------------------ likelihood

    has_closed_form: ClassVar[bool] = False
    """True if ``most_likely`` is implemented."""

    def most_likely(self, cells: np.ndarray) -> np.ndarray:
        """The maximum-likelihood symbol frequencies (K,) for counts (K,) of one cohort, in closed form."""
        raise NotImplementedError

    def outcomes_of_counts(self, counts: CohortCounts) -> Outcomes | None:
        """Sufficient statistics of the likelihood from the counts; None if the counts do not determine it."""
        return None

    def outcomes_of_reports(self, payloads: np.ndarray, cohorts: np.ndarray) -> Outcomes | None:
        """Sufficient statistics of the likelihood from reports; None if it is not linear in symbol frequencies."""
        return None


def exact_sums(cells: np.ndarray) -> np.ndarray:
    """Sums of the rows of (C, M) integers, (C,) Python integers, which cannot overflow."""
    high, low = (part.sum(axis=1).astype(object) for part in (cells >> 32, cells & 0xFFFFFFFF))
    sums: np.ndarray = (high << 32) + low
    return sums


def _plain(value: Any) -> Any:
    """Convert tuples to lists, as in JSON."""
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
