"""Windows of honest clients, of broken ones and of attackers, as counts drawn from their laws; what can be expected.

The laws are written down here from the papers' formulas, not taken from the library. As a program it prints tables,
of which docs/sentinels.md has a part: ``python -m tests.campaigns.attacks``.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy import stats

from tests.support.cases import ALL_COLLECTIONS, VALUES, enumerated
from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism
from uldp_transforms.ldp.sentinels import FALSE_ALARMS, SENTINELS, examine

OUTSIDE = 1e-5  # part of the level that confidence limits of the number of sensitive people use up
N = 200_000

Draw = Callable[[np.random.Generator], CohortCounts]
Draws = Callable[[np.random.Generator], np.ndarray]


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


def level(judges: int) -> float:
    """Below which p-value a sentinel fires where so many of them judge."""
    return FALSE_ALARMS / judges


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
    patterns = patterns_of(item.mechanism)
    for _ in range(num_windows):
        sizes = rng.multinomial(n, np.full(item.num_cohorts, 1 / item.num_cohorts))
        table = rng.multinomial(sizes, law)
        yield CohortCounts(sizes, table @ cells, table.sum(axis=0) @ patterns)


def patterns_of(mechanism: Mechanism) -> np.ndarray:
    """Bit patterns of each payload, in the order of ``enumerated``; none where bits depend on each other."""
    codes, v = enumerated(mechanism)[0], mechanism.num_sensitive
    if not (isinstance(mechanism, SetReportMechanism) and mechanism.independent_bits):
        return np.zeros((len(codes), 0), dtype=np.int64)
    bits = np.array([[code[j // 8] >> j % 8 & 1 for j in range(v)] for code in codes.tolist()])
    weights = bits.sum(axis=1, keepdims=True) == np.arange(v + 1)
    both = [bits[:, i] * bits[:, j] for i, j in itertools.combinations(range(v), 2)]
    return np.column_stack([weights, *both]).astype(np.int64)


def bits_of_people(rng: np.random.Generator, n: int, shares: np.ndarray, v: int) -> tuple[np.ndarray, np.ndarray]:
    """Protected reports (n', v) bool of n clients of RAPPOR (v = K) or uRAP at epsilon 1, and clear ones (K - v,)."""
    theta, psi, reveal = bit_rates()
    holders = rng.multinomial(n, shares)
    clear = rng.binomial(holders[v:], reveal)
    bits = rng.random((n - clear.sum(), v), dtype=np.float32) < psi
    own = np.repeat(np.arange(v), holders[:v])
    bits[np.arange(len(own)), own] = rng.random(len(own)) < theta
    return bits, clear


def counts_of_bits(bits: np.ndarray, clear: np.ndarray) -> CohortCounts:
    """Counts and bit patterns of protected reports and of clear ones, in one cohort."""
    revealed, v = int(clear.sum()), bits.shape[1]
    weights = np.bincount(bits.sum(axis=1), minlength=v + 1)
    weights[0] += revealed
    table = bits.T.astype(np.float32) @ bits.astype(np.float32)
    both = [int(table[i, j]) for i, j in itertools.combinations(range(v), 2)]
    cells = np.concatenate([bits.sum(axis=0), clear])
    return CohortCounts(np.array([len(bits) + revealed]), cells[np.newaxis], np.concatenate([weights, both]))


# ---------------------------------------------------------------------- what may be expected


def share_below_floor(share: float, j: int, v: int, judges: int, n: int = N) -> float:
    """Chance that ``floor`` fires because j symbols lack this share of their noise, in uRR."""
    rate = j * rr_rates(v)[0]
    critical = stats.binom.ppf(level(judges) / (v * math.comb(v, j)), n, rate) - 1
    return float(stats.binom.cdf(critical, n, (1 - share) * rate))


def clear_above_ceiling(certain: int, rest: float, reveal: float, judges: int, n: int = N) -> float:
    """Chance that ``ceiling`` fires: ``certain`` clear reports, and others with probability ``rest``."""
    critical = stats.binom.isf(level(judges), n, reveal) + 1
    return float(stats.binom.sf(critical - certain - 1, n - certain, rest))


def crowded_cohort(number: int, num_cohorts: int, judges: int, n: int = N) -> float:
    """Chance that ``cohorts`` fires because of the first one alone, which has this many reports too many."""
    smallest = math.exp(-stats.chi2.isf(level(judges), 2 * (num_cohorts - 1)) / 2)
    critical = n - stats.binom.ppf(smallest / 2, n, 1 - 1 / num_cohorts) + 1
    return float(stats.binom.sf(critical - number - 1, n - number, 1 / num_cohorts))


def crowded_cell(number: int, share: float, num_cohorts: int, num_symbols: int, judges: int, n: int = N) -> float:
    """Chance that ``homogeneity`` fires because a cell has this many reports too many; normal, from below.

    The fakes are in the totals too, which they raise: a part of each is expected in the cell.
    """
    rest = n - number
    size, total = number + rest / num_cohorts, number + rest * share
    expected = size * total / n
    limit = stats.norm.isf(level(judges) / (2 * num_cohorts * num_symbols)) * math.sqrt(expected)
    spread = math.sqrt(rest * share / num_cohorts)
    return float(stats.norm.cdf((number + rest * share / num_cohorts - expected - limit) / spread))


def heavy_reports(excess: float, v: int, judges: int, sensitive: float = 1.0, n: int = N) -> float:
    """Chance that ``weight`` fires at this many bits too many or too few; normal."""
    theta, psi, reveal = bit_rates()
    others = 1 - sensitive
    bits = n * (1 - others * reveal) * v
    bit_spread = math.sqrt(bits * psi * (1 - psi))
    people_spread = (theta - psi) * math.sqrt(n * others * (1 - reveal) / reveal)
    outside = OUTSIDE if others else 0.0
    limit = stats.norm.isf((level(judges) - outside) / 2) * bit_spread
    limit += stats.norm.isf(outside / 2) * people_spread if others else 0.0
    return float(stats.norm.cdf((abs(excess) - limit) / math.hypot(bit_spread, people_spread)))


def law_of_weight(own: int, v: int) -> np.ndarray:
    """Chances of 0, 1, ..., v bits set in a report of a person with so many own bits, one by one."""
    theta, psi, _ = bit_rates()
    law = np.ones(1)
    for rate in [theta] * own + [psi] * (v - own):
        law = np.convolve(law, [1 - rate, rate])
    return law


def crowded_weight(number: int, weight: int, v: int, judges: int, sensitive: float = 1.0, n: int = N) -> float:
    """Chance that ``histogram`` fires because so many reports too many have this weight; of honest ones n are left.

    Where not all are sensitive, the confidence limit of how many people are is as unfavourable as can be.
    """
    _, _, reveal = bit_rates()
    noise, own = law_of_weight(0, v)[weight], law_of_weight(1, v)[weight]
    protected, outside = round(n * (1 - (1 - sensitive) * reveal)), 0.0 if sensitive == 1 else OUTSIDE
    people_spread = math.sqrt(n * (1 - sensitive) * (1 - reveal) / reveal)
    unknown = 2 * stats.norm.isf(outside / 2) * people_spread if outside else 0.0
    usual = noise + (own - noise) * n * sensitive / protected
    worst = usual + abs(own - noise) * (unknown + number) / protected
    critical = stats.binom.isf((level(judges) - outside) / (2 * (v + 1)), protected + number, worst) + 1
    return float(stats.binom.sf(critical - number - 1, protected, usual))


def coupled_bits(covariance: float, rate: float, v: int, judges: int, n: int) -> float:
    """Chance that ``pairs`` fires because of one pair of bits with this rate and covariance; normal."""
    limit = stats.norm.isf(level(judges) / (v * (v - 1) / 2))
    return float(stats.norm.sf(limit - covariance * math.sqrt(n) / (rate * (1 - rate))))


# ---------------------------------------------------------------------- the attacks


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attack:
    """A kind of window, the sentinel that should see it, and a lower bound on the chance that it does.

    ``judges``: how many sentinels share the false alarms. ``power`` None: nobody can see it; the sentinel fires at most
    as often as in honest windows.
    """

    name: str
    sentinel: str
    collection: Collection
    draw: Draw
    judges: int
    power: float | None


SPARSE = np.concatenate([np.full(5, 0.1), np.zeros(45), np.full(50, 0.01)])
"""Half of all people hold 5 of 50 sensitive values, half the 50 others."""

DENSE = np.full(100, 0.01)

HALF = np.concatenate([np.full(32, 0.5 / 32), np.full(32, 0.5 / 32)])
FLAT16, FLAT8, FLAT32 = (np.full(size, 1 / size) for size in (16, 8, 32))
JUDGES_OF_BITS = {"rappor": 4, "urap": 5}  # floor, weight, histogram, pairs; and ceiling
HELD16 = np.concatenate([np.full(4, 0.25), np.zeros(12)])
"""12 of 16 values that nobody holds."""


def _target(share: float, population: str) -> Attack:
    shares, unheld = {"rare": (SPARSE, 44), "common": (DENSE, None)}[population]
    number = round(share * N)

    def draw(rng: np.random.Generator) -> CohortCounts:
        honest = window(rng, N - number, 1, lambda rng, sizes: one_symbol(rng, sizes, shares, 50))
        return honest + fakes(number, {49: 1}, honest)

    power = share_below_floor(share, unheld, 50, judges=2) if unheld else None
    name = f"urr, v 50: {share:.1%} report one sensitive value; the others are {population}"
    item = closed("urr", 100, 50)
    return Attack(name=name, sentinel="floor", collection=item, draw=draw, judges=2, power=power)


def _clear_target(share: float) -> Attack:
    number = round(share * N)

    def draw(rng: np.random.Generator) -> CohortCounts:
        honest = window(rng, N - number, 1, lambda rng, sizes: one_symbol(rng, sizes, SPARSE, 50))
        return honest + fakes(number, {99: 1}, honest)

    reveal = rr_rates(50)[1]
    power = clear_above_ceiling(number, reveal / 2, reveal, judges=2)
    name = f"urr, v 50: {share:.1%} report one other value in clear"
    item = closed("urr", 100, 50)
    return Attack(name=name, sentinel="ceiling", collection=item, draw=draw, judges=2, power=power)


def _stuck(share: float, sentinel: str) -> Attack:
    number = round(share * N)

    def draw(rng: np.random.Generator) -> CohortCounts:
        honest = window(rng, N - number, 32, lambda rng, sizes: one_symbol(rng, sizes, FLAT8, 8))
        return honest + fakes(number, {3: 1}, honest)

    power = crowded_cohort(number, 32, 3) if sentinel == "cohorts" else crowded_cell(number, 1 / 8, 32, 8, 3)
    name = f"krr, K 8, C 32: {share:.1%} always send one symbol in one cohort"
    item = closed("krr", 8, 8, 32)
    return Attack(name=name, sentinel=sentinel, collection=item, draw=draw, judges=3, power=power)


def _constant_bit(share: float) -> Attack:
    number = round(share * N)

    def draw(rng: np.random.Generator) -> CohortCounts:
        sound = window(rng, N - number, 1, lambda rng, sizes: unary(rng, sizes, HELD16, 16))
        broken = window(rng, number, 1, lambda rng, sizes: unary(rng, sizes, HELD16, 16))
        broken.cells[0, 15] = number
        return sound + broken

    power = heavy_reports(number * (1 - bit_rates()[1]), 16, judges=2)
    name = f"rappor, K 16: a bit of {share:.1%} is always 1"
    item = closed("rappor", 16, 16)
    return Attack(name=name, sentinel="weight", collection=item, draw=draw, judges=2, power=power)


def _dead_bit() -> Attack:
    def draw(rng: np.random.Generator) -> CohortCounts:
        counts = window(rng, N, 1, lambda rng, sizes: unary(rng, sizes, HELD16, 16))
        counts.cells[0, 15] = 0
        return counts

    name = "rappor, K 16: the bit of a value that nobody holds is always 0"
    item = closed("rappor", 16, 16)
    return Attack(name=name, sentinel="floor", collection=item, draw=draw, judges=2, power=1.0)


def _sticky_own_bit(mechanism: str, share: float) -> Attack:
    number, v = round(share * N), 32
    shares = HALF if mechanism == "urap" else FLAT32
    sensitive = float(shares[:v].sum())

    def draw(rng: np.random.Generator) -> CohortCounts:
        sound = window(rng, N - number, 1, lambda rng, sizes: unary(rng, sizes, shares, v))
        return sound + window(rng, number, 1, lambda rng, sizes: unary(rng, sizes, shares, v, own=1.0))

    item, judges = closed(mechanism, len(shares), v), 3 if mechanism == "urap" else 2
    power = heavy_reports(number * sensitive * (1 - bit_rates()[0]), v, judges, sensitive)
    name = f"{mechanism}, v 32: {share:.1%} never clear their own bit"
    return Attack(name=name, sentinel="weight", collection=item, draw=draw, judges=judges, power=power)


def _wrong_epsilon(share: float) -> Attack:
    number = round(share * N)

    def draw(rng: np.random.Generator) -> CohortCounts:
        sound = window(rng, N - number, 1, lambda rng, sizes: unary(rng, sizes, FLAT16, 16))
        return sound + window(rng, number, 1, lambda rng, sizes: unary(rng, sizes, FLAT16, 16, epsilon=5.0))

    (theta, psi, _), (own, noise, _) = bit_rates(), bit_rates(5.0)
    power = heavy_reports(number * (own - theta + 15 * (noise - psi)), 16, judges=2)
    name = f"rappor, K 16: {share:.1%} have epsilon 5 instead of 1"
    item = closed("rappor", 16, 16)
    return Attack(name=name, sentinel="weight", collection=item, draw=draw, judges=2, power=power)


def _of_reports(name: str, sentinel: str, mechanism: str, power: float, number: int, fake: Draws) -> Attack:
    """``number`` fakes among the reports of honest clients; half of the people of uRAP hold no sensitive value."""
    shares = HALF if mechanism == "urap" else FLAT32

    def draw(rng: np.random.Generator) -> CohortCounts:
        bits, clear = bits_of_people(rng, N - number, shares, 32)
        return counts_of_bits(np.concatenate([bits, fake(rng)]), clear)

    item, judges = closed(mechanism, len(shares), 32), JUDGES_OF_BITS[mechanism]
    return Attack(name=name, sentinel=sentinel, collection=item, draw=draw, judges=judges, power=power)


def _bare_targets(mechanism: str, share: float, sentinel: str) -> Attack:
    number, judges = round(share * N), JUDGES_OF_BITS[mechanism]
    sensitive = 0.5 if mechanism == "urap" else 1.0
    theta, psi, _ = bit_rates()
    if sentinel == "weight":
        power = heavy_reports(number * (5 - theta - 31 * psi), 32, judges, sensitive)
    else:
        power = crowded_weight(number, 5, 32, judges, sensitive, N - number)

    def fake(rng: np.random.Generator) -> np.ndarray:
        return np.tile(np.arange(32) < 5, (number, 1))

    name = f"{mechanism}, v 32: {share:.1%} set 5 target bits and no other"
    return _of_reports(name, sentinel, mechanism, power, number, fake)


def _padded_targets(mechanism: str, share: float, sentinel: str) -> Attack:
    """Each fake sets its 5 targets and others at random, as many as an honest report has on average."""
    number, sensitive = round(share * N), 0.5 if mechanism == "urap" else 1.0
    theta, psi, reveal = bit_rates()
    rest = (theta + 31 * psi - 5) / 27
    protected = (N - number) * (1 - (1 - sensitive) * reveal) + number
    fakes = number / protected
    held = (N - number) * sensitive / 32 / protected  # share of the holders of one target among protected reports
    of_people = psi + (theta - psi) * held / (1 - fakes)
    covariance = fakes * (1 - fakes) * (1 - of_people) ** 2 - ((theta - psi) * held) ** 2 / (1 - fakes)
    rate, judges = of_people + fakes * (1 - of_people), JUDGES_OF_BITS[mechanism]
    power = coupled_bits(covariance, rate, 32, judges, round(protected)) if sentinel == "pairs" else None

    def fake(rng: np.random.Generator) -> np.ndarray:
        return (rng.random((number, 32)) < rest) | (np.arange(32) < 5)

    name = f"{mechanism}, v 32: {share:.1%} set 5 target bits, and others up to the usual weight"
    return _of_reports(name, sentinel, mechanism, power, number, fake)


def _fixed_weight(share: float) -> Attack:
    number = round(share * N)

    def fake(rng: np.random.Generator) -> np.ndarray:
        """12 bits at random, about as many as an honest report has on average."""
        order = rng.random((number, 32)).argsort(axis=1)
        return order < 12

    power = crowded_weight(number, 12, 32, JUDGES_OF_BITS["rappor"], n=N - number)
    name = f"rappor, v 32: {share:.1%} set 12 bits at random, never more or fewer"
    return _of_reports(name, "histogram", "rappor", power, number, fake)


def _equal_bits(share: float) -> Attack:
    number, (theta, psi, _) = round(share * N), bit_rates()
    rate = psi + (1 - share) * (theta - psi) / 32
    between = share * (1 - share) * ((theta - psi) / 32) ** 2
    covariance = share * psi * (1 - psi) + between - (1 - share) * ((theta - psi) / 32) ** 2
    power = coupled_bits(covariance, rate, 32, JUDGES_OF_BITS["rappor"], N)

    def fake(rng: np.random.Generator) -> np.ndarray:
        """Honest reports but that the 18th bit repeats the coin of the 17th; these people hold other values."""
        bits, _ = bits_of_people(rng, number, np.concatenate([FLAT16, np.zeros(16)]), 32)
        bits[:, 17] = bits[:, 16]
        return bits

    name = f"rappor, v 32: {share:.1%} use one random number for two bits"
    return _of_reports(name, "pairs", "rappor", power, number, fake)


def _all_in_clear(mechanism: str, shares: np.ndarray, v: int, sentinel: str, power: float | None, who: str) -> Attack:
    def draw(rng: np.random.Generator) -> CohortCounts:
        return window(rng, N, 1, lambda rng, sizes: one_symbol(rng, sizes, shares, v, math.inf))

    name = f"{mechanism}: everybody sends the value itself; {who}"
    item = closed(mechanism, len(shares), v)
    judges = 1 if v == len(shares) else 2
    return Attack(name=name, sentinel=sentinel, collection=item, draw=draw, judges=judges, power=power)


def _lie(mechanism: str, v: int, shares: np.ndarray) -> Attack:
    """A tenth follows the protocol with a false value."""
    believed = 0.9 * shares + 0.1 * (np.arange(len(shares)) == 1)

    def draw(rng: np.random.Generator) -> CohortCounts:
        if mechanism in JUDGES_OF_BITS:
            return counts_of_bits(*bits_of_people(rng, N, believed, v))
        return window(rng, N, 1, lambda rng, sizes: one_symbol(rng, sizes, believed, v))

    name = f"{mechanism}: 10.0% follow the protocol with a false value"
    item, judges = closed(mechanism, len(shares), v), JUDGES_OF_BITS.get(mechanism, 2)
    return Attack(name=name, sentinel="any", collection=item, draw=draw, judges=judges, power=None)


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
    _bare_targets("rappor", 0.005, "weight"),
    _bare_targets("rappor", 0.001, "histogram"),
    _bare_targets("urap", 0.02, "weight"),
    _bare_targets("urap", 0.002, "histogram"),
    *map(_fixed_weight, (0.005, 0.01)),
    *(_padded_targets("rappor", share, "pairs") for share in (0.005, 0.01, 0.02)),
    _padded_targets("rappor", 0.005, "weight"),
    _padded_targets("urap", 0.02, "pairs"),
    *map(_equal_bits, (0.01, 0.02)),
    _all_in_clear("urr", SPARSE, 50, "ceiling", 1.0, "half of all values are not sensitive"),
    _all_in_clear("krr", HELD16, 16, "floor", 1.0, "12 of 16 values are nobody's"),
    _all_in_clear("krr", FLAT16, 16, "any", None, "all values are common"),
    _lie("urr", 50, SPARSE),
    _lie("urap", 32, HALF),
    _lie("rappor", 16, HELD16),
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
    from uldp_transforms_planner.planning.canaries import canary_share  # noqa: PLC0415  # only this program needs it

    total, alarms, judged, fired = 0, 0, collections.Counter[str](), collections.Counter[str]()
    allowed = collections.Counter[str]()
    for item, counts in honest_windows(windows_each):
        findings = examine(item, counts)
        total, alarms = total + 1, alarms + any(f.fired for f in findings)
        judged.update(f.name for f in findings)
        allowed.update({f.name: level(len(findings)) for f in findings})
        fired.update(f.name for f in findings if f.fired)
    print(f"{total:,} honest windows: {alarms} with an alarm; {FALSE_ALARMS * total:.0f} allowed on average")
    print("\n| sentinel | windows judged | fired | allowed on average |\n|---|---|---|---|")
    for name in SENTINELS:
        print(f"| `{name}` | {judged[name]:,} | {fired[name]} | {allowed[name]:.1f} |")
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
