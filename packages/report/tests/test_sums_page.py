"""The table of sums over chosen values, which has no curve beside it, in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from packages.report.tests.support.report_page import page_of
from tests.support import report_rows as rows
from tests.support.browser import browser, needs_browser


@needs_browser
@pytest.mark.parametrize("width", [1000, 1440, 1700])
def test_the_table_of_sums_has_the_width_of_the_page(width: int, tmp_path: Path) -> None:
    """It is not cut where a curve would begin."""
    of = rows.survey(tmp_path, ["a", "b"], 2)
    names = ("share of all that had at least one of them", "mean cost of a visit")
    sums = [
        {"name": name, "is_share": share, "value": value, "low": value / 2, "high": value * 1.5}
        for name, share, value in zip(names, (True, False), (0.4, 900.0))
    ]
    shares = [rows.entry("a", 0.6), rows.entry("b", 0.4)]
    rows.write(tmp_path, "estimates.jsonl", [rows.estimate(of, at, shares, sums=sums) for at in range(2)])
    page = tmp_path / "sums.html"
    page.write_text(page_of(tmp_path), encoding="utf-8")
    region = "document.querySelector('#part-1-sums-numbers-table').closest('.wide')"
    with browser(tmp_path) as one:
        one.resize(width, 1000)
        one.open(page.as_uri())
        assert one.run(f"return {region}.scrollWidth <= {region}.clientWidth")
        assert one.run(f"return {region}.clientWidth") > 600
