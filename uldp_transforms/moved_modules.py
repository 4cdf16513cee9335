"""Former names of modules that have moved; they can be imported for one release.

A running stream may have pickled the name of a module of the core: steps pickle functions by their names, and state
pickles classes by theirs. Names of a module that is now in a companion are found with a DeprecationWarning.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from uldp_transforms.lazy_names import moved_name

_OF = "uldp_transforms"
_LIARS = f"{_OF}.ldp.false_reports"

MOVED = {
    f"{_OF}.beam.runtime.row_coders": f"{_OF}.beam.runtime.coders",
    f"{_OF}.ldp.counts.grouped_counts": f"{_OF}.ldp.counts.sparse_table",
    f"{_OF}.ldp.smoothing.change": f"{_OF}.ldp.smoothing.alarm",
    f"{_OF}.ldp.smoothing.kalman_filter": f"{_OF}.ldp.smoothing.drift_fit",
    f"{_OF}.ldp.utility.poisoning": _LIARS,
    f"{_OF}.rows.window_counts": f"{_OF}.rows.samples.sample",
}
"""Former name -> name."""

COMPANIONS = {
    f"{_OF}.jobs.files.event_times": f"{_OF}_tables.event_times",
    f"{_OF}.jobs.files.tables": f"{_OF}_tables.tables",
    f"{_OF}.jobs.files.values_file": f"{_OF}_tables.values_file",
    f"{_OF}.jobs.report": f"{_OF}_report",
    f"{_OF}.jobs.report.follow": f"{_OF}_report.follow",
    f"{_OF}.jobs.report.gathering": f"{_OF}_report.gathering",
    f"{_OF}.jobs.simulate": f"{_OF}_tables.simulate",
    f"{_OF}.ldp.clear_numbers": f"{_OF}_survey.clear_numbers",
    f"{_OF}.ldp.conformance": f"{_OF}_conformance",
    f"{_OF}.ldp.planning": f"{_OF}_planner.planning",
    f"{_OF}.ldp.planning.canaries": f"{_OF}_planner.planning.canaries",
    f"{_OF}.ldp.regression": f"{_OF}_survey.regression",
    f"{_OF}.ldp.utility": f"{_OF}_planner.utility",
}
"""Former name -> the module of a companion that has its names; release 0.7.0 removes them."""

ELSEWHERE = {f"{_OF}.ldp.utility": dict.fromkeys(("Lies", "honest_bounds", "need_of_liars"), _LIARS)}
"""Former name -> names that another module has, and that module."""


class FormerNames(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules by their former names: the very module that has the name of today, or one that gives its names."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in MOVED:
            return importlib.util.spec_from_loader(fullname, self)
        return importlib.util.spec_from_loader(fullname, self, is_package=True) if fullname in COMPANIONS else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        if spec.name not in MOVED:
            return None
        module = importlib.import_module(MOVED[spec.name])
        self._specs[spec.name] = module.__spec__  # Python gives it the other one now
        return module

    def exec_module(self, module: ModuleType) -> None:
        former = module.__spec__.name if module.__spec__ else ""
        if former in COMPANIONS:
            vars(module)["__getattr__"] = moved_names(former, COMPANIONS[former], ELSEWHERE.get(former))
        else:
            module.__spec__ = self._specs.pop(former, module.__spec__)


def moved_names(former: str, home: str, elsewhere: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """The function ``__getattr__`` of a module that has moved into a companion.

    Args:
        former: name of the module.
        home: the module that has its names, with the package of the companion.
        elsewhere: names that another module has, and that module.

    Returns:
        A function from a name to what it stands for, with a DeprecationWarning. It raises ImportError if the companion
        is not installed.
    """
    homes = elsewhere or {}

    def attribute(name: str) -> Any:
        if name.startswith("__"):  # for which Python asks
            raise AttributeError(f"module {former!r} has no attribute {name!r}")
        return moved_name(former, homes.get(name, home), name)

    return attribute


def install() -> None:
    """Let Python find modules by their former names."""
    if not any(isinstance(finder, FormerNames) for finder in sys.meta_path):
        sys.meta_path.insert(0, FormerNames())
