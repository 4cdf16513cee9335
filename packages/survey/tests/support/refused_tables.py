"""What the programs refuse: the kind of error, the call, and its sentence."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_survey import regress
from uldp_transforms_survey.navigations.navigation_lines import table_of_paths
from uldp_transforms_survey.navigations.navigations_command import _quantile, configure
from uldp_transforms_survey.navigations.navigations_table import Columns, Navigations, read_navigations
from uldp_transforms_survey.survey import survey_command

ANSWERS = Path(__file__).parents[4] / "tests" / "data" / "browser_confidence.csv.gz"


def navigations_twice() -> None:
    Path("n.jsonl").write_text("{}\n", encoding="utf-8")
    table_of_paths(["n.jsonl", "n.jsonl"])


def regressing(options: str) -> Callable[[], Any]:
    """A call that reads a table of answers with covariates."""

    def call() -> None:
        rows = "".join(f"{row % 2},{row},{'ab'[row % 2]},n{row}\n" for row in range(51))
        Path("answers.csv").write_text(f"answer,x,y,z\n{rows}", encoding="utf-8")
        covariates = "" if "--covariates" in options else "--covariates x"
        regress.job(regress.configure(shlex.split(f"answers.csv --design direct {covariates} {options}")))

    return call


def answering(options: str, table: str = "answer\n1\n0\n") -> Callable[[], Any]:
    """A call that reads a table of survey answers."""

    def call() -> None:
        Path("answers.csv").write_text(table, encoding="utf-8")
        survey_command.job(survey_command.configure(shlex.split(f"answers.csv {options}")))

    return call


def read(**names: str) -> Navigations:
    given = {"value": "value", "rate": "randomized_trigger_rate", "duration": "duration_ms"}
    return read_navigations(table_of_paths([str(ANSWERS)]), str(ANSWERS), Columns(**{**given, **names}))


def several_kinds() -> None:
    table_of_paths([str(ANSWERS), str(ANSWERS)])


def without_files() -> None:
    table_of_paths([str(ANSWERS), str(ANSWERS.parent)])


REFUSED: list[tuple[type[Exception], Callable[[], Any], str]] = [
    # survey, regress
    *(
        (SpecError, answering(options), sentence)
        for options, sentence in (
            (
                "--design kuk",
                "--design must be direct, crosswise:RATE, forced:TRUTH,YES, unrelated:TRUTH,YES, or the name of a "
                "column, got 'kuk'",
            ),
            (
                "--design crosswise:x",
                "--design must have rates from 0 to 1 such as 0.16 or 1/6, or names of columns, got 'x'",
            ),
            ("--design direct --yes a --no a", "--yes and --no must be different texts, got 'a' for both"),
            ("--design crosswise", "--design must be crosswise:RATE, got 'crosswise'"),
            (
                "--design direct --question answer",
                "--question, --answer and --people must name different columns, got answer, answer",
            ),
            (
                "--design direct --anchor x=0 --question q",
                "--anchor needs --inattentive, got none",
            ),
            (
                "--design direct --anchor x=0 --inattentive one",
                "--anchor needs --question, got none",
            ),
            (
                "--design direct --anchor 0.5 --inattentive one --question q",
                "--anchor must be QUESTION=SHARE with a share from 0 to 1, got '0.5'",
            ),
            (
                "--design direct --anchor x=5% --inattentive one --question q",
                "--anchor must be QUESTION=SHARE with a share from 0 to 1, got 'x=5%'",
            ),
            (
                "--design crosswise:0.2 --inattentive one",
                "--inattentive one needs --anchor, or two rates of a design whose answers determine both shares, got "
                "neither",
            ),
            ("--design direct --weight answer", "--weight must name a column of its own, got 'answer'"),
            (
                "--design direct --people x",
                "--people must name one column of answers.csv, got 'x', found 0 times; CSV must begin with its header",
            ),
        )
    ),
    (
        SpecError,
        answering("--design crosswise:0.2 --inattentive one --anchor x=0 --question q", "q,answer\ny,1\ny,0\n"),
        "--anchor must name a question of the table, got 'x'",
    ),
    (SpecError, answering("--design direct", "answer\n"), "answers.csv must have at least one row, got none"),
    (
        SpecError,
        answering("--design direct --question q", "q;answer\n1;1\n1;2\n"),
        "answers.csv has answers in answer of which one is known to mean yes, others are unknown and none means no; "
        "name the texts of both with --yes and --no",
    ),
    (
        SpecError,
        answering("--design direct", "answer\n1\n0\n2\n"),
        "answers.csv must have at most 0.05 of its people in rows that cannot be read (--max_unreadable), got 0.3333; "
        "1 row: an answer in answer that is neither 1/yes/true nor 0/no/false (line 4); name the texts of answers with "
        "--yes and --no",
    ),
    (
        SpecError,
        answering("--design crosswise:rate", "answer;rate\n1;0,2\n0;0,2\n"),
        "answers.csv must have at most 0.05 of its people in rows that cannot be read (--max_unreadable), got 1; "
        "2 rows: no rates of crosswise that tell yes from no in rate (line 2, line 3); write rates such as "
        "0.2 or 1/5, with a decimal point",
    ),
    *(
        (SpecError, regressing(options), sentence)
        for options, sentence in (
            ("--categories z", "--categories must name columns of --covariates, got 'z'"),
            ("--base x=1", "--base must name columns of categories, got 'x', a column of numbers"),
            (
                "--covariates y --base y=b --base y=c",
                "--base must have one value for each name, got two different ones for y",
            ),
            ("--covariates y --base y=c", "--base must name a category of y, got one that no row has"),
            (
                "--covariates z",
                "--covariates must name columns of numbers, or of at most 50 different texts, got z with 51",
            ),
        )
    ),
    (
        SpecError,
        lambda: regress.configure(shlex.split("answers.csv --design direct --covariates x,x")),
        "--covariates must name each column once, got 'x,x'",
    ),
    (SpecError, navigations_twice, "each file of navigations must be named once, got 'n.jsonl' several times"),
    (SpecError, answering("--design direct", ""), "answers.csv must have a header, or JSON objects, got none"),
    # navigations
    (SpecError, several_kinds, f"several files must be JSON lines (.jsonl), got {ANSWERS.name!r}"),
    (
        SpecError,
        without_files,
        f"a directory of navigations must contain navigations-*.jsonl, got none in {str(ANSWERS.parent)!r}",
    ),
    (SpecError, lambda: configure([]), "uldp navigations needs files or --kafka_topic, got none"),
    (
        SpecError,
        lambda: configure(["a.jsonl", "--kafka_topic", "t"]),
        "uldp navigations needs files or --kafka_topic, got both",
    ),
    (
        SpecError,
        lambda: configure(["--kafka_topic", "t"]),
        "--kafka_topic and --bootstrap_servers must be given together, got --kafka_topic alone",
    ),
    (
        SpecError,
        lambda: configure(["a.jsonl", "--bootstrap_servers", "s"]),
        "--kafka_topic and --bootstrap_servers must be given together, got --bootstrap_servers alone",
    ),
    (
        SpecError,
        lambda: read(rate="r"),
        f"--rate_column must name one column of {ANSWERS}, got 'r', found 0 times; CSV must begin with its header",
    ),
    (argparse.ArgumentTypeError, lambda: _quantile("1"), "must be a number between 0 and 1, got '1'"),
]
