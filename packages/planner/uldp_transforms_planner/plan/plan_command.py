"""Plans a collection before data are collected: mechanism, expected errors, number of reports and epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.pictures import drawing
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.spec.row_forecast import RowForecast
from uldp_transforms.spec.spec_fields import SHOW
from uldp_transforms_planner.plan.collection_text import spec_text
from uldp_transforms_planner.plan.group_plan import advice_on_groups, heading_of_groups
from uldp_transforms_planner.plan.group_power import advice_on_liars
from uldp_transforms_planner.plan.number_plan import NumberPlanning, run_number_plan
from uldp_transforms_planner.plan.plan_options import Planning, read_arguments
from uldp_transforms_planner.plan.plan_over_time import over_time
from uldp_transforms_planner.plan.plan_text import advice, described, heading, legend, table
from uldp_transforms_planner.planning import Plan, PlanRow, plan


def configure(argv: Sequence[str]) -> Planning | NumberPlanning:
    """Parse the command line; raises SpecError, OSError."""
    return read_arguments(argv, __doc__)


def job(planning: Planning | NumberPlanning) -> int:
    """Compute the plan, write the file, print the table."""
    if isinstance(planning, NumberPlanning):
        return run_number_plan(planning)
    found = plan(
        planning.question,
        planning.epsilon,
        planning.planned_reports,
        confidence=planning.confidence,
        byte_cost=planning.byte_cost,
        **planning.targets,
    )
    spec = recommended(planning, found)
    if planning.png is not None:
        with whole_file(planning.png) as picture:
            picture.write(drawing("plan")([_drawn(row) for row in found.rows], found.confidence))
    if planning.output is not None:
        with open(planning.output, "w", encoding="utf-8") as file:
            file.write(spec_text(spec))
    of_groups = [] if planning.groups is None else heading_of_groups(planning.groups, planning.num_reports)
    lines = [
        *of_groups,
        *heading(planning),
        "",
        *table(planning, found),
        "",
        *legend(planning, found),
        "",
        *advice(planning, found),
    ]
    if planning.liars is not None:
        lines.append(advice_on_liars(found, planning.liars))
    if planning.groups is not None:
        lines += advice_on_groups(planning.groups, found, planning.question.num_frequencies, planning.liars or 0.0)
    print("\n".join([*lines, *over_time(planning, found), *_rows_of_a_window(planning)]))
    if planning.output is None:
        print("\n" + spec_text(spec), end="")
    else:
        what = "The recommended collection" + ("" if planning.has_names else ", with placeholders for values")
        print(f"{what}: {planning.output}")
    return cli.DONE


def _rows_of_a_window(planning: Planning) -> list[str]:
    """What the rows of a window cost, if they are many."""
    rows = 1 if planning.groups is None else 1 + planning.groups.number
    forecast = RowForecast(rows=rows, entries=rows * min(planning.question.num_frequencies, SHOW))
    return [f"Rows of uldp estimate: {forecast.sentence()}."] if forecast.is_large else []


def _drawn(row: PlanRow) -> dict[str, Any]:
    name = row.name if row.setup is None else described(row.setup.mechanism)
    return {"name": name, "l1": row.l1, "half_width": row.half_width, "private": row.setup is not None}


def recommended(planning: Planning, found: Plan) -> dict[str, Any]:
    """The recommended collection, with memos if ``epsilon_inf`` was given."""
    setup = found.best.setup
    if planning.epsilon_inf is None or setup is None:
        return found.collection
    spec = found.collection | {"mechanism": found.collection["mechanism"] | {"epsilon_inf": planning.epsilon_inf}}
    try:
        mechanism = Collection.from_json(spec).mechanism
    except SpecError as error:
        what = f"{described(setup.mechanism)} over {setup.alphabet['id']}"
        raise SpecError(f"--epsilon_inf cannot be used with the recommended {what}: {error}") from None
    return spec | {"mechanism": mechanism.to_json()}


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("plan", configure, job, argv, faults_of_job=(SpecError, OSError))
