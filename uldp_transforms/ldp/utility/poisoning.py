"""How far one lie can move an estimate."""

from __future__ import annotations

import dataclasses

from uldp_transforms.ldp.mechanisms import Mechanism


@dataclasses.dataclass(frozen=True, kw_only=True)
class Amplification:
    """By how much one report, chosen at will, raises n times the estimate of one symbol; an honest one adds 1.

    A share b of fake reports raises the estimate of a frequency f by b (amplification - f) at most. The noise that
    protects honest people protects liars too, so small epsilon means large numbers.

    Attributes:
        sensitive: (1 - miss) / delta, for a sensitive symbol.
        clear: 1 / kappa, for a non-sensitive symbol; None if all symbols are sensitive.

    Source: Cao, Jia and Gong 2021 (maximal gain attack), for this library's inversion.
    """

    sensitive: float
    clear: float | None


def amplification(mechanism: Mechanism) -> Amplification:
    """What one lie can do to the estimate of one symbol, by symbols of each kind."""
    k, v = mechanism.num_symbols, mechanism.num_sensitive
    moved = mechanism.largest_effects[[0, v - 1, k - 1]]
    return Amplification(sensitive=float(moved[:2].max()), clear=float(moved[2]) if v < k else None)
