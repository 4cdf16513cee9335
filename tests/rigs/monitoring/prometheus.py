"""Prometheus on this machine: it scrapes a Flink, evaluates the alert rules, and is asked for the panels."""

from __future__ import annotations

import contextlib
import json
import shutil
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.rigs import cache
from tests.rigs.flink.processes import free_port, process, wait_for

FOLDER = Path(__file__).parent
RULES = cache.ROOT / "deploy" / "monitoring" / "alerts.yml"
REPORTER = cache.Jars(source=FOLDER, folder=cache.CACHE / "flink-metrics-prometheus-1.19.1")
"""Flink's reporter for Prometheus; beside the jars of ``tests.rigs.flink``."""

EVERY = 2
"""Seconds between two scrapes, and between two evaluations of the rules."""


def missing() -> str | None:
    """Why no Prometheus can scrape a Flink here; None if one can."""
    if shutil.which("prometheus") is None:
        return "prometheus is not installed (Debian: apt-get install prometheus)"
    return cache.missing("make monitoring", REPORTER.folder)


def reporter(port: int) -> str:
    """Lines of Flink's ``config.yaml`` that show its metrics on a port."""
    factory = "org.apache.flink.metrics.prometheus.PrometheusReporterFactory"
    return f"metrics.reporter.prom.factory.class: {factory}\nmetrics.reporter.prom.port: {port}\n"


class Series(NamedTuple):
    """One series of an answer, as it is now."""

    labels: dict[str, str]
    value: float


class Prometheus:
    """A running Prometheus; made by ``prometheus``."""

    def __init__(self, port: int):
        self._api = f"http://127.0.0.1:{port}/api/v1"

    def ask(self, query: str) -> list[Series]:
        """What a query says now; raises HTTPError if it cannot be evaluated."""
        found = self._get(f"query?{urllib.parse.urlencode({'query': query})}")["result"]
        return [Series(each["metric"], float(each["value"][1])) for each in found]

    def states(self) -> dict[str, str]:
        """Alert -> inactive, pending or firing, or what is wrong with its rule."""
        rules = [rule for group in self._get("rules")["groups"] for rule in group["rules"]]
        return {rule["name"]: rule["state"] if rule["health"] == "ok" else rule.get("lastError", "") for rule in rules}

    def names(self) -> set[str]:
        """Of all metrics that were scraped."""
        return set(self._get("label/__name__/values"))

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self._api}/{path}", timeout=30) as answer:
            return json.load(answer)["data"]


@contextlib.contextmanager
def prometheus(folder: Path, target: int) -> Iterator[Prometheus]:
    """Start Prometheus with the alert rules of this folder; it ends on leaving.

    Args:
        folder: for its data, its settings and its log.
        target: port of this machine on which metrics are shown.
    """
    port, settings, log = free_port(), folder / "prometheus.yml", folder / "prometheus.log"
    scraped = {"job_name": "flink", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}
    every = {"scrape_interval": f"{EVERY}s", "evaluation_interval": f"{EVERY}s"}
    content = {"global": every, "rule_files": [str(RULES)], "scrape_configs": [scraped]}
    settings.write_text(yaml.safe_dump(content), "utf-8")
    where = [f"--storage.tsdb.path={folder / 'prometheus'}", f"--web.listen-address=127.0.0.1:{port}"]
    with process(["prometheus", f"--config.file={settings}", *where], log) as started:
        wait_for("Server is ready to receive web requests", started, log)
        yield Prometheus(port)
