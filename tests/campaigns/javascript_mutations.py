"""Small faults of a JavaScript file: one comparison, operation, number or condition outside of texts and comments."""

from __future__ import annotations

import bisect
import re

from tests.campaigns.mutations import Mutant

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
    """The mutants of a file, in their order; columns are in bytes, as those of Python files."""
    content = source.encode()
    ends = [at for at, byte in enumerate(content) if byte == ord("\n")]
    found = []
    for match in _TOKENS.finditer(source):
        kind = match.lastgroup
        if kind is None or kind == "left_alone":
            continue
        old = match.group()
        new = _INSTEAD.get(old) or f"{int(old.removesuffix('n')) + 1}{'n' if old.endswith('n') else ''}"
        begin = len(source[: match.start()].encode())
        line = bisect.bisect_left(ends, begin)
        start = begin - (ends[line - 1] + 1 if line else 0)
        found.append(Mutant(path, line + 1, start, line + 1, start + len(old.encode()), new, "", 0, kind))
    return found
