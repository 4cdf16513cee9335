"""Keeps secrets among Kafka settings off the command line and out of a job's graph.

The Java consumer reads settings from a file where it runs, by Kafka's config providers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.kafka.settings import read_lines, refuse_taken, variable_of
from uldp_transforms.ldp.errors import SpecError

PROVIDERS = {"config.providers": "file,env"}
"""Settings that the user cannot change if there is such a file."""

_CLASSES = {
    "file": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "env": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}

_NAME = re.compile(r"password|passphrase|secret|\.key(\.pem)?$", re.IGNORECASE)
"""Pattern of settings whose value is secret; ``ssl.key.location`` is a path."""

_REFERENCE = re.compile(r"\$\{[^:}]+:[^}]+\}")

_OPTION = re.compile(r"(password|passphrase|secret)\w*\s*=(?!\s*[\"']?\$\{[^:}]+:)", re.IGNORECASE)
"""Pattern of a secret option inside a value, such as that of ``sasl.jaas.config``, that is not a reference."""


def refuse_secrets(properties: Iterable[tuple[str, str]], file_option: str, references: bool = False) -> None:
    """Refuse a secret on the command line, where the process list and the job's graph would show it.

    Args:
        properties: names and values of ``--kafka_property``.
        file_option: name of the option for a file that may contain secrets.
        references: whether a value may be a reference of Kafka's config providers, ``${PROVIDER:PATH:KEY}``, which the
            client resolves where it runs; the Java client does, librdkafka does not.

    Raises:
        SpecError: for the first secret, or a name with two values, of which one would silently count; names are shown,
            values never.
    """
    given = list(properties)
    cli.by_name("--kafka_property", given)
    for name, value in given:
        referred = references and _REFERENCE.fullmatch(value.strip())
        if _OPTION.search(value) or (_NAME.search(name) and not referred):
            raise SpecError(
                f"--kafka_property must not contain secrets, which belong in the file of {file_option}, got {name}"
            )


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
