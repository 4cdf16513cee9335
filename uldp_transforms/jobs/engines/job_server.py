"""Options of a job server of Beam, such as Flink's, which it describes itself; Python's Beam hands them on unread."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from typing import Any

import grpc
from apache_beam.portability.api import beam_job_api_pb2 as job_api
from apache_beam.portability.api import beam_job_api_pb2_grpc as job_service

from uldp_transforms.ldp.errors import SpecError

EMBEDDED = "embed"
"""In the place of an endpoint: Beam's own job server in this process, which describes nothing."""

SAVEPOINT = "--savepoint_path"
"""Flink's option for the state that a job begins with."""


_SWITCH = {"action": "store_true"}

_FORMS: dict[Any, dict[str, Any]] = {
    job_api.PipelineOptionType.BOOLEAN: _SWITCH,
    job_api.PipelineOptionType.INTEGER: {"type": int},
    job_api.PipelineOptionType.ARRAY: {"action": "append"},
}
"""Types of options that are not texts, for argparse."""


def described_options(endpoint: str, seconds: float) -> Sequence[job_api.PipelineOptionDescriptor]:
    """What the job server at HOST:PORT says of its options.

    Args:
        endpoint: of the job server.
        seconds: to wait for its answer.

    Raises:
        SpecError: nobody answers.
    """
    with grpc.insecure_channel(endpoint) as channel:
        try:
            asked = job_service.JobServiceStub(channel).DescribePipelineOptions(
                job_api.DescribePipelineOptionsRequest(), timeout=seconds, wait_for_ready=True
            )
        except grpc.RpcError as error:
            raise SpecError(
                f"--job_endpoint must be HOST:PORT of a job server, got {endpoint!r}: {error.code().name}"
            ) from None
    return list(asked.options)


def add_described(parser: argparse.ArgumentParser, options: Sequence[job_api.PipelineOptionDescriptor]) -> None:
    """Add options that the parser does not have, in the way in which Beam reads them when it hands them on."""
    for option in options:
        form = _FORMS.get(option.type, {})
        if form == _SWITCH and option.default_value == "true":
            form = {"action": "store_false"}
        with contextlib.suppress(argparse.ArgumentError, ValueError):  # it is there already, or has no name
            parser.add_argument(f"--{option.name}", **form)


def goes_on(beam_args: Sequence[str]) -> bool:
    """Whether the job begins with the state of one that was stopped."""
    return any(argument == SAVEPOINT or argument.startswith(f"{SAVEPOINT}=") for argument in beam_args)
