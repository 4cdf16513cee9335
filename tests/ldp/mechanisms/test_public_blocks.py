"""Reports that state a public block: the channel, the moments and intervals of its estimates, and what it refuses."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.cases import ALL_COLLECTIONS, UTILITY_OPTIMIZED, as_array, exact_channel
from tests.support.tolerance import generator, student_limit
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.client.client_form import client_form
from uldp_transforms.ldp.mechanisms.public_blocks.within_blocks import WithinBlocks
from uldp_transforms.ldp.privacy import audit
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.sampling import WORD, exp_bounds

CLIENT = Path(__file__).parents[3] / "clients" / "javascript"
NODE = shutil.which("node")

OF_BLOCKS = {
    name: item
    for name, item in ALL_COLLECTIONS.items()
    if item.alphabet.id == "blocks" and item.mechanism.num_hashes == 1
}
CLOSED = {name: item for name, item in OF_BLOCKS.items() if item.alphabet.known_values}
each = pytest.mark.parametrize("name", sorted(OF_BLOCKS))
each_closed = pytest.mark.parametrize("name", sorted(CLOSED))


def mechanism_of(name: str) -> WithinBlocks:
    mechanism = OF_BLOCKS[name].mechanism
    assert isinstance(mechanism, WithinBlocks)
    return mechanism


# ---------------------------------------------------------------------- the channel


@each
def test_a_report_tells_values_of_its_block_apart_by_epsilon_and_states_the_block(name: str) -> None:
    mechanism = mechanism_of(name)
    payloads, rows = exact_channel(mechanism)
    assert len(set(payloads)) == len(payloads) == mechanism.num_outputs
    assert [sum(column) for column in zip(*rows)] == [1] * mechanism.num_symbols
    bound, v = exp_bounds(mechanism.epsilon)[0], mechanism.num_sensitive
    for block, row in zip(mechanism.stated_blocks(as_array(payloads)).tolist(), rows):
        inside = {symbol for symbol, other in enumerate(mechanism.block_of_symbol.tolist()) if other == block}
        senders = {symbol for symbol, share in enumerate(row) if share}
        assert senders <= inside
        if any(row[:v]):
            assert senders == inside and max(row) <= bound * min(row[symbol] for symbol in inside)
        else:
            assert len(senders) == 1


@each
def test_the_audit_is_the_enumeration(name: str) -> None:
    mechanism, found = mechanism_of(name), audit(OF_BLOCKS[name])
    rows = [row for row in exact_channel(mechanism)[1] if any(row[: mechanism.num_sensitive])]
    ratios = [max(row) / min(share for share in row if share) for row in rows]
    assert not found.faults and found.worst.ratio == max(ratios) == mechanism.exact_ratio
    assert "block" in found.protects and "in clear" in found.notes[0]


class _Leaking(WithinBlocks):
    """Never sends the last symbol of a protected report of the first block."""

    def channel(self) -> tuple[list[bytes], list[list[Fraction]]]:
        payloads, rows = super().channel()
        rows[0][self.confusable[0][-1]] = Fraction(0)
        return payloads, rows


def test_an_audit_finds_a_report_that_rules_a_value_of_its_block_out() -> None:
    item = OF_BLOCKS["closed-blocks-krr"]
    leaking = object.__new__(_Leaking)
    vars(leaking).update(vars(item.mechanism))
    spoilt = object.__new__(Collection)
    vars(spoilt).update(vars(item) | {"mechanism": leaking})
    assert any("rules another symbol out" in fault for fault in audit(spoilt).faults)


SINGLE_WORD = [name for name in OF_BLOCKS if name.endswith(("-krr", "-urr"))]


def words_and_shares(mechanism: WithinBlocks, symbol: int) -> Iterator[tuple[int, Fraction]]:
    """The first word of each range in which a client sends one report, and the share of the range."""
    part = mechanism.parts[mechanism.part_of[mechanism.block_of_symbol[symbol]]]
    if not part.num_sensitive:
        yield 0, Fraction(1)
        return
    keep, noise = (int(part.client_sampler[weight]) for weight in ("keep_weight", "noise_weight"))
    ends = [0, *(keep + noise * step for step in range(part.num_sensitive)), WORD]
    yield from ((low, Fraction(high - low, WORD)) for low, high in itertools.pairwise(ends))


class Given:
    """A source of one word for each report."""

    def __init__(self, word: int):
        self._word = word

    def words(self, *shape: int) -> np.ndarray:
        return np.full(shape, self._word, dtype=np.uint64)


def channel_by_words(mechanism: WithinBlocks, drawn: dict[tuple[int, int], bytes]) -> dict[tuple[bytes, int], Fraction]:
    """Probability of each report under each symbol, from the words with which a client sends it."""
    found: dict[tuple[bytes, int], Fraction] = {}
    for symbol in range(mechanism.num_symbols):
        for word, share in words_and_shares(mechanism, symbol):
            key = drawn[symbol, word], symbol
            found[key] = found.get(key, Fraction(0)) + share
    return found


def expected(mechanism: WithinBlocks) -> dict[tuple[bytes, int], Fraction]:
    payloads, rows = exact_channel(mechanism)
    shares = ((payload, symbol, share) for payload, row in zip(payloads, rows) for symbol, share in enumerate(row))
    return {(payload, symbol): share for payload, symbol, share in shares if share}


@pytest.mark.parametrize("name", SINGLE_WORD)
def test_the_client_has_the_channel_by_all_its_words(name: str) -> None:
    mechanism = mechanism_of(name)
    drawn = {
        (symbol, word): mechanism.perturb(np.array([symbol]), Given(word)).tobytes()
        for symbol in range(mechanism.num_symbols)
        for word, _ in words_and_shares(mechanism, symbol)
    }
    assert channel_by_words(mechanism, drawn) == expected(mechanism)


@pytest.mark.skipif(NODE is None, reason="there is no node (Node.js 20 or newer) on the path")
def test_the_client_in_javascript_has_the_channel_by_all_its_words() -> None:
    asked: list[dict[str, Any]] = [
        {
            "form": client_form(OF_BLOCKS[name]),
            "draws": [
                [symbol, str(word)]
                for symbol in range(OF_BLOCKS[name].mechanism.num_symbols)
                for word, _ in words_and_shares(mechanism_of(name), symbol)
            ],
        }
        for name in SINGLE_WORD
    ]
    program = """
        import { readFileSync } from "node:fs";
        import { SAMPLERS } from "./src/samplers.js";
        const found = JSON.parse(readFileSync(0, "utf8")).map(({ form, draws }) => {
          const payload = SAMPLERS[form.sampler.sampler](form);
          return draws.map(([symbol, word]) => Buffer.from(payload([symbol], () => BigInt(word))).toString("hex"));
        });
        console.log(JSON.stringify(found));
    """
    given = json.dumps(asked).encode()
    words = [str(NODE), "--input-type=module", "--eval", program]
    done = subprocess.run(words, cwd=CLIENT, input=given, capture_output=True, check=True)
    found = json.loads(done.stdout)
    for name, item, payloads in zip(SINGLE_WORD, asked, found):
        drawn = {(symbol, int(word)): bytes.fromhex(one) for (symbol, word), one in zip(item["draws"], payloads)}
        assert channel_by_words(mechanism_of(name), drawn) == expected(mechanism_of(name))


@each
def test_only_payloads_of_clients_are_valid(name: str) -> None:
    mechanism = mechanism_of(name)
    payloads = as_array(exact_channel(mechanism)[0])
    assert mechanism.is_valid(payloads).all()
    unknown = payloads.copy()
    unknown[:, 0] = mechanism.num_blocks
    reasons = {reason: mask.all() for reason, mask in mechanism.violations(unknown)}
    assert reasons[Reason.VALUE_DOMAIN] and not mechanism.is_valid(unknown).any()
    everything = np.array(list(itertools.product(range(mechanism.num_blocks + 1), range(256))), dtype=np.uint8)
    if payloads.shape[1] == 2:
        valid = set(map(bytes, everything[mechanism.is_valid(everything)]))
        assert valid == set(exact_channel(mechanism)[0])


def test_rests_of_shorter_payloads_are_zeros() -> None:
    mechanism = Collection.from_json(
        {
            "id": "places",
            "version": 1,
            "alphabet": {"id": "blocks", "blocks": {"long": list("abcdefghijklmnopq"), "short": ["x", "y"]}},
            "mechanism": {"id": "ss", "epsilon": 1.0},
        }
    ).mechanism
    payloads = mechanism.perturb(np.array([17]), Given(5))
    assert payloads.shape == (1, 4) and not payloads[0, 2:].any() and mechanism.is_valid(payloads).all()
    payloads[0, 3] = 1
    assert [reason for reason, mask in mechanism.violations(payloads) if mask.any()] == [Reason.IMPOSSIBLE_REPORT]


def test_counts_whose_blocks_do_not_sum_up_are_refused() -> None:
    item = CLOSED["closed-blocks-rappor"]
    counts = item.count(item.perturb(["ant", "bee", "cat"] * 5, generator("counts of blocks")))
    cells = counts.cells.copy()
    cells[0, -1] += 1
    rules = [
        rule for rule, wrong in item.mechanism.count_violations(CohortCounts(counts.num_reports, cells)) if wrong.any()
    ]
    assert "reports of blocks that sum to those of the cohort" in rules


# ---------------------------------------------------------------------- estimates


def enumerated(mechanism: WithinBlocks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities (Y, K), cells (Y, M) and estimates (Y, K) of each report alone."""
    payloads, rows = exact_channel(mechanism)
    codes = as_array(payloads)
    cells = mechanism.count(codes, np.arange(len(codes)), len(codes))
    inverse = mechanism.invert(CohortCounts(np.ones(len(codes), dtype=np.int64), cells))
    return np.array(rows, dtype=np.float64), cells, inverse


@each_closed
def test_moments_are_those_of_the_channel(name: str) -> None:
    mechanism = mechanism_of(name)
    rows, cells, inverse = enumerated(mechanism)
    law = generator("moments", name).dirichlet(np.ones(mechanism.num_symbols))
    reports = rows @ law
    np.testing.assert_allclose(reports @ inverse, law, atol=1e-12)
    np.testing.assert_allclose(reports @ cells, mechanism.response(law), atol=1e-12)
    covariance = (inverse * reports[:, np.newaxis]).T @ inverse - np.outer(law, law)
    np.testing.assert_allclose(mechanism.covariance(law), covariance, atol=1e-10)
    np.testing.assert_allclose(mechanism.variances(law), np.diag(covariance), atol=1e-10)
    weights = generator("weights", name).normal(size=(3, mechanism.num_symbols))
    np.testing.assert_allclose(
        mechanism.variance_of(weights, law), np.diag(weights @ covariance @ weights.T), atol=1e-9
    )
    np.testing.assert_allclose(mechanism.largest_effects, inverse.max(axis=0), atol=1e-10)
    smallest = mechanism.smallest_effects
    assert smallest is not None
    np.testing.assert_allclose(smallest, inverse.min(axis=0), atol=1e-10)


@each_closed
def test_blocks_have_the_covariance_of_their_sampling(name: str) -> None:
    """Between blocks - p p'; and where shares sum to 1, the sum of a block has the noise of n_b alone."""
    mechanism = mechanism_of(name)
    law = generator("between", name).dirichlet(np.ones(mechanism.num_symbols))
    apart = mechanism.block_of_symbol[:, np.newaxis] != mechanism.block_of_symbol
    np.testing.assert_allclose(mechanism.covariance(law)[apart], -np.outer(law, law)[apart], atol=1e-12)
    if name.endswith(("-krr", "-ss")):
        for block in range(mechanism.num_blocks):
            inside = mechanism.block_of_symbol == block
            share = law[inside].sum()
            assert mechanism.variance_of(inside.astype(float), law) == pytest.approx(share * (1 - share))


LAWS = {
    "flat": np.ones(40),
    "1/rank": 1 / np.arange(1.0, 41),
    "geometric": 0.8 ** np.arange(40.0),
    "one heavy": np.r_[np.full(39, 1 / 78), 0.5],
}
UNEQUAL = (3, 2, 10, 5, 20)


def unequal(mechanism: str, **alphabet: Any) -> Collection:
    """Blocks of 2 to 20 values; the values are in order of their numbers."""
    starts = np.cumsum([0, *UNEQUAL])
    blocks = {
        f"block {i}": [f"v{j:02}" for j in range(low, high)] for i, (low, high) in enumerate(itertools.pairwise(starts))
    }
    spec: dict[str, Any] = {"id": "unequal", "version": 1, "mechanism": {"id": mechanism, "epsilon": 1.0}}
    return Collection.from_json(spec | {"alphabet": {"id": "blocks", "blocks": blocks} | alphabet})


SOME = {"sensitive": [f"v{j:02}" for j in range(0, 40, 2)]}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    ("mechanism", "alphabet"), [("ss", {}), ("krr", {}), ("rappor", {}), ("uss", SOME), ("urr", SOME)], ids=str
)
def test_intervals_hold_the_share_as_often_as_promised(mechanism: str, alphabet: dict[str, Any], law: str) -> None:
    """95 % of all values together, for 2,000 people, less what 300 windows can miss by chance, at the suite's rate of
    false alarms. Where no value is rare, intervals that are not extended are no further from it on the other side.
    """
    item, shares, rng = unequal(mechanism, **alphabet), LAWS[law] / LAWS[law].sum(), generator("cover", mechanism, law)
    windows, people = 300, 2_000
    rows = []
    for _ in range(windows):
        values = rng.choice(item.alphabet.known_values, people, p=shares)
        found = item.estimate(item.count(item.perturb(values, rng)), "eb")
        ends = ((found.ci_low, found.ci_high), found.unclipped(0.95))
        rows.append([np.mean((low <= shares) & (shares <= high)) for low, high in ends])
    shown, alone = np.mean(rows, axis=0)
    of_shown, of_alone = student_limit(windows, 2) * np.std(rows, axis=0, ddof=1) / np.sqrt(windows)
    assert shown >= 0.95 - of_shown
    if law == "flat":
        assert abs(alone - 0.95) <= of_alone


@pytest.mark.parametrize("mechanism", sorted(set(UTILITY_OPTIMIZED)))
def test_standard_errors_are_those_of_simulated_windows(mechanism: str) -> None:
    item, rng = unequal(mechanism, **SOME), generator("errors of blocks", mechanism)
    law = LAWS["1/rank"] / LAWS["1/rank"].sum()
    symbols = item.alphabet.symbol_table(item.alphabet.known_values or (), 1)[0]
    held = np.empty(40)
    held[symbols] = law
    windows, people = 400, 2_000
    raw = np.array(
        [
            item.estimate(
                item.count(item.perturb(rng.choice(item.alphabet.known_values, people, p=law), rng))
            ).raw_frequencies
            for _ in range(windows)
        ]
    )
    squares = ((raw - law) ** 2).sum(axis=1)
    expected_squares = float(item.mechanism.variances(held).sum()) / people
    limit = student_limit(windows) * squares.std(ddof=1) / np.sqrt(windows)
    assert abs(squares.mean() - expected_squares) <= limit


@pytest.mark.parametrize("mechanism", ["krr", "rappor", "hr"])
def test_a_listed_block_without_reports_may_still_hold_a_value(mechanism: str) -> None:
    item, people = unequal(mechanism), 2_000
    values = [f"v{j:02}" for j in range(3, 40)]
    found = item.estimate(item.count(item.perturb(values * 50 + values[:150], generator("empty", mechanism))), "eb")
    assert not found.frequencies[:3].any() and (found.ci_low[:3] == 0).all()
    assert (found.ci_high[:3] > 3 / people).all() and (found.ci_high[:3] < 10 / people).all()


def test_caveats_name_the_smallest_block_and_the_blocks_they_are_about() -> None:
    """Blocks of different sizes send values in clear with different probabilities."""
    values = {"berlin": ["mitte", "wedding", "pankow"], "paris": ["nord", "sud", "est", "ouest"]}
    of_block, *of_parts = _notes(values, ["mitte", "wedding", "nord"])
    assert of_block.endswith("The block with the fewest sensitive values, 'paris', has 1.")
    part = (
        "In blocks of {} symbols, {} of them sensitive: non-sensitive symbols are not protected: each is sent in clear"
    )
    assert [note.rpartition(" with probability")[0] for note in of_parts] == [part.format(3, 2), part.format(4, 1)]
    alike = _notes({"a": ["b", "c"], "d": ["e", "f"]}, ["b", "e"])
    assert not [note for note in alike if note.startswith("In blocks")]


def _notes(blocks: dict[str, list[str]], sensitive: list[str]) -> tuple[str, ...]:
    alphabet = {"id": "blocks", "blocks": blocks, "sensitive": sensitive}
    mechanism = {"id": "uss", "epsilon": 1.0}
    return audit(
        Collection.from_json({"id": "places", "version": 1, "alphabet": alphabet, "mechanism": mechanism})
    ).notes
