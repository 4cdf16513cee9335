"""The page: a template that is filled with facts and drawn charts, and escapes every text."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from uldp_transforms.jobs.report import charts
from uldp_transforms.jobs.report.facts import Limits, Report
from uldp_transforms.jobs.report.texts_for_readers import certain, in_words, percent, shown, span
from uldp_transforms.version import __version__

_HERE = Path(__file__).parent
_IN_CHART = 25  # values of the latest window
_CHARTS: Mapping[str, Callable[..., str]] = {
    "latest": charts.latest_svg,
    "trend": charts.trend_svg,
    "unexplained": charts.unexplained_svg,
}
"""What the template calls them."""

STATUSES = {
    "ok": "has numbers",
    "suppressed": "not enough data: fewer reports than the job's minimum",
    "partial": "not whole: the stream was stopped, or began, within the window",
    "insufficient_cohorts": "not enough data: too few cohorts for so many candidates",
    "ill_conditioned": "no numbers: these candidates cannot be told apart",
    "empty": "not enough data: no reports that say anything",
    "not_converged": "no numbers: the estimator ran out of steps",
}
"""Status of a window -> what that means, for a person."""

ONLY_ITSELF = "default-src 'none'; style-src 'unsafe-inline'"
"""What a page may load: nothing. Texts that were not escaped could not do anything either."""


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "shown": shown, "certain": certain}
    environment.globals |= {
        "span": span,
        "in_words": in_words,
        "statuses": STATUSES,
        "drawn": _drawn,
        "sentence_of": charts.sentence_of,
    }
    return environment.get_template("page.html.jinja")


def page(report: Report, limits: Limits, *, script: str | None = None) -> str:
    """HTML that needs nothing but itself.

    Args:
        report: what it says.
        limits: how much there was room for.
        script: address of a script that keeps the page up to date; None: it stays as it is.
    """
    return _template().render(
        report=report,
        limits=limits,
        in_chart=_IN_CHART,
        style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        policy=ONLY_ITSELF if script is None else None,
        script=script,
        version=__version__,
    )


def _drawn(name: str, *arguments: Any) -> Markup:
    """A chart, whose texts were escaped when it was drawn."""
    return Markup(_CHARTS[name](*arguments))
