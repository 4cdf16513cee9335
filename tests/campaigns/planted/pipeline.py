"""Faults of windows, of the transforms, their state and accounts, and of the main job with its sources and sinks."""

from __future__ import annotations

from tests.campaigns.planted.plant import Plant

PIPELINE = (
    Plant(
        "messages are skipped",
        "decoded = self._decoder.decode(messages, arrival_times)",
        "try:\n    decoded = self._decoder.decode(messages, arrival_times)\nexcept Exception:\n    return []",
        "a decoder that fails loses reports which no ledger knows",
        ("test_transit.py::test_an_error_of_the_library_fails_the_job",),
    ),
    Plant(
        "files are skipped",
        "with _open(metadata) as file:",
        'with __import__("contextlib").suppress(Exception), _open(metadata) as file:',
        "a file that cannot be opened is lost, and the job succeeds",
        ("test_transit.py::test_an_error_of_the_library_fails_the_job",),
        within="_ReadFn.process",
    ),
    Plant(
        "estimates are skipped",
        "row = estimate_window(\n"
        "    collection,\n"
        "    counts,\n"
        "    place,\n"
        "    self._estimator,\n"
        "    self._candidates,\n"
        "    withheld,\n"
        "    show=self._show,\n"
        "    anytime_scale=self._anytime_scale,\n"
        "    limits=self._limits,\n"
        "    quantiles=self._quantiles,\n"
        "    entries=self._entries,\n"
        "    liars=self._liars,\n"
        "    borrowed=borrowed,\n"
        "    solved=solved,\n"
        "    group=pairs_of(owner, collection, self._by),\n"
        ")",
        "try:\n"
        "    row = estimate_window(\n"
        "        collection,\n"
        "        counts,\n"
        "        place,\n"
        "        self._estimator,\n"
        "        self._candidates,\n"
        "        withheld,\n"
        "        show=self._show,\n"
        "        anytime_scale=self._anytime_scale,\n"
        "        limits=self._limits,\n"
        "        quantiles=self._quantiles,\n"
        "        entries=self._entries,\n"
        "        liars=self._liars,\n"
        "    )\n"
        "except Exception:\n"
        "    return",
        "a window that cannot be estimated has no row, and nobody is told",
        ("test_transit.py::test_an_error_of_the_library_fails_the_job",),
    ),
    Plant(
        "a millisecond too long",
        "arrival_times - self.periods.end_of(event_times) - self.allowed_lateness + 1",
        "arrival_times - self.periods.end_of(event_times) - self.allowed_lateness",
        "a report that the runner may already drop is let through the gate, so that it is lost without a trace",
        (
            "test_windows.py",
            "test_decoding.py::test_the_gate_is_exact_to_the_millisecond",
        ),
    ),
    Plant(
        "a version for ever",
        "version, end = new_version(), end",
        "version, end = version or new_version(), end",
        "a worker that tries a bundle again takes its reports for copies: what it holds is ahead of the state",
        ("test_deduplicate.py::test_a_bundle_that_is_tried_again_counts_once",),
    ),
    Plant(
        "the end of the log is not read",
        "itertools.chain(log.read(), [end])",
        "itertools.chain(log.read(), [])",
        "after a restart copies of the newest reports count again",
        ("test_deduplicate.py::test_a_worker_that_holds_nothing_counts_the_same",),
    ),
    Plant(
        "earlier counts of a version that come later",
        "if name in self.versions and self.versions[name][0] > index:",
        "if False:",
        "a pooled row loses late reports",
        ("test_pool_versions.py::test_what_a_stream_holds_survives_its_encoding",),
    ),
    Plant(
        "questions without late rows",
        "if held.on_time or pane[0]:",
        "if pane[0]:",
        "late reports of a version never reach the row of its question",
        ("test_pool_versions.py::test_a_stream_pools_the_latest_counts_of_each_version",),
    ),
    Plant(
        "versions that are forgotten early",
        "self._keep = as_duration(after + spec.allowed_lateness + spec.slack)",
        "self._keep = as_duration(after + spec.slack)",
        "a late pane of one version replaces the pooled row of all by a row of that version alone",
        ("test_pool_versions.py::test_versions_are_pooled_as_long_as_reports_may_be_late",),
    ),
    Plant(
        "durations in milliseconds",
        "for unit in reversed(_UNITS) if milliseconds",
        "for unit in _UNITS if milliseconds",
        "a sentence says 3600000ms where people expect 1h",
        ("test_windows.py::test_a_duration_is_named_by_the_text_that_it_is_read_from",),
    ),
    Plant(
        "windows that begin amid client windows",
        "lengths = (self.size, self.step, self.offset)\nreturn asked",
        "lengths = (self.size, self.step)\nreturn asked",
        "an offset cuts client windows apart, and both parts seem to be half empty",
        ("test_windows.py::test_windows_of_half_a_client_window_are_not_whole",),
    ),
    Plant(
        "an hour in yesterday",
        "np.maximum(moments + clocks.offsets[after], earlier) // _DAY",
        "(moments + clocks.offsets[after]) // _DAY",
        "where clocks are put back over midnight, reports of a day that has begun count for the one before",
        ("test_calendar_windows.py::test_days_whose_length_is_known",),
    ),
    Plant(
        "a skipped day that counts twice",
        "return list(dict.fromkeys(units.start(numbers).tolist()))",
        "return units.start(numbers).tolist()",
        "two windows begin at the same moment, and a report counts in it twice",
        ("test_calendar_windows.py::test_a_day_that_was_left_out_begins_no_window_of_its_own",),
    ),
    Plant(
        "periods in the order of reports",
        "return np.unique(numbers, return_inverse=True)",
        "return numbers, np.arange(len(numbers))",
        "widely spread periods have a sum for each report",
        ("test_windows.py::test_periods_are_found_in_order",),
    ),
    Plant(
        "windows for 399 years",
        "_CYCLE_DAYS = 146_097",
        "_CYCLE_DAYS = 146_096",
        "after the year 2500 days drift by one in four hundred years",
        ("test_calendar_windows.py::test_days_whose_length_is_known",),
    ),
    Plant(
        "questions in transit",
        "return not row.pooled",
        "return True",
        "a pooled row counts as a row of a collection, and the ledger never balances",
        ("test_estimate_reports.py::test_one_simulated_file_marks_all_rows_and_pooled_rows_are_in_no_ledger",),
    ),
    Plant(
        "simulated only if all files are",
        "beam.CombineGlobally(any)",
        "beam.CombineGlobally(all)",
        "one real file among simulated ones hides that numbers are invented",
        ("test_estimate_reports.py::test_one_simulated_file_marks_all_rows_and_pooled_rows_are_in_no_ledger",),
    ),
    Plant(
        "files that are not accounted for",
        "entries.append(source.ledger)",
        "",
        "a file that was not read to its end is in no ledger",
        ("test_estimate_reports.py::test_one_simulated_file_marks_all_rows_and_pooled_rows_are_in_no_ledger",),
    ),
    Plant(
        "several final rows",
        "if spec.release == FINAL:",
        "if spec.release != FINAL:",
        "a window that was promised one row has several, of parts of its reports",
        ("test_release.py::test_health_and_counts_are_released_once_too",),
    ),
    Plant(
        "losses that cancel",
        "total.update(accumulator)",
        "total += Counter(accumulator)",
        "partial sums below zero vanish, so that the ledger shows losses where there are none, or hides some",
        ("test_ledger.py::test_entries_add_up_in_any_order_and_from_any_stage",),
    ),
    Plant(
        "no period before the epoch",
        "{'' if period_start is None else period_start}",
        "{period_start or ''}",
        "reports of the period that begins in 1970 are booked without a period",
        ("test_ledger.py::test_entries_add_up_in_any_order_and_from_any_stage",),
    ),
    Plant(
        "books that close at once",
        "return TimestampedValue[tuple[str, dict[str, int]]](entry, min(timestamp + margin, MAX_TIMESTAMP))",
        "return TimestampedValue[tuple[str, dict[str, int]]](entry, timestamp)",
        "a row of the ledger comes before the work that it counts is done",
        ("test_ledger.py::test_an_entry_waits_for_work_in_flight_and_at_most_for_ever",),
    ),
    Plant(
        "all reasons together",
        "number > self._share * total",
        "sums.total() > self._share * total",
        "a stream with several small causes stops as if one had rejected nearly everything",
        ("test_rejected_share.py::test_a_thousand_reports_in_a_row_are_looked_at",),
    ),
    Plant(
        "clocks that are nearly right",
        'return f"{-(-milliseconds // length)}{unit}"',
        'return f"{milliseconds // length}{unit}"',
        "a sentence advises a lateness that is still too short",
        ("test_rejected_share.py::test_durations_have_their_largest_unit_and_are_rounded_up",),
    ),
    Plant(
        "rows of late panes",
        "_window_entry(bytes.fromhex(row.fingerprint), -1, window, max(timestamp, window.max_timestamp() + delay))",
        "_window_entry(bytes.fromhex(row.fingerprint), -1, window, timestamp)",
        "the two sides of one pane are booked in different rows of the ledger",
        ("test_transit.py::test_counts_and_row_of_a_window_have_one_place_in_the_ledger",),
    ),
    Plant(
        "a value of two owners",
        "return self._values.pop(version, (0.0, None))[1]",
        "return self._values.get(version, (0.0, None))[1]",
        "two threads change what one of them holds",
        ("test_held.py::test_what_is_held_is_taken_once",),
    ),
    Plant(
        "drains that look complete",
        "window.end.micros // 1000 + complete_after - CLOCK_SKEW",
        "window.end.micros // 1000 - CLOCK_SKEW",
        "a final row is called complete while late reports may come",
        ("test_drain.py::test_the_clock_decides_to_the_millisecond",),
    ),
    Plant(
        "rows after the end",
        "into.windowing = QuietWindowing(",
        "into.windowing = Windowing(",
        "engines in Java write one more row for each window, in which nothing is new",
        ("test_transforms.py::test_a_window_that_expires_says_nothing_again",),
    ),
    Plant(
        "at least once is enough",
        "if _AT_LEAST_ONCE in (*service, *experiments):",
        "if _AT_LEAST_ONCE in (*service,):",
        "Dataflow repeats sums, and reports count twice",
        ("test_wiring.py::test_wrong_wiring",),
    ),
    Plant(
        "counts below zero",
        "if numbers.min(initial=0) >= 0 else (1 << 63) - 1",
        "if numbers.min(initial=0) >= -1 else (1 << 63) - 1",
        "a report that is taken back becomes 255 reports",
        ("test_coders.py::test_counts_come_back",),
    ),
    Plant(
        "seeds that are forgotten",
        "seeded=bool(flags & 1),",
        "seeded=False,",
        "simulated reports pass for real ones on a second worker",
        ("test_coders.py::test_golden_batches",),
    ),
    Plant(
        "ten reports are many",
        "MIN_REPORTS = 100",
        "MIN_REPORTS = 10",
        "windows of few people are published, in which errors exceed 1",
        ("test_spec.py::test_what_a_job_does_if_nothing_is_said",),
    ),
    Plant(
        "a look that costs nothing",
        "return None if self.bounded or self.release == FINAL else self.min_reports",
        "return None",
        "intervals of windows with several rows do not hold together",
        ("test_spec.py::test_only_windows_with_several_rows_are_looked_at_again",),
    ),
    Plant(
        "complete before late reports",
        "return self.release_delay if self.release == FINAL else 0",
        "return 0",
        "a drained window is called complete although its late reports were still to come",
        ("test_spec.py::test_when_a_row_has_all_reports",),
    ),
    Plant(
        "contradictions in one direction",
        "other.value in (None, given[other.name])",
        "other.value is None",
        "early panes are asked for beside final results, and nobody says that there are none",
        ("test_spec_fields.py::test_contradictions_are_told_in_the_words_of_the_user",),
    ),
    Plant(
        "sums in several windows",
        "if window_fn != expected:",
        "if type(window_fn) is not type(expected):",
        "counts of windows of an hour are estimated as those of a day",
        ("test_wiring.py::test_wrong_wiring",),
    ),
    Plant(
        "a zone that is lost",
        'if "timezone" in rest or is_months(window):',
        "if is_months(window):",
        "days of a place become days of UTC",
        ("test_spec.py::test_windows_are_made_of_those_of_clients",),
    ),
    Plant(
        "fingerprints of half the size",
        "halves[0] << np.uint64(32) | halves[1]",
        "halves[0] << np.uint64(32) | halves[0]",
        "of a million ids a hundred are taken for copies",
        ("test_known_ids.py::test_fingerprints_are_the_sums_that_their_definition_says",),
    ),
    Plant(
        "a secret for each bundle",
        "secret = secret or secrets.token_bytes(secret_bytes)",
        "secret = secrets.token_bytes(secret_bytes)",
        "after a restart every copy counts again",
        ("test_known_ids.py::test_a_worker_that_holds_nothing_counts_the_same",),
    ),
    Plant(
        "watermark of the first message",
        "int(group[1].max())",
        "int(group[1].min())",
        "a group of messages is entered before its last message arrived",
        ("test_steps_alone.py::test_groups_of_messages_have_the_time_of_their_latest_one",),
    ),
    Plant(
        "periods of arrival that are mixed",
        "return bool(self._arrivals.number_of(now) != self._arrivals.number_of(before))",
        "return False",
        "the ledger books reports in a period in which they did not arrive",
        ("test_steps_alone.py::test_accepted_reports_are_entered_in_the_period_of_their_arrival",),
    ),
    Plant(
        "windows of the future",
        "if bounds_of(row)[0] > now() + self._skew:",
        "if bounds_of(row)[0] > now() + self._skew and False:",
        "whoever invents event times displaces the recent windows",
        ("test_steps_alone.py::test_a_window_that_has_not_begun_displaces_no_other",),
    ),
    Plant(
        "honest liars",
        "liars=self._liars,",
        "liars=None,",
        "intervals take all reports as honest although the job allows for lies",
        ("test_steps_alone.py::test_every_setting_of_a_job_reaches_its_estimates",),
    ),
    Plant(
        "verdicts without a report",
        "for owner in unaccounted.nonzero()[0].tolist():",
        "for owner in ():",
        "a report that the decoder lost is not even received",
        ("test_steps_alone.py::test_received_reports_are_entered_where_they_belong_and_lost_ones_show",),
    ),
    Plant(
        "groups as cohorts",
        "cohorts = cohorts % np.repeat(catalog.shapes[numbers, 0], sizes)",
        "pass",
        "reports of a group are counted in another cohort or collection",
        ("test_steps_alone.py::test_reports_of_groups_that_nobody_asked_for_are_counted_by_cohort",),
    ),
    Plant(
        "text that is nearly Base64",
        "base64.b64decode(value, validate=True)",
        "base64.b64decode(value)",
        "a damaged message is decoded from the characters that are left",
        ("test_yaml.py::test_a_message_is_bytes_or_exact_base64",),
    ),
    Plant(
        "the first of several fields",
        "name = PAYLOAD if PAYLOAD in fields else next(iter(fields))",
        "name = next(iter(fields))",
        "another field is read as the message, and everything is rejected",
        ("test_yaml.py::test_the_payload_is_a_field_of_its_name_or_the_only_one",),
    ),
    Plant(
        "columns that may be null",
        "is_consistent_with(fields[name], typehints.Optional[kind])",
        "is_consistent_with(fields[name], kind)",
        "tables whose payload may be null are refused",
        ("test_yaml.py::test_the_payload_is_a_field_of_its_name_or_the_only_one",),
    ),
    Plant(
        "counts for nobody",
        "with_counts=True",
        "with_counts=False",
        "an output that is promised is missing",
        ("test_yaml.py::test_every_output_has_the_rows_of_python",),
        within="EstimateReports.__init__",
    ),
    Plant(
        "a refuted promise that succeeds",
        "return REFUTED if any(found.faults for found in audits) else cli.DONE",
        "return REFUTED if all(found.faults for found in audits) else cli.DONE",
        "one sound collection hides another whose epsilon is wrong",
        ("test_privacy.py::test_one_broken_promise_among_others_fails",),
    ),
    Plant(
        "old rows win",
        "if window not in latest or _place(row) >= _place(latest[window]):",
        "if window not in latest or _place(row) < _place(latest[window]):",
        "alarms and numbers are those of the first pane",
        ("test_check.py::test_of_the_rows_of_a_window_one_counts",),
    ),
    Plant(
        "a merge before its rows are safe",
        "sync_file(file)",
        "",
        "power fails, and the parts are gone although the merged file is empty",
        ("test_compact.py::test_rows_are_on_the_disk_before_their_parts_go",),
        within="merge",
    ),
    Plant(
        "merged files that are new",
        "os.utime(unfinished, ns=(newest, newest))",
        "os.utime(unfinished)",
        "a reader that looks at ages takes old rows for new ones",
        ("test_compact.py::test_new_files_are_left_alone_and_merged_files_grow_old",),
    ),
    Plant(
        "periods before 1970",
        "dialect.remainder.format(f'{inner} + {query.period}', query.period)",
        "inner",
        "times before 1970 are rounded up, into the next period",
        ("test_sql.py::test_counted_where_they_lie_reports_have_the_same_rows",),
    ),
    Plant(
        "half a day in the whole period",
        "rows = [row for key in whole or of_collection for row in stored.windows[key]]",
        "rows = [row for key in of_collection for row in stored.windows[key]]",
        "partial windows are said to be left out, and are added",
        ("test_total.py::test_partial_windows_are_left_out_and_counted",),
    ),
    Plant(
        "an hour too early",
        "WorkerPool(workers.start_timeout / 1000, workers.log_dir)",
        "WorkerPool(workers.start_timeout, workers.log_dir)",
        "a worker that never connects is awaited for a day",
        ("test_workers_command.py::test_the_pool_has_the_options_of_the_command",),
    ),
    Plant(
        "a full disk behind another error",
        "error = error.__cause__",
        "error = None",
        "engines wrap the error, and the exit code says nothing of the disk",
        ("test_option_types.py::test_a_full_disk_is_found_behind_other_errors",),
        within="is_full.error",
    ),
    Plant(
        "doubt of half the truth",
        'sure = f"{100 * (1 - doubt):.0f} %" if doubt > 5e-3 else "more than 99 %"\nsome',
        'sure = f"{100 * doubt:.0f} %" if doubt > 5e-3 else "more than 99 %"\nsome',
        "the dialog promises more privacy than there is",
        ("test_describe.py::test_no_sentence_promises_what_a_mechanism_does_not_keep",),
    ),
    Plant(
        "an unbalanced ledger that is fine",
        "if wrong:\n    return UNBALANCED",
        "",
        "a job that lost reports ends with exit code 0",
        ("test_ends_of_runs.py::test_a_finished_run_says_what_is_wrong_with_its_ledger",),
    ),
    Plant(
        "rows of a failed job",
        "if end == COMPLETE:\n    job.directory.publish()",
        "if end != CANCELLED:\n    job.directory.publish()",
        "half of the rows replace those of the last job",
        ("test_ends_of_runs.py::test_only_a_complete_job_over_files_replaces_rows",),
    ),
    Plant(
        "the start of a resumed run",
        "return dataclasses.replace(record, started=began[0]) if began else record",
        "return record",
        "windows before a savepoint look as if no run had seen them",
        ("test_ends_of_runs.py::test_a_resumed_run_began_when_it_first_began",),
        within="run._record",
    ),
    Plant(
        "questions that Prism loses",
        "if spec.bounded and spec.questions and options",
        "if not spec.bounded and spec.questions and options",
        "pooled rows are missing, without an error",
        ("test_errors_beam.py::test_sentence",),
    ),
    Plant(
        "a name for each savepoint",
        "return earlier[-1].run",
        "return earlier[0].run",
        "a resumed job writes under the name of a run that ended long ago",
        ("test_job_server.py::test_a_job_that_begins_with_a_savepoint_is_still_the_same_run",),
    ),
    Plant(
        "ledger that is never late",
        "late = None if clock_is_watermark(pipeline.runner, pipeline.options) else job.spec.slack",
        "late = None",
        "late rows of the ledger replace those that were written",
        ("test_ends_of_runs.py::test_every_sink_is_given_every_kind_of_row",),
    ),
    Plant(
        "new columns that are required",
        'if field.nullable or field.has_default else "REQUIRED"',
        'if field.nullable else "REQUIRED"',
        "a later version of a schema cannot be written to a table with rows",
        ("test_bigquery.py::test_types_by_hand",),
    ),
    Plant(
        "inserts that give up",
        'insert_retry_strategy="RETRY_ON_TRANSIENT_ERROR"',
        'insert_retry_strategy="RETRY_NEVER"',
        "rows are lost when BigQuery is busy for a moment",
        ("test_bigquery.py::test_faults_that_pass_lose_nothing",),
    ),
    Plant(
        "groups with one key",
        '"window_end", "group", "value")',
        '"window_end", "value")',
        "log compaction keeps the row of one group and drops the others",
        ("test_steps_of_sinks.py::test_the_key_of_a_record_is_all_that_tells_its_row_from_others",),
    ),
    Plant(
        "rejected reports of one name",
        "hashlib.sha256() if self._keyed else hashlib.sha256(os.urandom(32))",
        "hashlib.sha256()",
        "two bundles with the same rejected report leave one file",
        ("test_row_file_names.py::test_rows_without_a_key_are_all_written",),
    ),
    Plant(
        "counts of another job",
        "if not self._unbounded and not self.takes_counts and stores.exists(old_counts):",
        "if False:",
        "counts of an earlier job stay beside the estimates of this one",
        ("test_steps_of_sinks.py::test_counts_of_an_earlier_job_are_refused_where_this_one_writes_none",),
    ),
    Plant(
        "attributes without the run",
        '"status", "reason", "run")',
        '"status", "reason")',
        "subscriptions cannot filter by run",
        ("test_steps_of_sinks.py::test_a_message_has_the_row_and_attributes_for_filters",),
    ),
    Plant(
        "counted rows in any window",
        "wrong = [one for one in periods if one < 1 or not windows.are_whole(ClientWindow(length=one))]",
        "wrong = [one for one in periods if one < 1]",
        "rows that were counted by the hour are put into windows of a quarter",
        ("test_steps_of_sources.py::test_counted_rows_fit_whole_windows",),
    ),
    Plant(
        "a topic from its end",
        '"auto.offset.reset": "earliest"',
        '"auto.offset.reset": "latest"',
        "records from before the start of the job are in no estimate",
        ("test_kafka.py::test_java_is_asked_for_the_whole_topic",),
    ),
    Plant(
        "a time to come",
        "if moment > time.time_ns() // 1_000_000:",
        "if moment > time.time_ns():",
        "a range that ends tomorrow misses what is still to come",
        ("test_steps_of_sources.py::test_a_range_ends_in_the_past",),
    ),
    Plant(
        "dimensions that Java drops",
        "if set_groups_of(args) is not None:",
        "if False:",
        "headers are not read, and all reports lack their group",
        ("test_steps_of_sources.py::test_options_of_kafka_that_contradict_each_other",),
    ),
    Plant(
        "a directory of files",
        'check_files("--input", pattern)',
        "",
        "a directory that matches is skipped without a word",
        ("test_steps_of_sources.py::test_patterns_that_match_nothing_of_use_are_refused",),
    ),
    Plant(
        "an empty topic of a subscription",
        "if self.set_groups is None:",
        "if True:",
        "attributes are not read, and all reports lack their group",
        ("test_steps_of_sources.py::test_attributes_are_read_where_they_set_a_dimension",),
    ),
)
