"""How a page calls groups: by their values alone, below the names of their dimensions."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping

_NAME = re.compile(r"(?:^|,)([a-z][a-z0-9_]*)=")
_WHOLE = "group"


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupLabels:
    """The labels of the groups of one collection.

    Attributes:
        head: names of their dimensions, such as ``country, arm``; ``group`` if labels are whole groups.
        labels: group -> its label, such as ``DE, new`` of ``country=DE,arm=new``.
    """

    head: str
    labels: Mapping[str, str]

    def head_of(self, side: str) -> str:
        """The head of one of two columns of groups, such as ``a (country, arm)``."""
        return side if self.head == _WHOLE else f"{side} ({self.head})"

    @classmethod
    def of(cls, groups: Iterable[str]) -> GroupLabels:
        """Groups are labelled with their values if each value tells its dimension, else with their whole text."""
        parts = {group: _NAME.split(group) for group in groups}
        names = {tuple(part[1::2]) for part in parts.values()}
        labels = {group: ", ".join(part[2::2]) for group, part in parts.items()}
        columns = [set(column) for column in zip(*(part[2::2] for part in parts.values()))]
        is_clear = (
            len(names) == 1
            and () not in names
            and len(set(labels.values())) == len(labels)
            and sum(map(len, columns)) == len(set().union(*columns))
        )
        if not is_clear:
            return cls(head=_WHOLE, labels={group: group for group in parts})
        return cls(head=", ".join(*names), labels=labels)
