"""Dimensions that attributes of messages, or headers of records, give: the option, and what sets them."""

from __future__ import annotations

import argparse

from uldp_transforms.files.collection_files import read_collections
from uldp_transforms.jobs import cli
from uldp_transforms.ldp.alphabets.dimensions import ATTRIBUTE
from uldp_transforms.messages.set_groups import SetGroups

ATTRIBUTES: cli.Options = {
    "--dimension": {
        "action": "append",
        "metavar": "NAME=attribute:KEY",
        "type": cli.dimension_from(ATTRIBUTE),
        "help": "where a dimension with set_by attribute comes from: an attribute of messages (Pub/Sub) or a header of "
        "records (Kafka), such as country=attribute:cc; may be given several times",
    },
}
"""Options of all sources whose messages have attributes."""


def set_groups_of(args: argparse.Namespace) -> SetGroups | None:
    """What sets the dimensions of ``--collection`` that attributes give; None if there are none.

    Raises:
        SpecError, OSError: if a collection cannot be read, or ``--dimension`` does not name exactly these dimensions.
    """
    collections = read_collections(cli.matching("--collection", args.collection))
    found = SetGroups(tuple(collections), ATTRIBUTE, tuple(args.dimension or ()))
    return found if found.is_needed else None
