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
        "_two_sided(scipy.stats.binom, counts.num_reports[:-1], left, 1 / np.arange(num_cohorts, 1, -1))",
        "_two_sided(scipy.stats.binom, counts.num_reports[:-1], counts.total, 1 / num_cohorts)",
        "sizes of cohorts are multinomial together: their p-values are independent only one given the others",
        ("tests/ldp/test_sentinels.py::test_cohorts_follow_their_joint_law",),
    ),
    Plant(
        "cells with replacement",
        "uldp_transforms/ldp/sentinels.py",
        "_two_sided(scipy.stats.hypergeom, count, n, total, size)",
        "_two_sided(scipy.stats.binom, count, size, total / n)",
        "given how often a symbol was counted in all, its count in a cohort is hypergeometric, not binomial",
        ("tests/ldp/test_sentinels.py::test_cohorts_draw_their_symbols_without_replacement",),
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
        "itertools.chain(log.read(), [end])",
        "itertools.chain(log.read(), [])",
        "after a restart copies of the newest reports count again",
        ("tests/beam/state/test_deduplicate.py::test_a_worker_that_holds_nothing_counts_the_same",),
    ),
    Plant(
        "a manifest that is only in memory",
        "uldp_transforms/jobs/gateway/spool_file.py",
        "        file.write(manifest_text([listed]))\n        sync_file(file)\n",
        "        file.write(manifest_text([listed]))\n",
        "a loss of power leaves an empty manifest, and nobody reads the file",
        ("tests/files/test_power_loss.py",),
    ),
    Plant(
        "rows that are only in memory",
        "uldp_transforms/files/whole_file.py",
        "                sync_file(file)\n",
        "                pass\n",
        "a loss of power leaves empty files with the names of complete ones",
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
    Plant(
        "changes that are judged after two windows",
        "uldp_transforms/ldp/smoothing/evidence.py",
        "LEAST_HISTORY = 8",
        "LEAST_HISTORY = 2",
        "two windows say nothing about what is normal: nearly every value would seem to have moved",
        ("tests/ldp/smoothing/test_alarm.py::test_a_jump_after_seven_windows_is_not_judged_and_one_after_eight_is",),
    ),
    Plant(
        "a rate of one value for all",
        "uldp_transforms/ldp/smoothing/evidence.py",
        "np.minimum.reduce(tails, axis=1, initial=1) * size / sudden",
        "np.minimum.reduce(tails, axis=1, initial=1) / sudden",
        "the p-value of the least likely of many values would be that of a single one",
        ("tests/ldp/smoothing/test_alarm.py::test_a_rate_is_that_of_the_rule_that_would_just_alarm",),
    ),
    Plant(
        "intervals of changes of one value for all",
        "uldp_transforms/rows/smoothed_rows.py",
        "/ 2 / len(windows.values) / change.looks",
        "/ 2 / change.looks",
        "the intervals are said to hold for all values at once",
        ("tests/beam/windows/test_smooth_estimates.py::test_intervals_of_changes_hold_for_all_values_at_once",),
    ),
    Plant(
        "the common part counted twice",
        "uldp_transforms/rows/window_history.py",
        "known = self.variances - np.maximum(self.common, 0)",
        "known = self.variances",
        "noise that all windows share is no noise of each window",
        ("tests/beam/windows/test_smooth_estimates.py::test_what_windows_have_in_common_is_no_noise_of_each",),
    ),
    Plant(
        "branches without the common part",
        "uldp_transforms/ldp/smoothing/breaks.py",
        "variances = (1 - weight) ** 2 * spread + weight * law.noise + values.series.common",
        "variances = (1 - weight) ** 2 * spread + weight * law.noise",
        "intervals around a break would lack the noise that all windows share",
        ("tests/ldp/smoothing/test_smoothed_shares.py::test_branches_are_courses_with_one_more_change",),
    ),
    Plant(
        "an alarm without its past",
        "uldp_transforms/rows/smoothed_rows.py",
        "alarms = judge(series, alarm_every, windows.alarm)",
        "alarms = judge(series, alarm_every)",
        "a stream that keeps few windows would judge by these alone, or never",
        (
            "tests/beam/windows/test_smooth_estimates.py::test_a_stream_that_keeps_four_windows_is_alarmed_as_one_that_keeps_all",
        ),
    ),
    Plant(
        "intervals as if nothing were selected",
        "uldp_transforms/ldp/discovery/discover.py",
        "1 - FALSE_DISCOVERIES * np.minimum(np.arange(1, len(values) + 1) / numbers[order], 1)",
        "1 - FALSE_DISCOVERIES * np.ones(len(values))",
        "the largest of many noisy values is in its usual interval far less often than 95 %",
        ("tests/ldp/discovery/test_discovery.py::test_intervals_have_levels_that_are_adjusted_for_the_selection",),
    ),
    Plant(
        "discovered intervals of the normal law",
        "uldp_transforms/ldp/discovery/discover.py",
        "    return np.asarray(np.maximum(normal / np.maximum(-special.ndtri(probabilities), 1e-3), 1))\n",
        "    return np.ones(len(raw))\n",
        "collisions with frequent texts have a heavier tail",
        ("tests/ldp/discovery/test_discovery.py::test_an_interval_is_as_much_longer_as_the_tail_is_heavier",),
    ),
    Plant(
        "all values left out at once",
        "uldp_transforms/ldp/discovery/discover.py",
        "rate = next(rates, FALSE_DISCOVERIES)",
        "rate = FALSE_DISCOVERIES",
        "values that fit noise hide true ones until they are left out",
        ("tests/ldp/discovery/test_discovery.py::test_values_are_left_out_the_clearest_first",),
    ),
    Plant(
        "tests of values without the frequent prefixes",
        "uldp_transforms/ldp/discovery/search.py",
        "            prefixes |= {prefix: None for prefix in peeled if prefix[-1] != END}\n",
        "",
        "a frequent prefix that is no value of its own is noise of all others",
        ("tests/ldp/discovery/test_discovery.py::test_a_value_is_tested_with_the_frequent_prefixes_subtracted",),
    ),
    Plant(
        "messages without memory",
        "uldp_transforms/ldp/solvers/message_passing.py",
        "memory = (rho * belief.fitted * state.error**2 * state.weights)[:, np.newaxis] * state.residuals",
        "memory = 0 * state.residuals",
        "believed values explain a part of themselves away",
        (
            "tests/ldp/solvers/test_message_passing.py::test_heavy_values_that_fill_a_quarter_of_the_equations_are_unbiased",
        ),
    ),
    Plant(
        "variances without the common part",
        "uldp_transforms/ldp/solvers/message_passing.py",
        " + everywhere + state.common * _lengths(buckets, state.weights**2, kept)",
        " + everywhere",
        "noise that does not decrease with reports would be missing from standard errors",
        ("tests/ldp/solvers/test_message_passing.py::test_variances_are_those_of_dense_algebra",),
    ),
    Plant(
        "the sum without the common part",
        "uldp_transforms/ldp/solvers/message_passing.py",
        "    of_sum += state.common * (weights**2 @ (heaps**2).sum(axis=1))\n",
        "",
        "the standard error of the rest would be too small",
        ("tests/ldp/solvers/test_message_passing.py::test_variances_are_those_of_dense_algebra",),
    ),
    Plant(
        "counted values without a bound",
        "uldp_transforms/ldp/estimators/empirical_bayes.py",
        "mass / np.count_nonzero(certain), sums_up)",
        "1.0, sums_up)",
        "values of which only holders are counted could be held by more people than reported them",
        ("tests/ldp/estimators/test_empirical_bayes.py::test_all_values_together_are_not_held_by_more_than_everybody",),
    ),
    Plant(
        "noisy values without a bound",
        "uldp_transforms/ldp/estimators/empirical_bayes.py",
        "most / np.count_nonzero(~certain), sums_up)",
        "1.0, sums_up)",
        "many values within the noise would sum to more than everybody",
        ("tests/ldp/estimators/test_empirical_bayes.py::test_all_values_together_are_not_held_by_more_than_everybody",),
    ),
    Plant(
        "a list that is bounded by everybody",
        "uldp_transforms/ldp/estimators/empirical_bayes.py",
        "        most = min(most, listed + _REACH * linear.rest_standard_error)\n",
        "        pass\n",
        "listed values would be held by people who hold unlisted ones",
        (
            "tests/ldp/estimators/test_empirical_bayes.py::test_listed_values_of_an_open_list_are_not_held_by_those_who_hold_others",
        ),
    ),
    Plant(
        "a value in clear in the storage",
        "uldp_transforms/ldp/client/client.py",
        "answers[window] = _columns(self._draw(value, self._rounded(event_time), dimensions))",
        "answers[window] = _columns(self._draw(value, self._rounded(event_time), dimensions))\n"
        "                answers[window][3] = value.encode().ljust(16).hex()",
        "whoever takes the device, or receives the report, reads the value",
        ("tests/ldp/client/test_client.py::test_what_is_stored_of_two_values_differs_in_the_payloads_alone",),
    ),
    Plant(
        "a producer that is kept after a fault",
        "uldp_transforms/jobs/kafka/producer.py",
        "            _producers.pop(settings, None)\n",
        "            pass\n",
        "a connection that no longer works is used until the process ends",
        ("tests/jobs/kafka/test_kafka_topics.py::test_a_producer_is_not_kept_after_a_fault",),
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
    Plant(
        "versions that are weighted for a uniform population",
        "uldp_transforms/ldp/versions/version_weights.py",
        "precisions: np.ndarray = 1 / ((1 - caution) * even + caution * worst)",
        "precisions: np.ndarray = 1 / (even + 0 * caution * worst)",
        "the better version alone can be far more precise than the pooled estimate",
        ("tests/ldp/versions/test_pooled_estimate.py",),
    ),
    Plant(
        "hash noise that averages out over versions",
        "uldp_transforms/ldp/versions/pooled_estimate.py",
        "return whole, whole - _mean(weights**2, of_versions)",
        "return _mean(weights**2, of_versions), 0.0",
        "intervals of versions with the same hash functions are too short",
        ("tests/ldp/versions/test_pooled_estimate.py",),
    ),
    Plant(
        "a question in the fingerprint",
        "uldp_transforms/ldp/collection.py",
        '        content.pop("question", None)\n',
        "",
        "reports of a collection that runs are refused as soon as it names a question",
        ("tests/ldp/versions/test_pooled_estimate.py",),
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
