"""The parameters of the Dataflow template, made from the options of the program that it starts."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.estimate.options import command_line
from uldp_transforms.jobs.sinks import SINKS, KafkaTopics
from uldp_transforms.jobs.sources import SOURCES, KafkaTopic
from uldp_transforms.jobs.spec_options import conditions, in_words, unsaid_default
from uldp_transforms.spec.spec_fields import SPEC_FIELDS

PATH = "deploy/dataflow/metadata.json"

OF_FILES = {option for source in SOURCES if source.bounded for option in (source.option, *source.own_options)}
OF_KAFKA = {KafkaTopic.option, *KafkaTopic.own_options, *KafkaTopics.options}
OF_JAVA = {"--bigquery_method"}
NOT_OFFERED = {
    option[2:] for option in {"--report", "--follow", "--progress", "--borrow"} | OF_FILES | OF_KAFKA | OF_JAVA
}
"""The template reads a subscription, and its image has neither Java nor Kafka's client."""

STREAMS_NEED = {"subscription", *(name for name, field in SPEC_FIELDS.items() if field.streams_need)}

IN_STORE = "gs://[^/]+/.+"
PATTERNS = {"collection": IN_STORE, "output": IN_STORE, "candidates": IN_STORE, "estimator": "[a-z]+"}
PATTERNS |= {"timezone": "[A-Za-z0-9_+/-]+"}
"""Of options that take texts as they are; of others there is nothing to check."""

TYPES = {"subscription": "PUBSUB_SUBSCRIPTION", "output": "GCS_WRITE_FOLDER", "candidates": "GCS_READ_FILE"}
TYPES |= {"output_topic": "PUBSUB_TOPIC", "rejected_topic": "PUBSUB_TOPIC"}
"""What the form of Dataflow offers to choose from; other parameters are texts."""


OF_TABLES = [*(sink.options for sink in SINKS), *(source.own_options for source in SOURCES)]
LABELS = {name[2:]: settings.get("label") for options in OF_TABLES for name, settings in options.items()}
"""Titles of the options of sources and sinks."""

OWN_WORDS = {
    "collection": (
        "Collections",
        "JSON file of a collection, or a pattern for several: gs://BUCKET/collections/*.json",
    ),
    "subscription": (
        "Subscription with the reports",
        "full name, projects/PROJECT/subscriptions/NAME; exactly one job may read it",
    ),
    "dimension": (
        "Dimension from an attribute",
        "where the dimension with set_by attribute comes from: an attribute of messages, such as country=attribute:cc",
    ),
    "output": ("Folder for the results", "folder in Cloud Storage, gs://BUCKET/FOLDER"),
}
"""Label and help of options whose help on the command line would mislead here."""


def options() -> dict[str, argparse.Action]:
    """Name -> option of the program, of those that the template offers."""
    actions = {action.dest: action for action in command_line()._actions}
    return {name: action for name, action in actions.items() if name not in {"help", *NOT_OFFERED}}


def parameter(action: argparse.Action) -> dict[str, Any]:
    """An option of the program as the template declares it."""
    name = action.dest
    needed = action.required or name in STREAMS_NEED
    label, text = _words(action, needed)
    if action.type is cli.SWITCH["type"]:
        text = f"{text}; true or false"
    entry: dict[str, Any] = {"name": name, "label": label, "helpText": f"{text[0].upper()}{text[1:]}."}
    if name in TYPES:
        entry["paramType"] = TYPES[name]
    if not needed:
        entry["isOptional"] = True
    if action.default is not None:
        entry["defaultValue"] = str(action.default).lower()
    return entry | {"regexes": [f"^({_pattern(action)})$"]}


def _words(action: argparse.Action, needed: bool) -> tuple[str, str]:
    """Label and help."""
    field = SPEC_FIELDS.get(action.dest)
    if field is None:
        label = LABELS.get(action.dest)
        if action.dest not in OWN_WORDS and label is None:
            raise ValueError(f"--{action.dest} must have a label, or be in NOT_OFFERED, got neither")
        return OWN_WORDS.get(action.dest) or (label or "", (action.help or "").replace("--", ""))
    parts = [field.full_help, *conditions(field)]
    return field.label, in_words("; ".join(parts) + ("" if needed else unsaid_default(field)), "")


def _pattern(action: argparse.Action) -> str:
    if action.choices:
        return "|".join(map(re.escape, action.choices))
    return action.type.pattern if isinstance(action.type, cli.OptionType) else PATTERNS.get(action.dest, ".*")


def text(root: Path) -> str:
    """The file, with the parameters as the program has them, one a line; what it says of itself stays."""
    metadata = json.loads((root / PATH).read_text(encoding="utf-8"))
    entries = [json.dumps(parameter(action), ensure_ascii=False) for action in options().values()]
    head = json.dumps(metadata | {"parameters": []}, indent=2, ensure_ascii=False)
    return head.removesuffix("[]\n}") + "[\n    " + ",\n    ".join(entries) + "\n  ]\n}\n"
