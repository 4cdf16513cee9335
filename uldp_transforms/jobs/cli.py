"""What all command lines share: one-line errors, types of options, and exit code 2 for a wrong configuration."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from uldp_transforms.calendar_windows import is_months
from uldp_transforms.files import stores
from uldp_transforms.files.collection_files import read_collection
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.checks import nearest
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import parse_duration

T = TypeVar("T")

DONE, WRONG_CONFIGURATION = uldp.DONE, uldp.WRONG_CONFIGURATION

Options = Mapping[str, Mapping[str, Any]]
"""Options of a command line: their arguments for argparse, and ``label``, their title in a form that has them."""


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Names the default of an option where there is one, and the values that its type lists."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        text = action.help if action.default in (None, False, []) else super()._get_help_string(action)
        if isinstance(action.type, Listed) and text is not None and action.help is not None:
            return text.replace(action.help, f"{action.help}: {', '.join(sorted(action.type.values))}", 1)
        return text


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line.

    Args:
        program: name, which ``--help`` shows in the way it was called: ``uldp NAME``, or ``python -m pipelines.NAME``
            in a checkout.
        kwargs: for ``argparse``.
    """

    def __init__(self, program: str | None = None, **kwargs: Any):
        if program is not None:
            kwargs["prog"] = f"uldp {program}" if _called_as_uldp() else f"python -m pipelines.{program}"
        super().__init__(allow_abbrev=False, formatter_class=_HelpFormatter, **kwargs)

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (\S+)", message)
        near = "" if unknown is None else self.nearest_option(unknown[1])
        raise SpecError(re.sub(r"^argument (\S+): (?=must )", r"\1 ", message) + near)

    def nearest_option(self, argument: str) -> str:
        """A question after the option that is meant by an unknown one, for the end of a sentence; or nothing."""
        known = [option[2:] for option in self._option_string_actions if option.startswith("--")]
        meant = nearest(argument.partition("=")[0][2:], known) if argument.startswith("--") else None
        return "" if meant is None else f"; did you mean --{meant}?"


def _called_as_uldp() -> bool:
    return Path(sys.argv[0]).stem == "uldp"


def run(
    name: str,
    configure: Callable[[Sequence[str]], T],
    job: Callable[[T], int],
    argv: Sequence[str] | None,
    faults_of_job: tuple[type[Exception], ...] = (),
) -> int:
    """Read the configuration, then do the job.

    Args:
        name: of the program, for its messages.
        configure: command line -> configuration; ``ValueError`` and ``OSError`` are the user's to mend.
        job: does the work with it.
        argv: arguments; None: of this process.
        faults_of_job: errors of the job itself that are the user's to mend.

    Returns:
        The exit code: the job's own, or 2 for a wrong command line or configuration, or a machine without credentials.
    """
    faults: tuple[type[Exception], ...] = (OSError, ValueError)  # SpecError, and what Beam says of its own options
    try:
        configuration = configure(sys.argv[1:] if argv is None else list(argv))
        faults = faults_of_job
        return job(configuration)
    except Exception as error:
        if isinstance(error, faults) or _lacks_credentials(error):
            return _wrong(name, error)
        raise


def _lacks_credentials(error: Exception) -> bool:
    """Whether Google's client, if it was imported at all, found no credentials."""
    google = sys.modules.get("google.auth.exceptions")
    return google is not None and isinstance(error, google.DefaultCredentialsError)


def _wrong(name: str, error: Exception) -> int:
    if _lacks_credentials(error):
        message = f"Google Cloud needs credentials (gcloud auth application-default login), got: {error}"
    elif isinstance(error, OSError) and error.filename and error.strerror:
        message = f"{error.filename}: {error.strerror}"
    else:
        message = str(error)
    print(f"{name}: {' '.join(message.split())}", file=sys.stderr)
    return WRONG_CONFIGURATION


def matching(option: str, patterns: Sequence[str]) -> list[str]:
    """The files that the patterns of an option name, each pattern's in order; a plain local name stands for itself."""
    paths: list[str] = []
    for pattern in patterns:
        if "://" not in pattern and not set("*?") & set(pattern):
            paths.append(pattern)
            continue
        found = stores.matching(pattern)
        if not found:
            raise SpecError(f"{option} must match at least one file, got {pattern!r}")
        paths += found
    return paths


def read_collections(paths: Sequence[str]) -> list[Collection]:
    """Collections from JSON files, local ones or of a store such as gs://; an error names the file."""
    return [read_collection(path) for path in paths]


def add_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup, options: Options) -> None:
    """Add options to a parser or a group of it."""
    for name, settings in options.items():
        parser.add_argument(name, **{key: value for key, value in settings.items() if key != "label"})


class Listed:
    """An argparse type: a text, or what ``read`` makes of it; the help lists values.

    The values are not iterated before somebody asks for the help: a package that is broken and adds to them stops no
    command that does not need it.
    """

    def __init__(self, values: Iterable[str], read: Callable[[str], Any] = str):
        self.values, self._read = values, read

    def __call__(self, text: str) -> Any:
        return self._read(text)


_TEXT_OF_DURATION = "[0-9]{1,12}(ms|s|m|h|d|w%s)|P[0-9]{1,12}[DW%s]|PT[0-9]{1,12}[HMS]"


class OptionType:
    """An argparse type that says what texts it takes, for forms that check before the program does.

    Args:
        read: makes a value of a text; raises argparse.ArgumentTypeError.
        pattern: regular expression of what a form lets pass.
    """

    def __init__(self, read: Callable[[str], Any], pattern: str):
        self.read = read
        self.pattern = pattern

    def __call__(self, text: str) -> Any:
        return self.read(text)


def duration(option: str) -> OptionType:
    """An argparse type: a duration such as ``1h`` in milliseconds."""

    def parse(text: str) -> int:
        try:
            return parse_duration(text, option)
        except SpecError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix(f"{option} ")) from None

    return OptionType(parse, _TEXT_OF_DURATION % ("", ""))


def duration_text(option: str) -> OptionType:
    """An argparse type: a duration as it was given."""
    as_duration = duration(option)

    def parse(text: str) -> str:
        as_duration(text)
        return text

    return OptionType(parse, as_duration.pattern)


def window_length(option: str) -> OptionType:
    """An argparse type: a duration, or a number of months such as ``1mo``, as it was given."""
    as_duration = duration(option)

    def parse(text: str) -> str:
        if not is_months(text):
            as_duration(text)
        return text

    return OptionType(parse, _TEXT_OF_DURATION % ("|mo", "M"))


def matches(pattern: str, allowed: str) -> OptionType:
    """An argparse type: a text of a form, which ``allowed`` describes."""

    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise argparse.ArgumentTypeError(f"must be {allowed}, got {text!r}")
        return text

    return OptionType(parse, pattern)


def resource(kind: str) -> OptionType:
    """An argparse type: the full name of a Pub/Sub resource."""
    return matches(f"projects/[^/]+/{kind}/[^/]+", f"projects/PROJECT/{kind}/NAME")


dataset = matches("[a-z][a-z0-9.:-]*[a-z0-9]:[A-Za-z0-9_]+", "PROJECT:DATASET")
"""An argparse type: the full name of a BigQuery dataset."""

_TRUTH = matches("true|false", "true or false")


def _truth(text: str) -> bool:
    return bool(_TRUTH(text) == "true")


SWITCH: dict[str, Any] = {
    "nargs": "?",
    "const": True,
    "default": False,
    "type": OptionType(_truth, _TRUTH.pattern),
    "metavar": "true|false",
}
"""Of an option that is on when it is named; templates of Dataflow must give a value."""


def name_and_value(text: str) -> tuple[str, str]:
    """An argparse type: NAME=VALUE; what came may be a password and is not repeated."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError("must be NAME=VALUE (the value is not shown)")
    return name, value


def positive(kind: type = int) -> OptionType:
    """An argparse type: a number above zero."""

    def parse(text: str) -> Any:
        try:
            number = kind(text)
        except ValueError:
            number = 0
        if not 0 < number < float("inf"):
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"must be {what} above 0, got {text!r}")
        return number

    return OptionType(parse, "[1-9][0-9]*" if kind is int else r"[0-9]*\.?[0-9]+")


def _share(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, got {text!r}")
    return number


share = OptionType(_share, r"0|1|0?\.[0-9]+")
"""An argparse type: a number from 0 to 1."""
