"""Windows that are solved together: the priors of ``fitted_prior``, and the same bits whatever stands beside them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import cases
from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.errors import NoReportsError
from uldp_transforms.ldp.estimators import ESTIMATORS, Estimate
from uldp_transforms.ldp.estimators import stacked_priors as module
from uldp_transforms.ldp.estimators.estimator import find_intervals
from uldp_transforms.ldp.estimators.stacked_priors import SHORT, Frequencies, posterior_means
from uldp_transforms.ldp.solvers.fitted_prior import Noisy, checked, fit_prior
from uldp_transforms.rows.samples.solutions import solve_windows

SIZES = (1, 2, 13, 16, 40, SHORT, SHORT + 1)


def lists() -> list[Frequencies]:
    """Lists of all sizes: from few reports to very many, without values that stand out, with some, and with all."""
    rng, found = generator("stacked priors"), []
    for number in range(70):
        size, reports = SIZES[number % len(SIZES)], int(10 ** rng.uniform(0.5, 6))
        shares = 1 / np.arange(1, size + 1) ** rng.uniform(0, 3)
        empty, slope = 0.3, 0.4
        counts = rng.binomial(reports, empty + slope * shares / shares.sum())
        null = np.full(size, empty * (1 - empty) / (reports * slope**2))
        estimates = (counts / reports - empty) / slope
        noisy = Noisy(estimates, null, np.full(size, (1 - 2 * empty) / (reports * slope)), float(reports))
        found.append(Frequencies(noisy, rng.uniform(0.3, 1) / size, bool(number % 2)))
    return found


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also few lists are solved together, not one after the other."""
    monkeypatch.setattr(module, "_FEW", 0)


@pytest.mark.usefixtures("together")
def test_each_list_has_the_means_of_its_own_prior() -> None:
    """Log-likelihoods of up to 10^6 reports are rounded in the tenth digit, which 60 steps carry on."""
    for one, means in zip(lists(), posterior_means(lists())):
        prior = checked(fit_prior(one.noisy, one.bound))
        expected = prior.means_given_the_sum() if one.sums_up else prior.means()
        np.testing.assert_allclose(means, expected, rtol=1e-7, atol=1e-12)


@pytest.mark.usefixtures("together")
def test_each_value_may_have_a_law_of_its_own() -> None:
    """Standard errors that double along the list, beside a list of equal ones, and one whose slopes alone differ."""
    rng, size, trials = generator("laws"), 30, 5_000.0
    shares, flat, rising = np.full(size, 1 / size), np.full(size, 2e-4), 2e-4 * np.linspace(1, 4, size)
    laws = [(rising, flat), (flat, flat), (flat, rising)]
    found = [Frequencies(Noisy(rng.normal(shares, np.sqrt(a)), a, b, trials), 1 / size, False) for a, b in laws]
    for one, means in zip(found, posterior_means(found)):
        np.testing.assert_allclose(means, checked(fit_prior(one.noisy, one.bound)).means(), rtol=1e-7, atol=1e-12)


def test_one_report_says_nothing_of_frequencies_far_above_all_people() -> None:
    """Such frequencies would have the likelihood of a certain success."""
    size = 20
    noisy = Noisy(np.append(1.0, np.zeros(size - 1)), np.zeros(size), np.ones(size), 1.0)
    (means,) = posterior_means([Frequencies(noisy, 1 / size, False)])
    np.testing.assert_allclose(means, checked(fit_prior(noisy, 1 / size)).means(), rtol=1e-7, atol=1e-12)


def test_means_do_not_depend_on_the_lists_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    every = lists()[:35]
    with monkeypatch.context() as patch:
        patch.setattr(module, "_FEW", 0)
        together = posterior_means(every)
    for number, one in enumerate(every):
        few = posterior_means([one, *every[number + 1 : number + 4]])
        np.testing.assert_array_equal(few[0], together[number])
        np.testing.assert_array_equal(posterior_means([one])[0], together[number])


@cases.all_collections
@pytest.mark.parametrize("estimator", ["eb", "projected"])
def test_windows_together_are_windows_alone(name: str, estimator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit, with a window without reports among them, and with intervals that are computed together too."""
    item, rng = cases.ALL_COLLECTIONS[name], generator("windows together", name)
    counts = [item.count(item.perturb(list(rng.choice(cases.VALUES, n)), rng)) for n in (1, 30, 400, 30, 77)]
    nothing = CohortCounts.empty(item.num_cohorts, item.num_cells)
    solver, candidates = ESTIMATORS[estimator](), None if item.alphabet.known_values else tuple(cases.VALUES)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_FEW", 0)
        found = solver.estimate_each([(item, each) for each in (*counts, nothing)], candidates)
    assert isinstance(found.pop(), NoReportsError)
    find_intervals([one for one in found if isinstance(one, Estimate)], 3)
    for each, together in zip(counts, found):
        try:
            alone = solver.estimate(item, each, candidates)
        except ValueError as error:
            assert str(together) == str(error)
            continue
        assert isinstance(together, Estimate)
        for field in ("frequencies", "raw_frequencies", "standard_errors", "ci_low"):
            np.testing.assert_array_equal(getattr(together, field), getattr(alone, field), field)
        np.testing.assert_array_equal(together.display_intervals(3), alone.display_intervals(3))
        assert together.left_over == alone.left_over


def test_windows_of_many_collections_keep_their_order() -> None:
    rng, solver = generator("order"), ESTIMATORS["eb"]()
    names = [name for name, item in cases.ALL_COLLECTIONS.items() if item.alphabet.known_values][:3] * 2
    windows = []
    for name in names:
        item = cases.ALL_COLLECTIONS[name]
        windows.append((item, item.count(item.perturb(list(rng.choice(item.alphabet.known_values, 50)), rng))))
    for window, (together, status) in zip(windows, solve_windows(windows, solver, None)):
        ((alone, expected),) = solve_windows([window], solver, None)
        assert status == expected == "ok"
        assert together is not None
        assert alone is not None
        np.testing.assert_array_equal(together.frequencies, alone.frequencies)
