"""Estimates over tagged alphabets: the people behind a tag are shared out, and standard errors know of it.

The map itself, the alphabet and the device's side: test_tagged.py. Letters: r symbol frequencies, p those of values.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.support.calibration import assert_calibrated, windows
from tests.support.cases import UTILITY_OPTIMIZED
from tests.support.ldp.made_collections import made
from tests.support.tolerance import generator, normal_limit
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.alphabets import PersonalTags, Tagged
from uldp_transforms.ldp.mechanisms.count_intervals import binomial_intervals

VALUES = ("a", "clinic", "b", "c", "jail", "d")  # the sensitive ones are not the first
SENSITIVE, OTHERS, TAGS = ("clinic", "jail"), ("a", "b", "c", "d"), ("home", "work")
SENT = {"clinic": 0.1, "jail": 0.05, "home": 0.15, "work": 0.1, "a": 0.3, "b": 0.2, "c": 0.06, "d": 0.04}
KNOWN: dict[str, dict[str, dict[str, float]]] = {
    "nothing": {},
    "home": {"home": {"b": 0.25, "d": 0.75}},
    "both": {"home": {"b": 0.25, "d": 0.75}, "work": {"c": 1.0}},
}
FIELDS: dict[str, dict] = UTILITY_OPTIMIZED | {"krr": {}, "rappor": {}}
knowledge = pytest.mark.parametrize("known", KNOWN)
mechanisms = pytest.mark.parametrize("mechanism", FIELDS)


def collection(mechanism: str, known: str = "nothing", epsilon: float = 1.0) -> Collection:
    alphabet = {"id": "tagged", "values": list(VALUES), "tags": list(TAGS), "sensitive": list(SENSITIVE)}
    if KNOWN[known]:
        alphabet["background"] = KNOWN[known]
    fields = {"id": mechanism, "epsilon": epsilon} | FIELDS[mechanism]
    return made(alphabet, fields)


def over_symbols(mechanism: str, epsilon: float = 1.0) -> Collection:
    """The closed collection whose values are what clients send; it has the same counts."""
    alphabet = {"id": "closed", "values": list(SENT), "sensitive": list(SENT)[:4]}
    fields = {"id": mechanism, "epsilon": epsilon} | FIELDS[mechanism]
    return made(alphabet, fields)


def shared_out(r: dict[str, float], known: str) -> np.ndarray:
    """p of VALUES, value by value. If nobody sent one of the other values in clear, these share equally."""
    total = sum(r[value] for value in OTHERS)
    like = {value: r[value] / total if total > 0 else 1 / len(OTHERS) for value in OTHERS}
    p = dict.fromkeys(VALUES, 0.0) | {value: r[value] for value in VALUES}
    for tag in TAGS:
        for value, share in KNOWN[known].get(tag, like).items():
            p[value] += r[tag] * share
    return np.array([p[value] for value in VALUES])


def derivative(r: dict[str, float], known: str) -> np.ndarray:
    """(values, symbols), by differences."""
    columns = []
    for text in SENT:
        up, down = ({**r, text: r[text] + step} for step in (1e-6, -1e-6))
        columns.append((shared_out(up, known) - shared_out(down, known)) / 2e-6)
    return np.column_stack(columns)


def sent(mechanism: str, n: int, *names: object, epsilon: float = 1.0, periods: int = 1) -> list[CohortCounts]:
    rng = generator("tagged", mechanism, n, *names)
    return windows(collection(mechanism, epsilon=epsilon), tuple(SENT), list(SENT.values()), periods, n, rng=rng)


@knowledge
@pytest.mark.parametrize(
    ("mechanism", "estimator"),
    [(m, e) for m in FIELDS for e in ("empirical", "normalized", "projected", "threshold")]
    + [(m, e) for m in ("urr", "krr") for e in ("ml", "em")],
)
def test_exact_counts_give_the_truth(known, mechanism, estimator):
    item = collection(mechanism, known)
    cells = np.rint(10**14 * item.mechanism.response(np.array(list(SENT.values())))).astype(np.int64)
    counts = CohortCounts(np.array([10**14]), cells[np.newaxis])
    estimate = item.estimate(counts, estimator)
    truth = shared_out(SENT, known)
    assert estimate.values == VALUES
    np.testing.assert_allclose(estimate.frequencies, truth, atol=1e-5 if estimator == "em" else 1e-9)
    np.testing.assert_allclose(estimate.raw_frequencies, truth, atol=1e-9)
    assert estimate.redistributed_mass == pytest.approx(0.25)
    assert estimate.unexplained_mass == estimate.unexplained_standard_error == 0
    part = item.estimate(counts, estimator, ("d", "jail"))
    np.testing.assert_allclose(part.frequencies, truth[[5, 4]], atol=1e-5)
    assert part.unexplained_mass == pytest.approx(1 - truth[[5, 4]].sum(), abs=1e-5)


@knowledge
@mechanisms
@pytest.mark.parametrize("n", [300, 5000])
def test_estimates_and_errors_follow_from_those_of_the_symbols(known, mechanism, n):
    """p = f(r); its covariance is that of r through the derivative of f, at the plausible r."""
    (counts,) = sent(mechanism, n, epsilon=3.0)
    item, symbols = collection(mechanism, known, 3.0), over_symbols(mechanism, 3.0)
    of_symbols = symbols.estimate(counts)
    r = dict(zip(SENT, of_symbols.raw_frequencies))
    plausible = dict(zip(SENT, symbols.estimate(counts, "normalized").frequencies))
    estimate = item.estimate(counts)
    np.testing.assert_allclose(estimate.raw_frequencies, shared_out(r, known), atol=1e-12)
    assert estimate.redistributed_mass == pytest.approx(abs(r["home"]) + abs(r["work"]))

    identity, at = np.eye(len(SENT)), np.array(list(plausible.values()))
    pairs = symbols.mechanism.variance_of(identity[:, np.newaxis] + identity[np.newaxis], at)
    own = np.diag(pairs) / 4
    covariance = (pairs - own[:, np.newaxis] - own[np.newaxis]) / 2 / n
    through = derivative(plausible, known)
    expected = through @ covariance @ through.T
    symbols = [list(SENT).index(value) for value in VALUES]
    one_more = through[range(len(VALUES)), symbols] * item.mechanism.jumps[symbols] / n
    np.testing.assert_allclose(estimate.standard_errors, np.sqrt(np.diag(expected) + one_more**2), rtol=1e-6)
    for part in (("a",), ("jail", "d"), ("c", "b", "clinic")):
        left = [i for i, value in enumerate(VALUES) if value not in part]
        rest = item.estimate(counts, candidates=part)
        assert rest.unexplained_standard_error == pytest.approx(np.sqrt(expected[np.ix_(left, left)].sum()), rel=1e-6)
        assert rest.left_over == pytest.approx(estimate.frequencies[left].sum())


def test_the_interval_adds_half_widths_in_squares():
    """Of the own symbol, here of its clear count, and of what is behind the tags."""
    n = 1000
    counts = CohortCounts(np.array([n]), np.array([[150, 120, 160, 130, 200, 140, 60, 40]]))
    item, symbols = collection("urr", "both", 2.0), over_symbols("urr", 2.0)
    estimate, of_symbols = item.estimate(counts, "empirical"), symbols.estimate(counts)
    own, raw = dict(zip(SENT, range(8))), of_symbols.raw_frequencies
    errors = np.sqrt(of_symbols.standard_errors**2 - (symbols.mechanism.jumps / n) ** 2)
    behind = {"a": {}, "b": {"home": 0.25}, "c": {"work": 1.0}, "d": {"home": 0.75}}
    for value, tags in behind.items():
        clear = binomial_intervals(counts.cells[:, own[value]], n, 0.95)
        low, high = (limit[0] / item.mechanism.kappa for limit in clear)
        half = sum(share * stats.norm.isf(0.025) * errors[own[tag]] for tag, share in tags.items())
        share = raw[own[value]]
        p = share + sum(part * raw[own[tag]] for tag, part in tags.items())
        place = VALUES.index(value)
        assert estimate.ci_low[place] == pytest.approx(min(p, max(p - np.hypot(share - low, half), 0)))
        assert estimate.ci_high[place] == pytest.approx(min(p + np.hypot(high - share, half), 1))


@pytest.mark.parametrize(
    ("mechanism", "known", "epsilon", "n"),
    [
        ("urr", "nothing", 0.7, 2000),
        ("urr", "both", 16.0, 600),
        ("urap", "home", 2.0, 1000),
        ("uss", "both", 8.0, 600),
        ("krr", "nothing", 2.0, 3000),
        ("rappor", "home", 4.0, 1000),
    ],
)
def test_standard_errors_and_intervals(mechanism, known, epsilon, n):
    """Of values that are sent in clear a part of the interval is that of their counts, which may be too long."""
    item, truth = collection(mechanism, known, epsilon), shared_out(SENT, known)
    counted = sent(mechanism, n, known, epsilon=epsilon, periods=400)
    in_clear = np.array([value in OTHERS and not item.mechanism.protects_all for value in VALUES])
    assert_calibrated([item.estimate(counts) for counts in counted], truth, 0, cautious=in_clear)
    asked = [VALUES.index(value) for value in ("d", "clinic", "a")]
    estimates = [item.estimate(counts, candidates=[VALUES[i] for i in asked]) for counts in counted]
    assert_calibrated(estimates, truth[asked], 1 - truth[asked].sum(), cautious=in_clear[asked])


def test_people_who_hide_their_own_values_are_counted_by_what_is_known_of_them():
    """Everybody has a home among the values and sends "home" in its place; what is behind that tag is known."""
    alphabet, n, rng = Tagged(values=VALUES, tags=TAGS, sensitive=SENSITIVE), 20_000, generator("people")
    homes = rng.choice(OTHERS, n, p=[0.1, 0.6, 0.2, 0.1])
    visits = rng.choice(VALUES, n, p=[0.3, 0.1, 0.2, 0.1, 0.1, 0.2])
    visits = np.where(rng.random(n) < 0.5, homes, visits)
    texts = [PersonalTags(alphabet, {"home": [home]}).hide([visit])[0] for home, visit in zip(homes, visits)]
    hidden = visits[np.array(texts) == "home"]
    behind = {value: float((hidden == value).mean()) for value in OTHERS}
    spec = collection("urr", epsilon=3.0).to_json()
    spec["alphabet"]["background"] = {"home": behind}
    item = Collection.from_json(spec)
    estimate = item.estimate(item.count(item.perturb(texts, rng)))
    truth = np.array([(visits == value).mean() for value in VALUES])
    assert (abs(estimate.raw_frequencies - truth) <= normal_limit(6) * estimate.standard_errors).all()
    assert estimate.redistributed_mass == pytest.approx(len(hidden) / n, abs=0.1)

    wrong = item.to_json()
    wrong["alphabet"]["background"] = {"home": {"a": 1.0}}
    item = Collection.from_json(wrong)
    moved = item.estimate(item.count(item.perturb(texts, generator("people again"))))
    distance = abs(moved.raw_frequencies - truth).sum()
    noise = normal_limit(6) * moved.standard_errors.sum()
    assert 0.2 < distance <= 2 * moved.redistributed_mass + noise
