"""Small faults of a C file: one comparison, operation, number, condition, or check that is dropped."""

from __future__ import annotations

import re

from tests.campaigns.mutations import Mutant, mutant_at

_TOKENS = re.compile(
    r"""
    (?P<left_alone>//[^\n]* | /\*.*?\*/ | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | ^[ ]*\#[^\n]*
        | _Static_assert[^;]*; | \+\+ | -- | -> | [-+*/%&|^]= | <<= | >>=)
    | (?P<dropped>\bif[ ]\((?P<checked>[^{};]*?)\)(?=\s+(?:return|goto)\b))
    | (?P<comparison>==|!=|<=|>=|(?<![<])<(?![<])|(?<![>])>(?![>]))
    | (?P<arithmetic>(?<=\s)(?:[-+*/]|<<|>>|[&|^])(?=\s))
    | (?P<condition>&&|\|\|)
    | (?P<constant>(?<![\w.])(?:0x[0-9A-Fa-f]+|\d+)(?![\w.]))
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)

_INSTEAD = {
    **{"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">"},
    **{"+": "-", "-": "+", "*": "+", "/": "*", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "|"},
    **{"&&": "||", "||": "&&"},
}


def c_mutants(path: str, source: str) -> list[Mutant]:
    """The mutants of a file, in their order."""
    found, at = [], 0
    while match := _TOKENS.search(source, at):
        kind, old, at = match.lastgroup, match.group(), match.end()
        if kind == "dropped":
            found.append(mutant_at(path, source, match.span("checked"), "0", "check dropped"))
            at = match.start("checked")
        elif kind is not None and kind != "left_alone":
            new = _INSTEAD.get(old) or str(int(old, 0) + 1)
            found.append(mutant_at(path, source, match.span(), new, kind))
    return found
