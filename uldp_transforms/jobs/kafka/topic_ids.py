"""The id of a topic (KIP-516): a topic that is deleted and created again under the same name gets another one."""

from __future__ import annotations

from uldp_transforms.jobs.kafka.offsets import ANSWER_SECONDS, NEEDED, BrokersAwayError, ConsumerSettings
from uldp_transforms.jobs.kafka.settings import confluent_kafka, words_of


class TopicIds:
    """Asks brokers for the id of a topic.

    Args:
        settings: settings of consumers; raises as ``ConsumerSettings.consumer``.
        topic: name of the topic.
    """

    def __init__(self, settings: ConsumerSettings, topic: str):
        self._client = confluent_kafka(NEEDED)
        self._errors = self._client.KafkaError
        self._admin = settings.admin()
        self._topic = topic

    def ask(self) -> str | None:
        """The current id of the topic; None if brokers give none, as those before Kafka 2.8.

        Raises:
            BrokersAwayError: if brokers do not respond.
        """
        try:
            found = self._admin.list_topics(self._topic, timeout=ANSWER_SECONDS)
            if found.controller_id not in found.brokers:
                return None  # librdkafka would ask nobody else
            asked = self._client.TopicCollection([self._topic])
            answer = self._admin.describe_topics(asked, request_timeout=ANSWER_SECONDS)[self._topic].result()
        except self._client.KafkaException as error:
            if error.args[0].code() in (self._errors._UNSUPPORTED_FEATURE, self._errors.UNSUPPORTED_VERSION):
                return None
            raise BrokersAwayError(f"brokers of --bootstrap_servers must answer, got {words_of(error)}") from None
        words = (answer.topic_id.get_most_significant_bits(), answer.topic_id.get_least_significant_bits())
        return str(answer.topic_id) if any(words) else None
