"""The client's form, and golden vectors for clients in any language: what the reference client makes of them."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.project.documents import DOCS
from tests.support import vectors
from tests.support.cases import golden
from tests.support.together import together
from uldp_transforms.jobs import export, uldp
from uldp_transforms.ldp.client.client_form import client_form, form_fingerprint
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.schemas import load

MOST_BYTES = 8_000
"""Of all files together, for each collection."""

FORMS = {record["name"]: record["client"] for record in vectors.collections()}
FORMS |= {record["collection"]["id"]: record["client"] for record in vectors.memos()}


@pytest.mark.parametrize("name", vectors.FILES)
def test_vectors_are_those_of_the_reference(name: str) -> None:
    proposed, published = vectors.proposed(name), vectors.published(name)
    kept = proposed[: len(published)] == published
    assert kept, f"published vectors never change: delete the lines of {name} that no release had, and make them anew"
    assert proposed == golden(name, lambda: proposed, vectors.FOLDER)


def test_the_folder_has_no_other_files_and_is_small() -> None:
    paths = list(vectors.FOLDER.iterdir())
    assert {path.name for path in paths} == set(vectors.FILES)
    assert sum(path.stat().st_size for path in paths) < MOST_BYTES * len(vectors.COLLECTIONS)


def test_new_records_are_appended_wherever_they_are_made() -> None:
    """Between published ones, before them, and if these come in another order."""
    published = vectors.published("numbers.json")
    new = [{"number": 7.0, "text": "7.0"}, {"number": 8.0, "text": "8.0"}]
    made = [new[0], *published[3:], new[1], *published[:3]]
    assert list(vectors.appended("numbers.json", iter(made))) == published + new


def test_published_collections_keep_their_numbers() -> None:
    """The number of a collection decides the value, the time and the words of its report."""
    published = [record["collection"] for record in vectors.published("reports.json")]
    assert list(vectors.COLLECTIONS)[: len(published)] == published
    assert published != sorted(published)


def test_every_mechanism_and_alphabet_has_vectors() -> None:
    """Payloads of every mechanism, symbols of every alphabet and kind of rule."""
    of_payloads = {vectors.COLLECTIONS[record["collection"]] for record in vectors.payloads()}
    assert {item.mechanism.id for item in of_payloads} == set(MECHANISMS)
    of_symbols = {vectors.COLLECTIONS[record["collection"]].alphabet for record in vectors.symbols()}
    small = {item.alphabet for item in vectors.COLLECTIONS.values() if item.num_cohorts * item.num_cells <= 1 << 20}
    assert of_symbols == small


def kinds(payloads: list[str], clear_bytes: int) -> set[bool]:
    """Whether payloads of bits are clear."""
    return {clear_bytes > 0 and any(bytes.fromhex(payload)[-clear_bytes:]) for payload in payloads}


def test_payloads_are_of_both_kinds() -> None:
    """Clear and protected, where there are both."""
    payloads_of = defaultdict(list)
    for record in vectors.payloads():
        payloads_of[record["collection"]].append(record["payload"])
    for name in vectors.PAYLOADS:
        form, payloads = FORMS[name], payloads_of[name]
        if form["payload"]["layout"] == "bits" and form["num_sensitive"] < form["num_symbols"]:
            assert kinds(payloads, form["payload"]["clear_bytes"]) == {True, False}, name


# ---------------------------------------------------------------------- the form


@together("name", FORMS)
def test_forms_have_their_schema(name: str) -> None:
    validator().validate(FORMS[name])


@functools.cache
def validator() -> jsonschema.Draft202012Validator:
    schema = load("client.schema.json")
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def integers(value: Any) -> list[int]:
    if isinstance(value, dict):
        return integers(list(value.values()))
    if isinstance(value, list):
        return [number for item in value for number in integers(item)]
    return [value] if isinstance(value, int) else []


def test_all_readers_of_json_carry_the_numbers() -> None:
    assert max(integers(list(FORMS.values()))) < 1 << 53


def test_weights_and_symbols_are_spelt_out() -> None:
    """By hand for one collection, whose sensitive values are in another order than its values."""
    form = FORMS["order-krr"]
    assert form["symbols"] == {"rule": "list", "symbols": ["gout", "hiv", "flu", "cold", "asthma"]}
    assert form["sampler"]["keep_weight"] == "4717977891582421986"
    assert int(form["sampler"]["keep_weight"]) + 5 * int(form["sampler"]["noise_weight"]) == 1 << 64
    assert form["fingerprint"] == hashlib.sha256(form["canonical"].encode()).hexdigest()


def test_the_page_has_the_canonical_text_of_its_example() -> None:
    page = (DOCS / "client.md").read_text(encoding="utf-8")
    [example] = re.findall(r"^ {4}\{\"alphabet.*?\n\n", page, flags=re.DOTALL | re.MULTILINE)
    assert re.sub(r"\n *", "", example).strip() == FORMS["order-krr"]["canonical"]


def test_the_page_names_every_way_and_field() -> None:
    page = (DOCS / "client.md").read_text(encoding="utf-8")
    names = {key for form in FORMS.values() for key in form}
    for part, kind in (("symbols", "rule"), ("sampler", "sampler"), ("payload", "layout")):
        names |= {form[part][kind] for form in FORMS.values()} | {key for form in FORMS.values() for key in form[part]}
    assert not [name for name in sorted(names) if f"`{name}`" not in page]


# ---------------------------------------------------------------------- form_fingerprint


def test_the_fingerprint_of_a_form_by_hand() -> None:
    """Keys sorted, no spaces, nothing escaped that may stand: U+2028, U+007F and < are themselves."""
    form = {"b": [True, None, 7], "a": {"z": "\u00e9\u2028\x7f<>&/", "y": '"\\\n\x01'}}
    text = '{"a":{"y":"\\"\\\\\\n\\u0001","z":"\u00e9\u2028\x7f<>&/"},"b":[true,null,7]}'
    assert form_fingerprint(form) == hashlib.sha256(text.encode()).hexdigest()


def test_forms_that_differ_have_other_fingerprints() -> None:
    forms = [*FORMS.values(), *(record["form"] for record in vectors.refusals())]
    assert len({form_fingerprint(form) for form in forms}) == len({json.dumps(form) for form in forms})


def test_the_schema_refuses_what_has_other_types() -> None:
    """And fields that are missing, unknown, or of a version to come; values that contradict each other it takes."""
    validator = jsonschema.Draft202012Validator(load("client.schema.json"))
    for record in vectors.refusals():
        if record["why"].startswith("a field "):
            assert not validator.is_valid(record["form"]), record["change"]


# ---------------------------------------------------------------------- uldp export


@pytest.fixture()
def source(tmp_path: Path) -> Path:
    path = tmp_path / "C.json"
    path.write_text(json.dumps(vectors.SPECS["texts"]), encoding="utf-8")
    return path


def test_the_form_is_exported(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = client_form(vectors.COLLECTIONS["texts"])
    pinned = f"form_fingerprint {form_fingerprint(expected)}\n"
    output = tmp_path / "C.client.json"
    assert export.main([str(source), "--output", str(output)]) == 0
    assert json.loads(output.read_bytes()) == expected
    assert capsys.readouterr() == (pinned, "")
    assert export.main([str(source)]) == 0
    assert capsys.readouterr() == (output.read_text(encoding="utf-8"), pinned)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["C.client.json", "C.json"]


def test_a_wrong_collection_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "C.json").write_text("{}", encoding="utf-8")
    assert export.main([str(tmp_path / "C.json"), "--output", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith(f"export: {tmp_path / 'C.json'}: Collection needs the key 'id'")
    assert not (tmp_path / "out").exists()
    assert export.main([str(tmp_path / "none.json")]) == 2


def test_the_command_knows_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        uldp.main(["export", "--help"])
    assert "all symbols in order" in " ".join(capsys.readouterr().out.split())
