"""A collection's noun: what texts call what is counted, of which no report depends."""

from __future__ import annotations

import dataclasses

import pytest

from tests.support.cases import ALL_COLLECTIONS
from tests.support.ldp.dimensions import PLAIN
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets.noun import ANSWER, PERSON, REPORT, Noun
from uldp_transforms.ldp.client.client_form import client_form

FLIGHTS = Noun(one="flight", many="flights")


def called(noun: Noun, collection: Collection = PLAIN) -> Collection:
    return dataclasses.replace(collection, noun=noun)


def test_the_noun_is_in_the_json_form_and_nowhere_that_a_client_sees():
    collection = called(FLIGHTS)
    assert collection.to_json()["noun"] == {"one": "flight", "many": "flights"}
    assert Collection.from_json(collection.to_json()) == collection != PLAIN
    assert client_form(collection) == client_form(PLAIN)


@pytest.mark.parametrize("name", ALL_COLLECTIONS)
def test_fingerprints_of_all_kinds_do_not_depend_on_it(name):
    assert called(FLIGHTS, ALL_COLLECTIONS[name]).fingerprint == ALL_COLLECTIONS[name].fingerprint


@pytest.mark.parametrize("noun", [None, {"one": "answer", "many": "answers"}])
def test_an_absent_noun_is_answer_and_is_not_written(noun):
    collection = Collection.from_json(PLAIN.to_json() | {"noun": noun})
    assert collection == PLAIN
    assert "noun" not in collection.to_json()


def test_a_declared_noun_is_used_and_another_one_instead_of_none():
    assert [noun.or_else(REPORT) for noun in (FLIGHTS, ANSWER)] == [FLIGHTS, REPORT]
    assert [PERSON.many, REPORT.counted(1), REPORT.counted(2)] == ["people", "1 report", "2 reports"]


@pytest.mark.parametrize(("number", "text"), [(1, "1 flight"), (0, "0 flights"), (508_850, "508,850 flights")])
def test_numbers_take_the_singular_and_the_plural(number, text):
    assert FLIGHTS.counted(number) == text
