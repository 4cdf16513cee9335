"""Reports from a Pub/Sub subscription."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager

import apache_beam as beam
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.pvalue import PCollection

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.engines.google_clients import require_google_clients
from uldp_transforms.jobs.engines.runners import LOCAL_STREAMS, choose_local_engine, require_credentials
from uldp_transforms.jobs.engines.signals import Stop
from uldp_transforms.jobs.message_attributes import set_groups_of
from uldp_transforms.jobs.pubsub.pubsub_access import require_subscription
from uldp_transforms.jobs.sources.source import Source
from uldp_transforms.messages.set_groups import SetGroups


class PubSubSubscription(Source):
    """Reads messages as they are published; the arrival time is the publish time."""

    option = "--subscription"
    help = "Pub/Sub subscription, projects/P/subscriptions/S"
    kind = staticmethod(cli.resource("subscriptions"))
    bounded = False
    resumes = True
    takes_attributes = True

    def __init__(self, subscription: str, set_groups: SetGroups | None = None):
        self.subscription = subscription
        self.set_groups = set_groups

    @classmethod
    def of(cls, args: argparse.Namespace, options: PipelineOptions) -> PubSubSubscription:
        require_google_clients(cls.option)
        choose_local_engine(options, streaming=True, option=cls.option)
        return cls(args.subscription, set_groups_of(args))

    def read(self, pipeline: beam.Pipeline) -> PCollection[bytes]:
        if self.set_groups is None:
            return pipeline | "ReadPubSub" >> beam.io.ReadFromPubSub(subscription=self.subscription)
        carried = beam.io.ReadFromPubSub(subscription=self.subscription, with_attributes=True)
        grouped = beam.Map(_grouped, self.set_groups).with_output_types(bytes)
        return pipeline | "ReadPubSub" >> carried | "SetGroups" >> grouped

    def draining(self, options: PipelineOptions, stop: Stop) -> AbstractContextManager[None] | None:
        if options.view_as(StandardOptions).runner != LOCAL_STREAMS:
            return None
        from uldp_transforms.jobs.pubsub.local_pubsub import reading_until  # noqa: PLC0415  # holds to parts of Beam that are not public

        return reading_until(stop)

    def check_access(self, options: PipelineOptions) -> None:
        if options.view_as(StandardOptions).runner == LOCAL_STREAMS:
            require_credentials()
            require_subscription(self.option, self.subscription)


def _grouped(message: PubsubMessage, set_groups: SetGroups) -> bytes:
    return set_groups.in_message(message.data, (message.attributes or {}).items())
