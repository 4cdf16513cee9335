"""Rooms of the package, mutants that are drawn in each, and the tests that judge them.

A room is a folder of the library, of a companion or of what else is judged beside them, the scripts in such a folder,
the client in JavaScript, or the compiled part.
"""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from requirements.companions import companions
from tests.campaigns.c_mutations import c_mutants
from tests.campaigns.javascript_mutations import javascript_mutants
from tests.campaigns.mutations import Finder, Mutant

ROOT = Path(__file__).parents[2]
LIBRARY = "uldp_transforms"
PACKAGES = "packages"
LABS = "labs"
BESIDE = (
    *("labs/demo", "labs/live", "tests/servers/pubsub"),
    *(str(each.sources.relative_to(ROOT)) for each in companions(ROOT)),
)
"""Folders of a checkout whose code is judged too."""

JAVASCRIPT = Path("clients", "javascript")
NATIVE = Path("native")

LEFT_OUT = ("test_determinism", "test_faults", "test_kafka_broker", "test_same_counts", "test_secrets")
"""Tests that judge no mutant: they compare whole jobs with each other, or start brokers."""

TESTS_OF_ROOM: dict[str, tuple[str, ...]] = {
    "": ("beam/windows", "spec/test_spec.py", "ldp/test_client_window.py", "project/test_public_names.py"),
    "beam": (
        *("beam/test_estimate_reports.py", "beam/test_transforms.py", "beam/test_wiring.py"),
        "beam/state/test_moved_modules.py",
    ),
    "beam/runtime": (
        *("beam/state/test_coders.py", "beam/state/test_combine.py", "beam/windows", "beam/accounts/test_metrics.py"),
        *("beam/test_runtime_parts.py", "beam/test_wiring.py", "jobs/sinks/test_one_file_of_rows.py"),
    ),
    "beam/transforms": (
        *("beam/accounts", "beam/state", "beam/windows", "beam/rows/test_rows.py"),
        *("beam/test_estimate_reports.py", "beam/test_transforms.py"),
        *("beam/test_dimensions.py", "beam/test_groups.py", "beam/test_steps_alone.py"),
    ),
    "collector": (
        *("collector", "beam/accounts", "beam/state", "beam/rows/test_rows.py"),
        *("jobs/follow/test_follow_parts.py", "ldp/test_edges.py", "messages/test_many_collections.py"),
        "jobs/sinks/test_one_file_of_rows.py",
    ),
    "files": (
        "files",
        "beam/test_files_of_stores.py",
        "beam/accounts/test_manifests.py",
        "jobs/commands/test_values.py",
    ),
    "jobs": (
        *("jobs/commands/test_check.py", "jobs/commands/test_cli.py", "jobs/commands/test_compact.py"),
        *("jobs/commands/test_describe.py", "jobs/commands/test_discover.py", "jobs/commands/test_sql.py"),
        *("jobs/commands/test_old_names.py", "jobs/commands/test_short_help.py", "jobs/commands/test_uldp.py"),
        "jobs/commands/test_option_types.py",
        "jobs/commands/test_plan_sentences.py",
        *("packages/gateway/tests/test_signed_tokens.py", "jobs/commands/test_workers_command.py"),
        *("ldp/test_privacy.py", "clients/test_vectors.py", "jobs/commands/test_completion.py"),
        "beam/test_spec_fields.py",
    ),
    "jobs/compare": (
        *("jobs/commands/test_compare_words.py", "jobs/commands/test_compare.py"),
        *("jobs/commands/test_borrow_option.py", "jobs/commands/test_simulated_rows.py"),
    ),
    "jobs/engines": (
        *("jobs/engines/test_engine_parts.py", "jobs/engines/test_stop.py", "jobs/engines/test_job_server.py"),
        *("jobs/engines/test_workers.py", "jobs/kafka/test_kafka_reader.py"),
    ),
    "jobs/estimate": (
        *("jobs/commands/test_ends_of_runs.py", "jobs/commands/test_runs.py", "jobs/commands/test_cli.py"),
        *("jobs/commands/test_parquet_input.py", "beam/test_spec_fields.py", "beam/accounts/test_failures_running.py"),
    ),
    "jobs/evaluate": (
        *("jobs/commands/test_evaluate_figures.py", "jobs/commands/test_evaluate.py"),
        "jobs/commands/test_evaluate_numbers.py",
    ),
    "jobs/files": (
        *("jobs/commands/test_people_tables.py", "jobs/commands/test_flushing.py", "jobs/commands/test_values.py"),
        *("jobs/commands/test_progress.py", "jobs/commands/test_people_options.py"),
        *("beam/rows/test_flushed_rows.py", "jobs/commands/test_parquet_input.py"),
        *("jobs/commands/test_other_peoples_tables.py", "jobs/commands/test_table_formats.py"),
    ),
    "jobs/follow": ("jobs/follow",),
    "packages/conformance": ("packages/conformance/tests",),
    "packages/gateway": ("packages/gateway/tests",),
    "packages/gateway/apps": (
        *("packages/gateway/tests/test_app_limits.py", "packages/gateway/tests/test_signed_tokens.py"),
        *("packages/gateway/tests/test_used_tokens.py", "packages/gateway/tests/test_gateway_parts.py"),
        "packages/gateway/tests/test_once_per_token.py",
    ),
    "packages/gateway/navigations": (
        "packages/gateway/tests/test_navigation_gateway.py",
        "packages/gateway/tests/test_simulation.py",
    ),
    "packages/gateway/outlets": (
        "packages/gateway/tests/test_outlets.py",
        "packages/gateway/tests/test_gateway_errors.py",
    ),
    "packages/report": ("packages/report/tests",),
    "packages/report/*.js": (
        *("packages/report/tests/test_page_script.py", "packages/report/tests/test_scales_script.py"),
        *("packages/report/tests/test_follow_script.py", "packages/report/tests/test_report_page.py"),
        *("packages/report/tests/test_report_tools.py", "packages/report/tests/test_report_follow.py"),
        *("packages/report/tests/test_report_compared.py", "packages/report/tests/test_report_groups.py"),
    ),
    "packages/report/compared": (
        "packages/report/tests/test_report_figures.py",
        "packages/report/tests/test_report_compared.py",
        "packages/report/tests/test_report_everything.py",
    ),
    "packages/report/groups": (
        "packages/report/tests/test_report_figures.py",
        "packages/report/tests/test_report_groups.py",
        "jobs/commands/test_groups_page.py",
    ),
    "packages/report/numbers": (
        "packages/report/tests/test_report_figures.py",
        "packages/report/tests/test_report_charts.py",
        "packages/report/tests/test_report_numbers.py",
        "ldp/numbers/test_page.py",
    ),
    "packages/report/trends": (
        "packages/report/tests/test_report_charts.py",
        "packages/report/tests/test_trends.py",
        "packages/report/tests/test_report_words.py",
    ),
    "packages/survey": (
        *("packages/survey/tests/test_regression.py", "packages/survey/tests/test_regress.py"),
        *("packages/survey/tests/test_clear_numbers.py", "packages/survey/tests/test_survey_designs.py"),
        "packages/survey/tests/test_refusals.py",
    ),
    "packages/survey/answers": (
        *("packages/survey/tests/test_inattention.py", "packages/survey/tests/test_inattentive.py"),
        *("packages/survey/tests/test_samples.py", "packages/survey/tests/test_shares.py"),
        *("packages/survey/tests/test_profile.py", "packages/survey/tests/test_false_alarms.py"),
        *("packages/survey/tests/test_pooled_designs.py", "packages/survey/tests/test_regression.py"),
        "packages/survey/tests/test_refusals.py",
    ),
    "packages/survey/navigations": (
        *("packages/survey/tests/test_answer_cells.py", "packages/survey/tests/test_navigations.py"),
        *("packages/survey/tests/test_damaged_navigations.py", "packages/survey/tests/test_refusals.py"),
    ),
    "packages/survey/survey": ("packages/survey/tests",),
    "jobs/kafka": ("jobs/kafka", "jobs/follow/test_topic_identity.py"),
    "jobs/plan": (
        *("jobs/commands/test_plan_sentences.py", "jobs/commands/test_plan.py", "jobs/commands/test_plan_numbers.py"),
        *("jobs/commands/test_plan_groups.py", "ldp/planning"),
    ),
    "jobs/pubsub": (
        *("servers/test_pubsub_parts.py", "jobs/streams/test_local_pubsub.py", "jobs/streams/test_pubsub_access.py"),
    ),
    "jobs/records": (
        "jobs/records",
        *("jobs/commands/test_check.py", "jobs/commands/test_runs.py", "jobs/commands/test_run_accounts.py"),
        *("jobs/commands/test_hostile_directories.py", "jobs/commands/test_compact.py", "beam/accounts/test_ledger.py"),
        *("jobs/commands/test_memo_people.py", "jobs/commands/test_describe.py"),
    ),
    "jobs/reestimate": (
        "jobs/reestimate",
        *("jobs/commands/test_reestimate.py", "jobs/commands/test_numbers_by_group.py"),
        *("jobs/commands/test_smooth_groups.py", "jobs/commands/test_discover.py", "jobs/commands/test_sql.py"),
        *("jobs/commands/test_borrow_option.py", "jobs/commands/test_total.py"),
    ),
    "jobs/simulate": (
        *("jobs/commands/test_simulate_command.py", "jobs/commands/test_simulated_people.py"),
        *("jobs/commands/test_people_options.py", "jobs/commands/test_values.py"),
        *("jobs/commands/test_cli.py", "beam/accounts/test_manifests.py"),
    ),
    "jobs/sinks": ("jobs/sinks", "rows", "beam/rows", "jobs/kafka/test_kafka_topics.py"),
    "jobs/sources": (
        *("jobs/sinks/test_steps_of_sources.py", "jobs/sinks/test_tables.py", "jobs/kafka"),
        "beam/accounts/test_failures_running.py",
    ),
    "ldp": (
        *("ldp/test_*.py", "ldp/numbers/test_ordered.py", "ldp/counts/test_counts.py"),
        "ldp/alphabets/test_dimensions.py",
    ),
    "ldp/alphabets": ("ldp/alphabets", "ldp/test_edges.py", "ldp/test_limits.py", "ldp/numbers"),
    "ldp/borrowing": ("ldp/test_borrow.py", "ldp/versions/test_borrowed_versions.py"),
    "ldp/client": ("ldp/client", "ldp/test_client_window.py", "ldp/test_limits.py", "clients/test_vectors.py"),
    "ldp/comparisons": ("ldp/comparisons", "ldp/versions/test_liars_pooled.py"),
    "ldp/counts": ("ldp/counts", "ldp/test_edges.py", "beam/state/test_count_patterns.py"),
    "ldp/discovery": ("ldp/discovery",),
    "ldp/estimators": (
        "ldp/estimators",
        "ldp/numbers",
        "packages/conformance/tests/test_conformance.py",
        "ldp/test_edges.py",
    ),
    "ldp/mechanisms": (
        *("ldp/mechanisms", "ldp/counts", "ldp/test_privacy.py", "ldp/test_edges.py", "ldp/test_limits.py"),
        *("packages/conformance/tests/test_conformance.py", "ldp/test_sampling.py"),
    ),
    "ldp/mechanisms/channels": (
        *("ldp/mechanisms", "ldp/numbers", "ldp/test_privacy.py", "ldp/test_edges.py", "ldp/test_limits.py"),
        *("packages/conformance/tests/test_conformance.py", "ldp/test_sampling.py"),
    ),
    "ldp/mechanisms/nested": (
        *("ldp/mechanisms", "ldp/test_privacy.py", "ldp/test_conformance.py", "ldp/test_errors_ldp.py"),
        "clients/test_vectors.py",
    ),
    "ldp/mechanisms/public_blocks": (
        *("ldp/mechanisms", "ldp/test_privacy.py", "ldp/test_errors_ldp.py", "ldp/solvers/test_joined_blocks.py"),
        *("ldp/alphabets/test_blocks.py", "clients/test_vectors.py"),
    ),
    "ldp/planning": ("ldp/planning", "jobs/commands/test_plan.py", "jobs/commands/test_plan_numbers.py"),
    "ldp/smoothing": ("ldp/smoothing",),
    "ldp/share_sums": ("ldp/share_sums",),
    "ldp/solvers": ("ldp/solvers", "ldp/estimators", "ldp/alphabets", "ldp/test_edges.py"),
    "ldp/solvers/public_blocks": (
        *("ldp/solvers/test_joined_blocks.py", "ldp/mechanisms/test_public_blocks.py", "ldp/estimators"),
    ),
    "ldp/utility": ("ldp/planning", "ldp/versions/test_liars_pooled.py"),
    "ldp/versions": ("ldp/versions", "ldp/numbers", "ldp/solvers/test_pooled_versions.py"),
    "messages": ("messages", "beam/accounts/test_manifests.py"),
    "messages/files": ("messages", "jobs/commands/test_unread_files.py", "beam/accounts/test_transit.py"),
    "rows": (
        *("rows", "beam/rows", "beam/windows/test_smooth_estimates.py"),
        *("beam/windows/test_pool_versions.py", "jobs/commands/test_reestimate.py"),
    ),
    "rows/figures": (
        *("packages/report/tests/test_report_figures.py", "packages/report/tests/test_report_words.py"),
        *("packages/report/tests/test_report_gathering.py", "jobs/commands/test_compare_words.py"),
        "jobs/commands/test_numbers_by_group.py",
    ),
    "rows/samples": (
        *("rows/test_row_parts.py", "beam/rows/test_number_figures.py", "beam/test_steps_alone.py"),
        *("beam/windows/test_pool_versions.py", "jobs/reestimate", "jobs/commands/test_total.py"),
        "jobs/commands/test_questions_of_groups.py",
    ),
    "spec": ("spec", "beam/windows/test_windows_of_beam.py", "beam/test_spec_fields.py", "beam/test_wiring.py"),
    "yaml": ("jobs/engines/test_yaml.py",),
    "labs/demo": ("labs/tests/test_demo_figures.py", "labs/tests/test_demo.py", "labs/tests/test_demo_event.py"),
    "labs/live": ("labs/tests/test_live_parts.py", "labs/tests/test_live.py"),
    "labs/live/*.js": ("labs/tests/test_live_scripts.py", "labs/tests/test_live.py"),
    "tests/servers/pubsub": ("servers", "labs/tests/test_dev_queue.py"),
    str(NATIVE): ("messages/test_compiled.py", "messages/test_decoding.py", "messages/test_fuzz.py"),
}
"""Files and folders below tests/, or below the root for those of companions and labs/, whose tests judge the mutants of
a room. The JavaScript client has its own tests."""

REFUSALS = {"ldp": "ldp/test_errors_ldp.py"} | dict.fromkeys(
    ("", "beam", "collector", "files", "jobs", "messages", "rows", "spec", "yaml"), "beam/accounts/test_errors_beam.py"
)
"""The tests that read the sentences of all refusals judge all rooms of a folder, and the library's own files."""


def room_of(path: str) -> str:
    """The room of a file: ``ldp/smoothing``, ``packages/report/*.js``, ``labs/demo``, ``packages/gateway/apps``,
    ``clients/javascript``, ``native``; "" is the library's own folder."""
    for whole in (JAVASCRIPT, NATIVE):
        if Path(path).is_relative_to(whole):
            return str(whole)
    parts = list(Path(path).parent.parts)
    if parts[0] == PACKAGES:
        del parts[2]  # the import package
    folder = "/".join(parts).removeprefix(LIBRARY).removeprefix("/")
    return f"{folder}/*.js" if path.endswith(".js") else folder


def find_mutants() -> list[Mutant]:
    """All mutants, in the order of files."""
    mutants: list[Mutant] = []
    folders = [ROOT / folder for folder in (LIBRARY, *BESIDE)]
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        finder = Finder(str(path.relative_to(ROOT)))
        finder.visit(ast.parse(path.read_bytes()))
        mutants += finder.found
    scripts = [path for folder in folders for path in folder.rglob("*.js")]
    for path in sorted([*scripts, *(ROOT / JAVASCRIPT / "src").glob("*.js")]):
        mutants += javascript_mutants(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / NATIVE).glob("*.[ch]")):
        mutants += c_mutants(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    return mutants


def by_room(mutants: Sequence[Mutant]) -> dict[str, list[Mutant]]:
    """Mutants of each room, in order."""
    rooms: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        rooms[room_of(mutant.path)].append(mutant)
    return dict(sorted(rooms.items()))


def draw(mutants: Sequence[Mutant], room: str, number: int, seed: int) -> list[Mutant]:
    """Some mutants of one room, in order: the choice does not depend on other rooms."""
    places = random.Random(f"{seed} {room}").sample(range(len(mutants)), min(number, len(mutants)))
    return [mutants[at] for at in sorted(places)]


def judges_of(folder: Path, room: str) -> list[str]:
    """The files of tests that judge mutants of a room; none for the client in JavaScript."""
    names = [*TESTS_OF_ROOM.get(room, ()), *filter(None, [REFUSALS.get(room.partition("/")[0])])]
    roots = {name: folder if Path(name).parts[0] in (LABS, PACKAGES) else folder / "tests" for name in names}
    places = [place for name in names for place in sorted(roots[name].glob(name))]
    found = [test for place in places for test in (sorted(place.rglob("test_*.py")) if place.is_dir() else [place])]
    return [str(test.relative_to(folder)) for test in dict.fromkeys(found) if not test.stem.startswith(LEFT_OUT)]
