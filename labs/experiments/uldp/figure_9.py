"""The distributions that the other figures estimate, as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from labs.experiments.frame import Experiment, Result, Verdict
from labs.experiments.uldp.background import SURVEY, SURVEYED, TRUE, background
from labs.experiments.uldp.check_ins import SIDE, TAGS, city
from labs.experiments.uldp.people_and_mechanisms import acs, adult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage


class Distributions(Experiment):
    id = "uldp-figure-9"
    title = "The distributions of our data"
    source = "Murakami and Kawamoto 2019, figure 9"
    abstract = (
        "Shares of people by value, largest first, in the American Community Survey 2023 and in Adult, with the "
        "sensitive values in colour; the check-ins of the simulated city as a map; and the distributions of its homes "
        f"and workplaces, the true one beside that of one survey of {SURVEYED:,} people per tag, which takes the "
        "place of the paper's points of interest. In place of the paper's US census and Foursquare data."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        rows: list[dict[str, Any]] = []
        for people in (acs(), adult()):
            order = np.argsort(-people.people, kind="stable")
            sensitive = np.isin(people.values, people.sensitive)
            rows += [
                {
                    "data": people.name,
                    "rank": rank,
                    "share": float(people.frequencies[at]),
                    "sensitive": int(sensitive[at]),
                }
                for rank, at in enumerate(order, 1)
            ]
        town = city()
        rows += [
            {
                "data": town.name,
                "x": at % SIDE,
                "y": at // SIDE,
                "share": float(share),
                "sensitive": int(value in town.sensitive),
            }
            for at, (value, share) in enumerate(zip(town.values, town.frequencies))
        ]
        for knowledge in (TRUE, SURVEY):
            behind = background(town, knowledge, rng)
            assert behind is not None
            rows += [
                {"tag": tag, "knowledge": knowledge, "x": at % SIDE, "y": at // SIDE, "share": float(share)}
                for tag, of_tag in zip(TAGS, behind)
                for at, share in enumerate(of_tag)
            ]
        return Result(rows=rows, verdicts=[sensitive_are_few(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        names = _names(rows)
        figure.set_size_inches(11, 7)
        upper, lower = figure.subfigures(2, 1)
        *lines, town = upper.subplots(1, len(names))
        for axes, name in zip(lines, names):
            here = [row for row in rows if row.get("data") == name and row["share"] > 0]
            for flag, color, label in ((0, "#999999", "not sensitive"), (1, "#d55e00", "sensitive")):
                own = [row for row in here if row["sensitive"] == flag]
                axes.plot([r["rank"] for r in own], [r["share"] for r in own], ".", color=color, ms=4, label=label)
            axes.set(xlabel="rank of the value", yscale="log", title=name)
            axes.legend(fontsize=8)
        lines[0].set_ylabel("share of people")
        image = _map(town, [row for row in rows if row.get("data") == names[-1]], None)
        hidden = [row for row in rows if row.get("data") == names[-1] and row["sensitive"]]
        town.plot(
            [r["x"] for r in hidden], [r["y"] for r in hidden], "s", mfc="none", mec="#d55e00", ms=6, label="sensitive"
        )
        town.set(title=names[-1], xlabel="column of the grid", ylabel="row")
        town.legend(fontsize=7)
        upper.colorbar(image, ax=town, label="check-ins, %")
        panels = [(tag, knowledge) for tag in TAGS for knowledge in (TRUE, SURVEY)]
        for axes, (tag, knowledge) in zip(lower.subplots(1, len(panels)), panels):
            of_tag = [row for row in rows if row.get("tag") == tag]
            here = [row for row in of_tag if row["knowledge"] == knowledge]
            image = _map(axes, here, max(row["share"] for row in of_tag))
            axes.set(title=f"{names[-1]}, behind {tag}: {knowledge}", xlabel="column of the grid")
            axes.title.set_size(10)
            lower.colorbar(image, ax=axes, shrink=0.7, label="people, %")


def _names(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["data"] for row in rows if "data" in row))


def _map(axes: Axes, rows: list[dict[str, Any]], largest: float | None) -> AxesImage:
    """Shares of cells in percent; two maps with the same largest share have the same scale."""
    grid = np.zeros((SIDE, SIDE))
    for row in rows:
        grid[row["y"], row["x"]] = row["share"]
    return axes.imshow(100 * grid, origin="lower", cmap="viridis", vmin=0, vmax=100 * largest if largest else None)


def sensitive_are_few(rows: list[dict[str, Any]]) -> Verdict:
    """Shares of sensitive values among all values, and of people who hold them."""
    texts, few = [], []
    for name in _names(rows):
        here = [row for row in rows if row.get("data") == name]
        values = sum(row["sensitive"] for row in here) / len(here)
        people = sum(row["share"] for row in here if row["sensitive"])
        few.append(values < 0.5 and people < 0.5)
        texts.append(f"{name} {values:.0%} of the values, {people:.1%} of the people")
    return Verdict(
        claim="Most values are not sensitive, and most people hold one of these.",
        holds=all(few),
        evidence=f"Sensitive: {'; '.join(texts)}.",
    )
