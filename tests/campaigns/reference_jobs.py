"""The jobs of ``tests.campaigns.reference_rows``: simulated people, options and the command lines made of them.

Each option meets each program, and in ``estimate`` and ``reestimate`` each pair of options meets. What a program
refuses is a job too: its sentence is kept.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.support.cases import ALL_COLLECTIONS, VALUES
from tests.support.commands import last_of_each
from uldp_transforms.ldp.estimators import ESTIMATORS


class Asked(NamedTuple):
    """A collection, the values of its people from the most frequent one on, and options of ``uldp simulate``."""

    spec: dict[str, Any]
    values: tuple[str, ...]
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The stem of its files."""
        return f"{self.spec['id']}-{self.spec['version']}"


class Study(NamedTuple):
    """Collections whose reports one job counts together, and the number of people of each."""

    asked: tuple[Asked, ...]
    people: int


class Job(NamedTuple):
    """One run of a program."""

    name: str
    """Its directory of rows, and the stem of its stored file."""

    words: tuple[str, ...]
    """A program of ``uldp`` and its options, or ``follow`` or ``stream`` and what these take.

    ``{STUDY}`` stands for the options that name collections and reports of a study, ``{STUDY+}`` for those with other
    reports, ``{of:STUDY}`` for the collections alone, and ``{job}`` for the name.
    """


# ---------------------------------------------------------------------- people

ARM = {"name": "arm", "values": ["control", "new"]}
COUNTRY = {"name": "country", "values": ["DE"]}
GROUPED = {"dimensions": [ARM, COUNTRY]}
DAILY = GROUPED | {"client_window": "1d"}
FOODS = ("rice", "bread", "meat", "fish", "soup", "none")
TEXTS = ("anna", "bern", "nanna", "abba", "rabe", "erna", "barn", "bann", "rann", "beere", "narr", "aber")
CLOSED = {"id": "closed", "values": list(FOODS)}
PARTLY = CLOSED | {"sensitive": ["meat", "fish"]}
TOKENS = ["a", "b", "n", "r", "e", "an", "na"]
PREFIXES = {"id": "prefixes", "num_buckets": 16, "seed": 7, "tokens": TOKENS, "lengths": [1, 2, None]}
MINUTES = {"id": "ordered", "low": 0, "high": 120, "num_bins": 12, "unit": "min", "others": ["never"]}
EUROS = {"id": "ordered", "low": 1, "high": 10_000, "num_bins": 9, "scale": "log", "others": ["none"]}
ORDERS = [MINUTES | {"others": others} for others in (["never", "soon"], ["soon", "never"])]
EUROS |= {"sensitive": [[None, 30], "none"]}


def asked(
    name: str,
    alphabet: dict[str, Any],
    mechanism: dict[str, Any],
    values: tuple[str, ...],
    *options: str,
    **more: Any,
) -> Asked:
    """A collection whose values the clients of a table hold."""
    spec = {"id": name, "version": 1, "alphabet": alphabet, "mechanism": {"epsilon": 2.0} | mechanism} | more
    return Asked(spec, values, options)


STUDIES = {
    "every": Study(
        tuple(
            Asked(of.to_json() | {"id": name}, tuple(of.alphabet.known_values or VALUES))
            for name, of in ALL_COLLECTIONS.items()
        ),
        people=120,
    ),
    "plain": Study(
        (
            asked("diet", PARTLY, {"id": "urr"}, FOODS, question="diet", **GROUPED),
            asked("diet", CLOSED, {"id": "rappor"}, FOODS, question="diet", **GROUPED | {"version": 2}),
        ),
        people=500,
    ),
    "single": Study(
        (
            asked("foods", CLOSED, {"id": "krr"}, FOODS, **GROUPED),
            asked("dishes", PARTLY, {"id": "urr"}, FOODS, **GROUPED),
        ),
        people=500,
    ),
    "berlin": Study(
        (
            asked("local", CLOSED, {"id": "ss"}, FOODS, client_timezone="Europe/Berlin", **DAILY),
            asked("hours", MINUTES, {"id": "krr"}, ("24", "never", "70"), client_timezone="Europe/Berlin", **DAILY),
        ),
        people=500,
    ),
    "numbers": Study(
        (
            asked("minutes", MINUTES, {"id": "sw"}, ("24", "31.5", "70", "8", "never", "119"), **GROUPED),
            asked("euros", EUROS, {"id": "usw"}, ("12", "250", "7000", "none", "0.5", "44"), **GROUPED),
        ),
        people=500,
    ),
    "versions": Study(
        (
            asked("waits", MINUTES, {"id": "krr"}, ("24", "31.5", "70", "never"), question="wait", **GROUPED),
            asked("waits", MINUTES, {"id": "sw"}, ("24", "31.5", "70"), question="wait", **GROUPED | {"version": 2}),
            asked("rates", ORDERS[0], {"id": "krr"}, ("24", "70", "soon"), question="rate", **GROUPED),
            asked("rates", ORDERS[1], {"id": "krr"}, ("24", "70", "soon"), question="rate", **GROUPED | {"version": 2}),
        ),
        people=500,
    ),
    "open": Study(
        (
            asked("hosts", {"id": "hashed", "num_buckets": 8}, {"id": "krr"}, TEXTS, num_cohorts=16, **GROUPED),
            asked("words", PREFIXES, {"id": "hr", "epsilon": 4.0}, TEXTS, num_cohorts=24, **GROUPED),
            asked("own", PARTLY | {"id": "tagged", "tags": ["other food"]}, {"id": "urr"}, FOODS, **GROUPED),
        ),
        people=500,
    ),
    "memos": Study(
        (
            asked("bits", PARTLY, {"id": "urap", "epsilon_inf": 4.0}, FOODS, "--person_column", "person", **DAILY),
            asked("trust", CLOSED, {"id": "ss"}, FOODS, question="trust", **DAILY),
            asked("trust", CLOSED, {"id": "krr"}, FOODS, question="trust", **DAILY | {"version": 2}),
            asked("trust", PARTLY, {"id": "uss"}, FOODS, question="trust", **DAILY | {"version": 3}),
        ),
        people=500,
    ),
}

# ---------------------------------------------------------------------- options

WINDOWS = {
    "fixed": "--window 2d",
    "sliding": "--window 2d --slide 1d",
    "calendar": "--window 1d --timezone Europe/Berlin",
    "months": "--window 1mo --timezone Europe/Berlin",
}
REDUCED = {f"by-{name}": f"--estimator {name}" for name in sorted(ESTIMATORS)}
OPTIONS = WINDOWS | {
    "borrow": "--borrow --by arm",
    "one": "--by arm",
    "two": "--by arm,country",
    "numbers": "--limits 30,45 --quantiles 0.25,0.5,0.9",
    "smooth": "--smooth --alarm_every 20",
    "liars": "--liars 0.02",
    "show": "--show 2",
    "few": "--min_reports 95",
    "discover": "--discover",
}
"""Options by a short name. Of an option that is given several times, the last value counts."""

ONCE = {"bits": "--bit_patterns", "ids": "--deduplicate", "kept": "--deduplicate --deduplicate_by fingerprints"}
"""Options of ``estimate`` that only count."""

LOCAL = {name: WINDOWS[name] for name in ("calendar", "months")}
GROUPINGS = {name: OPTIONS[name] for name in ("one", "two", "borrow")}
ALONE = {name: options for name, options in OPTIONS.items() if name not in ("one", "two")}
ALLOWED = {name: OPTIONS[name] for name in ("numbers", "liars", "few")}
"""Options beside ``--by`` alone, and those of them that ``uldp compare`` has."""

SELECTED = {
    "plain": tuple(OPTIONS),
    "single": ("sliding", "one", "smooth", "liars", "borrow"),
    "numbers": ("sliding", "one", "numbers", "smooth", "borrow"),
    "open": ("sliding", "one", "smooth", "show", "discover"),
    "memos": ("sliding", "calendar", "smooth", "few"),
}
"""Options that meet each study in ``estimate``; in the other programs all of them do."""

STREAMS: dict[str, dict[str, Any]] = {
    "days": {},
    "sliding": {"window": "2d", "slide": "1d"},
    "groups": {"by": "arm,country"},
    "smooth": {"smooth": True},
    "final": {"release": "final"},
    "show": {"show": 2},
}
"""Values of a specification by a short name, for streams."""

COMPARISONS = {
    "arms": "--by arm",
    "against": "--by arm --against arm=control",
    "looks": "--by arm --anytime",
    "days": "--windows",
    "second": "--with estimate-{study}+-second",
    "seconds": "--with estimate-{study}+-second --by arm",
}
COUNTED = "--min_reports 15 --candidates candidates.txt"
DAYS = f"{COUNTED} --window 1d"


def pairs(*tables: dict[str, str]) -> dict[str, str]:
    """Each pair of options of different tables or, with one table, of different options of it."""
    chosen = itertools.product(*map(dict.items, tables)) if tables[1:] else itertools.combinations(tables[0].items(), 2)
    return {
        f"{name}-{other}": f"{options} {more}"
        for (name, options), (other, more) in chosen
        if options.split()[0] != more.split()[0]
    }


# ---------------------------------------------------------------------- jobs


def job(name: str, *words: str) -> Job:
    """The run of a program whose command line is made of these parts."""
    return Job(name, tuple(last_of_each(" ".join(words).split())))


def estimates(study: str, options: dict[str, str], always: str = DAYS) -> Iterator[Job]:
    """The main job over files, with each of these options."""
    for name, chosen in options.items():
        yield job(f"estimate-{study}-{name}", f"estimate {{{study}}} --write_counts --output {{job}}", always, chosen)


def reestimates(study: str, stored: str, options: dict[str, str], always: str = COUNTED) -> Iterator[Job]:
    """Stored counts again, with each of these options."""
    for name, chosen in options.items():
        head = f"reestimate {{of:{study}}} estimate-{study}-{stored} --output {{job}}"
        yield job(f"reestimate-{study}-{stored}-{name}", head, always, chosen)


SUMS = {"total": "reestimate {} --window all --totals {}", "compare": "compare {} --output {}"}
"""Programs that add up windows, by the beginning of the names of their jobs."""


def sums(program: str, study: str, options: dict[str, str], stored: str = "groups") -> Iterator[Job]:
    """One of ``SUMS`` over stored counts, such as those of the groups of days."""
    for name, chosen in options.items():
        head = SUMS[program].format(f"estimate-{study}-{stored}", f"{{job}}/{program}.jsonl")
        yield job(f"{program}-{study}-{name}", head, COUNTED, chosen.format(study=study))


def follows(study: str, options: dict[str, str]) -> Iterator[Job]:
    """``uldp estimate --follow`` over a spool in which files arrive one after the other."""
    for name, chosen in options.items():
        yield job(f"follow-{study}-{name}", f"follow {study} {{job}}", DAYS, chosen)


def streams(study: str, values: dict[str, dict[str, Any]]) -> Iterator[Job]:
    """The main job over a stream with late reports."""
    for name, chosen in values.items():
        always = {"window": "1d", "min_reports": 15, "allowed_lateness": "20d"}
        yield Job(f"stream-{study}-{name}", ("stream", study, "{job}", json.dumps(always | chosen)))


def jobs() -> Iterator[Job]:
    """All jobs; each comes after those whose counts it reads."""
    yield from estimates("every", {"all": "", "days": "--window 4d"}, COUNTED)
    yield from reestimates("every", "all", REDUCED)
    yield from reestimates("every", "days", {"smooth": "--smooth"})
    for study, chosen in SELECTED.items():
        yield from estimates(study, {"all": ""}, COUNTED)
        yield from estimates(
            study, {"days": "", "groups": "--by arm,country"} | {name: OPTIONS[name] for name in chosen}
        )
        yield from estimates(f"{study}+", {"second": "--by arm,country"})
        for stored in ("all", "days", "groups", "sliding"):
            yield from reestimates(study, stored, {"stored": ""})
        yield from reestimates(study, "groups", OPTIONS | REDUCED)
        yield from sums("total", study, {"alone": ""} | OPTIONS | REDUCED)
        yield from sums("compare", study, COMPARISONS | ALONE)
    yield from estimates("plain", ONCE)
    yield from estimates("berlin", LOCAL | pairs(LOCAL, OPTIONS))
    yield from reestimates("berlin", "calendar", LOCAL | pairs(LOCAL, OPTIONS))
    yield from follows("plain", {"days": ""} | OPTIONS)
    yield from follows("single", {"liars": OPTIONS["liars"]} | pairs({"liars": OPTIONS["liars"]}, OPTIONS))
    yield from follows("numbers", {"numbers": OPTIONS["numbers"]} | pairs({"numbers": OPTIONS["numbers"]}, OPTIONS))
    yield from streams("plain", STREAMS)
    yield from streams("single", {"liars": {"liars": 0.02, "show": 2}})
    yield from streams("berlin", {"calendar": {"timezone": "Europe/Berlin"}})
    yield from estimates("plain", pairs(OPTIONS))
    for study in SELECTED:
        yield from reestimates(study, "groups", pairs(OPTIONS))
        yield from sums("total", study, pairs(GROUPINGS, OPTIONS))
        yield from sums("compare", study, pairs(COMPARISONS, ALLOWED))
    yield from sums("compare", "plain", {"cells": "--by arm,country"})
    for stored in ("all", "sliding", "one", "borrow"):
        chosen = {f"{stored}-{name}": COMPARISONS[name] for name in ("arms", "days")}
        yield from sums("compare", "single", chosen, stored)
    yield from estimates("versions", {"groups": "--by arm,country"})
    yield from estimates("versions+", {"second": "--by arm,country"})
    for program, chosen in (("total", {"alone": ""} | OPTIONS), ("compare", COMPARISONS | pairs(COMPARISONS, ALLOWED))):
        yield from sums(program, "versions", chosen)
    yield from reestimates("plain", "groups", pairs(REDUCED, OPTIONS))
    yield from reestimates("single", "groups", pairs({name: REDUCED[name] for name in ("by-em", "by-ml")}, OPTIONS))


JOBS = {one.name: one for one in jobs()}
