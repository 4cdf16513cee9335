"""Where reports can be published. A new outlet is a file here and a line below."""

from __future__ import annotations

from .kafka_outlet import KafkaOutlet
from .outlet import Outlet
from .pubsub_outlet import PubSubOutlet

OUTLETS: list[type[Outlet]] = [
    PubSubOutlet,
    KafkaOutlet,
]
