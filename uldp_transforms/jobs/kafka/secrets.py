"""Secrets stand on no command line: which settings of Kafka's clients are some."""

from __future__ import annotations

import re
from collections.abc import Iterable

from uldp_transforms.ldp.errors import SpecError

_NAME = re.compile(r"password|passphrase|secret|\.key(\.pem)?$", re.IGNORECASE)
"""Of settings whose value is secret; ``ssl.key.location`` is a path."""

_REFERENCE = re.compile(r"\$\{[^:}]+:[^}]+\}")

_OPTION = re.compile(r"(password|passphrase|secret)\w*\s*=(?!\s*[\"']?\$\{[^:}]+:)", re.IGNORECASE)
"""Within a value, such as that of ``sasl.jaas.config``: an option that is secret, and no reference."""


def refuse_secrets(properties: Iterable[tuple[str, str]], file_option: str, references: bool = False) -> None:
    """Refuse a secret that stands in a command line, and so in the process list and in the job's graph.

    Args:
        properties: names and values of ``--kafka_property``.
        file_option: names the file in which secrets may stand.
        references: whether a value may be a reference of Kafka's config providers, ``${PROVIDER:PATH:KEY}``, which the
            client resolves where it runs; Java's does, librdkafka does not.

    Raises:
        SpecError: for the first one; its name is shown, its value never.
    """
    for name, value in properties:
        referred = references and _REFERENCE.fullmatch(value.strip())
        if _OPTION.search(value) or (_NAME.search(name) and not referred):
            raise SpecError(
                f"--kafka_property must leave out secrets, which stand in the file of {file_option}, got {name}"
            )
