"""Sums of ledger rows, and warnings about collections at the start of a job: rows by hand, and each sentence."""

from __future__ import annotations

from typing import Any

import pytest

from uldp_transforms.jobs.records.ledger_sums import (
    add_up,
    imbalance,
    missing,
    periods_out_of_balance,
    summary,
    sums_of,
)
from uldp_transforms.jobs.records.unknown_repeats import (
    has_unknown_repeats,
    lookalikes,
    sentences_about_lookalikes,
    warnings_at_start,
    warnings_of,
)
from uldp_transforms.ldp import Collection
from uldp_transforms.spec.job_spec import JobSpec

NOTHING_UNREAD: dict[str, object] = {"unread_messages": {}, "unread_files": {}}


def row(received: int, accepted: int, duplicates: int = 0, start: str = "1", **more: Any) -> dict[str, Any]:
    place = {"collection_id": "c", "collection_version": 1, "window_start": start, "window_end": f"{start}+"}
    return place | {"received": received, "accepted": accepted, "duplicates": duplicates, "rejected": {}} | more


def test_what_is_missing_is_what_was_received_and_went_nowhere() -> None:
    assert missing(row(10, 5, 2, rejected={"a": 1, "b": 1})) == 1
    assert missing(row(10, 5, 2, rejected={"a": 3})) == 0
    assert missing(row(1, 2)) == -1


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (row(1, 1), []),
        (row(1, 1, in_transit=None), []),
        (row(3, 1), ["reports lost: 2"]),
        (row(1, 3), ["reports too many: 2"]),
        (row(1, 1, in_transit=4), ["windows lost: 4"]),
        (row(1, 1, in_transit=-4, collection_id=None), ["files or messages too many: 4"]),
        (row(3, 1, in_transit=4), ["reports lost: 2", "windows lost: 4"]),
    ],
)
def test_what_does_not_balance_is_said(of: dict[str, Any], said: list[str]) -> None:
    assert imbalance(of) == said


def test_a_period_balances_over_all_its_rows_and_no_other() -> None:
    """Of one version of a collection."""
    assert periods_out_of_balance([row(3, 0), row(0, 3), row(1, 1, start="2")]) == []
    wrong = [
        row(3, 0),
        row(0, 3, start="2"),
        row(2, 2, start="2", in_transit=1),
        row(5, 6, collection_id=None, in_transit=2),
    ]
    assert periods_out_of_balance(wrong) == [
        ("c", "1", "1+", "reports lost: 3"),
        ("c", "2", "2+", "reports too many: 3, windows lost: 1"),
        (None, "1", "1+", "reports too many: 1, files or messages lost: 2"),
    ]
    versions = [row(3, 0), row(0, 3, collection_version=2)]
    assert len(periods_out_of_balance(versions)) == 2
    assert (
        sums_of(versions)
        == {"received": 3, "accepted": 3, "duplicates": 0, "rejected": {}, "balanced": False} | NOTHING_UNREAD
    )
    sums = sums_of([row(3, 1, 1, rejected={"b": 1}), row(5, 2, 1, rejected={"a": 1, "b": 1}, in_transit=0)])
    assert (
        sums
        == {"received": 8, "accepted": 3, "duplicates": 2, "rejected": {"a": 1, "b": 2}, "balanced": True}
        | NOTHING_UNREAD
    )
    assert list(sums["rejected"]) == ["a", "b"]


def test_what_was_not_read_is_added_up_and_said() -> None:
    rows = [
        row(5, 5) | {"unread_messages": {"malformed": 2}, "unread_files": {"bad_magic": 1}},
        row(1, 1) | {"unread_files": {"bad_magic": 1, "corrupt_block": 1}},
        row(0, 0),
    ]
    sums = sums_of(rows)
    assert sums["balanced"]
    assert (sums["unread_messages"], sums["unread_files"]) == ({"malformed": 2}, {"bad_magic": 2, "corrupt_block": 1})
    assert add_up([sums, sums])["unread_files"] == {"bad_magic": 4, "corrupt_block": 2}
    assert summary(sums) == (
        "6 received = 6 accepted + 0 rejected; unread messages: 2 (malformed 2); "
        "unread files: 3 (bad_magic 2, corrupt_block 1)"
    )


def test_sums_are_said_in_one_line() -> None:
    assert summary(row(0, 0)) == "0 received = 0 accepted + 0 rejected"
    assert summary(row(9, 5, 1, rejected={"a": 1, "b": 2})) == (
        "9 received = 5 accepted + 1 duplicates + 3 rejected (a 1, b 2)"
    )


def test_runs_balance_if_each_does() -> None:
    good, bad = sums_of([row(2, 1, rejected={"b": 1})]), sums_of([row(3, 1, 1, rejected={"a": 2})])
    assert (
        add_up([good, bad, good])
        == {
            "received": 7,
            "accepted": 3,
            "duplicates": 1,
            "rejected": {"a": 2, "b": 2},
            "balanced": False,
        }
        | NOTHING_UNREAD
    )
    assert (
        add_up([good, good])["balanced"]
        and add_up([])
        == {
            "received": 0,
            "accepted": 0,
            "duplicates": 0,
            "rejected": {},
            "balanced": True,
        }
        | NOTHING_UNREAD
    )


# ------------------------------------------------------------------------------------------------------------ warnings

CYRILLIC, GREEK, WIDE = "\u0430bc", "\u0391bc", "\uff41bc"


def collection(id: str = "c", **more: Any) -> Collection:
    given = {"id": id, "version": 1, "alphabet": {"id": "closed", "values": ["x", "y"]}}
    return Collection.from_json(given | {"mechanism": {"id": "krr", "epsilon": 1.0}} | more)


def test_values_of_one_shape_look_alike() -> None:
    """The earlier one of each pair comes first; texts of ASCII alone are what they are."""
    assert list(lookalikes(["abc", "Abc", CYRILLIC, GREEK, WIDE])) == [("abc", CYRILLIC), ("Abc", GREEK), ("abc", WIDE)]
    assert list(lookalikes([CYRILLIC, "abc"])) == [(CYRILLIC, "abc")]
    assert list(lookalikes(["abc", "abd", "\u0431\u0432"])) == []


def test_collections_with_lookalikes_are_told() -> None:
    pair = {"id": "closed", "values": ["abc", CYRILLIC]}
    more = {"id": "closed", "values": ["abc", CYRILLIC, WIDE]}
    dimensions = [{"name": "place", "values": ["abc", GREEK.lower(), "Abc", GREEK]}]
    open_one = {"alphabet": {"id": "hashed", "num_buckets": 4}, "num_cohorts": 8}
    given = [
        collection("a", alphabet=pair),
        collection("b"),
        collection("c", alphabet=more),
        collection("d", **open_one, dimensions=dimensions),
    ]
    end = "; if one of them is a slip, remove it in the next version"
    assert list(sentences_about_lookalikes(given)) == [
        f"collection 'a' counts values that look alike apart: 'abc' and '\\u0430bc'{end}",
        f"collection 'c' counts values that look alike apart: 'abc' and '\\u0430bc' (and 1 more pairs){end}",
        f"collection 'd' counts values that look alike apart: 'Abc' and '\\u0391bc'{end}",
    ]


MEMO = {"mechanism": {"id": "krr", "epsilon": 1.0, "epsilon_inf": 2.0}}


def test_collections_with_memos_should_name_their_window() -> None:
    memos, asked = collection("m", **MEMO), collection("n", **MEMO, client_window="1d")
    assert [has_unknown_repeats(of) for of in (collection(), memos, asked)] == [False, True, False]
    assert warnings_of(iter([collection(), asked])) == []
    assert warnings_of(iter([collection(), memos, asked])) == [
        "collection 'm' keeps memos (epsilon_inf) and names no client_window, so intervals are valid only if nobody "
        "reports twice in a window, and the sentinels are off; add client_window to its next version"
    ]


def test_versions_that_are_not_pooled_are_told() -> None:
    def version(number: int, values: list[str]) -> Collection:
        return collection(version=number, question="q", alphabet={"id": "closed", "values": values})

    given = [version(1, ["x", "z"]), version(2, ["x", "y"]), version(3, ["y", "x"])]
    assert warnings_of(given) == [
        "question 'q' does not pool 'c' version 1, which has other values than the newest version; it keeps its own "
        "rows"
    ]


@pytest.mark.parametrize(
    ("windows", "said"),
    [
        ({"window": "1m"}, "window 1m"),
        ({"window": "90m"}, "window 90m"),
        ({"window": "1h", "slide": "10m"}, "window 1h, slide 10m"),
        ({"window": "1h", "window_offset": "30m"}, "window 1h, window_offset 30m"),
        ({"window": "1d", "timezone": "Asia/Kolkata"}, "window 1d, timezone Asia/Kolkata"),  # 5:30 ahead of UTC
        ({"window": "1h"}, None),
        ({"window": "1d", "slide": "1h"}, None),
        ({"window": "1mo", "timezone": "Europe/Berlin"}, None),
        ({}, None),
    ],
)
def test_windows_of_parts_of_hours_are_told(windows: dict[str, str], said: str | None) -> None:
    """For collections without client windows, because clients round event times to hours then."""
    spec = JobSpec.of(collections=[collection("m").to_json(), collection("n").to_json()], **windows)
    expected = [
        f"collection {name!r} names no client_window, so clients round event times down to the full hour (UTC) unless "
        f"the app sets a finer unit; windows that do not consist of such hours ({said}) then count reports of other "
        "times; add client_window to its next version, or use windows of whole hours"
        for name in ("m", "n")
    ]
    assert warnings_at_start(spec) == (expected if said else [])


def test_client_windows_need_no_warning() -> None:
    asked = JobSpec.of(collections=[collection("n", client_window="5m").to_json()], window="15m")
    assert warnings_at_start(asked) == []


def test_warnings_at_the_start_are_of_all_kinds() -> None:
    pair = {"id": "closed", "values": ["abc", CYRILLIC]}
    spec = JobSpec.of(collections=[collection("m", **MEMO, alphabet=pair).to_json()], window="1m")
    memos, hours, alike = warnings_at_start(spec)
    assert ("keeps memos" in memos, "full hour" in hours, "look alike" in alike) == (True, True, True)
