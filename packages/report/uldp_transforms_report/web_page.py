"""The page: a template filled with facts and charts, which escapes every text."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from uldp_transforms.ldp.confidence import percent as percent_of
from uldp_transforms.ldp.discovery.discover import FALSE_DISCOVERIES
from uldp_transforms.rows.figures import figure_words
from uldp_transforms.version import __version__
from uldp_transforms_report.colours import PLAIN
from uldp_transforms_report.compared.compared_tables import compared_tables
from uldp_transforms_report.facts import Limits, Report
from uldp_transforms_report.groups import group_tables
from uldp_transforms_report.numbers import number_charts, number_tables
from uldp_transforms_report.tables import alarm_tables, record_tables, share_tables
from uldp_transforms_report.texts_for_readers import (
    ends_of,
    group_words,
    head_words,
    in_words,
    named,
    shown,
    with_links,
)
from uldp_transforms_report.trends import trend_charts
from uldp_transforms_report.trends.alarm_marks import changes_of
from uldp_transforms_report.trends.group_charts import group_svg
from uldp_transforms_report.trends.merged_windows import step_of

_HERE = Path(__file__).parent
_SCRIPTS = ("page.js", "page_scales.js", "page_folds.js", "page_pictures.js")
_FIRST_CHARTS = 3
"""Number of charts of a kind that are not folded where there is little room."""

_CHARTS: Mapping[str, Callable[..., str]] = {
    "trend": trend_charts.trend_svg,
    "group": group_svg,
    "unexplained": trend_charts.unexplained_svg,
    "curve": number_charts.curve_svg,
}
"""Names of the charts in the template."""

_TABLES: tuple[Callable[..., Any], ...] = (
    share_tables.shares_table,
    share_tables.found_table,
    share_tables.trend_table,
    share_tables.differences_table,
    number_tables.figures_table,
    number_tables.curve_table,
    record_tables.coverage_table,
    record_tables.costs_table,
    alarm_tables.alarms_table,
    record_tables.accounts_table,
    record_tables.runs_table,
    compared_tables,
    group_tables.group_dots_table,
    group_tables.group_lines_table,
)
"""Functions that make the tables of the template, by their names."""

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
    scripts = " ".join([*more, *map(_hash, _SCRIPTS)])
    own = f"style-src {_hash('page.css')}; script-src {scripts}; img-src blob:"  # of the pictures that it draws
    return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"


@functools.cache
def _part(name: str) -> str:
    """A file beside this one, as the page contains it."""
    return f"\n{(_HERE / name).read_text(encoding='utf-8')}"


@functools.cache
def _hash(name: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(_part(name).encode()).digest()).decode()}'"


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": figure_words.percent, "shown": shown, "named": named}
    environment.filters |= {"group_words": group_words, "with_links": with_links}
    environment.globals |= {
        "in_percent": figure_words.NumberFormat(),
        "format_of": figure_words.format_of,
        "format_of_trend": figure_words.format_of_trend,
        "words_of": figure_words.words_of,
        "said_of": figure_words.said_of,
        "ends_of": ends_of,
        "head_words": head_words,
        "in_words": in_words,
        "false_discoveries": percent_of(FALSE_DISCOVERIES),
        "statuses": STATUSES,
        "plain": PLAIN,
        "shape_of": group_tables.shape_of,
        "compared_groups": group_tables.compared_groups,
        "drawn": _drawn,
        "sentence_of": trend_charts.sentence_of,
        "broken_of": trend_charts.broken_of,
        "common_scale": trend_charts.common_scale,
        "changes_of": changes_of,
        "step_of": step_of,
        "first_charts": _FIRST_CHARTS,
        "sentence_of_curve": number_charts.sentence_of_curve,
    }
    environment.globals |= {make.__name__: make for make in _TABLES}
    return environment


def page(report: Report, limits: Limits, *, script: str | None = None) -> str:
    """A self-contained HTML page.

    Args:
        report: content of the page.
        limits: limits that were applied to the content.
        script: address of a script that updates the page; None: the page is static.
    """
    policy = only_itself() if script is None else None
    return rendered("page.html.jinja", report=report, limits=limits, policy=policy, script=script)


def rendered(template: str, **content: Any) -> str:
    """A template beside this file, with its content and with what all pages have."""
    parts = {"style": Markup(_part("page.css")), "scripts": [Markup(_part(name)) for name in _SCRIPTS]}
    return _environment().get_template(template).render(content, version=__version__, **parts)


def _drawn(name: str, *arguments: Any) -> Markup:
    """Draw a chart; its texts are escaped when it is drawn."""
    return Markup(_CHARTS[name](*arguments))
