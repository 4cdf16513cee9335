"""Settings of librdkafka, Confluent's Kafka client: from files that each worker reads, and from its environment."""

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
    """The package, an extra of this one.

    Args:
        needed: beginning of the sentence if it is not there: who needs it.

    Raises:
        SpecError: it is not installed.
    """
    try:
        import confluent_kafka  # noqa: PLC0415  # an extra
    except ImportError:
        raise SpecError(f"{needed} the package confluent-kafka (pip install '.[kafka]'), got none") from None
    return confluent_kafka


def read_lines(path: str, option: str) -> dict[str, str]:
    """The settings of a file as they stand there.

    Args:
        path: of a file with NAME=VALUE in each line, ``#`` before comments; may be in a store.
        option: that names it, for messages.

    Raises:
        SpecError: for a line that is none; values are never shown.
        OSError: the file cannot be read.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise SpecError(f"{option} must have NAME=VALUE in each line, got another line {number}")
        found[name] = value
    return found


def variable_of(value: str) -> str | None:
    """The variable of the environment that a value names, ``${NAME}``; None: it names none."""
    named = _VARIABLE.fullmatch(value)
    return None if named is None else named[1]


def read_settings(path: str, option: str) -> dict[str, str]:
    """The settings of a file, with variables of the environment in place of ``${NAME}``.

    Raises:
        SpecError: what ``read_lines`` raises, or a variable that is not set.
        OSError: the file cannot be read.
    """
    return {name: _with_environment(name, value, option) for name, value in read_lines(path, option).items()}


def _with_environment(name: str, value: str, option: str) -> str:
    variable = variable_of(value)
    if variable is None:
        return value
    if variable not in os.environ:
        raise SpecError(f"{option} names a variable for {name} that must be set, got no {variable}")
    return os.environ[variable]


def refuse_taken(found: dict[str, str], ours: dict[str, str], owner: str) -> None:
    """Refuse settings that are not left to the user; raises SpecError that begins with ``owner``."""
    taken = sorted(set(ours) & set(found))
    if taken:
        raise SpecError(f"{owner} must leave out {', '.join(ours)}, which are set here, got {taken[0]}")


def accepted(make: Callable[[], Client], owner: str) -> Client:
    """A client of librdkafka.

    Args:
        make: makes it.
        owner: of the settings, for messages.

    Raises:
        SpecError: librdkafka refuses one of them; its name is shown, its value never.
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
        got = named[1] if named else "one, or several together, that it refuses"
        raise SpecError(f"settings of {owner} must be those of librdkafka, got {got}") from None


def words_of(error: Any) -> str:
    """librdkafka's words in a ``KafkaException``, without its codes and what it was doing."""
    return re.sub(r"^(Failed to get metadata|Unable to produce message): ", "", error.args[0].str())
