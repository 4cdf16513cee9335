"""Collects the facts of a page from the rows of a directory."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from uldp_transforms.jobs.check import state_of
from uldp_transforms.jobs.records.collection_facts import facts_of, sensitive_values
from uldp_transforms.jobs.records.ledger_sums import add_up, sums_of, unread_in_words
from uldp_transforms.jobs.records.row_directory import RowDirectory
from uldp_transforms.jobs.records.row_reading import Row
from uldp_transforms.jobs.records.run_records import RunRecord, collections_of, of_jobs
from uldp_transforms.jobs.records.whole_period import group_totals_of, totals_of
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets.noun import ANSWER, Noun
from uldp_transforms.ldp.versions import VersionedQuestion
from uldp_transforms.rows.figures.figure import Figure, share_of, shares_in_blocks, trend_of, unlisted_share
from uldp_transforms.rows.figures.window_names import WindowNames, clock
from uldp_transforms.rows.row_types import CHANGE, REPEATS
from uldp_transforms_report.compared.compared_rows import comparisons_of
from uldp_transforms_report.differences import PanelRows
from uldp_transforms_report.facts import (
    Account,
    Alarm,
    CollectionPart,
    Cost,
    Coverage,
    Found,
    Latest,
    Limits,
    Report,
    WindowLine,
)
from uldp_transforms_report.groups.group_facts import Entries, GroupPart, GroupsAsked, groups_of
from uldp_transforms_report.levels import Levels
from uldp_transforms_report.numbers.number_facts import NumberPart, figure_panel, numbers_of, sums_part
from uldp_transforms_report.question_facts import (
    costs_of,
    facts_of_question,
    liars_in_words,
    questions_in,
    reports_in_words,
    shares_of_liars,
)
from uldp_transforms_report.texts_for_readers import noun_for_readers
from uldp_transforms_report.trends.alarm_account import Watched
from uldp_transforms_report.trends.group_trends import group_trends_of
from uldp_transforms_report.trends.shares_over_windows import SharesOverWindows
from uldp_transforms_report.truth_file import Truth

TITLE = "Estimates from private reports"
_RUNS = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Asked:
    """Selection of what the page shows.

    Attributes:
        directory: directory of the rows.
        title: title of the page.
        note: a sentence under the title; may be empty.
        limits: limits of the page's content.
        values: values that get a chart first.
        truth: true values, if known.
        collections: collections that the directory's runs do not name.
    """

    directory: str
    title: str
    note: str = ""
    limits: Limits = dataclasses.field(default_factory=Limits)
    values: tuple[str, ...] = ()
    truth: Truth | None = None
    collections: tuple[Collection, ...] = ()


def gather(asked: Asked) -> Report:
    """Gather the content of a directory's page.

    Raises:
        SpecError: if files have other content than their names indicate.
        OSError: if files cannot be read.
    """
    with of_jobs(asked.directory):
        return _gathered(asked, RowDirectory(asked.directory))


def _gathered(asked: Asked, directory: RowDirectory) -> Report:
    records = directory.records()
    windows, health, groups = directory.windows(), directory.health(), directory.groups()
    found = directory.discovered(windows)
    specification = dict(records[-1].specification) if records else {}
    known = collections_of(records, asked.collections)
    totals, group_totals = totals_of(asked.directory, records, known), group_totals_of(asked.directory)
    parts = []
    questions = questions_in(known.values())
    for fingerprint, rows in itertools.groupby(windows, key=lambda row: row["fingerprint"]):
        of_part = _Part(asked, directory, specification, known.get(fingerprint), questions.get(fingerprint), list(rows))
        parts.append(
            of_part.gather(
                [row for row in health if row["fingerprint"] == fingerprint],
                [row for row in found if row["fingerprint"] == fingerprint],
                [row for row in groups if row["fingerprint"] == fingerprint],
                totals.get(fingerprint),
                group_totals.get(fingerprint, []),
            )
        )
    accounts, balanced, unread = _accounts(directory, records, known.values())
    return Report(
        title=asked.title,
        note=asked.note,
        directory=asked.directory,
        zone=str(clock(specification.get("timezone"))),
        runs=[_run(record, asked.directory, record is records[-1]) for record in records[-_RUNS:]],
        runs_left_out=max(0, len(records) - _RUNS),
        accounts=accounts,
        balanced=balanced,
        unread=unread,
        parts=parts,
        has_truth=asked.truth is not None,
        compared=comparisons_of(asked.directory, asked.limits.rows, clock(specification.get("timezone"))),
    )


def _run(record: RunRecord, directory: str, is_latest: bool) -> tuple[str, str, str, str, str]:
    state = state_of(record, directory) if is_latest else record.end or "no end"
    return record.run, record.started, record.ended or "", state, record.sentence or ""


def _accounts(
    directory: RowDirectory, records: Sequence[RunRecord], known: Iterable[Collection]
) -> tuple[list[Account], bool | None, list[str]]:
    """Sums of reports of the latest run, or of all runs if the source resumes where the last one stopped, as ``uldp
    check``; whether they balance; and what could not be read, in words."""
    latest = records[-1:]
    seen = [record for record in records if record in latest or (latest[0].resumes and record.resumes)]
    rows = directory.ledger(record.run for record in seen)
    nouns = {one.id: noun_for_readers(one.noun) for one in sorted(known, key=lambda one: one.version)}
    accounts = []
    for name in sorted({row["collection_id"] or "" for row in rows}):
        sums = sums_of([row for row in rows if (row["collection_id"] or "") == name])
        numbers = {of: sums[of] for of in ("received", "accepted", "duplicates", "rejected")}
        if name or sums["received"]:  # other rows have no collection because their files could not be read
            accounts.append(Account(name=name or "named no known collection", noun=nouns.get(name, ANSWER), **numbers))
    all_sums = add_up(sums_of([row for row in rows if row["run"] == record.run]) for record in seen)
    return accounts, bool(all_sums["balanced"]) if rows else None, unread_in_words(all_sums)


class _Part:
    """One collection, or a question with its versions: its windows, and the data from their entries."""

    def __init__(
        self,
        asked: Asked,
        directory: RowDirectory,
        specification: Mapping[str, Any],
        collection: Collection | None,
        question: VersionedQuestion | None,
        rows: Sequence[Row],
    ):
        self._asked, self._directory = asked, directory
        self._specification, self._collection = dict(specification), collection
        self._question = question
        self._sensitive = sensitive_values(collection)
        bounds = ((row["window_start"], row["window_end"]) for row in rows)
        self._names = WindowNames.among(itertools.chain(*bounds), clock(specification.get("timezone")))
        self._all = rows
        self._rows = rows[-asked.limits.windows :]

    def gather(
        self,
        health: Sequence[Row],
        found: Sequence[Row],
        groups: Sequence[Row],
        total: Row | None,
        group_totals: Sequence[Row],
    ) -> CollectionPart:
        """The facts of the collection from its rows; ``total`` and ``group_totals`` are of the whole period."""
        limits, first = self._asked.limits, self._all[0]
        latest, charted = self._latest()
        values = [entry.name for entry in charted]
        listed = [entry.name for entry in latest.entries] if latest else []
        panel = PanelRows(len(self._rows), listed)
        table, coverage, unlisted = self._through(values, panel)
        windows = [self._line(row, unlisted.get(at)) for at, row in enumerate(self._rows)]
        names, starts = [line.name for line in windows], [line.start for line in windows]
        alarms = [self._alarm(row, entry) for row in health for entry in row["findings"] if entry["fired"]]
        health = [row for row in health if not row.get("group")]
        moved = _moved(health, starts, values)
        shown = self._found(found)
        whole = None if total is None or not total["estimates"] else self._shares(total, total["estimates"])[0]
        return CollectionPart(
            id=first["collection_id"],
            version=first["collection_version"],
            fingerprint=first["fingerprint"],
            pooled=bool(first.get("pooled")),
            noun=self._noun,
            **self._figures([] if total is None else [total]),
            groups=self._groups_of_windows(groups, latest) + self._groups_of_whole_period(group_totals, whole),
            group_trends=group_trends_of(values, self._unit, starts, groups, self._directory.entries),
            asked=[*self._facts(), ("Reports", reports_in_words(self._all)), *liars_in_words(self._rows, total)],
            costs=self._costs(),
            statuses=sorted(Counter(row["status"] for row in self._all).items()),
            windows=windows,
            windows_left_out=len(self._all) - len(windows),
            latest=latest,
            whole=whole,
            trends=[trend_of(entry, table[:, at], moved[at]) for at, entry in enumerate(charted)],
            changed=_changed(_moved(health, starts, listed), listed, names),
            panel=None
            if shares_of_liars(self._rows)
            else figure_panel(names, self._rows, self._unit) or panel.panel(names, _num_values(latest), limits.cells),
            not_there=[value for value in self._asked.values if value not in values],
            alarms=alarms[-limits.rows :][::-1],
            alarms_left_out=max(0, len(alarms) - limits.rows),
            judged=sum(any(entry["name"] not in (CHANGE, REPEATS) for entry in row["findings"]) for row in health),
            watched=Watched.of(health, starts),
            found=shown[: limits.rows],
            found_in=self._name(max(found, key=_start)) if found else "",
            found_left_out=max(0, len(shown) - limits.rows),
            coverage=coverage,
            simulated=any(row.get("simulated") for row in self._rows),
            levels=Levels.of(self._rows),
        )

    def _figures(self, whole: Sequence[Row]) -> dict[str, NumberPart | None]:
        """The figures of numbers and the sums, of the windows and of the whole period."""
        kinds: dict[str, Callable[[Sequence[Row]], NumberPart | None]] = {
            "numbers": functools.partial(numbers_of, unit=self._unit),
            "sums": sums_part,
        }
        spans = {"": self._rows, "whole_": whole}
        return {f"{span}{name}": part_of(rows) for span, rows in spans.items() for name, part_of in kinds.items()}

    @property
    def _noun(self) -> Noun:
        """What is counted; of a question, as its latest version calls it."""
        versions = (self._collection,) if self._question is None else self._question.collections
        return ANSWER if versions[-1] is None else noun_for_readers(versions[-1].noun)

    @property
    def _unit(self) -> str:
        return "" if self._collection is None else self._collection.alphabet.unit

    def _costs(self) -> Sequence[Cost]:
        """The privacy cost of a person who reports in every window."""
        timed = [row for row in self._all if row["window_start"] is not None]
        return costs_of(self._collection, [row["window_start"] for row in timed], [row["window_end"] for row in timed])

    def _groups_of_windows(self, rows: Sequence[Row], everybody: Latest | None) -> list[GroupPart]:
        return self._groups(rows, self._directory.entries, everybody, self._name)

    def _groups_of_whole_period(self, rows: Sequence[Row], everybody: Latest | None) -> list[GroupPart]:
        """Groups have the period of all of them, also those without reports at its beginning or end."""
        span = [(row["window_start"], row["window_end"]) for row in rows if row["window_start"] is not None]
        if span and len(span) == len(rows):
            whole = {"window_start": min(start for start, _ in span), "window_end": max(end for _, end in span)}
            rows = [{**row, **whole} for row in rows]
        return self._groups(rows, _with_entries, everybody, lambda row: f"the whole period, {self._name(row)}")

    def _groups(
        self, rows: Sequence[Row], entries: Entries, everybody: Latest | None, name: Callable[[Row], str]
    ) -> list[GroupPart]:
        """The groups of the latest of these rows; of the values that the table of everybody shows."""
        listed = [entry.name for entry in everybody.entries] if everybody else []
        asked = GroupsAsked(
            values=listed,
            num_values=_num_values(everybody),
            unit=self._unit,
            most=self._asked.limits.rows,
            most_cells=self._asked.limits.cells,
            is_compared=not shares_of_liars(rows),
        )
        return groups_of(asked, rows, entries, name)

    def _facts(self) -> list[tuple[str, str]]:
        if self._question is not None:
            return facts_of_question(self._question, self._specification)
        return facts_of(self._collection, self._specification)

    def _name(self, row: Row) -> str:
        return self._names.window(row["window_start"], row["window_end"])

    def _line(self, row: Row, unlisted: float | None) -> WindowLine:
        return WindowLine(
            start=row["window_start"],
            end=row["window_end"],
            name=self._name(row),
            status=row["status"],
            num_reports=row["num_reports"],
            unexplained=unlisted_share(row, unlisted),
            is_open=row.get("pane_timing") == "EARLY",
            holds_always=row.get("interval") == "anytime",
        )

    def _latest(self) -> tuple[Latest | None, list[Figure]]:
        """The latest window with numbers, and its values that get a trend."""
        with_numbers = [row for row in self._rows if row["status"] == "ok"]
        if not with_numbers:
            return None, []
        ((row, given),) = self._directory.entries(with_numbers[-1:])
        return self._shares(row, given)

    def _shares(self, row: Row, given: Sequence[Row]) -> tuple[Latest, list[Figure]]:
        """The shares of a row, and those of its values that get a trend."""
        limits = self._asked.limits
        truth = self._truth(row, [entry["value"] for entry in given])
        order = sorted(range(len(given)), key=lambda at: -float(given[at]["frequency"]))  # the order for display_low
        first = [at for at in order if given[at]["value"] in self._asked.values]
        charted = list(dict.fromkeys([*first, *order]))[: limits.trends]
        entries, trends = (
            [self._entry(given[at], None if truth is None else truth[at]) for at in places]
            for places in (order[: limits.rows], charted)
        )
        inside = shares_in_blocks(row)
        shares = Latest(
            window=self._line(row, None),
            entries=entries,
            others=(row.get("num_values") or len(given)) - len(entries),
            other_share=sum(given[at]["frequency"] for at in order[limits.rows :]),
            levels=Levels.of([row]),
            in_blocks=[inside[given[at]["value"]] for at in order[: limits.rows]] if inside else (),
        )
        return shares, trends

    def _truth(self, row: Row, values: Sequence[str]) -> np.ndarray | None:
        """(S,) true shares; None if unknown, as of the bins of numbers, which a file of values does not name."""
        if self._asked.truth is None or (self._collection and self._collection.alphabet.bin_edges is not None):
            return None
        shares = self._asked.truth.shares(row["window_start"], row["window_end"], values)
        return None if np.isnan(shares).any() else shares

    def _entry(self, given: Row, truth: float | None) -> Figure:
        sensitive = None if self._sensitive is None else given["value"] in self._sensitive
        return share_of(given, truth=None if truth is None else float(truth), sensitive=sensitive)

    def _through(self, values: Sequence[str], panel: PanelRows) -> tuple[np.ndarray, list[Coverage], dict[int, float]]:
        """(W, S, 9) numbers of the values' trends, coverage of all entries of all windows, and unlisted shares; fills
        the panel."""
        at_window = {(row["file"], row["line"]): at for at, row in enumerate(self._rows)}
        shares = SharesOverWindows(len(self._rows), values)
        held: Counter[tuple[str, bool]] = Counter()
        unlisted: dict[int, float] = {}
        for row, given in self._directory.entries(row for row in self._rows if row["status"] == "ok"):
            window = at_window[row["file"], row["line"]]
            panel.add(window, given, row.get("confidence"))
            truth = None if self._asked.truth is None else self._truth(row, [entry["value"] for entry in given])
            shares.add(window, given, truth)
            if truth is not None:
                held += self._held(given, truth)
                if row.get("num_values") in (None, len(given)):
                    unlisted[window] = max(0.0, 1 - float(truth.sum()))
        return shares.table(), _coverage(held), unlisted

    def _held(self, given: Sequence[Row], truth: np.ndarray) -> Counter[tuple[str, bool]]:
        """Numbers of intervals that contain and that miss the truth, per kind of interval."""
        sensitive = None
        if self._sensitive is not None:
            sensitive = np.array([entry["value"] in self._sensitive for entry in given])
        found: Counter[tuple[str, bool]] = Counter()
        for what, low, high in (
            ("each window alone", "ci_low", "ci_high"),
            ("smoothed", "smoothed_low", "smoothed_high"),
        ):
            if not given or given[0].get(low) is None:
                continue
            lows, highs = (np.array([entry[name] for entry in given]) for name in (low, high))
            covered = (lows <= truth) & (truth <= highs)
            groups = {"": np.ones(len(given), dtype=bool)}
            if sensitive is not None:
                groups = {", sensitive values": sensitive, ", other values": ~sensitive}
            for group, mask in groups.items():
                hits = int(covered[mask].sum())
                found[what + group, True] += hits
                found[what + group, False] += int(mask.sum()) - hits
        return found

    def _alarm(self, row: Row, entry: Row) -> Alarm:
        return Alarm(
            window=self._name(row), group=row.get("group") or "", name=entry["name"], sentence=entry["sentence"]
        )

    def _found(self, rows: Sequence[Row]) -> list[Found]:
        """Entries of the latest window with numbers, in descending order."""
        last = max(map(_start, rows), default="")
        found = [
            (row["frequency"], Found(figure=share_of(row, single=True), q_value=row["q_value"]))
            for row in rows
            if _start(row) == last
        ]
        return [one for _, one in sorted(found, key=lambda pair: -pair[0])]


def _with_entries(rows: Iterable[Row]) -> list[tuple[Row, Sequence[Row]]]:
    """Rows that were read with their entries."""
    return [(row, row["estimates"]) for row in rows]


def _num_values(shares: Latest | None) -> int:
    """Number of values that were estimated."""
    return sum(len(of.entries) + of.others for of in [shares] if of)


def _start(row: Row) -> str:
    return row["window_start"] or ""


def _coverage(held: Mapping[tuple[str, bool], int]) -> list[Coverage]:
    names = dict.fromkeys(name for name, _ in held)
    found = [Coverage(what=name, held=held[name, True], number=held[name, True] + held[name, False]) for name in names]
    return [of for of in found if of.number]


def _moved(health: Sequence[Row], starts: Sequence[str | None], values: Iterable[str]) -> list[np.ndarray]:
    """(W,) bool for each value: whether a finding reports a change in that window."""
    sentences = {
        row["window_start"]: entry["sentence"]
        for row in health
        for entry in row["findings"]
        if entry["name"] == CHANGE and entry["fired"]
    }
    said = [(at, sentences[start]) for at, start in enumerate(starts) if start in sentences]
    moved = []
    for value in map(repr, values):
        moved.append(np.zeros(len(starts), dtype=bool))
        moved[-1][[at for at, sentence in said if value in sentence]] = True
    return moved


def _changed(moved: Sequence[np.ndarray], values: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Value -> name of the latest window in which it changed."""
    return {value: names[np.flatnonzero(of)[-1]] for value, of in zip(values, moved) if of.any()}
