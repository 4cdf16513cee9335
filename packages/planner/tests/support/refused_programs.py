"""Refusals of ``uldp plan``, ``evaluate`` and ``tokens``: calls and their sentences."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable
from typing import Any

from packages.planner.tests.support import planned_groups, planned_structure
from tests.support.commands import last_of_each
from tests.support.refusals.tables import Refusal
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.ldp.registry import Registry
from uldp_transforms_planner.evaluate import evaluate_command as evaluate
from uldp_transforms_planner.plan import plan_command as plan
from uldp_transforms_planner.plan import tokens

FILES = {
    "two.txt": "a\nbb\n",
    "empty.txt": "",
    "blank.txt": "\n",
    "good.csv": "value,event_time\n0,1000000001\n",
    "stranger.csv": "value\n0\n9\n",
    "no-rows.csv": "value\n",
    "none.csv": "value\nnone\nerror\n",
    "numbers.json": json.dumps(
        {"id": "numbers", "version": 1, "alphabet": {"id": "ordered", "low": 0, "high": 9, "others": ["none", "error"]}}
        | {"mechanism": {"id": "sw", "epsilon": 1}}
    ),
    "closed.json": json.dumps(
        {"id": "closed", "version": 1, "alphabet": {"id": "closed", "values": ["a", "b"]}}
        | {"mechanism": {"id": "krr", "epsilon": 1}}
    ),
}
"""What the calls read, in the folder in which they run."""


def run(configure: Callable[[list[str]], Any], argv: str) -> Callable[[], Any]:
    """Reads a command line, in which the last value of an option counts."""
    return lambda: configure(last_of_each(shlex.split(argv)))


class BrokenTable(Registry[Any]):
    """A registry to which a package adds what cannot be imported."""

    def __contains__(self, name: object) -> bool:
        raise SpecError("mechanism 'x' of the package broken cannot be added: none")


REFUSED: list[Refusal] = [
    (
        argparse.ArgumentTypeError,
        lambda: evaluate._ids("krr", BrokenTable("mechanism", ())),
        "mechanism 'x' of the package broken cannot be added: none",
    ),
    # evaluate
    *(
        (run(evaluate.configure, f"--values {options}"), sentence)
        for options, sentence in (
            (
                "good.csv --estimators x",
                f"--estimators must be ids from {', '.join(sorted(ESTIMATORS))}, got 'x'",
            ),
            ("good.csv --seed -1", "--seed must be a non-negative whole number, got '-1'"),
            ("good.csv --mechanisms x", f"--mechanisms must be ids from {', '.join(sorted(MECHANISMS))}, got 'x'"),
            ("good.csv --max_cohorts 4", "--max_cohorts can be given only with --open, got 4"),
            ("good.csv --epsilons x", "--epsilons must be comma-separated numbers, got 'x'"),
            ("good.csv", "good.csv must have at least 2 different values, got 1"),
            (
                "stranger.csv --sensitive two.txt",
                "two.txt must list at least one value that occurs in --values, got none",
            ),
            (
                "stranger.csv --open --candidates two.txt",
                "two.txt must list at least one value that occurs in --values, got none",
            ),
            (
                "stranger.csv --mechanisms up",
                "--mechanisms must name at least one mechanism that can be tried, got up: it reserves its "
                "last value for missing answers",
            ),
        )
    ),
    (
        argparse.ArgumentTypeError,
        lambda: evaluate._mechanisms("krr,x"),
        f"must be ids from {', '.join(sorted(MECHANISMS))}, got 'krr,x'",
    ),
    # evaluate, of numbers
    *(
        (run(evaluate.configure, f"--values {options}"), sentence)
        for options, sentence in (
            (
                "stranger.csv --collection numbers.json --open",
                "--open can be given only without --collection, got True",
            ),
            (
                "stranger.csv --collection numbers.json --estimators em",
                "--estimators can be given only without --collection, got em",
            ),
            ("stranger.csv --collection closed.json", "--collection must have the alphabet ordered, got closed"),
            (
                "stranger.csv --collection numbers.json --mechanisms sw,urr",
                "--mechanisms must only name sw, krr, rappor, ss, hr with --collection, got urr",
            ),
            ("stranger.csv --candidates x", "--candidates can be given only with --open, got x"),
            ("none.csv --collection numbers.json", "--values must have a number, got 2 texts that stand for none"),
        )
    ),
    # plan
    *(
        (run(plan.configure, f"--epsilon 1 --reports 9 {options}"), sentence)
        for options, sentence in (
            (
                "--num_values 4 --target_l1 1 --target_l2 1",
                "argument --target_l2: not allowed with argument --target_l1",
            ),
            ("--num_values 4 --heaviest_unlisted 0.2", "--heaviest_unlisted can be given only with --open, got 0.2"),
            ("--num_values 4 --frequencies flat", "--frequencies can be given only with --open, got flat"),
            ("--num_values 4 --sensitive x", "--sensitive can be given only with --values or --blocks, got x"),
            ("--num_values 4 --missing skip", "--missing can be given only with --values, got skip"),
            ("--open --num_candidates 9 --num_sensitive 2", "--num_sensitive can be given only without --open, got 2"),
            ("--values good.csv --num_values 4", "--num_values can be given only without --values, got 4"),
            ("--epsilon_inf 2", "--epsilon_inf needs --reports_per_person, got 2 alone"),
            ("--values good.csv", "good.csv must have at least 2 different values, got 1"),
            ("--values stranger.csv --sensitive blank.txt", "blank.txt must name a sensitive value, got none"),
            ("--open --num_values 4", "--num_values can be given only without --open, got 4"),
            ("--collection numbers.json --open", "--open can be given only without --collection, got True"),
            ("--collection closed.json", "--collection must have the alphabet ordered, got closed"),
            ("--collection numbers.json --value_column a", "--value_column can be given only with --values, got a"),
            ("--collection numbers.json --values no-rows.csv", "no-rows.csv must have at least 1 value, got none"),
            ("--num_values 4 --num_candidates 3", "--num_candidates can be given only with --open, got 3"),
            ("--open", "--num_candidates must be given with --open, got none"),
            ("", "--num_values must be given without --open, got none"),
            (
                "--num_values 4 --num_sensitive 4 --sensitive_share 0.5",
                "--sensitive_share needs values that are not sensitive, got 0.5 without any",
            ),
        )
    ),
    *(
        (run(plan.configure, f"--reports 9 --num_values 4 {options}"), sentence)
        for options, sentence in (
            ("", "--epsilon or a target is required (--target_l1, --target_l2, --target_half_width), got neither"),
            (
                "--target_l2 1e-30",
                "--target_l2 must be met by an epsilon of at most 16 with these reports, got 1e-30; allow a larger "
                "error, or give --epsilon to see the reports that each mechanism needs",
            ),
        )
    ),
    *planned_groups.REFUSED,
    *planned_structure.REFUSED,
    (
        run(tokens.configure, "--from two.txt --output t.json --number 65537"),
        "--number must be at most 65536, got 65537",
    ),
    (
        run(tokens.configure, "--from empty.txt --output t.json"),
        "--from must be a file with text, got 'empty.txt' without any",
    ),
]
