"""Refusals of dimensions: calls and their sentences."""

from __future__ import annotations

from tests.support.ldp.dimensions import ARM, GROUPED, ON_THE_WAY, PLAIN, dimension, of
from tests.support.refusals.tables import Refusal
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets.dimensions import (
    Dimension,
    RollUp,
)


def perturb(columns, collection=GROUPED):
    return lambda: collection.perturb(["a", "b"], dimensions=columns)


_NAMES = "Dimension.name must be a letter and up to 31 of a-z, 0-9 and '_', other than 'value' and 'event_time', got "
_VALUES = (
    "dimension 'arm': values must be texts in Unicode NFC of 1 to 256 bytes without ',', '=', control characters and "
    "outer white space, and other than 'other', which is implied, got "
)
REFUSED: list[Refusal] = [
    (of(), "Collection.dimensions must be a list of at least one dimension or null, got []"),
    (of("arm"), "Dimension must be a JSON object, got 'arm'"),
    (of({"name": "arm"}), "Dimension needs the key 'values', got 'name'"),
    (dimension(order=1), "Dimension takes the keys name, values, set_by, got 'order'"),
    (
        dimension(set_by="proxy"),
        "dimension 'arm': set_by must be client, gateway or attribute, got 'proxy'",
    ),
    (dimension(set_by=["client"]), "dimension 'arm': set_by must be client, gateway or attribute, got ['client']"),
    (
        of({"name": "d", "values": list(map(str, range(255))), "set_by": "gateway"}, num_cohorts=256),
        "Collection.dimensions must have fewer than 65536 groups times cohorts if one is not set by the client, "
        "because refused reports need a number, got as many",
    ),
    (dimension("Arm"), f"{_NAMES}'Arm'"),
    (dimension("value"), f"{_NAMES}'value'"),
    (dimension(values="ab"), "dimension 'arm': values must be a list of texts, got 'ab'"),
    (
        dimension(values=["a", "a"]),
        "dimension 'arm': values must not repeat an entry (in Unicode NFC), got 'a' twice",
    ),
    (dimension(values=[]), "dimension 'arm': values must have at least 1 entry, got 0"),
    (dimension(values=["other"]), f"{_VALUES}'other'"),
    (dimension(values=["a,b"]), f"{_VALUES}'a,b'"),
    (dimension(values=[" a"]), f"{_VALUES}' a'"),
    (
        dimension(values=["a b", "a  b"]),
        "dimension 'arm': values must differ in more than white space and invisible characters, got 'a  b' beside "
        "'a b'",
    ),
    (of(ARM, ARM), "Collection.dimensions: names must not repeat an entry (in Unicode NFC), got 'arm' twice"),
    (
        of(*({"name": f"d{i}", "values": ["a"]} for i in range(9))),
        "Collection.dimensions must be at most 8, got 9",
    ),
    (
        of(*({"name": f"d{i}", "values": list(map(str, range(256)))} for i in range(2))),
        "Collection.dimensions: groups times cohorts must be at most 65536, got 66049 groups (each dimension has "
        "one value more than it lists, 'other') and 1 cohort(s)",
    ),
    (
        lambda: Collection(
            id="a",
            version=1,
            alphabet=GROUPED.alphabet,
            mechanism=GROUPED.mechanism,
            dimensions=[Dimension("arm", ("a",))],
        ),
        "Collection.dimensions must be a tuple of Dimension, got [Dimension(name='arm', values=('a',), "
        "set_by='client')]",
    ),
    (perturb(None), "dimensions must give a value for country, arm, got none"),
    (perturb({"arm": ["new"] * 2}), "dimensions must give a value for country, arm, got arm"),
    (
        perturb({"country": ["DE"] * 2, "arm": ["new"] * 2}, ON_THE_WAY),
        "dimensions must give a value for arm (country is set by the gateway), got country, arm",
    ),
    (perturb({"arm": ["new"]}, PLAIN), "dimensions must give a value for no dimension, got arm"),
    (
        perturb({"country": "DE", "arm": "new"}),
        "dimension 'country' must have 2 texts, one per report, got a single str",
    ),
    (
        perturb({"country": ["DE"], "arm": ["new"]}),
        "dimension 'country' must have 2 texts, one per report, got 1",
    ),
    (
        perturb({"country": ["DE", None], "arm": ["new"] * 2}),
        "dimension 'country' must have texts only, got another type",
    ),
    (
        lambda: RollUp(GROUPED.dimensions, ("planet",)),
        "by must name dimensions of the collection (country, arm), got 'planet'",
    ),
    (
        lambda: RollUp(GROUPED.dimensions, ("arm", "arm")),
        "by must not repeat an entry (in Unicode NFC), got 'arm' twice",
    ),
]
