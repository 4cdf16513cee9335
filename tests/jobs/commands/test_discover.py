"""Values that nobody listed, from the command line: tokens, reports, the job, and stored counts again."""

from __future__ import annotations

import itertools
import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import replay
from tests.support.messages_cases import KRR, container, write_files
from tests.support.shown_intervals import faults
from tests.support.tolerance import generator
from uldp_transforms.jobs import estimate, tokens
from uldp_transforms.jobs.reestimate import reestimate_command as reestimate
from uldp_transforms.jobs.simulate import simulate_command as simulate
from uldp_transforms.ldp import Collection, SpecError
from uldp_transforms.ldp.alphabets.prefixes import MAX_TOKENS
from uldp_transforms.messages import wire
from uldp_transforms.rows.row_types import DISCOVERED_SCHEMA, DiscoveredValue
from uldp_transforms.windows import Windows

HOUR = 3_600_000
WORDS = {"banana": 0.4, "cherry": 0.3, "elder": 0.2, "berry": 0.1}
TOKENS = ("ba", "na", "che", "rry", "el", "der", "be", "k", "i", "w")


def words(mechanism: str = "krr", **alphabet: Any) -> Collection:
    given = {"id": "prefixes", "num_buckets": 24, "tokens": [*TOKENS], "lengths": [1, 2, None]}
    return Collection.from_json(
        {
            "id": "words",
            "version": 1,
            "alphabet": given | alphabet,
            "mechanism": {"id": mechanism, "epsilon": 4.0},
            "num_cohorts": 64,
        }
    )


def people(n: int, *names: object) -> list[str]:
    return generator("discover", *names).choice(list(WORDS), n, p=list(WORDS.values())).tolist()


def write_words(folder: Path) -> None:
    """A collection and the reports of three hours."""
    item, rng = words(), generator("reports of words")
    batch = item.perturb(people(12_000), rng, np.repeat(np.arange(3), 4000) * HOUR)
    reports = container([(1, message) for message in wire.encode_reports(batch)])
    candidates = "banana\nkiwi\n"
    write_files(folder, {"words.json": item, "krr.json": KRR, "in.avro": reports, "candidates.txt": candidates})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The present folder, with these files."""
    write_words(tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def folder_of_job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with these files, and with ``out`` of a job that searched each hour."""
    folder = tmp_path_factory.mktemp("job")
    write_words(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(estimate, "--collection words.json --input in.avro --output out --window 1h --discover --write_counts")
    return folder


@pytest.fixture
def job(folder_of_job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The present folder, with what the job wrote, whose rows are only read."""
    monkeypatch.chdir(folder_of_job)


def lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def run(program: Any, arguments: str) -> None:
    assert program.main(shlex.split(arguments)) == 0


@pytest.mark.usefixtures("job")
def test_the_job_writes_what_it_finds_window_by_window() -> None:
    rows = lines("out/discovered.jsonl")
    windows = {row["window_start"] for row in rows}
    assert len(windows) == 3
    for window in windows:
        found = {row["value"]: row["frequency"] for row in rows if row["window_start"] == window}
        assert {"banana", "cherry"} <= set(found)
    assert set(rows[0]) == set(DiscoveredValue._fields) == {field["name"] for field in DISCOVERED_SCHEMA["fields"]}
    assert all(row["num_reports"] == 4000 and row["q_value"] <= 0.05 and row["simulated"] is False for row in rows)
    assert [row["estimates"] for row in lines("out/estimates.jsonl")] == [[]] * 3  # nobody named a candidate
    assert faults(rows) == []


@pytest.mark.usefixtures("folder")
def test_candidates_and_the_search_go_together() -> None:
    run(
        estimate,
        "--collection words.json --collection krr.json --input in.avro --output out --discover --candidates "
        "candidates.txt",
    )
    (row,) = lines("out/estimates.jsonl")
    assert [value["value"] for value in row["estimates"]] == ["banana", "kiwi"]
    found = {row["value"]: row for row in lines("out/discovered.jsonl")}
    assert set(found) >= {"banana", "cherry", "elder"}
    for value, share in WORDS.items():
        assert value not in found or found[value]["ci_low"] <= share <= found[value]["ci_high"]


@pytest.mark.usefixtures("job")
def test_stored_counts_are_searched_again_and_sums_of_windows_find_more() -> None:
    again = "--collection words.json out --discover"
    run(reestimate, f"{again} --output again")
    assert Path("again/discovered.jsonl").read_bytes() == Path("out/discovered.jsonl").read_bytes()
    run(reestimate, f"{again} --output summed --window 3h")
    rows = lines("summed/discovered.jsonl")
    assert {row["num_reports"] for row in rows} == {12_000}
    assert {row["window_end"] for row in rows} == {"1970-01-01T03:00:00Z"}
    assert {row["value"] for row in rows} >= {"banana", "cherry", "elder"}
    Path("found.txt").write_text("\n".join(row["value"] for row in rows), encoding="utf-8")
    run(reestimate, "--collection words.json out --output listed --candidates found.txt")
    for row in lines("listed/estimates.jsonl"):
        assert [value["value"] for value in row["estimates"]] == [row["value"] for row in rows]


@pytest.mark.usefixtures("job")
def test_the_whole_period_is_searched_as_one_window(capsys: pytest.CaptureFixture[str]) -> None:
    run(reestimate, "--collection words.json out --output whole --window 3h --discover")
    capsys.readouterr()
    run(reestimate, "out --window all --collection words.json --discover")
    rows = lines("out/totals-discovered.jsonl")
    assert rows == lines("whole/discovered.jsonl") != []
    printed = capsys.readouterr().out
    assert "\nunlisted value" in printed
    assert all(f"{row['value']} " in printed and f"{row['frequency']:.4f}" in printed for row in rows)
    run(reestimate, "out --window all --collection words.json --candidates candidates.txt")
    assert not Path("out/totals-discovered.jsonl").exists(), "it would be of another total"


@pytest.mark.usefixtures("folder")
def test_windows_that_are_suppressed_have_no_rows() -> None:
    run(estimate, "--collection words.json --input in.avro --output out --window 1h --discover --min_reports 5000")
    assert lines("out/discovered.jsonl") == []
    assert {row["status"] for row in lines("out/estimates.jsonl")} == {"suppressed"}


def test_a_stream_finds_values_in_every_pane(tmp_path: Path) -> None:
    item = words()
    batch = item.perturb(people(8000, "stream"), generator("stream of words"), np.full(8000, 60_000))
    messages = wire.encode_reports(batch)
    job = replay.streaming_job(
        [item], Windows(size=HOUR), allowed_lateness=HOUR, discover=True, output=str(tmp_path), min_reports=100
    )
    events = [
        replay.arrive(HOUR // 2, messages[::2]),
        replay.watermark(HOUR + 1),
        replay.arrive(HOUR + 2, messages[1::2]),
    ]
    replay.run(job, events)
    rows = [row for path in tmp_path.glob("discovered-*.jsonl") for row in lines(str(path))]
    panes: dict[str, set[str]] = {row["pane_timing"]: set() for row in rows}
    for row in rows:
        panes[row["pane_timing"]].add(row["value"])
    assert set(panes) == {"ON_TIME", "LATE"}
    assert all({"banana", "cherry"} <= values for values in panes.values())


# ---------------------------------------------------------------------- tokens


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
    item = words(tokens=made, lengths=[2, 4, None])
    write_files(tmp_path, {"words.json": item})
    Path("values.csv").write_text("value\n" + "\n".join(people(8000, "tokens")), encoding="utf-8")
    run(simulate, "--collection words.json --values values.csv --output in.avro --seed 1")
    run(estimate, "--collection words.json --input in.avro --output out --discover")
    assert {"banana", "cherry"} <= {row["value"] for row in lines("out/discovered.jsonl")}
