"""Faults of the transforms, their state and accounts, and of windows."""

from __future__ import annotations

from tests.campaigns.planted.plant import Plant

PIPELINE = (
    Plant(
        "messages are skipped",
        "uldp_transforms/beam/transforms/decode_reports.py",
        "        decoded = self._decoder.decode(messages, arrival_times)\n",
        "        try:\n"
        "            decoded = self._decoder.decode(messages, arrival_times)\n"
        "        except Exception:\n"
        "            return []\n",
        "a decoder that fails loses reports which no ledger knows",
        ("tests/beam/accounts/test_transit.py::test_an_error_of_the_library_fails_the_job",),
    ),
    Plant(
        "files are skipped",
        "uldp_transforms/beam/transforms/read_report_files.py",
        "            with _open(metadata) as file:\n",
        '            with __import__("contextlib").suppress(Exception), _open(metadata) as file:\n',
        "a file that cannot be opened is lost, and the job succeeds",
        ("tests/beam/accounts/test_transit.py::test_an_error_of_the_library_fails_the_job",),
    ),
    Plant(
        "estimates are skipped",
        "uldp_transforms/beam/transforms/estimate_distribution.py",
        "        row = estimate_window(\n"
        "            collection,\n"
        "            counts,\n"
        "            place,\n"
        "            self._estimator,\n"
        "            self._candidates,\n"
        "            withheld,\n"
        "            show=self._show,\n"
        "            anytime_scale=self._anytime_scale,\n"
        "            limits=self._limits,\n"
        "            quantiles=self._quantiles,\n"
        "            entries=self._entries,\n"
        "            liars=self._liars,\n"
        "            borrowed=borrowed,\n"
        "            solved=solved,\n"
        "        )\n",
        "        try:\n"
        "            row = estimate_window(\n"
        "                collection,\n"
        "                counts,\n"
        "                place,\n"
        "                self._estimator,\n"
        "                self._candidates,\n"
        "                withheld,\n"
        "                show=self._show,\n"
        "                anytime_scale=self._anytime_scale,\n"
        "                limits=self._limits,\n"
        "                quantiles=self._quantiles,\n"
        "                entries=self._entries,\n"
        "                liars=self._liars,\n"
        "            )\n"
        "        except Exception:\n"
        "            return\n",
        "a window that cannot be estimated has no row, and nobody is told",
        ("tests/beam/accounts/test_transit.py::test_an_error_of_the_library_fails_the_job",),
    ),
    Plant(
        "a millisecond too long",
        "uldp_transforms/windows.py",
        "arrival_times - self.periods.end_of(event_times) - self.allowed_lateness + 1",
        "arrival_times - self.periods.end_of(event_times) - self.allowed_lateness",
        "a report that the runner may already drop is let through the gate, so that it is lost without a trace",
        (
            "tests/beam/windows/test_windows.py",
            "tests/messages/test_decoding.py::test_the_gate_is_exact_to_the_millisecond",
        ),
    ),
    Plant(
        "a version for ever",
        "uldp_transforms/beam/transforms/deduplicate.py",
        "version, end = new_version(), end",
        "version, end = version or new_version(), end",
        "a worker that tries a bundle again takes its reports for copies: what it holds is ahead of the state",
        ("tests/beam/state/test_deduplicate.py::test_a_bundle_that_is_tried_again_counts_once",),
    ),
    Plant(
        "the end of the log is not read",
        "uldp_transforms/beam/transforms/deduplicate.py",
        "itertools.chain(log.read(), [end])",
        "itertools.chain(log.read(), [])",
        "after a restart copies of the newest reports count again",
        ("tests/beam/state/test_deduplicate.py::test_a_worker_that_holds_nothing_counts_the_same",),
    ),
    Plant(
        "earlier counts of a version that come later",
        "uldp_transforms/beam/transforms/pool_versions.py",
        "if name in self.versions and self.versions[name][0] > index:",
        "if False:",
        "a pooled row loses late reports",
        ("tests/beam/windows/test_pool_versions.py::test_what_a_stream_holds_survives_its_encoding",),
    ),
    Plant(
        "questions without late rows",
        "uldp_transforms/beam/transforms/pool_versions.py",
        "        if held.on_time or pane[0]:\n",
        "        if pane[0]:\n",
        "late reports of a version never reach the row of its question",
        ("tests/beam/windows/test_pool_versions.py::test_a_stream_pools_the_latest_counts_of_each_version",),
    ),
)
