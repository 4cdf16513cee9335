"""The distributions that the other figures estimate, as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from labs.experiments.frame import Experiment, Result, Verdict
from labs.experiments.uldp.check_ins import SIDE, city
from labs.experiments.uldp.people_and_mechanisms import acs, adult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Distributions(Experiment):
    id = "uldp-figure-9"
    title = "The distributions of our data"
    source = "Murakami and Kawamoto 2019, figure 9"
    abstract = (
        "Shares of people by value, largest first, in the American Community Survey 2023 and in Adult, with the "
        "sensitive "
        "values in colour; and the simulated city as a map. In place of the paper's US census and Foursquare data. "
        "Nothing "
        "is simulated."
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
        return Result(rows=rows, verdicts=[sensitive_are_few(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        names = list(dict.fromkeys(row["data"] for row in rows))
        figure.set_size_inches(11, 3.6)
        *lines, town = figure.subplots(1, len(names))
        for axes, name in zip(lines, names):
            here = [row for row in rows if row["data"] == name and row["share"] > 0]
            for flag, color, label in ((0, "#999999", "not sensitive"), (1, "#d55e00", "sensitive")):
                own = [row for row in here if row["sensitive"] == flag]
                axes.plot([r["rank"] for r in own], [r["share"] for r in own], ".", color=color, ms=4, label=label)
            axes.set(xlabel="rank of the value", yscale="log", title=name)
            axes.legend(fontsize=8)
        lines[0].set_ylabel("share of people")
        grid = np.zeros((SIDE, SIDE))
        for row in rows:
            if row["data"] == names[-1]:
                grid[row["y"], row["x"]] = row["share"]
        image = town.imshow(100 * grid, origin="lower", cmap="viridis")
        hidden = [row for row in rows if row["data"] == names[-1] and row["sensitive"]]
        town.plot(
            [r["x"] for r in hidden], [r["y"] for r in hidden], "s", mfc="none", mec="#d55e00", ms=6, label="sensitive"
        )
        town.set(title=names[-1], xlabel="column of the grid", ylabel="row")
        town.legend(fontsize=7)
        figure.colorbar(image, ax=town, label="check-ins, %")


def sensitive_are_few(rows: list[dict[str, Any]]) -> Verdict:
    """Shares of sensitive values among all values, and of people who hold them."""
    texts, few = [], []
    for name in dict.fromkeys(row["data"] for row in rows):
        here = [row for row in rows if row["data"] == name]
        values = sum(row["sensitive"] for row in here) / len(here)
        people = sum(row["share"] for row in here if row["sensitive"])
        few.append(values < 0.5 and people < 0.5)
        texts.append(f"{name} {values:.0%} of the values, {people:.1%} of the people")
    return Verdict(
        claim="Most values are not sensitive, and most people hold one of these.",
        holds=all(few),
        evidence=f"Sensitive: {'; '.join(texts)}.",
    )
