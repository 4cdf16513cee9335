"""The client form of a collection: every symbol, weight and size as numbers, and the text that is hashed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from uldp_transforms.ldp.alphabets.dimensions import dimensions_json
from uldp_transforms.ldp.collection import Collection

CLIENT_FORM = 1
"""Version of the form; clients refuse other versions."""


def client_form(collection: Collection) -> dict[str, Any]:
    """The JSON object of ``schemas/client.schema.json``; docs/client.md explains it.

    Clients do not compute anything in it: they check it against ``canonical``, whose SHA-256 is the fingerprint. No
    number in it exceeds 2**53, so that JSON readers in all languages can represent it; weights are decimal texts.

    Raises:
        SpecError: if the collection accepts reports of other clients only.
    """
    mechanism = collection.mechanism
    mechanism.check_clients()
    return {
        "client_form": CLIENT_FORM,
        "id": collection.id,
        "version": collection.version,
        "fingerprint": collection.fingerprint.hex(),
        "num_cohorts": collection.num_cohorts,
        "num_symbols": mechanism.num_symbols,
        "num_sensitive": mechanism.num_sensitive,
        "symbols": collection.alphabet.client_rule,
        "sampler": mechanism.client_sampler,
        "payload": mechanism.client_payload,
        "examples": _examples(collection),
        "canonical": collection.canonical,
    } | _further(collection)


def _further(collection: Collection) -> dict[str, Any]:
    """Fields that only some collections have."""
    asked, dimensions = collection.asked, dimensions_json(collection.dimensions)
    of_window = {} if asked is None else {"client_window": asked.to_json()}
    return of_window | ({"dimensions": dimensions} if dimensions else {})


def form_fingerprint(form: Mapping[str, Any]) -> str:
    """SHA-256 of a form in canonical JSON, as 64 hexadecimal digits, for apps to pin.

    Canonical JSON has sorted keys in every object, no white space, integers in decimal digits, and texts with only the
    escapes that JSON requires; it is hashed in UTF-8. For forms it equals RFC 8785.
    """
    text = json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _examples(collection: Collection) -> list[dict[str, Any]]:
    """Symbols of some values in the first and the last cohort, as test vectors."""
    alphabet, num_cohorts = collection.alphabet, collection.num_cohorts
    values = alphabet.examples
    table = alphabet.symbol_table(values, num_cohorts).reshape(-1, len(values), alphabet.num_hashes)
    return [
        {"value": value, "cohort": cohort, "symbols": table[cohort % len(table), place].tolist()}
        for cohort in sorted({0, num_cohorts - 1})
        for place, value in enumerate(values)
    ]
