"""The pipeline of the main job."""

from __future__ import annotations

import apache_beam as beam

from uldp_transforms import EstimateReports
from uldp_transforms.beam.runtime.engines import clock_is_watermark
from uldp_transforms.jobs.estimate.options import Job
from uldp_transforms.jobs.sinks import Output
from uldp_transforms.rows import row_types


def build(pipeline: beam.Pipeline, job: Job) -> None:
    """Read reports from the source, estimate, and write every kind of row to every sink."""
    # an engine without checkpoints repeats nothing, but may emit rows years later
    is_local = clock_is_watermark(pipeline.runner, pipeline.options)
    late = None if is_local else job.spec.slack
    with_counts = any(sink.takes_counts for sink in job.sinks)
    # the steps of a stream that goes on from a checkpoint do not depend on its sinks
    keeps_steps = not job.spec.bounded and not is_local
    with_values = keeps_steps or any(sink.takes_values for sink in job.sinks)
    windows = job.source.read(pipeline) | "EstimateReports" >> EstimateReports(
        job.spec, with_counts=with_counts, with_values=with_values, columns=True
    )
    outputs = [
        Output("estimates", windows.estimates, row_types.ESTIMATE_SCHEMA),
        Output("rejected", windows.rejected, row_types.REJECTED_SCHEMA, keyed=False),
        Output("ledger", windows.ledger, row_types.LEDGER_SCHEMA, late=late),
        Output("health", windows.health, row_types.HEALTH_SCHEMA),
    ]
    asked = {
        "values": row_types.VALUE_SCHEMA,
        "counts": row_types.COUNTS_SCHEMA,
        "discovered": row_types.DISCOVERED_SCHEMA,
    }
    rows = windows._asdict()
    outputs += [Output(name, rows[name], schema) for name, schema in asked.items() if rows[name] is not None]
    for sink in job.sinks:
        sink.write(outputs)
