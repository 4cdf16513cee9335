"""The audit: what it proves about good mechanisms, and that it refutes bad ones."""

from __future__ import annotations

import dataclasses
import functools
import json
from fractions import Fraction

import pytest

from tests.support.cases import ALL_COLLECTIONS as COLLECTIONS
from tests.support.cases import ANY_VALUES, UTILITY_OPTIMIZED
from tests.support.ldp.made_collections import made
from uldp_transforms.jobs import audit as program
from uldp_transforms.jobs import describe
from uldp_transforms.ldp import Collection, privacy
from uldp_transforms.ldp.alphabets import Hashed
from uldp_transforms.ldp.mechanisms import KaryRR, Rappor, UtilityOptimizedRappor, UtilityOptimizedRR
from uldp_transforms.ldp.privacy import Audit, audit
from uldp_transforms.ldp.sampling import WORD

ANIMALS = ("ant", "bee", "cat", "dog", "eel")
PRIORS = [[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]


def closed(mechanism: dict, values=ANIMALS, **fields) -> Collection:
    alphabet = {"id": "closed", "values": list(values)} | fields
    return made(alphabet, mechanism, id="a")


def with_mechanism(collection: Collection, cls: type) -> Collection:
    """The collection with a mechanism of another class and the same fields."""
    mechanism = collection.mechanism
    return dataclasses.replace(
        collection, mechanism=cls(**{f.name: getattr(mechanism, f.name) for f in dataclasses.fields(mechanism)})
    )


@functools.cache
def audited(name: str) -> Audit:
    return audit(COLLECTIONS[name])


@pytest.mark.parametrize("name", COLLECTIONS)
def test_every_collection_keeps_its_promise_and_spends_it(name):
    found = audited(name)
    assert found.faults == ()
    spent = float(found.effective_epsilon)
    assert spent <= found.epsilon
    assert spent == pytest.approx(COLLECTIONS[name].mechanism.effective_epsilon, rel=1e-9)


@pytest.mark.parametrize("name", COLLECTIONS)
def test_kinds_of_reports_say_what_all_reports_say(name, monkeypatch):
    enumerated = audited(name)
    monkeypatch.setattr(privacy, "MAX_CELLS", 0)
    by_kind = audit(COLLECTIONS[name])
    assert by_kind.worst.ratio == enumerated.worst.ratio
    assert by_kind.faults == enumerated.faults
    assert by_kind.method.startswith("every kind of the ")


@pytest.mark.parametrize("sensitive", [None, ["bee", "dog", "eel"]])
@pytest.mark.parametrize("name", ANY_VALUES)
def test_kinds_have_the_ratios_of_the_channel_and_only_inputs_that_there_are(name, sensitive):
    mechanism = closed({"id": name, "epsilon": 1.0} | ANY_VALUES[name], sensitive=sensitive).mechanism
    v, kinds = mechanism.num_sensitive, list(mechanism.kinds())
    pairs = {(p, q) for row in mechanism.channel()[1] if all(row) for p in row[:v] for q in row}
    ratios = [{max(p / q, q / p) for p, q in each} for each in (pairs, [kind.probabilities for kind in kinds])]
    assert ratios[0] | {1} == ratios[1] | {1}
    others = any("non-sensitive" in words for kind in kinds for words in kind.inputs)
    assert others == (name in ("urr", "urap") and sensitive is not None)  # where they are a kind of their own


@pytest.mark.parametrize("name", UTILITY_OPTIMIZED | {"usw": {}})
def test_every_mechanism_with_reports_in_clear_says_so(name, tmp_path, capsys):
    """In the audit's notes, and on the command line of ``audit`` and ``describe``."""
    numbers = {"id": "ordered", "edges": [0, 1, 2, 3, 4], "sensitive": [[0, 2]]}
    spec = {"id": name, "epsilon": 1.0} | UTILITY_OPTIMIZED.get(name, {})
    of = closed(spec if name != "usw" else spec | {"id": "urr"}, sensitive=["bee", "cat", "dog"])
    if name == "usw":
        of = Collection.from_json(of.to_json() | {"alphabet": numbers, "mechanism": spec})
    clear = [row[-1] for row in of.mechanism.channel()[1] if not any(row[:-1])]
    note = f"Non-sensitive symbols are not protected: each is sent in clear with probability {float(sum(clear)):.3g}."
    assert audit(of).notes == (note,)
    path = tmp_path / "C.json"
    path.write_text(json.dumps(of.to_json()), encoding="utf-8")
    assert program.main(["--collection", str(path)]) == 0
    assert f"note        {note}" in capsys.readouterr().out.splitlines()
    assert describe.main([str(path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"Not protected: {note}" in said and "Other answers are often sent as they are." in said


@pytest.mark.parametrize(
    ("mechanism", "protects", "notes"),
    [
        ({"id": "krr", "epsilon": 1.0}, "every value", ()),
        (
            {"id": "agrr", "epsilon": 0.5, "priors": PRIORS},
            "every declared state",
            (
                "States are protected under the declared priors only. Values are not: the log ratio between two values "
                "is 1.07696.",
            ),
        ),
        (
            {"id": "tsp", "epsilon": 1.0, "missing_rates": [0.4, 0.2]},
            "every declared state",
            (
                "Whether an answer is missing is reported in clear, because the declared rates alone satisfy epsilon.",
                "That an answer is missing is protected under the declared rates only, and if answers do not depend on "
                "the state; if every answer is a state of its own, the largest log ratio is 1.28768.",
            ),
        ),
    ],
)
def test_what_is_protected_and_what_is_not(mechanism, protects, notes):
    values = [*ANIMALS, "missing"] if mechanism["id"] == "tsp" else ANIMALS[:3]
    found = audit(closed(mechanism, values))
    assert found.protects == protects
    assert found.notes == notes


# ---------------------------------------------------------------------- memos

REPEATED = {"epsilon": 1.0, "epsilon_inf": 2.0}
WITH_MEMOS = {
    mechanism: closed({"id": mechanism} | REPEATED | fields, sensitive=["bee", "dog", "eel"])
    for mechanism, fields in (ANY_VALUES | {"up": {}}).items()
}


@pytest.mark.parametrize("name", WITH_MEMOS)
def test_both_promises_are_proved_and_spent(name, monkeypatch):
    found = audit(WITH_MEMOS[name])
    assert found.faults == ()
    assert found.lifetime.epsilon_inf == 2.0
    spent = [float(found.effective_epsilon), float(found.lifetime.effective_epsilon)]
    assert spent[0] <= 1
    assert spent[1] <= 2
    assert spent == pytest.approx([1, 2], rel=1e-9)
    losses = list(found.lifetime.after.values())
    assert losses[0] == pytest.approx(spent[0], rel=1e-9)
    assert losses == sorted(losses)
    assert losses[-1] <= spent[1] * (1 + 1e-15)
    monkeypatch.setattr(privacy, "MAX_CELLS", 0)
    by_kind = audit(WITH_MEMOS[name])
    assert by_kind.faults == ()
    assert by_kind.worst.ratio == found.worst.ratio
    assert by_kind.lifetime.worst.ratio == found.lifetime.worst.ratio
    assert by_kind.lifetime.method.startswith("every kind of the ")


def test_the_program_prints_the_lifetime(tmp_path, capsys):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(closed({"id": "krr"} | REPEATED, ANIMALS[:4]).to_json()))
    assert program.main(["--collection", str(path)]) == 0
    text = capsys.readouterr().out
    for words in (
        "lifetime    all reports of one symbol together: at most e**2\n",
        "looked at   all 4 memos under each of 4 symbols, enumerated in exact fractions of 2**64; all sequences of up "
        "to 3 reports\n",
        "epsilon_inf 1.99999",
        "loss        by number of reports of one symbol: 1 (1), 1.678 (2), 1.923 (3), 2 (7), 2 (30), 2 (365)\n",
        "note        Memos are kept for each symbol: that a symbol changes, and when, is not protected.\n",
    ):
        assert words in text


class RepeatsTooOften(KaryRR):
    """Rounds the second coin away from privacy."""

    @functools.cached_property
    def report_noise_weight(self) -> int:
        return super().report_noise_weight - 1


class MemosForOneReport(Rappor):
    """Draws memos with too good a coin, and makes up for it in single reports."""

    @functools.cached_property
    def keep_weight(self) -> int:
        return WORD - (WORD - super().keep_weight) // 2


class PromisesLess(KaryRR):
    def ratio_after(self, num_reports):
        return super().ratio_after(min(num_reports, 2))


@pytest.mark.parametrize(
    ("cls", "mechanism", "fault"),
    [
        (RepeatsTooOften, "krr", "the ratio 2.7182818284590451 is above e**epsilon = "),
        (MemosForOneReport, "rappor", "memos: the ratio 16.426833469211555 is above e**epsilon_inf = "),
        (PromisesLess, "krr", "the worst ratio of 3 reports differs from the one that the mechanism claims"),
    ],
)
def test_broken_memos_are_refuted(cls, mechanism, fault):
    [found] = audit(with_mechanism(closed({"id": mechanism} | REPEATED), cls)).faults
    assert found.startswith(fault)


# ---------------------------------------------------------------------- what must be refuted


class OneWordTooMany(UtilityOptimizedRR):
    """Takes one word from every noise symbol: the smallest coin that is not private."""

    @functools.cached_property
    def noise_weight(self) -> int:
        return super().noise_weight - 1


class ForgetsToClear(Rappor):
    """A unary encoder that always sets its own bit, as some published code does."""

    @functools.cached_property
    def keep_weight(self) -> int:
        return WORD - 1


class Leaks(UtilityOptimizedRR):
    """Reports a sensitive symbol like a non-sensitive one now and then."""

    def channel(self):
        payloads, rows = super().channel()
        leak = Fraction(1, 1000)
        rows[0][0] -= leak
        rows[self.num_sensitive][0] += leak
        return payloads, rows


class LosesReports(KaryRR):
    """Probabilities that do not sum to 1."""

    def channel(self):
        payloads, rows = super().channel()
        return payloads[:-1], rows[:-1]


class TellsTwoApart(UtilityOptimizedRR):
    """A clear report that two symbols share."""

    def channel(self):
        payloads, rows = super().channel()
        rows[-2] = [a + b for a, b in zip(rows[-2], rows[-1])]
        return payloads[:-1], rows[:-1]


@pytest.mark.parametrize(
    ("cls", "mechanism", "fault"),
    [
        (
            OneWordTooMany,
            {"id": "urr", "epsilon": 1.0},
            "the ratio 2.7182818284590451 is above e**epsilon = 2.718281828459045",
        ),
        (ForgetsToClear, {"id": "rappor", "epsilon": 1.0}, "is above e**epsilon"),
        (
            Leaks,
            {"id": "urr", "epsilon": 1.0},
            "report 02 can come from a sensitive symbol and rules another symbol out",
        ),
        (LosesReports, {"id": "krr", "epsilon": 1.0}, "the probabilities of the reports of a symbol do not sum to 1"),
        (TellsTwoApart, {"id": "urr", "epsilon": 1.0}, "the clear report 03 comes from 2 symbols instead of one"),
    ],
)
def test_broken_mechanisms_are_refuted(cls, mechanism, fault):
    sensitive = None if mechanism["id"] in ("krr", "rappor") else ["bee", "dog"]
    found = audit(with_mechanism(closed(mechanism, sensitive=sensitive), cls))
    assert any(fault in sentence for sentence in found.faults), found.faults


def test_a_claim_that_is_not_the_channel_is_a_fault():
    class Boasts(KaryRR):
        exact_ratio = Fraction(2)

    found = audit(with_mechanism(closed({"id": "krr", "epsilon": 1.0}), Boasts))
    assert found.faults == ("the worst ratio differs from the one that the mechanism claims",)


def test_a_report_that_rules_a_state_out_is_a_fault():
    class Certain(KaryRR):
        @property
        def protected_inputs(self):
            return [[[Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)]]]

        def channel(self):
            half = Fraction(1, 2)
            return [b"\0", b"\1", b"\2"], [[half, Fraction(0)], [Fraction(0), half], [half, half]]

    found = audit(with_mechanism(closed({"id": "krr", "epsilon": 1.0}, ANIMALS[:2]), Certain))
    assert {"report 00 rules state 1 out", "report 01 rules state 0 out"} <= set(found.faults)


def test_a_large_instance_is_not_taken_at_its_word():
    """Where there are too many reports for all of them, kinds of reports follow from the client's own integers."""

    class Boasts(Rappor):
        exact_ratio = Fraction(2)

    values = [f"v{i}" for i in range(30)]
    found = audit(with_mechanism(closed({"id": "rappor", "epsilon": 1.0}, values), Boasts))
    assert found.method.startswith("every kind of the more than 10**9 reports")
    assert found.faults == ("the worst ratio differs from the one that the mechanism claims",)
    found = audit(with_mechanism(closed({"id": "rappor", "epsilon": 1.0}, values), ForgetsToClear))
    assert any("is above e**epsilon" in fault for fault in found.faults)
    assert audit(closed({"id": "rappor", "epsilon": 1.0}, [f"v{i}" for i in range(16_000)])).faults == ()


def test_public_values_among_the_sensitive_symbols_are_a_fault():
    class Misplaces(Hashed):
        def symbol_table(self, values, num_cohorts):
            return super().symbol_table(values, num_cohorts) * 0

    alphabet = Misplaces(num_buckets=3, non_sensitive=("north", "south"))
    mechanism = UtilityOptimizedRappor(num_symbols=5, num_sensitive=3, epsilon=1.0)
    collection = Collection(id="a", version=1, alphabet=alphabet, mechanism=mechanism, num_cohorts=4)
    assert audit(collection).faults == ("2 public values share symbols with sensitive ones",)


# ---------------------------------------------------------------------- the program


def test_the_program_prints_proof_and_verdict(tmp_path, capsys):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(closed({"id": "uss", "epsilon": 1.0}, sensitive=["bee", "dog", "eel"]).to_json()))
    assert program.main(["--collection", str(path), "--collection", str(path)]) == 0
    text = capsys.readouterr().out
    assert text.count("verdict     the promise holds, exactly") == 2
    for words in (
        "looked at   all 5 reports under each of 5 symbols",
        "worst pair  report: ",
        "note        Non-sensitive",
    ):
        assert words in text
    spent = text.split("epsilon     ")[1].split(" <= 1")[0]
    assert 0.999999999999999 < float(spent) <= 1


def test_the_program_fails_for_a_broken_promise(tmp_path, capsys, monkeypatch):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(closed({"id": "krr", "epsilon": 1.0}).to_json()))
    monkeypatch.setattr(KaryRR, "noise_weight", WORD // 10)
    assert program.main(["--collection", str(path)]) == 1
    text = capsys.readouterr().out
    assert "FAULT       the ratio " in text
    assert "verdict     the promise does NOT hold" in text


def test_one_broken_promise_among_others_fails(tmp_path, capsys, monkeypatch):
    for name, mechanism in (("krr", "krr"), ("rappor", "rappor")):
        fields = closed({"id": mechanism, "epsilon": 1.0}).to_json()
        (tmp_path / f"{name}.json").write_text(json.dumps(fields))
    monkeypatch.setattr(KaryRR, "noise_weight", WORD // 10)
    for names, code in ((["krr", "rappor"], 1), (["rappor", "krr"], 1), (["rappor"], 0)):
        options = [str(tmp_path / f"{name}.json") for name in names]
        assert program.main(options) == code
        assert capsys.readouterr().out.count("verdict ") == len(names)


def test_the_program_refuses_in_one_line(capsys):
    assert program.main(["nowhere.json"]) == 2
    assert capsys.readouterr().err == "audit: nowhere.json: No such file or directory\n"
