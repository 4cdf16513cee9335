"""The text that a client stores: every damage is one kind of error, and what earlier versions wrote is taken over."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.ldp.clients import NOON, SECRET, answers, client, illness, message
from tests.support.tolerance import generator
from tests.support.vectors import Memory
from uldp_transforms.ldp import Collection, FileStorage, SpecError
from uldp_transforms.ldp.client_window import DAY

HOUR = DAY // 24


def stored(values: tuple[str, ...] = ("flu", "gout")) -> str:
    """Of a client that has answered some windows."""
    store = Memory()
    asked = client(store, window_ms=HOUR, secret=SECRET)
    for hour, value in enumerate(values):
        asked.report(value, NOON + hour * HOUR)
    return store.text or ""


def opened(text: str) -> Memory:
    store = Memory()
    store.text = text
    asked = client(store, window_ms=HOUR)
    asked.report("flu", NOON)
    return store


# ---------------------------------------------------------------------- damage

WRONG: tuple[Any, ...] = (None, True, 7, -1, 0.5, 1 << 70, "", "00", "zz" * 32, "f" * 31, [], [1], {}, {"a": 1})


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of everything within a JSON value."""
    yield path
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def with_value(text: str, path: tuple[Any, ...], value: Any) -> str:
    state = {"": json.loads(text)}
    inner: Any = state
    *before, last = ("", *path)
    for key in before:
        inner = inner[key]
    inner[last] = value
    return json.dumps(state[""])


def without(text: str, path: tuple[Any, ...]) -> str:
    state = json.loads(text)
    inner = state
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return json.dumps(state)


def refused(text: str) -> bool:
    """Whether it is; with another error than SpecError this raises. No sentence has the secret."""
    try:
        opened(text)
    except SpecError as error:
        assert SECRET.hex()[:16] not in str(error)
        return True
    return False


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"client_state": 1}', "NaN", "[" * 100_000, "9" * 5000])
def test_a_damaged_storage_is_no_new_one(text: str, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(SpecError, match="the client's storage must "):
        client(FileStorage(tmp_path / "state.json"))
    assert (tmp_path / "state.json").read_text() == text


def test_every_beginning_of_the_text_is_refused() -> None:
    text = stored()
    assert all(refused(text[:size]) for size in range(len(text)))


def test_every_value_of_a_wrong_kind_is_refused_or_harmless() -> None:
    """At every place; what is let through is a number where another number was."""
    text = stored()
    state = json.loads(text)
    taken = set()
    for path in places(state):
        for wrong in WRONG:
            if not refused(with_value(text, path, wrong)):
                taken.add((path[0] if path else "", json.dumps(wrong)))
    numbers = {(ledger, json.dumps(number)) for ledger in ("spent", "ever") for number in (7, 0.5)}
    assert taken <= numbers | {(name, "{}") for name in ("spent", "ever", "answers")} | {
        ("period", "null"), ("period", "7"), ("period", "-1"), ("answers", "7"), ("answers", "-1"), ("answers", '"00"'),
    }  # fmt: skip


def test_every_missing_key_is_refused_but_those_of_entries() -> None:
    text = stored()
    kept = [path for path in places(json.loads(text)) if path and not refused(without(text, path))]
    assert {path[0] for path in kept} <= {"spent", "ever", "answers"}
    assert all(isinstance(path[-1], str) and len(path) > 1 for path in kept)


def test_a_further_key_is_refused() -> None:
    with pytest.raises(
        SpecError, match=r"the client's storage must be an object with the keys client_state, secret, .* shown"
    ):
        opened(with_value(stored(), ("note",), 1))


def test_an_answer_that_is_none_of_the_collection_is_refused() -> None:
    text = stored()
    own = illness().fingerprint.hex()
    [window, _] = json.loads(text)["answers"][own]
    for place, value in ((1, 1), (2, "0000"), (2, "04")):
        with pytest.raises(SpecError, match="answers must be reports of the collection"):
            opened(with_value(text, ("answers", own, window, place), value))


def test_random_damage_is_refused_in_one_way() -> None:
    """Characters that are lost, doubled or replaced, in 3,000 texts."""
    text, rng, others = stored(), generator("damaged states"), '0123456789abcdef{}[]",:-.eN \u00e9'
    refused = 0
    for _ in range(3000):
        at, kind = int(rng.integers(len(text))), int(rng.integers(3))
        middle = ("", 2 * text[at], others[int(rng.integers(len(others)))])[kind]
        damaged = text[:at] + middle + text[at + 1 :]
        try:
            opened(damaged)
        except SpecError:
            refused += 1
        except Exception as error:
            raise AssertionError(damaged) from error
    assert refused > 1000


# ---------------------------------------------------------------------- the state of version 1


def old_name(collection: Collection, symbol: int) -> str:
    text = b"uldp-client-1\0" + SECRET + collection.fingerprint + bytes([3]) + symbol.to_bytes(8, "little")
    return hashlib.shake_256(text).digest(16).hex()


def old_state(collection: Collection, numbers: dict[int, int], **fields: Any) -> str:
    """As version 1 wrote it: after so many reports of each symbol."""
    loss = collection.mechanism.epsilon_after
    ledger = {old_name(collection, symbol): [number, loss(number)] for symbol, number in numbers.items()}
    state = {"client_state": 1, "secret": SECRET.hex(), "period_ms": DAY, "period": NOON // DAY}
    return json.dumps(state | {"spent": {}, "ever": ledger, "answers": {}} | fields)


def after(text: str, collection: Collection | None = None, **budget: Any) -> dict[str, Any]:
    store = Memory()
    store.text = text
    client(store, collection, **budget)
    return json.loads(store.text or "")


def test_entries_of_symbols_become_one_of_the_collection() -> None:
    collection = illness()
    own, loss = collection.fingerprint.hex(), collection.mechanism.epsilon_after
    state = after(old_state(collection, {0: 50, 3: 2}))
    assert (state["client_state"], state["secret"]) == (2, SECRET.hex())
    assert state["ever"] == {own: [52, pytest.approx(4 * loss(13))]}
    assert old_name(collection, 0) not in json.dumps(state)


def test_the_state_after_the_change_does_not_depend_on_the_values() -> None:
    states = [after(old_state(illness(), numbers)) for numbers in ({0: 12}, {1: 12}, {0: 3, 1: 3, 2: 3, 3: 3})]
    assert states[0] == states[1] == states[2]


def test_no_budget_is_given_back() -> None:
    """Also where a person has had more values than are assumed now."""
    collection = illness()
    numbers = dict.fromkeys(range(4), 30)
    before = sum(cost for _, cost in json.loads(old_state(collection, numbers))["ever"].values())
    [[number, cost]] = after(old_state(collection, numbers), distinct_values=1)["ever"].values()
    assert (number, cost >= before) == (120, True)
    store = Memory()
    store.text = old_state(collection, numbers)
    assert not answers(client(store, lifetime=before - 0.1, distinct_values=1), "flu", NOON)
    assert answers(client(store, lifetime=before + 0.1, distinct_values=1), "flu", NOON)


def test_a_window_that_was_answered_keeps_its_answer() -> None:
    """Written by version 1: the same columns; and the same memos."""
    store = Memory()
    report = message(client(store, secret=SECRET).report("flu", NOON))
    answered = json.loads(store.text or "")["answers"]
    loss = illness().mechanism.epsilon_after(1)
    spent = {old_name(illness(), 0): [1, loss]}
    store.text = old_state(illness(), {0: 1}, answers=answered, spent=spent)
    asked = client(store, epsilon=1.0)
    assert message(asked.report("gout", NOON + HOUR)) == report
    assert json.loads(store.text)["spent"] == {illness().fingerprint.hex(): [1, pytest.approx(loss)]}


def test_collections_are_taken_over_one_by_one() -> None:
    """Version 1 does not say whose an entry is: what another collection has spent stays until its client opens."""
    one, fresh = illness(), illness(None, id="fresh")
    both = json.loads(old_state(one, {1: 5}))
    both["ever"] |= {old_name(fresh, 0): [3, 3.0]}
    state = after(json.dumps(both))
    assert sorted(map(len, state["ever"])) == [32, 64]
    assert not answers(client(opened(json.dumps(state)), lifetime=7.6, epsilon=9), "flu", NOON + DAY)
    state = after(json.dumps(state), fresh)
    assert state["ever"][fresh.fingerprint.hex()] == [3, 3.0]
    assert sorted(map(len, state["ever"])) == [64, 64]


def test_an_earlier_version_refuses_the_present_text() -> None:
    """It asks for client_state 1."""
    assert json.loads(stored())["client_state"] == 2
