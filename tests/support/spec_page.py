"""The table of arguments in ``docs/estimate-reports.md``, made from the fields of a specification."""

from __future__ import annotations

from pathlib import PurePath

from uldp_transforms.jobs.spec_options import conditions, default_words
from uldp_transforms.spec.spec_fields import SPEC_FIELDS, Kind, SpecField

PATH = "docs/estimate-reports.md"
HEADER = ["argument", "default", "meaning"]


def rows() -> list[list[str]]:
    """One row a field."""
    return [[f"`{field.name}`", _default(field), _meaning(field)] for field in SPEC_FIELDS.values()]


def _default(field: SpecField) -> str:
    literal = field.default is not None and field.kind is not Kind.COUNT
    return f"`{field.default!r}`".replace("'", '"') if literal else default_words(field)


def _meaning(field: SpecField) -> str:
    parts = ["streams: " * field.streams_only + field.full_help, *conditions(field)]
    page, _, _ = field.page.partition("#")
    link = f" ([{PurePath(page).stem}]({field.page}))" if page else ""
    return "; ".join(parts) + link
