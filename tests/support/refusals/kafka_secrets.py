"""Refusals of secrets of Kafka: calls and their sentences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.kafka.secrets import references_to
from uldp_transforms.jobs.sources.kafka_topic import KafkaTopic

SECRET = "hunter2"
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required username=u"
FILE = "--kafka_consumer_config"


def config(folder: Path, *lines: str) -> Path:
    path = folder / "consumer.properties"
    path.write_text("\n".join(["# of the job", "", *lines]), "utf-8")
    return path


def source_of(words: str) -> Callable[[], Any]:
    """The source that a command line names."""

    def call() -> Any:
        parser = cli.Parser(add_help=False)
        parser.add_argument(KafkaTopic.option)
        parser.set_defaults(collection=[], dimension=None)
        cli.add_options(parser, KafkaTopic.own_options)
        args, rest = parser.parse_known_args([*["--kafka_topic=t", "--bootstrap_servers=b:1"], *words.split("|")])
        return KafkaTopic.of(args, PipelineOptions(rest))

    return call


JAVA = "--kafka_reader=java|--runner=PortableRunner|--job_endpoint=localhost:1"
PYTHON = "--kafka_reader=python|--runner=PrismRunner"


def reading(folder: Path, line: str) -> Callable[[], Any]:
    return lambda: references_to(str(config(folder, line)), FILE)


WRONG: list[tuple[Callable[[Path], Callable[[], Any]], str]] = [
    (
        lambda _: lambda: references_to("gs://bucket/file", FILE),
        f"{FILE} must be a local path without : and }} for --kafka_reader java, got 'gs://bucket/file'",
    ),
    (
        lambda folder: reading(folder, SECRET),
        f"{FILE} must have NAME=VALUE in each line, got a different text in line 3",
    ),
    (
        lambda folder: reading(folder, f"sasl.jaas.config=password={SECRET}\\"),
        f"{FILE} must not contain a backslash for --kafka_reader java, got one in the setting sasl.jaas.config",
    ),
    (
        lambda folder: reading(folder, "config.providers=vault"),
        f"{FILE} must not contain config.providers, which this program sets, got config.providers",
    ),
    (
        lambda folder: source_of(f"{JAVA}|{FILE}={config(folder, 'a=b')}|--kafka_property=config.providers=vault"),
        f"--kafka_property beside {FILE} must not contain config.providers, which this program sets, got "
        "config.providers",
    ),
    (
        lambda _: source_of(f"{JAVA}|--kafka_property=sasl.jaas.config={LOGIN} password={SECRET};"),
        f"--kafka_property must not contain secrets, which belong in the file of {FILE}, got sasl.jaas.config",
    ),
    (
        lambda _: source_of(f"{PYTHON}|--kafka_property=sasl.password=${{file:/p:k}}"),
        f"--kafka_property must not contain secrets, which belong in the file of {FILE}, got sasl.password",
    ),
    (
        lambda _: source_of(f"{PYTHON}|--kafka_property=a=b|--kafka_property=a={SECRET}"),
        "--kafka_property must have one value for each name, got two different ones for a",
    ),
]
