"""Faults of estimators, solvers, discovery, smoothing, borrowing and comparisons."""

from __future__ import annotations

from tests.campaigns.planted.plant import Plant

ESTIMATES = (
    Plant(
        "changes that are judged after two windows",
        "uldp_transforms/ldp/smoothing/evidence.py",
        "LEAST_HISTORY = 8",
        "LEAST_HISTORY = 2",
        "two windows say nothing about what is normal: nearly every value would seem to have moved",
        ("tests/ldp/smoothing/test_alarm.py::test_a_jump_after_seven_windows_is_not_judged_and_one_after_eight_is",),
    ),
    Plant(
        "a rate of one value for all",
        "uldp_transforms/ldp/smoothing/evidence.py",
        "np.minimum.reduce(tails, axis=1, initial=1) * size / sudden",
        "np.minimum.reduce(tails, axis=1, initial=1) / sudden",
        "the p-value of the least likely of many values would be that of a single one",
        ("tests/ldp/smoothing/test_alarm.py::test_a_rate_is_that_of_the_rule_that_would_just_alarm",),
    ),
    Plant(
        "branches without the common part",
        "uldp_transforms/ldp/smoothing/breaks.py",
        "variances = (1 - weight) ** 2 * spread + weight * law.noise + values.series.common",
        "variances = (1 - weight) ** 2 * spread + weight * law.noise",
        "intervals around a break would lack the noise that all windows share",
        ("tests/ldp/smoothing/test_smoothed_shares.py::test_branches_are_courses_with_one_more_change",),
    ),
    Plant(
        "intervals as if nothing were selected",
        "uldp_transforms/ldp/discovery/discover.py",
        "1 - FALSE_DISCOVERIES * np.minimum(np.arange(1, len(values) + 1) / numbers[order], 1)",
        "1 - FALSE_DISCOVERIES * np.ones(len(values))",
        "the largest of many noisy values is in its usual interval far less often than 95 %",
        ("tests/ldp/discovery/test_discovery.py::test_intervals_have_levels_that_are_adjusted_for_the_selection",),
    ),
    Plant(
        "discovered intervals of the normal law",
        "uldp_transforms/ldp/discovery/discover.py",
        "    return np.asarray(np.maximum(normal / np.maximum(-special.ndtri(probabilities), 1e-3), 1))\n",
        "    return np.ones(len(raw))\n",
        "collisions with frequent texts have a heavier tail",
        ("tests/ldp/discovery/test_discovery.py::test_an_interval_is_as_much_longer_as_the_tail_is_heavier",),
    ),
    Plant(
        "all values left out at once",
        "uldp_transforms/ldp/discovery/discover.py",
        "rate = next(rates, FALSE_DISCOVERIES)",
        "rate = FALSE_DISCOVERIES",
        "values that fit noise hide true ones until they are left out",
        ("tests/ldp/discovery/test_discovery.py::test_values_are_left_out_the_clearest_first",),
    ),
    Plant(
        "tests of values without the frequent prefixes",
        "uldp_transforms/ldp/discovery/search.py",
        "            prefixes |= {prefix: None for prefix in peeled if prefix[-1] != END}\n",
        "",
        "a frequent prefix that is no value of its own is noise of all others",
        ("tests/ldp/discovery/test_discovery.py::test_a_value_is_tested_with_the_frequent_prefixes_subtracted",),
    ),
    Plant(
        "messages without memory",
        "uldp_transforms/ldp/solvers/message_passing.py",
        "memory = (rho * belief.fitted * state.error**2 * state.weights)[:, np.newaxis] * state.residuals",
        "memory = 0 * state.residuals",
        "believed values explain a part of themselves away",
        (
            "tests/ldp/solvers/test_message_passing.py::test_heavy_values_that_fill_a_quarter_of_the_equations_are_unbiased",
        ),
    ),
    Plant(
        "variances without the common part",
        "uldp_transforms/ldp/solvers/message_passing.py",
        " + everywhere + state.common * _lengths(buckets, state.weights**2, kept)",
        " + everywhere",
        "noise that does not decrease with reports would be missing from standard errors",
        ("tests/ldp/solvers/test_message_passing.py::test_variances_are_those_of_dense_algebra",),
    ),
    Plant(
        "the sum without the common part",
        "uldp_transforms/ldp/solvers/message_passing.py",
        "    of_sum += state.common * (weights**2 @ (heaps**2).sum(axis=1))\n",
        "",
        "the standard error of the rest would be too small",
        ("tests/ldp/solvers/test_message_passing.py::test_variances_are_those_of_dense_algebra",),
    ),
    Plant(
        "counted values without a bound",
        "uldp_transforms/ldp/estimators/empirical_bayes.py",
        "mass / np.count_nonzero(certain), sums_up)",
        "1.0, sums_up)",
        "values of which only holders are counted could be held by more people than reported them",
        ("tests/ldp/estimators/test_empirical_bayes.py::test_all_values_together_are_not_held_by_more_than_everybody",),
    ),
    Plant(
        "noisy values without a bound",
        "uldp_transforms/ldp/estimators/empirical_bayes.py",
        "most / np.count_nonzero(~certain), sums_up)",
        "1.0, sums_up)",
        "many values within the noise would sum to more than everybody",
        ("tests/ldp/estimators/test_empirical_bayes.py::test_all_values_together_are_not_held_by_more_than_everybody",),
    ),
    Plant(
        "a list that is bounded by everybody",
        "uldp_transforms/ldp/estimators/empirical_bayes.py",
        "        most = min(most, listed + _REACH * linear.rest_standard_error)\n",
        "        pass\n",
        "listed values would be held by people who hold unlisted ones",
        (
            "tests/ldp/estimators/test_empirical_bayes.py::test_listed_values_of_an_open_list_are_not_held_by_those_who_hold_others",
        ),
    ),
)
