"""Collections from JSON in which any place holds something else: the project's own error, or a collection."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.cases import ALL_COLLECTIONS
from tests.support.wrong_json import ODD, spoiled
from uldp_transforms.ldp import Collection, SpecError

GROUPS: dict[str, Any] = {
    "dimensions": [{"name": "country", "values": ["de", "fr"]}],
    "client_window": "1d",
    "client_timezone": "Europe/Berlin",
    "question": "asked",
}


@pytest.mark.parametrize("source", [odd for odd in ODD if not isinstance(odd, (str, dict))], ids=repr)
def test_no_collection_is_anything_else_than_an_object(source: Any) -> None:
    with pytest.raises(SpecError, match=r"^Collection must be a JSON object, got "):
        Collection.from_json(source)


@pytest.mark.parametrize("name", list(ALL_COLLECTIONS)[::9])
def test_any_place_with_something_else_is_refused_or_read(name: str) -> None:
    spec = json.loads(json.dumps(ALL_COLLECTIONS[name].to_json() | GROUPS))
    refused = 0
    for place, other in spoiled(spec):
        if not isinstance(other, dict):
            continue
        try:
            Collection.from_json(other)
        except SpecError:
            refused += 1
        except Exception as error:
            pytest.fail(f"{place}: {error!r}")
    assert refused > 100
