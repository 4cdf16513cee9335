"""The files of a page: what ``uldp report`` writes, and ``uldp estimate --report`` at the end of its run."""

from __future__ import annotations

from typing import Any

from uldp_transforms.files import stores
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs.records.run_records import of_jobs
from uldp_transforms_report.charts import png_of, svg_of
from uldp_transforms_report.facts import Report
from uldp_transforms_report.gathering import TITLE, Asked, gather
from uldp_transforms_report.numbers.number_charts import panel
from uldp_transforms_report.trends.chart_files import STYLES, write_charts
from uldp_transforms_report.web_page import page


def write(
    asked: Asked,
    output: str | None,
    png: str | None,
    svg: str | None = None,
    charts: str | None = None,
    style: str = "slide",
) -> None:
    """Write the page and the picture of a directory; each file appears when it is complete.

    Args:
        asked: selection of what they show.
        output: HTML file of the page; None: no page.
        png, svg: files of the picture; None: no such file.
        charts: directory of files of single charts; None: no such files.
        style: their style, of ``STYLES``.

    Raises:
        SpecError: if the files do not contain valid rows.
        OSError: if a file cannot be read or written.
    """
    report = gather(asked)
    with of_jobs(asked.directory):
        of_page = None if output is None else page(report, asked.limits).encode("utf-8", "replace")
        drawn = _picture(report) if png or svg else {}
        of_picture = png_of(drawn) if png else None, svg_of(drawn) if svg else None
    for path, content in zip((output, png, svg), (of_page, *of_picture)):
        if path is not None and content is not None:
            with whole_file(path) as file:
                file.write(content)
    if charts is not None:
        write_charts(report, charts, STYLES[style])


def _picture(report: Report) -> dict[str, Any]:
    from uldp_transforms_report.trends.picture import picture  # noqa: PLC0415  # imports Altair

    return picture(report, panel)


def write_report_into(directory: str) -> None:
    """Write ``report.html`` and ``report.png`` into the directory itself; raises as ``write``."""
    asked = Asked(directory=directory, title=TITLE)
    write(asked, *(stores.joined(directory, name) for name in ("report.html", "report.png")))
