"""The specification of a job: what is counted, in which windows, and how late data, copies and release are treated.

Every transform of a job takes the same ``JobSpec`` and derives from it what it needs. Two transforms of one job cannot
contradict each other, and a specification that contradicts itself cannot be built.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from typing_extensions import Unpack

from uldp_transforms.beam.runtime.panes import Withholding
from uldp_transforms.beam.spec.plain_values import SpecValues, fields_of, read_values, values_of
from uldp_transforms.beam.spec.spec_fields import (
    ALARM_EVERY,
    ALLOWED_LATENESS,
    CORRECTED,
    ESTIMATOR,
    FINAL,
    LATE_EVERY,
    MIN_REPORTS,
    PARTS,
    SHOW,
    SPEC_FIELDS,
)
from uldp_transforms.beam.spec.spec_rules import check_agreement, check_value, voice_of_library
from uldp_transforms.ldp.checks import describe, require_int
from uldp_transforms.ldp.collection import Collection, canonical_candidates
from uldp_transforms.ldp.discovery import can_discover, check_discovery
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.solvers.question import MAX_CANDIDATES, MAX_DENSE
from uldp_transforms.messages.catalog import CollectionCatalog, catalog_of
from uldp_transforms.messages.refusal_causes import allowed_share
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
"""Windows of one collection that a stream may have open at once; each is state of its own."""

_RELEASE_MARGIN = 60_000
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobSpec:
    """What a job does. ``JobSpec.of`` and ``JobSpec.from_json`` build one from plain values.

    ``SPEC_FIELDS`` says what each attribute means and costs, and which others it needs or excludes. Durations are
    milliseconds here.

    Attributes:
        collections: at least one, all different.
        windows: of event time; None: one window for everything, only for bounded input.
        candidates: canonical values, as ``JobSpec.of`` makes them; None: no list.
        early_every: None: no early panes.
        max_rejected_share: None: as the input needs, see ``rejected_share``.
        bounded: None: as the input says, see ``for_input``.
        lateness_slack: None: as the engine needs, see ``for_input``.
        partial_before: milliseconds since 1970; None: all reports of all windows come to this run.

    Raises:
        SpecError: for a value that is not allowed, or two that contradict each other.
    """

    collections: tuple[Collection, ...]
    windows: Windows | None = None
    allowed_lateness: int = ALLOWED_LATENESS
    early_every: int | None = None
    late_every: int = LATE_EVERY
    release: str = CORRECTED
    deduplicate: bool = False
    deduplicate_parts: int = PARTS
    bit_patterns: bool = False
    smooth: bool = False
    alarm_every: int = ALARM_EVERY
    candidates: tuple[str, ...] | None = None
    discover: bool = False
    estimator: str = ESTIMATOR
    min_reports: int = MIN_REPORTS
    show: int = SHOW
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
        if self.candidates is not None and self.candidates != _canonical(self.candidates):
            raise SpecError(
                "JobSpec.candidates must be a tuple of different texts in Unicode NFC, as JobSpec.of makes it, got "
                f"{describe(self.candidates)}"
            )
        self._check_discovery()
        self._check_run()
        self._check_agreement()
        if self.windows is not None:
            self.check_asked()

    def _check_discovery(self) -> None:
        """Refuse to search where nothing can be found."""
        searched = [collection for collection in self.collections if self.discover and can_discover(collection)]
        for collection in searched:
            check_discovery(collection)
        if self.discover and not searched:
            ids = ", ".join(collection.alphabet.id for collection in self.collections)
            raise SpecError(f"JobSpec.discover must be false without a collection of alphabet prefixes, got {ids}")

    def _check_run(self) -> None:
        """Refuse names that readers could not sort or files not have, and times that no window has."""
        if self.run is not None and not (isinstance(self.run, str) and _RUN.fullmatch(self.run)):
            raise SpecError(
                'JobSpec.run must be 1 to 64 letters, digits, ".", "_" or "-", a letter or digit first, or null, got '
                f"{describe(self.run)}"
            )
        if self.partial_before is not None:
            require_int("JobSpec.partial_before", self.partial_before, MIN_EVENT_TIME, MAX_EVENT_TIME - 1)

    def _check_agreement(self) -> None:
        """Refuse values that are allowed alone, but not together."""
        check_agreement(self._given(), voice_of_library(self.bounded), self.bounded)
        if self.bounded is False and self.windows is not None and self.open_windows > MAX_OPEN_WINDOWS:
            step, window = self.windows.text(self.windows.step), self.windows.text(self.windows.size)
            lateness, skew = map(duration_text, (self.allowed_lateness, self.future_skew))
            raise SpecError(
                f"JobSpec.window must be so long, or allowed_lateness so short, that a stream has at most "
                f"{MAX_OPEN_WINDOWS} windows of a collection open, got {self.open_windows}: one every {step}, for a "
                f"window of {window}, a lateness of {lateness} and a future_skew of {skew}"
            )
        if self.smooth:
            self.check_all_shown()

    def _given(self) -> dict[str, Any]:
        """The fields that say something: all that are not as by default."""
        given = {name: getattr(self, name) for name in _DEFAULTS if getattr(self, name) != _DEFAULTS[name]}
        if self.windows is not None:
            given["window"] = self.windows
            if self.windows.overlap:
                given["slide"] = self.windows.slide
        return given

    # ------------------------------------------------------------------ plain values

    @classmethod
    def of(cls, **values: Unpack[SpecValues]) -> JobSpec:
        """The specification that plain values describe; ``SpecValues`` explains them.

        Raises:
            SpecError: for a missing, unknown or wrong value.
            OSError: for a file that cannot be read.
        """
        return cls(**fields_of(values))

    @classmethod
    def from_json(cls, source: str | os.PathLike[str] | Mapping[str, Any]) -> JobSpec:
        """``of`` the values in a JSON file, in the object that such a file holds, or in a text that begins with ``{``.

        Raises:
            SpecError, OSError: as ``of``; SpecError also for a file that is not JSON.
        """
        return cls.of(**read_values(source))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values from which ``from_json`` makes an equal specification."""
        return values_of(vars(self))

    # ------------------------------------------------------------------ what transforms derive

    def for_input(self, bounded: bool, *, clock_is_watermark: bool = False) -> JobSpec:
        """This specification for an input that ends or does not; nothing is left open in it.

        In bounded input nothing is late and each window has one row, so early panes and the release do not apply.

        Args:
            bounded: whether the input ends.
            clock_is_watermark: whether the engine takes its clock for the watermark, however old messages are.

        Raises:
            SpecError: if the specification says otherwise, or has no windows for unbounded input.
        """
        if self.bounded not in (None, bounded):
            kinds = {True: "bounded", False: "unbounded"}
            raise SpecError(f"JobSpec.bounded must be that of the input, which is {kinds[bounded]}, got {self.bounded}")
        slack = self.lateness_slack or (10 * 365 * 86_400_000 if clock_is_watermark else LATENESS_SLACK)
        stream_only = {name: _DEFAULTS[name] for name in _FOR_STREAMS} if bounded else {}
        return dataclasses.replace(self, bounded=bounded, lateness_slack=slack, **stream_only)

    @property
    def catalog(self) -> CollectionCatalog:
        """The collections, found by what reports carry."""
        return catalog_of(self.collections)

    @property
    def periods(self) -> BasePeriods | None:
        """The base periods in which reports are counted; None without windows."""
        return None if self.windows is None else self.windows.periods

    @property
    def gate(self) -> TimeGate | None:
        """Judges event times by arrival times; None for bounded input, which has no arrival times."""
        if self.bounded or self.periods is None:
            return None
        return TimeGate(periods=self.periods, allowed_lateness=self.allowed_lateness, future_skew=self.future_skew)

    @property
    def open_windows(self) -> int:
        """How many windows of a collection a stream can have open at most, for the gate refuses what is in others.

        What arrives at t is in windows that begin after t - allowed_lateness - size, and not after t + future_skew.
        """
        if self.windows is None:
            return 1
        return self.windows.most_open(self.allowed_lateness + self.future_skew)

    @property
    def rejected_share(self) -> float:
        """Share of refused reports above which a stream fails, and a job over files ends with another exit code."""
        return allowed_share(self.max_rejected_share, bounded=bool(self.bounded))

    @property
    def slack(self) -> int:
        """Milliseconds for which state is kept beyond the allowed lateness."""
        return self.lateness_slack or LATENESS_SLACK

    @property
    def margin(self) -> int:
        """Milliseconds for which a watermark may run ahead of work in flight, before something is said for good."""
        return min(_RELEASE_MARGIN, self.slack // 2)

    @property
    def release_delay(self) -> int:
        """Milliseconds from the end of a window to its one row: the lateness, and a margin of at most a minute."""
        return self.allowed_lateness + self.margin

    @property
    def complete_after(self) -> int | None:
        """Milliseconds from the end of a window to the first row that has all its reports; None: every row has."""
        if self.bounded:
            return None
        return self.release_delay if self.release == FINAL else 0

    @property
    def withholding(self) -> Withholding:
        """Which windows must not have numbers."""
        return Withholding(self.min_reports, self.complete_after, self.partial_before)

    @property
    def anytime_scale(self) -> int | None:
        """Reports at the first look at a window, if it can have several rows; None: it has one."""
        return None if self.bounded or self.release == FINAL else self.min_reports

    def check_all_shown(self) -> None:
        """Refuse rows without some values (raises SpecError): what is large by chance alone would be smoothed."""
        asked = set(self.candidates or ())
        for collection in self.collections:
            alphabet = collection.alphabet
            number = len(alphabet.known_values or asked.union(alphabet.clear_values))
            if number > self.show:
                raise SpecError(
                    f"JobSpec.show must be at least {number}, all values of collection {collection.id!r}, where smooth "
                    f"is true, got {self.show}"
                )

    def check_asked(self) -> None:
        """Refuse windows that are not made of whole windows of the clients (raises SpecError), or one for everything.

        Clients round event times down to their own windows, so that parts of these are empty; and how often a person
        can be in one window for everything is not known.
        """
        for collection in self.collections:
            asked = collection.asked
            if asked is None or (self.windows is not None and self.windows.are_whole(asked)):
                continue
            zone = "" if asked.timezone is None else f" and timezone {asked.timezone}"
            raise SpecError(
                f"JobSpec.window must be made of whole windows of the clients of collection {collection.id!r}, such as "
                f"window {collection.client_window}{zone}, got {_in_words(self.windows)}"
            )

    def check_candidates(self) -> None:
        """Refuse to estimate an open alphabet without candidates, or with too many; raises SpecError."""
        asked, most = set(self.candidates or ()), ESTIMATORS[self.estimator].max_candidates
        for collection in self.collections:
            alphabet = collection.alphabet
            if alphabet.known_values is not None:
                continue
            number = len(asked) + sum(value not in asked for value in alphabet.clear_values)
            least = 0 if self.discover and can_discover(collection) else 1
            if not least <= number <= most:
                limited = f" for estimator {self.estimator!r}" if most < MAX_CANDIDATES else ""
                raise SpecError(
                    f"collection {collection.id!r} has an open alphabet and needs {least} to {most} candidate "
                    f"values (--candidates) or public ones{limited}, got {number}"
                )
            shared = np.count_nonzero(~alphabet.has_own_symbol(alphabet.clear_values))
            if shared > MAX_DENSE:
                raise SpecError(
                    f"collection {collection.id!r} can be estimated if at most {MAX_DENSE} public values share clear "
                    f"buckets, got {shared}"
                )


_DEFAULTS: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(JobSpec)}
_CHECKED = [name for name in SPEC_FIELDS if name in _DEFAULTS]
_FOR_STREAMS = ["release", *(name for name, field in SPEC_FIELDS.items() if field.files == "refuse")]


def _in_words(windows: Windows | None) -> str:
    """Windows by the values that describe them."""
    if windows is None:
        return "none"
    lengths = {"window": windows.size, "slide": windows.slide, "window_offset": windows.offset}
    parts = [f"{name} {windows.text(length)}" for name, length in lengths.items() if length]
    zone = windows.to_json()["timezone"]
    return ", ".join([*parts, *([f"timezone {zone}"] if zone else [])])


def _canonical(candidates: object) -> tuple[str, ...] | None:
    """Candidates as ``JobSpec.of`` makes them; None for what can be none."""
    try:
        return canonical_candidates(candidates) if isinstance(candidates, tuple) else None
    except SpecError:
        return None
