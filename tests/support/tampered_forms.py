"""Client's forms that somebody has changed: what a client must refuse, and why."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.edited import ABSENT, edited
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.client.client_form import client_form, form_fingerprint

Form = dict[str, Any]

ALL_WORDS = str((1 << 64) - 1)
_NO_NOISE = "nearly every report is the value itself"
_ONE_SYMBOL = "noise is always the same symbol, so every other report is the value itself"
_OTHER_VALUES = "one value is reported as another"
_TYPE = "a field of another JSON type"
_CLEAR = "values are sent without any noise"
_FINER = "event times that say more of when somebody answered"
_OTHER_DAYS = "windows that are not those of the collection: answers on other days"
_OTHER_GROUPS = "groups that are not those of the collection: reports are counted in others"
_SIZES = "payloads of another size or meaning"

# (collection, path, value, why): the form contradicts its canonical text, or itself
CHANGES: tuple[tuple[str, str, Any, str], ...] = (
    ("order-krr", "sampler.keep_weight", ALL_WORDS, _NO_NOISE),
    ("order-krr", "sampler.noise_weight", ALL_WORDS, _ONE_SYMBOL),
    ("order-krr", "sampler.noise_weight", "1", "noise is outside of the symbols, so it can be told from values"),
    ("order-krr", "sampler.noise_weight", "0", "a division by 0"),
    ("order-krr", "num_sensitive", 1, "symbols are taken for values in clear"),
    ("order-krr", "num_symbols", 6, "another number of symbols than the list has"),
    ("order-krr", "num_cohorts", 2, "cohorts that the collection does not have"),
    ("order-krr", "num_cohorts", 0, "no cohort"),
    ("order-krr", "id", "other", "the name of another collection"),
    ("order-krr", "version", 2, "another version"),
    ("order-krr", "symbols.symbols", ["flu", "cold", "gout", "asthma", "hiv"], _OTHER_VALUES),
    ("order-krr", "symbols.symbols", ["gout", "hiv", "flu", "asthma", "cold"], _OTHER_VALUES),
    ("order-krr", "symbols.symbols", ["gout", "hiv", "flu", "cold", "asthma", "none"], "a value more"),
    ("order-krr", "symbols.rule", "permutation", "another rule"),
    ("order-krr", "sampler.sampler", "bits", "another sampler"),
    ("order-krr", "payload.bytes", 2, _SIZES),
    ("order-krr", "payload.num_outputs", 256, _SIZES),
    ("order-krr", "payload.layout", "bits", _SIZES),
    ("order-krr", "fingerprint", "0" * 64, "the fingerprint of nothing"),
    ("order-krr", "client_form", 2, "another version of the form"),
    ("order-krr", "examples.0.symbols", [0], "an example that the rule does not give"),
    ("order-krr", "examples.0.cohort", 1, "an example in a cohort that is not there"),
    ("order-krr", "examples.0.value", "influenza", "an example of a value that is not there"),
    ("order-krr", "examples", [], "no example"),
    ("order-krr", "client_form", True, _TYPE),
    ("order-krr", "client_form", "1", _TYPE),
    ("order-krr", "version", "1", _TYPE),
    ("order-krr", "num_cohorts", True, _TYPE),
    ("order-krr", "num_cohorts", None, _TYPE),
    ("order-krr", "num_symbols", "5", _TYPE),
    ("order-krr", "num_sensitive", [5], _TYPE),
    ("order-krr", "sampler", None, _TYPE),
    ("order-krr", "sampler", [], _TYPE),
    ("order-krr", "sampler.keep_weight", 4717977891582421986, "a number that many readers of JSON round"),
    ("order-krr", "sampler.keep_weight", "04717977891582421986", "a weight in another spelling"),
    ("order-krr", "sampler.keep_weight", "4.717977891582421986e18", "a weight in another spelling"),
    ("order-krr", "sampler.keep_weight", "-1", "a weight below 0"),
    ("order-krr", "sampler.keep_weight", None, _TYPE),
    ("order-krr", "symbols", "list", _TYPE),
    ("order-krr", "symbols.symbols", {"0": "gout", "1": "hiv", "2": "flu", "3": "cold", "4": "asthma"}, _TYPE),
    ("order-krr", "payload", 1, _TYPE),
    ("order-krr", "examples", {}, _TYPE),
    ("order-krr", "examples", [None], _TYPE),
    ("order-krr", "examples.0", "flu", _TYPE),
    ("order-krr", "examples.0.symbols", 2, _TYPE),
    ("order-krr", "canonical", None, _TYPE),
    ("order-krr", "canonical", {}, _TYPE),
    ("order-krr", "fingerprint", None, _TYPE),
    *(
        ("order-krr", key, ABSENT, "a field is missing")
        for key in ("client_form", "fingerprint", "num_cohorts", "num_sensitive", "symbols", "sampler", "payload")
    ),
    *(("order-krr", key, ABSENT, "a field is missing") for key in ("examples", "canonical", "sampler.keep_weight")),
    ("order-krr", "epsilon", 1, "a field that no form has"),
    ("order-krr", "sampler.noise_numerator", "1", "a field that this sampler does not have"),
    ("order-krr", "Sampler", {"sampler": "symbol", "keep_weight": ALL_WORDS, "noise_weight": "0"},
     "a second sampler, for readers that do not tell capitals apart"),
    ("order-urap", "sampler.noise_numerator", "0", _NO_NOISE),
    ("order-urap", "sampler.noise_numerator", "1", _NO_NOISE),
    ("order-urap", "sampler.noise_numerator", "4294967295", "all bits are set, so the coin decides alone"),
    ("order-urap", "sampler.keep_weight", ALL_WORDS, _NO_NOISE),
    ("order-urap", "sampler.noise_in_clear", True, "clear payloads that the collector does not take"),
    ("order-urap", "sampler.noise_in_clear", 0, _TYPE),
    ("order-urap", "num_sensitive", 1, _CLEAR),
    ("order-urap", "payload.clear_bytes", 0, _SIZES),
    ("order-urap", "payload.bit_bytes", 2, _SIZES),
    ("order-uhr", "sampler.half", 1, "columns that tell values apart"),
    ("order-uhr", "sampler.half", 8, _SIZES),
    ("order-uhr", "sampler.keep_weight", ALL_WORDS, _NO_NOISE),
    ("one-sensitive", "sampler.subset_size", 0, _NO_NOISE),
    ("spare-bits-ss", "sampler.subset_size", 1, "smaller subsets, with less noise"),
    ("two-sizes", "sampler.larger_weight", "0", "noise of one size and values of two"),
    ("two-sizes", "sampler.larger_own_weight", ALL_WORDS, "the size tells which reports are values"),
    ("two-sizes", "sampler.larger_own_weight", ABSENT, "a field is missing"),
    ("seed-odd", "symbols.seed", "9007199254740992", "a seed that was rounded: " + _OTHER_VALUES),
    ("seed-odd", "symbols.num_buckets", 2, _OTHER_VALUES),
    ("seed-odd", "symbols.num_hashes", 2, "two symbols for each value"),
    ("seed-odd", "symbols.listed", ["flu"], _CLEAR),
    ("seed-odd", "symbols.num_clear_buckets", 2, _CLEAR),
    ("texts-listed", "symbols.listed", ["b", "c"], _OTHER_VALUES),
    ("texts-permuted", "symbols.num_buckets", 5, _OTHER_VALUES),
    ("texts-permuted", "symbols.values", ["a", "b"], _OTHER_VALUES),
    ("texts-prefixes", "symbols.lengths", [1, 3, 64], _OTHER_VALUES),
    ("texts-prefixes", "symbols.tokens", ["a"], _OTHER_VALUES),
    ("memo-krr", "sampler.repeat_weight", ALL_WORDS, "every report is the memo"),
    ("memo-krr", "sampler.noise_weight", ALL_WORDS, _ONE_SYMBOL),
    ("memo-krr", "sampler.memo.keep_weight", ALL_WORDS, "nearly every memo is the value itself"),
    ("memo-krr", "sampler.memo.noise_weight", ALL_WORDS, _ONE_SYMBOL),
    ("memo-krr", "sampler", {"sampler": "symbol", "keep_weight": "10348292405075850221",
     "noise_weight": "1619690333726740279"}, "each report is drawn as a memo, with epsilon_inf"),
    ("memo-rappor", "sampler.memo.noise_numerator", "1", _NO_NOISE),
    ("order-krr", "client_window", {"milliseconds": 60_000, "timezone": None}, _FINER),
    ("asked-days", "client_window", ABSENT, _FINER),
    ("asked-days", "client_window", None, _TYPE),
    ("asked-days", "client_window.milliseconds", 60_000, _FINER),
    ("asked-days", "client_window.milliseconds", "86400000", _TYPE),
    ("asked-days", "client_window.timezone", "Europe/Berlin", _OTHER_DAYS),
    ("asked-days", "client_window.timezone", ABSENT, "a field is missing"),
    ("asked-days-berlin", "client_window.timezone", None, _OTHER_DAYS),
    ("asked-memo", "client_window.milliseconds", 172_800_000, _OTHER_DAYS),
    ("order-krr", "dimensions", [{"name": "arm", "values": ["new"]}], "a fact in clear that nobody asked for"),
    ("groups-krr", "dimensions", ABSENT, _OTHER_GROUPS),
    ("groups-krr", "dimensions", [], _TYPE),
    ("groups-krr", "dimensions", None, _TYPE),
    ("groups-krr", "dimensions.0.values", ["FR", "DE"], _OTHER_GROUPS),
    ("groups-krr", "dimensions.1.values", ["control", "new", "other"], _OTHER_GROUPS),
    ("groups-krr", "dimensions.0.name", "arm", _OTHER_GROUPS),
    ("groups-krr", "dimensions.0.values.0", 7, _TYPE),
    ("groups-krr", "dimensions.0.values", ABSENT, "a field is missing"),
    ("groups-krr", "dimensions.0.set_by", "gateway", _OTHER_GROUPS),
    ("groups-gateway", "dimensions.0.set_by", ABSENT, "a fact in clear that nobody asked for"),
    ("groups-gateway", "dimensions.0.set_by", "attribute", _OTHER_GROUPS),
)  # fmt: skip


def _rewritten(form: Form, old: str, new: str, **fields: Any) -> Form:
    """With another canonical text, of which the fingerprint is right."""
    canonical = form["canonical"].replace(old, new)
    assert canonical != form["canonical"]
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    return form | {"canonical": canonical, "fingerprint": digest} | fields


def _consistent(collections: Mapping[str, Collection]) -> Iterator[tuple[str, str, Form, str]]:
    """Forms that agree with themselves: only a pinned form_fingerprint tells that they are not the right ones."""
    forms = {name: client_form(collections[name]) for name in ("order-krr", "order-urap", "memo-krr")}

    def other(name: str, **fields: Any) -> Form:
        spec = collections[name].to_json()
        return client_form(Collection.from_json(spec | {key: spec[key] | part for key, part in fields.items()}))

    weak = "a weaker promise, kept"
    for name in forms:
        yield name, "epsilon 8", other(name, mechanism={"epsilon": 8.0, "epsilon_inf": None}), weak
    yield "memo-krr", "epsilon_inf 16", other("memo-krr", mechanism={"epsilon_inf": 16.0}), weak
    yield "memo-krr", "no epsilon_inf", other("memo-krr", mechanism={"epsilon_inf": None}), "fresh reports, no memos"
    yield "order-urap", "fewer sensitive values", other("order-urap", alphabet={"sensitive": ["gout"]}), _CLEAR
    keep = (1 << 64) - 5
    form = forms["order-krr"]
    sampler = {"sampler": "symbol", "keep_weight": str(keep), "noise_weight": "1"}
    weight = form["sampler"]["keep_weight"]
    false = "weights that are not those of the epsilon that the text names: " + _NO_NOISE
    yield "order-krr", "false weights", _rewritten(form, weight, str(keep), sampler=sampler), false
    doubled = _rewritten(
        form, f'"keep_weight":{weight}', f'"keep_weight":{weight},"keep_weight":{keep}', sampler=sampler
    )
    yield "order-krr", "a key twice", doubled, false
    yield "order-krr", "a text with spaces", _rewritten(form, ":", ": "), "reports that no collector knows"
    form = forms["order-urap"]
    rate = json.loads(form["canonical"])["mechanism"]["noise_rate"]
    sampler = form["sampler"] | {"noise_numerator": "1"}
    yield "order-urap", "a false rate", _rewritten(form, f'"{rate}"', '"1/4294967296"', sampler=sampler), false
    form = forms["order-krr"]
    yield "order-krr", "fewer examples", form | {"examples": form["examples"][:1]}, "not the form that was pinned"


def tampered_forms(collections: Mapping[str, Collection]) -> Iterator[dict[str, Any]]:
    """Records of ``refusals.json``."""
    for name, path, value, why in CHANGES:
        form = client_form(collections[name])
        change = f"{name}: {path}"
        yield _record(change, "checks", why, form, edited(form, path, value))
    form = client_form(collections["order-krr"])
    weight = form["sampler"]["keep_weight"]
    canonical = form["canonical"].replace(weight, ALL_WORDS)
    changed = form | {"canonical": canonical, "sampler": form["sampler"] | {"keep_weight": ALL_WORDS}}
    yield _record("order-krr: canonical and sampler", "checks", _NO_NOISE, form, changed)
    for name, change, changed, why in _consistent(collections):
        yield _record(f"{name}: {change}", "pin", why, client_form(collections[name]), changed)


def _record(change: str, refused_by: str, why: str, form: Form, changed: Form) -> dict[str, Any]:
    assert json.dumps(changed) != json.dumps(form), change
    pinned = form_fingerprint(form)
    return {"change": change, "refused_by": refused_by, "why": why, "form_fingerprint": pinned, "form": changed}
