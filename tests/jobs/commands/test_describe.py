"""``uldp describe``: a collection in plain words, and whether its numbers are what happens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.support.cases import golden
from tests.support.messages_cases import KNOWN, NEW, container, write_files
from uldp_transforms.jobs import uldp
from uldp_transforms.jobs.describe import consent, lines_of, smallest_share, variance_at
from uldp_transforms.jobs.records.unknown_repeats import lookalikes, sentences_about_lookalikes
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.messages import wire

CLOSED = {"id": "closed", "values": ["flu", "cold", "asthma", "hiv"]}
HASHED = {"id": "hashed", "num_buckets": 32}
PRIORS = {"priors": [[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]}


def of(alphabet: dict[str, Any], mechanism: dict[str, Any], **fields: Any) -> Collection:
    return Collection.from_json({"id": "c", "version": 1, "alphabet": alphabet, "mechanism": mechanism} | fields)


KRR = of(CLOSED, {"id": "krr", "epsilon": 1.0})
URR = of(CLOSED | {"sensitive": ["hiv", "asthma"]}, {"id": "urr", "epsilon": 1.0}, client_window="7d")
MEMOS = of(HASHED, {"id": "rappor", "epsilon": 2.0, "epsilon_inf": 4.0}, num_cohorts=256)


def text_of(collection: Collection) -> str:
    return " ".join(" ".join(lines_of(collection)).split())


def test_what_a_reviewer_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(URR.to_json()), encoding="utf-8")
    assert uldp.main(["describe", str(path), "--reports", "10000"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for sentence in (
        "Values: flu, cold, asthma, hiv ",
        "Sensitive values: asthma, hiv ",
        "Protected: sensitive values ",
        "the time rounded down to the start of the client window (7d)",
        "53 reports in 365 days, which together cost epsilon 53 ",
        "reports protected value +- protected value found other value +- other value found 10,000 ",
        "A sensitive answer is changed by chance before it leaves this device. Other answers are often sent as they ",
    ):
        assert sentence in printed, sentence
    assert "100,000" not in printed


def test_a_description_names_what_is_counted() -> None:
    text = text_of(Collection.from_json(URR.to_json() | {"noun": {"one": "visit", "many": "visits"}}))
    assert "interval of a value of 10 % of visits. found: " in text
    assert "Many answers together show how many visits of each kind there are." in text


def test_a_range_of_sensitive_numbers() -> None:
    hours = {
        "id": "ordered",
        "low": 0,
        "high": 24,
        "num_bins": 4,
        "others": ["never"],
        "sensitive": [[None, 3], [22, 24]],
    }
    text = text_of(of(hours, {"id": "usw", "epsilon": 1.0}))
    assert "Sensitive: numbers below 6; numbers from 18 Answers:" in text  # whole bins
    assert (
        "Answers: a number, or one of these texts: never. A device keeps only in which of 4 bins the number is, not "
        "where in it. All numbers below 6 are in the first bin, and all from 18 on in the last one (ordered) "
    ) in text
    assert "non-sensitive ones often in clear (usw)" in text and "half_width" not in text
    assert "Not protected: Non-sensitive symbols are not protected: each is sent in clear with probability 0." in text
    assert "A value is a single bin here" in text
    middle = hours | {"others": [], "sensitive": [[6, 12], [12, 18]], "unit": "h"}
    assert "Sensitive: numbers from 6 and below 18 h Answers: a number (in h). " in text_of(
        of(middle, {"id": "usw", "epsilon": 1.0})
    )


def test_a_dialog_says_what_further_answers_tell() -> None:
    assert consent(URR).endswith(
        "You may answer 53 times a year; if your answer never changes, they can then be more than 99 % sure."
    )
    assert consent(KRR).endswith("Each further answer tells more about a value that stays the same.")
    yearly = of(CLOSED, {"id": "rappor", "epsilon": 1.0, "epsilon_inf": 2.0}, client_window="1d")
    assert consent(yearly).endswith("they can then be at most 88 % sure.")  # 1 / (1 + exp(-2))


def test_costs_over_time_are_said_level_by_level() -> None:
    """A value of level 1 always sends reports of level 1, so 10 of them cost 10 times the epsilon of level 1."""
    levels = [{"epsilon": 0.05, "values": ["hiv"]}, {"epsilon": 1, "values": ["cold", "asthma"]}]
    some = CLOSED | {"sensitive": ["asthma", "hiv", "cold"]}
    text = text_of(of(some, {"id": "levels", "levels": levels}))
    assert (
        "10 reports cost epsilon 0.5 (level 1) or 10 (level 2), and 100 reports 5 (level 1) or 100 (level 2)." in text
    )
    assert "may be up to 99.3 % (level 1) or more than 99.9 % (level 2) sure of one" in text  # 1 / (1 + exp(-5))
    weekly = text_of(of(some, {"id": "levels", "levels": levels}, client_window="7d"))
    assert "which together cost epsilon 2.65 (level 1) or 53 (level 2) for somebody whose value never changes" in weekly


def test_what_is_stated_in_clear_is_said_and_in_the_dialog_too() -> None:
    """Also the size: the largest number of a cohort is that of the last group."""
    dimensions = [{"name": "country", "values": ["de", "fr"]}, {"name": "arm", "values": ["new"]}]
    stated = of(CLOSED, {"id": "krr", "epsilon": 1.0}, dimensions=dimensions, question="health")
    text = text_of(stated)
    assert "Stated about the person in clear, without any protection: country (de, fr, other); arm (new, other)" in text
    assert "a report has in clear: the fingerprint of the collection, the dimensions above, the time" in text
    assert "Counted together: with other versions of this collection that name the question health" in text
    assert consent(stated) == f"{consent(KRR)} Sent as it is, beside the answer: country, arm."
    many = of(HASHED, {"id": "krr", "epsilon": 1.0}, num_cohorts=50, dimensions=dimensions)
    alone = of(HASHED, {"id": "krr", "epsilon": 1.0}, num_cohorts=50)
    assert "at most 35 bytes in all" in text_of(alone)
    assert "at most 36 bytes in all" in text_of(many)  # numbers of cohorts from 64 on need two bytes


def test_what_is_set_on_the_way_is_not_said_to_be_sent() -> None:
    dimensions = [
        {"name": "country", "values": ["de", "fr"], "set_by": "gateway"},
        {"name": "net", "values": ["fast"], "set_by": "attribute"},
    ]
    added = of(CLOSED, {"id": "krr", "epsilon": 1.0}, dimensions=dimensions)
    text = text_of(added)
    assert "Added in clear by the gateway, from a header of the request: country (de, fr, other)" in text
    assert "by the reader of the queue, from an attribute of the message: net (fast, other)" in text
    assert "Stated about the person" not in text and "the dimensions above" not in text
    assert consent(added) == f"{consent(KRR)} Added to it on the way: country, net."
    both = of(CLOSED, {"id": "krr", "epsilon": 1.0}, dimensions=[*dimensions, {"name": "arm", "values": ["new"]}])
    assert consent(both).endswith(" Sent as it is, beside the answer: arm. Added to it on the way: country, net.")


SHOWN = {
    "all values are protected": KRR,
    "some are, and clients have windows": URR,
    "texts, with memos": MEMOS,
    "texts, of which some are public": of(
        HASHED | {"num_clear_buckets": 4, "non_sensitive": ["none"]}, {"id": "urr", "epsilon": 3.0}, num_cohorts=8
    ),
    "numbers": of({"id": "ordered", "low": 0, "high": 60, "num_bins": 6}, {"id": "sw", "epsilon": 2.0}),
    "levels": of(
        CLOSED | {"sensitive": ["asthma", "hiv", "cold"]},
        {"id": "levels", "levels": [{"epsilon": 0.5, "values": ["hiv"]}, {"epsilon": 2, "values": ["cold", "asthma"]}]},
    ),
    "a matrix": of(
        {"id": "closed", "values": ["no", "yes"]}, {"id": "channel", "matrix": [["3/4", "1/4"], ["1/4", "3/4"]]}
    ),
}


def test_shown_numbers_and_sentences_stay_unless_somebody_reviews_them() -> None:
    """The whole text of a description: the precision of each kind of value, what it costs over time, the dialog."""
    now = [{"of": name, "lines": list(lines_of(collection, (1_000, 50_000)))} for name, collection in SHOWN.items()]
    assert now == golden("descriptions.json", lambda: now)


@pytest.mark.parametrize("collection", [*KNOWN, *NEW], ids=lambda collection: collection.id)
def test_every_kind_of_collection_can_be_described(collection: Collection) -> None:
    text = text_of(collection)
    assert "What it can find: reports protected value +-" in text
    assert "Sentences for the people who are asked: " in text


def test_no_sentence_promises_what_a_mechanism_does_not_keep() -> None:
    reveals = of({"id": "closed", "values": ["no", "yes"]}, {"id": "channel", "matrix": [["1", "1/2"], ["0", "1/2"]]})
    assert consent(reveals) == "None: a report can rule values out, so no promise can be made."
    priors = of(CLOSED, {"id": "agrr", "epsilon": 1.0} | PRIORS)
    assert consent(priors).startswith("None: what this mechanism protects depends on background knowledge")
    assert "at most 73 % sure which of them is yours." in consent(KRR)
    assert "more than 99 % sure" in consent(of(CLOSED, {"id": "krr", "epsilon": 9.0}))


def test_variances_are_those_of_the_mechanism() -> None:
    held = np.array([0.1, 0.3, 0.3, 0.3])
    assert variance_at(KRR, 0, 0.1) == pytest.approx(KRR.mechanism.variances(held)[0])
    # one of 32 buckets, and the others with the opposite sign: a difference of two means of bits
    share = 0.1 + 0.9 / 32
    others = np.full(32, (1 - share) / 31)
    others[0] = share
    bucket = MEMOS.mechanism.variances(others)[0]
    assert variance_at(MEMOS, 0, 0.1) == pytest.approx(bucket / (1 - 1 / 32))


TWENTY = {"id": "closed", "values": [f"v{number}" for number in range(20)]}


@pytest.mark.parametrize("size", [1_000, 10_000, 100_000])
@pytest.mark.parametrize(
    "collection",
    [KRR, of(TWENTY, {"id": "krr", "epsilon": 3.0}), of(TWENTY, {"id": "rappor", "epsilon": 4.0, "theta": 0.5})],
    ids=["four values", "twenty values", "bits"],
)
def test_the_smallest_share_is_found_in_80_per_cent_of_windows(collection: Collection, size: int) -> None:
    """Enumerated: each number of supports of the value that a window may have, with the interval that it would show.
    2 % are allowed, because a number of reports has steps and a normal law has none."""
    share = smallest_share(collection, 0, size)
    assert share is not None
    mechanism, num_values = collection.mechanism, len(collection.alphabet.known_values or ())
    chance = mechanism.miss + share * mechanism.delta  # type: ignore[attr-defined]  # that a report supports it
    found = 0.0
    likely = stats.binom.interval(1 - 1e-9, size, chance)
    for number in range(int(likely[0]), int(likely[1]) + 1):
        cells = np.full(num_values, (size - number) // (num_values - 1))
        cells[0] = number
        if mechanism.id == "krr":
            cells[1] += size - cells.sum()
        estimate = collection.estimate(CohortCounts(np.array([size]), cells[np.newaxis]))
        if estimate.ci_low[0] > 0:  # and so for all larger numbers
            found = float(stats.binom.sf(number - 1, size, chance))
            break
    assert abs(found - 0.8) < 0.02, (share, found)


def test_a_value_that_is_sent_in_clear_is_found_by_one_report() -> None:
    for size in (1_000, 100_000):
        share = smallest_share(URR, 3, size)
        assert share is not None
        rate = share * URR.mechanism.reveal_rate
        assert 1 - (1 - rate) ** size == pytest.approx(0.8, abs=1e-3)
        counts = CohortCounts(np.array([size]), np.array([[size // 2, size - size // 2 - 1, 0, 1]]))
        assert URR.estimate(counts).ci_low[3] > 0


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["c.json", "--reports", "0"], "--reports must be an integer in [1, 1000000000000000], got 0"),
        ([], "the following arguments are required: C.json"),
    ],
)
def test_refused(argv: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.json").write_text(json.dumps(KRR.to_json()), encoding="utf-8")
    assert uldp.main(["describe", *argv]) == 2
    assert capsys.readouterr().err.startswith(f"describe: {sentence}")


CHANNEL = {"id": "channel", "matrix": [["0.2", "0.9"], ["0.8", "0.1"]]}
FORCED = {"id": "channel", "matrix": [["5/6", "0"], ["1/6", "1"]]}
YES_NO = {"id": "closed", "values": ["no", "yes"]}


def test_a_declared_channel_shows_its_probabilities() -> None:
    text = text_of(of(YES_NO, CHANNEL))
    assert "A device sends: one of 2 outputs, drawn with the declared probabilities (channel) Protected: every" in text
    assert "no: output 0 20 %, output 1 80 %; yes: output 0 90 %, output 1 10 %" in text
    many = [[f"{2 if x == y else 1}/8" for x in range(7)] for y in range(7)]
    large = of({"id": "closed", "values": list("abcdefg")}, {"id": "channel", "matrix": many})
    assert "Probabilities of the outputs: a declared matrix of 7 outputs for 7 values" in text_of(large)
    assert "Probabilities of the outputs" not in text_of(KRR)


def test_answers_that_are_randomized_elsewhere_have_no_dialog() -> None:
    foreign = of(YES_NO, CHANNEL | {"clients": "foreign"})
    assert consent(foreign).startswith("None: the answers are randomized elsewhere, not by clients of this library.")
    assert consent(of(YES_NO, CHANNEL)).startswith("Your answer is changed by chance before it leaves this device.")


def test_an_output_of_one_value_alone_proves_it() -> None:
    """Output 0 is sent by "no" alone, with probability 5/6; somebody sends it with probability .8."""
    text = text_of(of(YES_NO, FORCED))
    assert "Protected: nothing: a report can rule values out" in text
    assert "reports value +- value found" in text and " 0 % " not in text.partition("What it can find")[2]
    share = smallest_share(of(YES_NO, FORCED), 0, 10_000)
    assert share is not None
    assert 1 - (1 - share * 5 / 6) ** 10_000 == pytest.approx(0.8, abs=1e-3)


def test_tags_are_described() -> None:
    tagged = {
        "id": "tagged",
        "values": ["north", "south", "clinic"],
        "sensitive": ["clinic"],
        "tags": ["home", "others"],
    }
    text = text_of(of(tagged, {"id": "uss", "epsilon": 1.0}))
    assert "Tags: home, others. A device sends a tag in place of a value that is sensitive to its own person. " in text
    assert "A device sends: a set of sensitive symbols, or a non-sensitive one in clear (uss)" in text
    assert "Tags:" not in text_of(URR)


@pytest.mark.parametrize(
    ("values", "pairs"),
    [
        (["Paris", "P\u0430ris", "Rome"], [("Paris", "P\u0430ris")]),  # Cyrillic a
        (["\u0410", "A", "\u0391"], [("\u0410", "A"), ("\u0410", "\u0391")]),
        (["1", "\uff11", "2"], [("1", "\uff11")]),  # a wide digit
        (["Paris", "paris", "\u041f\u0430\u0440\u0438\u0436", "\u03a0"], []),
    ],
)
def test_values_that_look_alike_are_named(values: list[str], pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    """With escapes, since nobody could tell them apart, by describe and by a job; the collection is accepted."""
    assert list(lookalikes(values)) == pairs
    collection = of({"id": "closed", "values": values}, {"id": "krr", "epsilon": 1.0})
    sentences = list(sentences_about_lookalikes([collection]))
    assert len(sentences) == bool(pairs)
    for sentence in sentences:
        assert f"apart: {pairs[0][0]!a} and {pairs[0][1]!a}" in sentence and sentence.isascii()
        assert sentence in text_of(collection)


def test_a_job_says_which_values_look_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = ["Paris", "P\u0430ris"]
    collection = of({"id": "closed", "values": values}, {"id": "krr", "epsilon": 1.0})
    write_files(
        tmp_path,
        {"c.json": collection, "r.avro": container([(1, wire.encode_reports(collection.perturb(["Paris"]))[0])])},
    )
    argv = ["--collection", str(tmp_path / "c.json"), "--input", str(tmp_path / "r.avro")]
    assert uldp.main(["estimate", *argv, "--output", str(tmp_path / "out")]) == 0
    said = (
        "estimate: collection 'c' counts values that look alike apart: 'Paris' and 'P\\u0430ris'; if one of them is a"
    )
    assert said in capsys.readouterr().err
