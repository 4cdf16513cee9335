"""Settings of Kafka's consumer in Java, from a file that it reads where it runs: by Kafka's own config providers."""

from __future__ import annotations

import os

from uldp_transforms.jobs.kafka.settings import read_lines, refuse_taken, variable_of
from uldp_transforms.ldp.errors import SpecError

PROVIDERS = {"config.providers": "file,env"}
"""What is not left to the user where there is such a file."""

_CLASSES = {
    "file": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "env": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}


def references_to(path: str, option: str) -> dict[str, str]:
    """The settings of a file as references, which are all that a job's graph has of them.

    The file is read here for its names only. ``NAME=VALUE`` becomes ``${file:PATH:NAME}``, and ``NAME=${VARIABLE}``
    ``${env:VARIABLE}``, which needs Kafka's client 3.5 or newer.

    Args:
        path: of a file of NAME=VALUE lines; each machine on which the consumer runs must have it there too.
        option: that names it, for messages.

    Raises:
        SpecError: for a path that a reference cannot have, a line that is none, a backslash (an escape for Java and a
            letter for librdkafka), or a setting of providers; values are never shown.
        OSError: the file cannot be read.
    """
    if ":" in path or "}" in path:
        raise SpecError(f"{option} must be a local path without : and }} for --kafka_reader java, got {path!r}")
    place = os.path.abspath(path)
    found = read_lines(place, option)
    refuse_taken(found, PROVIDERS, option)
    for name, value in found.items():
        if "\\" in name + value:
            raise SpecError(f"{option} must have no backslash for --kafka_reader java, got one in a setting, {name}")
    variables = {name: variable_of(value) for name, value in found.items()}
    settings = {name: f"${{env:{of}}}" if of else f"${{file:{place}:{name}}}" for name, of in variables.items()}
    used = ["file", "env"] if any(variables.values()) else ["file"]
    classes = {f"config.providers.{name}.class": _CLASSES[name] for name in used}
    return settings | {"config.providers": ",".join(used)} | classes
