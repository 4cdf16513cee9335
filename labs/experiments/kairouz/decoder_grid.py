"""Decoders and mechanisms over alphabet sizes and epsilons: Figures 1 and 5, 2 and 6; and the inputs, Figure 4.

All four grids come from the same simulation: 100 and 30,000 users, geometric and Dirichlet inputs. Distances are those
to the sample that was encoded, as in section 4.4 of the paper. Counts follow the exact law, and the runs of a cell are
decoded together, as if they were cohorts.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from labs.experiments.drawn_counts import draw_counts
from labs.experiments.frame import Experiment, Result, Verdict, draw_people, progress, shares
from labs.experiments.kairouz import inputs, ours
from labs.experiments.kairouz.curves import K_RAPPOR, K_RR
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.solvers.simplex import clip_and_normalize, project_onto_simplex

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IDS = {K_RR: "krr", K_RAPPOR: "rappor"}
SHAPES = ("geometric", "Dirichlet")
DECODERS = ("empirical", "normalized", "projected", "ml")
"""``ml`` for k-RR only: that of k-RAPPOR is no function of the counts of bits."""

USERS = (100, 30_000)
CLEARLY = 1.02
"""Ratio of two mean losses beyond which one is called larger."""

STANDARD_ERRORS = 4.0
"""By which a difference must exceed chance, where losses of single settings are compared."""

SETTING = (
    "Means over runs (50; reduced: 20) for 100 and 30,000 users, k from 2 to 1,024 (reduced: 4, 32, 256) and epsilon "
    "from "
    "0.5 to 8; users hold values by geometric shares of mean k / 5, or by shares drawn anew in each run from the "
    "Dirichlet distribution with parameter 1. Distances to the sample that was encoded, as in section 4.4 of the paper."
)


class _DecoderGrid(Experiment):
    """The simulation; subclasses draw one loss."""

    loss: ClassVar[str]
    """l1 or l2."""

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        runs = runs or (20 if reduced else 50)
        sizes = (4, 32, 256) if reduced else tuple(1 << power for power in range(1, 11))
        epsilons = (1.0, 4.0, 5.0, 7.0) if reduced else tuple(half / 2 for half in range(1, 17))
        rows: list[dict[str, Any]] = []
        for k in progress(sizes, "k"):
            for epsilon in epsilons:
                for users in USERS:
                    for shape in SHAPES:
                        rows += cell_rows(k, epsilon, users, shape, self.loss, runs, rng)
        return Result(rows=rows, verdicts=self.judge(rows))

    @abc.abstractmethod
    def judge(self, rows: list[dict[str, Any]]) -> list[Verdict]:
        """The paper's claims about this figure."""

    def _maps(
        self,
        rows: list[dict[str, Any]],
        figure: Figure,
        panels: list[tuple[str, list[dict[str, Any]], str]],
        label: str,
    ) -> None:
        """Heat maps of a column over (epsilon, k), two rows of panels."""
        columns = len(panels) // 2
        figure.set_size_inches(2.9 * columns + 1.6, 6)
        sizes, epsilons = (sorted({row[column] for row in rows}) for column in ("values", "epsilon"))
        for axes, (title, here, column) in zip(figure.subplots(2, columns, sharex=True, sharey=True).flat, panels):
            found = {(row["values"], row["epsilon"]): row[column] for row in here}
            image = np.array([[found[k, epsilon] for epsilon in epsilons] for k in sizes])
            mesh = axes.pcolormesh(epsilons, np.log2(sizes), image, cmap="RdBu", vmin=-1, vmax=1, shading="nearest")
            axes.plot(np.log(sizes), np.log2(sizes), "k--", lw=1)
            axes.set_title(title, size=9)
            axes.set_xlim(epsilons[0] - 0.25, epsilons[-1] + 0.25)
            axes.set_yticks(np.log2(sizes)[::2], [f"{k:,}" for k in sizes[::2]])
        figure.supxlabel("epsilon (dashed: ln k)", size=10)
        figure.supylabel("values, k", size=10)
        figure.colorbar(mesh, ax=figure.axes, label=label)


class _Decoders(_DecoderGrid):
    def judge(self, rows: list[dict[str, Any]]) -> list[Verdict]:
        return [
            projection_is_best(rows, "geometric", K_RR),
            projection_is_best(rows, "geometric", K_RAPPOR),
            normalizing_suits_dirichlet(rows),
            constraints_help(rows),
        ]

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        panels = []
        for mechanism in IDS:
            for shape in SHAPES:
                for users in USERS:
                    title = f"{mechanism}, {shape}, {users:,} users"
                    here = [row for row in rows if (row["shape"], row["users"]) == (shape, users)]
                    panels.append((title, here, f"{mechanism}: lead of projected"))
        self._maps(rows, figure, panels, f"log2 of {self.loss}: next best / projected (blue: projected is better)")


class Figure1(_Decoders):
    id = "kairouz-figure-1"
    title = "l1 of the projected decoder against the next best one"
    source = f"{inputs.SOURCE}, Figure 1"
    abstract = (
        "Improvement of the projected estimate over the better one of the others: maximum likelihood and normalized "
        "for "
        f"k-RR, empirical and normalized for k-RAPPOR. {SETTING}"
    )
    loss = "l1"


class Figure5(_Decoders):
    id = "kairouz-figure-5"
    title = "Figure 1 in l2"
    source = f"{inputs.SOURCE}, Figure 5"
    abstract = f"As Figure 1, with l2 distances. {SETTING}"
    loss = "l2"


class _Mechanisms(_DecoderGrid):
    def judge(self, rows: list[dict[str, Any]]) -> list[Verdict]:
        return [rappor_wins_early(rows), response_wins_late(rows), boundary_is_logarithm(rows)]

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        panels = []
        for shape in SHAPES:
            for users in USERS:
                here = [row for row in rows if (row["shape"], row["users"]) == (shape, users)]
                panels.append((f"{shape}, {users:,} users", here, "lead of k-RR"))
        self._maps(rows, figure, panels, f"log2 of {self.loss}: k-RAPPOR / k-RR (blue: k-RR is better)")


class Figure2(_Mechanisms):
    id = "kairouz-figure-2"
    title = "Best decoder of k-RR against best decoder of k-RAPPOR, l1"
    source = f"{inputs.SOURCE}, Figure 2"
    abstract = f"Of each mechanism the decoder with the least mean l1 in the setting. {SETTING}"
    loss = "l1"


class Figure6(_Mechanisms):
    id = "kairouz-figure-6"
    title = "Figure 2 in l2"
    source = f"{inputs.SOURCE}, Figure 6"
    abstract = (
        f"As Figure 2, with l2 distances. {SETTING} Column bound: root of the least worst expected squared l2 loss "
        "of any "
        "mechanism (Ye and Barg 2018), for distances to the distribution."
    )
    loss = "l2"


class Figure4(Experiment):
    id = "kairouz-figure-4"
    title = "The geometric input distribution"
    source = f"{inputs.SOURCE}, Figure 4"
    abstract = (
        "Shares that fall geometrically with mean a fifth of the number of values, cut off and made to sum to 1: 256 "
        "and "
        "4,096 values (reduced: 256). Nothing is simulated."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        rows: list[dict[str, Any]] = [
            {"values": size, "value": value, "share": float(share), "kept": float((1 - 5 / size) ** size)}
            for size in ((256,) if reduced else (256, 4096))
            for value, share in enumerate(inputs.geometric(size), 1)
        ]
        return Result(rows=rows, verdicts=[mean_is_a_fifth(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        sizes = list(dict.fromkeys(row["values"] for row in rows))
        for axes, size in zip(figure.subplots(1, len(sizes), squeeze=False)[0], sizes):
            here = [row for row in rows if row["values"] == size]
            at, height = [row["value"] for row in here], [row["share"] for row in here]
            axes.fill_between(at, height, step="mid", color="#0072b2", alpha=0.5, lw=0)
            axes.plot([size / 5] * 2, [0, height[0]], "k--", lw=1, label="a fifth of the values")
            axes.set(xlabel="value", ylabel="share of people", title=f"{size:,} values", ylim=(0, None))
            axes.legend()


# ------------------------------------------------------------------------------------------------------ simulation


def cell_rows(
    k: int, epsilon: float, users: int, shape: str, loss: str, runs: int, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Mean losses of all decoders of both mechanisms, which report on the same samples, and what follows from them."""
    drawn = [inputs.geometric(k) if shape == "geometric" else inputs.dirichlet(k, rng) for _ in range(runs)]
    samples = np.stack([draw_people(p, users, rng) for p in drawn])
    row: dict[str, Any] = {"values": k, "epsilon": epsilon, "users": users, "shape": shape, "runs": runs}
    least, chance = {}, 0.0
    for mechanism in IDS:
        found = decoded(mechanism, k, epsilon, samples, rng)
        means = {}
        for decoder, estimates in found.items():
            errors = estimates - np.stack([shares(sample) for sample in samples])
            lost = np.abs(errors).sum(axis=1) if loss == "l1" else np.sqrt((errors**2).sum(axis=1))
            means[decoder], row[f"{mechanism}, {decoder}: error"] = inputs.mean_and_error(lost)
            row[f"{mechanism}, {decoder}"] = means[decoder]
        others = [value for decoder, value in means.items() if decoder != "projected"]
        row[f"{mechanism}: lead of projected"] = float(np.log2(min(others) / means["projected"]))
        best = min(means, key=lambda decoder: means[decoder])
        least[mechanism] = means[best]
        chance += (row[f"{mechanism}, {best}: error"] / means[best]) ** 2 if means[best] else 0.0
    row["lead of k-RR"] = float(np.log2(least[K_RAPPOR] / least[K_RR]))
    row["lead of k-RR: error"] = float(np.sqrt(chance) / np.log(2))
    if loss == "l2":
        row["bound"] = float(np.sqrt(ours.bound(k, users, epsilon)))
    yield row


def decoded(
    mechanism: str, k: int, epsilon: float, samples: np.ndarray, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """(R, k) estimates of each decoder from the reports of these samples (R, k) of people."""
    collection = inputs.closed(IDS[mechanism], k, epsilon)
    every = [draw_counts(collection, inputs.names(k), sample, rng) for sample in samples]
    counts = CohortCounts(
        np.concatenate([each.num_reports for each in every]), np.concatenate([each.cells for each in every])
    )
    raw = collection.mechanism.invert(counts)
    found = {"empirical": raw, "normalized": clip_and_normalize(raw), "projected": project_onto_simplex(raw)}
    if collection.mechanism.has_closed_form:
        found["ml"] = np.stack([collection.mechanism.most_likely(cells) for cells in counts.cells])
    return found


# -------------------------------------------------------------------------------------------------------- verdicts


def _where(row: dict[str, Any]) -> str:
    return f"k = {row['values']}, epsilon {row['epsilon']:g}, {row['users']:,} users"


def projection_is_best(rows: list[dict[str, Any]], shape: str, mechanism: str) -> Verdict:
    """The paper's claim for skewed inputs."""
    here = [row for row in rows if row["shape"] == shape]
    leads = [2 ** row[f"{mechanism}: lead of projected"] for row in here]
    worse = [lead for lead in leads if lead < 1 / CLEARLY]
    worst = here[int(np.argmin(leads))]
    return Verdict(
        claim=f"{mechanism}, {shape} input: no decoder of the paper loses less than the projected one, at any k and "
        "epsilon.",
        holds=not worse,
        evidence=f"In {len(worse)} of {len(leads)} settings another one is ahead by more than 2%; the next best loses "
        f"{min(leads):.2f} to {max(leads):.2f} times as much (least: {_where(worst)}).",
    )


def normalizing_suits_dirichlet(rows: list[dict[str, Any]]) -> Verdict:
    """Section 4.4.1 of the paper: the normalized decoder is best for Dirichlet inputs."""
    here = [row for row in rows if row["shape"] == "Dirichlet" and row["values"] >= 16]
    ratios = [row[f"{mechanism}, normalized"] / row[f"{mechanism}, projected"] for row in here for mechanism in IDS]
    better = sum(ratio < 1 / CLEARLY for ratio in ratios)
    worse = sum(ratio > CLEARLY for ratio in ratios)
    return Verdict(
        claim="Dirichlet input, 16 values or more: the normalized decoder loses less than the projected one more often "
        "than more (section 4.4.1 of the paper, which excepts Dirichlet inputs from its rule).",
        holds=better > worse,
        evidence=f"By more than 2% less in {better} and more in {worse} of {len(ratios)} settings: "
        f"{min(ratios):.2f} to {max(ratios):.2f} times.",
    )


def constraints_help(rows: list[dict[str, Any]]) -> Verdict:
    """Normalized or projected against the empirical estimate."""
    ratios = [
        min(row[f"{mechanism}, normalized"], row[f"{mechanism}, projected"]) / row[f"{mechanism}, empirical"]
        for row in rows
        for mechanism in IDS
    ]
    return Verdict(
        claim="The better one of the normalized and the projected estimate never loses more than the empirical one.",
        holds=max(ratios) <= CLEARLY,
        evidence=f"{min(ratios):.2f} to {max(ratios):.2f} times its loss in {len(ratios)} settings.",
    )


def rappor_wins_early(rows: list[dict[str, Any]]) -> Verdict:
    """Small epsilon, many values, many users."""
    here = [r for r in rows if r["epsilon"] <= np.log(r["values"]) / 4 and r["users"] == USERS[1] and r["values"] > 16]
    ratios = [2 ** row["lead of k-RR"] for row in here]
    return Verdict(
        claim="Where epsilon is small against ln k (up to ln(k)/4, 32 values or more, 30,000 users) k-RAPPOR loses no "
        "more than k-RR (within 2%).",
        holds=max(ratios) <= CLEARLY,
        evidence=f"Its loss is {min(ratios):.2f} to {max(ratios):.2f} times that of k-RR in {len(here)} settings.",
    )


def response_wins_late(rows: list[dict[str, Any]]) -> Verdict:
    """Epsilon above ln k."""
    here = [row for row in rows if row["epsilon"] >= np.log(row["values"])]
    ratios = [2 ** row["lead of k-RR"] for row in here]
    lost = sum(row["lead of k-RR"] < -np.log2(CLEARLY) - STANDARD_ERRORS * row["lead of k-RR: error"] for row in here)
    return Verdict(
        claim="From epsilon = ln k on k-RR loses no more than k-RAPPOR (within 2% and four standard errors).",
        holds=lost == 0,
        evidence=f"k-RAPPOR loses {min(ratios):.2f} to {max(ratios):.2f} times as much in {len(here)} settings, "
        f"clearly less in {lost}.",
    )


def boundary_is_logarithm(rows: list[dict[str, Any]]) -> Verdict:
    """Below ln k: does k-RAPPOR win right up to it?"""
    here = [r for r in rows if r["values"] >= 16 and np.log(r["values"] / 2) <= r["epsilon"] < np.log(r["values"])]
    ratios = [2 ** row["lead of k-RR"] for row in here]
    return Verdict(
        claim="The winner changes at epsilon = ln k: between ln(k/2) and ln k k-RAPPOR still loses no more (within "
        "2%).",
        holds=max(ratios) <= CLEARLY,
        evidence=f"There k-RAPPOR loses {min(ratios):.2f} to {max(ratios):.2f} times as much as k-RR.",
    )


def mean_is_a_fifth(rows: list[dict[str, Any]]) -> Verdict:
    """Loss before clipping, and the effect of clipping."""
    means = {
        size: sum(row["value"] * row["share"] for row in rows if row["values"] == size)
        for size in dict.fromkeys(row["values"] for row in rows)
    }
    return Verdict(
        claim="The mean is a fifth of the number of values, within 4% although the distribution is cut off.",
        holds=all(abs(5 * mean / size - 1) <= 0.04 for size, mean in means.items()),
        evidence="Mean: " + ", ".join(f"{mean:.1f} of {size:,} values" for size, mean in means.items()) + ".",
    )
