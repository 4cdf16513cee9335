"""The specification of a job: collections, windows, and the treatment of late data, duplicates and release.

Every transform of a job derives its settings from the same ``JobSpec``. So transforms of one job cannot contradict each
other, and a contradictory specification cannot be built.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from typing_extensions import Unpack

from uldp_transforms.ldp.alphabets.dimensions import roll_up_of
from uldp_transforms.ldp.borrowing import need_of_borrowing
from uldp_transforms.ldp.checks import describe, require_int
from uldp_transforms.ldp.client_window import HOUR, ClientWindow
from uldp_transforms.ldp.collection import Collection, canonical_candidates
from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.discovery import can_discover, check_discovery
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators import ESTIMATORS, Estimator
from uldp_transforms.ldp.estimators.estimator import check_liars
from uldp_transforms.ldp.estimators.number_estimates import check_limits, check_quantiles
from uldp_transforms.ldp.share_sums import NamedSum, check_sums
from uldp_transforms.ldp.solvers.question import MAX_CANDIDATES, MAX_DENSE
from uldp_transforms.ldp.versions import VersionedQuestion, questions_of
from uldp_transforms.messages.catalog import CollectionCatalog, catalog_of
from uldp_transforms.messages.refusal_causes import allowed_share
from uldp_transforms.rows.samples.asked import Asked
from uldp_transforms.spec.plain_values import SpecValues, fields_of, read_values, values_of
from uldp_transforms.spec.spec_fields import (
    ALARM_EVERY,
    ALLOWED_LATENESS,
    BY_REPORTS,
    CORRECTED,
    ESTIMATOR,
    FINAL,
    LATE_EVERY,
    MIN_REPORTS,
    PARTS,
    SHOW,
    SPEC_FIELDS,
)
from uldp_transforms.spec.spec_rules import check_agreement, check_value, voice_of_library
from uldp_transforms.windows import (
    FUTURE_SKEW,
    LATENESS_SLACK,
    MAX_EVENT_TIME,
    MIN_EVENT_TIME,
    BasePeriods,
    TimeGate,
    Windows,
    duration_text,
)

MAX_OPEN_WINDOWS = 10_000
"""Maximum number of windows per collection that a stream may have open at once; each has its own state."""

_RELEASE_MARGIN = 60_000
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobSpec:
    """Specification of a job. ``JobSpec.of`` and ``JobSpec.from_json`` build one from plain values.

    ``SPEC_FIELDS`` gives the meaning and cost of each attribute, and the attributes that it needs or excludes.
    Durations are in milliseconds here.

    Attributes:
        collections: at least one, with different fingerprints.
        windows: of event time; None: one window for everything, only for bounded input.
        candidates: canonical values, as returned by ``JobSpec.of``; None: no list.
        by: names of the dimensions by which to count and estimate groups; None: only the total.
        limits, quantiles: of collections of numbers; None: no limits, and the quantiles 0.1, 0.5 and 0.9.
        sums: sums over chosen values, with different names; None: none.
        borrow: whether the shown shares of groups are drawn towards those of all reports.
        liars: largest share of false reports that intervals allow for; None: all reports are taken as honest.
        confidence: of all intervals; 0.95 means that at most 5 of 100 miss.
        early_every: milliseconds between early panes; None: no early panes.
        max_rejected_share: None: the default for the kind of input, see ``rejected_share``.
        bounded: whether the input is bounded; None: determined from the input, see ``for_input``.
        lateness_slack: None: determined from the engine, see ``for_input``.
        partial_before: milliseconds since 1970; None: this run receives all reports of all windows.

    Raises:
        SpecError: if a value is not allowed, or two values contradict each other.
    """

    collections: tuple[Collection, ...]
    windows: Windows | None = None
    allowed_lateness: int = ALLOWED_LATENESS
    early_every: int | None = None
    late_every: int = LATE_EVERY
    release: str = CORRECTED
    deduplicate: bool = False
    deduplicate_parts: int = PARTS
    deduplicate_by: str = BY_REPORTS
    bit_patterns: bool = False
    by: tuple[str, ...] | None = None
    smooth: bool = False
    alarm_every: int = ALARM_EVERY
    candidates: tuple[str, ...] | None = None
    limits: tuple[float, ...] | None = None
    quantiles: tuple[float, ...] | None = None
    sums: tuple[NamedSum, ...] | None = None
    discover: bool = False
    estimator: str = ESTIMATOR
    min_reports: int = MIN_REPORTS
    show: int = SHOW
    liars: float | None = None
    confidence: float = CONFIDENCE
    borrow: bool = False
    max_rejected_share: float | None = None
    bounded: bool | None = None
    future_skew: int = FUTURE_SKEW
    lateness_slack: int | None = None
    run: str | None = None
    partial_before: int | None = None

    def __post_init__(self) -> None:
        given = self.collections
        if not isinstance(given, tuple) or not all(isinstance(item, Collection) for item in given):
            raise SpecError(f"JobSpec.collections must be a tuple of Collection, got {describe(given)}")
        if self.windows is not None and not isinstance(self.windows, Windows):
            raise SpecError(f"JobSpec.windows must be Windows or None, got {describe(self.windows)}")
        for name in _CHECKED:
            check_value(SPEC_FIELDS[name], getattr(self, name))
        chosen = ESTIMATORS[self.estimator]()
        for collection in CollectionCatalog(self.collections):
            collection.check_estimator(chosen)
        for question in self.questions:
            question.check_estimator(chosen)
        if self.candidates is not None and self.candidates != _canonical(self.candidates):
            raise SpecError(
                "JobSpec.candidates must be a tuple of different texts in Unicode NFC, as JobSpec.of makes it, got "
                f"{describe(self.candidates)}"
            )
        self._check_by()
        self._check_figures()
        self._check_liars()
        self._check_borrow(chosen)
        self._check_discovery()
        self._check_run()
        self._check_agreement()
        if self.windows is not None:
            self.check_asked()

    def _check_by(self) -> None:
        """Refuse names that repeat, and a job without a collection that has all of them."""
        if self.by is None:
            return
        if len(set(self.by)) < len(self.by):
            raise SpecError(f"JobSpec.by must name each dimension once, got {', '.join(self.by)}")
        if not any(roll_up_of(collection.dimensions, self.by) for collection in self.collections):
            names = {one.name for collection in self.collections for one in collection.dimensions}
            known = ", ".join(sorted(names)) or "none has any"
            raise SpecError(
                f"JobSpec.by must name dimensions that a collection of the job has ({known}), got {', '.join(self.by)}"
            )

    def _check_figures(self) -> None:
        """Refuse limits, quantiles and sums that no collection of this job can have."""
        alphabets = [collection.alphabet for collection in self.collections]
        try:
            if self.limits is not None or self.quantiles is not None:
                check_limits(self.limits or (), alphabets)
                check_quantiles(self.quantiles or ())
            if self.sums is not None:
                check_sums(self.sums, alphabets, self.candidates)
        except SpecError as error:
            raise SpecError(f"JobSpec.{error}") from None

    def _check_liars(self) -> None:
        """Refuse a share of liars for collections whose estimates it does not bound."""
        if self.liars is None:
            return
        for collection in self.collections:
            check_liars("JobSpec.liars", collection, self.liars)

    def _check_borrow(self, estimator: Estimator) -> None:
        """Refuse borrowing for groups of a collection or an estimator that does not support it."""
        if not self.borrow or self.by is None:
            return
        together = [*((collection,) for collection in self.collections), *(one.pooled for one in self.questions)]
        for versions in together:
            for collection in versions if any(roll_up_of(one.dimensions, self.by) for one in versions) else ():
                if need := need_of_borrowing(collection, estimator):
                    raise SpecError(
                        f"JobSpec.borrow needs {need}, got collection {collection.id!r} and {estimator.id!r}"
                    )

    def _check_discovery(self) -> None:
        """Refuse discovery without a collection that supports it."""
        searched = [collection for collection in self.collections if self.discover and can_discover(collection)]
        for collection in searched:
            check_discovery(collection)
        if self.discover and not searched:
            ids = ", ".join(collection.alphabet.id for collection in self.collections)
            raise SpecError(f"JobSpec.discover needs a collection with the alphabet prefixes, got {ids}")

    def _check_run(self) -> None:
        """Refuse run names that cannot be sorted or used in file names, and times outside the range of windows."""
        if self.run is not None and not (isinstance(self.run, str) and _RUN.fullmatch(self.run)):
            raise SpecError(
                'JobSpec.run must be 1 to 64 letters, digits, ".", "_" or "-", a letter or digit first, or null, got '
                f"{describe(self.run)}"
            )
        if self.partial_before is not None:
            require_int("JobSpec.partial_before", self.partial_before, MIN_EVENT_TIME, MAX_EVENT_TIME - 1)

    def _check_agreement(self) -> None:
        """Refuse combinations of values that are allowed only separately."""
        check_agreement(self._given(), voice_of_library(self.bounded), self.bounded)
        if self.bounded is False and self.windows is not None and self.open_windows > MAX_OPEN_WINDOWS:
            step, window = self.windows.text(self.windows.step), self.windows.text(self.windows.size)
            lateness, skew = map(duration_text, (self.allowed_lateness, self.future_skew))
            raise SpecError(
                f"JobSpec.window must keep at most {MAX_OPEN_WINDOWS} windows open per collection, got "
                f"{self.open_windows} (one every {step}, with window {window}, allowed_lateness {lateness} "
                f"and future_skew {skew}); use a longer window or a shorter allowed_lateness"
            )
        if self.smooth:
            self.check_all_shown()

    def _given(self) -> dict[str, Any]:
        """Fields whose values differ from the defaults."""
        given = {name: getattr(self, name) for name in _DEFAULTS if getattr(self, name) != _DEFAULTS[name]}
        if self.windows is not None:
            given["window"] = self.windows
            if self.windows.overlap:
                given["slide"] = self.windows.slide
        return given

    # ------------------------------------------------------------------ plain values

    @classmethod
    def of(cls, **values: Unpack[SpecValues]) -> JobSpec:
        """Build a specification from plain values; ``SpecValues`` explains them.

        Raises:
            SpecError: if a value is missing, unknown or wrong.
            OSError: if a file cannot be read.
        """
        return cls(**fields_of(values))

    @classmethod
    def from_json(cls, source: str | os.PathLike[str] | Mapping[str, Any]) -> JobSpec:
        """Build a specification from a JSON file, a JSON object, or a JSON text, which begins with ``{``; see ``of``.

        Raises:
            SpecError, OSError: as ``of``; SpecError also for a file that is not JSON.
        """
        return cls(**fields_of(read_values(source)))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values from which ``from_json`` builds an equal specification."""
        return values_of(vars(self))

    # ------------------------------------------------------------------ derived values for transforms

    def for_input(self, bounded: bool, *, clock_is_watermark: bool = False) -> JobSpec:
        """The specification for bounded or unbounded input, with all open choices made.

        Bounded input has no late data and one row per window, so early panes and the release mode do not apply.

        Args:
            bounded: whether the input is bounded.
            clock_is_watermark: whether the engine uses its clock as the watermark, even for old messages.

        Raises:
            SpecError: if the specification contradicts this, or has no windows for unbounded input.
        """
        if self.bounded not in (None, bounded):
            kinds = {True: "bounded", False: "unbounded"}
            raise SpecError(f"JobSpec.bounded must agree with the input, which is {kinds[bounded]}, got {self.bounded}")
        slack = self.lateness_slack or (10 * 365 * 86_400_000 if clock_is_watermark else LATENESS_SLACK)
        stream_only = {name: _DEFAULTS[name] for name in _FOR_STREAMS} if bounded else {}
        return dataclasses.replace(self, bounded=bounded, lateness_slack=slack, **stream_only)

    @property
    def catalog(self) -> CollectionCatalog:
        """Catalog that finds collections by the fingerprint in a report."""
        return catalog_of(self.collections)

    @functools.cached_property
    def questions(self) -> tuple[VersionedQuestion, ...]:
        """The questions that collections name; each has pooled rows beside those of its collections."""
        return questions_of(self.collections)

    def models_of(self, fingerprint: bytes) -> tuple[Collection, ...]:
        """The collections whose reports are in the rows with this fingerprint: one, or the versions of a question."""
        for question in self.questions:
            if question.fingerprint == fingerprint:
                return question.pooled
        return (self.catalog[fingerprint],)

    @property
    def periods(self) -> BasePeriods | None:
        """The base periods in which reports are counted; None without windows."""
        return None if self.windows is None else self.windows.periods

    @property
    def gate(self) -> TimeGate | None:
        """Gate that checks event times against arrival times; None for bounded input, which has no arrival times."""
        if self.bounded or self.periods is None:
            return None
        return TimeGate(periods=self.periods, allowed_lateness=self.allowed_lateness, future_skew=self.future_skew)

    @property
    def open_windows(self) -> int:
        """Maximum number of windows per collection that a stream can have open, because the gate rejects reports of
        others.

        Reports that arrive at t are in windows that begin after t - allowed_lateness - size, and not after t +
        future_skew.
        """
        if self.windows is None:
            return 1
        return self.windows.most_open(self.allowed_lateness + self.future_skew)

    @property
    def rejected_share(self) -> float:
        """Share of rejected reports above which a stream fails, and a job over files exits with a different code."""
        return allowed_share(self.max_rejected_share, bounded=bool(self.bounded))

    @property
    def slack(self) -> int:
        """Milliseconds for which state is kept beyond the allowed lateness."""
        return self.lateness_slack or LATENESS_SLACK

    @property
    def margin(self) -> int:
        """Milliseconds by which a watermark may be ahead of work in flight; final results wait for this time."""
        return min(_RELEASE_MARGIN, self.slack // 2)

    @property
    def release_delay(self) -> int:
        """Milliseconds from the end of a window to its only row: the lateness, and a margin of at most a minute."""
        return self.allowed_lateness + self.margin

    @property
    def complete_after(self) -> int | None:
        """Milliseconds from the end of a window to the first row with all its reports; None: every row has all."""
        if self.bounded:
            return None
        return self.release_delay if self.release == FINAL else 0

    @property
    def anytime_scale(self) -> int | None:
        """Number of reports at the first look at a window that can have several rows; None: it has only one."""
        return None if self.bounded or self.release == FINAL else self.min_reports

    def asked(self) -> Asked:
        """What the job asks of each window."""
        return Asked(
            estimator=ESTIMATORS[self.estimator](),
            candidates=self.candidates,
            min_reports=self.min_reports,
            show=self.show,
            limits=self.limits,
            quantiles=self.quantiles,
            sums=self.sums or (),
            liars=self.liars,
            confidence=self.confidence,
            discover=self.discover,
            borrow=self.borrow,
            anytime_scale=self.anytime_scale,
        )

    def check_all_shown(self) -> None:
        """Refuse smoothing of rows without all values (raises SpecError): it would smooth only randomly large ones."""
        for collection in self.collections:
            alphabet = collection.alphabet
            number = len(alphabet.known_values or alphabet.estimated_values(self.candidates))
            if number > self.show:
                raise SpecError(
                    f"JobSpec.show must be at least {number}, all values of collection {collection.id!r}, where smooth "
                    f"is true, got {self.show}"
                )

    def check_asked(self) -> None:
        """Refuse windows that do not consist of whole client windows, and a single global window (raises SpecError).

        Clients round event times down to their own windows, so parts of other windows would be empty; and the number of
        reports per person in a global window is unknown.
        """
        for collection in self.collections:
            asked = collection.asked
            if asked is None or (self.windows is not None and self.windows.are_whole(asked)):
                continue
            zone = "" if asked.timezone is None else f" and timezone {asked.timezone}"
            raise SpecError(
                f"JobSpec.window must consist of whole client windows of collection {collection.id!r}, such "
                f"as window {collection.client_window}{zone}, got {_in_words(self.windows)}"
            )

    def rounding_warnings(self) -> list[str]:
        """One sentence for each collection without client windows, if windows do not consist of whole hours: its
        clients round event times down to the hour, so their reports count in other windows."""
        if self.windows is None or self.windows.are_whole(ClientWindow(HOUR)):
            return []
        return [
            f"collection {collection.id!r} names no client_window, so clients round event times down to the full hour "
            "(UTC) unless the app sets a finer unit; windows that do not consist of such hours "
            f"({_in_words(self.windows)}) then count reports of other times; add client_window to its next version, or "
            "use windows of whole hours"
            for collection in self.collections
            if collection.asked is None
        ]

    def check_candidates(self) -> None:
        """Refuse to estimate an open alphabet without candidates, or with too many; raises SpecError."""
        most = ESTIMATORS[self.estimator].max_candidates
        for collection in self.collections:
            alphabet = collection.alphabet
            if alphabet.known_values is not None:
                continue
            number = len(alphabet.estimated_values(self.candidates))
            least = 0 if self.discover and can_discover(collection) else 1
            if not least <= number <= most:
                limited = f" for estimator {self.estimator!r}" if most < MAX_CANDIDATES else ""
                raise SpecError(
                    f"collection {collection.id!r} has an open alphabet and needs {least} to {most} "
                    f"candidate values (--candidates) or public values{limited}, got {number}"
                )
            shared = np.count_nonzero(~alphabet.has_own_symbol(alphabet.clear_values))
            if shared > MAX_DENSE:
                raise SpecError(
                    f"collection {collection.id!r} must have at most {MAX_DENSE} public values that share "
                    f"clear buckets, got {shared}"
                )


_DEFAULTS: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(JobSpec)}
_CHECKED = [name for name in SPEC_FIELDS if name in _DEFAULTS]
_FOR_STREAMS = ["release", *(name for name, field in SPEC_FIELDS.items() if field.files == "refuse")]


def _in_words(windows: Windows | None) -> str:
    """Describe windows by the fields of the specification."""
    if windows is None:
        return "none"
    lengths = {"window": windows.size, "slide": windows.slide, "window_offset": windows.offset}
    parts = [f"{name} {windows.text(length)}" for name, length in lengths.items() if length]
    zone = windows.to_json()["timezone"]
    return ", ".join([*parts, *([f"timezone {zone}"] if zone else [])])


def _canonical(candidates: object) -> tuple[str, ...] | None:
    """Candidates as returned by ``JobSpec.of``; None if they are not valid candidates."""
    try:
        return canonical_candidates(candidates) if isinstance(candidates, tuple) else None
    except SpecError:
        return None
