"""Settings of librdkafka, Confluent's Kafka client, from files and environment variables of each worker."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, TypeVar

from uldp_transforms.files.text_files import read_text
from uldp_transforms.ldp.errors import SpecError

Client = TypeVar("Client")

_VARIABLE = re.compile(r"\$\{(\w+)\}")


def confluent_kafka(needed: str) -> Any:
    """Import the optional client package.

    Args:
        needed: who needs it, as the beginning of the error message.

    Raises:
        SpecError: if it is not installed.
    """
    try:
        import confluent_kafka  # noqa: PLC0415  # an extra
    except ImportError:
        raise SpecError(f"{needed} the package confluent-kafka (pip install '.[kafka]'), got none") from None
    return confluent_kafka


def read_lines(path: str, option: str) -> dict[str, str]:
    """Read the settings of a file, without replacing variables.

    Args:
        path: path of a file with NAME=VALUE lines and ``#`` comments; may be in a store.
        option: name of the option for the file, for messages.

    Raises:
        SpecError: if a line is invalid; values are never shown.
        OSError: if the file cannot be read.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise SpecError(f"{option} must have NAME=VALUE in each line, got a different text in line {number}")
        found[name] = value
    return found


def variable_of(value: str) -> str | None:
    """The environment variable in a value ``${NAME}``; None if the value is not of this form."""
    named = _VARIABLE.fullmatch(value)
    return None if named is None else named[1]


def read_settings(path: str, option: str) -> dict[str, str]:
    """Read the settings of a file, with environment variables in place of ``${NAME}``.

    Raises:
        SpecError: as for ``read_lines``, or if a variable is not set.
        OSError: if the file cannot be read.
    """
    return {name: _with_environment(name, value, option) for name, value in read_lines(path, option).items()}


def _with_environment(name: str, value: str, option: str) -> str:
    variable = variable_of(value)
    if variable is None:
        return value
    if variable not in os.environ:
        raise SpecError(f"{option} takes {name} from the environment variable {variable}, which must be set, got none")
    return os.environ[variable]


def refuse_taken(found: dict[str, str], ours: dict[str, str], owner: str) -> None:
    """Refuse settings that users cannot change; raises a SpecError that begins with ``owner``."""
    taken = sorted(set(ours) & set(found))
    if taken:
        raise SpecError(f"{owner} must not contain {', '.join(ours)}, which this program sets, got {taken[0]}")


def accepted(make: Callable[[], Client], owner: str) -> Client:
    """Create a librdkafka client.

    Args:
        make: function that creates the client.
        owner: owner of the settings, for messages.

    Raises:
        SpecError: if librdkafka refuses a setting; its name is shown, its value never.
    """
    refused: tuple[type[Exception], ...] = (
        confluent_kafka("Kafka needs").KafkaException,
        TypeError,
        ValueError,
    )
    try:
        return make()
    except refused as error:
        named = re.search(r'property:? "([\w.]+)"', str(error))
        got = named[1] if named else "one, or a combination, that it refuses"
        raise SpecError(f"settings of {owner} must be settings of librdkafka, got {got}") from None


def words_of(error: Any) -> str:
    """librdkafka's message in a ``KafkaException``, without error codes and context."""
    return re.sub(r"^(Failed to get metadata|Unable to produce message): ", "", error.args[0].str())
