"""Small faults of a JavaScript file: one comparison, operation, number or condition outside of texts and comments."""

from __future__ import annotations

import re

from tests.campaigns.mutations import Mutant, mutant_at

_TOKENS = re.compile(
    r"""
    (?P<left_alone>//[^\n]* | /\*.*?\*/ | '(?:\\.|[^'\\\n])*' | "(?:\\.|[^"\\\n])*" | `(?:\\.|[^`\\])*`
        | (?<=[(,=:!&|?]) \s* /(?![/*])(?:\\.|\[(?:\\.|[^]\\\n])*\]|[^/\\\n])+/[a-z]* | => | \+\+ | -- | [-+*/]=
        | import\b[^;]*; | \?\. | \?\? | \*\* | <<=? | >>>?=?)
    | (?P<comparison>===|!==|<=|>=|<|>)
    | (?P<arithmetic>(?<=\s)[-+*/%](?=\s))
    | (?P<condition>&&|\|\|)
    | (?P<constant>(?<![\w.#])(?:\d+n?|true|false)(?![\w.]))
    """,
    re.VERBOSE | re.DOTALL,
)

_INSTEAD = {
    **{"===": "!==", "!==": "===", "<": "<=", "<=": "<", ">": ">=", ">=": ">"},
    **{"+": "-", "-": "+", "*": "/", "/": "*", "%": "*"},
    **{"&&": "||", "||": "&&", "true": "false", "false": "true"},
}


def javascript_mutants(path: str, source: str) -> list[Mutant]:
    """The mutants of a file, in their order."""
    found = []
    for match in _TOKENS.finditer(source):
        kind, old = match.lastgroup, match.group()
        if kind is not None and kind != "left_alone":
            new = _INSTEAD.get(old) or f"{int(old.removesuffix('n')) + 1}{'n' if old.endswith('n') else ''}"
            found.append(mutant_at(path, source, match.span(), new, kind))
    return found
