"""The window of a client: in the collection and its fingerprint, and as arithmetic, against the windows of jobs."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest

from tests.support.tolerance import generator
from uldp_transforms.calendar_windows import CalendarPeriods
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.client.client_form import client_form
from uldp_transforms.ldp.client_window import DAY, ClientWindow
from uldp_transforms.schemas import load
from uldp_transforms.windows import moment_of

PLAIN = {
    "id": "illness",
    "version": 1,
    "alphabet": {"id": "closed", "values": ["flu", "cold", "none"]},
    "mechanism": {"id": "krr", "epsilon": 1.0, "epsilon_inf": 2.0},
}
BERLIN = {"client_window": "1d", "client_timezone": "Europe/Berlin"}
ZONES = ("Europe/Berlin", "America/New_York", "Pacific/Apia", "Asia/Kathmandu", "UTC")


def times_around(zone: str) -> list[int]:
    """Random times of 1970 to 2050, and times of a year whose clocks change, on both sides of each hour."""
    spread = generator("client window", zone).integers(0, 80 * 365 * DAY, 50)
    hours = moment_of("2024-03-31T00:00:00Z") + np.arange(36)[:, np.newaxis] * 3_600_000 + np.array([-1, 0, 1])
    return [*spread.tolist(), *hours.ravel().tolist(), *(hours.ravel() + 217 * DAY).tolist()]


@pytest.mark.parametrize("text", ["1d", "7d", "1w", "2w"])
@pytest.mark.parametrize("zone", ZONES)
def test_windows_of_a_place_are_those_of_calendar_windows(zone: str, text: str) -> None:
    """These are computed otherwise, from tables of the changes of clocks."""
    asked = ClientWindow.of(text, zone)
    periods = CalendarPeriods(length=asked.length // DAY, phase=0, unit="d", timezone=zone)
    for time in times_around(zone):
        numbers = asked.number_of(time), asked.start_of(time), asked.end_of(time)
        assert numbers == (periods.number_of(time), periods.start_of(time), periods.end_of(time)), time
    times = np.array(times_around(zone))
    assert asked.starts_of(times).tolist() == [asked.start_of(time) for time in times.tolist()]
    assert asked.starts_of(times[:0]).tolist() == []


@pytest.mark.parametrize(("text", "length"), [("1m", 60_000), ("6h", 21_600_000), ("1d", DAY), ("1w", 7 * DAY)])
def test_windows_without_a_place_are_multiples_of_their_length(text: str, length: int) -> None:
    asked = ClientWindow.of(text)
    for time in (-1, 0, 1, length - 1, length, 20_000 * DAY + 12_345):
        start = time // length * length
        assert (asked.start_of(time), asked.end_of(time)) == (start, start + length)
        assert asked.starts_of(np.array([time, time])).tolist() == [start, start]


def test_windows_in_a_span_are_counted() -> None:
    asked = ClientWindow.of("1d", "Europe/Berlin")
    march, april, may = map(moment_of, ("2024-02-29T23:00:00Z", "2024-03-31T22:00:00Z", "2024-04-30T22:00:00Z"))
    assert asked.number_between(march, april) == 31
    assert asked.number_between(march, may) == 61
    assert asked.number_between(march, march + 1) == 1
    assert asked.number_between(march - 1, march + 1) == 2


def test_weeks_of_a_place_begin_on_its_mondays() -> None:
    asked = ClientWindow.of("1w", "Europe/Berlin")
    wednesday, monday = map(moment_of, ("2024-05-15T12:00:00Z", "2024-05-12T22:00:00Z"))
    assert (asked.start_of(wednesday), asked.end_of(wednesday)) == (monday, monday + 7 * DAY)


def test_a_collection_without_one_is_as_it_was() -> None:
    collection = Collection.from_json(PLAIN)
    assert collection.asked is None
    assert not {"client_window", "client_timezone"} & (set(collection.to_json()) | set(client_form(collection)))
    assert "client_" not in collection.canonical
    nulls = Collection.from_json(PLAIN | {"client_window": None, "client_timezone": None})
    assert nulls.fingerprint == collection.fingerprint


@pytest.mark.parametrize("fields", [{"client_window": "1d"}, {"client_window": "1w"}, BERLIN])
def test_it_is_in_the_fingerprint_and_in_the_form(fields: dict[str, str]) -> None:
    collection = Collection.from_json(PLAIN | fields)
    assert Collection.from_json(collection.to_json()) == collection
    assert collection.fingerprint != Collection.from_json(PLAIN).fingerprint
    assert {name: json.loads(collection.canonical)[name] for name in fields} == fields
    form = client_form(collection)
    assert form["client_window"] == {
        "milliseconds": 7 * DAY if fields["client_window"] == "1w" else DAY,
        "timezone": fields.get("client_timezone"),
    }
    jsonschema.validate(form, load("client.schema.json"))
    jsonschema.validate(collection.to_json(), load("collection.schema.json"))
