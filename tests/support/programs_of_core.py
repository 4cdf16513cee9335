"""The parsers of the programs of this package."""

from __future__ import annotations

from uldp_transforms.jobs import cli, uldp


def parsers() -> dict[str, cli.Parser]:
    """The parsers by the names of the programs; those of companions follow their own users."""
    own = [name for name in uldp.PROGRAMS if name not in uldp.COMPANIONS]
    return {name: cli.parser_of(uldp.main_of(name)) for name in own}
