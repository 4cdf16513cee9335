"""Outlets to which reports are published. A new outlet is a file here and a line below."""

from __future__ import annotations

from uldp_transforms.jobs.gateway.outlets.kafka_outlet import KafkaOutlet
from uldp_transforms.jobs.gateway.outlets.outlet import Outlet
from uldp_transforms.jobs.gateway.outlets.pubsub_outlet import PubSubOutlet

OUTLETS: list[type[Outlet]] = [
    PubSubOutlet,
    KafkaOutlet,
]
