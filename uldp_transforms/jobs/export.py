"""Writes a collection as clients need it: all symbols in order, integer weights, sizes, and the text that is hashed.

Prints the form_fingerprint, which apps pin: to standard output, or to standard error if the form goes there.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import Any

from uldp_transforms.files.collection_files import read_collections
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli, uldp
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.client.client_form import client_form, form_fingerprint


@dataclasses.dataclass(frozen=True, kw_only=True)
class Export:
    """Options of an export."""

    collection: Collection
    output: str | None


def configure(argv: Sequence[str]) -> Export:
    """Parse the command line; raises SpecError or OSError."""
    parser = cli.Parser("export", description=__doc__)
    parser.add_argument("collection", metavar="C.json", help="JSON file of the collection")
    parser.add_argument("--output", help="where to write the client form: a JSON file (default: standard output)")
    args = parser.parse_args(argv)
    [collection] = read_collections([args.collection])
    collection.mechanism.check_clients()
    return Export(collection=collection, output=args.output)


def job(export: Export) -> int:
    """Write the client form, and print its fingerprint."""
    form = client_form(export.collection)
    text, pinned = form_text(form), f"form_fingerprint {form_fingerprint(form)}"
    if export.output is None:
        sys.stdout.write(text)
        print(pinned, file=sys.stderr)
        return cli.DONE
    with whole_file(export.output) as file:
        file.write(text.encode())
    print(pinned)
    return cli.DONE


def form_text(form: dict[str, Any]) -> str:
    """JSON in ASCII, with one symbol or number per line, so that versions can be compared line by line."""
    return json.dumps(form, indent=1) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("export", configure, job, argv, faults_of_job=(OSError,))


if __name__ == "__main__":
    uldp.run_program("export")
