"""A collection: the configuration that clients and collector share, with its JSON form and fingerprint."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence, Set, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uldp_transforms.ldp.alphabets import ALPHABETS
from uldp_transforms.ldp.alphabets.dimensions import (
    Dimension,
    RollUp,
    check_dimensions,
    dimensions_json,
    dimensions_of,
    encode_groups,
    num_groups,
)
from uldp_transforms.ldp.alphabets.noun import ANSWER, Noun, noun_of
from uldp_transforms.ldp.checks import (
    describe,
    parse_json,
    require_id,
    require_int,
    require_keys,
    require_mapping,
    require_texts,
)
from uldp_transforms.ldp.client_window import HOUR, ClientWindow
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.ldp.mechanisms.public_blocks.within_blocks import mechanism_for
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.reports import ID_BYTES, ReportBatch
from uldp_transforms.ldp.sampling import WordSource, is_reproducible, uniform_integers, word_source

if TYPE_CHECKING:
    from uldp_transforms.ldp.estimators import Estimate, Estimator

WIRE_VERSION = 1
"""Version of the interpretation of report bytes; part of every fingerprint."""

PREFIX_BYTES = 8
"""Number of fingerprint bytes in a report."""

MAX_CANDIDATE_BYTES = 4096
"""Maximum length of a candidate in UTF-8 bytes, because every row of an estimate contains the candidates."""

_NOT_MEANT = ("question", "noun")
"""Fields that change no report, on which fingerprints do not depend."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Collection(Model):
    """One survey question: the possible values, how clients perturb them, and the public randomness.

    Examples:
        >>> from uldp_transforms.ldp import Collection
        >>> fields = {
        ...     "id": "diagnoses",
        ...     "version": 1,
        ...     "alphabet": {"id": "closed", "values": ["flu", "cold"]},
        ...     "mechanism": {"id": "krr", "epsilon": 2.0},
        ... }
        >>> collection = Collection.from_json(fields)
        >>> counts = collection.count(collection.perturb(["flu"] * 1000))
        >>> estimate = collection.estimate(counts, "projected")
        >>> bool(estimate.frequencies[0] > 0.5)
        True

    Attributes:
        id, alphabet, mechanism, num_cohorts: see ``Model``.
        version: increases with every change; the fingerprint distinguishes old from new reports.
        client_window: window in which a client answers at most once, such as ``"1d"``. None: clients decide.
        client_timezone: time zone of these windows, such as ``"Europe/Berlin"``. None: windows are multiples of a
            length of time since 1970-01-01T00:00:00Z.
        question: name that all versions of a question share, so that the collector also pools them. Clients do not
            know it, and the fingerprint does not depend on it. None: the collection is estimated by itself.
        dimensions: public facts that each report states in the clear, and by which counts can be split.
        noun: what texts for readers call what is counted. As with ``question``, neither clients nor the fingerprint
            depend on it.
    """

    version: int
    client_window: str | None = None
    client_timezone: str | None = None
    question: str | None = None
    dimensions: tuple[Dimension, ...] = ()
    noun: Noun = ANSWER

    def __post_init__(self) -> None:
        super().__post_init__()
        require_int("Collection.version", self.version, 1, (1 << 31) - 1)
        if self.question is not None:
            require_id("Collection.question", self.question)
        if self.client_window is None and self.client_timezone is not None:
            raise SpecError(
                f"Collection.client_timezone must be absent without client_window, got {describe(self.client_timezone)}"
            )
        if self.client_window is not None:
            ClientWindow.of(self.client_window, self.client_timezone)  # refuses what no window can be
        check_dimensions(self.dimensions, self.num_cohorts)
        self.alphabet.check_dimensions(self.dimensions)

    @classmethod
    def from_json(cls, source: str | os.PathLike[str] | Mapping[str, Any]) -> Collection:
        """Read a collection from a JSON file or from the object that such a file holds.

        Raises:
            SpecError: if anything is missing, unknown, repeated or out of range.
            OSError: if the file cannot be read.
        """
        spec: Any = source
        if isinstance(source, (str, os.PathLike)):
            try:
                text = Path(source).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                raise SpecError(f"{source} must be a UTF-8 text file, got other bytes") from None
            spec = parse_json(text, str(source))
        require_mapping("Collection", spec)
        needed = ("id", "version", "alphabet", "mechanism")
        optional = ("num_cohorts", "client_window", "client_timezone", "question")
        require_keys("Collection", spec, needed, (*needed, *optional, "dimensions", "noun"))
        alphabet = ALPHABETS.build(spec["alphabet"])
        mechanism = mechanism_for(
            alphabet.block_sizes,
            spec["mechanism"],
            MECHANISMS.build,
            num_symbols=alphabet.num_symbols,
            num_sensitive=alphabet.num_sensitive,
            num_hashes=alphabet.num_hashes,
            num_others=alphabet.num_others,
            symbols_of=alphabet.protected_symbols,
        )
        rest = {key: spec[key] for key in ("id", "version", *optional) if key in spec}
        dimensions, noun = dimensions_of(spec.get("dimensions")), noun_of(spec.get("noun"))
        return cls(alphabet=alphabet, mechanism=mechanism, dimensions=dimensions, noun=noun, **rest)

    def to_json(self) -> dict[str, Any]:
        """The JSON object from which ``from_json`` makes an equal collection."""
        names = ("client_window", "client_timezone", "question")
        given = {name: getattr(self, name) for name in names}
        grouped = {"dimensions": dimensions_json(self.dimensions)} if self.dimensions else {}
        called = {"noun": dataclasses.asdict(self.noun)} if self.noun != ANSWER else {}
        return (
            {
                "id": self.id,
                "version": self.version,
                "alphabet": self.alphabet.to_json(),
                "mechanism": self.mechanism.to_json(),
                "num_cohorts": self.num_cohorts,
            }
            | {name: text for name, text in given.items() if text is not None}
            | grouped
            | called
        )

    def __hash__(self) -> int:
        return hash(self.fingerprint)  # the values may be many

    @functools.cached_property
    def asked(self) -> ClientWindow | None:
        """The windows in which clients answer at most once; None if the collection names none."""
        return None if self.client_window is None else ClientWindow.of(self.client_window, self.client_timezone)

    @property
    def canonical(self) -> str:
        """Everything that determines the meaning of a report, as canonical JSON.

        It has sorted keys and no spaces, integers and texts only (real numbers as the shortest decimal text), and
        holds the JSON form without question and noun, the exact integer weights of the client, and the wire version.
        """
        content = self.to_json() | {"alphabet": self.alphabet.meaning()}
        for name in _NOT_MEANT:
            content.pop(name, None)
        content["mechanism"] |= self.mechanism.exact_weights
        content["wire_version"] = WIRE_VERSION
        return json.dumps(_without_floats(content), sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @functools.cached_property
    def fingerprint(self) -> bytes:
        """32 bytes that differ between any two collections whose reports mean different things: SHA-256 of
        ``canonical`` in UTF-8.
        """
        return hashlib.sha256(self.canonical.encode("utf-8")).digest()

    def perturb(
        self,
        values: Sequence[Any] | np.ndarray,
        rng: np.random.Generator | WordSource | None = None,
        event_times: Sequence[int] | np.ndarray | None = None,
        dimensions: Mapping[str, Sequence[str]] | None = None,
    ) -> ReportBatch:
        """Draw one report per value, on the client.

        Args:
            values: n texts; for the alphabet ``ordered`` numbers, or its texts. A list, an array, or a column of
                pandas, polars or Arrow.
            rng: source of randomness (default: the operating system's secure source, the only one that protects real
                people). A numpy Generator makes reproducible reports for simulations. With any
                source but the default the batch is marked ``seeded``.
            event_times: (n,) milliseconds since 1970 UTC, which reports carry unchanged (default: now, rounded down to
                the start of the client window, or to the hour if the collection has no client window).
            dimensions: for each dimension of the collection n texts, which reports carry in the clear; a text that is
                not listed becomes ``other``. None: the collection has no dimensions.

        Raises:
            SpecError: if the values are no list or column, one is not in a closed alphabet, the lengths differ, or a
                dimension has no texts. The message does not show values.
            TypeError: if a value is missing (None, NaN) or not text; the message says in which row.
        """
        if isinstance(values, (str, bytes)):
            raise SpecError(f"values must be a list of texts, got a single {type(values).__name__}")
        if isinstance(values, (Set, Mapping)) or not isinstance(values, Sized) or getattr(values, "ndim", 1) != 1:
            raise SpecError(f"values must be a list of texts, one per report, got {type(values).__name__}")
        if hasattr(values, "to_pylist"):  # a column of Arrow, whose items are no texts
            values = values.to_pylist()
        source = word_source(rng)
        n = len(values)
        if event_times is None:
            event_times = np.full(n, (self.asked or ClientWindow(HOUR)).start_of(time.time_ns() // 1_000_000))
        event_times = np.array(event_times)
        if event_times.shape != (n,) or not (n == 0 or np.issubdtype(event_times.dtype, np.integer)):
            raise SpecError(
                f"event_times must be {n} integers (milliseconds since 1970 UTC), got {event_times.dtype} "
                f"{event_times.shape}"
            )
        groups = encode_groups(self.dimensions, dimensions, n)
        cohorts = uniform_integers(source.words(n), self.num_cohorts).astype(np.uint16)
        symbols = self.alphabet.encode(values, cohorts, self.num_cohorts)
        return ReportBatch(
            fingerprint=self.fingerprint,
            cohorts=self.with_groups(cohorts, groups),
            payloads=self.mechanism.perturb(symbols, source),
            event_times=event_times.astype(np.int64),
            report_ids=source.words(n, ID_BYTES // 8).view(np.uint8).reshape(n, ID_BYTES),
            seeded=is_reproducible(source),
        )

    @property
    def num_groups(self) -> int:
        """Number of combinations of the dimensions' values, with ``other``; 1 without dimensions."""
        return num_groups(self.dimensions)

    def num_groups_by(self, names: Sequence[str]) -> int:
        """Number of groups by some of the dimensions, with ``other``; 1 without names."""
        return num_groups([one for one in self.dimensions if one.name in names])

    @property
    def num_strata(self) -> int:
        """Groups times cohorts: the cohort numbers in reports are below it."""
        return self.num_groups * self.num_cohorts

    def with_groups(self, cohorts: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """The cohort numbers (n,) uint16 that reports carry, from cohorts (n,) and groups (n,) int64."""
        stated: np.ndarray = (groups * self.num_cohorts + cohorts).astype(np.uint16)
        return stated

    def groups_of(self, cohorts: np.ndarray) -> np.ndarray:
        """The groups (n,) int64 of the cohort numbers (n,) that reports carry."""
        groups: np.ndarray = cohorts.astype(np.int64)
        return groups if self.num_cohorts == 1 else groups // self.num_cohorts  # division is slow

    def without_groups(self, cohorts: np.ndarray) -> np.ndarray:
        """The cohorts (n,) of the alphabet, from the numbers (n,) that reports carry."""
        if not self.dimensions:
            return cohorts
        return np.zeros_like(cohorts) if self.num_cohorts == 1 else cohorts % self.num_cohorts

    def count_by(self, batch: ReportBatch, names: Sequence[str]) -> dict[tuple[str, ...], CohortCounts]:
        """Count the reports of each group, on the collector; the counts of all groups add up to ``count(batch)``.

        Examples:
            >>> from uldp_transforms.ldp import Collection
            >>> fields = Collection.from_json("C.json").to_json() | {
            ...     "dimensions": [{"name": "arm", "values": ["control", "new"]}]
            ... }
            >>> collection = Collection.from_json(fields)
            >>> arms = {"arm": ["new", "control", "new"]}
            >>> batch = collection.perturb(["flu"] * 3, dimensions=arms)
            >>> {
            ...     group: counts.total
            ...     for group, counts in collection.count_by(batch, ["arm"]).items()
            ... }
            {('control',): 1, ('new',): 2}

        Args:
            batch: n reports.
            names: names of the dimensions by which to split.

        Returns:
            The values of the named dimensions -> counts, for each group that has reports.

        Raises:
            SpecError: for an unknown name, or as ``count``.
        """
        roll_up = RollUp(self.dimensions, tuple(names))
        self.check_batch(batch)
        numbers = roll_up.table()[self.groups_of(batch.cohorts)]
        present, index = np.unique(numbers, return_inverse=True)
        rows = index * self.num_cohorts + self.without_groups(batch.cohorts)
        found = self.count_few(batch.payloads, rows, len(present))
        return {roll_up.values(number): counts for number, counts in zip(present.tolist(), found)}

    def count(self, batch: ReportBatch, bit_patterns: bool = False) -> CohortCounts:
        """Count reports, on the collector: ``count(a ++ b) == count(a) + count(b)``.

        Args:
            batch: n reports.
            bit_patterns: also count patterns of bits within reports, for two further sentinels; this takes time.

        Raises:
            SpecError: if the batch was made for another collection.
            ValueError: if it holds a report that no client can send.
        """
        self.check_batch(batch)
        counts = self.count_groups(batch.payloads, self.without_groups(batch.cohorts), 1, bit_patterns)[0]
        return counts if batch.times == 1 else counts.times(batch.times)

    def check_batch(self, batch: ReportBatch) -> None:
        """Refuse a batch of another collection, or with reports that no client sends; raises SpecError."""
        if batch.fingerprint != self.fingerprint:
            raise SpecError(
                f"collection {self.id!r} version {self.version} has the fingerprint {self.fingerprint.hex()[:16]}..., "
                f"got reports for {batch.fingerprint.hex()[:16]}..."
            )
        width = self.mechanism.payload_size
        if batch.payloads.shape[1] != width or batch.cohorts.max(initial=0) >= self.num_strata:
            raise SpecError(
                f"collection {self.id!r} needs payloads of {width} bytes and cohorts below "
                f"{self.num_strata}, got payloads of {batch.payloads.shape[1]} bytes and cohorts up to "
                f"{max(batch.cohorts, default=0)}"
            )
        invalid = len(batch) - np.count_nonzero(self.mechanism.is_valid(batch.payloads))
        if invalid:
            raise SpecError(f"collection {self.id!r} counts only valid payloads, got {invalid} invalid payload(s)")

    def estimate(
        self, counts: CohortCounts, estimator: str = "empirical", candidates: Sequence[str] | None = None
    ) -> Estimate:
        """Estimate the distribution of the values with its uncertainty, from counts.

        Args:
            counts: of this collection's reports.
            estimator: id, see ``ESTIMATORS``. The default of jobs is ``eb``, that of this method the unbiased linear
                estimate, ``empirical``.
            candidates: values to estimate; in an open alphabet, in addition to its public list, without which they are
                needed. None: all values of a closed one.

        Raises:
            SpecError: for an unknown estimator, candidates that cannot be, or counts of another shape.
            EstimationError: if the counts do not suffice.
        """
        self._check_shape(counts)
        chosen = _estimator(estimator)
        self.check_estimator(chosen)
        found = chosen.estimate(self, counts, None if candidates is None else canonical_candidates(candidates))
        return dataclasses.replace(found, noun=self.noun)

    def estimate_by(
        self,
        batch: ReportBatch,
        names: Sequence[str],
        estimator: str = "empirical",
        candidates: Sequence[str] | None = None,
    ) -> dict[tuple[str, ...], Estimate]:
        """Estimate each group of people that has reports; each estimate has its ``group`` and the number of groups.

        Args:
            batch: n reports.
            names: names of the dimensions by which to split, as for ``count_by``.
            estimator, candidates: as for ``estimate``.

        Raises:
            SpecError, EstimationError: as ``count_by`` and ``estimate``.
        """
        return {
            values: dataclasses.replace(
                self.estimate(counts, estimator, candidates),
                group=dict(zip(names, values)),
                num_groups=self.num_groups_by(names),
            )
            for values, counts in self.count_by(batch, names).items()
        }

    def estimate_reports(
        self, batch: ReportBatch, estimator: str = "em", candidates: Sequence[str] | None = None
    ) -> Estimate:
        """Estimate from reports in memory, for ``em`` with mechanisms whose counts do not determine the likelihood.

        Raises:
            SpecError, EstimationError: as ``count`` and ``estimate``.
        """
        chosen = _estimator(estimator)
        self.check_estimator(chosen, reports=True)
        asked = None if candidates is None else canonical_candidates(candidates)
        counts = self.count(batch)
        of_alphabet = dataclasses.replace(batch, cohorts=self.without_groups(batch.cohorts))
        return dataclasses.replace(chosen.estimate_reports(self, counts, of_alphabet, asked), noun=self.noun)

    def _check_shape(self, counts: CohortCounts) -> None:
        if counts.shape != (self.num_cohorts, self.num_cells):
            raise SpecError(
                f"collection {self.id!r} needs counts of shape {(self.num_cohorts, self.num_cells)}, got {counts.shape}"
            )

    def check_counts(self, counts: CohortCounts) -> None:
        """Refuse counts that no reports of this collection make, honest or not; see ``Mechanism.count_violations``.

        Raises:
            SpecError: naming the rule and the first cohort that violates it; or if the shape is wrong.
        """
        self._check_shape(counts)
        for rule, impossible in self.mechanism.count_violations(counts):
            if impossible.any():
                raise SpecError(
                    f"counts of collection {self.id!r} must have {rule}, got a violation in cohort "
                    f"{int(np.argmax(impossible))}"
                )

    def check_estimator(self, estimator: Estimator, *, reports: bool = False) -> None:
        """Refuse an estimator that cannot be used with this collection's counts (or reports); raises SpecError."""
        why = estimator.refusal(self, reports=reports)
        if why is not None:
            raise SpecError(f"estimator {estimator.id!r} does not support collection {self.id!r}: {why}")


def canonical_candidates(candidates: Sequence[str]) -> tuple[str, ...]:
    """Candidates in canonical form, each once.

    Raises:
        SpecError: if one is not text, comes twice, has white space around it, or more than ``MAX_CANDIDATE_BYTES``.
    """
    whole = isinstance(candidates, (str, bytes)) or not isinstance(candidates, Iterable)
    listed = candidates if whole else tuple(candidates)
    require_texts("candidates", listed, at_least=1)
    result = tuple(map(canonical, listed))
    for position, value in enumerate(result):
        if value != value.strip():
            raise SpecError(
                f"candidates must not begin or end with white space, got such a value at position {position}"
            )
        size = len(value.encode("utf-8"))
        if size > MAX_CANDIDATE_BYTES:
            raise SpecError(
                f"candidates must be at most {MAX_CANDIDATE_BYTES} bytes of UTF-8 each, got {size} at position "
                f"{position}"
            )
    require_texts("candidates", result, at_least=1)
    return result


def _without_floats(value: Any) -> Any:
    """Numbers with a fraction as text, so that all JSON writers agree on the bytes."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return {key: _without_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_floats(item) for item in value]
    return value


def _estimator(name: str) -> Estimator:
    """The estimator with this id; raises SpecError if there is none."""
    from uldp_transforms.ldp.estimators import ESTIMATORS  # noqa: PLC0415  # clients and gateways estimate nothing

    return ESTIMATORS[name]()
