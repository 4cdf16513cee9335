"""A collection as a client needs it: every symbol, weight and size spelt out, and the text that is hashed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from uldp_transforms.ldp.collection import Collection

CLIENT_FORM = 1
"""Version of the form; a client refuses others."""

_ANY_TEXTS = ("", "uldp", "\N{LATIN SMALL LETTER E WITH ACUTE}")
_EXAMPLES = 4


def client_form(collection: Collection) -> dict[str, Any]:
    """The JSON object of ``schemas/client.schema.json``; docs/client.md explains it.

    Nothing in it has to be computed again: a client checks it against ``canonical``, whose SHA-256 is the fingerprint.
    No number in it is above 2**53, so that readers of JSON in all languages carry it; weights are decimal texts.

    Raises:
        SpecError: if the collection's reports come from clients of others.
    """
    mechanism, asked = collection.mechanism, collection.asked
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
    } | ({} if asked is None else {"client_window": asked.to_json()})


def form_fingerprint(form: Mapping[str, Any]) -> str:
    """The SHA-256, in 64 hexadecimal digits, of a form in canonical JSON: what an app pins.

    Canonical JSON has the keys of every object sorted, no white space, integers in decimal digits, and texts in which
    nothing is escaped that JSON lets stand; it is hashed in UTF-8. For forms it is the text of RFC 8785.
    """
    text = json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _examples(collection: Collection) -> list[dict[str, Any]]:
    """Symbols of some values in the first and the last cohort."""
    alphabet, num_cohorts = collection.alphabet, collection.num_cohorts
    known = alphabet.known_values
    values = (*alphabet.clear_values[:_EXAMPLES], *_ANY_TEXTS) if known is None else known[:_EXAMPLES]
    table = alphabet.symbol_table(values, num_cohorts).reshape(-1, len(values), alphabet.num_hashes)
    return [
        {"value": value, "cohort": cohort, "symbols": table[cohort % len(table), place].tolist()}
        for cohort in sorted({0, num_cohorts - 1})
        for place, value in enumerate(values)
    ]
