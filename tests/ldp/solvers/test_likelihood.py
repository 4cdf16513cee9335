"""Maximum likelihood, in closed form (``ml``) and by iteration (``em``), against the likelihood itself.

The likelihood is written here from the mechanism's own definition of Pr(report | symbol), report by report, and a
maximum is recognised by its gradient: since L is concave, L_max - L(p) <= n ln(max_x d_x / n) with
d_x = sum_i Pr(y_i | x) / Pr(y_i | p). Letters: C cohorts, U unknowns, Y kinds of reports.
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, sparse

from tests.support.cases import ANY_VALUES
from tests.support.ldp.made_collections import made
from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts, Collection, Estimate, ReportBatch, SpecError
from uldp_transforms.ldp.estimators import ExpectationMaximization
from uldp_transforms.ldp.estimators.expectation_maximization import TOLERANCE
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.ldp.solvers import likelihood as likelihood_module
from uldp_transforms.ldp.solvers.likelihood import Likelihood, maximize, project_in_metric

VALUES = ("ant", "bee", "cat", "dog", "emu", "fox")
TRUTH = (0.35, 0.25, 0.2, 0.1, 0.08, 0.02)
PRIORS = [[0.3, 0.3, 0.2, 0.1, 0.1, 0.0], [0.1, 0.2, 0.2, 0.1, 0.2, 0.2]]

ALPHABETS: dict[str, tuple[dict, int]] = {
    "closed": ({"id": "closed", "values": VALUES, "sensitive": ("bee", "fox", "ant", "cat")}, 2),
    "permuted": ({"id": "permuted", "values": VALUES, "num_buckets": 3}, 9),
    "hashed": ({"id": "hashed", "num_buckets": 4}, 9),
    "listed": ({"id": "hashed", "num_buckets": 4, "non_sensitive": ("bee", "fox", "yak")}, 9),
    "clear": ({"id": "hashed", "num_buckets": 4, "non_sensitive": ("bee", "fox"), "num_clear_buckets": 3}, 9),
    "tagged": ({"id": "tagged", "values": VALUES, "tags": ("home",), "sensitive": ("fox", "bee")}, 1),
}
KEEP = [["3/8" if output == symbol else "1/8" for symbol in range(6)] for output in range(6)]
FIELDS: dict[str, dict] = {
    "channel": {"matrix": KEEP},
    "tsp": {"missing_rates": [0.4, 0.05]},
    "agrr": {"priors": PRIORS},
    "aoue": {"priors": PRIORS},
    "uss": {"subset_size": 2},
    "marginal": {"inversion": "marginal"},
    "levels": {"of": "urr", "levels": [{"epsilon": 0.5, "values": VALUES[:1]}, {"epsilon": 2, "values": VALUES[1:]}]},
}
BY_COUNTS = ("krr", "urr")
BY_REPORTS = ("marginal", *(name for name in ANY_VALUES if name not in BY_COUNTS))
OF_VALUES = tuple(name for name in MECHANISMS if name not in ANY_VALUES)


def collection(alphabet: str, mechanism: str, epsilon: float = 1.0) -> Collection:
    spec, num_cohorts = ALPHABETS[alphabet]
    lists = {key: list(item) if isinstance(item, tuple) else item for key, item in spec.items()}
    if mechanism in OF_VALUES:
        lists = {"id": "closed", "values": list(VALUES)}
    name = "urap" if mechanism == "marginal" else mechanism
    fields = (
        {"id": name} | ({"epsilon": epsilon} if MECHANISMS[name].takes("epsilon") else {}) | FIELDS.get(mechanism, {})
    )
    return made(lists, fields, num_cohorts=num_cohorts)


PAIRS = [(alphabet, mechanism) for alphabet in ALPHABETS for mechanism in (*BY_COUNTS, *BY_REPORTS)]
PAIRS += [("closed", mechanism) for mechanism in OF_VALUES]
COUNTED = [pair for pair in PAIRS if pair[1] in (*BY_COUNTS, "up", "agrr", "tsp", "channel", "sw", "usw", "levels")]


def reports(item: Collection, n: int, *names: object) -> ReportBatch:
    rng = generator("likelihood", *item.to_json().values(), n, *names)
    return item.perturb(rng.choice(VALUES, n, p=TRUTH).tolist(), rng, event_times=np.zeros(n, dtype=np.int64))


# ---------------------------------------------------------------------- the likelihood, report by report


def probabilities(item: Collection, batch: ReportBatch, unknowns: tuple[str, ...]) -> np.ndarray:
    """(n, U), or (n, U + 1) with unlisted texts last: Pr(report | text) in its cohort."""
    of_symbols = np.exp(item.mechanism.log_prob(batch.payloads))
    if item.alphabet.id == "tagged":
        return of_symbols
    table = item.alphabet.symbol_table(unknowns, item.num_cohorts)
    table = np.broadcast_to(table, (item.num_cohorts, len(unknowns)))
    rows = np.take_along_axis(of_symbols, table[batch.cohorts], axis=1)
    if item.alphabet.known_values is not None:
        return rows
    anywhere = of_symbols[:, : item.alphabet.num_sensitive].mean(axis=1, keepdims=True)
    return np.concatenate([rows, anywhere], axis=1)


def log_likelihood(rows: np.ndarray, p: np.ndarray) -> float:
    with np.errstate(divide="ignore"):
        return float(np.log(rows @ p).sum())


def proved_gap(rows: np.ndarray, p: np.ndarray) -> float:
    gradient = rows.T @ (1 / (rows @ p))
    return float(len(rows) * np.log(gradient.max() / len(rows)))


def shown(item: Collection, estimate: Estimate) -> np.ndarray:
    """The point at which ``probabilities`` has the estimate's likelihood; of an alphabet without tags."""
    rest = [] if item.alphabet.known_values is not None else [estimate.left_over]
    return np.append(estimate.frequencies, rest)


def unknowns_of(item: Collection, candidates: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*candidates, *item.alphabet.clear_values)))


@pytest.mark.parametrize(("alphabet", "mechanism"), [pair for pair in PAIRS if pair[0] != "tagged"])
@pytest.mark.parametrize("n", [40, 1500])
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_em_reaches_the_maximum(alphabet, mechanism, n, epsilon):
    item = collection(alphabet, mechanism, epsilon)
    batch = reports(item, n)
    asked = unknowns_of(item, VALUES if alphabet in ("closed", "permuted") else VALUES[:4])
    estimate = item.estimate_reports(batch, "em", asked)
    rows, point = probabilities(item, batch, asked), shown(item, estimate)
    assert (point >= 0).all()
    assert point.sum() == pytest.approx(1)
    gap = proved_gap(rows, np.maximum(point, 0))
    assert gap <= TOLERANCE + 1e-6
    assert estimate.likelihood_gap == pytest.approx(gap, abs=1e-6)
    others = [item.estimate_reports(batch, which, asked) for which in ("projected", "normalized")]
    for other in (*(shown(item, one) for one in others), np.full(len(point), 1 / len(point))):
        assert log_likelihood(rows, point) >= log_likelihood(rows, other) - TOLERANCE


def test_em_reaches_the_maximum_with_tags():
    """The likelihood is one of symbols; their most likely frequencies are then shared out, as ``ml`` has them."""
    item = collection("tagged", "urr", 2.0)
    batch = reports(item, 800)
    one, other = (item.estimate_reports(batch, which) for which in ("em", "ml"))
    np.testing.assert_allclose(one.frequencies, other.frequencies, atol=0.02)
    assert one.frequencies.sum() == pytest.approx(1)


@pytest.mark.parametrize(("alphabet", "mechanism"), COUNTED)
@pytest.mark.parametrize("epsilon", [0.3, 6.0])
def test_counts_say_as_much_as_reports_where_a_report_is_one_symbol(alphabet, mechanism, epsilon):
    item = collection(alphabet, mechanism, epsilon)
    batch = reports(item, 1000)
    asked = unknowns_of(item, VALUES)
    of_reports, of_counts = item.estimate_reports(batch, "em", asked), item.estimate(item.count(batch), "em", asked)
    np.testing.assert_allclose(of_counts.frequencies, of_reports.frequencies, atol=1e-6)
    assert of_counts.left_over == pytest.approx(of_reports.left_over, abs=1e-6)
    assert of_counts.likelihood_gap == pytest.approx(of_reports.likelihood_gap, abs=1e-5)
    for field in ("raw_frequencies", "standard_errors", "num_reports"):
        np.testing.assert_array_equal(getattr(of_counts, field), getattr(of_reports, field))
    for field in ("ci_low", "ci_high"):  # which reach what is shown
        np.testing.assert_allclose(getattr(of_counts, field), getattr(of_reports, field), atol=1e-6)


@pytest.mark.parametrize("num_values", [50, 90])
@pytest.mark.parametrize("mechanism", ["urap", "uss", "marginal"])
def test_reports_that_are_too_long_to_be_grouped(mechanism, num_values):
    """Up to eight bytes equal reports are one outcome, beyond that each is its own."""
    values = [f"value {i}" for i in range(num_values)]
    fields = FIELDS.get(mechanism, {}) | {"id": "urap" if mechanism == "marginal" else mechanism, "epsilon": 3.0}
    alphabet = {"id": "closed", "values": values, "sensitive": values[:-3]}
    item = made(alphabet, fields)
    assert (item.mechanism.payload_size > 8) == (num_values == 90)
    rng = generator("long", mechanism, num_values)
    texts = [values[i] for i in np.minimum(rng.geometric(0.1, 600), num_values) - 1]
    texts[::9] = [values[-1]] * len(texts[::9])
    batch = item.perturb(texts, rng)
    estimate = item.estimate_reports(batch, "em")
    rows = probabilities(item, batch, tuple(values))
    assert proved_gap(rows, estimate.frequencies) <= TOLERANCE + 1e-6
    outcomes = item.mechanism.outcomes_of_reports(batch.payloads, batch.cohorts)
    assert outcomes is not None
    assert outcomes.counts.sum() == 600


@pytest.mark.parametrize(("alphabet", "mechanism"), PAIRS)
def test_outcomes_are_the_reports_up_to_factors_of_their_own(alphabet, mechanism):
    """Kinds of reports with their probabilities, each divided by a constant that no frequency changes."""
    item = collection(alphabet, mechanism, 1.5)
    batch = reports(item, 300)
    found = [item.mechanism.outcomes_of_reports(batch.payloads, batch.cohorts)]
    found += [item.mechanism.outcomes_of_counts(item.count(batch))] * ((alphabet, mechanism) in COUNTED)
    expected = scaled(batch.cohorts, np.exp(item.mechanism.log_prob(batch.payloads)), np.ones(len(batch)))
    for outcomes in found:
        assert outcomes is not None
        assert (outcomes.counts > 0).all()
        rows = outcomes.rows.toarray() + outcomes.base[:, np.newaxis]
        assert scaled(outcomes.cohorts, rows, outcomes.counts) == expected


def scaled(cohorts: np.ndarray, rows: np.ndarray, counts: np.ndarray) -> dict[tuple[float, ...], float]:
    """How often each cohort and row of probabilities came, rows divided by their sum."""
    table: dict[tuple[float, ...], float] = {}
    for cohort, row, number in zip(cohorts, rows, counts):
        key = (float(cohort), *(np.round(row / row.sum(), 9) + 0.0))
        table[key] = table.get(key, 0) + float(number)
    return table


def test_mechanisms_of_bits_have_no_likelihood_of_counts():
    for alphabet, mechanism in PAIRS:
        item = collection(alphabet, mechanism)
        assert ExpectationMaximization().supports(item) == ((alphabet, mechanism) in COUNTED)
        if (alphabet, mechanism) in COUNTED:
            continue
        counts = item.count(reports(item, 500))
        with pytest.raises(SpecError, match="counts do not hold the likelihood of"):
            item.estimate(counts, "em", VALUES)


def test_several_hash_functions_are_refused():
    alphabet = {"id": "hashed", "num_buckets": 8, "num_hashes": 2}
    item = made(alphabet, {"id": "rappor", "epsilon": 2.0}, num_cohorts=9)
    with pytest.raises(SpecError, match="several hash functions per cohort"):
        item.estimate_reports(reports(item, 300), "em", VALUES)
    assert item.estimate_reports(reports(item, 300), "projected", VALUES).estimator == "projected"


# ---------------------------------------------------------------------- inputs at the edge

DEGENERATE = [pair for pair in PAIRS if pair[1] in ("krr", "urr", "urap", "ss", "tsp", "agrr")]


@pytest.mark.parametrize(("alphabet", "mechanism"), DEGENERATE)
@pytest.mark.parametrize("epsilon", [2.0**-10, 1.0, 16.0])
def test_em_stays_on_the_simplex_whatever_is_counted(alphabet, mechanism, epsilon):
    """One value for everybody, from many reports and from so few that cohorts and cells are empty."""
    item = collection(alphabet, mechanism, epsilon)
    rng = generator("degenerate", alphabet, mechanism, epsilon)
    asked = unknowns_of(item, VALUES[:1]) if item.alphabet.known_values is None else VALUES
    for texts in (["ant"] * 5, ["ant"] * 400, ["fox"] * 400, ["emu", "cat"] * 30):
        batch = item.perturb(texts, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                estimate = item.estimate_reports(batch, "em", asked)
            except ValueError as refusal:
                assert alphabet == "permuted" and len(texts) == 5, refusal  # too few cohorts
                continue
        point = np.append(estimate.frequencies, estimate.left_over)
        assert (point >= 0).all()
        assert point.sum() == pytest.approx(1)
        assert 0 <= estimate.likelihood_gap <= TOLERANCE


# ---------------------------------------------------------------------- the iteration itself


def hidden(size: int, kinds: int, *names: object) -> Likelihood:
    """Random outcomes, some of which rule unknowns out."""
    rng = generator("hidden", size, kinds, *names)
    rows = rng.exponential(size=(kinds, size)) * (rng.random((kinds, size)) < 0.4)
    base = (rng.random(kinds) < 0.5) * rng.random(kinds)
    rows[~rows.any(axis=1) & (base == 0)] = 1
    return Likelihood(rng.integers(1, 50, kinds).astype(np.float64), base, sparse.csr_array(rows))


def value_at(likelihood: Likelihood, p: np.ndarray) -> float:
    probability = likelihood.rows.toarray() @ p + likelihood.base
    return float(likelihood.counts @ np.log(probability))


def maximum_by_scipy(likelihood: Likelihood, size: int) -> float:
    found = optimize.minimize(
        lambda p: -value_at(likelihood, np.maximum(p, 1e-12)),
        np.full(size, 1 / size),
        method="SLSQP",
        bounds=[(1e-12, 1)] * size,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        options={"maxiter": 500, "ftol": 1e-13},
    )
    point = np.maximum(found.x, 0)
    return value_at(likelihood, point / point.sum())  # its sum is 1 but for 1e-8


HIDDEN = [(2, 3), (5, 4), (5, 40), (30, 12)]


@pytest.mark.parametrize(("size", "kinds"), HIDDEN)
def test_it_is_the_maximum_that_another_method_finds(size, kinds):
    likelihood = hidden(size, kinds)
    point, gap = maximize(likelihood, np.full(size, 1 / size), 1e-6, 20_000)
    best = maximum_by_scipy(likelihood, size)
    assert value_at(likelihood, point) >= best - 2e-6
    assert gap <= 1e-6
    assert best <= value_at(likelihood, point) + gap + 1e-6


@pytest.mark.parametrize("bins", [64, 256])
def test_numbers_take_few_steps_to_a_proved_maximum(bins):
    """The square wave, whose symbols are nearly alike: diagonal steps alone need two thousand, or more."""
    spec = Collection.from_json(
        {"id": "t", "version": 1, "mechanism": {"id": "sw", "epsilon": 2.0}}
        | {"alphabet": {"id": "ordered", "low": 0, "high": 100, "num_bins": bins, "unit": "ms"}}
    )
    centres = (np.arange(bins) + 0.5) / bins
    law = np.exp(-0.5 * ((np.log(centres) + 1.2) / 0.5) ** 2) / centres
    cells = generator("wave", bins).multinomial(500_000, spec.mechanism.response(law / law.sum()))
    outcomes = spec.mechanism.outcomes_of_counts(CohortCounts(np.array([500_000]), cells[np.newaxis]))
    likelihood = Likelihood(outcomes.counts, outcomes.base, outcomes.rows)
    point, gap = maximize(likelihood, np.full(bins, 1 / bins), TOLERANCE, 20)
    assert gap <= TOLERANCE
    further, _ = maximize(likelihood, point, 1e-6, 40)
    assert 0 <= value_at(likelihood, further) - value_at(likelihood, point) <= gap + 1e-6


def test_what_is_too_large_for_full_steps_has_the_same_maximum(monkeypatch):
    likelihood = hidden(30, 12)
    point, _ = maximize(likelihood, np.full(30, 1 / 30), 1e-9, 20_000)
    monkeypatch.setattr(likelihood_module, "_FULL", 0)
    other, gap = maximize(hidden(30, 12), np.full(30, 1 / 30), 1e-9, 200_000)
    assert gap <= 1e-9
    assert value_at(likelihood, other) == pytest.approx(value_at(likelihood, point), abs=2e-9)


@pytest.mark.parametrize(("size", "kinds"), HIDDEN)
def test_the_likelihood_never_falls_and_the_bound_always_holds(size, kinds):
    """Stopped after every number of steps."""
    likelihood = hidden(size, kinds, "steps")
    best = value_at(likelihood, maximize(likelihood, np.full(size, 1 / size), 1e-9, 50_000)[0])
    start = generator("start", size).dirichlet(np.full(size, 0.3))
    values, steps = [value_at(likelihood, 0.999 * start + 0.001 / size)], [0, 1, 2, 3, 4, 5, 7, 10, 20, 50, 100]
    for number in steps:
        point, gap = maximize(likelihood, start, 1e-9, number)
        values.append(value_at(likelihood, point))
        assert (point >= 0).all()
        assert point.sum() == pytest.approx(1)
        assert best - values[-1] <= gap + 1e-8
    assert (np.diff(values) >= -1e-9).all()


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(1e-3, 1e3)), min_size=1, max_size=8))
def test_projection_in_a_metric_is_the_nearest_distribution(rows):
    """No move of mass from one entry to another comes nearer: metric (q - point) is least and equal where q > 0."""
    point, metric = np.array(rows).T
    nearest = project_in_metric(point, metric)
    assert (nearest >= 0).all()
    assert nearest.sum() == pytest.approx(1)
    slope = metric * (nearest - point)
    level = slope[nearest > 0]
    assert np.ptp(level) <= 1e-8 * (1 + abs(slope).max())
    assert (slope >= level.min() - 1e-8 * (1 + abs(slope).max())).all()


# ---------------------------------------------------------------------- the closed form


def closed(mechanism: str, num_symbols: int, num_sensitive: int, epsilon: float) -> Collection:
    values = [f"value {i}" for i in range(num_symbols)]
    alphabet = {"id": "closed", "values": values, "sensitive": values[:num_sensitive]}
    fields = {"id": mechanism, "epsilon": epsilon}
    return made(alphabet, fields)


def counted(*cells: int) -> CohortCounts:
    return CohortCounts(np.array([sum(cells)]), np.array([cells]))


def likelihood_of_counts(mechanism: str, v: int, epsilon: float, cells: np.ndarray, p: np.ndarray) -> float:
    """ln of the probability of the counts: E p_x + 1 - p_x for a sensitive x, p_z for the others, up to factors."""
    v = len(cells) if mechanism == "krr" else v
    probability = np.concatenate([1 + np.expm1(epsilon) * p[:v], p[v:]])
    seen = cells > 0
    with np.errstate(divide="ignore"):
        return float(cells[seen] @ np.log(probability[seen]))


@pytest.mark.parametrize(("mechanism", "v"), [("krr", 3), ("urr", 2), ("urr", 1)])
@pytest.mark.parametrize("cells", [(5, 1, 0), (3, 3, 3), (0, 0, 7), (9, 0, 1), (1, 2, 30), (1, 0, 0)])
def test_no_point_of_a_grid_is_more_likely(mechanism, v, cells):
    for epsilon in (0.1, 1.0, 8.0):
        best = closed(mechanism, 3, v, epsilon).estimate(counted(*cells), "ml").frequencies
        value = likelihood_of_counts(mechanism, v, epsilon, np.array(cells), best)
        for i, j in itertools.combinations_with_replacement(range(41), 2):
            other = np.array([i, j - i, 40 - j]) / 40
            assert likelihood_of_counts(mechanism, v, epsilon, np.array(cells), other) <= value + 1e-9


any_counts = st.lists(st.integers(0, 10**6), min_size=2, max_size=9).filter(any)


@given(any_counts, st.integers(1, 9), st.sampled_from([2.0**-10, 0.5, 3.0, 16.0]), st.sampled_from(["krr", "urr"]))
def test_the_closed_form_is_the_maximum(cells, v, epsilon, mechanism):
    """By the gradient: n at every positive entry, less at the others. And it is what EM finds."""
    item = closed(mechanism, len(cells), min(v, len(cells)), epsilon)
    counts = counted(*cells)
    p = item.estimate(counts, "ml").frequencies
    assert (p >= 0).all()
    assert p.sum() == pytest.approx(1)
    n, sensitive = sum(cells), item.mechanism.num_sensitive
    gain, seen = item.mechanism.gain, np.array(cells, dtype=np.float64)
    protected, clear = seen[:sensitive] / (1 + gain * p[:sensitive]), seen[sensitive:]
    gradient = np.concatenate([protected.sum() + gain * protected, np.full(len(clear), protected.sum())])
    positive = np.flatnonzero(clear)
    gradient[sensitive + positive] += clear[positive] / p[sensitive + positive]
    assert (gradient <= n * (1 + 1e-9)).all()
    np.testing.assert_allclose(gradient[p > 1e-9], n, rtol=1e-6)
    em = item.estimate(counts, "em")
    value, other = (likelihood_of_counts(mechanism, sensitive, epsilon, seen, q) for q in (p, em.frequencies))
    assert -1e-6 * (1 + abs(value)) <= value - other <= em.likelihood_gap + 1e-9 * (1 + abs(value))


@pytest.mark.parametrize("epsilon", [2.0**-10, 0.5, 3.0])
def test_a_value_that_was_seen_once_in_clear_is_never_impossible(epsilon):
    """Its share is small beside thousands of others, and one long step would lead to 0, where L is minus infinity."""
    item = closed("urr", 4, 1, epsilon)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate = item.estimate(counted(0, 1, 984, 7997), "em")
    np.testing.assert_allclose(estimate.frequencies, np.array([0, 1, 984, 7997]) / 8982, rtol=0.05)
    assert estimate.likelihood_gap <= TOLERANCE


def test_the_closed_form_is_for_randomized_response_over_values():
    supported = {pair for pair in PAIRS if "ml" not in refused(collection(*pair), ("ml",))}
    assert supported == {
        *itertools.product(("closed", "tagged"), ("krr", "urr")),
        *itertools.product(("closed",), ("up", "agrr")),
    }


def refused(item: Collection, which: tuple[str, ...]) -> set[str]:
    """Estimators that do not support the collection."""
    result = set()
    for name in which:
        try:
            item.estimate(item.count(reports(item, 2000)), name, VALUES)
        except SpecError as error:
            assert str(error).startswith(f"estimator {name!r} does not support collection 'c': ")
            result.add(name)
    return result
