"""AOUE with the noise that the report prints, against whole reports: its omega is that of a single value.

A report of AOUE has a bit for each value, and the bits of several values together distinguish two states better than
the bit of any one of them. ``aoue`` therefore takes the omega of the worst set of values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from labs.experiments.frame import Verdict

KEEP = 0.5
"""Probability that the own bit is 1."""

COUNTEREXAMPLES: tuple[tuple[tuple[tuple[float, ...], ...], float], ...] = (
    (((0.4, 0.4, 0.1, 0.1), (0.1, 0.1, 0.4, 0.4)), 0.5),
    (((0.2, 0.2, 0.2, 0.2, 0.2), (0.5, 0.5, 0.0, 0.0, 0.0)), 1.0),
)
"""Priors, and an epsilon that the printed noise exceeds."""


def noise(priors: Sequence[Sequence[float]], epsilon: float, *, printed: bool) -> float:
    """q, the probability that another bit is 1: for the omega of one value (printed), or of the worst set of values."""
    table = np.array(priors)
    excess = np.maximum(table[:, np.newaxis] - math.exp(epsilon) * table, 0)
    omega = float((excess.max(axis=-1) if printed else excess.sum(axis=-1)).max())
    return omega / (math.expm1(epsilon) + 2 * omega)


def largest_log_ratio(priors: Sequence[Sequence[float]], q: float) -> float:
    """Largest log ratio of the probabilities of a report under two states, over all bit vectors.

    Args:
        priors: Pr(value | state), one row per state, of at most 16 values.
        q: probability that a bit of another value is 1, in (0, 1).
    """
    table = np.array(priors)
    ones = np.array(list(itertools.product((0, 1), repeat=table.shape[1])))  # (2**K, K)
    other = np.where(ones, q, 1 - q)
    of_value = other.prod(axis=1, keepdims=True) / other * np.where(ones, KEEP, 1 - KEEP)
    of_state = of_value @ table.T
    return float(np.log(of_state.max(axis=1) / of_state.min(axis=1)).max())


def rows_of_counterexamples() -> list[dict[str, Any]]:
    """For each counterexample, a row with the printed noise and one with that of ``aoue``."""
    return [
        {"priors": f"counterexample {number}", "states": len(priors), "values": len(priors[0]), "epsilon": epsilon}
        | {"mechanism": name, "noise": (q := noise(priors, epsilon, printed=printed))}
        | {"largest_log_ratio": largest_log_ratio(priors, q)}
        for number, (priors, epsilon) in enumerate(COUNTEREXAMPLES, 1)
        for name, printed in (("AOUE as printed", True), ("AOUE here", False))
    ]


def printed_noise_suffices(rows: list[dict[str, Any]]) -> Verdict:
    """Largest log ratios of the counterexamples."""
    found = [row for row in rows if "largest_log_ratio" in row]
    printed = [row for row in found if row["mechanism"] == "AOUE as printed"]
    return Verdict(
        claim="The printed noise of AOUE, whose omega is that of one value, keeps whole reports below e**epsilon.",
        holds=all(row["largest_log_ratio"] <= row["epsilon"] + 1e-12 for row in printed),
        evidence="Enumeration of all reports: "
        + "; ".join(
            f"{row['mechanism']}, q {row['noise']:.4f}: log ratio {row['largest_log_ratio']:.3f} at epsilon "
            f"{row['epsilon']:g}"
            for row in found
        )
        + ".",
    )
