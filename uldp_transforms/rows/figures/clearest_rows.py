"""The order in which rows of comparisons are shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uldp_transforms.ldp.comparisons.compare import clearest_first

_NAMES = ("p_value", "difference", "low", "high")
_OPEN_ENDS = {"low": -math.inf, "high": math.inf}


def clearest_rows(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Places of rows by ``clearest_first``; an open end is None."""
    columns = ([_OPEN_ENDS.get(name) if row[name] is None else row[name] for row in rows] for name in _NAMES)
    order: list[int] = clearest_first(*(np.array(column, dtype=np.float64) for column in columns)).tolist()
    return order
