"""Former names of programs and options, which still work: each prints one line on stderr that names the new one.

A former form, such as ``--counts DIR``, is replaced by the new one before a command line is parsed, so programs know
new names only. To rename something, add a row here; ``tests/jobs/commands/test_old_names.py`` fails when a release has
come that removes it.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence

_TRUTHS = ("true", "false")


@dataclasses.dataclass(frozen=True)
class OldOption:
    """A former form of an option.

    Attributes:
        program: program that has the option.
        old: the option and, if it takes a value, a word for it, such as ``--counts DIR``.
        new: the words to write instead, among them the one for the value. Values that are no longer part of an option
            come first on the command line. If the option itself is among the words, it has become a switch.
        since: release that introduced the new form.
        until: release that removes the former one.
    """

    program: str
    old: str
    new: str
    since: str = "0.4.0"
    until: str = "0.6.0"

    @property
    def name(self) -> str:
        """The former option."""
        return self.old.split()[0]

    @property
    def value(self) -> str | None:
        """The word that stands for its value; None for a switch."""
        return self.old.partition(" ")[2] or None

    def takes(self, value: str | None) -> bool:
        """Whether an option with this value (None: without one) is the former form."""
        if self.value is None or value is None:
            return self.value is value
        return self.name not in self.new.split() or value not in _TRUTHS

    def words(self, value: str | None) -> tuple[list[str], list[str]]:
        """The new words: those without an option, which come first on the command line, and the others."""
        new = self.new.split()
        found = [str(value) if word == self.value else word for word in new]
        first = int(new[0] == self.value)
        return found[:first], found[first:]


@dataclasses.dataclass(frozen=True)
class OldProgram:
    """A former program.

    Attributes:
        name: its name.
        new: program and options that do the same.
        options: options of the former program that have another name in the new one.
        since, until: see ``OldOption``.
    """

    name: str
    new: str
    options: tuple[OldOption, ...] = ()
    since: str = "0.4.0"
    until: str = "0.6.0"

    def words(self, rest: Sequence[str]) -> list[str]:
        """Program and arguments of today, from the former arguments."""
        program, *options = self.new.split()
        return [program, *_replaced(rest, self.options)[0], *options]


OLD_PROGRAMS = {
    one.name: one
    for one in (
        OldProgram("total", "reestimate --window all", (OldOption("total", "--output FILE", "--totals FILE"),)),
    )
}
"""Former programs, by name."""

OLD_OPTIONS = (
    OldOption("audit", "--collection C.json", "C.json"),
    OldOption("check", "--json", "--print_json"),
    OldOption("describe", "--num_reports N", "--reports N"),
    OldOption("evaluate", "--column NAME", "--value_column NAME"),
    OldOption("evaluate", "--epsilon NUMBERS", "--epsilons NUMBERS"),
    OldOption("evaluate", "--estimator IDS", "--estimators IDS"),
    OldOption("plan", "--column NAME", "--value_column NAME"),
    OldOption("plan", "--json C.json", "--output C.json"),
    OldOption("reestimate", "--counts DIR", "DIR"),
    OldOption("report", "--follow DIR", "DIR --follow"),
    OldOption("report", "--input DIR", "DIR"),
    OldOption("report", "--truth_column NAME", "--value_column NAME"),
    OldOption("report", "--windows NUMBER", "--latest_windows NUMBER"),
    OldOption("simulate", "--collection C.json", "C.json"),
)
"""Former forms of options."""


def in_new_words(program: str, called: str, words: Sequence[str]) -> list[str]:
    """A command line with new forms instead of former ones, each of which is named once on stderr.

    Args:
        program: name of the program.
        called: the program as it was called, for the lines.
        words: arguments of the program.
    """
    new, used = _replaced(words, [row for row in OLD_OPTIONS if row.program == program])
    for row in used:
        print(f"{called}: {row.old} is deprecated; use {row.new}", file=sys.stderr)
    return new


def todays(words: Sequence[str]) -> list[str]:
    """A command line of ``uldp`` with the program of today instead of a former one, which is named on stderr."""
    old = OLD_PROGRAMS.get(words[0])
    if old is None:
        return list(words)
    print(f"uldp: {old.name} is deprecated; use uldp {old.new}", file=sys.stderr)
    return old.words(words[1:])


def _replaced(words: Sequence[str], rows: Sequence[OldOption]) -> tuple[list[str], list[OldOption]]:
    """The words with new forms, and the rows that were used, in their order."""
    first: list[str] = []
    rest: list[str] = []
    used: dict[OldOption, None] = {}
    for word, value, told in _pairs(words, rows):
        if word is None:
            rest += told
            continue
        ahead, others = word.words(value)
        first += ahead
        rest += others
        used[word] = None
    return [*first, *rest], list(used)


def _pairs(
    words: Sequence[str], rows: Sequence[OldOption]
) -> Iterator[tuple[OldOption | None, str | None, Sequence[str]]]:
    """Each former option with its value; other words with None."""
    at = 0
    while at < len(words):
        name, equals, text = words[at].partition("=")
        follows = at + 1 < len(words) and not words[at + 1].startswith("--")
        value = text if equals else words[at + 1] if follows else None
        row = next((one for one in rows if one.name == name), None)
        if row is not None and row.value is None and not equals:
            value = None
        if row is None or not row.takes(value):
            yield None, None, words[at : at + 1]
            at += 1
            continue
        yield row, value, ()
        at += 1 if equals or value is None else 2
