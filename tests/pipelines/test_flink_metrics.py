"""Prometheus scrapes the main job on Flink, and answers dashboard and alerts; ``make monitoring`` fetches it."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.flink import cached
from deploy.monitoring import prometheus, scrape

REASON = cached.missing() or prometheus.missing()
needs_all = pytest.mark.skipif(REASON is not None, reason=str(REASON))
pytestmark = [pytest.mark.slow, needs_all]


def test_the_jar_is_the_pinned_one() -> None:
    assert prometheus.REPORTER.mismatches() == []


def test_panels_and_alerts_are_answered(tmp_path: Path) -> None:
    """Before and after a killed worker, and with forged reports, which call somebody."""
    scraped = scrape.run(tmp_path)
    assert scrape.faults(scraped) == []
    answered = scrape.table(scraped)
    assert "UldpSentinelAlarm" in answered and "firing" in answered
