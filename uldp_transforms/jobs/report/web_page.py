"""The page: a template filled with facts and charts, which escapes every text."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from uldp_transforms.jobs.report import charts
from uldp_transforms.jobs.report.compared.compared_rows import Difference as Compared
from uldp_transforms.jobs.report.differences import Difference, as_json
from uldp_transforms.jobs.report.facts import Latest, Limits, Report
from uldp_transforms.jobs.report.groups.group_facts import GroupPart
from uldp_transforms.jobs.report.numbers import number_charts, number_facts
from uldp_transforms.jobs.report.texts_for_readers import (
    digits_of,
    ends_of,
    fixed,
    fixed_span,
    group_words,
    in_words,
    named,
    percent,
    points,
    points_span,
    share_words,
    shown,
    signed,
    signed_span,
    span,
    with_values,
)
from uldp_transforms.ldp.comparisons.p_values import p_text
from uldp_transforms.ldp.confidence import percent as percent_of
from uldp_transforms.ldp.discovery.discover import FALSE_DISCOVERIES
from uldp_transforms.version import __version__

_HERE = Path(__file__).parent
_IN_CHART = 25  # maximum number of values in the chart of the latest window
_CHARTS: Mapping[str, Callable[..., str]] = {
    "latest": charts.latest_svg,
    "trend": charts.trend_svg,
    "unexplained": charts.unexplained_svg,
    "curve": number_charts.curve_svg,
    "figure": number_charts.figure_svg,
}
"""Names of the charts in the template."""

STATUSES = {
    "ok": "has numbers",
    "suppressed": "not enough data: fewer reports than the job's minimum",
    "partial": "incomplete: the stream started or stopped within the window",
    "insufficient_cohorts": "not enough data: too few cohorts for this many candidates",
    "ill_conditioned": "no numbers: these candidates cannot be distinguished",
    "empty": "not enough data: no reports with information",
    "not_converged": "no numbers: the estimator did not converge",
}
"""Status of a window -> its meaning for readers of the page."""


def only_itself(more: Sequence[str] = ()) -> str:
    """Content security policy: the page may load nothing, and run and apply only its own scripts and style, by hash.

    Args:
        more: further sources of scripts, of a page with a server.
    """
    scripts = " ".join([*more, _hash("page.js"), _hash("page_scales.js")])
    return (
        f"default-src 'none'; style-src {_hash('page.css')}; script-src {scripts}; base-uri 'none'; form-action 'none'"
    )


@functools.cache
def _part(name: str) -> str:
    """A file beside this one, as the page contains it."""
    return f"\n{(_HERE / name).read_text(encoding='utf-8')}"


@functools.cache
def _hash(name: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(_part(name).encode()).digest()).decode()}'"


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "shown": shown, "named": named, "fixed": fixed}
    environment.filters |= {"with_values": with_values, "group_words": group_words}
    environment.globals |= {
        "span": span,
        "share_words": share_words,
        "ends_of": ends_of,
        "points": points,
        "points_span": points_span,
        "signed": signed,
        "signed_span": signed_span,
        "fixed_span": fixed_span,
        "digits_of_spans": _digits_of_spans,
        "digits_of": digits_of,
        "zip": zip,
        "values_of": _values_of,
        "values_of_groups": _values_of_groups,
        "values_of_differences": _values_of_differences,
        "digits_of_difference": _digits_of_difference,
        "in_words": in_words,
        "p_text": p_text,
        "false_discoveries": percent_of(FALSE_DISCOVERIES),
        "statuses": STATUSES,
        "drawn": _drawn,
        "sentence_of": charts.sentence_of,
        "broken_of": charts.broken_of,
        "sentence_of_curve": number_charts.sentence_of_curve,
        "sentence_of_figure": number_charts.sentence_of_figure,
        "number_text": number_facts.number_text,
        "number_span": number_facts.number_span,
        "said_of": number_facts.said_of,
        "digits_of_figure": number_facts.digits_of_figure,
    }
    return environment.get_template("page.html.jinja")


def page(report: Report, limits: Limits, *, script: str | None = None) -> str:
    """A self-contained HTML page.

    Args:
        report: content of the page.
        limits: limits that were applied to the content.
        script: address of a script that updates the page; None: the page is static.
    """
    return _template().render(
        report=report,
        limits=limits,
        in_chart=_IN_CHART,
        style=Markup(_part("page.css")),
        tools=Markup(_part("page.js")),
        scales=Markup(_part("page_scales.js")),
        policy=only_itself() if script is None else None,
        script=script,
        version=__version__,
    )


def _drawn(name: str, *arguments: Any) -> Markup:
    """Draw a chart; its texts are escaped when it is drawn."""
    return Markup(_CHARTS[name](*arguments))


def _digits_of_spans(spans: Iterable[tuple[float | None, float | None]]) -> int:
    """Number of decimals of a table with these intervals."""
    return digits_of(None if low is None or high is None else (high - low) / 2 for low, high in spans)


def _digits_of_difference(one: Difference) -> int:
    """Number of decimals of a difference of figures: two digits of half the length of its interval."""
    if one.is_share:
        return digits_of([one.half])
    return number_facts.digits_of_length([] if one.half is None else [2 * one.half])


def _values_of_groups(groups: GroupPart) -> Markup:
    """The value of each line of a table of groups as it is in the rows, for the page's script."""
    return Markup(as_json({"values": [line.figure.name for line in groups.lines]}))


def _values_of_differences(compared: Sequence[Compared]) -> Markup:
    """The value of each line of a table of comparisons as it is in the rows, for the page's script."""
    return Markup(as_json({"values": [one.value for one in compared]}))


def _values_of(shares: Latest) -> Markup:
    """The values of a table as they are in the rows, for the page's script."""
    return Markup(as_json({"values": [entry.value for entry in shares.entries]}))
