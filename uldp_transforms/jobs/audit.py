"""Proves the epsilon of a collection: exact probabilities of every report, or of every kind, and the worst pair."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction

from uldp_transforms.files.collection_files import read_collections
from uldp_transforms.jobs import cli, uldp
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.privacy import Audit, Lifetime, audit

_LONGEST = 400  # maximum number of characters of printed weights

REFUTED = 1

OUT = "ruled out"
"""What some reports do to values of an earlier level."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Configuration:
    """Options of an audit."""

    collections: list[Collection]


def configure(argv: Sequence[str]) -> Configuration:
    """Parse the command line; raises SpecError or OSError."""
    parser = cli.Parser("audit", description=__doc__)
    parser.add_argument("collections", metavar="C.json", nargs="+", help="JSON file of a collection")
    return Configuration(collections=read_collections(parser.parse_args(argv).collections))


def job(configuration: Configuration) -> int:
    """Print the results. Exit code 0 if all guarantees hold, 1 if one does not."""
    audits = [audit(collection) for collection in configuration.collections]
    print("\n\n".join(map(describe, configuration.collections, audits)))
    return REFUTED if any(found.faults for found in audits) else cli.DONE


def describe(collection: Collection, found: Audit) -> str:
    """Format the results as text."""
    mechanism = collection.mechanism
    one, other = found.worst.probabilities
    lines = [
        f"collection  {collection.id} version {collection.version}, fingerprint {collection.fingerprint.hex()[:16]}...",
        f"mechanism   {mechanism.id}: {mechanism.num_symbols} symbols, {mechanism.num_sensitive} of them "
        f"sensitive; cohorts: {collection.num_cohorts}, drawn independently of the value",
        f"promise     {_promise(found)}",
        f"looked at   {found.method}",
        f"weights     {_shortened(', '.join(f'{name} {weight}' for name, weight in mechanism.exact_weights.items()))}",
        f"worst pair  report: {found.worst.report}; {found.worst.likelier} against {found.worst.less_likely}",
        f"            {_fraction(one)} to {_fraction(other)}, ratio {_ratio(found.worst.ratio)}",
        f"epsilon     {found.effective_epsilon} <= {found.epsilon:g}"
        if not found.faults and math.isfinite(found.epsilon)
        else f"epsilon     {found.effective_epsilon if found.faults else 'infinite'}",
        *([] if found.lifetime is None else _of_lifetime(found.lifetime)),
        *([] if len(found.levels) == 1 else _of_levels(found, mechanism.sends_clear)),
        *(f"note        {note}" for note in found.notes),
        *(f"FAULT       {fault}" for fault in found.faults),
        f"verdict     {_verdict(found)}",
    ]
    return "\n".join(lines)


def _ratio(ratio: Fraction | float) -> str:
    return f"{float(ratio):.12g}" if math.isfinite(ratio) else "infinite"


def _promise(found: Audit) -> str:
    if math.isinf(found.epsilon):
        return "none: a report can rule values out"
    if len(found.levels) > 1:
        each = ", ".join(f"of {level.guarantee.of} by at most e**{level.guarantee.epsilon:g}" for level in found.levels)
        return f"one report moves the odds {each}; those against values of earlier levels by any factor"
    return f"the odds of {found.protects} move by at most e**{found.epsilon:g} with one report"


def _verdict(found: Audit) -> str:
    if math.isinf(found.epsilon):
        return "nothing is promised: do not call these reports locally private"
    return "the promise does NOT hold" if found.faults else "the promise holds, exactly"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"


def _of_lifetime(found: Lifetime) -> list[str]:
    after = ", ".join(f"{loss:.4g} ({number})" for number, loss in found.after.items())
    return [
        f"lifetime    all reports of one symbol together: at most e**{found.epsilon_inf:g}",
        f"looked at   {found.method}",
        f"epsilon_inf {found.effective_epsilon}",
        f"loss        by number of reports of one symbol: {after}",
    ]


def _of_levels(found: Audit, sends_clear: bool) -> list[str]:
    """A table: the largest logarithm of the odds of the row's values against those of the column."""
    names = [level.guarantee.of for level in found.levels] + ["no level"] * sends_clear
    losses = [f"{level.effective_epsilon:.4f}" for level in found.levels]
    rows = [["odds of", "values", "epsilon", *(f"to {name}" for name in names)]]
    for place, level in enumerate(found.levels):
        least, size = [OUT] * place + [losses[place]] * (len(names) - place), len(level.guarantee.symbols)
        rows.append([level.guarantee.of, f"{size:,}", f"{level.guarantee.epsilon:g}", *least])
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [
        f"{'levels' if not place else '':<10}  {'  '.join(map(str.ljust, row, widths)).rstrip()}"
        for place, row in enumerate(rows)
    ]


def _fraction(number: object) -> str:
    """A fraction in full if it is short, otherwise as a decimal number."""
    text = str(number)
    return text if len(text) <= 44 else f"{float(number):.17g}"  # type: ignore[arg-type]  # a Fraction


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("audit", configure, job, argv)


if __name__ == "__main__":
    uldp.run_program("audit")
