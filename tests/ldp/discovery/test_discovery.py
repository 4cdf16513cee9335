"""The search for values: what it may try, how it scores, and how often it is wrong."""

from __future__ import annotations

import dataclasses
import importlib
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from tests.support.cases import ANY_VALUES, UTILITY_OPTIMIZED
from tests.support.tolerance import binomial_limits, chi_square_limits, generator, normal_limit
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch
from uldp_transforms.ldp.alphabets import Prefixes
from uldp_transforms.ldp.alphabets.prefixes import END
from uldp_transforms.ldp.discovery import Discovery, discover
from uldp_transforms.ldp.discovery import search as search_module
from uldp_transforms.ldp.discovery.discover import false_discovery_rates
from uldp_transforms.ldp.discovery.grammar import Grammar
from uldp_transforms.ldp.discovery.level import Level
from uldp_transforms.ldp.discovery.search import Search
from uldp_transforms.ldp.solvers.hash_chance import tail
from uldp_transforms.ldp.solvers.linear import solve_sensitive
from uldp_transforms.ldp.solvers.question import ask
from uldp_transforms.rows.discovered_value import discover_window
from uldp_transforms.rows.row_identity import span_of

discover_module = importlib.import_module("uldp_transforms.ldp.discovery.discover")  # its function has its name

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SYLLABLES = tuple(f"{a}{b}" for a in "bdfgklmnprstvz" for b in "aeiou")
TOKENS = (*LETTERS, *SYLLABLES)


def collection(
    mechanism: str = "krr", *, seed: int = 1, epsilon: float = 4.0, num_buckets: int = 32, cohorts: int = 96
) -> Collection:
    alphabet = {"id": "prefixes", "num_buckets": num_buckets, "seed": seed, "tokens": list(TOKENS)}
    alphabet |= {"lengths": [2, 3, None]}
    alphabet |= {"non_sensitive": ["public", "known"]} if mechanism in UTILITY_OPTIMIZED else {}
    fields = {"id": mechanism, "epsilon": epsilon} | ANY_VALUES[mechanism]
    spec = {"id": "words", "version": 1, "alphabet": alphabet, "mechanism": fields, "num_cohorts": cohorts}
    return Collection.from_json(spec)


def made_up(rng: np.random.Generator, number: int) -> list[str]:
    """Different words of one to four syllables."""
    words = {"".join(rng.choice(SYLLABLES, rng.integers(1, 5))) for _ in range(2 * number)}
    return sorted(words)[:number]


def counted(item: Collection, people: dict[str, int], rng: np.random.Generator) -> CohortCounts:
    return item.count(item.perturb([value for value, number in people.items() for _ in range(number)], rng))


# ---------------------------------------------------------------------- what may be tried


def test_followers_are_exactly_what_greedy_matching_can_produce():
    """All texts of up to 7 letters, against all sequences that the rule allows and that make such texts."""
    alphabet = Prefixes(num_buckets=4, tokens=("a", "b", "ab", "bab", "aab", "abba"), lengths=(2, None))
    grammar = Grammar(alphabet)
    texts = ["".join(text) for size in range(8) for text in itertools.product("ab", repeat=size)]
    produced = {alphabet.sequence(text)[:-1] for text in texts}
    allowed, ends = {()}, [()]
    while ends:
        extended = grammar.extended(ends)
        assert all(sequence[-1] != END for sequence in extended)
        ends = [sequence for sequence in extended if len(alphabet.text(sequence)) <= 7]
        allowed |= set(ends)
    assert allowed == produced
    assert grammar.followers((1, 2))[END]


def two_tokens() -> Search:
    """A search over texts of "a" and "b", whose levels have two tokens, three, and all; without counts."""
    return Search(Prefixes(num_buckets=8, tokens=("a", "b"), lengths=(2, 3, None)), [SimpleNamespace()] * 3)


@pytest.mark.parametrize(("new", "passes"), [([1, 1, 1, 1], 3), ([1, 0, 1], 2), ([0, 1], 1)])
def test_a_search_is_repeated_until_it_finds_nothing_and_three_times_at_most(monkeypatch, new, passes):
    search, calls = two_tokens(), []

    def level(number: int, survivors: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        calls.append((number, survivors))
        if number == 2 and new[len(calls) // 3 - 1]:
            search.found[len(calls),] = 0.0
        return [(number, number)]

    monkeypatch.setattr(search, "_search_level", level)
    search.run()
    assert calls == [(0, [()]), (1, [(0, 0)]), (2, [(1, 1)])] * passes


# ---------------------------------------------------------------------- scores


def test_scores_are_those_of_the_formula():
    """Residuals of the peeled ones by dense least squares, and the sum over a prefix's own cells, one by one."""
    item, rng = collection(cohorts=18), generator("scores")
    counts = counted(item, {"bada": 900, "gigi": 700, "ka": 400}, rng)
    counts.num_reports[4] = 0  # a cohort without reports
    counts.cells[4] = 0
    alphabet = item.alphabet
    level = Level(ask(item, counts, ("",)), alphabet, 1, counts)
    peeled = [alphabet.sequence(value)[:3] for value in ("bada", "gigi")]
    fit = level.peel(peeled)
    assert fit.spare == pytest.approx(1 - 2 / level.degrees)
    assert fit.norm == pytest.approx(fit.weights.sum() * (1 - 1 / 32) * fit.spare)
    here = [cohort for cohort in range(1, 18, 3) if cohort != 4]
    design = np.zeros((len(here), 32, 2))
    for column, value in enumerate(("bada", "gigi")):
        design[np.arange(len(here)), alphabet.symbol_table((value,), 18)[here, 0], column] = 1
    design -= design.mean(axis=1, keepdims=True)
    normal_equations = (design * fit.cells[:, :, np.newaxis]).sum(axis=(0, 1))
    np.testing.assert_allclose(normal_equations, 0, atol=1e-6 * abs(fit.cells).sum())
    ((start, scores),) = level.scores(fit, [alphabet.sequence("bada")[:2]], last=False)
    assert start == 0
    for value in ("bada", "badako", "badaz"):
        cells = alphabet.symbol_table((value,), 18)[here, 0]
        expected = fit.cells[np.arange(len(here)), cells].sum() / np.sqrt(fit.norm)
        assert scores[0, alphabet.sequence(value)[2]] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("mechanism", ANY_VALUES)
def test_scores_of_prefixes_that_nobody_has_are_standard_normal(mechanism):
    """Over many hash functions, with heavy prefixes peeled, others not, cohorts of unequal size, some of them empty."""
    rng, scores = generator("null scores", mechanism), []
    for seed in range(40):
        item = collection(mechanism, seed=seed, cohorts=60)
        people = {"bada": 4000, "gigi": 3000, "komu": 800, "ka": 400} | dict.fromkeys(made_up(rng, 100), 5)
        batch = item.perturb([value for value, number in people.items() for _ in range(number)], rng)
        drawn = rng.random(len(batch)) < np.linspace(0, 1, 60)[batch.cohorts]
        columns = (batch.cohorts, batch.payloads, batch.event_times, batch.report_ids)
        batch = ReportBatch(batch.fingerprint, *(column[drawn] for column in columns), seeded=True)
        counts = item.count(batch)
        level = Level(ask(item, counts, ("",)), item.alphabet, 2, counts)
        fit = level.peel([item.alphabet.sequence(value) for value in ("bada", "gigi")])
        ((_, found),) = level.scores(fit, [item.alphabet.sequence("zuzuzu")[:3]], last=True)
        scores.append(found.ravel())
    together = np.concatenate(scores)
    size = len(together)
    assert abs(together.mean()) <= normal_limit() / np.sqrt(size)
    for limit, share in ((1.6449, 0.05), (2.3263, 0.01)):
        low, high = binomial_limits(np.array(size), np.array(share))
        above = np.count_nonzero(together > limit)
        assert low * 0.9 <= above <= high * 1.1, (above / size, share)


def test_false_discovery_rates_are_those_of_the_definition():
    """The least rate at which the procedure of Benjamini and Hochberg rejects, tried one by one."""
    values = np.array([0.02, 1e-4, 0.03, 0.5, 2e-4])
    rates = false_discovery_rates(values, 50)
    for i in range(len(values)):
        ranked = np.sort(values)
        possible = [ranked[j - 1] * 50 / j for j in range(1, len(values) + 1) if ranked[j - 1] >= values[i]]
        assert rates[i] == pytest.approx(min(1, *possible))


# ---------------------------------------------------------------------- how often it is wrong


def runs(number: int, mechanism: str = "krr", *, n: int = 20_000) -> list[tuple[Discovery, dict[str, int]]]:
    """Searches among reports of made-up words with shares that fall like 1 / rank, each with a seed of its own."""
    found = []
    for seed in range(number):
        rng = generator("runs", mechanism, seed)
        words = rng.permutation(made_up(rng, 400)).tolist()
        shares = 1 / np.arange(1, len(words) + 1)
        people = dict(zip(words, rng.multinomial(n, shares / shares.sum()).tolist()))
        item = collection(mechanism, seed=seed)
        found.append((discover(item, counted(item, people, rng)), people))
    return found


@pytest.fixture(scope="module")
def many() -> list[tuple[Discovery, dict[str, int]]]:
    return runs(60)


def test_one_discovered_value_in_twenty_is_nobodys_at_most(many):
    shown = sum(len(found.values) for found, _ in many)
    false = sum(people.get(value, 0) == 0 for found, people in many for value in found.values)
    assert shown >= 300
    assert false <= binomial_limits(np.array(shown), np.array(0.05))[1], (false, shown)


def test_one_interval_of_what_is_shown_in_twenty_misses_the_truth_at_most(many):
    shown = missed = 0
    for found, people in many:
        truth = np.array([people.get(value, 0) for value in found.values]) / sum(people.values())
        shown += len(truth)
        missed += np.count_nonzero((truth < found.ci_low) | (truth > found.ci_high))
    assert missed <= binomial_limits(np.array(shown), np.array(0.05))[1], (missed, shown)


def test_intervals_have_levels_that_are_adjusted_for_the_selection(monkeypatch):
    """The i-th largest of the found values, which counts for M hypotheses, has the level 1 - .05 i / M.

    Its interval is that of this level, and longer where the tail of collisions is heavier than the normal one.
    """
    numbers, intervals = {}, []

    def hypotheses(search, values):
        numbers.clear()
        numbers.update(zip(values, told := whole_search(search, values)))
        return told

    def between(solution, levels, strict):
        intervals[:] = [levels, solution.frequencies, *(ends := score_intervals(solution, levels, strict=strict))]
        return ends

    whole_search, score_intervals = Search.hypotheses, discover_module.score_intervals
    monkeypatch.setattr(Search, "hypotheses", hypotheses)
    monkeypatch.setattr(discover_module, "score_intervals", between)
    item = collection(cohorts=24)
    people = {"bada": 900, "gigi": 700, "mo": 500, "ka": 400, "zuzu": 300}
    found = discover(item, counted(item, people, generator("selected")))
    assert {"bada", "gigi", "mo"} <= set(found.values) == set(numbers)
    ranks = {value: rank for rank, value in enumerate(found.values, 1)}
    levels, raw, low, high = (dict(zip(numbers, part)) for part in intervals)
    for value, number in numbers.items():
        assert number > len(numbers)
        assert levels[value] == pytest.approx(1 - 0.05 * ranks[value] / number, abs=1e-12)
        at = ranks[value] - 1
        assert found.frequencies[at] == raw[value]
        assert found.ci_low[at] <= max(low[value], 0) + 1e-12
        assert found.ci_high[at] >= min(high[value], 1) - 1e-12


def test_an_interval_is_as_much_longer_as_the_tail_is_heavier():
    """A score of 6 standard errors whose p-value is that of 3 has an interval of twice the length."""
    item = collection(cohorts=24)
    counts = counted(item, {"bada": 900, "gigi": 700}, generator("longer"))
    question = ask(item, counts, ("bada", "gigi"))
    solution = solve_sensitive(question, ~question.own, np.ones(2, dtype=bool))
    errors = np.sqrt(solution.own.null + solution.jump**2 / 2)
    found = discover_module._longer(6 * errors, solution, stats.norm.sf([3.0, 8.0]))
    np.testing.assert_allclose(found, [2, 1])


def test_a_value_is_tested_with_the_frequent_prefixes_subtracted(monkeypatch):
    """At the level of three tokens "kokokomu" is a prefix that is no value; "gigi" is hashed as a whole there."""
    item, fitted, peel = collection(cohorts=24), [], Level.peel

    def keep(level, sequences):
        fitted.append(set(sequences))
        return peel(level, sequences)

    counts = counted(item, {"kokokomu": 3000, "gigi": 500}, generator("subtracted"))
    question = ask(item, counts, ("",))
    search = Search(item.alphabet, [Level(question, item.alphabet, number, counts) for number in range(3)])
    search.run()
    monkeypatch.setattr(Level, "peel", keep)
    search.p_values(("gigi",))
    long, short = (item.alphabet.sequence(value) for value in ("kokokomu", "gigi"))
    assert {long[:3], short[:3]} <= fitted[1]
    assert long not in fitted[2], "it is a value there, and not the one that is tested"


class PeeledOneByOne:
    """A search of four texts: nobody holds two of them, which fit the noise and hide a third while they are fitted."""

    num_scored = 1000

    def p_values(self, values):
        assert "bada" in values
        hidden = 1e-9 if "zuzu" not in values else 3e-3
        return np.array([{"bada": 1e-9, "gigi": hidden, "zuzu": 2e-2, "kaka": 0.9}[value] for value in values])

    def hypotheses(self, values):
        return np.full(len(values), 50.0)


def test_values_are_left_out_the_clearest_first():
    """Of 50 hypotheses "kaka" goes at the rate .5, "zuzu" at .2; without it "gigi" is a discovery at .05."""
    item = collection(cohorts=24)
    counts = counted(item, {"bada": 900, "gigi": 700}, generator("one by one"))
    judged = discover_module._judge(item, counts, ("bada", "gigi", "zuzu", "kaka"), PeeledOneByOne(), 0.95)
    assert judged.values == ("bada", "gigi")
    np.testing.assert_allclose(judged.q_values, 50e-9 / 2)


class Judged:
    """A search whose p-values and numbers of hypotheses are given for each value."""

    num_scored = 7

    def __init__(self, **told: tuple[float, float]):
        self._told = told

    def p_values(self, values):
        return np.array([self._told[value][0] for value in values])

    def hypotheses(self, values):
        return np.array([self._told[value][1] for value in values])


def test_each_discovered_value_has_its_own_numbers():
    """Whichever order the search found them in. The interval of the i-th of M has the level 1 - .05 i / M, at least
    .95, is longer by its tail, ends at 0 and 1, and contains a share below 0, too."""
    item = collection(cohorts=24)
    people = {"bada": 900, "gigi": 700, "badako": 500, "mo": 400}
    counts = counted(item, people, generator("own numbers"))
    others = [word for word in made_up(generator("nobody's words"), 20) if word not in people]
    nobodys = next(x for x in others if item.estimate(counts, "empirical", (*people, x)).raw_frequencies[-1] < 0)
    values = ("mo", nobodys, "badako", "bada", "gigi")
    told = dict(zip(values, ((1e-4, 2.0), (1e-3, 10.0), (1e-6, 400.0), (1e-9, 3.0), (1e-5, 60.0))))
    found = discover_module._judge(item, counts, values, Judged(**told), 0.95)
    question = ask(item, counts, values)
    solution = solve_sensitive(question, ~question.own, np.ones(5, dtype=bool))
    p_values, numbers = np.array(list(told.values())).T
    rates, raw, ranks = false_discovery_rates(p_values, numbers), solution.frequencies, np.empty(5)
    ranks[np.argsort(-raw)] = np.arange(1, 6)
    near = dataclasses.replace(solution, frequencies=np.maximum(raw, 0))  # one below 0 says no more than 0
    low, high = discover_module.score_intervals(near, 1 - 0.05 * np.minimum(ranks / numbers, 1), strict=True)
    longer = discover_module._longer(raw, solution, p_values)
    low = np.clip(near.frequencies - longer * (near.frequencies - low), 0, 1)
    high = np.clip(near.frequencies + longer * (high - near.frequencies), 0, 1)
    assert (longer > 1).any() and (high < 1).all() and low.min() == 0 < low.max()
    assert set(found.values) == set(values) and (np.diff(found.frequencies) <= 0).all() and found.num_scored == 7
    assert found.frequencies[-1] < 0
    for at, value in enumerate(values):
        place = found.values.index(value)
        assert found.frequencies[place] == solution.frequencies[at]
        assert found.standard_errors[place] == np.sqrt(solution.variances[at])
        assert found.q_values[place] == rates[at]
        assert found.ci_low[place] == pytest.approx(min(low[at], raw[at]))
        assert found.ci_high[place] == pytest.approx(max(high[at], raw[at]))
        tokens = len(item.alphabet.sequence(value))
        assert found.levels[place] == (0 if tokens <= 2 else 1 if tokens == 3 else 2)
    assert {2, 3, 4} <= {len(item.alphabet.sequence(value)) for value in values}


@pytest.mark.parametrize("reporting", [24, 12, 3, 1])
def test_the_best_texts_that_people_can_send_are_judged(monkeypatch, reporting):
    """As many as the level with the fewest equations can fit, a sixth of them, or one; no listed or respelled ones."""
    alphabet = {"id": "prefixes", "num_buckets": 4, "lengths": [2, 3, None], "non_sensitive": ["known"]}
    alphabet["tokens"] = ["known", "e", "\u0301", "a", "b", "ab", *LETTERS[5:20]]
    spec = {"id": "words", "version": 1, "alphabet": alphabet, "num_cohorts": 24 * 3}
    item = Collection.from_json(spec | {"mechanism": {"id": "urr", "epsilon": 4.0}})
    counts = counted(item, {"known": 50, "f": 3000}, generator("best texts"))
    few = (np.arange(72) % 3 == 1) & (np.arange(72) >= 3 * reporting)
    counts = CohortCounts(np.where(few, 0, counts.num_reports), counts.cells * ~few[:, np.newaxis])
    bad = [(1, END), (2, 3, END), (4, 5, END)]  # public; a letter and its accent; two tokens that are one together
    good = [(number, END) for number in range(7, 21)]

    class Found:
        def __init__(self, *_):
            self.found = {sequence: float(rank) for rank, sequence in enumerate([*good[:2], *bad, *good[2:]])}

        def run(self):
            self.found = dict(reversed(self.found.items()))

    monkeypatch.setattr(discover_module, "Search", Found)
    monkeypatch.setattr(discover_module, "_judge", lambda model, counted, values, search, confidence: values)
    most = max(1, reporting * 3 // 6)
    assert discover(item, counts) == tuple(map(item.alphabet.text, [*good[:2][:most], *good[2:][: max(most - 5, 0)]]))


def test_where_everybody_holds_another_text_a_search_finds_something_in_one_window_of_twenty_at_most():
    alarms = 0
    for seed in range(40):
        rng = generator("nobody", seed)
        item = collection(seed=seed)
        alarms += bool(discover(item, counted(item, dict.fromkeys(made_up(rng, 5000), 2), rng)).values)
    assert alarms <= binomial_limits(np.array(40), np.array(0.05))[1]


def test_a_heavy_text_that_cannot_be_found_makes_no_false_ones():
    """A quarter of all people hold a text of more tokens than any candidate has, a quarter one with another letter."""
    shown = false = 0
    for seed in range(30):
        rng = generator("heavy", seed)
        words = made_up(rng, 40)
        numbers = rng.multinomial(6000, np.full(40, 1 / 40)).tolist()
        people = dict(zip(words, numbers)) | {"babababababababa": 3000, "été": 3000}
        item = collection(seed=seed)
        values = discover(item, counted(item, people, rng)).values
        shown += len(values)
        false += sum(value not in people for value in values)
    assert false <= binomial_limits(np.array(max(shown, 60)), np.array(0.05))[1], (false, shown)


def test_what_stands_out_at_every_level_is_found():
    """Values with so large a share that no level would miss them: 10 standard errors, and some more for the limits."""
    for found, people in runs(3):
        n, errors = sum(people.values()), found.standard_errors.max(initial=0)
        sure = {value for value, number in people.items() if number / n > 12 * errors}
        assert sure <= set(found.values)
        assert (np.diff(found.frequencies) <= 0).all()
        assert (found.q_values <= 0.05).all()


@pytest.mark.parametrize("mechanism", ANY_VALUES)
def test_a_search_works_with_every_mechanism_and_tells_no_public_values(mechanism):
    item, rng = collection(mechanism), generator("mechanisms", mechanism)
    people = {"bada": 9000, "gigika": 7000, "kokokomu": 6000, "mo": 5000, "public": 20_000, "rest": 500}
    found = discover(item, counted(item, people, rng))
    listed = mechanism in UTILITY_OPTIMIZED
    assert {"bada", "gigika", "kokokomu", "mo"} <= set(found.values)
    assert ("public" in found.values) == (not listed)
    assert dict(zip(found.values, found.levels.tolist()))["mo"] == 0
    assert dict(zip(found.values, found.levels.tolist()))["kokokomu"] == 2


def test_sums_of_windows_find_more():
    rng = generator("sums")
    words = rng.permutation(made_up(rng, 300)).tolist()
    shares = 1 / np.arange(1, len(words) + 1)
    item, numbers, windows = collection(), [], []
    for _ in range(8):
        people = dict(zip(words, rng.multinomial(20_000, shares / shares.sum()).tolist()))
        windows.append(counted(item, people, rng))
        numbers.append(len(discover(item, windows[-1]).values))
    together = windows[0]
    for window in windows[1:]:
        together = together + window
    assert len(discover(item, together).values) > max(numbers)


@pytest.mark.parametrize("mechanism", ["krr", "uss"])
def test_a_window_without_reports_of_a_level_has_no_rows(mechanism):
    """Whoever sends reports chooses their cohorts; a stream goes on."""
    item, rng = collection(mechanism), generator("level", mechanism)
    counts = counted(item, {"bada": 3000}, rng)
    mute = np.arange(item.num_cohorts) % 3 == 1
    counts = CohortCounts(np.where(mute, 0, counts.num_reports), counts.cells * ~mute[:, np.newaxis])
    place = span_of(0, 1000) | {"pane_index": 0, "pane_timing": "ON_TIME", "run": None}
    assert list(discover_window(item, counts, place, None)) == []


def test_few_reports_find_nothing_and_raise_nothing():
    item, rng = collection(), generator("few")
    for number in (300, 2000):
        assert discover(item, counted(item, {"bada": number}, rng)).num_scored >= len(TOKENS)


def test_the_variance_of_a_score_is_that_of_its_cells() -> None:
    """A prefix that nobody has takes one of the k cells of each cohort, at random; with few cells 1 - 1 / k matters."""
    item, rng = collection(num_buckets=4, cohorts=960), generator("variance of a score")
    counts = counted(item, {"bada": 30_000, "gigi": 20_000, "ka": 50_000}, rng)
    level = Level(ask(item, counts, ("",)), item.alphabet, 1, counts)
    fit = level.peel([item.alphabet.sequence(value)[:3] for value in ("bada", "gigi")])
    least, most = chi_square_limits(level.degrees - 2)
    assert least < (level.degrees - 2) * (fit.cells**2).mean(axis=1).sum() / fit.norm < most


def test_expected_false_positives_are_those_of_the_kind_of_a_sequence() -> None:
    """Whole values and prefixes have numbers of their own; beliefs divide them."""
    scores = {(3, 4): 2.0, (3, END): 2.5, (5, 6, END): -1.0}
    search = SimpleNamespace(_beliefs=SimpleNamespace(of=lambda sequence: 0.3 * len(sequence)))
    found = Search._striking(search, scores, (5.0, 7.0))  # type: ignore[arg-type]  # it uses the beliefs alone
    expected = [
        kind * stats.norm.sf(score) * np.exp(-0.3 * len(sequence))
        for kind, (sequence, score) in zip((5.0, 7.0, 7.0), scores.items())
    ]
    np.testing.assert_allclose([found[sequence] for sequence in scores], expected, rtol=1e-9)


def small_search() -> Search:
    item = collection(cohorts=24)
    counts = counted(item, {"bada": 900, "gigi": 700}, generator("small search"))
    question = ask(item, counts, ("",))
    return Search(item.alphabet, [Level(question, item.alphabet, number, counts) for number in range(3)])


def test_p_values_are_those_of_the_mean_over_levels_that_hash_the_whole_text():
    """Weighted by reports; with all values and the frequent prefixes subtracted."""
    search = small_search()
    search.run()
    values, lengths = ("bada", "gigi", "mo"), (2, 3, None)
    sequences = [search._alphabet.sequence(value) for value in values]
    assert [len(sequence) for sequence in sequences] == [3, 3, 2]
    search._peeled[0][sequences[0][:2]] = search._peeled[1][1, 1, END] = None
    fits = []
    for level, length, peeled in zip(search._levels, lengths, search._peeled):
        prefixes = list(dict.fromkeys(sequence[:length] for sequence in sequences))
        prefixes += [prefix for prefix in peeled if prefix[-1] != END and prefix not in prefixes]
        fits.append((level.total, prefixes, level.peel(prefixes)))
    expected = []
    for sequence, first in zip(sequences, (1, 1, 0)):
        parts = [(total, prefixes.index(sequence), fit) for total, prefixes, fit in fits[first:]]
        whole = sum(total for total, _, _ in parts)
        mean = sum(total * fit.frequencies[at] for total, at, fit in parts) / whole
        expected.append(tail(np.concatenate([total * fit.without(at) for total, at, fit in parts]) / whole, mean))
    np.testing.assert_allclose(search.p_values(values), expected, rtol=1e-9)


def test_the_best_have_fewer_expected_false_positives_than_the_limit():
    assert search_module._best({(1,): 1.0, (2,): 0.9, (3,): 0.5, (4,): 1.1}, 1.0) == [(3,), (2,)]


def test_a_value_counts_for_as_many_hypotheses_as_its_share_of_what_was_offered():
    search = two_tokens()
    search._offered = {(0, ()): 3.0, (1, (1, 2)): 1.5}
    beliefs = [search._beliefs.of(search._alphabet.sequence(value)) for value in ("a", "bab")]
    np.testing.assert_allclose(search.hypotheses(("a", "bab")), 4.5 / np.exp(beliefs))
    assert beliefs[0] != beliefs[1]


def test_scores_above_have_few_expected_false_positives() -> None:
    """Whole values have as many as are tested, prefixes a thousand; scores below 0 say nothing."""
    search = small_search()
    level, blocks = search._levels[0], list(search._blocks(0, [()]))
    kinds, fit = search._kinds(blocks, 0), level.peel([])
    every = {
        (*parents[start + row], column): float(scores[row, column])
        for parents, allowed in blocks
        for start, scores in level.scores(fit, parents, last=False)
        for row, column in np.argwhere(allowed[start : start + len(scores)]).tolist()
    }
    false = search._striking(every, kinds)
    most = {sequence: search._judged(level) if sequence[-1] == END else 1000.0 for sequence in every}
    expected = {sequence: score for sequence, score in every.items() if score > 0 and false[sequence] < most[sequence]}
    assert dict(search._above(kinds, 0, fit, blocks)) == expected
    assert 100 < len(expected) < len(every) / 2
    positive = {sequence: score for sequence, score in every.items() if score > 0}
    assert dict(search._above((1e-9, 1e-9), 0, fit, blocks)) == positive
