"""The former name of ``uldp_transforms_planner.planning.canaries``."""

from __future__ import annotations

from uldp_transforms.lazy_names import moved_names

__getattr__ = moved_names(__name__, "uldp_transforms_planner.planning.canaries")
