"""The script that keeps a page up to date, answer by answer, in Node."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import uldp_transforms_report as report
from tests.support.page_scripts import needs_node, run

SCRIPT = Path(report.__file__).with_name("follow.js")

pytestmark = needs_node

ANSWERED = """
const [asked, answers, heard] = [[], [], []];
globalThis.location = { pathname: "/here" };
globalThis.fetch = async (...request) => { asked.push(request); return answers.shift()(); };
const answer = (status, tree, tag) => () =>
  ({ status, text: async () => JSON.stringify(tree), headers: { get: (name) => (name === "ETag" ? tag : null) } });
for (const name of ["before", "after"]) {
  document.addEventListener(`uldp:${name}`, () => heard.push([name, one("main").textContent, one("nav").textContent]));
}
const look = async (reply) => {
  answers.push(reply);
  const [call, milliseconds] = timers.shift();
  await call();
  return [milliseconds, timers.length, one("#live").textContent];
};
"""


def page(nav: str, main: str) -> str:
    return f'<html><body><p id="live">first</p><nav>{nav}</nav><main id="main">{main}</main></body></html>'


def result(program: str, *pages: str) -> Any:
    return run(ANSWERED + program, *pages, scripts=[SCRIPT])


def test_a_page_asks_every_two_seconds_and_says_how_it_is() -> None:
    """What it has is asked for by its tag; after a fault anew. Nothing is said where nothing is new."""
    program = """const found = [];
    const away = () => { throw new Error("away"); };
    const replies = [answer(200, trees[1], "a"), answer(304), answer(500), answer(304), away,
      answer(200, trees[0], null), answer(304)];
    for (const reply of replies) found.push([...(await look(reply)), one("main").textContent]);
    return [found, asked, heard];"""
    found, asked, heard = result(program, page("one", "old"), page("two", "new"))
    updated = r"Updated at \d.*; new results appear automatically\."
    missing = r"No answer at \d.*: the page may be out of date\."
    away = r"The server does not answer: the page may be out of date\."
    said = [updated, updated, missing, missing, away, updated, updated]
    assert all(re.fullmatch(pattern, text) for pattern, (_, _, text, _) in zip(said, found)), found
    assert [(wait, left) for wait, left, _, _ in found] == [(2000, 1)] * 7
    assert [text for _, _, _, text in found] == ["new"] * 5 + ["old"] * 2
    plain: list[Any] = ["/here", {"cache": "no-store", "headers": {}}]
    tagged: list[Any] = ["/here", {"cache": "no-store", "headers": {"If-None-Match": "a"}}]
    assert asked == [plain, tagged, tagged, tagged, tagged, plain, plain]
    assert heard == [
        ["before", "old", "one"],
        ["after", "new", "two"],
        ["before", "new", "two"],
        ["after", "old", "one"],
    ]


def test_a_page_changes_only_what_differs() -> None:
    """Elements stay where they are, with what the reader opened; what came is there, and what went is not."""
    old = '<p id="same">same</p><details class="a" title="t"><summary>s</summary>text</details><p>1</p><p>2</p><p>3</p>'
    new = '<p id="same">same</p><details class="b" data-n="5"><summary>s</summary>next</details><h2>1</h2><p>2</p>'
    program = """const main = one("main"); const [same, details, first, second] = main.children; details.open = true;
    await look(answer(200, trees[1], "a"));
    const now = main.children;
    const kept = [one("main") === main, now[0] === same, now[1] === details, now[2] === first, now[3] === second];
    const shrunk = markup(main); details.open = false;
    await look(answer(200, trees[0], "b"));
    return [kept, shrunk, main.children.map((child) => child === second), markup(main)];"""
    kept, shrunk, is_second, grown = result(program, page("n", old), page("n", new))
    assert kept == [True, True, True, False, True]
    details = '<details class="b" data-n="5" open=""><summary>s</summary>next</details>'
    assert shrunk == f'<main id="main"><p id="same">same</p>{details}<h2>1</h2><p>2</p></main>'
    assert is_second == [False, False, False, True, False]
    assert grown == f'<main id="main">{old}</main>'


def test_what_a_page_says_of_itself_is_not_replaced() -> None:
    """By that of a page that was made before."""
    line = '<p id="live">{}</p>'
    program = 'one("p").remove(); await look(answer(200, trees[1], "a")); return texts("main p");'
    found = result(program, page("n", line.format("x") + "<p>a</p>"), page("n", line.format("y") + "<p>b</p>"))
    assert found == ["x", "b"]
