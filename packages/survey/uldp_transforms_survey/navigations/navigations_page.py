"""The page of ``uldp navigations``: charts of the windows, and tables of all numbers. It contains no script."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping, Sequence
from typing import Any

from uldp_transforms.ldp.confidence import INTERVAL
from uldp_transforms_report.charts import FEW, Layer, band, data_of, line_of, points, quantity, svg_text
from uldp_transforms_report.colours import PLAIN, SMOOTHED, TRUTH
from uldp_transforms_survey.navigations.navigation_words import percent_in_words, rate_in_words, sentences_about, shown

Row = Mapping[str, Any]

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; margin: 0 0 .4rem; } h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
.large { font-size: 1.2rem; } .note { opacity: .8; font-size: .9rem; }
figure { margin: 0 0 1rem; background: #fff; } figure svg { display: block; width: 100%; height: auto; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .9rem .2rem 0; text-align: left; border-bottom: 1px solid #8886; white-space: nowrap; }
"""


def page_of(whole: Row, windows: Sequence[Row], accounts: Sequence[str]) -> str:
    """The page as HTML.

    Args:
        whole: estimates of the whole period.
        windows: estimates of each window, with its start and end; may be empty.
        accounts: sentences about the rows that are used and left out.
    """
    q = _name(whole)
    hashed = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{hashed}'; base-uri 'none'; form-action 'none'"
    body = [
        "<h1>Undisturbed navigations</h1>",
        f'<p class="large">{_headline(whole)}</p>',
        *(f'<p class="note">{html.escape(sentence)}</p>' for sentence in sentences_about(whole)),
        *_charts(windows, q),
        "<h2>Loading times of the whole period</h2>",
        _table(
            ("navigations", "mean ms", INTERVAL, f"{q} ms", INTERVAL),
            [(each["class"], *shown(each["mean"]), *shown(each["quantile"])) for each in whole["durations"]],
        ),
        *_rates(whole["rates"], q),
        *_windows(windows, q),
        "<h2>What was counted</h2>",
        *(f"<p>{html.escape(sentence)}</p>" for sentence in accounts),
        '<p class="note">Browsers replace their answer at random at a rate that they publish; these numbers are '
        "corrected for it. high: undisturbed navigations, low: disturbed ones, all: every navigation as it is. "
        "Intervals take navigations as independent.</p>",
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8"><title>Undisturbed navigations</title>',
            f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{_STYLE}</style></head><body><main>",
            *body,
            "</main></body></html>",
            "",
        ]
    )


def _charts(windows: Sequence[Row], q: str) -> list[str]:
    if not windows:
        return []
    axis = {"grid": False, "labelFlush": True}
    x = {"field": "time", "type": "temporal", "title": None, "scale": {"type": "utc"}, "axis": axis}
    base = {"data": data_of([_drawn(row) for row in windows]), "encoding": {"x": x}}
    share: list[Layer] = [
        band("low", "high", PLAIN, 0.22),
        points("share") if len(windows) <= FEW else line_of("share", PLAIN),
    ]
    times: list[Layer] = [
        band("disturbed_low", "disturbed_high", TRUTH, 0.14, _milliseconds),
        band("undisturbed_low", "undisturbed_high", SMOOTHED, 0.22, _milliseconds),
        line_of("disturbed", TRUTH, _milliseconds, strokeDash=[5, 2], point={"color": TRUTH}),
        line_of("undisturbed", SMOOTHED, _milliseconds, point={"color": SMOOTHED}),
    ]
    return [
        "<h2>Share of undisturbed navigations</h2>",
        _figure(
            base | {"layer": share},
            "Unbiased share of undisturbed navigations of each window, which may lie outside 0 to 100 %, with its "
            f"{INTERVAL}, which does not; times are UTC",
        ),
        f"<h2>{q} of the loading time in milliseconds</h2>",
        _figure(
            base | {"layer": times},
            f"{q} of undisturbed (solid, blue) and disturbed navigations (dashed, orange) of each window, with "
            f"{INTERVAL}s where both ends are known",
        ),
    ]


def _figure(chart: Mapping[str, Any], caption: str) -> str:
    svg = svg_text(chart, width=900, height=200)
    return f'<figure role="img" aria-label="{html.escape(caption)}">{svg}</figure><p class="note">{caption}.</p>'


def _drawn(row: Row) -> dict[str, Any]:
    """The numbers of a window; a class whose interval the noise leaves open is not drawn."""
    drawn = {
        "time": row["window_start"],
        "said": "{}: {} ({})".format(row["window_start"], *percent_in_words(row)),
        "share": row["raw_frequency"],
        "low": row["ci_low"],
        "high": row["ci_high"],
    }
    for name, each in zip(("undisturbed", "disturbed"), row["durations"]):
        known = None not in each["quantile"].values()
        drawn |= {name: each["quantile"]["value"] if known else None}
        drawn |= {f"{name}_{end}": each["quantile"][end] if known else None for end in ("low", "high")}
    return drawn


def _milliseconds(name: str) -> dict[str, Any]:
    return quantity(name, axis={"title": None, "tickCount": 4}, scale={"zero": True})


def _headline(whole: Row) -> str:
    if whole["misfit"] is not None:
        return f"No estimate: the answers of {whole['num_reports']:,} navigations do not fit their rates."
    share, between = percent_in_words(whole)
    return f"{share} of {whole['num_reports']:,} navigations were undisturbed ({INTERVAL} {between})."


def _rates(rates: Sequence[Row], q: str) -> list[str]:
    if len(rates) < 2:
        return []
    return ["<h2>Rates</h2>", _table(_heads("rate", q), [(rate_in_words(row), *_cells(row)) for row in rates])]


def _windows(windows: Sequence[Row], q: str) -> list[str]:
    if not windows:
        return []
    rows = [(row["window_start"], *_cells(row)) for row in windows]
    return ["<h2>Windows</h2>", _table(_heads("window (UTC)", q), rows)]


def _heads(first: str, q: str) -> list[str]:
    heads = [first, "navigations", "undisturbed", INTERVAL]
    return [
        *heads,
        f"{q} ms, high",
        INTERVAL,
        f"{q} ms, low",
        INTERVAL,
    ]


def _cells(row: Row) -> tuple[str, ...]:
    high, low, _ = (shown(each["quantile"]) for each in row["durations"])
    return (f"{row['num_reports']:,}", *percent_in_words(row), *high, *low)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in heads)
    lines = []
    for first, *cells in rows:
        others = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
        lines.append(f'<tr><th scope="row">{html.escape(first)}</th>{others}</tr>')
    body = "\n".join(lines)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def _name(row: Row) -> str:
    return f"p{100 * row['durations'][0]['quantile']['q']:g}"
