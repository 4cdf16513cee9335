"""The forms in which rows are written to a directory: JSON lines, Avro, Parquet."""

from __future__ import annotations

from typing import NamedTuple

from uldp_transforms.files import stores
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.spec.row_forecast import MANY_AT_ONCE

FORMS: dict[str, tuple[str, ...]] = {
    "estimates": ("jsonl", "avro"),
    "rejected": ("avro",),
    "ledger": ("jsonl",),
    "health": ("jsonl",),
    "counts": ("avro",),
    "discovered": ("jsonl",),
    "values": (),
}
"""Kind of rows -> its forms besides Parquet; ``values`` is one row for each entry of an estimate."""

_NOT_IN_PARQUET = ("counts",)

_OPTIONS = {"counts.avro": "--write_counts", "estimates.jsonl": "--write_json", "estimates.parquet": "--write_parquet"}
"""Files that a job may leave out, and the options that write them."""


class RowForms(NamedTuple):
    """The forms of a job.

    Attributes:
        json: whether estimates are written as JSON lines.
        parquet: whether there are Parquet files.
        counts: whether counts are written.
    """

    json: bool = True
    parquet: bool = False
    counts: bool = False

    @classmethod
    def of(cls, json: bool | None, parquet: bool | None, *, counts: bool = False, entries: int = 0) -> RowForms:
        """The forms that the options ``--write_json`` and ``--write_parquet`` ask for; None: not given.

        Without options: JSON lines, but Parquet instead if windows have many entries, whose JSON is ten times as large.

        Args:
            json, parquet, counts: the options.
            entries: expected number of entries of each of several windows; 0 if the forms must not depend on it.
        """
        json = entries < MANY_AT_ONCE if json is None else json
        return cls(json, not json if parquet is None else parquet, counts)

    def of_kind(self, kind: str) -> tuple[str, ...]:
        """The forms in which a kind of rows is written."""
        if kind == "counts" and not self.counts:
            return ()
        own = tuple(form for form in FORMS[kind] if self.json or (kind, form) != ("estimates", "jsonl"))
        return (*own, "parquet") if self.parquet and kind not in _NOT_IN_PARQUET else own

    @property
    def notice(self) -> str | None:
        """What a user should know of forms that are missing by default; None: none are."""
        if self.json:
            return None
        other = "Avro and Parquet" if self.parquet else "Avro"
        return f"estimates are written as {other}; JSON lines, which are about ten times as large, need --write_json"

    def check_earlier(self, directory: str) -> None:
        """Refuse files of an earlier job over files that this one would not replace; raises SpecError."""
        for name, option in _OPTIONS.items():
            kind, _, form = name.partition(".")
            if form not in self.of_kind(kind) and stores.exists(stores.joined(directory, name)):
                raise SpecError(
                    f"--output has {name} of an earlier job, which would not belong to the new estimates: give "
                    f"{option} or another directory, got {directory!r}"
                )
