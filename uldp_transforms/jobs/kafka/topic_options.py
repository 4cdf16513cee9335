"""The options of a Kafka topic as a source, and what they mean for a reader in Python."""

from __future__ import annotations

import argparse
import decimal
import math
import re
import time

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.kafka.offsets import ConsumerSettings
from uldp_transforms.jobs.kafka.reader import IDLE_LAG, Reading
from uldp_transforms.jobs.kafka.secrets import refuse_secrets
from uldp_transforms.jobs.message_attributes import set_groups_of
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME, moment_of

CREATE_TIME, LOG_APPEND_TIME = "CreateTime", "LogAppendTime"
"""Values of the topic setting ``message.timestamp.type``."""

PYTHON, JAVA = "python", "java"

NOW = "now"

CONFIG = "--kafka_consumer_config"

_SECONDS = re.compile(r"[+-]?[0-9]{1,12}(\.[0-9]{1,9})?")

OPTIONS: cli.Options = {
    "--bootstrap_servers": {
        cli.IS_COMMON: True,
        "type": cli.servers,
        "help": "HOST:PORT of Kafka's brokers, separated by commas",
    },
    "--kafka_timestamps": {
        "choices": (CREATE_TIME, LOG_APPEND_TIME),
        "help": f"message.timestamp.type of the topic; record timestamps are arrival times (default: {CREATE_TIME})",
    },
    "--kafka_property": {
        "type": cli.name_and_value,
        "action": "append",
        "help": "NAME=VALUE, a setting of Kafka's consumer such as security.protocol=SASL_SSL, not a secret; may "
        "be given several times",
    },
    "--kafka_reader": {
        "choices": (PYTHON, JAVA),
        "help": f"Kafka reader: {PYTHON} (librdkafka, reads in batches) or "
        f"{JAVA} (Beam's) (default: {PYTHON} for a "
        f"range and on DirectRunner and PrismRunner, otherwise {JAVA})",
    },
    "--kafka_from": {
        "metavar": "TIME",
        "help": "start at the first record at or after this time, RFC 3339 or seconds since 1970 (default: first "
        "available record)",
    },
    "--kafka_until": {
        "metavar": f"TIME|{NOW}",
        "help": "stop before the first record at or after this time, or, with "
        f"{NOW}, after the records that exist now (default: run as a stream)",
    },
    CONFIG: {
        "metavar": "FILE",
        "help": f"file with further consumer settings such as TLS and SASL, "
        f"one NAME=VALUE per line, with the names of "
        f"librdkafka for --kafka_reader {PYTHON} and of Kafka for {JAVA}; each worker reads the file; the value "
        "${NAME} stands for an environment variable",
    },
    "--kafka_idle_lag": {
        "type": cli.duration("--kafka_idle_lag"),
        "help": f"streams: watermark lag of a partition without new records (default: {IDLE_LAG // 1000}s)",
    },
    "--kafka_readers": {
        "type": cli.positive(),
        "help": "streams: number of workers that share the partitions (default: --parallelism, or 1)",
    },
    "--expansion_service": {
        "help": "HOST:PORT of an expansion service for Beam's Java transforms of Kafka (default: started by Beam)"
    },
}


def reading_options(args: argparse.Namespace, readers: int = 1) -> Reading:
    """Options for reading in Python; raises SpecError if a property is a secret, or no servers are given, and as
    ``set_groups_of``."""
    require_servers(args)
    properties = tuple(args.kafka_property or ())
    refuse_secrets(properties, CONFIG)
    return Reading(
        settings=ConsumerSettings(args.bootstrap_servers, properties, args.kafka_consumer_config),
        kind_of_times=args.kafka_timestamps or CREATE_TIME,
        idle_lag=IDLE_LAG if args.kafka_idle_lag is None else args.kafka_idle_lag,
        readers=readers,
        set_groups=set_groups_of(args),
    )


def first_moment(args: argparse.Namespace) -> int | None:
    """Milliseconds of ``--kafka_from``; None without; raises SpecError."""
    return moment_of_option(args.kafka_from, "--kafka_from")


def require_servers(args: argparse.Namespace) -> None:
    """Refuse a topic without brokers; raises SpecError."""
    if args.bootstrap_servers is None:
        raise SpecError("--kafka_topic needs --bootstrap_servers, got none")


def moment_of_option(text: str | None, option: str) -> int | None:
    """Milliseconds of a time; None without a text, and for ``now``."""
    if text is None or (text == NOW and option == "--kafka_until"):
        return None
    moment = _moment_of(text)
    if moment is None:
        raise SpecError(f"{option} must be RFC 3339 or seconds since 1970, got {text!r}")
    if moment > time.time_ns() // 1_000_000:
        raise SpecError(f"{option} must be a time that has passed, got {text!r}")
    return moment


def _moment_of(text: str) -> int | None:
    """Milliseconds of RFC 3339 or of seconds since 1970, rounded down; None for other texts and for years that no
    report has."""
    try:
        moment = math.floor(1000 * decimal.Decimal(text)) if _SECONDS.fullmatch(text) else moment_of(text)
    except (OverflowError, TypeError, ValueError):
        return None
    return moment if MIN_EVENT_TIME <= moment < MAX_EVENT_TIME else None
