"""The largest effect of one false report on an estimate."""

from __future__ import annotations

import dataclasses

from uldp_transforms.ldp.mechanisms import Mechanism


@dataclasses.dataclass(frozen=True, kw_only=True)
class Amplification:
    """Largest increase of n times the estimate of one symbol by one arbitrary report; an honest one adds 1 on average.

    A share b of fake reports raises the estimate of a frequency f by at most b (amplification - f). The noise that
    protects honest people also hides false reports, so a small epsilon means a large amplification.

    Attributes:
        sensitive: (1 - miss) / delta, for sensitive symbols.
        clear: 1 / kappa, for non-sensitive symbols; None if all symbols are sensitive.

    Source: Cao, Jia and Gong 2021 (maximal gain attack), for this library's inversion.
    """

    sensitive: float
    clear: float | None


def amplification(mechanism: Mechanism) -> Amplification:
    """The largest effect of one false report on the estimate of a symbol, for each kind of symbol."""
    k, v = mechanism.num_symbols, mechanism.num_sensitive
    moved = mechanism.largest_effects[[0, v - 1, k - 1]]
    return Amplification(sensitive=float(moved[:2].max()), clear=float(moved[2]) if v < k else None)
