"""Text files of values, one per line."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from uldp_transforms.files.text_files import read_lines
from uldp_transforms.ldp.collection import MAX_CANDIDATE_BYTES
from uldp_transforms.ldp.solvers.question import MAX_CANDIDATES
from uldp_transforms_tables.cell_texts import as_listed


def value_lines(path: str, held: Collection[str]) -> list[str]:
    """The distinct values in a file, in Unicode NFC; a whole number is written as among the values ``held``.

    Raises:
        SpecError, OSError: as ``read_lines`` does.
    """
    known = set(held)
    lines = read_lines(path, most=MAX_CANDIDATES, longest=MAX_CANDIDATE_BYTES, repeats=True)
    listed = as_listed(lines, lambda texts: np.array([text not in known for text in texts], dtype=bool))
    return list(dict.fromkeys(listed))
