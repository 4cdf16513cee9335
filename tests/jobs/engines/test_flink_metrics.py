"""Prometheus scrapes the main job on Flink, and answers dashboard and alerts; ``make monitoring`` fetches it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rigs.flink import cached
from tests.rigs.monitoring import prometheus, scrape
from tests.rigs.monitoring.panels import ALERTS, PANELS
from tests.rigs.monitoring.prometheus import Series
from tests.rigs.monitoring.scrape import Answers, Scraped

REASON = cached.missing() or prometheus.missing()
needs_all = pytest.mark.skipif(REASON is not None, reason=str(REASON))


@pytest.mark.slow
@needs_all
def test_the_jar_is_the_pinned_one() -> None:
    assert prometheus.REPORTER.mismatches() == []


@pytest.mark.slow
@needs_all
def test_panels_and_alerts_are_answered(tmp_path: Path) -> None:
    """Before and after a killed worker, and with forged reports, which call somebody."""
    assert scrape.faults(scrape.run(tmp_path)) == []


# ---------------------------------------------------------------------- what the run would find

RECEIVED, OTHER = "Reports received in 10 minutes", "Received and in no other bin"


def answers(fired: str | None = None, **values: float | None) -> Answers:
    """All panels say 1, but for those that are named by their first word; None: no answer."""
    said = {panel.title: values.get(panel.title.split()[0], 1.0) for panel in PANELS if panel.query}
    panels = {title: [] if value is None else [Series({}, value)] for title, value in said.items()}
    states = {alert.name: "firing" if alert.name == fired else "pending" for alert in ALERTS}
    return Answers(panels | {RECEIVED: [Series({}, 100.0)], OTHER: [Series({}, values.get("Other") or 0.0)]}, states)


HEALTHY, TROUBLED = answers(Restarts=0.0), answers("UldpSentinelAlarm")


@pytest.mark.parametrize(
    ("scraped", "sentences"),
    [
        (Scraped(100, HEALTHY, TROUBLED), []),
        (Scraped(99, HEALTHY, TROUBLED), ["'Reports received in 10 minutes' must be 99, got 100.0"]),
        (
            Scraped(100, answers(Restarts=0.0, Other=7.0), TROUBLED),
            ["'Received and in no other bin' must be 0, got 7.0"],
        ),
        (
            Scraped(100, answers(Restarts=0.0, Age=None), answers("UldpSentinelAlarm", Age=None)),
            ["'Age of the watermark' must have an answer, got none"],
        ),
        (
            Scraped(100, HEALTHY, answers("UldpSentinelAlarm", Restarts=3.0)),
            ["'Restarts' must be 1 after one, got 3.0"],
        ),
        (Scraped(100, HEALTHY, answers()), ["alerts must be ['UldpSentinelAlarm'], got []"]),
        (Scraped(100, answers("UldpBacklog", Restarts=0.0), TROUBLED), ["alerts must be [], got ['UldpBacklog']"]),
    ],
)
def test_faults(scraped: Scraped, sentences: list[str]) -> None:
    assert scrape.faults(scraped) == sentences
