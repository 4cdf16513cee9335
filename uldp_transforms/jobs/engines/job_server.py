"""Options of a Beam job server, such as Flink's, which describes them itself; Beam's Python SDK only passes them on."""

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
"""Endpoint value for Beam's own job server in this process, which cannot describe its options."""

SAVEPOINT = "--savepoint_path"
"""Flink's option for the savepoint that a job starts from."""

_FORMS: dict[Any, dict[str, Any]] = {
    job_api.PipelineOptionType.BOOLEAN: {"action": "store_true"},
    job_api.PipelineOptionType.INTEGER: {"type": int},
    job_api.PipelineOptionType.ARRAY: {"action": "append"},
}
"""argparse types of the options that are not text."""


def described_options(endpoint: str, seconds: float) -> Sequence[job_api.PipelineOptionDescriptor]:
    """The descriptions of its options from the job server at HOST:PORT.

    Args:
        endpoint: address of the job server.
        seconds: maximum time to wait for a response.

    Raises:
        SpecError: if the server does not respond.
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
    """Add missing options to a parser that only checks them, with the types that Beam uses when it passes them on."""
    for option in options:
        with contextlib.suppress(argparse.ArgumentError, ValueError):  # the option exists already, or has no name
            parser.add_argument(f"--{option.name}", **_FORMS.get(option.type, {}))


def goes_on(beam_args: Sequence[str]) -> bool:
    """Whether the job resumes from the state of a stopped one."""
    return any(argument == SAVEPOINT or argument.startswith(f"{SAVEPOINT}=") for argument in beam_args)
