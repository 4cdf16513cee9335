"""The command line of a job that follows a source: its options, and which others it cannot be combined with."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.kafka import topic_options
from uldp_transforms.jobs.message_attributes import ATTRIBUTES
from uldp_transforms.jobs.records import row_file_options
from uldp_transforms.jobs.spec_options import COLLECTION, options_of_samples, spec_options
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.spec.spec_fields import Section

FOLLOW: dict[str, Any] = cli.SWITCH | {
    "default": None,
    cli.IS_COMMON: True,
    "help": "run until SIGTERM on this machine without an engine, over --input, the directory of uldp gateway --spool, "
    "or over --kafka_topic: count each file or record once, and estimate each window when it is due; restarts lose and "
    "repeat nothing; rows are written at once, or together if --flush_every is given",
}
"""Arguments of ``--follow``."""

SUPPORTED = (
    *("collection", "input", "follow", "output", "write_counts", "write_json", "write_parquet", "flush_every"),
    *("kafka_topic", "bootstrap_servers", "kafka_from", "kafka_timestamps", "kafka_idle_lag"),
    *("kafka_property", "kafka_consumer_config", "dimension"),
    *("window", "slide", "window_offset", "timezone", "allowed_lateness", "early_every", "late_every"),
    *("bit_patterns", "deduplicate", "deduplicate_by", "deduplicate_parts"),
    *options_of_samples(),
)
"""Options of ``uldp estimate`` that may be given with ``--follow``."""


def arguments_of(argv: Sequence[str]) -> argparse.Namespace | None:
    """The arguments of a command line of ``--follow`` with supported options only.

    None for all others: the parser of the main job, which imports Beam and the classes of other packages, says then
    what is wrong.
    """
    if not any(word.partition("=")[0] == "--follow" for word in argv):
        return None
    try:
        args, others = _command_line().parse_known_args(argv)
    except SpecError:
        return None
    return None if others or not args.follow else args


def _command_line() -> cli.Parser:
    """A parser of the supported options, which are those of the main job."""
    parser = cli.Parser("estimate", add_help=False)
    cli.add_options(parser, {**COLLECTION, "--follow": FOLLOW})
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--input")
    source.add_argument("--kafka_topic")
    of_spec = spec_options(Section.WINDOWS, Section.COUNTING, Section.ESTIMATES)
    for options in (topic_options.OPTIONS, ATTRIBUTES, row_file_options.OPTIONS, of_spec):
        cli.add_options(parser, {name: settings for name, settings in options.items() if name[2:] in SUPPORTED})
    return parser


def unsupported(parser: cli.Parser) -> Iterator[argparse.Action]:
    """The options of a parser that cannot be combined with ``--follow``."""
    return (action for action in parser.actions() if action.dest not in (*SUPPORTED, "help"))


def excluded_options(parser: cli.Parser) -> str:
    """What the end of the long help says: the options of the parser that ``--follow`` excludes."""
    names = [_name_of(action) for action in unsupported(parser) if action.help != argparse.SUPPRESS]
    return f"--follow cannot be combined with {', '.join(sorted(names))}, nor with options of Beam."


def _name_of(action: argparse.Action) -> str:
    return action.option_strings[0]


def check_supported(args: argparse.Namespace, parser: cli.Parser | None, beam_args: Sequence[str]) -> None:
    """Refuse in one sentence all options that ``--follow`` does not support, and name those that it lacks.

    Args:
        args: parsed command line.
        parser: the parser of the main job; None: one of supported options only.
        beam_args: arguments that are not the parser's.

    Raises:
        SpecError: if there are any.
    """
    parser, parts = parser or _command_line(), []
    if args.input is None and args.kafka_topic is None:
        parts.append("needs --input or --kafka_topic, got none")
    if args.window is None:
        parts.append("needs --window, got none")
    own = [_name_of(one) for one in unsupported(parser) if getattr(args, one.dest) != parser.get_default(one.dest)]
    others = list(dict.fromkeys(word.partition("=")[0] for word in beam_args if word.startswith("--"))) or beam_args[:1]
    if excluded := [*own, *others]:
        hint = parser.nearest_option(others[0]) if others else ""
        got = "both" if len(excluded) == 1 else "all of them"
        parts.append(f"cannot be combined with {_listed(excluded)}, got {got}{hint}")
    if parts:
        raise SpecError(f"--follow {'; it '.join(parts)}")


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
