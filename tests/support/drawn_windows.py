"""Windows of any size, slide and offset, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.support.refusals.jobs.specification import (
    YEAR,
)
from uldp_transforms import Windows
from uldp_transforms.windows import (
    MAX_PERIODS,
)

windows = st.builds(
    lambda base, size, slide, offset: Windows(
        size=base * size,
        slide=None if slide is None else base * (1 + slide % size),
        offset=offset % (base * (size if slide is None else 1 + slide % size)),
    ),
    st.integers(1, YEAR // MAX_PERIODS),
    st.integers(1, MAX_PERIODS),
    st.none() | st.integers(0, MAX_PERIODS),
    st.integers(0, YEAR),
)
