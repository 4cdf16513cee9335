"""Faults of run records, stored counts and pages, and of the client in JavaScript."""

from __future__ import annotations

from tests.campaigns.planted.plant import Plant

PAGES = (
    Plant(
        "a run record that is written in place",
        "uldp_transforms/jobs/records/run_records.py",
        "        with stores.created(path) if in_a_store else whole_file(path) as file:\n",
        "        with stores.created(path) as file:\n",
        "a kill leaves half a record, and the directory is refused",
        ("tests/jobs/commands/test_check.py::test_a_record_that_cannot_be_replaced_keeps_what_it_said",),
    ),
    Plant(
        "a page that ignores changed files",
        "uldp_transforms/jobs/report/reading.py",
        "return tuple(map(stores.stamp_of, paths)), records, state",
        "return tuple(paths), records, state",
        "a file that is written again under its name is not shown",
        ("tests/jobs/report/test_report_follow.py::test_every_change_of_a_file_of_rows_is_seen",),
    ),
    Plant(
        "a page that ignores totals",
        "uldp_transforms/jobs/report/reading.py",
        " + files_of(self.path, TOTALS)\n",
        "\n",
        "new totals are not shown until another row comes",
        ("tests/jobs/report/test_report_follow.py::test_every_change_of_a_file_of_rows_is_seen",),
    ),
)
