"""Pub/Sub on Beam's local engine for streams, so that a stream can stop and lose nothing.

By itself that engine acknowledges ten messages at a time before it works on them, and to stop is to throw away what is
in flight. Here a pull takes up to a thousand, which are acknowledged when the next pull is asked for: the engine asks
for it when nothing else is left to do, so all of them have been worked on. Told to stop, the source says that it is at
the end of time: every window fires, every row is written, and the pipeline is done by itself.

One thing in the way of that end is mended: of a window that is over before its first element of a key comes, Beam
keeps a hold of the watermark that no timer ever takes away, and the engine then takes the pipeline for stuck. And two
things about panes that the clock fires: at the end of time late reports wait for no clock, and a timer that was set for
early reports fires no late pane.

Beam's evaluator of this step is not public, nor is what drives its triggers;
``tests/jobs/streams/test_local_pubsub.py`` fails if Beam changes.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

from apache_beam import pvalue
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.runners.direct.direct_runner import _DirectReadFromPubSub
from apache_beam.runners.direct.transform_evaluator import TransformEvaluatorRegistry, _PubSubReadEvaluator
from apache_beam.runners.direct.util import TransformResult
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.trigger import AfterProcessingTime, GeneralTriggerDriver, InMemoryUnmergedState
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp
from google.api_core.exceptions import Aborted, DeadlineExceeded, ServiceUnavailable, Unknown

_LOGGER = logging.getLogger(__name__)

MOST_MESSAGES = 1_000
"""Of one pull; Pub/Sub gives no more."""

PATIENCE = 2.0
"""Seconds for which a pull waits for messages. Windows fire between pulls only."""

EXTEND_EVERY, EXTEND_BY = 4.0, 30
"""Seconds: how often, and by how much, the lease of messages that are being worked on is made longer. The shortest
lease of a subscription is 10 s."""


class Leases:
    """The messages that were pulled and are not acknowledged yet; a thread keeps others from getting them.

    Args:
        client: of Pub/Sub.
        subscription: full name.
    """

    def __init__(self, client: Any, subscription: str):
        self._client = client
        self._subscription = subscription
        self._ack_ids: list[str] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        threading.Thread(target=self._keep, name="leases", daemon=True).start()

    def take(self, ack_ids: list[str]) -> None:
        """Hold these too."""
        with self._lock:
            self._ack_ids += ack_ids

    def acknowledge(self) -> None:
        """They have been worked on: they never come again."""
        with self._lock:
            ack_ids, self._ack_ids = self._ack_ids, []
            if ack_ids:
                try:
                    self._client.acknowledge(subscription=self._subscription, ack_ids=ack_ids)
                except BaseException:
                    self._ack_ids = ack_ids  # the engine tries this step again
                    raise

    def end(self) -> None:
        self._ended.set()

    def _keep(self) -> None:
        while not self._ended.wait(EXTEND_EVERY):
            with self._lock, contextlib.suppress(Exception):  # what is lost comes again, and is in the ledger
                if self._ack_ids:
                    self._client.modify_ack_deadline(
                        subscription=self._subscription,
                        ack_ids=self._ack_ids,
                        ack_deadline_seconds=EXTEND_BY,
                        timeout=EXTEND_EVERY,
                    )


class Reader:
    """What one pipeline reads with, from pull to pull.

    Args:
        stop: set when the stream shall end.
    """

    def __init__(self, stop: threading.Event):
        self.stop = stop
        self._leases: Leases | None = None

    def pull(self, client: Any, subscription: str) -> list[Any]:
        """Take what is there, or wait for it for a moment; an outage of the service is nothing there."""
        self._leases = self._leases or Leases(client, subscription)
        try:
            response = client.pull(subscription=subscription, max_messages=MOST_MESSAGES, timeout=PATIENCE, retry=None)
        except DeadlineExceeded:
            return []
        except (Aborted, ServiceUnavailable, Unknown) as error:
            _LOGGER.warning("Pub/Sub does not answer, and is asked again: %s", error)
            self.stop.wait(PATIENCE)
            return []
        self._leases.take([received.ack_id for received in response.received_messages])
        return [received.message for received in response.received_messages]

    def acknowledge(self) -> None:
        """All that was pulled has been worked on."""
        if self._leases:
            self._leases.acknowledge()

    def abandon(self) -> None:
        """Leave to others what is not acknowledged."""
        if self._leases:
            self._leases.end()


class _Evaluator(_PubSubReadEvaluator):
    """Beam's, with another way to pull and an end."""

    def __init__(self, reader: Reader, *args: Any):
        super().__init__(*args)  # type: ignore[no-untyped-call]  # Beam's
        self._reader = reader

    def finish_bundle(self) -> TransformResult:
        step: Any = self._applied_ptransform
        context: Any = self._evaluation_context
        # Beam forgets to take the engine's empty request from this list, which it walks through at every pull
        context._watermark_manager.get_watermarks(step).remove_pending(self._input_committed_bundle)
        if self._is_all_worked_on():
            self._reader.acknowledge()
        if self._reader.stop.is_set():
            return TransformResult(self, [], [], None, {None: MAX_TIMESTAMP})
        bundles = []
        client = self._get_subscriber_client(step)  # type: ignore[no-untyped-call]  # Beam's
        if messages := self._reader.pull(client, self._sub_name):
            bundle = context.create_bundle(next(iter(self._outputs)))
            for message in messages:
                arrival = Timestamp.from_utc_datetime(message.publish_time)
                element = PubsubMessage._from_message(message) if self.source.with_attributes else message.data
                bundle.output(GlobalWindows.windowed_value(element, timestamp=arrival))
            bundles.append(bundle)
        again = context.create_bundle(pvalue.PBegin(step.transform.pipeline))
        return TransformResult(self, bundles, [again], None, {None: Timestamp.of(time.time())})

    def _is_all_worked_on(self) -> bool:
        """Whether no step has anything left; a bundle that failed for good stays there, and the pipeline with it."""
        steps = self._evaluation_context._watermark_manager._transform_to_watermarks.values()
        return not any(bundle.has_elements() for step in steps for bundle in tuple(step._pending))


_process_elements = GeneralTriggerDriver.process_elements


def _without_late_holds(
    driver: Any, state: Any, elements: Any, output_watermark: Timestamp, input_watermark: Timestamp = MIN_TIMESTAMP
) -> Any:
    """Beam's ``process_elements``, for which a window is over when its input is, not when its output is.

    For all other windows that makes no difference: their ends are after both watermarks.
    """
    return _process_elements(driver, state, elements, max(output_watermark, input_watermark), input_watermark)  # type: ignore[no-untyped-call]  # Beam's


_get_timers = InMemoryUnmergedState.get_timers


def _without_waiting_at_the_end(
    state: Any, clear: bool = False, watermark: Timestamp = MAX_TIMESTAMP, processing_time: Any = None
) -> Any:
    """Beam's ``get_timers``, for which timers of late panes are due at the end of time: a stop waits for no clock."""
    if watermark == MAX_TIMESTAMP and processing_time is not None:
        for timers in state.timers.values():
            for name, domain, tag in timers:
                if (name, domain) == ("triggerlate", TimeDomain.REAL_TIME):
                    timers[name, domain, tag] = min(timers[name, domain, tag], Timestamp.of(processing_time))
    return _get_timers(state, clear, watermark, processing_time)  # type: ignore[no-untyped-call]  # Beam's


_should_fire = AfterProcessingTime.should_fire


def _only_what_waits(trigger: Any, time_domain: Any, timestamp: Any, window: Any, context: Any) -> bool:
    """Beam's ``should_fire``, which does not ask whose timer it is."""
    fires = _should_fire(trigger, time_domain, timestamp, window, context)  # type: ignore[no-untyped-call]  # Beam's
    return bool(fires and context.get_state(AfterProcessingTime.STATE_TAG))


MENDED: tuple[tuple[Any, str, Any], ...] = (
    (GeneralTriggerDriver, "process_elements", _without_late_holds),
    (InMemoryUnmergedState, "get_timers", _without_waiting_at_the_end),
    (AfterProcessingTime, "should_fire", _only_what_waits),
)
"""Of Beam: class, method, and what stands in its place while a stream is read."""


@contextlib.contextmanager
def reading_until(stop: threading.Event) -> Iterator[None]:
    """A block in which the local engine reads Pub/Sub like this; the pipeline must start and end in it."""
    reader = Reader(stop)
    evaluators: dict[Any, Any] = TransformEvaluatorRegistry._test_evaluators_overrides
    evaluators[_DirectReadFromPubSub] = functools.partial(_Evaluator, reader)
    found = [getattr(cls, name) for cls, name, _ in MENDED]
    for cls, name, mended in MENDED:
        setattr(cls, name, mended)
    try:
        yield
    finally:
        for (cls, name, _), method in zip(MENDED, found):
            setattr(cls, name, method)
        del evaluators[_DirectReadFromPubSub]
        reader.abandon()
