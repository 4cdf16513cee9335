"""Of the R largest shares of all groups together, at most 5 % are missed by their display intervals."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest
from scipy import stats

from tests.support.tolerance import RATE, generator
from uldp_transforms.ldp import Collection, Estimate

GROUPS, VALUES, WINDOWS, EACH = 24, 10, 40, 100


def asked(mechanism: str, epsilon: float, groups: int = GROUPS) -> Collection:
    """A dimension of so many groups, with ``other``, and another one."""
    return Collection.from_json(
        {
            "id": "c",
            "version": 1,
            "alphabet": {"id": "closed", "values": [f"v{i}" for i in range(VALUES)]},
            "mechanism": {"id": mechanism, "epsilon": epsilon},
            "dimensions": [
                {"name": "region", "values": [f"r{i}" for i in range(groups - 1)]},
                {"name": "arm", "values": ["new"]},
            ],
        }
    )


def estimates(
    item: Collection, shares: np.ndarray, rng: np.random.Generator, estimator: str, each: int = EACH
) -> list[Estimate]:
    """One window: the estimates of all groups, in which people answer alike; ``each`` people in a group."""
    regions = np.repeat(item.dimensions[0].all_values, each).tolist()
    held = rng.choice(item.alphabet.known_values or (), len(regions), p=shares).tolist()
    of = {"region": regions, "arm": ["new"] * len(held)}
    return list(item.estimate_by(item.perturb(held, rng, None, of), ["region"], estimator).values())


def missed(window: list[Estimate], shares: np.ndarray) -> np.ndarray:
    """(G S,) bool in descending order of frequency: whether the display interval misses the share."""
    ends = [one.display_intervals(VALUES) for one in window]
    low, high = (np.concatenate([pair[side] for pair in ends]) for side in (0, 1))
    order = np.argsort(-np.concatenate([one.frequencies for one in window]), kind="stable")
    truth = np.tile(shares, len(window))
    found: np.ndarray = ((low > truth) | (high < truth))[order]
    return found


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "estimator"), [("krr", 1.0, "projected"), ("rappor", 2.0, "projected"), ("krr", 1.0, "eb")]
)
def test_of_the_largest_shares_of_all_groups_few_are_missed(mechanism: str, epsilon: float, estimator: str) -> None:
    """The largest of all is missed in 5 % of windows at most, and of the first 20 as many on average."""
    item, rng = asked(mechanism, epsilon), generator("largest of groups", mechanism, estimator)
    shares = np.full(VALUES, 1 / VALUES)
    wrong = np.array([missed(estimates(item, shares, rng, estimator), shares) for _ in range(WINDOWS)])
    assert wrong[:, 0].sum() <= stats.binom.isf(RATE, WINDOWS, 0.05)
    of_first = wrong[:, :20].mean(axis=1)
    error = max(of_first.std(ddof=1), np.sqrt(0.05 * 0.95 / 20)) / np.sqrt(WINDOWS)
    assert of_first.mean() <= 0.05 + stats.t.isf(RATE, WINDOWS - 1) * error


def test_the_level_counts_the_values_of_all_groups() -> None:
    """Of the named dimensions only, listed values and ``other``, whether or not they have reports."""
    item, rng = asked("krr", 1.0), generator("levels of groups")
    shares = np.full(VALUES, 1 / VALUES)
    for one in estimates(item, shares, rng, "projected"):
        assert one.num_groups == GROUPS
        largest = int(one.largest(1)[0])
        low, high = one.intervals(1 - 0.05 / (VALUES * GROUPS), strict=True)
        assert one.display_intervals(1) == (low[largest], high[largest])


def main() -> None:
    """Print missed shares and lengths; an argument is the number of windows."""
    number, rng = int(sys.argv[1]) if len(sys.argv) > 1 else 200, generator("table of groups")
    print("| epsilon, estimator | shares | groups counted | 1 | 20 | 100 | length |\n|---|---|---|---|---|---|---|")
    for epsilon, estimator in ((1.0, "projected"), (2.0, "eb")):
        for name, weights in (("all alike", np.ones(VALUES)), ("1 / rank", 1 / np.arange(1.0, VALUES + 1))):
            item, shares, told = asked("krr", epsilon, 20), weights / weights.sum(), []
            for _ in range(number):
                window = estimates(item, shares, rng, estimator, 500)
                for groups in (1, 20):
                    seen = [dataclasses.replace(one, num_groups=groups) for one in window]
                    wrong = missed(seen, shares)
                    length = np.mean([np.subtract(*one.display_intervals(VALUES)[::-1]) for one in seen])
                    told.append([100 * wrong[0], 100 * wrong[:20].mean(), 100 * wrong[:100].mean(), length])
            for groups, row in zip(("its own", "all 20"), np.array(told).reshape(number, 2, 4).mean(axis=0)):
                rates = " | ".join(f"{rate:.1f}" for rate in row[:3])
                print(f"| {epsilon:g}, {estimator} | {name} | {groups} | {rates} | {row[3]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
