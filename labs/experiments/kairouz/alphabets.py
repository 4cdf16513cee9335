"""O-RR and O-RAPPOR with an equal number of counters: open alphabets, surnames, closed alphabets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from labs.experiments.frame import Experiment, Result, Verdict, read_table, squared_error
from labs.experiments.kairouz import hashing_error as hashing
from labs.experiments.kairouz import inputs
from uldp_transforms.ldp import Collection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

O_RR, O_RAPPOR = "O-RR", "O-RAPPOR"
O_RR_BAYES = "O-RR, many cohorts, eb"
K_RR, K_RAPPOR = "k-RR", "k-RAPPOR"
IDS = {O_RR: "krr", O_RR_BAYES: "krr", O_RAPPOR: "rappor", K_RR: "krr", K_RAPPOR: "rappor"}
COLORS = {O_RR: "tab:orange", O_RR_BAYES: "black", O_RAPPOR: "tab:blue", K_RR: "tab:red", K_RAPPOR: "tab:green"}
MORE_HASHES = {2: "tab:purple", 4: "tab:gray"}


class OpenSurnames(Experiment):
    id = "kairouz-open-surnames"
    title = "Open alphabets: O-RR against O-RAPPOR"
    source = f"{inputs.SOURCE}, section 5.3; our data and counters"
    abstract = (
        "256 texts (reduced: 64) with geometric shares, and the 256 (64) most frequent surnames of the US census of "
        "1990 with theirs; the collector knows them as candidates, in an alphabet that stays open. Buckets are chosen "
        "for each epsilon by the expected l2 loss of centred least squares, with as many cohorts as 16,384 (4,096) "
        "counters allow. More hash functions than one have no such formula and are simulated for several numbers of "
        "buckets. Simulated: l1 loss of the projected estimate, 1,000,000 (50,000) people. Beyond the paper: O-RR with "
        "about e^epsilon + 1 buckets, 1,024 cohorts (256 from epsilon 6 on; reduced: 256) and the estimator eb."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        size, counters, number = (64, 1 << 12, 50_000) if reduced else (256, hashing.COUNTERS, 1_000_000)
        runs = runs or (12 if reduced else 4)
        epsilons = (1.0, 3.0) if reduced else (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
        surnames = read_table("surnames.csv")
        weights = np.array(surnames["percent"][:size], dtype=np.float64)
        texts = tuple(surnames["name"][:size])
        data = {
            "geometric": inputs.population(inputs.geometric(size), number),
            "surnames": inputs.Population(values=texts, frequencies=inputs.normalized(weights), number=number),
        }
        rows = [
            {"data": name, **row}
            for name, people in data.items()
            for row in one_hash_rows(people, epsilons, counters, runs, rng)
        ]
        for num_hashes in (2,) if reduced else (2, 4):
            for epsilon in epsilons:
                for k in (16, 64) if reduced else (64, 128, 256):
                    spec = inputs.hashed("rappor", k, counters // k, epsilon, num_hashes)
                    about = {"data": "geometric", "mechanism": O_RAPPOR, "hashes": num_hashes}
                    rows.append(about | simulated(spec, data["geometric"], runs, rng))
        rows += [
            {"data": name, **bayes_row(people, epsilon, 256 if reduced or epsilon >= 6 else 1024, runs, rng)}
            for name, people in data.items()
            for epsilon in ((1.0, 3.0) if reduced else (1.0, 2.0, 4.0, 6.0))
        ]
        return Result(rows=rows, verdicts=[response_meets_rappor(rows), one_hash_is_best(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        names = list(dict.fromkeys(row["data"] for row in rows))
        panels = figure.subplots(1, len(names), sharey=True)
        for axes, name in zip(panels, names):
            here = [row for row in rows if row["data"] == name]
            for mechanism, hashes in dict.fromkeys((row["mechanism"], row["hashes"]) for row in here):
                losses = least_losses(here, mechanism, hashes)
                color = COLORS[mechanism] if hashes == 1 else MORE_HASHES[hashes]
                label = f"{mechanism}, h = {hashes}" if mechanism == O_RAPPOR else mechanism
                axes.plot(list(losses), list(losses.values()), marker=".", color=color, label=label)
            axes.set(xlabel="epsilon", title=name, yscale="log")
            axes.legend()
        panels[0].set_ylabel("mean l1 loss")


class ClosedCounters(Experiment):
    id = "kairouz-closed-counters"
    title = "Closed alphabets: O-RR with permutations against k-RR, k-RAPPOR and O-RAPPOR"
    source = f"{inputs.SOURCE}, section 5.4; our counters"
    abstract = (
        "256 values (reduced: 64) with geometric shares, all of them known. Buckets of O-RR and O-RAPPOR are chosen "
        "for each epsilon by the expected l2 loss, with as many cohorts as 16,384 (4,096) counters allow; with as many "
        "buckets as values they are k-RR and k-RAPPOR. Simulated: l1 loss of the projected estimate, 1,000,000 "
        "(50,000) people."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        size, counters, number = (64, 1 << 12, 50_000) if reduced else (256, hashing.COUNTERS, 1_000_000)
        runs = runs or (10 if reduced else 5)
        people = inputs.population(inputs.geometric(size), number)
        choices = hashing.designs(people.frequencies, closed=True, counters=counters)
        rows = []
        for epsilon in (0.5, 1.0, 3.0) if reduced else (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0):
            for mechanism in (K_RR, K_RAPPOR):
                spec = inputs.closed(IDS[mechanism], size, epsilon)
                exact = float(spec.mechanism.variances(people.frequencies).sum()) / number
                rows.append({"mechanism": mechanism, "expected_l2_squared": exact} | simulated(spec, people, runs, rng))
            for mechanism in (O_RR, O_RAPPOR):
                spec, exact = planned(mechanism, epsilon, people, choices, closed=True)
                rows.append({"mechanism": mechanism, "expected_l2_squared": exact} | simulated(spec, people, runs, rng))
        return Result(rows=rows, verdicts=[response_meets_all(rows, 0.0), response_meets_all(rows, 1.0)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        axes, exact = figure.subplots(1, 2)
        for mechanism in dict.fromkeys(row["mechanism"] for row in rows):
            chosen = [row for row in rows if row["mechanism"] == mechanism]
            epsilons = [row["epsilon"] for row in chosen]
            style = {"color": COLORS[mechanism], "label": mechanism}
            axes.plot(epsilons, [row["l1"] for row in chosen], marker=".", **style)
            exact.plot(epsilons, [np.sqrt(row["expected_l2_squared"]) for row in chosen], **style)
            exact.plot(epsilons, [np.sqrt(row["l2_squared"]) for row in chosen], "o", color=COLORS[mechanism], ms=4)
        axes.set(xlabel="epsilon", ylabel="mean l1 loss, projected", yscale="log")
        exact.set(xlabel="epsilon", ylabel="l2 loss, raw: exact (line), simulated (dots)", yscale="log")
        axes.legend()


class BucketsAndCohorts(Experiment):
    id = "kairouz-buckets-cohorts"
    title = "Closed-alphabet O-RR: buckets and cohorts"
    source = f"{inputs.SOURCE}, section 5.4; exact l2"
    abstract = (
        "Expected squared l2 loss, times the number of people, of O-RR with permutations over 256 values (reduced: 64) "
        "with geometric shares, for every number of buckets and of cohorts (powers of two) that tell all values apart "
        "and need 16,384 (4,096) counters at most. Nothing is simulated."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        size, counters = (64, 1 << 12) if reduced else (256, hashing.COUNTERS)
        values, frequencies = inputs.names(size), inputs.geometric(size)
        plans = [
            (k, num_cohorts)
            for k in hashing.BUCKETS
            for num_cohorts in (1 << power for power in range(14))
            if k < size and k * num_cohorts <= counters and num_cohorts * (k - 1) >= 2 * size
        ]
        choices = [hashing.planned(values, frequencies, plan, closed=True) for plan in plans]
        rows = [
            {
                "epsilon": epsilon,
                "values": size,
                "buckets": choice.num_buckets,
                "cohorts": choice.num_cohorts,
                "people_times_expected_l2_squared": choice.expected("krr", epsilon),
            }
            for epsilon in (1.0, 2.0, 3.0, 4.0)
            for choice in choices
        ]
        return Result(rows=rows, verdicts=[best_buckets(rows), more_cohorts_help(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        epsilons = list(dict.fromkeys(row["epsilon"] for row in rows))
        buckets, cohorts = (sorted({row[column] for row in rows}) for column in ("buckets", "cohorts"))
        panels = figure.subplots(1, len(epsilons), sharey=True)
        for axes, epsilon in zip(panels, epsilons):
            grid = np.full((len(cohorts), len(buckets)), np.nan)
            for row in rows:
                if row["epsilon"] == epsilon:
                    place = cohorts.index(row["cohorts"]), buckets.index(row["buckets"])
                    grid[place] = row["people_times_expected_l2_squared"]
            relative = np.log2(grid / np.nanmin(grid))
            image = axes.pcolormesh(np.log2(buckets), np.log2(cohorts), relative, vmin=0, vmax=4, shading="nearest")
            axes.axvline(np.log2(np.exp(epsilon) + 1), color="tab:red", linestyle="--")
            axes.set(xlabel="log2 of buckets", title=f"epsilon {epsilon:g}")
        panels[0].set_ylabel("log2 of cohorts (dashed: buckets = e^epsilon + 1)")
        figure.colorbar(image, ax=list(panels), label="log2 of loss / least loss")


def one_hash_rows(
    people: inputs.Population, epsilons: Sequence[float], counters: int, runs: int, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """O-RR and O-RAPPOR with their best buckets, over an open alphabet."""
    choices = hashing.designs(people.frequencies, closed=False, counters=counters, values=people.values)
    rows = []
    for epsilon in epsilons:
        for mechanism in (O_RR, O_RAPPOR):
            spec, exact = planned(mechanism, epsilon, people, choices, closed=False)
            about = {"mechanism": mechanism, "hashes": 1, "expected_l2_squared": exact}
            rows.append(about | simulated(spec, people, runs, rng))
    return rows


def bayes_row(
    people: inputs.Population, epsilon: float, num_cohorts: int, runs: int, rng: np.random.Generator
) -> dict[str, Any]:
    """O-RR with buckets by a rule of thumb, and with more cohorts than the usual number of counters allows; median l1
    loss."""
    spec = inputs.hashed("krr", round(np.exp(epsilon) + 1), num_cohorts, epsilon)
    return {"mechanism": O_RR_BAYES, "hashes": 1} | simulated(spec, people, runs, rng, "eb")


def planned(
    mechanism: str, epsilon: float, people: inputs.Population, choices: Sequence[hashing.Design], *, closed: bool
) -> tuple[Collection, float]:
    """The collection with the best buckets, and its expected squared l2 loss."""
    chosen = hashing.best(choices, IDS[mechanism], epsilon)
    plan = (chosen.num_buckets, chosen.num_cohorts)
    spec = hashing.collection(IDS[mechanism], epsilon, people.values, plan, closed=closed)
    return spec, chosen.expected(IDS[mechanism], epsilon) / people.number


def simulated(
    spec: Collection, people: inputs.Population, runs: int, rng: np.random.Generator, decoder: str = "projected"
) -> dict[str, Any]:
    """l1 loss of a decoder and mean squared l2 loss of the empirical estimate, with standard errors."""
    true = people.frequencies
    estimates = [inputs.simulated_estimates(spec, people, ("empirical", decoder), rng) for _ in range(runs)]
    losses = np.array([np.abs(e[decoder] - true).sum() for e in estimates])
    l1 = inputs.mean_and_error(losses)
    l2 = inputs.mean_and_error(np.array([squared_error(e["empirical"], true) for e in estimates]))
    return {
        "epsilon": spec.mechanism.epsilon,
        "values": len(people.values),
        "buckets": spec.alphabet.num_symbols,
        "cohorts": spec.num_cohorts,
        "people": people.number,
        "runs": runs,
        "l1": l1[0],
        "l1_error": l1[1],
        "l1_median": float(np.median(losses)),
        "l2_squared": l2[0],
        "l2_squared_error": l2[1],
    }


def least_losses(rows: Sequence[dict[str, Any]], mechanism: str, hashes: int) -> dict[float, float]:
    """Least mean l1 loss over numbers of buckets, by epsilon."""
    losses: dict[float, float] = {}
    for row in rows:
        if (row["mechanism"], row["hashes"]) == (mechanism, hashes):
            losses[row["epsilon"]] = min(row["l1"], losses.get(row["epsilon"], np.inf))
    return losses


def response_meets_rappor(rows: Sequence[dict[str, Any]]) -> Verdict:
    """Expected l2 loss over open alphabets, one hash function."""
    exact = {
        (row["data"], row["epsilon"], row["mechanism"]): row["expected_l2_squared"]
        for row in rows
        if "expected_l2_squared" in row and row["epsilon"] >= 1
    }
    ratios = {
        (data, epsilon): loss / exact[data, epsilon, O_RAPPOR]
        for (data, epsilon, mechanism), loss in exact.items()
        if mechanism == O_RR
    }
    by_data = {
        data: inputs.listed([ratio for (name, _), ratio in ratios.items() if name == data])
        for data in dict.fromkeys(data for data, _ in ratios)
    }
    epsilons = ", ".join(f"{epsilon:g}" for epsilon in dict.fromkeys(epsilon for _, epsilon in ratios))
    return Verdict(
        claim="Over open alphabets O-RR loses no more than O-RAPPOR, from epsilon 1 on.",
        holds=max(ratios.values()) <= 1,
        evidence=f"Its expected squared l2 loss at epsilon {epsilons} is, in parts of O-RAPPOR's: "
        f"{'; '.join(f'{data} {listed}' for data, listed in by_data.items())}.",
    )


def one_hash_is_best(rows: Sequence[dict[str, Any]]) -> Verdict:
    """Simulated l1 loss of O-RAPPOR over numbers of hash functions."""
    here = [row for row in rows if row["data"] == "geometric" and row["mechanism"] == O_RAPPOR]
    one = least_losses(here, O_RAPPOR, 1)
    more = {hashes: least_losses(here, O_RAPPOR, hashes) for hashes in sorted({row["hashes"] for row in here} - {1})}
    ratios = {hashes: [losses[epsilon] / one[epsilon] for epsilon in one] for hashes, losses in more.items()}
    return Verdict(
        claim="O-RAPPOR is best with one hash function.",
        holds=all(ratio >= 1 for listed in ratios.values() for ratio in listed),
        evidence=f"At epsilon {', '.join(f'{epsilon:g}' for epsilon in one)} its l1 loss grows by the factors "
        f"{'; '.join(f'{inputs.listed(listed)} with {hashes}' for hashes, listed in ratios.items())}.",
    )


def response_meets_all(rows: Sequence[dict[str, Any]], lowest: float) -> Verdict:
    """Expected l2 loss over closed alphabets, from this epsilon on; k-RR is O-RR with as many buckets as values."""
    exact: dict[float, dict[str, float]] = {}
    for row in rows:
        if row["epsilon"] >= lowest:
            exact.setdefault(row["epsilon"], {})[row["mechanism"]] = row["expected_l2_squared"]
    ratios = {
        epsilon: min(losses[O_RR], losses[K_RR]) / min(losses[K_RAPPOR], losses[O_RAPPOR])
        for epsilon, losses in exact.items()
    }
    gains = {epsilon: losses[K_RR] / losses[O_RR] for epsilon, losses in exact.items()}
    where = f"from epsilon {lowest:g} on" if lowest else "at every epsilon"
    return Verdict(
        claim=f"O-RR, which is k-RR with as many buckets as values, loses no more than k-RAPPOR and O-RAPPOR, {where}.",
        holds=max(ratios.values()) <= 1,
        evidence=f"Its expected squared l2 loss at epsilon {', '.join(f'{epsilon:g}' for epsilon in ratios)} is "
        f"{inputs.listed(list(ratios.values()))} times that of the better RAPPOR; that of k-RR is "
        f"{inputs.listed(list(gains.values()))} times that of O-RR with fewer buckets.",
    )


def best_buckets(rows: Sequence[dict[str, Any]]) -> Verdict:
    """The number of buckets of the best cell against e**epsilon + 1."""
    found = {}
    for row in sorted(rows, key=lambda row: -row["people_times_expected_l2_squared"]):
        found[row["epsilon"]] = row["buckets"]
    distances = [abs(np.log2(buckets / (np.exp(epsilon) + 1))) for epsilon, buckets in found.items()]
    listed = ", ".join(f"{found[epsilon]} at {epsilon:g}" for epsilon in sorted(found))
    return Verdict(
        claim="O-RR loses least with about e**epsilon + 1 buckets (within a factor of 2).",
        holds=max(distances) <= 1,
        evidence=f"Best powers of two: {listed}.",
    )


def more_cohorts_help(rows: Sequence[dict[str, Any]]) -> Verdict:
    """Each number of cohorts against half of it, at equal buckets."""
    exact = {(row["epsilon"], row["buckets"], row["cohorts"]): row["people_times_expected_l2_squared"] for row in rows}
    ratios = [
        loss / exact[epsilon, buckets, cohorts // 2]
        for (epsilon, buckets, cohorts), loss in exact.items()
        if (epsilon, buckets, cohorts // 2) in exact
    ]
    return Verdict(
        claim="With as many buckets, twice as many cohorts never lose more.",
        holds=max(ratios) <= 1,
        evidence=f"Doubling them multiplies the squared l2 loss by {min(ratios):.3f} to {max(ratios):.3f}.",
    )
