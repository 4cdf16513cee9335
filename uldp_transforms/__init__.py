"""Apache Beam transforms that turn streams of locally private reports into windowed distribution estimates.

The array layer ``uldp_transforms.ldp`` needs no Beam. The names below are imported on first use, so importing the array
layer does not import Beam.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uldp_transforms.lazy_names import lazy_names
from uldp_transforms.moved_modules import install
from uldp_transforms.version import __version__ as __version__

install()

if TYPE_CHECKING:
    from uldp_transforms.beam.estimate_reports import EstimateReports as EstimateReports
    from uldp_transforms.beam.transforms.count_reports import CountReports as CountReports
    from uldp_transforms.beam.transforms.count_reports import SumCountsFn as SumCountsFn
    from uldp_transforms.beam.transforms.decode_reports import DecodeReports as DecodeReports
    from uldp_transforms.beam.transforms.discover_values import DiscoverValues as DiscoverValues
    from uldp_transforms.beam.transforms.estimate_distribution import CountsRows as CountsRows
    from uldp_transforms.beam.transforms.estimate_distribution import EstimateDistribution as EstimateDistribution
    from uldp_transforms.beam.transforms.ledger import SummarizeLedger as SummarizeLedger
    from uldp_transforms.beam.transforms.read_report_files import ReadReportFiles as ReadReportFiles
    from uldp_transforms.beam.transforms.release_once import ReleaseOnce as ReleaseOnce
    from uldp_transforms.beam.transforms.smooth_estimates import SmoothEstimates as SmoothEstimates
    from uldp_transforms.calendar_windows import CalendarWindows as CalendarWindows
    from uldp_transforms.jobs.records.row_frame import read_rows as read_rows
    from uldp_transforms.messages.wire import to_message as to_message
    from uldp_transforms.rows.json_and_avro import as_dict as as_dict
    from uldp_transforms.rows.json_and_avro import to_avro as to_avro
    from uldp_transforms.rows.json_and_avro import to_json as to_json
    from uldp_transforms.rows.row_types import DiscoveredValue as DiscoveredValue
    from uldp_transforms.rows.row_types import EstimatedValue as EstimatedValue
    from uldp_transforms.rows.row_types import WindowedEstimate as WindowedEstimate
    from uldp_transforms.spec.job_spec import JobSpec as JobSpec
    from uldp_transforms.windows import Windows as Windows
else:
    _HOMES = {
        "CalendarWindows": "calendar_windows",
        "CountReports": "beam.transforms.count_reports",
        "CountsRows": "beam.transforms.estimate_distribution",
        "DecodeReports": "beam.transforms.decode_reports",
        "DiscoverValues": "beam.transforms.discover_values",
        "DiscoveredValue": "beam.runtime.coders",
        "EstimateDistribution": "beam.transforms.estimate_distribution",
        "EstimateReports": "beam.estimate_reports",
        "EstimatedValue": "beam.runtime.coders",
        "JobSpec": "spec.job_spec",
        "ReadReportFiles": "beam.transforms.read_report_files",
        "ReleaseOnce": "beam.transforms.release_once",
        "SmoothEstimates": "beam.transforms.smooth_estimates",
        "SumCountsFn": "beam.transforms.count_reports",
        "SummarizeLedger": "beam.transforms.ledger",
        "WindowedEstimate": "beam.runtime.coders",
        "Windows": "windows",
        "as_dict": "rows.json_and_avro",
        "read_rows": "jobs.records.row_frame",
        "to_avro": "rows.json_and_avro",
        "to_json": "rows.json_and_avro",
        "to_message": "messages.wire",
    }

    __getattr__ = lazy_names(__name__, _HOMES)


__all__ = [
    "CalendarWindows",
    "CountReports",
    "CountsRows",
    "DecodeReports",
    "DiscoverValues",
    "DiscoveredValue",
    "EstimateDistribution",
    "EstimateReports",
    "EstimatedValue",
    "JobSpec",
    "ReadReportFiles",
    "ReleaseOnce",
    "SmoothEstimates",
    "SumCountsFn",
    "SummarizeLedger",
    "WindowedEstimate",
    "Windows",
    "as_dict",
    "read_rows",
    "to_avro",
    "to_json",
    "to_message",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
