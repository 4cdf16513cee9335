"""Windows of honest clients, of broken ones and of attackers, as counts drawn from their laws; what can be expected.

The laws are written down here from the papers' formulas, not taken from the library. As a program it prints the tables
of docs/sentinels.md: ``PYTHONPATH=. python tests/attacks.py``.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Callable, Iterator

import numpy as np
from cases import ALL_COLLECTIONS, VALUES, enumerated
from scipy import stats
from tolerance import generator

from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.sentinels import FALSE_ALARMS, SENTINELS, examine
from uldp_transforms.ldp.utility.canaries import canary_share

LEVEL = FALSE_ALARMS / len(SENTINELS)
OUTSIDE = 1e-5  # part of the level that confidence limits of the number of sensitive people use up
N = 200_000

Draw = Callable[[np.random.Generator], CohortCounts]


def closed(mechanism: str, num_values: int, num_sensitive: int, num_cohorts: int = 1) -> Collection:
    """Values 0, 1, ..., the first of which are sensitive; epsilon 1."""
    values = [f"value {i}" for i in range(num_values)]
    return Collection.from_json(
        {
            "id": "watched",
            "version": 1,
            "alphabet": {"id": "closed", "values": values, "sensitive": values[:num_sensitive]},
            "mechanism": {"id": mechanism, "epsilon": 1.0},
            "num_cohorts": num_cohorts,
        }
    )


# ---------------------------------------------------------------------- laws of counts


def one_symbol(
    rng: np.random.Generator, sizes: np.ndarray, shares: np.ndarray, v: int, epsilon: float = 1.0
) -> np.ndarray:
    """Cells of cohorts of clients of k-RR (v = K) or uRR."""
    noise, keep = rr_rates(v, epsilon)
    return rng.multinomial(sizes, keep * shares + noise * (np.arange(len(shares)) < v))


def rr_rates(v: int, epsilon: float = 1.0) -> tuple[float, float]:
    """Probability of each noise symbol, and of an informative report."""
    return (0.0, 1.0) if epsilon == math.inf else (1 / (v + math.expm1(epsilon)), 1 - v / (v + math.expm1(epsilon)))


def bit_rates(epsilon: float = 1.0) -> tuple[float, float, float]:
    """Probability of an own bit, of another bit, and of a clear report: symmetric RAPPOR and uRAP."""
    root = math.exp(epsilon / 2)
    return root / (1 + root), 1 / (1 + root), 1 - 1 / root


def unary(
    rng: np.random.Generator,
    sizes: np.ndarray,
    shares: np.ndarray,
    v: int,
    epsilon: float = 1.0,
    own: float | None = None,
) -> np.ndarray:
    """Cells of cohorts of clients of RAPPOR (v = K) or uRAP; ``own`` replaces the probability of an own bit."""
    theta, psi, reveal = bit_rates(epsilon)
    holders = rng.multinomial(sizes, shares)
    clear = rng.binomial(holders[:, v:], reveal)
    others = sizes[:, np.newaxis] - clear.sum(axis=1, keepdims=True) - holders[:, :v]
    ones = rng.binomial(holders[:, :v], theta if own is None else own) + rng.binomial(others, psi)
    return np.concatenate([ones, clear], axis=1)


def window(rng: np.random.Generator, n: int, num_cohorts: int, cells: Callable[..., np.ndarray]) -> CohortCounts:
    """Counts of n clients that draw their cohorts evenly; ``cells`` of the sizes of the cohorts."""
    sizes = rng.multinomial(n, np.full(num_cohorts, 1 / num_cohorts))
    return CohortCounts(sizes, cells(rng, sizes))


def fakes(number: int, report: dict[int, int], like: CohortCounts) -> CohortCounts:
    """Counts of fakes in the first cohort, of whom ``report[x]`` in 1 support the symbols x."""
    sizes, cells = np.zeros_like(like.num_reports), np.zeros_like(like.cells)
    sizes[0] = number
    for symbol, times in report.items():
        cells[0, symbol] = number * times
    return CohortCounts(sizes, cells)


def small_window(
    rng: np.random.Generator, item: Collection, shares: np.ndarray, n: int, num_windows: int
) -> Iterator[CohortCounts]:
    """Windows of honest people who hold VALUES, for any mechanism: multinomial over all payloads."""
    _, channel, cells, _ = enumerated(item.mechanism)
    table = np.broadcast_to(item.alphabet.symbol_table(VALUES, item.num_cohorts), (item.num_cohorts, len(VALUES)))
    held = np.zeros((item.num_cohorts, item.mechanism.num_symbols))
    np.add.at(held, (np.arange(item.num_cohorts)[:, np.newaxis], table), shares)
    law = held @ channel.T
    law /= law.sum(axis=1, keepdims=True)
    for _ in range(num_windows):
        yield window(rng, n, item.num_cohorts, lambda rng, sizes: rng.multinomial(sizes, law) @ cells)


# ---------------------------------------------------------------------- what may be expected


def share_below_floor(share: float, j: int, v: int, n: int = N) -> float:
    """Chance that ``floor`` fires because j symbols lack this share of their noise, in uRR."""
    rate = j * rr_rates(v)[0]
    critical = stats.binom.ppf(LEVEL / (v * math.comb(v, j)), n, rate) - 1
    return float(stats.binom.cdf(critical, n, (1 - share) * rate))


def clear_above_ceiling(certain: int, rest: float, reveal: float, n: int = N) -> float:
    """Chance that ``ceiling`` fires: ``certain`` clear reports, and others with probability ``rest``."""
    critical = stats.binom.isf(LEVEL, n, reveal) + 1
    return float(stats.binom.sf(critical - certain - 1, n - certain, rest))


def crowded_cohort(number: int, num_cohorts: int, n: int = N) -> float:
    """Chance that ``cohorts`` fires because of the first one alone, which has this many reports too many."""
    smallest = math.exp(-stats.chi2.isf(LEVEL, 2 * (num_cohorts - 1)) / 2)
    critical = n - stats.binom.ppf(smallest / 2, n, 1 - 1 / num_cohorts) + 1
    return float(stats.binom.sf(critical - number - 1, n - number, 1 / num_cohorts))


def crowded_cell(number: int, share: float, num_cohorts: int, num_symbols: int, n: int = N) -> float:
    """Chance that ``homogeneity`` fires because a cell has this many reports too many; normal, from below.

    The fakes are in the totals too, which they raise: a part of each is expected in the cell.
    """
    rest = n - number
    size, total = number + rest / num_cohorts, number + rest * share
    expected = size * total / n
    limit = stats.norm.isf(LEVEL / (2 * num_cohorts * num_symbols)) * math.sqrt(expected)
    spread = math.sqrt(rest * share / num_cohorts)
    return float(stats.norm.cdf((number + rest * share / num_cohorts - expected - limit) / spread))


def heavy_reports(excess: float, v: int, sensitive: float = 1.0, n: int = N) -> float:
    """Chance that ``weight`` fires at this many bits too many or too few; normal."""
    theta, psi, reveal = bit_rates()
    others = 1 - sensitive
    bits = n * (1 - others * reveal) * v
    bit_spread = math.sqrt(bits * psi * (1 - psi))
    people_spread = (theta - psi) * math.sqrt(n * others * (1 - reveal) / reveal)
    outside = OUTSIDE if others else 0.0
    limit = stats.norm.isf((LEVEL - outside) / 2) * bit_spread
    limit += stats.norm.isf(outside / 2) * people_spread if others else 0.0
    return float(stats.norm.cdf((abs(excess) - limit) / math.hypot(bit_spread, people_spread)))


# ---------------------------------------------------------------------- the attacks


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attack:
    """A kind of window, the sentinel that should see it, and a lower bound on the chance that it does.

    ``power`` None: nobody can see it; the sentinel fires at most as often as in honest windows.
    """

    name: str
    sentinel: str
    collection: Collection
    draw: Draw
    power: float | None


SPARSE = np.concatenate([np.full(5, 0.1), np.zeros(45), np.full(50, 0.01)])
"""Half of all people hold 5 of 50 sensitive values, half the 50 others."""

DENSE = np.full(100, 0.01)

HALF = np.concatenate([np.full(32, 0.5 / 32), np.full(32, 0.5 / 32)])
FLAT16, FLAT8, FLAT32 = (np.full(size, 1 / size) for size in (16, 8, 32))
HELD16 = np.concatenate([np.full(4, 0.25), np.zeros(12)])
"""12 of 16 values that nobody holds."""


def _target(share: float, population: str) -> Attack:
    shares, unheld = {"rare": (SPARSE, 44), "common": (DENSE, None)}[population]
    number = round(share * N)

    def draw(rng: np.random.Generator) -> CohortCounts:
        honest = window(rng, N - number, 1, lambda rng, sizes: one_symbol(rng, sizes, shares, 50))
        return honest + fakes(number, {49: 1}, honest)

    power = share_below_floor(share, unheld, 50) if unheld else None
    name = f"urr, v 50: {share:.1%} report one sensitive value; the others are {population}"
    return Attack(name=name, sentinel="floor", collection=closed("urr", 100, 50), draw=draw, power=power)


def _clear_target(share: float) -> Attack:
    number = round(share * N)

    def draw(rng: np.random.Generator) -> CohortCounts:
        honest = window(rng, N - number, 1, lambda rng, sizes: one_symbol(rng, sizes, SPARSE, 50))
        return honest + fakes(number, {99: 1}, honest)

    reveal = rr_rates(50)[1]
    power = clear_above_ceiling(number, reveal / 2, reveal)
    name = f"urr, v 50: {share:.1%} report one other value in clear"
    return Attack(name=name, sentinel="ceiling", collection=closed("urr", 100, 50), draw=draw, power=power)


def _stuck(share: float, sentinel: str) -> Attack:
    number = round(share * N)

    def draw(rng: np.random.Generator) -> CohortCounts:
        honest = window(rng, N - number, 32, lambda rng, sizes: one_symbol(rng, sizes, FLAT8, 8))
        return honest + fakes(number, {3: 1}, honest)

    power = crowded_cohort(number, 32) if sentinel == "cohorts" else crowded_cell(number, 1 / 8, 32, 8)
    name = f"krr, K 8, C 32: {share:.1%} always send one symbol in one cohort"
    return Attack(name=name, sentinel=sentinel, collection=closed("krr", 8, 8, 32), draw=draw, power=power)


def _constant_bit(share: float) -> Attack:
    number = round(share * N)

    def draw(rng: np.random.Generator) -> CohortCounts:
        sound = window(rng, N - number, 1, lambda rng, sizes: unary(rng, sizes, HELD16, 16))
        broken = window(rng, number, 1, lambda rng, sizes: unary(rng, sizes, HELD16, 16))
        broken.cells[0, 15] = number
        return sound + broken

    power = heavy_reports(number * (1 - bit_rates()[1]), 16)
    name = f"rappor, K 16: a bit of {share:.1%} is always 1"
    return Attack(name=name, sentinel="weight", collection=closed("rappor", 16, 16), draw=draw, power=power)


def _dead_bit() -> Attack:
    def draw(rng: np.random.Generator) -> CohortCounts:
        counts = window(rng, N, 1, lambda rng, sizes: unary(rng, sizes, HELD16, 16))
        counts.cells[0, 15] = 0
        return counts

    name = "rappor, K 16: the bit of a value that nobody holds is always 0"
    return Attack(name=name, sentinel="floor", collection=closed("rappor", 16, 16), draw=draw, power=1.0)


def _sticky_own_bit(mechanism: str, share: float) -> Attack:
    number, v = round(share * N), 32
    shares = HALF if mechanism == "urap" else FLAT32
    sensitive = float(shares[:v].sum())

    def draw(rng: np.random.Generator) -> CohortCounts:
        sound = window(rng, N - number, 1, lambda rng, sizes: unary(rng, sizes, shares, v))
        return sound + window(rng, number, 1, lambda rng, sizes: unary(rng, sizes, shares, v, own=1.0))

    power = heavy_reports(number * sensitive * (1 - bit_rates()[0]), v, sensitive)
    name = f"{mechanism}, v 32: {share:.1%} never clear their own bit"
    return Attack(name=name, sentinel="weight", collection=closed(mechanism, len(shares), v), draw=draw, power=power)


def _wrong_epsilon(share: float) -> Attack:
    number = round(share * N)

    def draw(rng: np.random.Generator) -> CohortCounts:
        sound = window(rng, N - number, 1, lambda rng, sizes: unary(rng, sizes, FLAT16, 16))
        return sound + window(rng, number, 1, lambda rng, sizes: unary(rng, sizes, FLAT16, 16, epsilon=5.0))

    (theta, psi, _), (own, noise, _) = bit_rates(), bit_rates(5.0)
    power = heavy_reports(number * (own - theta + 15 * (noise - psi)), 16)
    name = f"rappor, K 16: {share:.1%} have epsilon 5 instead of 1"
    return Attack(name=name, sentinel="weight", collection=closed("rappor", 16, 16), draw=draw, power=power)


def _bare_targets(mechanism: str, share: float) -> Attack:
    number, v = round(share * N), 32
    shares = HALF if mechanism == "urap" else FLAT32

    def draw(rng: np.random.Generator) -> CohortCounts:
        honest = window(rng, N - number, 1, lambda rng, sizes: unary(rng, sizes, shares, v))
        return honest + fakes(number, dict.fromkeys(range(5), 1), honest)

    theta, psi, _ = bit_rates()
    power = heavy_reports(number * (5 - theta - 31 * psi), v, float(shares[:v].sum()))
    name = f"{mechanism}, v 32: {share:.1%} set 5 target bits and no other"
    return Attack(name=name, sentinel="weight", collection=closed(mechanism, len(shares), v), draw=draw, power=power)


def _padded_targets(share: float) -> Attack:
    number = round(share * N)

    def draw(rng: np.random.Generator) -> CohortCounts:
        """Each fake sets its 5 targets and others at random, as many as an honest report has on average."""
        honest = window(rng, N - number, 1, lambda rng, sizes: unary(rng, sizes, FLAT32, 32))
        theta, psi, _ = bit_rates()
        added = fakes(number, dict.fromkeys(range(5), 1), honest)
        added.cells[0, 5:] = rng.binomial(number, (theta + 31 * psi - 5) / 27, 27)
        return honest + added

    name = f"rappor, v 32: {share:.1%} set 5 target bits, and others up to the usual weight"
    return Attack(name=name, sentinel="weight", collection=closed("rappor", 32, 32), draw=draw, power=None)


def _all_in_clear(mechanism: str, shares: np.ndarray, v: int, sentinel: str, power: float | None, who: str) -> Attack:
    def draw(rng: np.random.Generator) -> CohortCounts:
        return window(rng, N, 1, lambda rng, sizes: one_symbol(rng, sizes, shares, v, math.inf))

    name = f"{mechanism}: everybody sends the value itself; {who}"
    item = closed(mechanism, len(shares), v)
    return Attack(name=name, sentinel=sentinel, collection=item, draw=draw, power=power)


def _lie(mechanism: str, v: int, shares: np.ndarray, law: Callable[..., np.ndarray]) -> Attack:
    """A tenth follows the protocol with a false value."""
    believed = 0.9 * shares + 0.1 * (np.arange(len(shares)) == 1)

    def draw(rng: np.random.Generator) -> CohortCounts:
        return window(rng, N, 1, lambda rng, sizes: law(rng, sizes, believed, v))

    name = f"{mechanism}: 10.0% follow the protocol with a false value"
    return Attack(name=name, sentinel="any", collection=closed(mechanism, len(shares), v), draw=draw, power=None)


ATTACKS = [
    *(_target(share, "rare") for share in (0.005, 0.01, 0.02)),
    _target(0.01, "common"),
    *map(_clear_target, (0.018, 0.02)),
    *(_stuck(share, "cohorts") for share in (0.001, 0.01)),
    *(_stuck(share, "homogeneity") for share in (0.001, 0.01)),
    *map(_constant_bit, (0.02, 0.05)),
    _dead_bit(),
    _sticky_own_bit("rappor", 0.1),
    _sticky_own_bit("urap", 0.2),
    *map(_wrong_epsilon, (0.005, 0.03)),
    _bare_targets("rappor", 0.005),
    _bare_targets("urap", 0.02),
    _padded_targets(0.005),
    _all_in_clear("urr", SPARSE, 50, "ceiling", 1.0, "half of all values are not sensitive"),
    _all_in_clear("krr", HELD16, 16, "floor", 1.0, "12 of 16 values are nobody's"),
    _all_in_clear("krr", FLAT16, 16, "any", None, "all values are common"),
    _lie("urr", 50, SPARSE, one_symbol),
    _lie("urap", 32, HALF, unary),
    _lie("rappor", 16, HELD16, unary),
]


def times_seen(attack: Attack, num_windows: int) -> int:
    """In how many windows the sentinel fires; any of them, if it is "any"."""
    rng = generator("attack", attack.name, attack.sentinel)
    found = [examine(attack.collection, attack.draw(rng)) for _ in range(num_windows)]
    return sum(any(f.fired for f in findings if attack.sentinel in (f.name, "any")) for findings in found)


POPULATIONS = {
    "even": np.full(6, 1 / 6),
    "one sensitive value": np.eye(6)[5],
    "one other value": np.eye(6)[3],
    "skewed": np.array([0.9, 0.06, 0.03, 0.01, 0, 0]),
}
"""Of VALUES."""


def honest_windows(num_windows: int) -> Iterator[tuple[Collection, CohortCounts]]:
    """So many of every collection of the tests (several hash functions apart), population and size."""
    for name, item in ALL_COLLECTIONS.items():
        for population, shares in POPULATIONS.items() if item.mechanism.num_hashes == 1 else ():
            for n in (7, 100, 5000):
                rng = generator("honest", name, population, n)
                for counts in small_window(rng, item, shares, n, num_windows):
                    yield item, counts


CANARIES = tuple(f"value {i}" for i in range(40, 50))
WATCHED = closed("urr", 100, 50)


def with_canaries(share: float, epsilon: float | None) -> Draw:
    """uRR over 100 values, 50 sensitive, 10 of them canaries: a share of fakes, or of clients with another epsilon."""
    number = round(share * N)

    def draw(rng: np.random.Generator) -> CohortCounts:
        honest = window(rng, N - number, 1, lambda rng, sizes: one_symbol(rng, sizes, SPARSE, 50))
        if epsilon is None:
            return honest + fakes(number, {5: 1}, honest)
        return honest + window(rng, number, 1, lambda rng, sizes: one_symbol(rng, sizes, SPARSE, 50, epsilon))

    return draw


def missing_noise(share: float, epsilon: float | None) -> float:
    """What ``canary_share`` should say on average."""
    return share if epsilon is None else share * (1 - rr_rates(50, epsilon)[0] / rr_rates(50)[0])


UNSOUND = [(0.0, None), (0.005, None), (0.01, None), (0.02, None), (0.05, None), (0.03, 5.0), (0.03, 0.5)]
"""Share of clients, and their epsilon; None: fakes that report one symbol."""


def main(windows_each: int = 155, windows_attacked: int = 200) -> None:
    total, alarms, judged, fired = 0, 0, collections.Counter[str](), collections.Counter[str]()
    for item, counts in honest_windows(windows_each):
        findings = examine(item, counts)
        total, alarms = total + 1, alarms + any(f.fired for f in findings)
        judged.update(f.name for f in findings)
        fired.update(f.name for f in findings if f.fired)
    print(f"{total:,} honest windows: {alarms} with an alarm; {FALSE_ALARMS * total:.0f} allowed on average")
    print("\n| sentinel | windows judged | fired | allowed on average |\n|---|---|---|---|")
    for name in SENTINELS:
        print(f"| `{name}` | {judged[name]:,} | {fired[name]} | {LEVEL * judged[name]:.1f} |")
    print(f"\n{windows_attacked} windows of {N:,} reports each, epsilon 1:\n")
    print("| clients | sentinel | computed power | measured |\n|---|---|---|---|")
    for attack in ATTACKS:
        computed = "cannot be seen" if attack.power is None else f"{attack.power:.3f}"
        measured = times_seen(attack, windows_attacked) / windows_attacked
        print(f"| {attack.name} | {attack.sentinel} | {computed} | {measured:.3f} |", flush=True)
    print("\n| 10 canaries among 50 sensitive values, urr | computed share | measured mean | spread | reported error |")
    print("|---|---|---|---|---|")
    for share, epsilon in UNSOUND:
        rng, draw = generator("canaries", share, epsilon), with_canaries(share, epsilon)
        found = [canary_share(WATCHED, draw(rng), CANARIES) for _ in range(windows_attacked)]
        shares, errors = np.array([(item.share, item.standard_error) for item in found if item]).T
        who = f"{share:.1%} " + ("fakes" if epsilon is None else f"with epsilon {epsilon:g}")
        computed = missing_noise(share, epsilon)
        print(f"| {who} | {computed:.4f} | {shares.mean():.4f} | {shares.std(ddof=1):.4f} | {errors.mean():.4f} |")


if __name__ == "__main__":
    main()
