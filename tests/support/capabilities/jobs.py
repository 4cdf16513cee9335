"""The programs of the table, by the titles of their columns, and what one job asks of them."""

from __future__ import annotations

from typing import Any, NamedTuple

ESTIMATE, STREAM, YAML, FOLLOW = "files", "stream", "Beam YAML", "`--follow`"
REESTIMATE, TOTAL, COMPARE = "`reestimate`", "`reestimate --window all`", "`compare`"
PROGRAMS = (ESTIMATE, STREAM, YAML, FOLLOW, REESTIMATE, TOTAL, COMPARE)

LATE, EARLY = "late", "early"
"""Ways in which reports arrive: half of them after the end of their window; all of them before it, in two parts."""


class Job(NamedTuple):
    """One job.

    Attributes:
        study: name of its collections and reports.
        options: names and values of fields of a specification, or of options.
        way: how reports arrive; empty: all before the end of their window.
        copies: whether each message arrives twice.
    """

    study: str
    options: tuple[tuple[str, Any], ...] = ()
    way: str = ""
    copies: bool = False

    @property
    def values(self) -> dict[str, Any]:
        """Value of each option by its name; lists where a specification has lists."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self.options}


def job(study: str, *, way: str = "", copies: bool = False, **options: Any) -> Job:
    """A job with these options."""
    return Job(study, tuple(options.items()), way, copies)
