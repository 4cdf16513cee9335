"""What two directories have in common: their totals, or the same groups of both, over the whole period of each."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence

from uldp_transforms import JobSpec
from uldp_transforms.files import stores
from uldp_transforms.jobs.reestimate.stored_counts import StoredCounts
from uldp_transforms.ldp import SpecError
from uldp_transforms.ldp.model import keeps_memos
from uldp_transforms_compare.compare.sides import Family, Side, groups_of, totals_of


def names_of(directory: str, other: str) -> tuple[str, str]:
    """Short names of two directories; their paths as given, if the short ones are the same.

    Raises:
        SpecError: for one directory twice.
    """
    paths = [path.rstrip("/") for path in (directory, other)]
    places = [path if stores.in_store(path) else os.path.realpath(path) for path in paths]
    if places[0] == places[1]:
        raise SpecError(f"--with must be another directory, because reports do not differ from themselves, got {other}")
    first, second = (stores.name_of(place) for place in places)
    return (first, second) if first != second else (paths[0], paths[1])


def sides_of_both(
    spec: JobSpec, both: Sequence[StoredCounts], names: tuple[str, str], by: tuple[str, ...] | None
) -> Iterator[Family]:
    """The collections that both directories have, with pairs of the total, or of each group, in the first and second.

    Args:
        spec: with the collections of the first directory.
        both: counts of both.
        names: of the directories.
        by: dimensions of the groups; None: the totals.

    Raises:
        SpecError: if they have no collection in common, or reports in common, or people repeat memos, so that errors
            are not independent.
    """
    first, second = (
        {one.owner.named.fingerprint: one for one in (groups_of(spec, stored, by) if by else totals_of(spec, stored))}
        for stored in both
    )
    if not first.keys() & second.keys():
        ids = ", ".join(sorted(one.name for one in first.values())) or "none"
        raise SpecError(
            f"--with must have counts of a collection of DIR ({ids}) with the same fingerprint, got none, so that "
            "answers cannot be compared"
        )
    for family in first.values():
        if any(map(keeps_memos, family.owner.versions)):
            raise SpecError(
                f"--with needs collections without epsilon_inf, because reports with the same memos are not "
                f"independent, got {family.name!r}"
            )
    _check_other_reports(both)
    for fingerprint, family in first.items():
        if fingerprint in second:
            yield _paired(family, second[fingerprint], names)
        else:
            missing = f"{names[1]} has no counts of this collection (the same fingerprint)"
            yield dataclasses.replace(family, sides=[], pairs=[], left_out=[*family.left_out, missing])


def _check_other_reports(both: Sequence[StoredCounts]) -> None:
    """Refuse a directory of which the other one has a copy, whole or in part: the same counts of a run and window."""
    here, there = (one.windows for one in both)
    for key in here.keys() & there.keys():
        in_other = {row["run"]: row["counts"] for row in there[key]}
        for row in here[key]:
            run = row["run"]
            if run and in_other.get(run) == row["counts"]:
                raise SpecError(
                    "--with must have other reports than DIR, because reports do not differ from themselves, got the "
                    f"counts of run {run} in both"
                )


def _paired(family: Family, other: Family, names: tuple[str, str]) -> Family:
    in_other = {side.name: side for side in other.sides}
    here, there = names
    pairs = [(_named(side, here), _named(in_other[side.name], there)) for side in family.sides if side.name in in_other]
    alone = {side.name for side in family.sides} ^ in_other.keys()
    left_out = [f"{name or 'the total'} is left out, because only one directory has it" for name in sorted(alone)]
    return dataclasses.replace(
        family,
        sides=[side for pair in pairs for side in pair],
        pairs=pairs,
        left_out=[
            *(f"{here}: {sentence}" for sentence in family.left_out),
            *(f"{there}: {sentence}" for sentence in other.left_out),
            *left_out,
        ],
    )


def _named(side: Side, directory: str) -> Side:
    text = f"directory={directory}"
    return dataclasses.replace(side, name=f"{text},{side.name}" if side.name else text)
