"""The former name of ``uldp_transforms_planner.utility``, and of a module of ``ldp.liars``."""

from __future__ import annotations

from uldp_transforms.lazy_names import moved_names

_LIARS = "uldp_transforms.ldp.liars.false_reports"

__getattr__ = moved_names(
    __name__, "uldp_transforms_planner.utility", dict.fromkeys(("Lies", "honest_bounds", "need_of_liars"), _LIARS)
)
