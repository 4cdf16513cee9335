"""The command line of ``uldp navigations``."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.files.text_table import aligned
from uldp_transforms.jobs.kafka.offsets import ConsumerSettings
from uldp_transforms.jobs.kafka.reader import KafkaReadError
from uldp_transforms.jobs.kafka.secrets import refuse_secrets
from uldp_transforms.jobs.pictures import drawing
from uldp_transforms.ldp.confidence import INTERVAL
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_survey import navigations
from uldp_transforms_survey.navigations.navigation_estimates import estimates, estimates_of_windows
from uldp_transforms_survey.navigations.navigation_lines import table_of_paths, table_of_topic
from uldp_transforms_survey.navigations.navigation_words import rate_in_words, sentences_about, share_in_words, shown
from uldp_transforms_survey.navigations.navigations_table import Columns, Navigations, read_navigations
from uldp_transforms_survey.survey.answer_options import MAX_UNREADABLE
from uldp_transforms_survey.survey.cells import used
from uldp_transforms_tables.people_options import TABLE, TIMES
from uldp_transforms_tables.table import Table

NO_RESULT = 1

_KAFKA: cli.Options = {
    "--kafka_topic": {
        "help": "Kafka topic (needs --bootstrap_servers) whose current records are read instead of files, each with "
        "one or more JSON lines"
    },
    "--bootstrap_servers": {"type": cli.servers, "help": "HOST:PORT of Kafka's brokers, separated by commas"},
    "--kafka_property": {
        "type": cli.name_and_value,
        "action": "append",
        "help": "NAME=VALUE, a setting of librdkafka such as security.protocol=SASL_SSL, not a secret; may be given "
        "several times",
    },
    "--kafka_consumer_config": {
        "metavar": "FILE",
        "help": "file with further settings of librdkafka such as TLS and SASL, one NAME=VALUE per line; the value "
        "${NAME} stands for an environment variable",
    },
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Question:
    """Options of the program."""

    paths: tuple[str, ...]
    topic: str | None
    settings: ConsumerSettings | None
    columns: Columns
    window: int | None
    timezone: str | None
    time_format: str | None
    max_unreadable: float | None
    quantile: float
    json: str | None
    html: str | None


def command_line() -> argparse.ArgumentParser:
    parser = cli.Parser("navigations", description=navigations.__doc__)
    parser.add_argument(
        "path",
        metavar="FILE",
        nargs="*",
        help="table of answers: navigations as JSON lines (.jsonl), the directory of a gateway (uldp gateway "
        f"--navigations), or several of them; or one table: {TABLE}",
    )
    parser.add_argument("--value_column", default="confidence", help='name of the column of answers, "high" or "low"')
    parser.add_argument(
        "--rate_column", default="rate", help="name of the column of replacement rates (randomizedTriggerRate)"
    )
    parser.add_argument(
        "--duration_column", default="duration", help="name of the column of loading times, in milliseconds"
    )
    parser.add_argument("--time_column", default="time", help="name of the column of times, with --window")
    cli.add_options(parser, TIMES)
    parser.add_argument(
        "--max_unreadable",
        metavar="SHARE",
        type=cli.share,
        help="largest share of rows that may be left out because of what the cells contain; missing cells do not count "
        f"(default: {MAX_UNREADABLE}; JSON lines, which anybody may have sent: 1)",
    )
    parser.add_argument(
        "--window", type=cli.duration("--window"), help="length of a window to estimate too, such as 1h"
    )
    parser.add_argument("--quantile", type=_quantile, default=0.75, help="quantile of the loading time to estimate")
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="JSON file for the estimates, one object per line: each window, and last the whole period",
    )
    parser.add_argument("--html", metavar="FILE", help="also write a page with charts and tables")
    cli.add_options(parser.add_argument_group("navigations in Kafka"), _KAFKA)
    return parser


def configure(argv: Sequence[str]) -> Question:
    """Parse the command line; raises SpecError."""
    args = command_line().parse_args(argv)
    if (args.kafka_topic is None) is not bool(args.path):
        got = "both" if args.path else "none"
        raise SpecError(f"uldp navigations needs files or --kafka_topic, got {got}")
    if (args.kafka_topic is None) is not (args.bootstrap_servers is None):
        given = "--kafka_topic" if args.kafka_topic else "--bootstrap_servers"
        raise SpecError(f"--kafka_topic and --bootstrap_servers must be given together, got {given} alone")
    if args.html is not None:
        drawing("report")
    properties = tuple(args.kafka_property or ())
    refuse_secrets(properties, "--kafka_consumer_config")
    return Question(
        paths=tuple(args.path),
        topic=args.kafka_topic,
        settings=args.kafka_topic and ConsumerSettings(args.bootstrap_servers, properties, args.kafka_consumer_config),
        columns=Columns(
            value=args.value_column,
            rate=args.rate_column,
            duration=args.duration_column,
            time=args.time_column if args.window else None,
        ),
        window=args.window,
        timezone=args.timezone,
        time_format=args.time_format,
        max_unreadable=args.max_unreadable,
        quantile=args.quantile,
        json=args.json,
        html=args.html,
    )


def job(question: Question) -> int:
    """Read the navigations, and print the estimates and the omitted rows."""
    found = _read(question)
    accounts = used(len(found.high), found.num_rows, found.left_out)
    whole = estimates(found, question.quantile) if len(found.high) else None
    if whole is not None:
        windows = list(estimates_of_windows(found, question.quantile, question.window)) if question.window else []
        if question.json is not None:
            with whole_file(question.json) as file:
                file.write("".join(f"{json.dumps(row)}\n" for row in (*windows, whole)).encode())
        if question.html is not None:
            from uldp_transforms_survey.navigations.navigations_page import page_of  # noqa: PLC0415  # charts load slowly

            with whole_file(question.html) as file:
                file.write(page_of(whole, windows, accounts).encode())
        print("\n".join([*_lines(whole), "", *(_window_lines(windows) if windows else [])]))
    print("\n".join(accounts))
    return NO_RESULT if whole is None or whole["misfit"] is not None else cli.DONE


def _read(question: Question) -> Navigations:
    if question.settings is not None and question.topic is not None:
        table: Table = table_of_topic(question.settings, question.topic)
        name = f"topic {question.topic}"
    else:
        table = table_of_paths(question.paths)
        name = question.paths[0] if len(question.paths) == 1 else f"{len(question.paths)} files"
    times = (question.timezone, question.time_format)
    return read_navigations(table, name, question.columns, *times, question.max_unreadable)


def _lines(row: dict[str, Any]) -> list[str]:
    q = row["durations"][0]["quantile"]["q"]
    table = [
        (
            "navigations",
            "mean ms",
            INTERVAL,
            f"p{100 * q:g} ms",
            INTERVAL,
        )
    ]
    for each in row["durations"]:
        table.append((each["class"], *shown(each["mean"]), *shown(each["quantile"])))
    found = sentences_about(row)
    return [
        f"{row['num_reports']:,} navigations, undisturbed: {share_in_words(row)}",
        "",
        *aligned(table),
        *(["", *aligned(_rate_cells(row["rates"], q))] if len(row["rates"]) > 1 else []),
        *(["", *found] if found else []),
    ]


def _rate_cells(rows: Sequence[dict[str, Any]], q: float) -> list[tuple[str, ...]]:
    table: list[tuple[str, ...]] = [("rate", "navigations", "undisturbed", f"p{100 * q:g} ms high", INTERVAL)]
    for row in rows:
        high = shown(row["durations"][0]["quantile"])
        table.append((rate_in_words(row), f"{row['num_reports']:,}", share_in_words(row), *high))
    return table


def _window_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    q = rows[0]["durations"][0]["quantile"]["q"]
    table = [("window", "navigations", "undisturbed", f"p{100 * q:g} ms high", INTERVAL)]
    for row in rows:
        high = row["durations"][0]["quantile"]
        table.append((row["window_start"], f"{row['num_reports']:,}", share_in_words(row), *shown(high)))
    return [*aligned(table), ""]


def _quantile(text: str) -> float:
    """An argparse type: a number between 0 and 1."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1, got {text!r}")
    return number


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns the exit code."""
    return cli.run("navigations", configure, job, argv, faults_of_job=(SpecError, OSError, KafkaReadError))
