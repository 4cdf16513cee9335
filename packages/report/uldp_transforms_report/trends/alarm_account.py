"""What was examined for changes and what not yet, so that a page without alarms does not promise more than it knows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from uldp_transforms.ldp.smoothing import LEAST_HISTORY
from uldp_transforms.rows.figures.alarm_history import RULE
from uldp_transforms.rows.row_types import CHANGE


@dataclasses.dataclass(frozen=True, kw_only=True)
class Watched:
    """The windows of a collection that are shown, as its finding ``change`` judges them.

    Attributes:
        shown: number of windows.
        compared: number of windows with the finding.
        judged: number of windows in which some value could be judged.
        fired: number of windows in which something changed.
        latest: the latest finding's sentence, if it says that not all was judged; otherwise empty.
    """

    shown: int = 0
    compared: int = 0
    judged: int = 0
    fired: int = 0
    latest: str = ""

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], starts: Sequence[str | None]) -> Watched:
        """What was watched, from the rows of health of everybody, in order of time, and the shown windows' starts.

        Rows of older versions do not say how many values were judged: their first windows count as not judged.
        """
        changes = [(row["window_start"], one) for row in rows for one in row["findings"] if one["name"] == CHANGE]
        judged = [
            one["fired"] or (at >= LEAST_HISTORY if one.get("judged") is None else one["judged"] > 0)
            for at, (_, one) in enumerate(changes)
        ]
        places = [at for at, (start, _) in enumerate(changes) if start in set(starts)]
        latest = changes[places[-1]][1]["sentence"] if places else ""
        return cls(
            shown=len(starts),
            compared=len(places),
            judged=sum(judged[at] for at in places),
            fired=sum(changes[at][1]["fired"] for at in places),
            latest=latest if RULE in latest else "",
        )

    def __bool__(self) -> bool:
        return self.compared > 0

    def summary(self, changed: int, groups: int) -> str:
        """One sentence: what changed in the windows shown, or in how many of them nothing did.

        Args:
            changed: number of values of the table that changed.
            groups: number of groups in which something changed.
        """
        others = f", except in {groups:,} group{'' if groups == 1 else 's'}" if groups else ""
        if changed:
            return f"At least {changed:,} value{'' if changed == 1 else 's'} changed in the windows shown."
        if self.fired:
            return f"Something changed in {self.fired:,} of the {self.shown:,} windows shown; see “Changes and alarms”."
        if not self.judged:
            return f"{(self.latest or f'Changes are not judged yet: {RULE}.').removesuffix('.')}{others}."
        if self.judged == self.shown:
            return f"No change was found in the {self.shown:,} windows shown{others}."
        return (
            f"No change was found in {self.judged:,} of the {self.shown:,} windows shown{others}; "
            f"the others were not judged, because {RULE}."
        )

    @property
    def account(self) -> str:
        """One sentence: how many windows were judged, and what of the latest one was not."""
        if not self:
            return "Shares were not watched for changes: the job ran without --smooth, or has too few windows."
        few = {0: "No window was", 1: "One window was"}
        others = f"; {self.compared - self.judged:,} could not be, because {RULE}"
        said = few.get(self.judged, f"{self.judged:,} windows were") + " also judged against earlier ones"
        if self.latest:
            return f"{said}. {self.latest}"
        return said + others * (self.judged < self.compared) + "."
