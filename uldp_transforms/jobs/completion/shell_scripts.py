"""Scripts that complete words in bash, zsh and fish. They start no program."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of a program.

    Attributes:
        name: with its two hyphens.
        what: description, one line.
        values: values that it takes; empty: files, or any text.
        takes_value: whether a value follows.
    """

    name: str
    what: str
    values: tuple[str, ...]
    takes_value: bool


@dataclasses.dataclass(frozen=True)
class Program:
    """A program, its options, and the words that it takes without an option (empty: files, or any text)."""

    name: str
    what: str
    options: tuple[Option, ...]
    words: tuple[str, ...]


def bash(programs: Sequence[Program]) -> str:
    """A script for bash 3.2 or newer."""
    lines = [
        "# bash completion of uldp; printed by: uldp completion bash",
        "_uldp() {",
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" options="" values=""',
        "    COMPREPLY=()",
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        f'        COMPREPLY=($(compgen -W "{_words(one.name for one in programs)}" -- "$word"))',
        "        return",
        "    fi",
        '    case "${COMP_WORDS[1]}" in',
        *(f'        {one.name}) options="{_words(_names(one))}" ;;' for one in programs),
        "    esac",
        '    case "${COMP_WORDS[1]} $before" in',
        *(
            f'        "{one.name} {option.name}") values="{_words(option.values)}" ;;'
            for one in programs
            for option in one.options
            if option.values
        ),
        *(f'        "{one.name} {one.name}") values="{_words(one.words)}" ;;' for one in programs if one.words),
        "    esac",
        '    case "$word" in',
        '        -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;',
        '        *) [ -z "$values" ] || COMPREPLY=($(compgen -W "$values" -- "$word")) ;;',
        "    esac",
        "}",
        "complete -o default -F _uldp uldp",
    ]
    return "\n".join(lines) + "\n"


def zsh(programs: Sequence[Program]) -> str:
    """A script for zsh: a function named _uldp in a folder of fpath."""
    lines = [
        "#compdef uldp",
        "# zsh completion of uldp; printed by: uldp completion zsh",
        "_uldp() {",
        "    local -a programs",
        "    programs=(",
        *(f"        {_quoted(f'{one.name}:{one.what}')}" for one in programs),
        "    )",
        "    if (( CURRENT == 2 )); then",
        "        _describe program programs",
        "        return",
        "    fi",
        '    local program="${words[2]}"',
        '    words=("uldp ${words[2]}" ${words[3,-1]})',
        "    (( CURRENT -= 1 ))",
        '    case "$program" in',
        *(line for one in programs for line in _zsh_case(one)),
        "    esac",
        "}",
        'if [ "$funcstack[1]" = "_uldp" ]; then',
        '    _uldp "$@"',
        "else",
        "    compdef _uldp uldp",
        "fi",
    ]
    return "\n".join(lines) + "\n"


def _zsh_case(program: Program) -> Iterator[str]:
    yield f"        {program.name}) _arguments -S \\"
    for option in program.options:
        what = option.what
        for letter in "\\[]:":
            what = what.replace(letter, f"\\{letter}")
        takes = f":value:{_zsh_values(option.values)}" if option.takes_value else ""
        yield f"            {_quoted(f'*{option.name}[{what}]{takes}')} \\"
    yield f"            {_quoted(f'*:argument:{_zsh_values(program.words)}')} ;;"


def _zsh_values(values: Sequence[str]) -> str:
    return f"({' '.join(values)})" if values else "_files"


def fish(programs: Sequence[Program]) -> str:
    """A script for fish 3 or newer."""
    lines = ["# fish completion of uldp; printed by: uldp completion fish"]
    for one in programs:
        lines.append(f"complete -c uldp -f -n __fish_use_subcommand -a {one.name} -d {_quoted(one.what)}")
    for one in programs:
        seen = f'-n "__fish_seen_subcommand_from {one.name}"'
        for option in one.options:
            values = f" -x -a {_quoted(' '.join(option.values))}" if option.values else " -r"
            takes = values if option.takes_value else ""
            lines.append(f"complete -c uldp {seen} -l {option.name[2:]}{takes} -d {_quoted(option.what)}")
        if one.words:
            lines.append(f"complete -c uldp -f {seen} -a {_quoted(' '.join(one.words))}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A text in single quotes, for any of the shells."""
    return "'" + text.replace("'", "'\\''") + "'"


def _names(program: Program) -> list[str]:
    return [option.name for option in program.options]


def _words(words: Sequence[str] | Iterator[str]) -> str:
    return " ".join(words)


SCRIPTS: dict[str, Callable[[Sequence[Program]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
"""The script of each shell."""
