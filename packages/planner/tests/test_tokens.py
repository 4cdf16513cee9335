"""``uldp tokens``: tokens of a text, and values that are found by them."""

from __future__ import annotations

import itertools
import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.messages_cases import write_files
from tests.support.tolerance import generator
from uldp_transforms.jobs import estimate
from uldp_transforms.ldp import Collection, SpecError
from uldp_transforms.ldp.alphabets.prefixes import MAX_TOKENS
from uldp_transforms_planner.plan import tokens
from uldp_transforms_tables.simulate import simulate_command as simulate

WORDS = {"banana": 0.4, "cherry": 0.3, "elder": 0.2, "berry": 0.1}


def run(program: Any, arguments: str) -> None:
    assert program.main(shlex.split(arguments)) == 0


def test_merges_are_those_of_the_most_frequent_neighbours() -> None:
    """aab twice and ab: the pairs are ab 3 times, aa twice; then a ab twice."""
    assert tokens.merge_tokens(["aab", "aab", "ab"], 10) == ["a", "b", "ab", "aab"]
    assert tokens.merge_tokens(["aaaa", "aaaa"], 10) == ["a", "aa", "aaaa"]
    assert tokens.merge_tokens(["abc"], 10) == ["a", "b", "c"]
    assert tokens.merge_tokens(["abab", "abab"], 3) == ["a", "b", "ab"]


def test_merges_are_those_of_a_count_from_the_beginning_after_each() -> None:
    """Texts of four letters, against all pairs counted anew for every token."""
    rng = np.random.default_rng(3)
    texts = ["".join(text) for text in rng.choice(list("abcd"), (80, 9))]
    pieces, expected = [list(text) for text in texts], []
    characters = Counter("".join(texts))
    expected = sorted(characters, key=lambda c: (-characters[c], c))
    while len(expected) < 50:
        pairs = Counter(pair for piece in pieces for pair in itertools.pairwise(piece))
        pair = min(pairs, key=lambda pair: (-pairs[pair], pair))
        assert pairs[pair] > 1
        pieces = [tokens._merged(piece, pair) for piece in pieces]
        if "".join(pair) not in expected:
            expected.append("".join(pair))
    assert tokens.merge_tokens(texts, 50) == expected


@pytest.mark.parametrize(
    ("lengths", "most"), [([1] * 9 + [5], 1), ([1] * 8 + [4, 5], 4), ([3], 3), ([1] * 9 + [4, 5], 4)]
)
def test_nine_texts_in_ten_take_at_most_so_many_tokens(lengths: list[int], most: int) -> None:
    """Of ten texts, the ninth in the order of their numbers of tokens; of eleven the tenth."""
    assert tokens._most(["a" * length for length in lengths], ["a"]) == most


def test_of_all_tokens_of_a_file_as_many_are_learned_as_are_asked_for(tmp_path: Path) -> None:
    source = tmp_path / "text.txt"
    source.write_text(" e\N{COMBINING ACUTE ACCENT} \n\n", encoding="utf-8")
    args = tokens.configure(["--from", str(source), "--output", "x", "--number", str(MAX_TOKENS)])
    assert (args.texts, args.number) == (["\N{LATIN SMALL LETTER E WITH ACUTE}"], MAX_TOKENS)
    assert tokens.configure(["--from", str(source), "--output", "x"]).number == 2000
    with pytest.raises(SpecError, match=rf"^--number must be at most {MAX_TOKENS}, got {MAX_TOKENS + 1}$"):
        tokens.configure(["--from", str(source), "--output", "x", "--number", str(MAX_TOKENS + 1)])


def test_tokens_of_a_text_make_a_collection_in_which_values_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("bandana\nbanner\ncherish\nerr\nelderly\nmerry\n\nerr\n", encoding="utf-8")
    run(tokens, "--from text.txt --number 15 --output tokens.json")
    said = "tokens: 15 from 7 line(s), 13 of them single characters\ntokens: nine texts in ten take at most 6 of them\n"
    assert capfd.readouterr() == ("", said)  # e l d er l y
    made = json.loads(Path("tokens.json").read_text(encoding="utf-8"))
    alphabet = {"id": "prefixes", "num_buckets": 24, "tokens": made, "lengths": [2, 4, None]}
    krr = {"id": "krr", "epsilon": 4.0}
    item = Collection.from_json(
        {"id": "words", "version": 1, "num_cohorts": 64} | {"alphabet": alphabet, "mechanism": krr}
    )
    write_files(tmp_path, {"words.json": item})
    people = generator("discover", "tokens").choice(list(WORDS), 8000, p=list(WORDS.values())).tolist()
    Path("values.csv").write_text("value\n" + "\n".join(people), encoding="utf-8")
    run(simulate, "--collection words.json --values values.csv --output in.avro --seed 1")
    run(estimate, "--collection words.json --input in.avro --output out --discover")
    found = Path("out/discovered.jsonl").read_bytes().splitlines()
    assert {"banana", "cherry"} <= {json.loads(line)["value"] for line in found}
