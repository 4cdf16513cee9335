"""A sample: the counts of one window that are estimated once, and whose they are; and their row, for storage."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from uldp_transforms.ldp.alphabets.dimensions import RollUp
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.versions import VersionedQuestion
from uldp_transforms.messages.group_keys import owner_of_group
from uldp_transforms.rows.row_identity import fields_of_group, name_of, reports_of_a_person
from uldp_transforms.rows.row_types import WindowCounts


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Owner:
    """Whose counts these are: a collection or a question, and everybody or one group.

    Attributes:
        named: the collection or question whose name is in the rows.
        group: (name, value) of each dimension of the people; empty: everybody.
    """

    named: Collection | VersionedQuestion
    group: Sequence[tuple[str, str]] = ()

    @property
    def question(self) -> VersionedQuestion | None:
        """The question; None for a collection."""
        return self.named if isinstance(self.named, VersionedQuestion) else None

    @property
    def versions(self) -> tuple[Collection, ...]:
        """The collections whose reports count, the newest last: one, or the pooled versions of a question."""
        return self.named.pooled if isinstance(self.named, VersionedQuestion) else (self.named,)

    @functools.cached_property
    def num_groups(self) -> int:
        """Number of groups by the dimensions of this one."""
        names = tuple(name for name, _ in self.group)
        if isinstance(self.named, VersionedQuestion):
            return max(1, len(self.named.groups_by(names)))
        return self.named.num_groups_by(names)

    @functools.cached_property
    def key(self) -> bytes:
        """Key of its counts and of what is kept of its windows: the fingerprint, and for a group also its number."""
        if not self.group:
            return self.named.fingerprint
        names, values = zip(*self.group)
        if isinstance(self.named, VersionedQuestion):
            return owner_of_group(self.named.fingerprint, self.named.groups_by(names)[values])
        return owner_of_group(self.named.fingerprint, RollUp(self.named.dimensions, names).number(values))

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that identify the group in a row."""
        return fields_of_group(self.group, has_groups=any(one.dimensions for one in self.versions))


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """The counts of an owner in one window and pane.

    Attributes:
        owner: whose counts these are.
        place: the fields of a row that identify window, pane and run.
        counts: of all reports so far, by the fingerprint of a version; versions without reports may be missing.
        partial: whether some reports of the window are elsewhere, so that numbers are withheld.
        simulated: whether some reports are; None: not known.
        window: what a total and its groups have in common; None: start and end of their window.
    """

    owner: Owner
    place: dict[str, Any]
    counts: Mapping[bytes, CohortCounts]
    partial: bool = False
    simulated: bool | None = None
    window: object = None

    @functools.cached_property
    def total(self) -> int:
        """Number of reports of all versions."""
        return sum(self.counts[one.fingerprint].total for one in self.present)

    @property
    def present(self) -> list[Collection]:
        """The versions that have counts."""
        return [one for one in self.owner.versions if one.fingerprint in self.counts]

    @functools.cached_property
    def times(self) -> dict[bytes, int | None]:
        """By fingerprint, the maximum number of reports per person; None: not known."""
        return {one.fingerprint: reports_of_a_person(one, self.place) for one in self.owner.versions}

    @property
    def together(self) -> tuple[object, ...]:
        """What a total and its groups have in common: the name, and their window."""
        window = self.window or (self.place["window_start"], self.place["window_end"])
        return self.owner.named.fingerprint, window

    def reason_to_withhold(self, min_reports: int) -> str | None:
        """Status of a row whose numbers are withheld; None if they are not."""
        return reason_to_withhold(self.total, min_reports, self.partial)


def reason_to_withhold(num_reports: int, min_reports: int, partial: bool) -> str | None:
    """Status of a window whose numbers are withheld: partial, or with too few reports; None if they are not."""
    if partial:
        return "partial"
    return "suppressed" if num_reports < min_reports else None


def counts_of_window(owner: Owner, counts: CohortCounts, place: dict[str, Any], *, complete: bool) -> WindowCounts:
    """The row of a collection, or of one of its groups, in one window and pane, which the fields ``place`` identify."""
    return WindowCounts(
        **name_of(owner.named),
        **place,
        complete=complete,
        num_reports=counts.num_reports.tolist(),
        cells=counts.cells.ravel().tolist(),
        **owner.fields,
    )
