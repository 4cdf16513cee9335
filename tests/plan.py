"""Which tests wait for ``make slow``, and why: the only list that divides the suite, besides ``pytest.mark.slow``.

A test is named by its file below tests/, or below the root for those of companions and labs/, and its function.
``tests/support/suite.py`` marks them as slow; ``keep`` says how
many of their cases stay in ``make test``. A test that is asked for by the id of one case runs, unless no case of it
stays: then add ``-m slow``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

NONE, FIRST, COVER = "none", "first", "cover"
"""Cases that stay: none; the first one; so many that every part of an id (between hyphens) is in one of them."""

DEAREST = (
    "ldp/estimators/test_largest.py",
    "ldp/discovery/test_discovery_of_hosts.py",
    "ldp/estimators/test_few_values.py",
    "ldp/planning/test_forecast.py",
    "beam/test_memo_populations.py",
)
"""Files of ``make slow`` that take minutes, the longest first. They start first: no process waits long for another."""


class Group(NamedTuple):
    """Tests that wait for one reason: what stays in ``make test``, and the functions by file below tests/."""

    why: str
    keep: str
    tests: dict[str, tuple[str, ...]]


PLAN = (
    Group(
        "Simulates hundreds of windows; the same file tests the steps of the computation one by one.",
        NONE,
        {
            "beam/test_estimate_reports.py": ("test_a_report_is_in_exactly_the_windows_that_contain_its_time",),
            "beam/test_memo_populations.py": ("test_people_with_hashed_texts_in_brief",),
            "beam/windows/test_many_windows.py": ("test_only_as_many_windows_are_open_as_the_gate_lets_through",),
            "jobs/commands/test_evaluate.py": (
                "test_open_alphabets_have_the_errors_that_the_planner_forecasts",
                "test_errors_are_those_of_theory",
            ),
            "jobs/commands/test_plan.py": ("test_needed_epsilons_meet_the_target_and_a_step_less_does_not",),
            "labs/tests/test_group_coverage.py": ("test_the_reduced_experiment_finds_what_the_page_says",),
            "labs/tests/test_reproduce_numbers.py": ("test_smooth_intervals_hold_in_all_settings",),
            "labs/tests/test_reproduce_tang.py": ("test_simulated_errors_are_the_expected_ones",),
            "ldp/comparisons/test_compare_numbers.py": (
                "test_intervals_of_differences_hold",
                "test_smooth_intervals_of_differences_hold_and_are_shorter",
            ),
            "ldp/comparisons/test_comparisons.py": (
                "test_a_shift_that_is_said_to_be_noticed_is_noticed",
                "test_few_discoveries_are_false",
                "test_intervals_of_selected_differences_cover",
            ),
            "ldp/discovery/test_discovery.py": (
                "test_one_discovered_value_in_twenty_is_nobodys_at_most",
                "test_one_interval_of_what_is_shown_in_twenty_misses_the_truth_at_most",
                "test_where_everybody_holds_another_text_a_search_finds_something_in_one_window_of_twenty_at_most",
                "test_a_heavy_text_that_cannot_be_found_makes_no_false_ones",
                "test_sums_of_windows_find_more",
            ),
            "ldp/estimators/test_anytime.py": ("test_no_more_than_5_percent_of_values_are_missed_at_any_of_60_looks",),
            "ldp/estimators/test_display.py": (
                "test_the_interval_of_the_rest_holds_it",
                "test_the_largest_of_many_hashed_values",
            ),
            "ldp/estimators/test_largest.py": ("test_of_the_largest_of_an_open_alphabet_few_are_missed",),
            "ldp/planning/test_forecast.py": ("test_forecasts_are_what_happens",),
            "ldp/solvers/test_message_passing.py": ("test_intervals_hold_the_truth_in_95_per_cent",),
            "ldp/solvers/test_overfull.py": (
                "test_noise_alone_is_left_out_in_one_window_of_twenty",
                "test_without_a_heavy_text_hardly_anything_is_lost",
                "test_few_cohorts_keep_all_cells",
                "test_the_rest_stays_unbiased",
                "test_candidates_that_collide_with_a_heavy_unlisted_text_are_covered",
                "test_errors_fall_to_less_than_half",
            ),
            "ldp/test_sentinels.py": ("test_there_are_as_few_false_alarms_as_stated",),
            "ldp/versions/test_liars_pooled.py": (
                "test_differences_hold_wherever_liars_of_both_sides_are",
                "test_intervals_hold_wherever_liars_are",
            ),
        },
    ),
    Group(
        "Simulates windows, or searches exhaustively, for seconds per case; the first case shows that the law holds.",
        FIRST,
        {
            "beam/rows/test_numbers_crossed.py": ("test_people_who_repeat_are_covered",),
            "jobs/commands/test_plan.py": (
                "test_no_other_sizes_have_a_better_forecast",
                "test_needed_reports_meet_the_target_and_one_less_does_not",
                "test_no_row_promises_less_error_than_no_privacy",
            ),
            "labs/tests/test_reproduce_carriers.py": ("test_a_repetition_finds_what_q_values_find",),
            "labs/tests/test_reproduce_kairouz.py": (
                "test_finds_what_the_documentation_says",
                "test_draws_its_rows",
                "test_drawn_counts_have_the_moments_of_the_reports",
            ),
            "labs/tests/test_reproduce_tang.py": (
                "test_draws_its_rows",
                "test_finds_what_the_documentation_says",
            ),
            "labs/tests/test_reproduce_uldp.py": ("test_estimates_that_are_distributions_lose_at_most_everything",),
            "ldp/alphabets/test_hashed_uldp.py": ("test_estimates_are_right_where_listed_values_are_protected_too",),
            "ldp/alphabets/test_open_uldp.py": (
                "test_standard_errors_and_intervals",
                "test_intervals_of_clear_buckets_cover_rare_texts",
            ),
            "ldp/alphabets/test_prefixes.py": (
                "test_a_known_list_is_estimated_without_bias_though_unlisted_values_begin_like_listed_ones",
            ),
            "ldp/alphabets/test_tagged_estimates.py": ("test_standard_errors_and_intervals",),
            "ldp/client/test_budget.py": (
                "test_no_history_costs_more",
                "test_silence_is_the_same_for_all_values",
            ),
            "ldp/comparisons/test_comparisons.py": (
                "test_lifts_cover",
                "test_false_alarms_of_homogeneity",
            ),
            "ldp/counts/test_sparse_counts.py": ("test_large_tables_have_the_same_counts_in_every_part",),
            "ldp/discovery/test_discovery.py": (
                "test_scores_of_prefixes_that_nobody_has_are_standard_normal",
                "test_a_search_works_with_every_mechanism_and_tells_no_public_values",
            ),
            "ldp/estimators/test_empirical_bayes.py": (
                "test_weights_of_buckets_make_hashed_frequencies_more_precise_and_their_errors_are_right",
            ),
            "ldp/estimators/test_estimators.py": (
                "test_standard_errors_with_unlisted_values",
                "test_standard_errors_of_a_closed_alphabet",
                "test_standard_errors_of_a_hashed_alphabet",
                "test_standard_errors_of_a_permuted_alphabet",
                "test_standard_errors_of_a_permuted_alphabet_at_other_epsilons",
                "test_standard_errors_at_other_epsilons",
                "test_intervals_of_rare_clear_symbols_cover_at_least_as_often_as_they_say",
                "test_the_fit_of_a_complete_list_is_a_p_value",
                "test_estimates_are_finite_or_refused_for_any_number_of_reports",
            ),
            "ldp/estimators/test_fit.py": ("test_honest_windows_have_even_p_values",),
            "ldp/estimators/test_intervals.py": (
                "test_few_reports_of_values_that_share_buckets_are_held",
                "test_uneven_cohorts_are_held",
                "test_hashed_values_beside_a_public_list_are_held",
            ),
            "ldp/estimators/test_largest_of_groups.py": ("test_of_the_largest_shares_of_all_groups_few_are_missed",),
            "ldp/estimators/test_monte_carlo.py": (
                "test_a_planted_fault_is_found",
                "test_no_report_tells_two_values_apart_by_more_than_epsilon",
            ),
            "ldp/estimators/test_threshold.py": ("test_noise_alone_gets_through_in_one_window_out_of_twenty",),
            "ldp/mechanisms/test_declared_channel.py": (
                "test_intervals_hold_the_truth_in_94_per_cent_of_windows_or_more",
            ),
            "ldp/mechanisms/test_subset_scores.py": (
                "test_intervals_cover",
                "test_the_worst_error_is_the_least_that_these_reports_allow",
            ),
            "ldp/numbers/test_log_smooth.py": ("test_any_counts_have_a_posterior",),
            "ldp/numbers/test_number_estimates.py": ("test_intervals_hold_as_often_as_they_say",),
            "ldp/planning/test_utility_hashing.py": ("test_own_people_make_fewer_buckets_the_best",),
            "ldp/planning/test_utility_minimax.py": ("test_the_planner_attains_the_constant",),
            "ldp/smoothing/test_alarm.py": (
                "test_alarms_of_independent_windows_are_as_rare_as_proved_however_values_depend",
            ),
            "ldp/smoothing/test_smoothed_shares.py": ("test_intervals_cover_the_people_of_each_window",),
            "ldp/solvers/test_message_passing.py": (
                "test_errors_have_mean_zero_and_the_reported_variance",
                "test_intervals_hold_the_truth",
                "test_it_is_no_worse_than_exact_least_squares",
                "test_a_rest_of_which_nothing_is_known_decides_nothing",
            ),
            "ldp/solvers/test_overfull.py": ("test_a_heavy_candidate_is_no_reason_to_leave_its_cells_out",),
            "packages/survey/tests/test_clear_numbers.py": (
                "test_intervals_hold_the_truth_as_often_as_they_say",
                "test_the_interval_of_two_rates_covers_as_often_as_it_says",
                "test_every_record_counts_once_whatever_its_rate",
                "test_rates_that_agree_are_said_to_differ_as_often_as_stated",
            ),
            "ldp/test_sampling.py": ("test_sampled_payloads_follow_the_exact_channel",),
            "ldp/test_sentinels.py": (
                "test_p_values_of_several_hash_functions_hold_exactly",
                "test_attacks_are_seen_as_often_as_computed",
            ),
            "messages/test_compiled.py": ("test_spoiled_messages_have_equal_verdicts",),
            "messages/test_decoding.py": (
                "test_a_hundred_thousand_spoiled_messages",
                "test_a_bad_message_does_not_borrow_from_its_neighbour",
            ),
            "messages/test_fuzz.py": (
                "test_messages_get_the_verdicts_of_the_reference",
                "test_files_are_read_as_by_the_reference",
                "test_a_message_alone_takes_bounded_memory",
                "test_a_planted_fault_is_found",
                "test_the_command_prints_what_it_found",
            ),
            "messages/test_many_collections.py": ("test_mixed_messages_get_the_verdicts_that_each_gets_alone",),
            "messages/test_report_tables.py": ("test_a_cell_that_is_repeated_takes_no_memory",),
        },
    ),
    Group(
        "Runs a whole pipeline, or kills a process, for each case; the cases differ in one option of the same path.",
        FIRST,
        {
            "beam/accounts/test_failures_running.py": ("test_the_first_and_the_last_moment_have_a_window",),
            "beam/accounts/test_ledger.py": (
                "test_streams_balance",
                "test_files_balance",
                "test_a_loss_ends_the_job_with_another_code",
                "test_without_a_loss_the_same_job_succeeds",
            ),
            "beam/accounts/test_manifests.py": ("test_a_file_that_changed_is_not_as_listed",),
            "beam/test_interactive.py": ("test_a_second_collect_has_the_rows_of_the_first",),
            "beam/accounts/test_metrics.py": (
                "test_of_files",
                "test_of_a_stream",
                "test_of_a_stream_on_prism",
                "test_the_page_names_every_metric",
            ),
            "beam/accounts/test_rejected_share.py": (
                "test_files_of_which_most_is_refused_end_with_another_code",
                "test_a_stream_that_refuses_nearly_everything_stops",
            ),
            "beam/accounts/test_secrets.py": (
                "test_a_report_id_leaves_no_trace",
                "test_the_main_job_never_shows_what_it_refuses",
            ),
            "beam/accounts/test_transit.py": (
                "test_what_is_swallowed_ends_the_job_with_another_code",
                "test_a_loss_shows_in_a_stream",
                "test_in_a_stream_both_sides_add_up_to_nothing",
            ),
            "beam/state/test_deduplicate.py": ("test_in_how_many_parts_reports_are_held_changes_nothing",),
            "beam/state/test_faults.py": (
                "test_a_sink_that_fails_loses_and_doubles_nothing",
                "test_an_exception_in_a_hook_changes_nothing",
                "test_random_exceptions_change_nothing",
                "test_an_exception_that_stays_fails_the_job",
            ),
            "beam/state/test_same_counts.py": (
                "test_batch_equals_numpy",
                "test_stream_equals_numpy",
            ),
            "beam/state/test_state_machine.py": ("test_the_main_job_counts_the_same",),
            "beam/test_browser.py": ("test_the_switch_of_a_browser_rings_within_two_windows",),
            "beam/test_dimensions.py": ("test_groups_add_up_and_change_nothing_else",),
            "beam/test_estimate_reports.py": (
                "test_a_stream_gives_the_rows_of_plain_python",
                "test_messages_give_the_rows_of_the_transforms_and_of_numpy",
                "test_files_that_cannot_be_read_are_in_the_ledger_too",
                "test_the_ledger_is_by_base_period",
            ),
            "spec/test_spec.py": (
                "test_files_of_candidates_are_not_held",
                "test_what_candidates_are_not",
                "test_open_alphabets_need_candidates",
            ),
            "beam/test_transforms.py": ("test_no_messages_make_no_rows",),
            "beam/windows/test_many_windows.py": (
                "test_each_key_of_a_stream_has_one_window",
                "test_sums_of_files_are_added_up_without_triggers",
            ),
            "beam/windows/test_pool_versions.py": (
                "test_stored_counts_give_the_same_rows",
                "test_the_views_have_the_latest_row_of_each_question",
            ),
            "beam/windows/test_release.py": (
                "test_the_row_is_that_of_the_last_pane",
                "test_windows_are_released_to_the_millisecond",
            ),
            "beam/windows/test_transcripts.py": ("test_bundles_do_not_matter",),
            "jobs/commands/test_cli.py": (
                "test_estimates_are_those_of_plain_numpy",
                "test_windows_end_when_they_should",
            ),
            "jobs/commands/test_hostile_directories.py": ("test_rows_of_other_types_are_refused_in_one_sentence",),
            "jobs/commands/test_liars_option.py": ("test_the_page_states_the_share_and_compares_no_windows",),
            "jobs/commands/test_memo_people.py": ("test_rows_are_those_of_the_library",),
            "jobs/commands/test_parquet_input.py": ("test_a_manifest_lists_tables_too",),
            "jobs/commands/test_capability_table.py": ("test_all_programs_find_the_same_shares",),
            "jobs/commands/test_public_lists.py": ("test_streams_pipelines_and_yaml",),
            "jobs/commands/test_simulated_rows.py": ("test_comparisons_say_it_in_rows_and_in_words",),
            "jobs/commands/test_reestimate.py": (
                "test_the_estimates_of_files_are_made_again_byte_for_byte",
                "test_of_a_stream_the_last_panes_are_made_again_byte_for_byte",
            ),
            "jobs/commands/test_runs.py": ("test_a_cancelled_job_leaves_the_results_of_the_run_before",),
            "jobs/commands/test_sql.py": (
                "test_impossible_numbers_are_malformed",
                "test_windows_must_consist_of_whole_periods",
                "test_a_wrong_command_line_is_refused",
                "test_no_time_of_a_report_ends_the_query",
                "test_the_page_has_the_query_of_each_dialect",
            ),
            "jobs/engines/test_dataflow.py": (
                "test_files",
                "test_streams",
            ),
            "jobs/engines/test_prism.py": (
                "test_each_window_is_released_once",
                "test_stream_equals_numpy",
            ),
            "jobs/engines/test_yaml.py": ("test_messages_are_bytes_or_rows",),
            "jobs/follow/test_follow.py": (
                "test_corrections_do_not_wait_for_a_clock_that_was_set",
                "test_groups_are_those_of_a_job_over_files",
            ),
            "jobs/follow/test_follow_partitions.py": ("test_a_broker_that_is_away_costs_no_report",),
            "packages/gateway/tests/test_gateway.py": (
                "test_after_a_kill_what_was_acknowledged_is_in_the_spool",
                "test_after_a_kill_what_was_acknowledged_is_published",
            ),
            "packages/gateway/tests/test_gateway_parts.py": ("test_verdicts_are_those_of_the_reference",),
            "jobs/kafka/test_kafka_topics.py": ("test_topics_have_the_rows_of_the_files",),
            "packages/report/tests/test_hostile_names.py": (
                "test_every_chart_is_drawn",
                "test_estimates_in_notebooks_are_drawn",
            ),
            "packages/report/tests/test_report_page.py": ("test_pages_of_any_size_are_bounded",),
            "jobs/sinks/test_parquet.py": ("test_a_stream_writes_the_rows_of_its_other_files",),
            "jobs/sinks/test_tables.py": ("test_rows_go_from_the_new_source_to_the_new_sink",),
            "labs/tests/test_dev_queue.py": ("test_what_is_published_is_pulled_until_a_signal",),
            "jobs/streams/test_local_pubsub.py": (
                "test_a_stream_that_is_told_to_stop_has_counted_everything",
                "test_late_reports_that_wait_are_in_the_last_row",
            ),
            "labs/tests/test_notebooks.py": ("test_every_cell_runs",),
            "ldp/client/test_client.py": ("test_what_was_sent_before_a_kill_is_not_answered_anew",),
            "beam/state/test_count_patterns.py": (
                "test_streams_have_the_findings_of_numpy_with_copies_and_conflicts",
                "test_files_have_the_findings_of_numpy",
            ),
            "project/test_entry_points.py": (
                "test_what_is_taken_is_refused",
                "test_a_broken_package_ends_a_command_that_needs_it_in_one_sentence",
            ),
        },
    ),
    Group(
        "A grid of cases; those that stay have every value of every parameter.",
        COVER,
        {
            "beam/rows/test_health.py": ("test_reports_that_are_chosen_never_stop_a_job",),
            "beam/windows/test_calendar_windows.py": (
                "test_no_more_windows_are_open_than_the_bound_says",
                "test_periods_of_thousands_of_reports_are_those_of_each",
            ),
            "beam/windows/test_many_windows.py": (
                "test_counts_of_files_are_in_beams_windows_as_its_own_grouping_puts_them",
            ),
            "jobs/commands/test_table_formats.py": (
                "test_every_program_reads_every_format",
                "test_simulate_reads_every_form_of_times",
                "test_every_program_names_the_cure_of_other_files",
            ),
            "packages/report/tests/test_truth_tables.py": (
                "test_every_format_is_read",
                "test_every_form_of_times_is_read",
                "test_the_cure_of_other_files_is_named",
            ),
            "ldp/alphabets/test_open_uldp.py": ("test_exact_counts_give_the_truth",),
            "ldp/alphabets/test_several_hashes.py": ("test_the_noise_is_at_least_h_times_that_of_one",),
            "ldp/client/test_client.py": ("test_rounded_times_stay_in_their_window",),
            "ldp/estimators/test_estimators.py": (
                "test_intervals_of_sensitive_symbols_cover_as_often_as_they_promise",
                "test_post_processed_frequencies_are_a_distribution",
            ),
            "ldp/estimators/test_largest.py": ("test_each_number_is_in_its_own_intervals",),
            "ldp/estimators/test_noisy_zeros.py": ("test_no_interval_is_short_or_leaves_out_its_own_number",),
            "ldp/estimators/test_stacked_priors.py": ("test_windows_together_are_windows_alone",),
            "ldp/estimators/test_standard_errors.py": (
                "test_errors_are_as_large_as_they_say",
                "test_the_mean_of_windows_that_is_weighted_by_them_is_a_little_too_small",
            ),
            "ldp/solvers/test_likelihood.py": (
                "test_em_reaches_the_maximum",
                "test_em_stays_on_the_simplex_whatever_is_counted",
            ),
            "ldp/test_client_window.py": ("test_windows_of_a_place_are_those_of_calendar_windows",),
            "ldp/test_sentinels.py": ("test_p_values_hold_exactly",),
            "rows/test_confidence_of_rows.py": ("test_intervals_cover_as_often_as_their_level_says",),
        },
    ),
    Group(
        "Runs whole jobs for seconds; shorter tests read the same rows.",
        NONE,
        {
            "beam/accounts/test_failures_running.py": ("test_a_machine_without_credentials_is_told_so",),
            "beam/accounts/test_ledger.py": ("test_rows_of_a_stream_are_the_same_in_whatever_bundles_messages_come",),
            "beam/accounts/test_metrics.py": ("test_without_our_help_the_engine_shows_the_first_bundle_alone",),
            "beam/rows/test_flushed_rows.py": ("test_rows_that_wait_are_in_one_file_of_each_kind",),
            "beam/rows/test_rows_in_beam.py": ("test_rows_keep_their_fields_between_processes",),
            "beam/state/test_deduplicate.py": ("test_thirty_orders_of_arrival_have_one_result",),
            "beam/state/test_determinism.py": ("test_every_engine_writes_the_same",),
            "beam/test_transforms.py": ("test_other_workers_give_the_same_rows",),
            "beam/windows/test_pool_versions.py": (
                "test_the_page_shows_the_question",
                "test_the_other_rows_are_those_of_collections_without_a_question",
                "test_discovered_values_are_candidates_of_a_question",
                "test_pooled_rows_in_kafka_are_those_of_the_files",
                "test_longer_windows_pool_what_is_in_them",
                "test_pooled_rows_fit_the_tables_of_bigquery",
            ),
            "clients/test_javascript.py": ("test_memos_of_people_are_estimated",),
            "labs/tests/test_demo.py": ("test_delays_are_numbers_beside_the_truth",),
            "jobs/commands/test_discover.py": (
                "test_candidates_and_the_search_go_together",
                "test_windows_that_are_suppressed_have_no_rows",
                "test_stored_counts_are_searched_again_and_sums_of_windows_find_more",
            ),
            "jobs/commands/test_capability_table.py": ("test_every_cell_is_what_a_run_finds",),
            "jobs/commands/test_memo_people.py": ("test_the_ledger_has_every_report_and_its_copy",),
            "jobs/commands/test_plan.py": (
                "test_a_picture",
                "test_rows_of_open_alphabets_with_a_list",
            ),
            "jobs/commands/test_reestimate.py": (
                "test_days_of_a_place_are_alike_in_files_streams_and_from_stored_hours",
            ),
            "jobs/commands/test_sql.py": ("test_polars_counts_the_same",),
            "jobs/engines/test_cluster.py": ("test_a_program_that_cannot_hand_its_job_over_says_why",),
            "jobs/engines/test_expansion_service.py": (
                "test_what_does_not_end_well_is_quoted",
                "test_what_java_needs_is_said",
            ),
            "jobs/engines/test_prism.py": (
                "test_files_give_the_rows_of_the_local_engine",
                "test_the_main_job_releases_the_rows_of_the_local_engine",
            ),
            "jobs/engines/test_yaml.py": (
                "test_the_example_writes_what_python_gets",
                "test_the_stream_example_publishes_what_was_counted",
            ),
            "jobs/follow/test_follow.py": (
                "test_kills_at_random_moments_while_files_arrive",
                "test_a_kill_at_any_point_loses_and_doubles_nothing",
            ),
            "jobs/follow/test_follow_topic.py": ("test_a_program_that_is_killed_counts_each_record_once",),
            "packages/gateway/tests/test_gateway.py": ("test_memory_is_bounded_under_a_flood",),
            "packages/gateway/tests/test_service.py": (
                "test_the_canary_is_heard_and_missed",
                "test_a_canary_that_is_refused_says_so",
                "test_a_lost_output_is_restored_without_a_loss",
            ),
            "packages/report/tests/test_report_follow.py": (
                "test_the_page_keeps_up_with_the_rows",
                "test_what_else_is_asked",
                "test_a_port_that_is_taken",
            ),
            "packages/report/tests/test_report_tools.py": ("test_a_large_page_opens",),
            "jobs/records/test_row_frame.py": ("test_rows_of_other_programs_are_read_too",),
            "jobs/sinks/test_consume.py": (
                "test_all_programs_print_the_same",
                "test_the_columns_for_a_table_are_printed",
            ),
            "jobs/sinks/test_parquet.py": (
                "test_the_program_of_the_page_makes_an_iceberg_table",
                "test_the_query_of_the_page_reads_values",
                "test_stored_counts_are_estimated_again_into_parquet",
                "test_duckdb_reads_all_files_of_a_stream",
            ),
            "jobs/streams/test_estimate_streaming.py": ("test_stream_from_subscription_to_files_and_topic",),
            "labs/tests/test_live.py": ("test_a_click_is_counted",),
            "labs/tests/test_reproduce_carriers.py": ("test_the_commands_find_them_and_the_page_shows_it",),
            "labs/tests/test_reproduce_uldp.py": (
                "test_rows_are_flat",
                "test_the_picture_can_be_drawn",
                "test_the_reduced_experiment_shows_what_the_paper_claims",
            ),
            "project/test_entry_points.py": ("test_the_command_line_has_their_options",),
            "project/test_hangs.py": ("test_a_test_that_hangs_fails",),
        },
    ),
    Group(
        "Builds a wheel and environments for it, or runs the tests of another language: 5 to 30 s each.",
        NONE,
        {
            "clients/test_javascript.py": ("test_its_own_tests",),
            "project/test_deploy_files.py": ("test_what_the_image_copies_is_enough_for_the_package",),
            "project/test_package.py": (
                "test_packages_of_the_same_names_do_not_disturb",
                "test_type_checkers_know_the_names",
                "test_the_command_works_from_the_wheel",
                "test_a_job_runs_from_the_wheel",
                "test_no_module_has_two_names",
                "test_a_fault_in_a_module_is_shown_as_its_cause",
            ),
            "project/test_reproducible_packages.py": ("test_two_builds_have_the_same_bytes",),
        },
    ),
)


def turn(case: str) -> int:
    """When a test comes, by its id in pytest: in the dearest files, in those that start programs, or after both."""
    path = case.partition("::")[0].removeprefix("tests/")
    return DEAREST.index(path) if path in DEAREST else len(DEAREST) + (not path.startswith(("jobs/", "packages/")))


class Divider:
    """Decides for the cases of all tests, in the order of the suite, which of them wait."""

    def __init__(self, plan: Iterable[Group] = PLAN):
        self._keep = {
            f"{path}::{name}": group.keep for group in plan for path, names in group.tests.items() for name in names
        }
        self._seen: dict[str, set[Any]] = defaultdict(set)

    def waits(self, case: str) -> bool:
        """Whether a case waits, by its id in pytest: file, function and, in brackets, the parts of its parameters."""
        name, _, parameters = case.partition("[")
        name = name.removeprefix("tests/")
        if name not in self._keep:
            return False
        seen, keep = self._seen[name], self._keep[name]
        parts = set(enumerate(parameters.rstrip("]").split("-"))) if keep == COVER else {FIRST}
        new = parts - seen
        seen |= parts
        return keep == NONE or not new
