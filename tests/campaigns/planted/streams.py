"""Faults of the gateway, of streams of Kafka and Pub/Sub, of what follows them, and of engines."""

from __future__ import annotations

from tests.campaigns.planted.plant import Plant

STREAMS = (
    Plant(
        "a manifest that is only in memory",
        "uldp_transforms/jobs/gateway/spool_file.py",
        "        file.write(manifest_text([listed]))\n        sync_file(file)\n",
        "        file.write(manifest_text([listed]))\n",
        "a loss of power leaves an empty manifest, and nobody reads the file",
        ("tests/files/test_power_loss.py",),
    ),
    Plant(
        "only the first message of a pack",
        "uldp_transforms/jobs/gateway/packer.py",
        "            for message in messages:\n",
        "            for message in messages[:1]:\n",
        "reports without ids that arrive beside others are acknowledged and lost",
        ("tests/jobs/gateway/test_gateway_parts.py::test_reports_without_ids_are_delivered_beside_those_with_ids",),
    ),
    Plant(
        "a shuffle that everybody knows",
        "uldp_transforms/jobs/gateway/packer.py",
        "        rng = np.random.default_rng()\n",
        "        rng = np.random.default_rng(0)\n",
        "the order of arrival can be restored",
        ("tests/jobs/gateway/test_gateway_parts.py::test_no_two_packs_have_the_same_order",),
    ),
    Plant(
        "a producer that is kept after a fault",
        "uldp_transforms/jobs/kafka/producer.py",
        "            _producers.pop(settings, None)\n",
        "            pass\n",
        "a connection that no longer works is used until the process ends",
        ("tests/jobs/kafka/test_kafka_topics.py::test_a_producer_is_not_kept_after_a_fault",),
    ),
)
