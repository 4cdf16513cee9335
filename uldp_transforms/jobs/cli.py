"""Shared parts of all command lines: one-line errors, option types, and exit code 2 for a wrong configuration."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from uldp_transforms.calendar_windows import is_months
from uldp_transforms.files import stores
from uldp_transforms.jobs import uldp
from uldp_transforms.jobs.old_names import in_new_words
from uldp_transforms.ldp.checks import nearest
from uldp_transforms.ldp.confidence import ALLOWED_CONFIDENCE, is_confidence
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import parse_duration

T = TypeVar("T")

DONE, WRONG_CONFIGURATION, DISK_FULL, UNREAD = uldp.DONE, uldp.WRONG_CONFIGURATION, uldp.DISK_FULL, 7

_FULL = uldp.FULL
_SAYS_FULL = (*(f"[Errno {number}]" for number in _FULL), "database or disk is full")
"""How engines, which turn errors into text, and SQLite say that a disk is full."""

_FIELD = re.compile(r"\b(JobSpec|Windows|CalendarWindows)\.\w+|^estimator\.id\b")

_REQUIRED = "(the following arguments are|one of the arguments .* is) required"
"""How argparse says that an argument, or one of a group, is missing."""

_OPTION = re.compile(r"--\w+")

Options = Mapping[str, Mapping[str, Any]]
"""Command-line options: their arguments for argparse; ``label``, the title in forms that show them; and ``is_common``,
whether a short help shows them."""

IS_COMMON = "is_common"
_BESIDE = ("label", IS_COMMON)


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Help formatter that appends the default of an option unless its help names it, and the values of its type."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        named = action.default in (None, False, []) or "(default: " in (action.help or "")
        text = action.help if named else super()._get_help_string(action)
        if isinstance(action.type, Listed) and text is not None and action.help is not None:
            return text.replace(action.help, f"{action.help}: {', '.join(sorted(action.type.values))}", 1)
        return text

    def _format_usage(self, usage: Any, actions: Any, groups: Any, prefix: Any) -> str:
        """The program, the options that must be given, and the positional arguments; the others are listed below."""
        shown = [action for action in actions if action.required or not action.option_strings]
        text = super()._format_usage(usage, shown, (), prefix)
        return text.replace(self._prog, f"{self._prog} [options]", 1)


class Store(argparse.Action):
    """Stores the value of an option that may be repeated without any loss, the default action of ``Parser``.

    Lists add up, and other types may say with ``add`` how two values do. A single value may be repeated as it is;
    another one is refused, because it would silently replace the first.
    """

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        if option_string is not None:
            values = (
                _together(self, option_string, parser.given[self.dest], values) if self.dest in parser.given else values
            )
            parser.given[self.dest] = values
        setattr(namespace, self.dest, values)


def _together(action: argparse.Action, option: str, first: Any, second: Any) -> Any:
    """What an option and its repetition mean; raises SpecError."""
    if first is None or second is None:  # an empty list, which is as if the option were not given
        return first if second is None else second
    add = getattr(action.type, "add", None)
    if add is not None:
        return add(first, second)
    if isinstance(first, (list, tuple)):
        return type(first)([*first, *(value for value in second if value not in first)])
    if first != second:
        raise SpecError(f"{option} must have one value, got two different ones")
    return first


class _Help(argparse._HelpAction):
    """``--help`` shows the options that most people need, and ``--help all`` all of them."""

    def __init__(self, option_strings: Sequence[str], dest: str, **kwargs: Any):
        super().__init__(option_strings, dest, help="show this help message and exit; with all: every option")
        self.nargs, self.metavar = "?", "all"

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        parser.print_help(is_all=values == "all")
        parser.exit()


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line.

    Args:
        program: name, by which former names of options are found, and which ``--help`` shows as it was called:
            ``uldp NAME``, ``python -m uldp_transforms.jobs NAME``, or ``python -m pipelines.NAME`` in a checkout.
        add_help: whether there is ``--help``.
        has_short_help: whether ``--help`` shows only the options with ``is_common``, and ``--help all`` all of them.
        kwargs: further arguments of ``argparse.ArgumentParser``.
    """

    def __init__(
        self, program: str | None = None, *, add_help: bool = True, has_short_help: bool = False, **kwargs: Any
    ):
        if program is not None:
            kwargs["prog"] = _as_it_was_called(program)
        if kwargs.get("description") is not None:
            kwargs["description"] = kwargs["description"].replace("``", "`")  # docstrings mark code by two
        super().__init__(allow_abbrev=False, formatter_class=_HelpFormatter, add_help=False, **kwargs)
        self.program, self.has_short_help = program, has_short_help
        self.given: dict[str, Any] = {}
        """Destination -> value of the options of the command line that is being parsed."""
        self.last_words = ""
        """A paragraph at the end of the help of all options."""
        self._words: Sequence[str] = ()
        for name in (None, "store"):
            self.register("action", name, Store)
        if add_help:
            self.add_argument("-h", "--help", action=_Help)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.given = {}
        words = sys.argv[1:] if args is None else list(args)
        if self.program is not None:
            words = in_new_words(self.program, self.prog, words)
        self._words = words
        return super().parse_known_args(words, namespace)

    def print_help(self, file: Any = None, *, is_all: bool = True) -> None:
        instead = _INSTEAD_OF_HELP.get()
        if instead is not None:
            instead(self)
        elif is_all or not self.has_short_help:
            super().print_help(file)
            self._print_message(self._last_help(), file or sys.stdout)
        else:
            self._print_message(self._short_help(), file or sys.stdout)

    def _last_help(self) -> str:
        formatter = self._get_formatter()
        formatter.add_text(self.last_words)
        return f"\n{formatter.format_help()}" if self.last_words else ""

    def _short_help(self) -> str:
        """The help of the positional arguments, and of the options that most people need, in their groups."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, ())
        formatter.add_text(self.description)
        for group in self._action_groups:
            shown = [one for one in group._group_actions if not one.option_strings or _is_common(one)]
            formatter.start_section(group.title)
            formatter.add_arguments(shown)
            formatter.end_section()
        formatter.add_text(self.epilog)
        formatter.add_text(f"{self.prog} --help all shows all options.")
        return formatter.format_help()

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is no choice, in words that do not depend on the version of Python."""
        if action.choices is not None and value not in action.choices:
            name = action.option_strings[-1] if action.option_strings else action.metavar or action.dest
            raise SpecError(f"{name} must be one of {', '.join(map(str, action.choices))}, got {value!r}")

    def actions(self) -> list[argparse.Action]:
        """All options and arguments, in the order of the help."""
        return list(self._actions)

    def help_of(self, action: argparse.Action) -> str:
        """The help of an option as ``--help`` prints it, in one line."""
        return self._get_formatter()._expand_help(action) if action.help else ""

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (\S+)", message)
        near = "" if unknown is None else self.nearest_option(unknown[1])
        if re.match(_REQUIRED, message):  # one of them may be given under a wrong name
            for word in self._unknown_words():
                meant = self.nearest_option(word)
                if meant and re.search(rf"{_OPTION.findall(meant)[0]}\b", message):
                    raise SpecError(f"unrecognized arguments: {word.partition('=')[0]}{meant}")
        raise SpecError(re.sub(r"^argument (\S+): (?=must )", r"\1 ", message) + near)

    def _unknown_words(self) -> list[str]:
        """The words of the command line that are neither an option nor what follows one."""
        before = ["", *self._words]
        return [
            word
            for last, word in zip(before, self._words)
            if word.partition("=")[0] not in self._option_string_actions and (word[:1] == "-" or last[:1] != "-")
        ]

    def nearest_option(self, argument: str) -> str:
        """A question that suggests the option that an unknown argument stands for, for the end of a sentence: the most
        similar one, or ``--collection`` for a JSON file; may be empty."""
        if argument[:1] != "-" and argument.endswith(".json") and "--collection" in self._option_string_actions:
            return f"; did you mean --collection {argument}?"
        known = [option[2:] for option in self._option_string_actions if option.startswith("--")]
        meant = nearest(argument.partition("=")[0][2:], known) if argument.startswith("--") else None
        return "" if meant is None else f"; did you mean --{meant}?"


def _is_common(action: argparse.Action) -> bool:
    """Whether a short help shows an option."""
    return bool(vars(action).get(IS_COMMON))


_INSTEAD_OF_HELP: ContextVar[Callable[[Parser], None] | None] = ContextVar("_INSTEAD_OF_HELP", default=None)


def parser_of(program: Callable[[Sequence[str]], int]) -> Parser:
    """The parser of a program, which is not run: the one that would print the help.

    Args:
        program: its function ``main``.
    """
    found: list[Parser] = []
    token = _INSTEAD_OF_HELP.set(found.append)
    try:
        with contextlib.suppress(SystemExit):
            program(["--help"])
    finally:
        _INSTEAD_OF_HELP.reset(token)
    return found[0]


def _as_it_was_called(program: str) -> str:
    called = Path(sys.argv[0])
    if Path(__file__).parent in called.absolute().parents:
        return f"python -m uldp_transforms.jobs {program}"
    if called.stem == "uldp" or called.parent.name.startswith("uldp_transforms_"):  # a companion, by python -m
        return f"uldp {program}"
    return f"python -m pipelines.{program.replace('-', '_')}"


def run(
    name: str,
    configure: Callable[[Sequence[str]], T],
    job: Callable[[T], int],
    argv: Sequence[str] | None,
    faults_of_job: tuple[type[Exception], ...] = (),
) -> int:
    """Read the configuration, then run the job.

    Args:
        name: name of the program in its messages.
        configure: function from command line to configuration; ``ValueError`` and ``OSError`` are user errors.
        job: function that runs the job with the configuration.
        argv: arguments; None: those of this process.
        faults_of_job: errors of the job that are user errors.

    Returns:
        The exit code: the job's own; 2 for a wrong command line or configuration, or a machine without credentials; 6
        for a full disk; 141 if what reads the standard output ended first.
    """
    faults: tuple[type[Exception], ...] = (OSError, ValueError)  # SpecError, and errors of Beam's own options
    try:
        configuration = configure(sys.argv[1:] if argv is None else list(argv))
        faults = faults_of_job
        return job(configuration)
    except Exception as error:
        code = uldp.code_of_output(error) if isinstance(error, OSError) else None
        if code is not None:
            return code
        if isinstance(error, faults) or _lacks_credentials(error):
            return _wrong(name, error)
        raise


def _lacks_credentials(error: Exception) -> bool:
    """Whether Google's client library, if it was imported, found no credentials."""
    google = sys.modules.get("google.auth.exceptions")
    return google is not None and isinstance(error, google.DefaultCredentialsError)


def _wrong(name: str, error: Exception) -> int:
    if _lacks_credentials(error):
        message = f"Google Cloud needs credentials (gcloud auth application-default login), got: {error}"
    elif isinstance(error, OSError) and error.filename and error.strerror:
        message = f"{error.filename}: {error.strerror}"
    elif is_full(error):
        message = f"a disk is full: {error}"
    else:
        message = _in_options(str(error))
    print(f"{name}: {' '.join(message.split())}", file=sys.stderr)
    return DISK_FULL if is_full(error) else WRONG_CONFIGURATION


def _in_options(message: str) -> str:
    """A message of the library in the terms of a command line."""
    if not _FIELD.search(message):
        return message
    from uldp_transforms.jobs.spec_options import option_of  # noqa: PLC0415  # it imports this module

    return _FIELD.sub(lambda found: option_of(found[0]), message)


def is_full(error: BaseException | None) -> bool:
    """Whether an error says that a disk is full, or a quota used up."""
    while error is not None:
        if getattr(error, "errno", None) in _FULL or any(words in str(error) for words in _SAYS_FULL):
            return True
        error = error.__cause__
    return False


def matching(option: str, patterns: Sequence[str]) -> list[str]:
    """The sorted files of each pattern of an option; a plain local name matches itself."""
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


def add_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup, options: Options) -> None:
    """Add options to a parser or to one of its groups."""
    for name, settings in options.items():
        action = parser.add_argument(name, **{key: value for key, value in settings.items() if key not in _BESIDE})
        vars(action)[IS_COMMON] = settings.get(IS_COMMON, False)


class Listed:
    """An argparse type: converts a text with ``read``; the help lists its values.

    The values are iterated only when the help is requested, so a broken package that adds values cannot stop other
    commands.
    """

    def __init__(self, values: Iterable[str], read: Callable[[str], Any] = str):
        self.values, self._read = values, read

    def __call__(self, text: str) -> Any:
        return self._read(text)


_TEXT_OF_DURATION = "[0-9]{1,12}(ms|s|m|h|d|w%s)|P[0-9]{1,12}[DW%s]|PT[0-9]{1,12}[HMS]"


class OptionType:
    """An argparse type with a pattern of accepted texts, for forms that validate before the program does.

    Args:
        read: converts a text to a value; raises argparse.ArgumentTypeError.
        pattern: regular expression of the texts that a form accepts.
        add: joins the values of an option that is repeated; None: lists add up, and other values must be equal.
    """

    def __init__(self, read: Callable[[str], Any], pattern: str, add: Callable[[Any, Any], Any] | None = None):
        self.read = read
        self.pattern = pattern
        self.add = add

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
    """An argparse type: a duration, kept as text."""
    as_duration = duration(option)

    def parse(text: str) -> str:
        as_duration(text)
        return text

    return OptionType(parse, as_duration.pattern)


def window_length(option: str) -> OptionType:
    """An argparse type: a duration or a number of months such as ``1mo``, kept as text."""
    as_duration = duration(option)

    def parse(text: str) -> str:
        if not is_months(text):
            as_duration(text)
        return text

    return OptionType(parse, _TEXT_OF_DURATION % ("|mo", "M"))


def window_length_or(option: str, word: str) -> OptionType:
    """An argparse type: as ``window_length``, or this word."""
    length = window_length(option)
    return OptionType(lambda text: text if text == word else length(text), f"{length.pattern}|{word}")


def matches(pattern: str, allowed: str) -> OptionType:
    """An argparse type: a text that matches a pattern, which ``allowed`` describes."""

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
"""argparse arguments of a switch: the option alone means true; Dataflow templates must pass a value."""


def name_and_value(text: str) -> tuple[str, str]:
    """An argparse type: NAME=VALUE; errors do not show the text, which may contain a password."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError("must be NAME=VALUE (the value is not shown)")
    return name, value


def by_name(option: str, pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Values of a repeated option by name; raises SpecError, without the values, if a name has two different ones."""
    values: dict[str, str] = {}
    for name, value in pairs:
        if values.setdefault(name, value) != value:
            raise SpecError(f"{option} must have one value for each name, got two different ones for {name}")
    return values


def dimension_from(kind: str) -> OptionType:
    """An argparse type: NAME=kind:KEY, the name of a dimension and what gives its text; a header has a name of HTTP."""
    key = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+" if kind == "header" else "[!-~]+"

    def parse(text: str) -> tuple[str, str]:
        found = re.fullmatch(rf"([a-z][a-z0-9_]*)={kind}:({key})", text)
        if found is None:
            raise argparse.ArgumentTypeError(f"must be NAME={kind}:KEY, such as country={kind}:cc, got {text!r}")
        return found[1], found[2]

    return OptionType(parse, f"[a-z][a-z0-9_]*={kind}:{key}")


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


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be comma-separated numbers, got {text!r}") from None


_MOST_SEED = (1 << 64) - 1


def _seed(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a non-negative whole number, got {text!r}")
    if int(text) > _MOST_SEED:
        raise argparse.ArgumentTypeError(f"must be an integer in [0, {_MOST_SEED}], got {int(text)}")
    return int(text)


seed = OptionType(_seed, "[0-9]{1,20}")
"""An argparse type: a seed of random numbers."""


numbers = OptionType(_numbers, r"-?[0-9]*\.?[0-9]+(,-?[0-9]*\.?[0-9]+)*")
"""An argparse type: one or more numbers."""


def _names(text: str) -> list[str] | None:
    given = [name.strip() for name in text.split(",")]
    return None if given == [""] else given


names = OptionType(_names, r".*")
"""An argparse type: names with commas between them, which the job compares with those of its collections; an empty text
is as if the option were not given."""


def _columns(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


columns = OptionType(_columns, "[^,]+(,[^,]+)*")
"""An argparse type: names of columns with commas between them."""

servers = OptionType(str, "[^,]+(,[^,]+)*", add=lambda first, second: f"{first},{second}")
"""An argparse type: HOST:PORT of several servers with commas between them, kept as text."""


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


def _confidence(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not is_confidence(number):
        raise argparse.ArgumentTypeError(f"must be {ALLOWED_CONFIDENCE}, got {text!r}")
    return number


confidence = OptionType(_confidence, r"0?\.[0-9]*[1-9][0-9]*")
"""An argparse type: a level of confidence."""
