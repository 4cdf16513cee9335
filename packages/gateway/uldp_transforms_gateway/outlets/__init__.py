"""Outlets to which reports are published. A new outlet is a file here and a line below."""

from __future__ import annotations

from uldp_transforms_gateway.outlets.kafka_outlet import KafkaOutlet
from uldp_transforms_gateway.outlets.outlet import Outlet
from uldp_transforms_gateway.outlets.pubsub_outlet import PubSubOutlet

OUTLETS: list[type[Outlet]] = [
    PubSubOutlet,
    KafkaOutlet,
]
