"""Words, numbers and facts of a page, function by function: each limit from both sides, each sentence in full."""

from __future__ import annotations

import datetime
import math
import re
from typing import Any

import numpy as np
import pytest

from uldp_transforms.jobs.records.collection_facts import facts_of, sensitive_in_words, sensitive_values
from uldp_transforms.jobs.records.run_records import collections_of
from uldp_transforms.ldp import Collection
from uldp_transforms.rows.figures import figure_words
from uldp_transforms.rows.figures.figure import Figure, share_of, table_of, trend_of
from uldp_transforms.rows.figures.figure_words import NumberFormat, digits_of
from uldp_transforms.rows.figures.window_names import (
    WindowNames,
    clock,
    local,
    moment_in_zone,
    name_of_moment,
    starts_in,
)
from uldp_transforms.windows import rfc3339
from uldp_transforms_report import texts_for_readers as texts
from uldp_transforms_report.facts import Coverage
from uldp_transforms_report.question_facts import (
    costs_of,
    facts_of_question,
    liars_in_words,
    questions_in,
    reports_in_words,
    shares_of_liars,
)

DASH, DOTS = "\N{EN DASH}", "\N{HORIZONTAL ELLIPSIS}"
NAN, DAY = math.nan, 86_400_000
PERCENT = NumberFormat()


def share(digits: int) -> NumberFormat:
    return NumberFormat(True, digits)


def number(digits: int) -> NumberFormat:
    return NumberFormat(False, digits)


# --------------------------------------------------------------------------------------------------------------- texts


def test_untrusted_texts_are_harmless_and_of_one_line() -> None:
    """Joiners of scripts and emoji stay; what cannot be printed is replaced; long texts are cut."""
    found = [texts.shown(text) for text in ("a\nb", "\u200c\u200d", "\u202ex", "", " ", "\n", " a ")]
    assert found == ["a\ufffdb", "\u200c\u200d", "\ufffdx", "(empty)", "(white space)", "\ufffd", " a "]
    assert [len(texts.shown("a" * number)) for number in (119, 120, 121, 500)] == [119, 120, 120, 120]
    assert texts.shown("abcdef", 5) == f"abcd{DOTS}" and texts.shown("abcde", 5) == "abcde"


def test_values_are_cut_in_their_middle() -> None:
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    assert [texts.named(alphabet, longest) for longest in (26, 25)] == [alphabet, f"abcdefghijklmnop{DOTS}stuvwxyz"]
    assert texts.named(alphabet * 2, 40) == f"{(alphabet * 2)[:29]}{DOTS}qrstuvwxyz"
    assert texts.named("a" * 120) == "a" * 120 and texts.named("a" * 121) == f"{'a' * 109}{DOTS}{'a' * 10}"
    assert texts.named("\n" * 3) == "\ufffd" * 3


def test_a_letter_is_not_divided_from_its_accents() -> None:
    assert texts.ends_of("0123456789") == ("", "0123456789") and texts.ends_of("ab") == ("", "ab")
    assert texts.ends_of("\u0301bc") == ("", "\u0301bc") and texts.ends_of("a\u0301bcdefghij") == (
        "a\u0301",
        "bcdefghij",
    )
    assert texts.ends_of("abc0123456789") == ("abc", "0123456789")
    assert texts.ends_of("ab\u0301123456789") == ("ab\u0301", "123456789")
    assert texts.ends_of("a\u0301\u0302123456789") == ("a\u0301\u0302", "123456789")
    assert texts.ends_of("ab\u200dc12345678") == ("ab\u200dc", "12345678")
    assert texts.ends_of("a\u200dbc12345678") == ("a\u200db", "c12345678")
    assert texts.ends_of("x" + "\u0301" * 12) == ("x" + "\u0301" * 12, "")


def test_values_in_sentences_keep_their_direction() -> None:
    said = texts.with_values("from 'a<b' to \"it's\" and 'x\\'y' now")
    assert str(said) == (
        "from <bdi>&#39;a&lt;b&#39;</bdi> to <bdi>&#34;it&#39;s&#34;</bdi> and <bdi>&#39;x\\&#39;y&#39;</bdi> now"
    )
    assert str(texts.group_words("a=1<,b=2,c=3")) == "a=1&lt;,<wbr>b=2,<wbr>c=3"


def test_addresses_in_a_note_are_links() -> None:
    """And nothing else is markup."""
    assert str(texts.with_links("a<b at http://x:1/?a=1&b=2.")) == (
        'a&lt;b at <a href="http://x:1/?a=1&amp;b=2">http://x:1/?a=1&amp;b=2</a>.'
    )
    assert str(texts.with_links('"https://x/"> javascript:alert(1)')) == (
        '&#34;<a href="https://x/">https://x/</a>&#34;&gt; javascript:alert(1)'
    )


def test_shares_have_more_decimals_if_they_are_small() -> None:
    shares = [0.0123, 0.001, 0.00099, 0.0001, -0.00099, 1.01e-8, 1e-8, 0.99e-8, 0.0, 1.0, None, NAN]
    assert [figure_words.percent(share) for share in shares] == [
        *(
            "1.2 %",
            "0.1 %",
            "0.10 %",
            "0.01 %",
            "-0.10 %",
            "0.000001 %",
            "0.0 %",
            "0.0 %",
            "0.0 %",
            "100.0 %",
            DASH,
            DASH,
        )
    ]
    assert figure_words.percent(-1e-9) == "0.0 %"  # never minus zero


def test_an_interval_may_have_an_open_end() -> None:
    ends: list[tuple[float | None, float | None]] = [(0.1, 0.2), (None, 0.2), (0.1, None), (NAN, 0.2), (None, NAN)]
    in_words = ["10.0 to 20.0 %", "below 20.0 %", "from 10.0 %", "below 20.0 %", DASH]
    assert [PERCENT.span(*of) for of in ends] == in_words == [share(1).span(*of) for of in ends]
    assert share(2).span(0.1, 0.2) == "10.00 to 20.00 %"
    assert [number(1).span(*of) for of in ((2.9, 5.8), (None, 5.8), (2.9, NAN))] == [
        *("2.9 to 5.8", "below 5.8", "from 2.9")
    ]
    assert [share(1).text(of) for of in (0.1, None, NAN, -0.0001, -0.001)] == [
        "10.0 %",
        DASH,
        DASH,
        "0.0 %",
        "-0.1 %",
    ]


def test_a_share_of_0_or_1_has_one_end() -> None:
    """So has an interval that begins at 0, beside any share; where an interval is a point, both ends are written."""
    told = [(0.0, 0.0, 0.018), (1.0, 0.982, 1.0), (1e-12, -1e-12, 0.018), (0.001, 0.0, 0.018), (0.0, 0.0, 0.0)]
    assert [PERCENT.words(*of) for of in told] == [
        *("below 1.8 %", "above 98.2 %", "below 1.8 %", "0.1 % (below 1.8 %)", "0.0 % (0.0 to 0.0 %)")
    ]
    assert [share(2).span(low, high, value) for value, low, high in told] == [
        *("below 1.80 %", "above 98.20 %", "below 1.80 %", "below 1.80 %", "0.00 to 0.00 %")
    ]
    assert share(2).span(0.982, 1.0, 0.99) == "above 98.20 %" and share(2).span(0.0, 0.018) == "0.00 to 1.80 %"
    assert share(1).span(0.0, 0.0001, 0.0) == "below 0.01 %"  # not below 0.0 %
    assert share(1).span(0.9999, 1.0, 1.0) == "above 99.99 %"  # not above 100.0 %
    assert PERCENT.words(0.0, 0.0, 1.0) == "0.0 % (0.0 to 100.0 %)"  # below 100.0 % says nothing
    assert PERCENT.words(None, None, None) == f"{DASH} ({DASH})"
    assert number(1).words(0.0, 0.0, 0.018) == "0.0 (0.0 to 0.0)"  # a mean may be 0
    assert NumberFormat(False, 1, "min").words(2.0, None, 3.0) == "2.0 min (below 3.0)"


def test_differences_have_signs() -> None:
    numbers = [3.14159, -3.14159, 0.0, -0.001, 0.001, 1234.5, None, NAN]
    assert [number(2).signed(of) for of in numbers] == [
        *("+3.14", "-3.14", "0.00", "0.00", "0.00", "+1,234.50", DASH, DASH)
    ]
    assert [share(1).signed(difference) for difference in (0.5, None)] == ["+50.0", DASH]
    ends: list[tuple[float | None, float | None]] = [(-0.029, 0.058), (None, 0.058), (-0.029, None), (None, None)]
    assert [share(1).signed_span(*of) for of in ends] == ["-2.9 to +5.8", "below +5.8", "from -2.9", DASH]
    assert number(1).signed_span(-2.9, 0.0) == "-2.9 to 0.0"


def test_an_end_beside_0_is_not_written_as_0() -> None:
    """An interval that is called apart from 0 looks like one, whatever the number of decimals of its table."""
    assert number(1).signed_span(0.04, 1.2) == "+0.0 to +1.2" and number(1).signed_span(-1.2, -0.04) == "-1.2 to -0.0"
    assert share(2).signed_span(1e-9, 0.02) == "+0.00 to +2.00" and number(0).signed_span(None, -0.01) == "below -0"
    assert [share(1).span(low, 0.03) for low in (0.0, 1e-9, 0.0004, 0.0006)] == [
        *("0.0 to 3.0 %", "<0.1 to 3.0 %", "<0.1 to 3.0 %", "0.1 to 3.0 %")
    ]
    assert share(2).span(0.00004, 0.03) == "<0.01 to 3.00 %" and share(1).span(-1e-9, 0.03) == "0.0 to 3.0 %"
    assert PERCENT.span(1e-9, 0.03) == "0.0 to 3.0 %" and number(1).span(0.04, 1.2) == "0.0 to 1.2"


def test_the_shortest_interval_shows_two_digits() -> None:
    halves = [0.5, 0.0999, 0.0101, 0.00999, 0.00101, 0.000999, 0.000101, 0.0000999, 1e-9]
    assert [digits_of([half, 0.9, None, 0.0, math.inf], True) for half in halves] == [1, 1, 1, 2, 2, 3, 3, 4, 4]
    assert digits_of([], True) == digits_of([0.0, None, -1.0], True) == 1


def test_long_lists_are_cut() -> None:
    assert [texts.in_words(list("abcdefg")[:number]) for number in (0, 1, 5, 6)] == [
        *("", "a", "a, b, c, d, e", "a, b, c, d, e and 1 more")
    ]
    assert texts.in_words(list("abc"), 1) == "a and 2 more"


# ------------------------------------------------------------------------------------------------------------- windows


def alone(start: str | None, end: str | None, zone: datetime.tzinfo) -> str:
    """The name of a window that stands alone."""
    return WindowNames.among((start, end), zone).window(start, end)


@pytest.mark.parametrize(
    ("start", "end", "name"),
    [
        ("2001-09-11T00:00:00Z", "2001-09-12T00:00:00Z", "Tue 11 Sep 2001"),
        ("2001-09-11T00:00:00Z", "2001-09-13T00:00:00Z", "11 Sep 2001 to 12 Sep 2001"),
        ("2001-09-11T00:00:00Z", "2001-09-12T00:01:00Z", "11 Sep 2001, 00:00 to 12 Sep 2001, 00:01"),
        ("2001-09-10T23:59:00Z", "2001-09-12T00:00:00Z", "10 Sep 2001, 23:59 to 12 Sep 2001, 00:00"),
        ("2001-09-11T13:00:00Z", "2001-09-11T13:00:01Z", "11 Sep 2001, 13:00:00 to 13:00:01"),
        ("2001-09-11T13:00:01Z", "2001-09-11T13:01:00Z", "11 Sep 2001, 13:00:01 to 13:01:00"),
        ("2001-09-11T13:00:00Z", "2001-09-11T13:00:00.001Z", "11 Sep 2001, 13:00:00.000 to 13:00:00.001"),
        (None, "2001-09-12T00:00:00Z", "all reports"),
        ("2001-09-12T00:00:00Z", None, "all reports"),
    ],
)
def test_windows_are_named_by_their_days_and_times(start: str | None, end: str | None, name: str) -> None:
    assert alone(start, end, clock(None)) == name


def test_an_hour_that_comes_twice_is_told_apart() -> None:
    """Clocks in Berlin are put back at 03:00 on 28 October 2001: two windows begin at 02:00."""
    berlin = clock("Europe/Berlin")
    hours = ["2001-10-27T23:00:00Z", "2001-10-28T00:00:00Z", "2001-10-28T01:00:00Z", "2001-10-28T02:00:00Z"]
    names = WindowNames.among(hours, berlin)
    assert [names.moment(hour).removeprefix("28 Oct 2001, ") for hour in hours] == [
        "01:00",
        "02:00 CEST",
        "02:00 CET",
        "03:00",
    ]
    assert alone(hours[1], hours[2], berlin) == "28 Oct 2001, 02:00 CEST to 02:00 CET"
    assert alone(hours[0], hours[3], clock("UTC")) == "27 Oct 2001, 23:00 to 28 Oct 2001, 02:00"
    assert alone("2001-10-27T22:00:00Z", "2001-10-28T23:00:00Z", berlin) == "Sun 28 Oct 2001"


def test_a_window_of_a_comparison_gets_its_name() -> None:
    berlin = clock("Europe/Berlin")
    days = WindowNames(berlin, None)
    assert days.text("window=2001-03-24T23:00:00Z") == "Sun 25 Mar 2001"
    assert days.text("window=2001-03-24T23:00:00Z is left out") == "Sun 25 Mar 2001 is left out"
    for text in ("window=b", "country=DE", "window=2001-03-24T23:00:00Z,arm=new", "a window=2001-03-24T23:00:00Z"):
        assert days.text(text) == text and starts_in([text]) == []
    assert starts_in(["window=2001-03-24T23:00:00Z is left out"]) == ["2001-03-24T23:00:00Z"]


def test_the_windows_of_one_list_are_named_alike() -> None:
    """By days if all consist of days; else that of midnight has a time too, and all have the same digits."""
    berlin = clock("Europe/Berlin")
    midnight, half, second = "2001-09-10T22:00:00Z", "2001-09-10T22:30:00Z", "2001-09-11T00:00:01Z"
    days = WindowNames.among([midnight, "2001-09-11T22:00:00Z", None], berlin)
    assert days.moment(midnight) == days.window(midnight, "2001-09-11T22:00:00Z") == "Tue 11 Sep 2001"
    minutes = WindowNames.among([midnight, half], berlin)
    assert [minutes.moment(moment) for moment in (midnight, half)] == ["11 Sep 2001, 00:00", "11 Sep 2001, 00:30"]
    assert minutes.window(midnight, half) == "11 Sep 2001, 00:00 to 00:30"
    assert minutes.window(midnight, "2001-09-12T22:00:00Z") == "11 Sep 2001, 00:00 to 13 Sep 2001, 00:00"
    assert minutes.text(f"window={midnight}") == "11 Sep 2001, 00:00"
    seconds = WindowNames.among([second, midnight, half], berlin)
    assert [seconds.moment(moment) for moment in (midnight, half, second)] == [
        *("11 Sep 2001, 00:00:00", "11 Sep 2001, 00:30:00", "11 Sep 2001, 02:00:01")
    ]
    assert WindowNames.among([midnight, second.replace("Z", ".5Z")], berlin).moment(midnight).endswith("00:00:00.000")
    assert WindowNames.among([], berlin) == WindowNames(berlin, None)


def test_a_moment_of_a_program_has_seconds_and_its_zone() -> None:
    berlin = clock("Europe/Berlin")
    assert name_of_moment("2001-09-10T22:00:00.999Z", berlin) == "11 Sep 2001, 00:00:00"
    assert moment_in_zone("2001-09-10T22:00:00Z", berlin) == "11 Sep 2001, 00:00:00 (Europe/Berlin)"
    assert moment_in_zone("2001-09-10T22:00:00Z", clock(None)) == "10 Sep 2001, 22:00:00 (UTC)"


def test_an_unknown_zone_is_utc() -> None:
    for zone in (None, "", "none/such", "../etc"):
        assert local("2001-09-11T13:00:00Z", clock(zone)).isoformat() == "2001-09-11T13:00:00+00:00"
    assert clock("none/such") == datetime.timezone.utc
    assert local("2001-09-11T13:00:00Z", clock("Europe/Berlin")).isoformat() == "2001-09-11T15:00:00+02:00"


# --------------------------------------------------------------------------------------------------------------- facts

CLOSED: dict[str, Any] = {"id": "closed", "values": ["a", "b", "c"]}


def collection(
    mechanism: str = "krr", epsilon: float = 1.0, alphabet: dict[str, Any] = CLOSED, id: str = "c", **more: Any
) -> Collection:
    given = {"id": id, "version": 1, "alphabet": alphabet, "mechanism": {"id": mechanism, "epsilon": epsilon}}
    return Collection.from_json(given | more)


def said(of: Collection | None, name: str, **specification: Any) -> str:
    found = dict(facts_of(of, specification))
    return found[name]


def test_what_an_observer_can_know_is_not_said_to_be_less() -> None:
    """By Bayes' rule from even odds: e^epsilon / (1 + e^epsilon)."""
    for epsilon in (0.1, 1.0, 3.0, 6.9):
        sure = 100 * math.exp(epsilon) / (1 + math.exp(epsilon))
        assert said(collection(epsilon=epsilon), "Epsilon of one report") == (
            f"{epsilon:g}: a protected report is at most {math.exp(epsilon):,.3g} times as likely from one value as "
            "from any other. An observer who considers two values equally likely can be at most "
            f"{sure:.1f} % sure after seeing it"
        )
    assert said(collection(epsilon=7.0), "Epsilon of one report").endswith(
        "at most more than 99.9 % sure after seeing it"
    )


def test_an_observer_knows_the_block() -> None:
    blocks = {"id": "blocks", "blocks": {"b": ["x", "y"], "c": ["z", "w"]}}
    assert said(collection(alphabet=blocks), "Epsilon of one report") == (
        "1: a protected report is at most 2.72 times as likely from one value as from any other of its block. An "
        "observer who considers two values of one block equally likely can be at most 73.1 % sure after seeing it"
    )


def test_answers_are_told() -> None:
    assert said(collection(), "Answers") == "3 listed values (closed)"
    sensitive = CLOSED | {"sensitive": ["a"]}
    assert said(collection("urr", alphabet=sensitive), "Answers") == "3 listed values, 1 of them sensitive (closed)"
    assert said(collection("krr", alphabet=sensitive), "Answers") == "3 listed values (closed)"
    hashed = {"id": "hashed", "num_buckets": 1024}
    of = collection(alphabet=hashed, num_cohorts=2048)
    text = "any text, hashed into 1,024 buckets (hashed, 2,048 cohorts)"
    assert said(of, "Answers") == said(of, "Answers", candidates=0) == text
    assert said(collection(alphabet=hashed, num_cohorts=2), "Answers").endswith("(hashed, 2 cohorts)")
    assert said(of, "Answers", candidates=1500) == f"{text}; the collector looks for 1,500 candidates"
    assert facts_of(None, {}) == [("Question", "not known: no run record in the directory names the collection")]


ORDERED: dict[str, Any] = {"id": "ordered", "edges": [0, 10, 20, 30, 40], "unit": "min"}


def test_numbers_are_told_by_their_bins() -> None:
    end = "in the first bin, and all from 30 min on in the last one (ordered)"
    assert said(collection(alphabet=ORDERED), "Answers") == (
        "a number (in min). A device keeps only in which of 4 bins the number is, not where in it. All numbers below "
        f"10 min are {end}"
    )
    bare = {name: value for name, value in ORDERED.items() if name != "unit"} | {"others": ["none", "unknown"]}
    assert said(collection(alphabet=bare), "Answers").startswith(
        "a number, or one of these texts: none, unknown. A device"
    )
    assert "numbers below 10 are in" in said(collection(alphabet=bare), "Answers")


@pytest.mark.parametrize(
    ("sensitive", "words"),
    [
        ([[None, 20]], "numbers below 20 min"),
        ([[20, None]], "numbers from 20 min"),
        ([[10, 30]], "numbers from 10 and below 30 min"),
        ([[None, 10], [20, 30]], "numbers below 10 min; numbers from 20 and below 30 min"),
        ([[10, 20], [30, None]], "numbers from 10 and below 20 min; numbers from 30 min"),
        ([[None, 20], [20, None]], "all numbers"),
        ([[10, 20], "none"], "numbers from 10 and below 20 min; none"),
        (["none"], "none"),
    ],
)
def test_sensitive_numbers_are_told_by_whole_bins(sensitive: list[Any], words: str) -> None:
    alphabet = ORDERED | {"others": ["none", "unknown"], "sensitive": sensitive}
    assert sensitive_in_words(collection("urr", alphabet=alphabet)) == words


def test_values_are_sensitive_if_the_mechanism_tells_them_apart() -> None:
    sensitive = CLOSED | {"sensitive": ["c", "a"]}
    assert sensitive_values(None) is None and sensitive_values(collection()) is None
    assert sensitive_values(collection("krr", alphabet=sensitive)) is None
    assert sensitive_values(collection("urr", alphabet=sensitive)) == {"a", "c"}
    hashed = {"id": "hashed", "num_buckets": 8, "non_sensitive": ["x"]}
    assert sensitive_values(collection("urr", alphabet=hashed, num_cohorts=4)) is None


def test_what_is_not_protected_is_told() -> None:
    found = said(collection("urr", alphabet=CLOSED | {"sensitive": ["a"]}), "Not protected")
    assert re.fullmatch(
        r"Non-sensitive symbols are not protected: each is sent in clear with probability 0\.\d+\.", found
    )
    of = collection("usw", alphabet=ORDERED | {"sensitive": [[10, 20]], "others": ["none"]})
    share = f"{of.mechanism.reveal_rate:.3g}"
    clear = f"Non-sensitive symbols are not protected: each is sent in clear with probability {share}."
    assert said(of, "Not protected") == clear
    assert "Not protected" not in dict(facts_of(collection(), {}))


def test_what_a_device_sends_is_told_without_options_and_special_cases() -> None:
    assert (
        said(collection(), "A device sends") == "one symbol (krr)"
        and said(collection(), "Protected") == "every value: epsilon-LDP"
    )
    assert said(collection("rappor"), "A device sends") == "one bit per symbol (rappor)"
    best = "a set of subset_size symbols (default: the best size if everybody's value is sensitive)"
    assert said(collection("ss"), "A device sends") == f"{best} (ss)"
    of = collection("urr", alphabet=CLOSED | {"sensitive": ["a"]})
    assert said(of, "A device sends") == "one symbol; non-sensitive ones often in clear (urr)"
    assert said(of, "Protected") == "sensitive values"


def test_a_channel_that_rules_values_out_protects_nothing() -> None:
    given = collection().to_json() | {"alphabet": {"id": "closed", "values": ["a", "b"]}}
    of = Collection.from_json(given | {"mechanism": {"id": "channel", "matrix": [["1/2", "0"], ["1/2", "1"]]}})
    assert said(of, "Protected") == "nothing: a report can rule values out"
    assert said(of, "Epsilon of one report") == "infinite"
    [question] = questions_in([Collection.from_json(of.to_json() | {"question": "q"})]).values()
    assert dict(facts_of_question(question, {}))["Pooled from"] == "c version 1 (channel, epsilon infinite)"


def test_memos_without_a_window_are_told() -> None:
    memos = {"mechanism": {"id": "krr", "epsilon": 1.0, "epsilon_inf": 2.0}}
    of, asked = (Collection.from_json(collection().to_json() | memos | more) for more in ({}, {"client_window": "1d"}))
    told = said(of, "Reports of one person")
    assert told.startswith("number per window not known, and they share part of their noise (memos)")
    for other in (collection(), asked):
        assert "Reports of one person" not in dict(facts_of(other, {}))


def test_collections_are_those_of_the_runs_and_others() -> None:
    """Those of newer versions are left out; given ones say what equal ones are called."""
    first, second, third = collection(id="a"), collection(id="b"), collection(id="d")
    records: Any = [
        type("Record", (), {"specification": {"collections": [first.to_json(), {"id": "new"}]}}),
        type("Record", (), {"specification": {"collections": None}}),
        type("Record", (), {"specification": {"collections": [second.to_json()]}}),
    ]
    found = collections_of(records, [third])
    assert {key: of.id for key, of in found.items()} == {of.fingerprint.hex(): of.id for of in (first, second, third)}
    named = collection(id="a", noun={"one": "nap", "many": "naps"})
    assert collections_of(records, [named])[first.fingerprint.hex()].noun == named.noun != first.noun


def test_versions_of_a_question_are_told() -> None:
    def version(number: int, values: list[str], epsilon: float, **more: Any) -> Collection:
        alphabet = {"id": "closed", "values": values}
        return collection(epsilon=epsilon, alphabet=alphabet, version=number, **({"question": "q"} | more))

    versions = [version(1, ["a", "b"], 1.0), version(2, ["a", "z", "y"], 1.5), version(3, ["a", "b"], 2.0)]
    found = questions_in([*versions, collection(id="alone")])
    [question] = found.values()
    assert facts_of_question(question, {}) == [
        ("Answers", "2 listed values (closed)"),
        ("Pooled from", "c version 1 (krr, epsilon 1); c version 3 (krr, epsilon 2)"),
        ("Not pooled, because they have other answers", "c version 2 (krr, epsilon 1.5)"),
    ]
    assert len(facts_of_question(next(iter(questions_in([versions[0], versions[2]]).values())), {})) == 2
    assert questions_in([collection(id="alone")]) == {}


# ----------------------------------------------------------------------------------------------------- reports, liars


def windows(*numbers: int | None, step: int = 2, length: int = 2) -> list[dict[str, Any]]:
    return [
        {"num_reports": number, "window_start": rfc3339(at * step), "window_end": rfc3339(at * step + length)}
        for at, number in enumerate(numbers)
    ]


def test_reports_are_added_unless_windows_overlap() -> None:
    """Windows that touch do not."""
    assert reports_in_words(windows(None, None)) == "not shown: every window has too few"
    assert reports_in_words(windows(None, 1234)) == "1,234"
    assert reports_in_words(windows(1000, None, 3000)) == (
        "4,000; 1,000 to 3,000 in each of the 2 windows that show the number"
    )
    assert reports_in_words(windows(50, 50)) == "100; 50 in each of the 2 windows that show the number"
    assert reports_in_words(windows(50, 60, length=3)) == (
        "50 to 60 in each of the 2 windows that show the number; windows overlap"
    )
    nothing = {"num_reports": 7, "window_start": None, "window_end": None}
    assert reports_in_words([nothing]) == "7"


def test_declared_liars_are_told() -> None:
    rows = [{"liars": 0.05}, {"liars": None}, {}, {"liars": 0.01}, {"liars": 0.05}]
    assert shares_of_liars([*rows, None]) == [0.01, 0.05]
    because = "as the operator declares; intervals are of shares among honest people"
    assert liars_in_words(rows, {"liars": 0.02}) == [
        (
            "Lies among the reports of a window",
            f"at most 1 %, 5 %, {because}, and windows are not compared, because liars may be others in each",
        ),
        ("Lies among all reports", f"at most 2 %, {because}"),
    ]
    assert liars_in_words([{}], None) == liars_in_words([], {}) == []


# --------------------------------------------------------------------------------------------------------------- costs


def costs(step: int, number: int = 3, length: int | None = None) -> dict[str, float]:
    starts = [10 * DAY + at * step for at in range(number)]
    ends = [rfc3339(start + (length or step)) for start in starts]
    found = costs_of(collection(epsilon=0.5), [rfc3339(start) for start in starts], ends)
    return {cost.reports: cost.epsilon for cost in found}


def test_what_reports_of_one_person_cost() -> None:
    """One in each window of a day, a week, 30 days and a year, if that is more than one and at most 1,000."""
    assert costs(DAY, 0) == {"one report": 0.5}
    assert costs_of(None, [], []) == []
    daily = {"one report": 0.5, "one in each window of a week (7)": 3.5, "one in each window of 30 days (30)": 15.0}
    assert costs(DAY) == daily | {"one in each window of a year (365)": 182.5}
    assert costs(DAY, 1) == costs(DAY, 2, 2 * DAY) == costs(DAY)
    assert costs(DAY, 1, 2 * DAY) != costs(DAY)
    assert costs(365 * DAY) == {"one report": 0.5}
    assert "one in each window of a year (2)" in costs(182 * DAY)
    hourly = {"one in each window of a day (24)": 12.0, "one in each window of a week (168)": 84.0}
    assert costs(DAY // 24) == {"one report": 0.5} | hourly | {"one in each window of 30 days (720)": 360.0}
    assert list(costs(DAY // 1000)) == ["one report", "one in each window of a day (1,000)"]
    assert costs(DAY // 1440) == {"one report": 0.5, "100 reports": 50.0}


def test_the_step_between_windows_is_the_usual_one() -> None:
    starts = [rfc3339(DAY * at) for at in (0, 1, 2, 9)]
    found = costs_of(collection(), starts, [rfc3339(DAY * at) for at in (1, 2, 3, 10)])
    assert "one in each window of a week (7)" in {cost.reports for cost in found}


# ----------------------------------------------------------------------------------------------------- plain data


def entry(**more: Any) -> Figure:
    given: dict[str, Any] = {"name": "a", "is_share": True, "value": 0.2, "low": 0.1, "high": 0.3}
    return Figure(**given | more)


def test_an_interval_is_told_apart_from_0_and_holds_the_truth_at_its_ends() -> None:
    assert [entry(low=low).told_apart for low in (0.0, 1e-9, -0.1, 0.1)] == [False, True, False, True]
    assert [entry(truth=truth).covered for truth in (None, 0.1, 0.3, 0.09, 0.31, 0.2)] == [
        None,
        True,
        True,
        False,
        False,
        True,
    ]
    assert Coverage(what="x", held=19, number=20).share == 0.95


def test_a_window_contradicts_what_is_smoothed_if_they_have_no_share_in_common() -> None:
    """Intervals that touch have one."""
    smoothed_low = np.array([0.4, 0.41, 0.1, 0.1, 0.3, NAN])
    smoothed_high = np.array([0.5, 0.5, 0.2, 0.19, 0.35, NAN])
    figures = [
        share_of(
            {"value": "a", "frequency": 0.3, "ci_low": 0.2, "ci_high": 0.4, "smoothed_frequency": one[0]}
            | {"smoothed_low": one[0], "smoothed_high": one[1]}
        )
        for one in zip(smoothed_low, smoothed_high)
    ]
    found = trend_of(entry(), table_of(figures))
    assert found.contradicted.tolist() == [False, True, False, True, False, False]
