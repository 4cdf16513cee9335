"""Numbers become bins: edges that all machines agree on, clamped ends, and texts that stand for no number."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.ldp.made_collections import made
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import Collection, SpecError
from uldp_transforms.ldp.alphabets import Ordered


def bins(alphabet: Ordered, values: Any) -> list[int]:
    return alphabet.encode(values, np.zeros(len(values), dtype=np.int64), 1).tolist()


def collection(mechanism: str = "sw", **alphabet: Any) -> Collection:
    spec = {"id": "ordered"} | alphabet
    return made(spec, {"id": mechanism, "epsilon": 1}, id="numbers")


def test_linear_edges_are_rounded_once():
    edges = Ordered(low=0.1, high=0.7, num_bins=6).bin_edges.tolist()
    assert edges == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    assert Ordered(low=0, high=450).bin_edges.tolist() == [450 * place / 32 for place in range(33)]


def test_logarithmic_edges_have_four_digits():
    edges = Ordered(low=1, high=1e6, num_bins=12, scale="log").bin_edges.tolist()
    assert edges[::2] == [1, 10, 100, 1000, 10_000, 100_000, 1_000_000]
    assert edges[1::2] == [3.162, 31.62, 316.2, 3162, 31_620, 316_200]


@given(st.lists(st.floats(-1e14, 1e14), min_size=3, max_size=9, unique=True), st.floats(allow_nan=False))
def test_a_bin_is_the_number_of_inner_edges_at_most_as_large(edges: list[float], number: float):
    alphabet = Ordered(edges=sorted(edges))
    if abs(number) == float("inf"):
        with pytest.raises(SpecError, match="1 not finite"):
            bins(alphabet, [number])
    else:
        expected = sum(Fraction(edge) <= Fraction(number) for edge in alphabet.bin_edges[1:-1].tolist())
        assert bins(alphabet, [number]) == bins(alphabet, [repr(number)]) == [expected]


def test_the_fingerprint_is_of_the_edges_and_the_unit():
    """However the edges are given; other edges, units and others mean other reports."""
    same = [collection(low=0, high=4, num_bins=4), collection(edges=[0, 1, 2, 3, 4])]
    other = [
        collection(edges=[0, 1, 2, 3, 5]),
        collection(edges=[0, 1, 2, 3, 4], unit="s"),
        collection(edges=[0, 1, 2, 3, 4], others=["none"]),
    ]
    assert same[0].fingerprint == same[1].fingerprint
    assert len({item.fingerprint for item in (*same, *other)}) == 4
    assert '"edges":["0.0","1.0","2.0","3.0","4.0"]' in same[0].canonical


def test_atoms_are_not_in_the_fingerprint_and_without_any_not_in_the_json():
    plain, atoms = collection(low=0, high=60), collection(low=0, high=60, atoms=[30, 59.5])
    assert plain.fingerprint == atoms.fingerprint
    assert "atoms" not in plain.to_json()["alphabet"]
    assert atoms.to_json()["alphabet"]["atoms"] == [30.0, 59.5]
    again = Collection.from_json(json.loads(json.dumps(atoms.to_json())))
    assert again == atoms
    assert again.alphabet.atom_bins == {16, 31}
    assert plain.alphabet.atom_bins == set()


def test_numbers_are_simulated_from_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    item = collection(low=0, high=60, num_bins=4, others=["cancelled"])
    path, values, output = (tmp_path / name for name in ("N.json", "V.csv", "N.avro"))
    path.write_text(json.dumps(item.to_json()), encoding="utf-8")
    values.write_text("value\n-3\n59.5\ncancelled\n1e2\n", encoding="utf-8")
    arguments = ["--collection", str(path), "--values", str(values), "--output", str(output)]
    assert uldp.main(["simulate", *arguments]) == 0
    with output.open("rb") as file:
        assert len(list(fastavro.reader(file))) == 4
    values.write_text("value\n-3\nlate\n", encoding="utf-8")
    capsys.readouterr()
    assert uldp.main(["simulate", *arguments]) != 0
    said = capsys.readouterr().err
    allowed = "a number such as 12.5, or one of the 1 texts of Ordered.others"
    assert f"line 3 must have {allowed}; rows with other values: 1 of 2" in said
    assert "late" not in said.replace("simulate", "")


def test_bins_that_hold_a_number_of_a_range_are_sensitive():
    """Also the clamped ends, whatever the range is; an end of a range is not part of it."""
    alphabet = Ordered(low=0, high=6, num_bins=6, others=("x", "y"), sensitive=((None, -5), (2.5, 4), (9, None), "y"))
    assert alphabet.sensitive_places == (0, 2, 3, 5, 7)
    assert (alphabet.num_sensitive, alphabet.num_others) == (5, 1)
    assert alphabet.symbols_in_order.tolist() == [0, 5, 1, 2, 6, 3, 7, 4]
    texts = ["-1", "1.5", "2", "3.9", "4", "99", "x", "y"]
    assert bins(alphabet, texts) == [0, 5, 1, 2, 6, 3, 7, 4]
    assert bins(alphabet, [-1, 1.5, 2, 3.9, 4, 99]) == [0, 5, 1, 2, 6, 3]
    assert alphabet.symbol_table(alphabet.known_values, 1)[0].tolist() == alphabet.symbols_in_order.tolist()


def test_the_fingerprint_has_the_places_of_what_is_sensitive():
    """However the ranges are given; a declaration that everything is sensitive changes nothing."""
    whole = collection("urr", low=0, high=4, num_bins=4)
    same = [
        collection("urr", low=0, high=4, num_bins=4, sensitive=ranges) for ranges in ([[2, None]], [[3, 9], [2, 3]])
    ]
    assert same[0].fingerprint == same[1].fingerprint != whole.fingerprint
    assert '"sensitive":[2,3]' in same[0].canonical
    assert collection("urr", low=0, high=4, num_bins=4, sensitive=[[None, None]]).fingerprint == whole.fingerprint
    assert "sensitive" not in whole.to_json()["alphabet"]
    again = Collection.from_json(json.loads(json.dumps(same[0].to_json())))
    assert again == same[0]
