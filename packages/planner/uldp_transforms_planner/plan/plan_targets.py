"""Targets of a plan: their options, the smallest epsilon that meets one, and the verdict."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from uldp_transforms.jobs import cli
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.mechanism import MAX_EPSILON
from uldp_transforms_planner.utility.arguments import require_signal

TARGETS: cli.Options = {
    "--target_l1": {cli.IS_COMMON: True, "help": "target for the sum of absolute errors over all values"},
    "--target_l2": {"help": "target for the sum of squared errors over all values"},
    "--target_half_width": {
        cli.IS_COMMON: True,
        "help": "target for the half width of the interval of a sensitive value; with --collection: of the mean, "
        "in its unit",
    },
}


def targets_of(args: argparse.Namespace) -> dict[str, float]:
    """Name without dashes -> target of a command line; at most one."""
    values = {name.removeprefix("--"): getattr(args, name.removeprefix("--")) for name in TARGETS}
    return {name: value for name, value in values.items() if value is not None}


def epsilon_of(args: argparse.Namespace, least: Callable[[], float | None]) -> float:
    """The epsilon of a command line; if it has a target instead, the smallest that meets it.

    Args:
        args: the command line.
        least: returns the smallest epsilon that meets the target; None if none does.

    Raises:
        SpecError: if neither epsilon nor a target is given, epsilon is too small, or no epsilon meets the target.
    """
    if args.epsilon is not None:
        require_signal("--epsilon", args.epsilon)
        return float(args.epsilon)
    targets = targets_of(args)
    if not targets:
        raise SpecError(f"--epsilon or a target is required ({', '.join(TARGETS)}), got neither")
    epsilon = least()
    if epsilon is None:
        ((name, target),) = targets.items()
        raise SpecError(
            f"--{name} must be met by an epsilon of at most {MAX_EPSILON:g} with these reports, got {target:g}; allow "
            "a larger error, or give --epsilon to see the reports that each mechanism needs"
        )
    return epsilon


def verdict(
    name: str,
    value: float,
    is_met: bool,
    *,
    is_least: bool,
    epsilon: float | None,
    reports: int | None,
    which: str = "",
    whose: str = "",
) -> str:
    """Say whether the recommended collection meets a target, and if not, what would.

    Args:
        name: of the target, with its value.
        value: expected error of the recommended collection.
        is_met: whether it meets the target.
        is_least: whether its epsilon was computed as the smallest that meets the target.
        epsilon, reports: smallest epsilon, and number of reports, with which it meets the target; None: none does.
        which: which epsilon this is, such as `` of level 1``.
        whose: which reports these are, such as `` of the smallest group``.
    """
    if is_met:
        how = f" Epsilon {epsilon:g} is the smallest that meets it." if is_least else ""
        return f"Target {name} met: {value:.3g}.{how}"
    needs = [] if epsilon is None else [f"epsilon {epsilon:.3f}{which}"]
    needs += [] if reports is None else [f"{reports:,} reports{whose}"]
    needed = f"it needs {', or '.join(needs)}" if needs else "no epsilon and no number of reports meet it"
    return f"Target {name} missed: {value:.3g}; {needed}."
