"""Detects secrets among Kafka settings, which must not appear on a command line."""

from __future__ import annotations

import re
from collections.abc import Iterable

from uldp_transforms.ldp.errors import SpecError

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
        SpecError: for the first secret; its name is shown, its value never.
    """
    for name, value in properties:
        referred = references and _REFERENCE.fullmatch(value.strip())
        if _OPTION.search(value) or (_NAME.search(name) and not referred):
            raise SpecError(
                f"--kafka_property must not contain secrets, which belong in the file of {file_option}, got {name}"
            )
