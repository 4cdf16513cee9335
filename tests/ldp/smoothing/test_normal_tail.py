"""The normal distribution function in 32 bits against an exact one."""

from __future__ import annotations

import numpy as np
from scipy import special

from uldp_transforms.ldp.smoothing.variation import normal_tail


def test_the_normal_tail_is_good_to_three_in_100_000() -> None:
    """On both sides, as far as float32 goes; further out it stays positive, and below 1e-35."""
    x = np.linspace(-12, 12, 200_001, dtype=np.float32)
    found, exact = normal_tail(x), special.ndtr(x.astype(np.float64))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact, rtol=3e-5)
    far = normal_tail(np.array([-13.0, -40.0, -1e9, 40.0, 1e9], dtype=np.float32))
    assert (far[:3] > 0).all() and (far[:3] < 1e-35).all()
    assert (far[3:] == 1).all()
