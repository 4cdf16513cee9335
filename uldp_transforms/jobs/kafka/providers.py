"""Settings of the Java Kafka consumer, read from a file where the consumer runs, by Kafka's config providers."""

from __future__ import annotations

import os

from uldp_transforms.jobs.kafka.settings import read_lines, refuse_taken, variable_of
from uldp_transforms.ldp.errors import SpecError

PROVIDERS = {"config.providers": "file,env"}
"""Settings that the user cannot change if there is such a file."""

_CLASSES = {
    "file": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "env": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}


def references_to(path: str, option: str) -> dict[str, str]:
    """The settings of a file as references, so that a job's graph does not contain their values.

    Only the names are read from the file here. ``NAME=VALUE`` becomes ``${file:PATH:NAME}``, and ``NAME=${VARIABLE}``
    ``${env:VARIABLE}``, which needs Kafka's client 3.5 or newer.

    Args:
        path: path of a file of NAME=VALUE lines, which must exist on each machine on which the consumer runs.
        option: name of the option for the file, for messages.

    Raises:
        SpecError: if the path cannot be part of a reference, a line is invalid or contains a backslash (an escape in
        Java, a character in librdkafka), or a setting configures providers; values are never shown.
        OSError: if the file cannot be read.
    """
    if ":" in path or "}" in path:
        raise SpecError(f"{option} must be a local path without : and }} for --kafka_reader java, got {path!r}")
    place = os.path.abspath(path)
    found = read_lines(place, option)
    refuse_taken(found, PROVIDERS, option)
    for name, value in found.items():
        if "\\" in name + value:
            raise SpecError(
                f"{option} must not contain a backslash for --kafka_reader java, got one in the setting {name}"
            )
    variables = {name: variable_of(value) for name, value in found.items()}
    settings = {name: f"${{env:{of}}}" if of else f"${{file:{place}:{name}}}" for name, of in variables.items()}
    used = ["file", "env"] if any(variables.values()) else ["file"]
    classes = {f"config.providers.{name}.class": _CLASSES[name] for name in used}
    return settings | {"config.providers": ",".join(used)} | classes
