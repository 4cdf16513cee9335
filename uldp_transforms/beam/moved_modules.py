"""Former names of modules and functions that have moved, because a running stream may have pickled them.

They can be imported for one release. Steps pickle functions by their names, and state pickles classes by theirs.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_OF = "uldp_transforms"

MOVED = {
    f"{_OF}.beam.accounts": f"{_OF}.beam.transforms",
    f"{_OF}.beam.accounts.ledger": f"{_OF}.beam.transforms.ledger",
    f"{_OF}.beam.accounts.rejected_share": f"{_OF}.collector.rejected_share",
    f"{_OF}.beam.accounts.transit": f"{_OF}.beam.transforms.transit",
    f"{_OF}.beam.spec": f"{_OF}.spec",
    f"{_OF}.beam.spec.inputs": f"{_OF}.beam.runtime.inputs",
    f"{_OF}.beam.spec.job_spec": f"{_OF}.spec.job_spec",
    f"{_OF}.beam.spec.plain_values": f"{_OF}.spec.plain_values",
    f"{_OF}.beam.spec.spec_fields": f"{_OF}.spec.spec_fields",
    f"{_OF}.beam.spec.spec_rules": f"{_OF}.spec.spec_rules",
    f"{_OF}.beam.transforms.known_ids": f"{_OF}.collector.known_ids",
    f"{_OF}.beam.transforms.known_reports": f"{_OF}.collector.known_reports",
    f"{_OF}.beam.transforms.period_counts": f"{_OF}.collector.period_counts",
    f"{_OF}.ldp.utility.poisoning": f"{_OF}.ldp.liars.false_reports",
}
"""Former name -> name."""

RENAMED = {
    f"{_OF}.beam.accounts.ledger": {
        "_entry": f"{_OF}.collector.ledger_entries.entry_of",
        "_ledger_row": f"{_OF}.collector.ledger_entries.ledger_row",
    },
    f"{_OF}.beam.accounts.transit": {"handed_on": f"{_OF}.collector.ledger_entries.handed_on"},
}
"""Former name of a module -> former names in it of functions that went elsewhere than the module, and their names."""


class FormerNames(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules by their former names: the very module that has the name of today, with its former functions."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return importlib.util.spec_from_loader(fullname, self) if fullname in MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(MOVED[spec.name])
        self._specs[spec.name] = module.__spec__  # Python gives it the other one now
        for former, name in RENAMED.get(spec.name, {}).items():
            home, _, function = name.rpartition(".")
            setattr(module, former, getattr(importlib.import_module(home), function))
        return module

    def exec_module(self, module: ModuleType) -> None:
        former = module.__spec__.name if module.__spec__ else ""
        module.__spec__ = self._specs.pop(former, module.__spec__)


def install() -> None:
    """Let Python find modules by their former names."""
    if not any(isinstance(finder, FormerNames) for finder in sys.meta_path):
        sys.meta_path.insert(0, FormerNames())  # a folder that was divided has some of its former modules
