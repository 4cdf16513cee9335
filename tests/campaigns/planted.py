"""Faults that were once made, or might be, and that the tests of the default suite must find each time.

``tests.campaigns.mutants`` plants them before the ones it draws; ``tests/project/test_planted.py`` proves that each is
still to be had: its old text stands in its file exactly once.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Plant:
    """A text of a file that is replaced, why that is a fault, and the tests that must see it: files, or some of one."""

    name: str
    path: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...]

    def apply(self, source: str) -> str:
        """The file with the fault.

        Raises:
            ValueError: if the old text is not in it exactly once.
        """
        if source.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.path} must have the old text once, got {source.count(self.old)}")
        return source.replace(self.old, self.new)


PLANTED = (
    Plant(
        "messages are skipped",
        "uldp_transforms/beam/transforms/decode_reports.py",
        "        decoded = self._decoder.decode(messages, arrival_times)\n",
        "        try:\n"
        "            decoded = self._decoder.decode(messages, arrival_times)\n"
        "        except Exception:\n"
        "            return []\n",
        "a decoder that fails loses reports which no ledger knows",
        ("tests/beam/accounts/test_transit.py",),
    ),
    Plant(
        "files are skipped",
        "uldp_transforms/beam/transforms/read_report_files.py",
        "            with _open(metadata) as file:\n",
        '            with __import__("contextlib").suppress(Exception), _open(metadata) as file:\n',
        "a file that cannot be opened is lost, and the job succeeds",
        ("tests/beam/accounts/test_transit.py",),
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
        "            )\n"
        "        except Exception:\n"
        "            return\n",
        "a window that cannot be estimated has no row, and nobody is told",
        ("tests/beam/accounts/test_transit.py",),
    ),
    Plant(
        "files of rows are written over",
        "uldp_transforms/jobs/sinks/row_files.py",
        'self._identity.update(f"{window} {pane.index} {to_json(row)}\\n".encode())',
        'self._identity.update(f"{window} {pane.index}\\n".encode())',
        "two bundles of one window get one name, and the later one replaces the earlier",
        ("tests/beam/rows/test_row_file_names.py",),
    ),
    Plant(
        "cohorts by themselves",
        "uldp_transforms/ldp/sentinels.py",
        "_two_sided(stats.binom, counts.num_reports[:-1], left, 1 / np.arange(num_cohorts, 1, -1))",
        "_two_sided(stats.binom, counts.num_reports[:-1], counts.total, 1 / num_cohorts)",
        "sizes of cohorts are multinomial together: their p-values are independent only one given the others",
        ("tests/ldp/test_sentinels.py::test_cohorts_follow_their_joint_law",),
    ),
    Plant(
        "cells with replacement",
        "uldp_transforms/ldp/sentinels.py",
        "_two_sided(stats.hypergeom, count, n, total, size)",
        "_two_sided(stats.binom, count, size, total / n)",
        "given how often a symbol was counted in all, its count in a cohort is hypergeometric, not binomial",
        ("tests/ldp/test_sentinels.py::test_cohorts_draw_their_symbols_without_replacement",),
    ),
    Plant(
        "a millisecond too long",
        "uldp_transforms/windows.py",
        "arrival_times - ends - self.allowed_lateness + 1",
        "arrival_times - ends - self.allowed_lateness",
        "a report that the runner may already drop is let through the gate, so that it is lost without a trace",
        ("tests/beam/windows/test_windows.py", "tests/messages/test_decoding.py"),
    ),
    Plant(
        "a sum in place",
        "uldp_transforms/ldp/counts/cohort_counts.py",
        "self.cells + other.cells",
        "np.add(self.cells, other.cells, out=self.cells)",
        "a bundle that is tried again is added twice, because its accumulator was changed",
        ("tests/ldp/counts/test_counts.py", "tests/beam/state/test_combine.py"),
    ),
    Plant(
        "bytes the other way round",
        "uldp_transforms/messages/wire.py",
        'cohorts.astype("<u2")',
        'cohorts.astype(">u2")',
        "cohorts of packed reports are little-endian on the wire",
        ("tests/messages/test_wire.py",),
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
        "[*log.read(), end]",
        "[*log.read()]",
        "after a restart copies of the newest reports count again",
        ("tests/beam/state/test_deduplicate.py::test_a_worker_that_holds_nothing_counts_the_same",),
    ),
    Plant(
        "a manifest that is only in memory",
        "uldp_transforms/jobs/gateway/spool_file.py",
        "        file.write(manifest_text([listed]))\n        file.flush()\n",
        "        file.write(manifest_text([listed]))\n",
        "a loss of power leaves an empty manifest, and nobody reads the file",
        ("tests/files/test_power_loss.py",),
    ),
    Plant(
        "a report that leaves before its budget is on disk",
        "uldp_transforms/ldp/client/client_storage.py",
        "            file.flush()\n            os.fsync(file.fileno())\n",
        "            file.flush()\n",
        "after a loss of power the client spends the same budget again",
        ("tests/files/test_power_loss.py",),
    ),
    Plant(
        "only the first message of a pack",
        "uldp_transforms/jobs/gateway/packer.py",
        "            for message in messages:\n",
        "            for message in messages[:1]:\n",
        "reports without ids that arrive beside others are acknowledged and lost",
        ("tests/jobs/gateway/test_gateway_parts.py::test_reports_without_ids_are_delivered_beside_those_with_ids",),
    ),
    Plant(
        "a shuffle that everybody knows",
        "uldp_transforms/jobs/gateway/packer.py",
        "        rng = np.random.default_rng()\n",
        "        rng = np.random.default_rng(0)\n",
        "the order of arrival can be restored",
        ("tests/jobs/gateway/test_gateway_parts.py::test_no_two_packs_have_the_same_order",),
    ),
    Plant(
        "a run record that is written in place",
        "uldp_transforms/jobs/records/run_records.py",
        "        with stores.created(path) if in_a_store else whole_file(path) as file:\n",
        "        with stores.created(path) as file:\n",
        "a kill leaves half a record, and the directory is refused",
        ("tests/jobs/commands/test_check.py::test_a_record_that_cannot_be_replaced_keeps_what_it_said",),
    ),
)
