"""Do dashboard and alerts fit what Flink really shows? The main job runs on Flink, and a Prometheus scrapes it.

The job reads Kafka: reports that are new, late, sent twice, too old or garbage. When all are counted, each panel
and each alert is asked for. Then a worker is killed and forged reports are sent, and all is asked again. Needs what
``tests.rigs.flink`` needs, and Prometheus.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.rigs.flink import cached
from tests.rigs.flink.cluster import cluster
from tests.rigs.flink.kafka import broker, create_topic, expansion_service
from tests.rigs.flink.processes import free_port
from tests.rigs.flink.stream import TOPIC, job
from tests.rigs.flink.traffic import PARTITIONS, send
from tests.rigs.job import collection
from tests.rigs.monitoring.panels import PANELS
from tests.rigs.monitoring.prometheus import REPORTER, Prometheus, Series, missing, prometheus, reporter
from uldp_transforms.jobs.kafka.topic_options import CREATE_TIME
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire

RATE, SECONDS = 500, 25
"""New reports a second, and for how long they are sent, twice."""

FORGED = 5_000
"""Reports in clear, all alike: far more than the protocol allows."""

NOTHING_TO_SHOW = {"Rows after the only one of a window"}
"""Panels of what does not happen in this run."""

PATIENCE = 120.0
"""Seconds until Prometheus must have seen what happened."""


class Answers(NamedTuple):
    """What Prometheus says at one time.

    Attributes:
        panels: title -> series.
        alerts: name -> inactive, pending, firing.
    """

    panels: dict[str, list[Series]]
    alerts: dict[str, str]

    def sum_of(self, title: str) -> float | None:
        """Of the series of a panel; None if there are none."""
        found = self.panels[title]
        return sum(series.value for series in found) if found else None


class Scraped(NamedTuple):
    """A run.

    Attributes:
        received: reports that were sent before the trouble.
        healthy, troubled: what was answered before it, and after it.
    """

    received: int
    healthy: Answers
    troubled: Answers


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rigs.monitoring.scrape", description=__doc__)
    parser.parse_args()
    cached.fetch()
    REPORTER.fetch()
    reason = missing()
    if reason is not None:
        print(reason, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        try:
            answers = run(Path(name))
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
    print(table(answers))
    wrong = faults(answers)
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


def run(folder: Path) -> Scraped:
    """Start everything, send, ask; make trouble, and ask again.

    Returns:
        What was sent and answered.

    Raises:
        RuntimeError: the job or Prometheus did not do what was waited for.
    """
    with ExitStack() as stack:
        server = stack.enter_context(broker(folder))
        service = stack.enter_context(expansion_service(folder))
        target = free_port()
        paths = f"{cached.JARS.class_path}:{REPORTER.class_path}"
        flink = stack.enter_context(cluster(folder, paths, more=reporter(target)))
        asked = stack.enter_context(prometheus(folder, target))
        create_topic(server, TOPIC, PARTITIONS, CREATE_TIME)
        source = [f"--kafka_topic={TOPIC}", f"--bootstrap_servers={server}", f"--expansion_service={service}"]
        options = [*source, "--deduplicate", "--late_every=5s", "--write_counts"]
        started = stack.enter_context(job(folder, "scraped", options, flink))
        sent = send(server, TOPIC, collection(folder), RATE, SECONDS)
        started.wait(lambda: started.ledger() == sent.ledger)
        _wait(lambda: _answers(asked).sum_of("Reports received in 10 minutes") == sent.received, "what was sent")
        _wait(lambda: _answers(asked).sum_of("Received and in no other bin") == 0, "counters that balance")
        healthy = _answers(asked)
        flink.kill_worker()  # the job sees that with the next report
        forge(server, collection(folder))
        again = send(server, TOPIC, collection(folder), RATE, SECONDS)
        reports = sum(sent.counts.values()) + sum(again.counts.values()) + FORGED
        started.wait(lambda: sum(started.latest().values()) == reports)
        _wait(lambda: asked.states()["UldpSentinelAlarm"] == "firing", "the alert of forged reports")
        return Scraped(sent.received, healthy, _answers(asked))


def forge(server: str, spec: Path) -> None:
    """Send reports in clear of now, as if nobody's coin had ever come up with noise."""
    reports_of, rng = Collection.from_json(spec), np.random.default_rng(2)
    now = time.time_ns() // 1_000_000
    honest = reports_of.perturb(["flu"] * 8 * FORGED, rng, np.full(8 * FORGED, now))
    _, which, numbers = np.unique(honest.payloads, axis=0, return_inverse=True, return_counts=True)
    alike = honest[np.flatnonzero(which.ravel() == np.argmax(numbers))[:FORGED]]
    producer = cached.client().KafkaProducer(bootstrap_servers=server)
    producer.send(TOPIC, wire.encode_batch(alike), partition=0, timestamp_ms=now)
    producer.flush()
    producer.close()


def _answers(asked: Prometheus) -> Answers:
    return Answers({panel.title: asked.ask(panel.query) for panel in PANELS if panel.query}, asked.states())


def _wait(done: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            raise RuntimeError(f"Prometheus must show {what}, got nothing in {PATIENCE:g} s")
        time.sleep(1)


def faults(scraped: Scraped) -> list[str]:
    """A sentence for each answer that is not what was done."""
    healthy, troubled = scraped.healthy, scraped.troubled
    empty = {title for title in healthy.panels if not (healthy.panels[title] or troubled.panels[title])}
    wrong = [f"{title!r} must have an answer, got none" for title in sorted(empty - NOTHING_TO_SHOW)]
    expected = {"Reports received in 10 minutes": scraped.received, "Received and in no other bin": 0, "Restarts": 0}
    got = {title: healthy.sum_of(title) for title in expected} | {"after": troubled.sum_of("Restarts")}
    wrong += [
        f"{title!r} must be {value}, got {got[title]}" for title, value in expected.items() if got[title] != value
    ]
    wrong += [f"'Restarts' must be 1 after one, got {got['after']}"] * (got["after"] != 1)
    for answers, alarms in ((healthy, ""), (troubled, "UldpSentinelAlarm")):
        fired = sorted(name for name, state in answers.alerts.items() if state not in ("inactive", "pending"))
        wrong += [f"alerts must be {alarms.split()}, got {fired}"] * (fired != alarms.split())
    return wrong


def table(scraped: Scraped) -> str:
    """Panels and alerts, with what was answered before and after the trouble."""
    healthy, troubled = scraped.healthy, scraped.troubled
    lines = [f"{'panel':<48}{'series: values':<40}after trouble"]
    for title, series in healthy.panels.items():
        lines.append(f"{title:<48}{_words(series):<40}{_words(troubled.panels[title])}")
    lines += ["", f"{'alert':<48}{'state':<40}after trouble"]
    lines += [f"{name:<48}{state:<40}{troubled.alerts[name]}" for name, state in healthy.alerts.items()]
    return "\n".join(lines)


def _words(series: Iterable[Series]) -> str:
    values = [f"{each.value:,.4g}" if each.value < 1000 else f"{each.value:,.0f}" for each in series]
    return f"{len(values)}: {', '.join(values)}" if values else "none"


if __name__ == "__main__":
    sys.exit(main())
