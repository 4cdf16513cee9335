"""The client that was written from the documents alone, against the vectors."""

from __future__ import annotations

import ast
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.clients import independent
from tests.support.vectors import FOLDER


def records(name: str) -> list[dict[str, Any]]:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


FORMS = {record["name"]: independent.form(record["collection"]) for record in records("collections")}


def drawing(words: list[str]) -> Callable[[], int]:
    """Draws these words; StopIteration after the last one."""
    rest = iter(words)
    return lambda: int(next(rest), 16)


def test_it_needs_nothing_of_the_package() -> None:
    tree = ast.parse(Path(independent.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in imports if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


@pytest.mark.parametrize("record", records("collections"), ids=lambda record: record["name"])
def test_forms(record: dict[str, Any]) -> None:
    expected = {key: value for key, value in record["client"].items() if key != "examples"}
    assert FORMS[record["name"]] == expected
    for example in record["client"]["examples"]:
        found = independent.symbols_of(FORMS[record["name"]], example["value"], example["cohort"])
        assert found == example["symbols"]


@pytest.mark.parametrize("record", records("windows"), ids=lambda record: record["client"]["id"])
def test_windows(record: dict[str, Any]) -> None:
    form = independent.form(record["collection"])
    assert form == {key: value for key, value in record["client"].items() if key != "examples"}
    for time in record["times"]:
        assert independent.window_of(form["client_window"], time["event_time"]) == (time["start"], time["end"])


def test_numbers() -> None:
    for record in records("numbers"):
        assert independent.number_text(record["number"]) == record["text"]


def test_weights() -> None:
    for record in records("weights"):
        fields = independent.fields_of(record)
        k, v, h = (record[name] for name in ("num_symbols", "num_sensitive", "num_hashes"))
        sampler, rate = independent.SAMPLERS[fields["id"]](
            fields | {"num_others": record.get("num_others", 0)}, k, v, h
        )
        sampler = independent.with_memo(sampler, rate, fields, v)
        found = independent.weights_of(sampler, rate).items()
        weights = {name: weight if isinstance(weight, list) else str(weight) for name, weight in found}
        assert (sampler, weights) == (record["sampler"], record["weights"]), record
        assert independent.payload_layout(sampler, k, v) == record["payload"]


def test_hashes() -> None:
    for record in records("hashes"):
        word = independent.hash_word(record["value"], int(record["seed"]), record["index"])
        assert f"{word:016x}" == record["word"]


def test_symbols() -> None:
    for record in records("symbols"):
        found = independent.symbols_of(FORMS[record["collection"]], record["value"], record["cohort"])
        assert found == record["symbols"], record


Form = dict[str, Any]


def with_texts(form: Form, key: str, texts: list[str]) -> Form:
    return form | {"symbols": form["symbols"] | {key: texts}}


def as_values(form: Form) -> Form:
    """All symbols in the order of the values."""
    return with_texts(form, "symbols", json.loads(form["canonical"])["alphabet"]["values"])


def sensitive_as_values(form: Form) -> Form:
    """Sensitive symbols first, but in the order of the values."""
    alphabet = json.loads(form["canonical"])["alphabet"]
    sensitive = [value for value in alphabet["values"] if value in alphabet["sensitive"]]
    return with_texts(
        form, "symbols", sensitive + [text for text in form["symbols"]["symbols"] if text not in sensitive]
    )


def tags_first(form: Form) -> Form:
    tags, symbols = json.loads(form["canonical"])["alphabet"]["tags"], form["symbols"]["symbols"]
    return with_texts(form, "symbols", tags + [text for text in symbols if text not in tags])


def tags_last(form: Form) -> Form:
    tags, symbols = json.loads(form["canonical"])["alphabet"]["tags"], form["symbols"]["symbols"]
    return with_texts(form, "symbols", [text for text in symbols if text not in tags] + tags)


def sorted_list(form: Form) -> Form:
    return with_texts(form, "listed", sorted(form["symbols"]["listed"]))


WRONG_ORDERS = [
    ("closed-sensitive-krr", as_values),
    ("closed-sensitive-krr", sensitive_as_values),
    ("order-krr", as_values),
    ("order-krr", sensitive_as_values),
    ("tagged-krr", sensitive_as_values),
    ("tagged-krr", tags_first),
    ("tagged-krr", tags_last),
    ("hashed-listed-krr", sorted_list),
]


@pytest.mark.parametrize(("name", "wrong"), WRONG_ORDERS, ids=lambda part: getattr(part, "__name__", part))
def test_symbols_in_another_order_are_refused(name: str, wrong: Callable[[Form], Form]) -> None:
    """By the vectors: a client that numbers symbols differently cannot pass them, though its fingerprint is right."""
    form = wrong(FORMS[name])
    vectors = [record for record in records("symbols") if record["collection"] == name]
    found = [independent.symbols_of(form, record["value"], record["cohort"]) for record in vectors]
    assert vectors
    assert sum(symbols != record["symbols"] for symbols, record in zip(found, vectors)) >= 2


def test_ranks_in_another_order_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a permuted alphabet, where the order of the values decides ties only."""
    right = independent.hash_word
    monkeypatch.setattr(independent, "hash_word", lambda *args: independent.WORD - 1 - right(*args))
    vectors = [record for record in records("symbols") if record["collection"] == "texts-permuted"]
    form = FORMS["texts-permuted"]
    found = [independent.symbols_of(form, record["value"], record["cohort"]) for record in vectors]
    assert sum(symbols != record["symbols"] for symbols, record in zip(found, vectors)) >= 2


def test_payloads() -> None:
    for record in records("payloads"):
        draw = drawing(record["words"])
        assert independent.payload(FORMS[record["collection"]], record["symbols"], draw).hex() == record["payload"]
        with pytest.raises(StopIteration):
            draw()


def test_memos() -> None:
    for record in records("memos"):
        form = independent.form(record["collection"])
        assert form == {key: value for key, value in record["client"].items() if key != "examples"}
        for derived in record["derived"]:
            secret, every = bytes.fromhex(derived["secret"]), derived["report_every"]
            assert independent.cohort_of(form, secret) == derived["cohort"]
            assert independent.symbols_of(form, derived["value"], derived["cohort"]) == [derived["symbol"]]
            assert independent.memo(form, secret, derived["symbol"]).hex() == derived["memo"]
            assert independent.turn_of(form, secret, every) == derived["turn"]
        for report in record["reports"]:
            draw = drawing(report["words"])
            assert independent.repeated(form, bytes.fromhex(report["memo"]), draw).hex() == report["payload"]
            with pytest.raises(StopIteration):
                draw()


WITH_MEMOS = {record["client"]["id"]: record["client"] for record in records("memos")}
FORMS_AS_READ = {record["name"]: record["client"] for record in records("collections")}
WITH_WINDOWS = {record["client"]["id"]: record["client"] for record in records("windows")}


WITH_GROUPS = {record["client"]["id"]: record["client"] for record in records("dimensions")}


@pytest.mark.parametrize("record", records("dimensions"), ids=lambda record: record["client"]["id"])
def test_dimensions(record: dict[str, Any]) -> None:
    form = independent.form(record["collection"])
    assert form == {key: value for key, value in record["client"].items() if key != "examples"}
    for told in record["reports"]:
        draw = drawing(told["words"])
        message = independent.report(form, told["value"], told["event_time"], draw, told["dimensions"])
        assert message.hex() == told["message"]
        assert list(independent.fields(message))[2] == told["cohort"]
        with pytest.raises(StopIteration):
            draw()


def test_every_group_is_in_the_vectors() -> None:
    """Those of the largest collection fill nearly all numbers of 16 bits. What clients do not set is the last value."""
    for record in records("dimensions"):
        listed = record["client"]["dimensions"]
        groups = {told["cohort"] // record["client"]["num_cohorts"] for told in record["reports"]}
        digits = [range(len(one["values"]) + 1)[-1 if "set_by" in one else 0 :] for one in listed]
        table = np.arange(math.prod(len(one["values"]) + 1 for one in listed))
        expected = table.reshape([len(one["values"]) + 1 for one in listed])[np.ix_(*digits)]
        if record["reports"]:
            assert groups == set(expected.ravel().tolist()), record["client"]["id"]
    [largest] = [record for record in records("dimensions") if record["client"]["id"] == "groups-largest"]
    assert max(told["cohort"] for told in largest["reports"]) >= 44 * 1456


def test_costs() -> None:
    for record in records("costs"):
        form = (WITH_MEMOS | FORMS)[record["collection"]]
        for reports, symbols, cost in record["costs"]:
            assert independent.cost(form, reports, symbols) == pytest.approx(cost, rel=1e-9)


def test_budgets() -> None:
    """A window is answered while the sum of the costs has room for one report more; no value is looked at."""
    forms = WITH_MEMOS | FORMS
    for record in records("budgets"):
        limits = {"ever": record["lifetime"] or math.inf, "spent": record["epsilon"]}
        numbers: dict[str, dict[str, int]] = {"ever": {}, "spent": {}}
        period, answered = None, []
        for name, event_time in record["asked"]:
            if event_time // record["period_ms"] != period:
                period, numbers["spent"] = event_time // record["period_ms"], {}
            more = {ledger: counted | {name: counted.get(name, 0) + 1} for ledger, counted in numbers.items()}
            symbols = {each: record["distinct_values"] or forms[each]["num_symbols"] for each in record["collections"]}
            sums = {
                ledger: sum(independent.cost(forms[each], number, symbols[each]) for each, number in counted.items())
                for ledger, counted in more.items()
            }
            answered.append(all(sums[ledger] <= limit * (1 + 1e-9) for ledger, limit in limits.items()))
            numbers = more if answered[-1] else numbers
        assert answered == record["answered"], record["name"]


@pytest.mark.parametrize("record", records("refusals"), ids=lambda record: record["change"])
def test_tampered_forms_are_refused(record: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="pinned"):
        independent.check(record["form"], record["form_fingerprint"])
    if record["refused_by"] == "checks":
        with pytest.raises(ValueError, match=r"follow|shape|example"):
            independent.check(record["form"])


@pytest.mark.parametrize(
    "form", [*WITH_MEMOS.values(), *WITH_WINDOWS.values(), *WITH_GROUPS.values(), *FORMS_AS_READ.values()]
)
def test_right_forms_are_taken(form: dict[str, Any]) -> None:
    independent.check(form)
    independent.check(form, independent.form_fingerprint(form))


def test_form_fingerprints() -> None:
    for record in records("form_fingerprints"):
        forms = WITH_MEMOS | WITH_WINDOWS | WITH_GROUPS | FORMS_AS_READ
        independent.check(forms[record["collection"]], record["form_fingerprint"])


def test_reports() -> None:
    for record in records("reports"):
        draw = drawing(record["words"])
        message = independent.report(FORMS[record["collection"]], record["value"], record["event_time"], draw)
        assert message.hex() == record["message"], record["collection"]
        report_id, event_time, cohort, payload = independent.fields(message)
        assert (report_id.hex(), event_time) == (record["report_id"], record["event_time"])
        assert (cohort, payload.hex()) == (record["cohort"], record["payload"])
        with pytest.raises(StopIteration):
            draw()


def test_batches() -> None:
    for record in records("batches"):
        assert independent.pack(list(map(bytes.fromhex, record["messages"]))).hex() == record["packed"]
