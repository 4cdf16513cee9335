"""Dimensions that a door sets: by hand and exhaustively, with senders that want to set them themselves."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support.messages.set_dimensions import ALL, ARM, COUNTRY, KEYS, NET, of
from tests.support.messages_cases import BATCH_HEADER, NOON, REPORT_HEADER, decoder, long, packed, single
from tests.support.tolerance import generator
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.set_groups import SetGroups, set_in_batch

AT_GATEWAY = SetGroups((ALL,), "gateway", KEYS)
AT_READER = SetGroups((ALL,), "attribute", (("net", "speed"),))


def stated(arm: str, country: str, net: str, cohort: int) -> int:
    """The number of a report, by counting all combinations in order."""
    sizes = (["control", "new", "other"], ["DE", "FR", "\u00c9", "other"], ["fast", "other"], [0, 1])
    return list(itertools.product(*sizes)).index((arm, country, net, cohort))


def accepted(message: bytes, collection: Collection = ALL) -> list[int]:
    """Cohort numbers of the accepted reports; the others must be out of range."""
    decoded = decoder([collection]).decode([message])
    assert {each.reason for each in decoded.rejections} <= {Reason.COHORT_RANGE}
    return [number for batch in decoded.batches for number in batch.cohorts.tolist()]


FORMS: dict[str, Callable[[int], bytes]] = {
    "single": lambda number: single(ALL, cohort=long(number)),
    "single object": lambda number: REPORT_HEADER + single(ALL, cohort=long(number)),
    "packed": lambda number: packed(ALL, [(number, NOON, bytes(16), b"\2")]),
    "packed object": lambda number: BATCH_HEADER + packed(ALL, [(number, NOON, bytes(16), b"\2")]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("attributes", "country"),
    [
        ([("cc", "DE")], "DE"),
        ([("x", "DE"), ("cc", b"FR")], "FR"),
        ([("cc", "E\u0301")], "\u00c9"),  # canonical form
        ([("cc", "\u00c9".encode())], "\u00c9"),
        ([("cc", b"\xc9")], "other"),  # no UTF-8
        ([], "other"),
        ([("cc", None)], "other"),
        ([("cc", "\ud800")], "other"),
        ([("cc", "PL")], "other"),
        ([("cc", "de")], "other"),
        ([("CC", "DE")], "other"),
        ([("country", "DE")], "other"),
        ([("cc", "DE"), ("cc", "FR")], "other"),  # nobody can tell which one the proxy set
    ],
    ids=str,
)
def test_a_door_sets_its_dimension_and_no_other(form: str, attributes: Any, country: str) -> None:
    for arm, cohort in itertools.product(("control", "new", "other"), (0, 1)):
        sent = FORMS[form](stated(arm, "other", "other", cohort))
        assert accepted(AT_GATEWAY.in_message(sent, attributes)) == [stated(arm, country, "other", cohort)]


@pytest.mark.parametrize("form", FORMS)
def test_no_sender_states_what_a_door_sets(form: str) -> None:
    """Every number that fits into a report: those that name a set dimension, or no group at all, are out of range."""
    free = {stated(arm, "other", "other", cohort) for arm in ("control", "new", "other") for cohort in (0, 1)}
    numbers = range(-5, 4 * ALL.num_strata) if form.startswith("single") else range(4 * ALL.num_strata)
    for number in (*numbers, *((1 << 31) - 1, -(1 << 31))[: 2 * form.startswith("single")]):
        got = accepted(AT_GATEWAY.in_message(FORMS[form](number), [("cc", "DE"), ("net", "fast")]))
        assert len(got) == (number in free)
        assert all(stated("control", "DE", "other", 0) <= each for each in got)


def test_the_last_door_keeps_what_earlier_ones_set() -> None:
    sent = single(ALL, cohort=long(stated("new", "other", "other", 1)))
    behind = AT_READER.in_message(AT_GATEWAY.in_message(sent, [("cc", "FR")]), [("speed", "fast"), ("cc", "DE")])
    assert accepted(behind) == [stated("new", "FR", "fast", 1)]
    assert accepted(AT_READER.in_message(AT_READER.in_message(sent, [("speed", "fast")]), [])) == []


def test_many_reports_of_a_pack_are_set_one_by_one() -> None:
    rng = generator("set groups")
    numbers = rng.integers(0, ALL.num_strata + 5, 500)
    message = packed(ALL, [(int(number), NOON, bytes([i % 250]) * 16, b"\1") for i, number in enumerate(numbers)])
    one_by_one = [FORMS["single"](int(number)) for number in numbers]
    expected = [each for one in one_by_one for each in accepted(AT_GATEWAY.in_message(one, [("cc", "DE")]))]
    assert accepted(AT_GATEWAY.in_message(message, [("cc", "DE")])) == expected
    assert 50 < len(expected) < 450


def test_malformed_messages_stay_what_they_are() -> None:
    """No message that the decoder refuses becomes one that it accepts, and nothing is raised."""
    rng = generator("malformed groups")
    whole = [make(stated("new", "other", "other", 1)) for make in FORMS.values()]
    broken = [message[:end] for message in whole for end in range(len(message))]
    for message in whole:
        for _ in range(300):
            spoiled = bytearray(message)
            spoiled[rng.integers(len(spoiled))] ^= 1 << int(rng.integers(8))
            broken.append(bytes(spoiled))
    for message in broken:
        before = decoder([ALL]).decode([message])
        after = decoder([ALL]).decode([AT_GATEWAY.in_message(message, [("cc", "DE")])])
        reasons = {each.reason for each in after.rejections}
        assert sum(map(len, after.batches)) <= sum(map(len, before.batches))
        assert reasons <= {each.reason for each in before.rejections} | {Reason.COHORT_RANGE}


def test_other_collections_are_not_touched() -> None:
    plain = of(ARM, name="plain")
    doors = SetGroups((plain, ALL), "gateway", KEYS)
    message = single(plain, cohort=long(1))
    assert doors.in_message(message, [("cc", "DE")]) is message
    assert not SetGroups((plain,), "gateway", ()).is_needed
    assert not SetGroups((of(COUNTRY),), "attribute", ()).is_needed  # what the gateway set is trusted behind it
    assert SetGroups((of(NET),), "gateway", ()).is_needed  # nobody may state it before the reader does


def test_one_attribute_can_set_several_dimensions() -> None:
    europe = {"name": "europe", "values": ["DE", "FR"], "set_by": "gateway"}
    both = of(COUNTRY, europe, num_cohorts=1)
    doors = SetGroups((both,), "gateway", (*KEYS, ("europe", "cc")))
    assert accepted(doors.in_message(single(both, cohort=long(3 * 3 + 2)), [("cc", "FR")]), both) == [1 * 3 + 1]


def test_workers_get_an_equal_copy() -> None:
    copy = pickle.loads(pickle.dumps(AT_GATEWAY))
    assert copy == AT_GATEWAY and hash(copy) == hash(AT_GATEWAY)
    message = FORMS["single"](stated("new", "other", "other", 0))
    assert copy.in_message(message, [("cc", "DE")]) == AT_GATEWAY.in_message(message, [("cc", "DE")])


def test_simulated_reports_are_those_behind_all_doors() -> None:
    arms, countries, nets = ["new", "x", "control"], ["FR", "DE", "PL"], ["", "fast", "fast"]
    batch = ALL.perturb(["0", "1", "2"], generator("behind"), dimensions={"arm": arms})
    behind = set_in_batch(ALL, batch, {"country": countries, "net": nets})
    listed = zip(["new", "other", "control"], ["FR", "DE", "other"], ["other", "fast", "fast"], batch.cohorts % 2)
    assert behind.cohorts.tolist() == [stated(*row) for row in listed]
    assert np.array_equal(behind.payloads, batch.payloads)
