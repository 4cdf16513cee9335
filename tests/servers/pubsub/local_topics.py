"""Creates topics on a Pub/Sub server of this machine, whatever PUBSUB_EMULATOR_HOST says."""

from __future__ import annotations

import grpc
from google.pubsub_v1 import PublisherClient, SubscriberClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

ACK_DEADLINE_SECONDS = 60


def create_topic(address: str, topic: str) -> str:
    """Create a topic and a subscription of the same name.

    Args:
        address: HOST:PORT of a server without TLS.
        topic: projects/PROJECT/topics/NAME.

    Returns:
        projects/PROJECT/subscriptions/NAME.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the server refuses, for example a name that it has already.
    """
    subscription = topic.replace("/topics/", "/subscriptions/")
    with grpc.insecure_channel(address) as channel:
        PublisherClient(transport=PublisherGrpcTransport(channel=channel)).create_topic(name=topic)
        SubscriberClient(transport=SubscriberGrpcTransport(channel=channel)).create_subscription(
            name=subscription, topic=topic, ack_deadline_seconds=ACK_DEADLINE_SECONDS
        )
    return subscription
