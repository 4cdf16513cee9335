"""The largest effect of one false report on an estimate."""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.ldp.mechanisms import Mechanism


@dataclasses.dataclass(frozen=True, kw_only=True)
class Amplification:
    """Largest increase of n times the estimate of one symbol by one arbitrary report; an honest one adds 1 on average.

    A share b of fake reports raises the estimate of a frequency f by at most b (amplification - f). The noise that
    protects honest people also hides false reports, so a small epsilon means a large amplification.

    Attributes:
        sensitive: (1 - miss) / delta, for sensitive symbols; of the symbol with the largest effect, if they differ.
        clear: 1 / kappa, for non-sensitive symbols; None if all symbols are sensitive.

    Source: Cao, Jia and Gong 2021 (maximal gain attack), for this library's inversion.
    """

    sensitive: float
    clear: float | None


def amplification(mechanism: Mechanism) -> Amplification:
    """The largest effect of one false report on the estimate of any symbol of a kind."""
    sensitive, clear = np.split(mechanism.largest_effects, [mechanism.num_sensitive])
    return Amplification(sensitive=float(sensitive.max()), clear=float(clear.max()) if len(clear) else None)
