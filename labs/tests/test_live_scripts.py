"""The scripts of the survey page of ``uldp live``, with the client itself, in Node."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labs import live
from labs.live.ask_page import CLIENT
from labs.live.sleep_question import COLLECTION, SHARES, TEXT
from tests.support.page_scripts import needs_node, run
from uldp_transforms.ldp.client.client_form import client_form

HERE = Path(live.__file__).parent
PAGE = (HERE / "ask.html").read_text(encoding="utf-8").replace("<!doctype html>", "")
ANSWERS = list(SHARES)

pytestmark = needs_node

Play = Callable[[str, str], Any]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """What a program returns that imports one of the scripts: as ``it``."""
    for name in ("ask", "ask-chart", "ask-doubt"):
        text = (
            (HERE / f"{name}.js")
            .read_text(encoding="utf-8")
            .replace("/client/index.js", (CLIENT / "index.js").as_uri())
        )
        (tmp_path / f"{name}.mjs").write_text(re.sub(r'"/(ask-\w+)\.js"', r'"./\1.mjs"', text), encoding="utf-8")

    def result(name: str, program: str) -> Any:
        before, _, after = program.rpartition("// import\n")
        return run(f"{before}\nconst it = await import({json.dumps((tmp_path / name).as_uri())});\n{after}", PAGE)

    return result


# --------------------------------------------------------------------------------------------------------------- chart


def window(start: int, share: float, truth: float | None = None, early: bool = False) -> dict[str, Any]:
    numbers = {"reports": 1000 + start, "frequency": share, "low": share - 0.1, "high": share + 0.1, "truth": truth}
    return {"start": 1_700_000_000 + start, "early": early} | numbers  # 22:13:20 in UTC


STEP = 502 / 13
KEY = (
    '<g class="key"><line class="truth" x1="48" x2="70" y1="14" y2="14"></line>'
    '<text x="76" y="18">truth of the simulation</text><circle cx="282" cy="14" r="5"></circle>'
    '<text x="292" y="18">estimate</text><circle class="open" cx="390" cy="14" r="5"></circle>'
    '<text x="400" y="18">unfinished window</text></g>'
)


def rounded(markup: str) -> str:
    """With two decimals: sums of floats differ in their last digits."""
    return re.sub(r"-?\d+\.\d+", lambda found: f"{round(float(found[0]), 2):g}", markup)


def grid(tenths: int, each: int) -> list[str]:
    lines = []
    for tenth in range(0, tenths + 1, each):
        at = 262 - 232 * tenth / tenths
        lines.append(f'<line class="grid" x1="48" x2="550" y1="{at:g}" y2="{at:g}"></line>')
        lines.append(f'<text text-anchor="end" x="42" y="{at + 4:g}">{10 * tenth} %</text>')
    return lines


def marks(of: dict[str, Any], place: int, kind: str, tenths: int) -> list[str]:
    """The truth, and an interval with its point and its numbers."""
    y = {name: 262 - 232 * 10 * (of[name] or 0) / tenths for name in ("frequency", "low", "high", "truth")}
    left, middle = 48 + place * STEP, 48 + (place + 0.5) * STEP
    truth = f'<line class="truth" x1="{left}" x2="{left + STEP}" y1="{y["truth"]}" y2="{y["truth"]}"></line>'
    said = (
        f"{100 * of['frequency']:.1f} %, {100 * of['low']:.1f} % to {100 * of['high']:.1f} %, {of['reports']:,} reports"
    )
    line = f'<line x1="{middle}" x2="{middle}" y1="{y["low"]}" y2="{y["high"]}"></line>'
    point = f'<circle cx="{middle}" cy="{y["frequency"]}" r="5"></circle>'
    return [truth] * (of["truth"] is not None) + [f'<g class="{kind}"><title>{said}</title>{line}{point}</g>']


def test_the_chart_of_windows_and_of_all_together(play: Play) -> None:
    """Every third window has its time; one is without a truth, one unfinished; the last place is for all."""
    windows = [window(0, 0.2, 0.25), window(20, 0.3, early=True), window(40, 0.15), window(60, 0.1, 0.0)]
    total = {"reports": 4120, "mean": 0.2, "low": 0.15, "high": 0.25, "truth": 0.22, "confidence": 0.95}
    program = (
        f"process.env.TZ = 'UTC';\nconst [windows, total] = {json.dumps([windows, total])};\n"
        "return [it.marks(windows, total), it.marks(windows, null)].map((made) => made.map(markup));"
    )
    found, alone = ([rounded(part) for part in made] for made in play("ask-chart.mjs", program))
    clock = '<text text-anchor="middle" x="{}" y="280">22:1{}</text>'
    edge = 550 - STEP
    expected = [
        *grid(4, 1),
        *marks(windows[0], 0, "window", 4),
        clock.format(48 + STEP / 2, "3:20"),
        *marks(windows[1], 1, "window early", 4),
        *marks(windows[2], 2, "window", 4),
        *marks(windows[3], 3, "window", 4),
        clock.format(48 + 3.5 * STEP, "4:20"),
    ]
    last = [
        f'<line class="grid" x1="{edge}" x2="{edge}" y1="30" y2="262"></line>',
        *marks(total | {"frequency": 0.2}, 12, "window all", 4),
        '<text text-anchor="end" x="558" y="280">all windows</text>',
    ]
    assert found == [rounded(part) for part in [*expected, *last, KEY]]
    assert alone == [rounded(part) for part in [*expected, KEY]]


@pytest.mark.parametrize(
    ("high", "tenths", "each"), [(0.01, 1, 1), (0.1, 1, 1), (0.11, 2, 1), (0.5, 5, 1), (0.51, 6, 2), (1.0, 10, 2)]
)
def test_the_scale_of_the_chart(high: float, tenths: int, each: int, play: Play) -> None:
    """Up to the next tenth above all intervals and truths; at most six labels."""
    of = {"start": 0, "early": False, "reports": 1, "frequency": 0.0, "low": 0.0}
    both = [[of | {"high": high, "truth": None}], [of | {"high": 0.0, "truth": high}]]
    program = (
        f"return {json.dumps(both)}.map((windows) => it.marks(windows, null).slice(0, -3).map(markup).map(String));"
    )
    for found in play("ask-chart.mjs", program):
        assert [rounded(part) for part in found if "grid" in part or "%</text>" in part] == [
            rounded(part) for part in grid(tenths, each)
        ]


TOTAL = {"reports": 1234, "mean": 0.2, "low": 0.15, "high": 0.25, "truth": 0.22, "confidence": 0.95}
SUM = "20.0 % answered “badly”; between 15.0 % and 25.0 % with 95 % confidence, from 1,234 reports since the start."
FOLLOWED = """
const [asked, answers] = [[], []];
let clock = 5000;
globalThis.performance = { now: () => clock };
globalThis.fetch = async (...request) => {
  asked.push(request);
  if (request.length > 1) throw new Error("nobody hears");
  const content = answers.shift();
  if (!content) throw new Error("away");
  return { json: async () => content };
};
"""


def test_the_chart_follows_the_stream_and_the_slider_moves_the_crowd(play: Play) -> None:
    """Once a second; for two seconds after a reader moved the slider it stays where it is."""
    of = {"acknowledged": 7, "age": None}
    now = {"value": "badly", "share": 0.2, "windows": [window(0, 0.3)], "total": TOTAL, "books": of}
    program = f"""{FOLLOWED} answers.push({json.dumps({"value": "badly"})}, {json.dumps(now)});
    // import
    const shown = () => [...["value", "value2", "sum", "number", "books"].map((id) => one(`#${{id}}`).textContent),
      one("#slider").value, one("#slide").hidden, all("#chart .window").length];
    const next = async (content, at = clock) => {{
      clock = at; answers.push(content);
      const [look, ms] = timers.shift(); await look();
      return [ms, timers.length, ...shown()];
    }};
    it.follow(); await until(() => timers.length); const before = shown(); const found = [];
    const [second] = answers; answers.shift();
    found.push(await next(second));
    clock = 10_000; await type("#slider", "640");
    found.push([one("#number").textContent, asked.at(-1)]);
    found.push(await next(second, 11_999), await next({{ ...second, share: 0.6543 }}, 12_000));
    found.push(await next({{ ...second, share: null, value: "well" }}), await next(undefined));
    return [before, found];"""
    before, found = play("ask-chart.mjs", program)
    assert before == ["…", "", "Waiting for the first window …", "", "", "", True, 0]
    said = "Simulated people have sent 7 answers; the chart counts 1,234 reports so far, with those of this page. "
    said += "The ledger has no line yet: it waits a minute for reports that are on their way, so its first line comes "
    said += "about a minute and a half after the start."
    held = f"{SUM} Among the simulated people it was 22.0 %."
    assert found[0] == [1000, 1, "badly", "badly", held, "200", said, "200", False, 2]
    body = json.dumps({"value": "badly", "share": 0.64}, separators=(",", ":"))
    assert found[1] == ["640", ["/crowd", {"method": "POST", "body": body}]]
    assert found[2] == [1000, 1, "badly", "badly", held, "640", said, "640", False, 2]
    assert found[3] == [1000, 1, "badly", "badly", held, "654", said, "654", False, 2]
    assert found[4] == [1000, 1, "well", "well", held.replace("badly", "well"), "654", said, "654", True, 2]
    assert found[5][-4] == "The demonstration has ended, or does not answer." and found[5][:2] == [1000, 1]


def test_the_slider_names_the_value_before_the_first_window(play: Play) -> None:
    program = f"""{FOLLOWED} answers.push({json.dumps({"value": "badly"})});
    // import
    it.follow(); await until(() => timers.length); await type("#slider", "100");
    return JSON.parse(asked.at(-1)[1].body);"""
    assert play("ask-chart.mjs", program) == {"value": "badly", "share": 0.1}


def test_sentences_about_all_windows_and_the_ledger(play: Play) -> None:
    books = {"received": 1200, "accepted": 1190, "duplicates": 6, "rejected": 4, "age": 0, "acknowledged": 1500}
    program = f"""const [total, books] = {json.dumps([TOTAL | {"truth": None}, books])};
    return [it.sentence("badly", null), it.sentence("badly", total), it.accounts(books, null), it.percent(0.12345),
      it.accounts({{ ...books, accepted: 1191 }}, total), it.accounts({{ acknowledged: 0 }}, null)];"""
    none, some, even, percent, odd, first = play("ask-chart.mjs", program)
    assert (none, some, percent) == ("Waiting for the first window …", SUM, "12.3 %")
    sent = "Simulated people have sent 1,500 answers; the chart counts 0 reports so far, with those of this page. "
    ledger = "The ledger, which is a minute or more behind, was written 0 s ago: 1,200 received = 1,190 accepted + "
    assert even == f"{sent}{ledger}6 duplicates + 4 rejected."
    assert odd.endswith("1,191 accepted + 6 duplicates + 4 rejected. These do not add up.")
    assert "chart counts 0 reports" in first and "The ledger has no line yet" in first


# --------------------------------------------------------------------------------------------------------------- doubt


def test_beliefs_in_words_are_never_certain(play: Play) -> None:
    chances = [1.0, 0.9991, 0.999, 0.5, 0.001, 0.00099, 0.0]
    words = ["above 99.9 %", "above 99.9 %", "99.9 %", "50.0 %", "0.1 %", "below 0.1 %", "below 0.1 %"]
    assert play("ask-doubt.mjs", f"return {chances}.map(it.inWords);") == words


@pytest.mark.parametrize("coin", [0.49, 0.5])
def test_what_reports_would_tell(coin: float, play: Play) -> None:
    """The probabilities after 1 to 1,000 reports by Bayes' rule, and a pair of reports in a random order."""
    form = client_form(COLLECTION)
    program = f"""Math.random = () => {coin};
    let number = 0; // of every ten reports four are another answer; each draw is another message
    const draw = (value) => {{
      number += 1;
      const symbol = value === "hardly at all" ? (number % 10 < 4 ? 1 : 3) : number % 2 ? 2 : 3;
      return Uint8Array.of(2, 0, 0, 0, 0, 0, 0, 0, 0, number % 256, value.length, 1, symbol);
    }};
    // import
    it.doubt({json.dumps(form)}, "hardly at all", draw);
    const cells = (rows) => all(rows).map((row) => row.cells.map((cell) => cell.textContent));
    const [value, text] = ["many-value", "twins-text"].map((id) => one(`#${{id}}`).textContent);
    return [value, cells("#many-rows tr"), text, cells("#twins-rows tr")];"""
    value, many, text, twins = play("ask-doubt.mjs", program)
    ratio = math.exp(1.5)
    beliefs = {}
    for times in (1, 2, 5, 10, 1000):
        others = sum(number % 10 < 4 for number in range(1, times + 1))
        counts = {1: others, 3: times - others}
        weights = [ratio ** (counts.get(symbol, 0) - times / 2) for symbol in range(4)]
        beliefs[times] = weights[3] / sum(weights)
    assert value == "hardly at all"
    words = [f"{100 * beliefs[times]:.1f} %" for times in (1, 2, 5, 10)]
    assert [row[0] for row in many] == ["1", "2", "5", "10", "1,000"]
    assert [row[1] for row in many] == [*words, "above 99.9 %"]
    assert "answers “hardly at all”, the other of one who answers “well”; neither was sent" in text
    assert f"more than {ratio:.1f} times as likely" in text
    mine, theirs = ([row for row in twins if f" {length:02x} 01 " in row[0]] for length in (13, 4))
    assert len(mine) == len(theirs) == 1, twins
    assert mine[0][0].endswith(" 0d 01 03") and theirs[0][0].endswith(" 04 01 03")
    assert [row[1] for row in twins] == ["“hardly at all”"] * 2
    assert twins == (mine + theirs if coin < 0.5 else theirs + mine)


# ------------------------------------------------------------------------------------------------------------ question

ASKED = """
const [sent, answers] = [[], []];
const settings = { gateway: "http://gateway", results: "http://results/", question: "How?", crowd: "", form: FORM };
const store = new Map();
globalThis.localStorage = { get length() { return store.size; }, key: (i) => [...store.keys()][i],
  getItem: (key) => store.get(key) ?? null, setItem: (key, text) => store.set(key, text),
  removeItem: (key) => store.delete(key) };
globalThis.fetch = async (address, options) => {
  if (address === "/settings.json") return { json: async () => settings };
  if (address !== "http://gateway/reports") throw new Error("away");
  sent.push([options.method, [...options.body]]);
  const [status, content] = answers.shift();
  return { status, ok: status < 400, json: async () => content };
};
const IDS = ["mine", "sent", "size", "received", "trouble", "meaning"];
const shown = () => Object.fromEntries(IDS.map((id) => [id, one(`#${id}`).textContent]));
"""


def asked(program: str, **more: Any) -> str:
    settings = (
        f"{ASKED.replace('FORM', json.dumps(client_form(COLLECTION)))} Object.assign(settings, {json.dumps(more)});"
    )
    ready = "await until(() => all('#answers button').length || one('#trouble').textContent);"
    return f"{settings}\n// import\n{ready} {program}"


def test_an_answer_leaves_the_page_as_a_report(play: Play) -> None:
    """The bytes that are shown are those that were sent, field by field; another person may answer after that."""
    program = """answers.push([200, {}], [202, {}]);
    const about = [one("#question").textContent, document.title, one("#results").href, one("#crowd").hidden,
      one("#promise").textContent, texts("#answers button"), one("#outcome").hidden];
    const buttons = () => all("#answers button").map((it) => [it.type, it.disabled, it.getAttribute("aria-pressed")]);
    const before = buttons(); await all("#answers button")[2].click();
    const rows = all("#bytes tr").map((row) => [row.className, ...row.cells.map((cell) => cell.textContent)]);
    const hidden = [one("#outcome").hidden, one("#trouble").hidden];
    const after = [shown(), buttons(), ...hidden, store.size, all("#many-rows tr").length];
    await press("#again");
    const again = [buttons(), one("#outcome").hidden, document.activeElement === all("#answers button")[0]];
    await all("#answers button")[0].click();
    return [about, before, sent, rows, after, again, shown().mine];"""
    about, before, sent, rows, after, again, mine = play("ask.mjs", asked(program))
    promise = (
        "This device sends one answer. With probability 40 %, it is not the one you choose, because your device first "
    )
    assert about == ["How?", "How?", "http://results/", True, f"{promise}replaces it at random.", ANSWERS, True]
    assert before == [["button", False, "false"]] * 4
    assert [method for method, _ in sent] == ["POST", "POST"] and sent[0][1] != sent[1][1]
    message = bytes(sent[0][1])
    assert " ".join(row[1] for row in rows) == message.hex(" ")
    assert [len(row[1].split()) for row in rows] == [1, 8, 16, 6, 1, 2]
    assert [row[0] for row in rows] == ["", "", "", "", "", "payload"]
    symbol = ANSWERS[message[-1]]
    assert [row[2] for row in rows] == [
        "This is a single report.",
        "The question that it answers.",
        "A random number, so that a report counts once even if it is sent twice.",
        "The time, to the second.",
        "The group of devices; this question has only one.",
        f"The answer as it was sent: “{symbol}”.",
    ]
    texts, pressed, is_hidden, no_trouble, left, many = after
    assert texts["mine"] == "badly" and texts["sent"] == symbol and texts["size"] == str(len(message))
    assert texts["received"] == "The gateway received it and passed it on (HTTP 200)."
    assert texts["meaning"] == (
        "With probability 40 %, the answer that was sent is not yours, because your device randomizes answers before "
        f"it sends them. Nobody who reads “{symbol}” can be sure that it is your answer. Many answers together show "
        "how common each one is."
    )
    assert pressed == [["button", True, "true" if at == 2 else "false"] for at in range(4)]
    assert (is_hidden, no_trouble, left, many) == (False, True, 0, 5)
    assert again == [before, True, True] and mine == "well"


@pytest.mark.parametrize("status", [408, 429, 503])
def test_a_report_is_kept_until_the_gateway_takes_it(status: int, play: Play) -> None:
    """The same bytes, two seconds later."""
    program = f"""answers.push([{status}, {{}}], [200, {{}}]);
    await all("#answers button")[1].click();
    const first = [shown(), one("#trouble").hidden, store.size];
    const [[again, ms]] = timers.filter(([, time]) => time === 2000); await again();
    return [first, ms, shown(), one("#trouble").hidden, store.size, sent];"""
    first, wait, then, no_trouble, left, sent = play("ask.mjs", asked(program))
    assert first[0]["trouble"] == "The gateway does not answer; your device will send the same bytes again shortly."
    assert first[0]["received"] == "" and first[1:] == [False, 1] and wait == 2000
    assert then["received"] == "The gateway received it and passed it on (HTTP 200)." and then["trouble"] == ""
    assert (no_trouble, left) == (True, 0) and sent[0] == sent[1]


def test_a_report_that_is_rejected_is_not_sent_again(play: Play) -> None:
    program = 'answers.push([400, { reason: "too_old" }]); await all("#answers button")[1].click();'
    program += "return [shown(), store.size, sent.length, timers.filter(([, ms]) => ms === 2000).length];"
    texts, left, number, again = play("ask.mjs", asked(program))
    assert texts["received"] == "The gateway rejected it: too_old." and texts["trouble"] == ""
    assert (left, number, again) == (0, 1, 0)


def test_the_crowd_is_told_and_a_page_that_cannot_start_says_so(play: Play) -> None:
    crowd = "This is a demonstration."
    assert play("ask.mjs", asked('return [one("#crowd").textContent, one("#crowd").hidden];', crowd=crowd)) == [
        crowd,
        False,
    ]
    program = 'return [one("#trouble").textContent, one("#trouble").hidden, texts("#answers button")];'
    text, is_hidden, buttons = play("ask.mjs", asked(program, form={"client_form": 99}))
    assert text == "This page cannot start: client_form must be 1, got 99" and not is_hidden and not buttons


def test_the_question_is_the_one_of_the_collection() -> None:
    assert TEXT.endswith("?") and set(ANSWERS) == set(COLLECTION.alphabet.known_values or ())


def test_the_letters_of_the_chart_are_readable_on_a_phone() -> None:
    """At least 10 pixels high where 560 units of the chart are 358 pixels: 390 without the padding of the page."""
    style, page = ((HERE / name).read_text("utf-8") for name in ("ask.css", "ask.html"))
    assert 'viewBox="0 0 560 300"' in page
    [(limit, size)] = re.findall(r"@media \(max-width: (\d+)rem\) \{ #chart \{ font-size: (\d+)px", style)
    assert 16 * int(limit) >= 390
    assert int(size) * 358 / 560 >= 10
