"""The script of a page's tables: sorting, searching, comparing and saving, cell by cell, in Node."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from packages.report.tests.support.script_pages import SCRIPT, Cell, island, page, table
from tests.support.page_scripts import needs_node, run
from tests.support.tolerance import generator
from uldp_transforms_report.differences import Panel

pytestmark = needs_node


def result(program: str, *parts: str) -> Any:
    return run(program, page(*parts), scripts=[SCRIPT])


# ---------------------------------------------------------------------------------------------------------------- sort

SORTED: list[tuple[str, str]] = [
    ("value 10", "5 9"),
    ("value 9", "open 3"),
    ("value 2", "5 1"),
    ("value 1", "-10 2"),
    ("Ärger", ""),
    ("value 3", "-2 8"),
    ("value 3", "5 0"),
    ("a", "7 0"),
    ("b", "7 1"),
    ("c", "7 0"),
    ("d", "7 3"),
    ("e", "7 0"),
]
ORDERS = """
const orders = [];
for (const column of [2, 2, 2, 1, 1, 1, 1, 2]) {
  await press(`th.at${column} button`);
  orders.push([all("th[aria-sort]").map((head) => [head.className, head.getAttribute("aria-sort")]),
    all("tbody tr").map((row) => Number(row.dataset.at))]);
}
return orders;
"""


def test_a_column_is_sorted_up_down_and_not_at_all() -> None:
    """Numbers the largest first, open ends below all; texts in the order of people; equal rows stay as they were."""
    heads = ['class="at1"', 'class="number at2"']
    rows: list[tuple[Cell, ...]] = [(name, ("", numbers)) for name, numbers in SORTED]
    orders = result(ORDERS, table("t", heads, rows))
    down = [7, 8, 9, 10, 11, 0, 2, 6, 5, 3, 1, 4]
    up = [1, 4, 3, 5, 0, 2, 6, 7, 8, 9, 10, 11]
    by_name = [7, 4, 8, 9, 10, 11, 3, 2, 5, 6, 1, 0]
    back = [0, 1, 5, 6, 2, 3, 11, 10, 9, 8, 4, 7]
    numbers, names = "number at2", "at1"
    assert orders == [
        [[[numbers, "descending"]], down],
        [[[numbers, "ascending"]], up],
        [[], list(range(12))],
        [[[names, "ascending"]], by_name],
        [[[names, "descending"]], back],
        [[], list(range(12))],
        [[[names, "ascending"]], by_name],
        [[[numbers, "descending"]], down],
    ]


def test_numbers_among_texts_are_sorted_as_texts() -> None:
    rows: list[tuple[Cell, ...]] = [("x", ("10 min", "10")), ("y", "9 min"), ("z", ("8 min", "8"))]
    program = 'await press("th.number button"); await press("th.number button"); return texts("tbody th");'
    assert result(program, table("t", ["", 'class="number"'], rows)) == ["z", "y", "x"]


# -------------------------------------------------------------------------------------------------------------- search

ANIMALS = table("t", ["", ""], [("Ant", "x"), ("bee", "an"), ("cow", "x")], ["told changed", "told", ""])
FIND = (
    '<div data-find="{}"><input type="search"><input type="checkbox" value="told">'
    '<input type="checkbox" value="changed"><span role="status"></span></div>'
)
SEEN = (
    "const seen = () => [all('tbody tr').filter((row) => !row.hidden).map((row) => row.cells[0].textContent), "
    "one('[role=status]').textContent];"
)


def test_rows_are_found_by_names_and_flags() -> None:
    """The first cell alone is searched, or those of sides; letters' case does not matter; every flag must be there."""
    program = f"""{SEEN}
    const found = [];
    for (const text of ["AN", "", "e", "cat"]) {{ await type("input[type=search]", text); found.push(seen()); }}
    await type("input[type=search]", "");
    for (const flag of ["told", "changed"]) {{ await tick(`[value=${{flag}}]`); found.push(seen()); }}
    for (const flag of ["told", "changed"]) {{ await tick(`[value=${{flag}}]`); found.push(seen()); }}
    return found;"""
    assert result(program, FIND.format("t"), ANIMALS) == [
        [["Ant"], "1 of 3 rows"],
        [["Ant", "bee", "cow"], ""],
        [["bee"], "1 of 3 rows"],
        [[], "0 of 3 rows"],
        [["Ant", "bee"], "2 of 3 rows"],
        [["Ant"], "1 of 3 rows"],
        [["Ant"], "1 of 3 rows"],
        [["Ant", "bee", "cow"], ""],
    ]


def test_rows_are_found_by_the_names_of_their_sides() -> None:
    sides = ANIMALS.replace("<td>an</td>", '<td class="side">North</td>')
    program = f'{SEEN} await type("input[type=search]", "nOr"); return seen();'
    assert result(program, FIND.format("t"), sides) == [["bee"], "1 of 3 rows"]


def test_rows_without_flags_and_tools_without_a_table_do_no_harm() -> None:
    bare = table("t", [""], [("Ant",), ("bee",)])
    program = f'{SEEN} await type("input[type=search]", "b"); await tick("[value=told]"); return seen();'
    assert result(program, FIND.format("t"), bare) == [[], "0 of 2 rows"]
    lost = f'{SEEN} await type("input[type=search]", "b"); await emit("input", one("table")); return seen();'
    assert result(lost, FIND.format("none"), bare) == [["Ant", "bee"], ""]


# ------------------------------------------------------------------------------------------------------------- compare


def compared(id: str, panel: dict[str, Any], find: bool = False) -> str:
    options = "".join(
        f'<option value="{at}"{" selected" * (at == 0)}>{name}</option>' for at, name in enumerate(panel["sides"])
    )
    selects = f"<label><select>{options}</select></label>" * 2
    rows = [(name, ("", ""), ("", ""), "") for name in panel["values"]]
    heads = ["", 'class="number"', 'class="number"', ""]
    tools = f'<div class="choose-{id}" data-compare="{id}">{selects}</div>'
    more = FIND.format(id).replace("changed", "differs") if find else ""
    return tools + more + table(id, heads, rows, more=f' data-values="{id}-panel"') + island(f"{id}-panel", panel)


def share_panel(
    values: list[str], sides: list[str], raw: list[Any], error: list[Any], reach: float = 1
) -> dict[str, Any]:
    """Of shares with intervals of so many standard errors, none of them outside [0, 1]."""
    ends = {
        name: [[None if of is None else of + sign * reach * by for of, by in zip(*side)] for side in zip(raw, error)]
        for name, sign in (("low", -1), ("high", 1))
    }
    inner = [[None] * len(values)] * len(sides)
    named = {"values": values, "shares": [True] * len(values), "sides": sides}
    return named | ends | {"value": raw, "inner": inner, "joint": True}


SHOWN = """
const shown = (id) => all(`#${id} tbody tr`).map((row) => [...row.cells.slice(1).map((cell) => cell.textContent),
  row.cells[1].dataset.n, row.cells[2].dataset.n, row.dataset.flags]);
const choose = (id, ...sides) => {
  all(`.choose-${id} select`).forEach((select, at) => { select.value = sides[at]; });
  return emit("input", one(`.choose-${id}`));
};
"""


def test_shares_of_two_windows_are_compared() -> None:
    """Half the length is reach times the root of the sum of squares; an interval that touches 0 is not apart."""
    panel = share_panel(
        ["up", "touches", "down", "touches too", "none", "new"],
        ["Mon", "Tue", "Wed"],
        [[0.75, 0.65625, 0.25, 0.5, 0.5, None], [0.5, 0.5, 0.5, 0.65625, 0.5, 0.5], [0.5] * 6],
        [[3 / 64] * 6, [4 / 64] * 6, [0.0] * 6],
        reach=2,
    )
    program = f"""{SHOWN} await choose("t", 0, 1); const first = shown("t"); const caption = one("caption").textContent;
    await choose("t", 1, 1); return [first, caption, shown("t"), one("caption").textContent];"""
    first, caption, same, of_same = result(program, compared("t", panel))
    assert first == [
        ["+25.0", "+9.4 to +40.6", "yes", "0.250000", "0.0937500 0.406250", "differs"],
        ["+15.6", "0.0 to +31.3", "no", "0.156250", "0.00000 0.312500", ""],
        ["-25.0", "-40.6 to -9.4", "yes", "-0.250000", "-0.406250 -0.0937500", "differs"],
        ["-15.6", "-31.3 to 0.0", "no", "-0.156250", "-0.312500 0.00000", ""],
        ["0.0", "-15.6 to +15.6", "no", "0.00000", "-0.156250 0.156250", ""],
        ["–", "–", "no", "", "", ""],  # noqa: RUF001  # a dash
    ]
    assert (caption, of_same) == ("Differences: Mon minus Tue", "Differences: Tue minus Tue")
    assert same == [["–", "–", "no", "", "", ""]] * 6  # noqa: RUF001  # a dash


def test_a_share_that_the_second_window_lacks_has_no_difference() -> None:
    panel = share_panel(["a"], ["x", "y"], [[0.5], [None]], [[0.1], [None]])
    program = f'{SHOWN} await choose("t", 0, 1); return shown("t");'
    assert result(program, compared("t", panel)) == [["–", "–", "no", "", "", ""]]  # noqa: RUF001  # a dash


def test_the_shortest_interval_of_shares_shows_two_digits() -> None:
    """1 to 4 decimals of all percentages, as ``digits_of`` gives them; an interval without length does not count."""
    halves = [0.5, 0.0999, 0.0101, 0.00999, 0.00101, 0.000999, 0.000101, 0.0000999, 0.0000001]
    panels = [
        share_panel(["a", "b", "c"], ["x", "y"], [[0.25] * 3, [0.0] * 3], [[half, 0.4, 0.0], [0.0, 0.3, 0.0]])
        for half in halves
    ]
    exact = share_panel(["a"], ["x", "y"], [[0.25], [0.0]], [[0.0], [0.0]])
    program = f"""{SHOWN} const found = [];
    for (let i = 0; i < 10; i++) {{ await choose(`t${{i}}`, 0, 1); found.push(shown(`t${{i}}`)[0][0]); }}
    return found;"""
    parts = [compared(f"t{at}", panel) for at, panel in enumerate([*panels, exact])]
    digits = [1, 1, 1, 2, 2, 3, 3, 4, 4, 1]
    assert result(program, *parts) == [f"+{25:.{number}f}" for number in digits]


Side = tuple[float | None, ...]
FIGURES: list[tuple[Side, Side, bool, list[str]]] = [
    # value, low and high of each side; the difference and its interval by Zou and Donner: hypot(3, 4) = 5
    ((10, 7, 14), (4, 0, 7), False, ["+6.0", "+1.8 to +11.7", "yes", "6.00000", "1.75736 11.6569"]),
    ((10, 7, 14), (4, 1, 8), False, ["+6.0", "+1.0 to +11.0", "yes", "6.00000", "1.00000 11.0000"]),
    ((10, None, 14), (4, 1, 8), False, ["+6.0", "below +11.0", "no", "6.00000", "open 11.0000"]),
    ((10, 7, None), (4, 1, 8), False, ["+6.0", "from +1.0", "yes", "6.00000", "1.00000 open"]),
    ((10, 7, 14), (4, None, 8), False, ["+6.0", "from +1.0", "yes", "6.00000", "1.00000 open"]),
    ((10, 7, 14), (4, 1, None), False, ["+6.0", "below +11.0", "no", "6.00000", "open 11.0000"]),
    ((10, None, None), (4, 1, 8), False, ["+6.000", "–", "no", "6.00000", "open open"]),  # noqa: RUF001  # a dash
    ((0, None, 3), (10, 6, 14), False, ["-10.0", "below -5.0", "yes", "-10.0000", "open -5.00000"]),
    ((9, 6, 12), (4, 0, 8), False, ["+5.0", "0.0 to +10.0", "no", "5.00000", "0.00000 10.0000"]),
    ((4, 0, 8), (9, 6, 12), False, ["-5.0", "-10.0 to 0.0", "no", "-5.00000", "-10.0000 0.00000"]),
    ((9, 6, None), (4, None, 8), False, ["+5.0", "from 0.0", "no", "5.00000", "0.00000 open"]),
    ((100, 98.5, None), (40, 38, 42), False, ["+60.0", "from +57.5", "yes", "60.0000", "57.5000 open"]),
    ((100, None, 101.5), (40, 38, 42), False, ["+60.0", "below +62.5", "no", "60.0000", "open 62.5000"]),
    ((6000, 5700, 6400), (1000, 700, 1400), False, ["+5,000", "+4,500 to +5,500", "yes", "5000.00", "4500.00 5500.00"]),
    ((1e-7, 7e-8, 1.4e-7), (0, -3e-8, 4e-8), False, ["0.000000", "+0.000000 to +0.000000", "yes", "1.00000e-7"]),
    ((6, 6, 6), (4, 4, 4), False, ["+2.000", "+2.000 to +2.000", "yes", "2.00000", "2.00000 2.00000"]),
    ((0.5, 0.47, 0.54), (0.25, 0.22, 0.29), True, ["+25.0", "+20.0 to +30.0", "yes", "0.250000", "0.200000 0.300000"]),
    ((0.5, 0.497, 0.504), (0.25, 0.247, 0.254), True, ["+25.00", "+24.50 to +25.50", "yes", "0.250000"]),
    ((0.5, None, 0.504), (0.25, 0.247, 0.254), True, ["+25.00", "below +25.50", "no", "0.250000", "open 0.255000"]),
]


def test_figures_of_two_groups_are_compared_by_their_intervals() -> None:
    """Open ends stay open, and figures have as many decimals as their own interval needs."""
    shares, names = [of[2] for of in FIGURES], [f"f{at}" for at in range(len(FIGURES))]
    panel: dict[str, Any] = {"values": names, "sides": ["a", "b"], "shares": shares, "joint": False}
    panel["inner"] = [[None] * len(names)] * 2
    for place, name in enumerate(("value", "low", "high")):
        panel[name] = [[of[0][place] for of in FIGURES], [of[1][place] for of in FIGURES]]
    found = result(f'{SHOWN} await choose("t", 0, 1); return shown("t");', compared("t", panel))
    for (_, _, _, expected), cells in zip(FIGURES, found, strict=True):
        assert cells[: len(expected)] == expected
        assert cells[5] == ("differs" if expected[2] == "yes" else "")


def test_the_script_and_the_page_without_scripts_have_the_same_differences() -> None:
    """Of figures and of shares inside and outside [0, 1], with unknown ones and open ends."""
    rng, number = generator("script and page"), 60
    is_share = rng.random(number) < 0.7
    value = np.where(is_share, rng.uniform(-0.3, 1.3, (2, number)), rng.normal(0, 50, (2, number)))
    below, above = rng.exponential(0.2, (2, 2, number))
    outside, open_ends = is_share & ((value < 0) | (value > 1)), rng.random((3, 2, number)) < 0.1
    panel = Panel(
        values=[f"v{at}" for at in range(number)],
        is_share=is_share.tolist(),
        sides=["x", "y"],
        value=np.where(open_ends[0], np.nan, value),
        low=np.where(~is_share & open_ends[1], np.nan, value - below),
        high=np.where(~is_share & open_ends[2], np.nan, value + above),
        inner=np.where(outside, np.where(value < 0, above, 1 - below), np.nan),
        is_of_figures=False,
    )
    program = f'{SHOWN} await choose("t", 0, 1); return shown("t").map((cells) => cells.slice(3));'
    shown = result(program, compared("t", json.loads(panel.as_json())))
    apart = 0
    for one, (difference, ends, flags) in zip(panel.differences(0, 1), shown, strict=True):
        known = [] if one.value is None else [one.value, one.low, one.high]
        said = [None if text == "open" else float(text) for text in [*difference.split(), *ends.split()]]
        assert [of is None for of in said] == [of is None for of in known]
        assert [of for of in said if of is not None] == pytest.approx(
            [of for of in known if of is not None], rel=2e-5, abs=1e-6
        )
        assert flags == ("differs" if one.value is not None and one.told_apart else "")
        apart += one.told_apart
    assert 5 < apart < number and outside.sum() > 10


def test_a_comparison_keeps_the_order_and_the_search_of_its_table() -> None:
    panel = share_panel(["a", "b", "c"], ["x", "y"], [[0.1, 0.5, 0.3], [0.0] * 3], [[0.2, 0.01, 0.01], [0.0] * 3])
    program = f"""{SHOWN}{SEEN} await press("#t th.number button"); await tick("[value=differs]");
    await choose("t", 0, 1); return [texts("#t tbody th"), seen()];"""
    assert result(program, compared("t", panel, find=True)) == [["b", "c", "a"], [["b", "c"], "2 of 3 rows"]]


def test_a_comparison_without_its_table_does_no_harm() -> None:
    assert result('await emit("input", one("div")); return true;', '<div data-compare="none"><select></select></div>')


# ---------------------------------------------------------------------------------------------------------------- save

TEXTS = ["=cat()", "+1", "-1", "@x", "\tx", "\rx", "a,b", 'say "x"', "two\nlines", "plain", "x=1"]
SAVED = "<p data-table='t'><button data-form='csv'></button><button data-form='json'></button></p>"
NAMED = ['data-name="value"', 'data-name="-"', 'data-name="low high"', 'data-name="note"', ""]


def saved_table() -> str:
    rows = [(f"shown {at}", "picture", ("", f"{at - 1.5} open"), text, ("", "")) for at, text in enumerate(TEXTS)]
    made = table("t", NAMED, rows, more=' data-values="v"')
    made = made.replace(">4<button", ">in the interval<button")
    return made + island("v", {"values": ["ant", *[f"bee {at}" for at in range(9)]]})


def test_a_table_is_saved_as_json_with_its_values_and_exact_numbers() -> None:
    """The values as they are in the rows; an open end is null; pictures are left out; a head without a name is one."""
    name, kind, content = result('return save("[data-form=json]");', SAVED, saved_table())
    assert (name, kind) == ("t.json", "application/json")
    lines = json.loads(content)
    assert content.endswith("]\n") and content.startswith("[\n {\n  ")
    assert lines[0] == {"value": "ant", "low": -1.5, "high": None, "note": "=cat()", "in_the_interval": None}
    assert [line["value"] for line in lines] == ["ant", *[f"bee {at}" for at in range(9)], "shown 10"]
    assert [line["low"] for line in lines] == [at - 1.5 for at in range(11)]
    assert [line["note"] for line in lines] == TEXTS


def test_a_table_is_saved_as_csv_that_no_spreadsheet_computes() -> None:
    name, kind, content = result('return save("[data-form=csv]");', SAVED, saved_table())
    assert (name, kind) == ("t.csv", "text/csv")
    notes = ["'=cat()", "'+1", "'-1", "'@x", "'\tx", "'\rx", "a,b", 'say ""x""', "two\nlines", "plain", "x=1"]
    values = ["ant", *[f"bee {at}" for at in range(9)], "shown 10"]
    rows = [f'"{value}",{low - 1.5:g},,"{note}",' for low, (value, note) in enumerate(zip(values, notes))]
    assert content == "\r\n".join(['"value","low","high","note","in_the_interval"', *rows, ""])


def test_a_saved_table_has_the_rows_that_are_seen() -> None:
    program = """all("tbody tr").forEach((row, at) => { row.hidden = at !== 1; });
    const [, , some] = await save("[data-form=json]"); one("tbody tr:checked, #r1").hidden = true;
    return [some, (await save("[data-form=json]"))[2], (await save("[data-form=csv]"))[2]];"""
    made = table("t", [""], [("a",), ("b",), ("c",)]).replace('data-at="1"', 'data-at="1" id="r1"')
    some, none, empty = result(program, SAVED, made)
    assert [json.loads(some), json.loads(none), empty] == [[{"0": "b"}], [], "\r\n"]


COPY = "<p data-table='t'><button data-form='tsv'></button><span role='status'></span></p>"
CLIPBOARD = """
const put = (clipboard) => Object.defineProperty(globalThis, "navigator", { value: { clipboard }, configurable: true });
const done = () => until(() => one("[role=status]").textContent);
"""


def test_a_table_is_copied_into_the_cells_of_a_spreadsheet() -> None:
    """Tabs between cells, none in them, and nothing that a spreadsheet computes."""
    program = f"""{CLIPBOARD} let text; put({{ writeText: async (given) => {{ text = given; }} }});
    await press("[data-form=tsv]"); await done(); return [text, texts("[role=status]")];"""
    text, said = result(program, COPY, saved_table())
    lines = [line.split("\t") for line in text.split("\n")]
    assert lines[0] == ["value", "low", "high", "note", "in_the_interval"] and lines[-1] == [""]
    assert [len(line) for line in lines[:-1]] == [5] * 12
    assert lines[1] == ["ant", "-1.5", "", "'=cat()", ""] and lines[2][1] == "-0.5"
    assert [line[3] for line in lines[5:10]] == ["' x", "' x", "a,b", 'say "x"', "two lines"]
    assert said == ["Copied: 11 rows."]


def test_a_page_that_may_not_write_to_the_clipboard_answers_a_copy() -> None:
    """As of a server without encryption; what cannot be copied is said."""
    one = table("t", ['data-name="value"'], [("a",)])
    program = f"""{CLIPBOARD} put(undefined); const given = [];
    document.execCommand = () => {{
      const [answer] = document.listeners.copy;
      const clipboardData = {{ setData: (...what) => given.push(what) }};
      answer({{ clipboardData, preventDefault: () => given.push("own") }});
      return true;
    }};
    await press("[data-form=tsv]"); await done(); const first = texts("[role=status]");
    document.execCommand = () => false; one("[role=status]").textContent = "";
    await press("[data-form=tsv]"); await done(); return [given, first, texts("[role=status]")];"""
    given, first, second = result(program, COPY, one)
    assert given == [["text/plain", "value\na\n"], "own"]
    assert (first, second) == (["Copied: 1 row."], ["The browser does not copy: save as CSV."])


def test_one_menu_is_open_at_a_time() -> None:
    menu = "<details class='take' open><summary class='s{0}'></summary><button class='b{0}'></button></details>"
    program = """const left = () => all(".take").map((menu) => menu.open); const found = [];
    await press(".b1"); found.push(left()); await press(".b1"); found.push(left());
    await press("p"); found.push(left()); all(".take")[0].open = true;
    const key = (key) => document.listeners.keydown[0]({ key, target: one(".b0") });
    key("a"); found.push(left()); key("Escape"); found.push(left());
    return [found, document.activeElement.className];"""
    found, focused = result(program, "<p></p>", menu.format(0), menu.format(1))
    assert found == [[False, True], [False, True], [False, False], [True, False], [False, False]]
    assert focused == "s0"


def test_other_buttons_are_none_of_the_scripts() -> None:
    program = (
        "await press('.other'); await emit('input', one('.other')); return [downloads.length, one('html').className];"
    )
    assert result(program, '<p><button class="other"></button></p>') == [0, "scripted"]


# ------------------------------------------------------------------------------------------------------------- updates


def test_an_update_keeps_order_search_and_the_windows_that_were_chosen() -> None:
    """The page that comes is in its own order; windows are kept by their names, and only those that a reader chose."""
    raw = [[0.1, 0.5, 0.3], [0.0] * 3, [0.05] * 3]
    panel = share_panel(["a", "b", "c"], ["Mon", "Tue", "Wed"], raw, [[0.01] * 3] * 3)
    program = f"""{SHOWN}{SEEN}
    await choose("t", 0, 1); await press("#t th.number button"); await type("input[type=search]", "b");
    await document.dispatchEvent(new Event("uldp:before"));
    const between = [texts("#t tbody th"), all("[aria-sort]").length];
    const known = JSON.parse(one("#t-panel").textContent);
    const next = {{ ...known, sides: ["Sun", ...known.sides] }};
    for (const name of ["value", "low", "high", "inner"]) next[name] = [[0, 0, 0], ...known[name]];
    one("#t-panel").textContent = JSON.stringify(next);
    for (const select of all("select")) {{
      const chosen = select.chosen && select.options.indexOf(select.chosen);
      const first = document.createElement("option"); first.textContent = "Sun";
      select.prepend(first);
      select.options.forEach((option, at) => option.setAttribute("value", at));
      first.setAttribute("selected", ""); select.options[1].removeAttribute("selected");
      select.chosen = chosen === undefined ? undefined : select.options[chosen];
    }}
    for (const row of all("tbody tr")) row.hidden = false;
    await document.dispatchEvent(new Event("uldp:after"));
    return [between, texts("#t tbody th"), all("[aria-sort]").map((head) => head.getAttribute("aria-sort")), seen(),
      all("select").map((select) => select.selectedOptions[0].textContent), one("caption").textContent];"""
    between, order, sorts, seen, sides, caption = result(program, compared("t", panel, find=True))
    assert between == [["a", "b", "c"], 0]
    assert (order, sorts, seen) == (["a", "b", "c"], ["descending"], [["b"], "1 of 3 rows"])
    assert sides == ["Sun", "Tue"]
    assert caption == "Differences: Sun minus Tue"
