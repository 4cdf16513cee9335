"""Refusals of sums over chosen values: calls and their sentences."""

from __future__ import annotations

from tests.support.messages_cases import KRR
from tests.support.refusals.jobs.specification import OPEN, fields, of
from tests.support.refusals.tables import Refusal
from uldp_transforms.ldp.share_sums import NamedSum

FORMS = '["a", "b"], {"match": "a*"} or {"weights": {"a": 3}}'
WEIGHTS = "JobSpec.sums['cost'] must have weights that are 0 or from 1e-100 to 1e+100 in size, got"
NOT_THERE = "values in one collection, or among the candidates of an open one, got"

REFUSED: list[Refusal] = [
    (lambda: of(sums={}), f"JobSpec.sums must be a JSON object with a sum for each name, such as {FORMS}, got ()"),
    (lambda: of(sums=["0"]), "JobSpec.sums must be a JSON object, got ['0']"),
    (
        lambda: of(sums="{"),
        "JobSpec.sums must be JSON, got an error in line 1: Expecting property name enclosed in double quotes",
    ),
    (lambda: of(sums='{"a": ["0"], "a": ["1"]}'), "JobSpec.sums must not repeat a key, got a more than once"),
    (lambda: of(sums='{"cost": {"weights": {"0": NaN}}}'), "JobSpec.sums must hold finite numbers, got NaN"),
    (
        lambda: of(sums={"é": ["0"], "e\N{COMBINING ACUTE ACCENT}": ["1"]}),
        "JobSpec.sums must not repeat an entry (in Unicode NFC), got 'é' twice",
    ),
    (lambda: of(sums={"0": ["1", "2"]}), "JobSpec.sums must have names that are no values, got '0', which is one"),
    *(
        (
            lambda name=name: of(sums={name: ["0"]}),
            "JobSpec.sums must have names that are texts without white space at the ends, at least one character "
            f"long, got {name!r}",
        )
        for name in ("", " ", "a ")
    ),
    (
        lambda: of(sums={f"sum {number}": ["0"] for number in range(65)}),
        "JobSpec.sums must be at most 64, got 65",
    ),
    (lambda: of(sums={"a": "0"}), f"JobSpec.sums['a'] must be {FORMS}, got '0'"),
    (lambda: of(sums={"a": {}}), f"JobSpec.sums['a'] must be {FORMS}, got {{}}"),
    (
        lambda: of(sums={"a": {"match": "*", "weights": {"0": 1}}}),
        f"JobSpec.sums['a'] must be {FORMS}, got {{'match': '*', 'weights': {{'0': 1}}}}",
    ),
    (
        lambda: of(sums={"a": {"mach": "*"}}),
        "JobSpec.sums['a'] takes the keys match, weights, got 'mach'; did you mean 'match'?",
    ),
    (lambda: of(sums={"a": []}), "JobSpec.sums['a'] must have at least 1 entry, got 0"),
    (lambda: of(sums={"a": [0]}), "JobSpec.sums['a'] must be a list of texts, got [0]"),
    (
        lambda: of(sums={"a": ["1", "1"]}),
        "JobSpec.sums['a'] must not repeat an entry (in Unicode NFC), got '1' twice",
    ),
    (lambda: of(sums={"a": {"match": ""}}), "JobSpec.sums['a'].match must be a pattern such as \"a*\", got ''"),
    (lambda: of(sums={"a": {"match": 1}}), "JobSpec.sums['a'].match must be a pattern such as \"a*\", got 1"),
    (lambda: of(sums={"cost": {"weights": [3]}}), "JobSpec.sums['cost'].weights must be a JSON object, got [3]"),
    (
        lambda: of(sums={"cost": {"weights": {}}}),
        "JobSpec.sums['cost'] must have either at least one value or a pattern of values, got neither",
    ),
    *(
        (lambda weight=weight: of(sums={"cost": {"weights": {"0": 1, "1": weight}}}), f"{WEIGHTS} {weight!r} for '1'")
        for weight in (float("nan"), float("inf"), -1e101, 1e-101, "3", True, None)
    ),
    (
        lambda: of(sums={"a": ["0", "stranger"]}),
        f"JobSpec.sums['a'] must have all its {NOT_THERE} 'stranger', which is not there",
    ),
    (
        lambda: of(sums={"a": {"match": "[!0-2]*"}}),
        f"JobSpec.sums['a'] must have a pattern of {NOT_THERE} '[!0-2]*', which is not there",
    ),
    (
        lambda: of(collections=[OPEN], candidates=["anna"], sums={"a": ["anna", "bern"]}),
        f"JobSpec.sums['a'] must have all its {NOT_THERE} 'bern', which is not there",
    ),
    (
        lambda: of(collections=[KRR, OPEN], candidates=["anna"], sums={"a": ["anna", "0"]}),
        f"JobSpec.sums['a'] must have all its {NOT_THERE} 'anna', which is not there",
    ),
    (
        lambda: fields(sums=({"a": ["0"]},)),
        f"JobSpec.sums must be a JSON object with a sum for each name, such as {FORMS}, got ({{'a': ['0']}},)",
    ),
    (
        lambda: NamedSum("a", ("0",), match="*"),
        "sums['a'] must have either at least one value or a pattern of values, got both",
    ),
    (
        lambda: NamedSum("a", ("0", "1"), (1.0,)),
        "sums['a'] must have a weight for each of its 2 values, got 1",
    ),
]
