"""EstimateReports for Beam YAML and for other languages: plain arguments as input, named outputs.

Beam YAML finds it through a providers file, Java and other languages through Beam's Python expansion service; see
``docs/yaml.md`` and ``docs/other-languages.md``.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
from collections.abc import Mapping
from typing import Any

import apache_beam as beam
from apache_beam import typehints
from apache_beam.pvalue import PBegin, PCollection
from apache_beam.typehints import row_type
from apache_beam.typehints.typehints import is_consistent_with
from typing_extensions import Unpack

from uldp_transforms.beam import estimate_reports
from uldp_transforms.beam.transforms.read_report_files import ReadFiles, ReadReportFiles
from uldp_transforms.ldp.checks import describe, require_keys
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.spec.plain_values import SpecValues
from uldp_transforms.spec.spec_fields import SPEC_FIELDS

__all__ = ["EstimateReports"]

_LOG = logging.getLogger(__name__)

PAYLOAD = "payload"
"""Name of the field that contains the message, in rows with several fields."""


class EstimateReports(beam.PTransform[Any, "dict[str, PCollection[Any]]"]):
    """The whole pipeline, from files or messages to estimates, with named outputs.

    Input: none, with ``files``; otherwise messages, as ``bytes`` or as rows with one field, or a field ``payload``,
    that contains bytes or their Base64 text. All other input counts as one unread message
    (malformed).

    Output: ``estimates``, ``values``, ``health``, ``ledger``, ``rejected`` and ``counts``, and ``discovered`` if the
    job searches for values, with the rows of ``uldp_transforms.EstimateReports``. Unreadable files and blocks appear in
    ``rejected`` and in ``ledger``.

    Args:
        files: pattern of Avro container files of reports.
        values: values of the job's specification; see ``SpecValues``.

    Logs a warning if windows do not fit the times to which clients round.

    Raises:
        SpecError: if a value is not allowed, or if an open alphabet has no candidates.
        OSError: if a file cannot be read.
    """

    _yaml_requires_inputs = False  # read by Beam YAML; otherwise files would need an "input: {}"

    def __init__(self, files: str | None = None, **values: Unpack[SpecValues]):
        super().__init__()
        require_keys("EstimateReports", values, (), ("files", *SPEC_FIELDS))
        if files is not None and (not isinstance(files, str) or not files):
            raise SpecError(f"EstimateReports.files must be a pattern of file names, got {describe(files)}")
        self._files = files if files is None or "://" in files else os.path.abspath(files)
        spec = JobSpec.of(**values)
        self._estimate = estimate_reports.EstimateReports(spec, with_counts=True)
        for warning in spec.rounding_warnings():
            _LOG.warning("EstimateReports: %s", warning)

    def expand(self, source: PBegin | PCollection[Any]) -> dict[str, PCollection[Any]]:
        outputs: Mapping[str, PCollection[Any]] = (self._messages(source) | "Estimate" >> self._estimate)._asdict()
        return {name: rows for name, rows in outputs.items() if rows is not None}

    def _messages(self, source: PBegin | PCollection[Any]) -> PCollection[bytes] | ReadFiles:
        if self._files is None:
            return _as_messages(source)
        if not isinstance(source, PBegin):
            raise SpecError("EstimateReports.files must be absent if there is an input, got both")
        return source | "ReadReportFiles" >> ReadReportFiles(self._files, grouped=True)


def _as_messages(source: Any) -> PCollection[bytes]:
    """The messages in rows; any other input unchanged, for ``EstimateReports`` to accept or refuse."""
    if isinstance(source, PBegin):
        raise SpecError("EstimateReports needs an input of messages, or files, got neither")
    came: Any = getattr(source, "element_type", None)
    rows = came if isinstance(came, row_type.RowTypeConstraint) else row_type.RowTypeConstraint.from_user_type(came)
    if rows is None:
        return source
    fields = dict(rows._fields)
    if len(fields) != 1 and PAYLOAD not in fields:
        raise SpecError(
            f"EstimateReports needs rows with one field or a field {PAYLOAD}, got the fields {', '.join(fields)}"
        )
    name = PAYLOAD if PAYLOAD in fields else next(iter(fields))
    if not any(is_consistent_with(fields[name], typehints.Optional[kind]) for kind in (bytes, str)):
        raise SpecError(f"EstimateReports needs bytes or Base64 text in the field {name}, got {fields[name]}")
    return source | "Payload" >> beam.Map(_message, name).with_output_types(bytes)


def _message(row: Any, field: str) -> bytes:
    """The message of a row; a value without a message becomes bytes that decoding rejects and counts."""
    value = getattr(row, field)
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            return b""
    return value if isinstance(value, bytes) else b""
