"""The parsers of the programs of this package."""

from __future__ import annotations

import importlib

from uldp_transforms.jobs import cli, uldp

BESIDE = {"gateway", "survey", "regress", "navigations", "demo", "live", "dev-queue", "completion"}
"""Programs that have packages of their own, or none in this one: their options follow their own users."""


def parsers() -> dict[str, cli.Parser]:
    """The parsers by the names of the programs."""
    names = [name for name in uldp.PROGRAMS if name not in BESIDE | set(uldp.LABORATORY)]
    modules = {name: importlib.import_module(f"uldp_transforms.jobs.{name.replace('-', '_')}") for name in names}
    return {name: cli.parser_of(module.main) for name, module in modules.items()}
