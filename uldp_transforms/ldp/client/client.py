"""A client for repeated questions: one answer per window, memoized noise, and a persistent privacy budget.

A storage keeps the device's secret, the number of reports made, and the answers of the current period. Cohort, memo and
turn are derived from the secret (``keyed_words``); all other randomness is drawn anew from the operating system.
``report`` stores an answer before it returns it, so a window never gets a second answer. Whether the client answers a
window does not depend on the value: the budget counts reports, and the turn is derived from the secret.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from uldp_transforms.ldp.alphabets.dimensions import encode_groups
from uldp_transforms.ldp.checks import require_int
from uldp_transforms.ldp.client.budget import MAX_MILLISECONDS, Budget, cost_of_reports
from uldp_transforms.ldp.client.client_state import State, adopt, new_state, read_state, state_text
from uldp_transforms.ldp.client.client_storage import Storage
from uldp_transforms.ldp.client.keyed_words import COHORT, MEMO, NAME, SECRET_BYTES, TURN, KeyedSource
from uldp_transforms.ldp.client_window import DAY, HOUR, ClientWindow
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.errors import BudgetSpentError, SpecError, UldpError
from uldp_transforms.ldp.mechanisms import SetReportMechanism
from uldp_transforms.ldp.reports import ID_BYTES, ReportBatch
from uldp_transforms.ldp.sampling import SystemSource

_ROUNDING = 1e-9  # tolerance for sums that should equal the budget


class Client:
    """Answers one question about one person, at most once per window.

    Examples:
        >>> from uldp_transforms.ldp import Budget, Client
        >>> from uldp_transforms.ldp import Collection, FileStorage
        >>> collection = Collection.from_json("C.json")
        >>> budget = Budget(epsilon=1.0, lifetime=20.0)
        >>> client = Client(collection, FileStorage("state.json"), budget)
        >>> report = client.report("flu", event_time=0)
        >>> client.report("cold", event_time=1000) == report  # same window
        True
    """

    def __init__(
        self,
        collection: Collection,
        storage: Storage,
        budget: Budget,
        *,
        window_ms: int | None = None,
        report_every: int = 1,
        distinct_values: int | None = None,
        time_unit_ms: int | None = None,
        secret: bytes | None = None,
    ):
        """Read the storage, or initialize it if it is empty.

        Args:
            collection: the question.
            storage: of this device; shared by the clients of all its collections.
            budget: shared by the clients of all its collections.
            window_ms: length of the windows, in milliseconds, the first of which begins at 1970-01-01T00:00:00Z. It
                must divide the budget's period (default: the collection's ``client_window``, or a day if it has none).
                Must be None if the collection has a ``client_window``.
            report_every: w; the device answers one of every w consecutive windows, which it chooses itself. Any w
                consecutive windows then cost as much as one report.
            distinct_values: largest number of different values that a person is assumed to have (default: the number of
                symbols of the collection). The cost of memos depends on it. The client does not count the values: a
                person with more values is asked as often, and the reports may reveal more than their cost says.
            time_unit_ms: event times in reports are rounded down to a multiple of this number of milliseconds, which
                must divide the client's window (default: the start of the collection's ``client_window``; without one,
                the full hour, or the start of the window if hours do not divide it). Where a day of ``client_timezone``
                begins within a unit, times in the rest of the unit become the start of the day.
            secret: 32 secret random bytes of this device (default: drawn from the operating system).

        Raises:
            SpecError: if an argument is out of range, or does not match the storage.
            OSError: if the storage cannot be read or written.
        """
        self._window = _window_of(collection, window_ms)
        if budget.period_ms % self._window.length:
            raise SpecError(
                f"Client.window_ms must divide Budget.period_ms, {budget.period_ms}, got {self._window.length}"
            )
        self._time_unit = _time_unit_of(collection, self._window, time_unit_ms)
        require_int("Client.report_every", report_every, 1, 1 << 31)
        if secret is not None and (not isinstance(secret, bytes) or len(secret) != SECRET_BYTES):
            raise SpecError(f"Client.secret must be {SECRET_BYTES} bytes (the value is not shown)")
        if distinct_values is not None:
            require_int("Client.distinct_values", distinct_values, 1, 1 << 31)
        num_symbols = collection.mechanism.num_symbols
        self._distinct = num_symbols if distinct_values is None else min(distinct_values, num_symbols)
        self._collection, self._storage, self._budget = collection, storage, budget
        self._report_every = report_every
        self._secret = secret
        self._secret = storage.update(self._begin)
        self._cohort = self._keyed(COHORT).integer(collection.num_cohorts)
        self._turn = self._keyed(TURN, report_every).integer(report_every)

    def report(self, value: str, event_time: int, dimensions: Mapping[str, str] | None = None) -> ReportBatch | None:
        """The answer for the window of an event, as a batch of one report.

        All calls in one window return the report of the first call, even if the value has changed, so it can be sent
        again. The value is read last, and only when a new report is drawn. The first call in a new period erases the
        answers of the previous period, even if that call fails.

        Args:
            value: the person's value.
            event_time: milliseconds since 1970 UTC. The report carries it rounded down (``time_unit_ms``).
            dimensions: the person's text for each dimension of the collection, which the report carries in the clear;
                None: the collection has no dimensions.

        Returns:
            None if it is not this device's turn in this window (``report_every``).

        Raises:
            SpecError: if a report must be drawn and the value is not in the alphabet (the value is not shown), or if
            the time is in an earlier period than a previous call, whose spending is no longer stored.
            BudgetSpentError: if one more report, whatever its value, could exceed the remaining budget. The client then
            makes no report until the period ends, or never again if ``Budget.lifetime`` is spent.
            OSError: if the storage cannot be read or written.
        """
        require_int("Client.report: event_time", event_time, -MAX_MILLISECONDS, MAX_MILLISECONDS)
        columns = None if dimensions is None else {name: [text] for name, text in dimensions.items()}
        encode_groups(self._collection.dimensions, columns, 1)  # refuses what no report can carry
        answer = self._storage.update(lambda text: self._answer(text, value, event_time, columns))
        if isinstance(answer, UldpError):
            raise answer
        return answer

    def _rounded(self, event_time: int) -> int:
        """The event time that the report carries, in the same window of the client."""
        start = self._window.start_of(event_time)
        if self._time_unit is None:
            return start
        return max(start, event_time // self._time_unit * self._time_unit)

    def _name_of(self, event_time: int) -> str:
        """The window's key in the storage: its start, or a slash and its end if the window can extend into a new
        period."""
        if self._window.timezone is None:
            return str(self._window.start_of(event_time))
        return f"/{self._window.end_of(event_time)}"

    def _keyed(self, purpose: int, number: int = 0) -> KeyedSource:
        assert self._secret is not None
        return KeyedSource(self._secret, self._collection.fingerprint, purpose, number)

    # ------------------------------------------------------------------ the storage

    def _begin(self, text: str | None) -> tuple[str, bytes]:
        """The stored text and the secret in it; initializes an empty storage."""
        if text is None:
            state = new_state(self._secret or os.urandom(SECRET_BYTES), self._budget.period_ms)
        else:
            state = self._read(text)
        secret = bytes.fromhex(state["secret"])
        adopt(state, self._collection.fingerprint.hex(), lambda: self._names(secret), self._cost)
        return state_text(state), secret

    def _names(self, secret: bytes) -> Iterator[str]:
        """The names of this collection's symbols in the ledgers of version 1."""
        symbols = self._collection.mechanism.num_symbols if _has_memos(self._collection) else 1
        for symbol in range(symbols):
            yield KeyedSource(secret, self._collection.fingerprint, NAME, symbol).words(2).tobytes().hex()

    def _cost(self, num_reports: int) -> float:
        return cost_of_reports(self._collection.mechanism, num_reports, self._distinct)

    def _read(self, text: str | None) -> State:
        """The stored state; raises SpecError if it does not belong to this client."""
        state = read_state(text)
        if state["period_ms"] != self._budget.period_ms:
            raise SpecError(
                f"Budget.period_ms must be the same as when the storage was created, {state['period_ms']}, "
                f"got {self._budget.period_ms}"
            )
        if self._secret is not None and self._secret.hex() != state["secret"]:
            raise SpecError("Client.secret must be the secret in the storage, got a different one")
        return state

    def _answer(
        self, text: str | None, value: str, event_time: int, dimensions: Mapping[str, list[str]] | None
    ) -> tuple[str, ReportBatch | UldpError | None]:
        """The new state and the answer to a call: that of the window if there is one, or the error if there is none."""
        state = self._read(text)
        self._begin_period(state, event_time // self._budget.period_ms)
        without = state_text(state)
        if self._window.number_of(event_time) % self._report_every != self._turn:
            return without, None
        answers = state["answers"].setdefault(self._collection.fingerprint.hex(), {})
        window = self._name_of(event_time)
        if window not in answers:
            try:
                self._charge(state)
                answers[window] = _columns(self._draw(value, self._rounded(event_time), dimensions))
            except (BudgetSpentError, SpecError) as refusal:
                return without, refusal
        return state_text(state), self._stored(answers[window])

    def _begin_period(self, state: State, period: int) -> None:
        """Erase, in place, the spending and answers of the previous period; raises SpecError for an earlier period."""
        latest = period if state["period"] is None else state["period"]
        if period < latest:
            raise SpecError(
                "Client.report: event_time must not be in a period before that of an earlier call, got one "
                f"{latest - period} period(s) earlier"
            )
        if period > latest:
            begin = period * self._budget.period_ms
            answers = {name: _unfinished(of, begin) for name, of in state["answers"].items()}
            state |= {"spent": {}, "answers": {name: of for name, of in answers.items() if of}}
        state["period"] = period

    def _charge(self, state: State) -> None:
        """Add one report to both ledgers; raises BudgetSpentError if one of them would exceed its limit.

        The decision does not depend on the symbol or on earlier symbols.
        """
        own = self._collection.fingerprint.hex()
        limits = (("spent", "epsilon", self._budget.epsilon), ("ever", "lifetime", self._budget.lifetime))
        for ledger, field, limit in limits:
            entries = state[ledger]
            number, cost = entries.get(own, (0, 0.0))
            before = math.fsum(spent for _, spent in entries.values())
            entries[own] = [number + 1, max(cost, self._cost(number + 1))]
            after = math.fsum(spent for _, spent in entries.values())
            if limit is not None and after > limit * (1 + _ROUNDING):
                raise BudgetSpentError(
                    f"Budget.{field} must not be exceeded, got {before:.4g} of {limit:g} spent and a report that adds "
                    f"{after - before:.4g}"
                )

    def _draw(self, value: str, event_time: int, dimensions: Mapping[str, list[str]] | None) -> ReportBatch:
        """A report with fresh coins and a fresh id; with memos, a report of the memo in the device's cohort."""
        fresh = self._collection.perturb([value], None, [event_time], dimensions)
        if not _has_memos(self._collection):
            return fresh
        mechanism, cohorts = self._collection.mechanism, np.array([self._cohort], dtype=np.uint16)
        assert isinstance(mechanism, SetReportMechanism)
        symbols = self._collection.alphabet.encode([value], cohorts, self._collection.num_cohorts)
        memo = mechanism.draw_memos(symbols, self._keyed(MEMO, int(symbols[0])))
        return dataclasses.replace(
            fresh,
            cohorts=self._collection.with_groups(cohorts, self._collection.groups_of(fresh.cohorts)),
            payloads=mechanism.draw_reports(memo, SystemSource()),
        )

    def _stored(self, columns: list[Any]) -> ReportBatch:
        """The report in the storage; raises SpecError if it does not belong to this collection."""
        event_time, cohort, payload, report_id = columns
        collection, size = self._collection, self._collection.mechanism.payload_size
        payloads = np.frombuffer(bytes.fromhex(payload), dtype=np.uint8).reshape(1, -1)
        right = cohort < collection.num_strata and payloads.shape == (1, size)
        if not (right and collection.mechanism.is_valid(payloads).all()):
            raise SpecError("the client's storage: answers must be reports of the collection (the value is not shown)")
        return ReportBatch(
            fingerprint=collection.fingerprint,
            cohorts=np.array([cohort], dtype=np.uint16),
            payloads=payloads,
            event_times=np.array([event_time], dtype=np.int64),
            report_ids=np.frombuffer(bytes.fromhex(report_id), dtype=np.uint8).reshape(1, ID_BYTES),
        )


def _window_of(collection: Collection, window_ms: int | None) -> ClientWindow:
    """The windows of the clients: the collection's own, or of the given length (default: a day)."""
    if window_ms is not None:
        require_int("Client.window_ms", window_ms, 1, MAX_MILLISECONDS)
    if collection.asked is None:
        return ClientWindow(DAY if window_ms is None else window_ms)
    if window_ms is not None:
        raise SpecError(
            "Client.window_ms must be absent if the collection has client_window, which is "
            f"{collection.client_window}, got {window_ms}"
        )
    return collection.asked


def _time_unit_of(collection: Collection, window: ClientWindow, time_unit_ms: int | None) -> int | None:
    """The milliseconds to whose multiples event times are rounded down; None: to the start of the window."""
    if time_unit_ms is None:
        return HOUR if collection.asked is None and window.length % HOUR == 0 else None
    require_int("Client.time_unit_ms", time_unit_ms, 1, MAX_MILLISECONDS)
    if window.length % time_unit_ms:
        raise SpecError(f"Client.time_unit_ms must divide the client's window of {window.length}, got {time_unit_ms}")
    return time_unit_ms


def _unfinished(answers: State, begin: int) -> State:
    """The answers for windows that end after ``begin``, the start of a period: calendar days of a time zone."""
    return {name: answer for name, answer in answers.items() if name[0] == "/" and int(name[1:]) > begin}


def _has_memos(collection: Collection) -> bool:
    mechanism = collection.mechanism
    return isinstance(mechanism, SetReportMechanism) and mechanism.epsilon_inf is not None


def _columns(batch: ReportBatch) -> list[Any]:
    """A batch of one report, as a JSON list."""
    return [
        int(batch.event_times[0]),
        int(batch.cohorts[0]),
        batch.payloads.tobytes().hex(),
        batch.report_ids.tobytes().hex(),
    ]
