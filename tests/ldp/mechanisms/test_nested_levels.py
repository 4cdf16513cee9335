"""Levels of values: the guarantee of each, enumerated through the client's own words; variances; every kind of list."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.support.cases import ALL_COLLECTIONS
from tests.support.tolerance import binomial_limits, chi_square_limits, generator, normal_limit, within
from uldp_transforms.jobs import audit as program
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.alphabets import PersonalTags
from uldp_transforms.ldp.client.client_form import client_form
from uldp_transforms.ldp.mechanisms import NestedLevels, UtilityOptimizedSubsetSelection
from uldp_transforms.ldp.privacy import audit
from uldp_transforms.ldp.sampling import WORD

NODE = shutil.which("node")
SAMPLERS = Path(__file__).parents[3] / "clients" / "javascript" / "src" / "samplers.js"


def leveled(levels: Sequence[tuple[float, int]], num_clear: int, of: str = "uss") -> NestedLevels:
    """Levels with so many values, by epsilon, and values in clear."""
    texts = iter(f"v{i}" for i in itertools.count())
    spec = [{"epsilon": epsilon, "values": list(itertools.islice(texts, number))} for epsilon, number in levels]
    total = sum(number for _, number in levels)
    return NestedLevels(num_symbols=total + num_clear, num_sensitive=total, levels=spec, of=of)


def collection_of(mechanism: NestedLevels) -> Collection:
    named = list(mechanism.named_symbols)
    clear = [f"clear {i}" for i in range(mechanism.num_symbols - len(named))]
    alphabet = {"id": "closed", "values": clear + named, "sensitive": named if clear else None}
    return Collection.from_json({"id": "c", "version": 1, "alphabet": alphabet, "mechanism": mechanism.to_json()})


# ---------------------------------------------------------------------- the guarantee

EXAMPLE = leveled([(0.7, 3), (2.0, 6)], 4, "urr")


def test_the_checked_example() -> None:
    """3 values at 0.7, 6 at 2, 4 in clear: largest log ratios .7 and 2; n Var of rare values 2.933 and 1.105."""
    found = audit(collection_of(EXAMPLE))
    assert found.faults == ()
    assert [f"{level.effective_epsilon:.4f}" for level in found.levels] == ["0.7000", "2.0000"]
    rare = np.where(np.arange(13) < 9, 1e-6, (1 - 9e-6) / 4)
    first, *_, second = EXAMPLE.variances(rare)[:4]
    assert (f"{first:.3f}", f"{second:.3f}") == ("2.933", "1.105")


@pytest.mark.parametrize("of", ["urr", "uss", "urap"])
def test_each_pair_of_values_has_the_odds_of_the_table(of: str) -> None:
    """By enumeration: a value of level a against one of level b has e**epsilon_a if b >= a, and is ruled out if not."""
    mechanism = leveled([(0.5, 2), (1.0, 2), (3.0, 2)], 2, of)
    _, rows = mechanism.channel()
    assert [sum(column) for column in zip(*rows)] == [1] * 8
    levels = [0, 0, 1, 1, 2, 2, 3, 3]
    for a, b in itertools.product(range(3), range(4)):
        ratios = [
            row[x] / row[y] if row[y] else math.inf
            for row in rows
            for x in range(8)
            for y in range(8)
            if (levels[x], levels[y]) == (a, b) and x != y and row[x]
        ]
        assert max(ratios) == (mechanism.guarantees[a].exact_ratio if b >= a else math.inf)


def pieces(mechanism: NestedLevels) -> Iterator[list[tuple[int, int]]]:
    """First word and number of words of each piece of each level's word, in which ``urr`` does the same."""
    for member in mechanism.members:
        ends = [0, *(member.keep_weight + place * member.noise_weight for place in range(member.num_sensitive)), WORD]
        yield [(low, high - low) for low, high in itertools.pairwise(ends) if high > low]


class Given:
    """A source of given words."""

    def __init__(self, words: Sequence[int]):
        self._words = list(words)

    def words(self, *shape: int) -> np.ndarray:
        return np.array([self._words.pop(0) for _ in range(math.prod(shape))], dtype=np.uint64).reshape(shape)


SMALL = [EXAMPLE, leveled([(0.5, 2), (1.0, 1), (3.0, 2)], 0, "urr"), ALL_COLLECTIONS["hashed-listed-levels"].mechanism]


@pytest.mark.parametrize("mechanism", SMALL, ids=["example", "three", "hashed"])
def test_the_channel_is_that_of_the_clients_own_words(mechanism: NestedLevels) -> None:
    """All words of each level, piece by piece: their measures are the declared probabilities, exactly."""
    payloads, rows = mechanism.channel()
    for symbol in range(mechanism.num_symbols):
        found = dict.fromkeys(payloads, Fraction(0))
        for chosen in itertools.product(*pieces(mechanism)):
            payload = mechanism.perturb(np.array([symbol]), Given([word for word, _ in chosen])).tobytes()
            found[payload] += math.prod((Fraction(size, WORD) for _, size in chosen), start=Fraction(1))
        assert [found[payload] for payload in payloads] == [row[symbol] for row in rows]


@pytest.mark.skipif(NODE is None, reason="there is no node (Node.js 20 or newer) on the path")
@pytest.mark.parametrize("mechanism", SMALL[:2], ids=["example", "three"])
def test_the_other_client_draws_the_same_from_all_words(mechanism: NestedLevels) -> None:
    """In JavaScript, for every symbol and every piece of words: the same enumeration, so the same channel."""
    asked = [
        [symbol, [str(word) for word, _ in chosen]]
        for symbol in range(mechanism.num_symbols)
        for chosen in itertools.product(*pieces(mechanism))
    ]
    program = f"""
        import {{ SAMPLERS }} from {json.dumps(SAMPLERS.as_uri())};
        import {{ readFileSync }} from "node:fs";
        const {{ form, asked }} = JSON.parse(readFileSync(0));
        const payload = SAMPLERS.nested(form);
        const of = ([symbol, words]) => [...payload([symbol], () => BigInt(words.shift()))];
        console.log(JSON.stringify(asked.map(of)));
    """
    given = json.dumps({"form": client_form(collection_of(mechanism)), "asked": asked})
    done = subprocess.run(
        [str(NODE), "--input-type=module", "--eval", program], input=given.encode(), capture_output=True, check=True
    )
    ours = [mechanism.perturb(np.array([symbol]), Given(list(map(int, words)))).tobytes() for symbol, words in asked]
    assert list(map(bytes, json.loads(done.stdout))) == ours and len(set(ours)) == mechanism.num_outputs


def test_a_level_that_keeps_too_often_is_refuted() -> None:
    """The audit looks at each level by itself: the first may not have the epsilon of the second."""
    broken = leveled([(0.5, 2), (2.0, 2)], 2, "urr")
    members = (leveled([(1.0, 2), (2.0, 2)], 2, "urr").members[0], broken.members[1])
    for computed in ("passing", "_exact_passing"):
        del vars(broken)[computed]
    vars(broken)["members"] = members
    item = collection_of(leveled([(0.5, 2), (2.0, 2)], 2, "urr"))
    object.__setattr__(item, "mechanism", broken)
    [fault] = audit(item).faults
    assert fault.startswith("the ratio of level 1 2.71828")


# ---------------------------------------------------------------------- variances

TABLE = [  # v and epsilon of two levels; sums of n Var of all values: all at the first epsilon, in levels
    ((5, 0.5), (45, 2.0), 756, 175),
    ((5, 1.0), (45, 3.0), 178, 36),
    ((10, 1.0), (90, 4.0), 362, 48),
    ((3, 1.0), (20, 2.0), 79, 36),
    ((2, 0.5), (98, 1.0), 1539, 1456),
]


def _rare(mechanism: NestedLevels, symbols: Sequence[int]) -> float:
    """n Var of a value of a level that nobody holds, if everybody holds another one of the same level."""
    people = np.zeros(mechanism.num_symbols)
    people[list(symbols[1:])] = 1 / (len(symbols) - 1)
    return float(mechanism.variances(people)[symbols[0]])


@pytest.mark.parametrize(("first", "second", "together", "nested"), TABLE)
def test_fewer_people_are_needed(
    first: tuple[int, float], second: tuple[int, float], together: int, nested: int
) -> None:
    """The sum of n Var over all values, each rare in a level that everybody is in; values in clear once, at share 1."""
    levels = leveled([first[::-1], second[::-1]], 1)
    found = sum(len(symbols) * _rare(levels, symbols) for symbols in levels.level_symbols) + 1 / levels.reveal_rate
    assert round(found) == nested
    v, epsilon = first[0] + second[0], first[1]
    sums = []
    for size in range(1, v):
        one = UtilityOptimizedSubsetSelection(num_symbols=v + 1, num_sensitive=v, epsilon=epsilon, subset_size=size)
        people = np.append(np.append(0.0, np.full(v - 1, 1 / (v - 1))), 0.0)
        sums.append(v * float(one.variances(people)[0]) + 1 / one.reveal_rate)
    assert round(min(sums)) == together


PEOPLE = np.array([0.02, 0.0, 0.08, 0.2, 0.1, 0.0, 0.3, 0.3])


@pytest.mark.parametrize("of", ["urr", "uss", "urap"])
def test_simulated_variances_are_the_forecast_ones(of: str) -> None:
    """2,000 windows of 2,000 reports; the sum of squares of each value is nearly chi-square, its rate the suite's."""
    mechanism, rng, windows, n = leveled([(0.7, 2), (2.0, 4)], 2, of), generator("levels", of), 2_000, 2_000
    symbols = rng.choice(8, (windows, n), p=PEOPLE).reshape(-1)
    payloads = mechanism.perturb(symbols, _Drawn(rng))
    cells = mechanism.count(payloads, np.repeat(np.arange(windows), n), windows)
    item = collection_of(mechanism)
    found = np.array([mechanism.invert(_counts(item, n, row))[0] for row in cells])
    ratios = n * ((found - PEOPLE) ** 2).sum(axis=0) / mechanism.variances(PEOPLE)
    low, high = chi_square_limits(windows, comparisons=8)
    assert (ratios > low).all() and (ratios < high).all()
    inside = np.zeros(8)
    for row in cells:
        low_end, high_end = mechanism.intervals(_counts(item, n, row), PEOPLE, 0.95)
        inside += (low_end <= PEOPLE) & (high_end >= PEOPLE)
    held = PEOPLE > 0
    assert within(inside[held], (binomial_limits(windows, 0.945)[0], binomial_limits(windows, 0.975)[1])).all()


class _Drawn:
    def __init__(self, rng: np.random.Generator):
        self._rng = rng

    def words(self, *shape: int) -> np.ndarray:
        return self._rng.integers(0, WORD, size=shape, dtype=np.uint64)


def _counts(item: Collection, num_reports: int, cells: np.ndarray) -> CohortCounts:
    counts = CohortCounts(np.array([num_reports]), cells[np.newaxis])
    item.check_counts(counts)
    return counts


# ---------------------------------------------------------------------- lists of every kind


def test_values_may_be_in_any_order() -> None:
    """The alphabet's own order gives the symbols, whatever the order of the levels is."""
    item = ALL_COLLECTIONS["closed-sensitive-levels"]
    assert item.alphabet.symbol_table(("fox", "bee", "ant"), 1)[0].tolist() == [0, 1, 2]
    assert item.mechanism.named_symbols == {"bee": 1, "ant": 2, "fox": 0}
    assert Collection.from_json(item.to_json()) == item


@pytest.mark.parametrize("name", ["closed-sensitive", "tagged", "hashed-listed", "prefixes-listed"])
def test_estimates_are_unbiased_over_every_list(name: str) -> None:
    item, rng, n = ALL_COLLECTIONS[f"{name}-levels"], generator("levels", name), 200_000
    values = list(item.alphabet.known_values or ("ant", "bee", "dog", "cat", "yak"))
    shares = np.arange(1, len(values) + 1) / sum(range(1, len(values) + 1))
    batch = item.perturb(rng.choice(values, n, p=shares), rng)
    found = item.estimate(item.count(batch), candidates=None if item.alphabet.known_values else values)
    places = [values.index(value) for value in found.values]
    scores = (found.raw_frequencies - shares[places]) / found.standard_errors
    assert (np.abs(scores) < normal_limit(len(scores))).all()


def test_a_persons_own_tag_has_a_level_of_its_own() -> None:
    """ "home" is as protected as "fox", "work" as "bee"; who hides a value sends its tag."""
    item = ALL_COLLECTIONS["tagged-levels"]
    assert [level.guarantee.symbols for level in audit(item).levels] == [(2, 0), (3, 1)]
    hidden = PersonalTags(item.alphabet, {"home": ["dog"], "work": ["cat"]}).hide(["dog", "cat", "bee", "ant"])  # type: ignore[arg-type]
    symbols = item.alphabet.encode(hidden, np.zeros(4, dtype=int), 1)
    levels = [next((i for i, own in enumerate(item.mechanism.level_symbols) if x in own), None) for x in symbols]  # type: ignore[attr-defined]
    assert hidden == ["home", "work", "bee", "ant"] and levels == [0, 1, 1, None]


def test_the_program_prints_the_table_of_levels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(collection_of(EXAMPLE).to_json()), encoding="utf-8")
    assert program.main([str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = next(place for place, line in enumerate(lines) if line.startswith("levels"))
    assert [line.split() for line in lines[place : place + 3]] == [
        ["levels", "odds", "of", "values", "epsilon", "to", "level", "1", "to", "level", "2", "to", "no", "level"],
        ["level", "1", "3", "0.7", "0.7000", "0.7000", "0.7000"],
        ["level", "2", "6", "2", "ruled", "out", "2.0000", "2.0000"],
    ]
    assert (
        "promise     one report moves the odds of level 1 by at most e**0.7, of level 2 by at most e**2;"
        in "\n".join(lines)
    )
