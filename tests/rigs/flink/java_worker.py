"""Beam's Java worker as a process of this machine; Flink starts it, with the arguments that Beam's containers get."""

from __future__ import annotations

import argparse
import os

import grpc
from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc
from google.protobuf import json_format, text_format

from tests.rigs.flink.cached import JARS
from tests.rigs.flink.processes import java

HARNESS = "org.apache.beam.fn.harness.FnHarness"


def main() -> None:
    """Ask the runner where to connect to, and become the worker."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--id", required=True)
    parser.add_argument("--provision_endpoint", required=True)
    args, _ = parser.parse_known_args()
    with grpc.insecure_channel(args.provision_endpoint) as channel:
        service = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
        request = beam_provision_api_pb2.GetProvisionInfoRequest()
        info = service.GetProvisionInfo(request, metadata=[("worker_id", args.id)]).info
    environment = {
        "HARNESS_ID": args.id,
        "LOGGING_API_SERVICE_DESCRIPTOR": text_format.MessageToString(info.logging_endpoint),
        "CONTROL_API_SERVICE_DESCRIPTOR": text_format.MessageToString(info.control_endpoint),
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
    }
    command = java(JARS.class_path, HARNESS)
    os.execvpe(command[0], command, os.environ | environment)


if __name__ == "__main__":
    main()
