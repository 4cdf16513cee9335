"""Pub/Sub on Beam's local engine for streams, with a stop that loses no messages.

By itself that engine acknowledges ten messages at a time before it processes them, and stopping it discards messages in
flight. Here a pull takes up to a thousand messages, which are acknowledged at the next pull: the engine pulls when no
other work is left, so all of them have been processed. When it is stopped, the source moves its watermark to the end of
time: every window fires, every row is written, and the pipeline finishes by itself.

This module also corrects four faults of Beam that affect such a stop. If a window ends before the first element of a
key arrives, Beam keeps a watermark hold that no timer ever removes, and the engine then considers the pipeline stuck.
At the end of time, late reports must not wait for a processing-time timer. A timer that was set for early reports must
not fire a late pane. And timers of processing time must follow a clock that nobody sets: if the system's clock is set
back by two hours (NTP, a restored virtual machine), a timer that was set before would fire two hours later, and a stop
would wait for it. The watermark follows the system's clock, but never goes back.

Beam's evaluator of this step and the driver of its triggers are not public; ``tests/jobs/streams/test_local_pubsub.py``
fails if Beam changes them.
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
from apache_beam.runners.direct.clock import RealClock
from apache_beam.runners.direct.direct_runner import _DirectReadFromPubSub
from apache_beam.runners.direct.transform_evaluator import TransformEvaluatorRegistry, _PubSubReadEvaluator
from apache_beam.runners.direct.util import TransformResult
from apache_beam.runners.direct.watermark_manager import _TransformWatermarks
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.trigger import AfterProcessingTime, GeneralTriggerDriver, InMemoryUnmergedState
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp
from google.api_core.exceptions import Aborted, DeadlineExceeded, ServiceUnavailable, Unknown

from uldp_transforms.beam.runtime import engines
from uldp_transforms.jobs.engines.signals import Stop

_LOGGER = logging.getLogger(__name__)

MOST_MESSAGES = 1_000
"""Maximum number of messages per pull, as in Pub/Sub."""

PATIENCE = 2.0
"""Seconds for which a pull waits for messages. Windows fire only between pulls."""

EXTEND_EVERY, EXTEND_BY = 4.0, 30
"""Seconds: how often, and by how much, the lease of messages in process is extended. The shortest lease of a
subscription is 10 s."""


class Leases:
    """Pulled messages that are not acknowledged yet; a thread extends their leases.

    Args:
        client: client of Pub/Sub.
        subscription: full name of the subscription.
    """

    def __init__(self, client: Any, subscription: str):
        self._client = client
        self._subscription = subscription
        self._ack_ids: list[str] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        threading.Thread(target=self._keep, name="leases", daemon=True).start()

    def take(self, ack_ids: list[str]) -> None:
        """Add the leases of these messages."""
        with self._lock:
            self._ack_ids += ack_ids

    def acknowledge(self) -> None:
        """Acknowledge all messages, which have been processed."""
        with self._lock:
            ack_ids, self._ack_ids = self._ack_ids, []
            if ack_ids:
                try:
                    self._client.acknowledge(subscription=self._subscription, ack_ids=ack_ids)
                except BaseException:
                    self._ack_ids = ack_ids  # the engine retries this step
                    raise

    def end(self) -> None:
        self._ended.set()

    def _keep(self) -> None:
        while not self._ended.wait(EXTEND_EVERY):
            with self._lock, contextlib.suppress(Exception):  # expired messages are delivered again and counted
                if self._ack_ids:
                    self._client.modify_ack_deadline(
                        subscription=self._subscription,
                        ack_ids=self._ack_ids,
                        ack_deadline_seconds=EXTEND_BY,
                        timeout=EXTEND_EVERY,
                    )


class Reader:
    """The reader of one pipeline, with state between pulls.

    Args:
        stop: event that ends the stream.
    """

    def __init__(self, stop: Stop):
        self.stop = stop
        self._leases: Leases | None = None
        self._watermark = 0.0

    def pull(self, client: Any, subscription: str) -> list[Any]:
        """Take the available messages, or wait briefly for some; an outage of the service counts as no messages."""
        self._leases = self._leases or Leases(client, subscription)
        try:
            response = client.pull(subscription=subscription, max_messages=MOST_MESSAGES, timeout=PATIENCE, retry=None)
        except DeadlineExceeded:
            return []
        except (Aborted, ServiceUnavailable, Unknown) as error:
            _LOGGER.warning("Pub/Sub does not answer; trying again: %s", error)
            self.stop.wait(PATIENCE)
            return []
        self._leases.take([received.ack_id for received in response.received_messages])
        return [received.message for received in response.received_messages]

    def watermark(self) -> Timestamp:
        """The system's time, or an earlier one of its times if it was set back."""
        self._watermark = max(self._watermark, time.time())
        return Timestamp.of(self._watermark)

    def acknowledge(self) -> None:
        """Acknowledge everything that was pulled, which has been processed."""
        if self._leases:
            self._leases.acknowledge()

    def abandon(self) -> None:
        """Release the unacknowledged messages to other subscribers."""
        if self._leases:
            self._leases.end()


class _Evaluator(_PubSubReadEvaluator):
    """Beam's evaluator, with a different pull and an end."""

    def __init__(self, reader: Reader, *args: Any):
        super().__init__(*args)  # type: ignore[no-untyped-call]  # Beam's
        self._reader = reader

    def finish_bundle(self) -> TransformResult:
        step: Any = self._applied_ptransform
        context: Any = self._evaluation_context
        # Beam does not remove the engine's empty request from this list, which it scans at every pull
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
        return TransformResult(self, bundles, [again], None, {None: self._reader.watermark()})

    def _is_all_worked_on(self) -> bool:
        """Whether no step has work left; a bundle that failed finally remains, and keeps the pipeline from
        finishing."""
        steps = self._evaluation_context._watermark_manager._transform_to_watermarks.values()
        return not any(bundle.has_elements() for step in steps for bundle in tuple(step._pending))


_process_elements = GeneralTriggerDriver.process_elements


def _without_late_holds(
    driver: Any, state: Any, elements: Any, output_watermark: Timestamp, input_watermark: Timestamp = MIN_TIMESTAMP
) -> Any:
    """Beam's ``process_elements``, except that a window is over when the input watermark, not the output one, says so.

    For all other windows this makes no difference: their ends are after both watermarks.
    """
    return _process_elements(driver, state, elements, max(output_watermark, input_watermark), input_watermark)  # type: ignore[no-untyped-call]  # Beam's


_get_timers = InMemoryUnmergedState.get_timers


def _without_waiting_at_the_end(
    state: Any, clear: bool = False, watermark: Timestamp = MAX_TIMESTAMP, processing_time: Any = None
) -> Any:
    """Beam's ``get_timers``, except that timers of late panes are due at the end of time, so a stop need not wait."""
    if watermark == MAX_TIMESTAMP and processing_time is not None:
        for timers in state.timers.values():
            for name, domain, tag in timers:
                if (name, domain) == ("triggerlate", TimeDomain.REAL_TIME):
                    timers[name, domain, tag] = min(timers[name, domain, tag], Timestamp.of(processing_time))
    return _get_timers(state, clear, watermark, processing_time)  # type: ignore[no-untyped-call]  # Beam's


_should_fire = AfterProcessingTime.should_fire


def _only_what_waits(trigger: Any, time_domain: Any, timestamp: Any, window: Any, context: Any) -> bool:
    """Beam's ``should_fire``, but only for panes that wait: Beam does not distinguish whose timer fired."""
    fires = _should_fire(trigger, time_domain, timestamp, window, context)  # type: ignore[no-untyped-call]  # Beam's
    return bool(fires and context.get_state(AfterProcessingTime.STATE_TAG))


_process_timer = GeneralTriggerDriver.process_timer


def _late_by_the_watermark(
    driver: Any, window: Any, name: str, domain: Any, timestamp: Any, state: Any, input_watermark: Any = MIN_TIMESTAMP
) -> Any:
    """Beam's ``process_timer``, except that the watermark says whether a timer of processing time is late.

    Beam compares the time of the timer with the end of the window. If the system's clock was ahead, the window is over
    before that time, and Beam would keep its watermark hold for ever.
    """
    if domain == TimeDomain.REAL_TIME:
        timestamp = max(Timestamp.of(timestamp), input_watermark)
    return _process_timer(driver, window, name, domain, timestamp, state, input_watermark)  # type: ignore[no-untyped-call]  # Beam's


_extract_transform_timers = _TransformWatermarks.extract_transform_timers


def _of_keys_with_timers(step: Any) -> Any:
    """Beam's ``extract_transform_timers``, except that it looks only at keys that have timers.

    The engine looks for timers before each bundle, and keeps the state of every key: of a group in each of its windows.
    """
    every = step._keyed_states
    step._keyed_states = {key: state for key, state in every.items() if state.timers}
    try:
        return _extract_transform_timers(step)
    finally:
        step._keyed_states = every


_APART = time.time() - time.monotonic()


def steady_time(*_: object) -> float:
    """Seconds since 1970 by a clock that nobody sets; it shows the system's time when this module is loaded."""
    return time.monotonic() + _APART


MENDED: tuple[tuple[Any, str, Any], ...] = (
    (GeneralTriggerDriver, "process_elements", _without_late_holds),
    (GeneralTriggerDriver, "process_timer", _late_by_the_watermark),
    (InMemoryUnmergedState, "get_timers", _without_waiting_at_the_end),
    (AfterProcessingTime, "should_fire", _only_what_waits),
    (_TransformWatermarks, "extract_transform_timers", _of_keys_with_timers),
    (RealClock, "time", steady_time),
    (engines, "processing_time", steady_time),
)
"""Patches of Beam, and of what must use the same clock: place, name, and its replacement while a stream is read."""


@contextlib.contextmanager
def reading_until(stop: Stop) -> Iterator[None]:
    """A context in which the local engine reads Pub/Sub in this way; the pipeline must start and end in it."""
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
