"""Draws sentences at random for a review of the English: of help texts, errors, docstrings and pages, 25 each.

python -m tests.campaigns.sentences --seed 1
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sys
from collections.abc import Iterator

from requirements.companions import companions
from tests.project.documents import ROOT, pages, sentences

FOLDERS = ("uldp_transforms", *(str(each.sources.relative_to(ROOT)) for each in companions()), "pipelines", "labs")


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def _text(node: ast.expr) -> str:
    """The text of a string expression, with {...} for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else "{" + ast.unparse(part.value) + "}"  # type: ignore
            for part in node.values
        )
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return ""


def _split(text: str) -> list[str]:
    return [one for one in re.split(r"(?<=[.!?])\s+(?=[A-Z`\[])", " ".join(text.split())) if len(one.split()) > 3]


def help_texts() -> Iterator[tuple[str, str]]:
    """Texts after ``help=``, ``"help":`` and in fields of the specification, and what commands say of themselves."""
    for path, tree in _trees():
        if "/jobs/" not in path and "/spec/" not in path:
            continue
        for node in ast.walk(tree):
            found: list[ast.expr] = []
            if isinstance(node, ast.keyword) and node.arg in ("help", "description", "epilog"):
                found = [node.value]
            elif isinstance(node, ast.Dict):
                found = [v for k, v in zip(node.keys, node.values, strict=True) if k is not None and _text(k) == "help"]
            for value in found:
                yield from ((path, one) for one in _split(_text(value)))
        if "/jobs/" in path and "argparse" in ast.unparse(tree):
            yield from ((path, one) for one in _split(ast.get_docstring(tree) or ""))


def errors() -> Iterator[tuple[str, str]]:
    """Messages of exceptions that are raised, and of checks."""
    for path, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                for argument in node.exc.args:
                    yield from ((path, one) for one in _split(_text(argument)))


def docstrings() -> Iterator[tuple[str, str]]:
    """Sentences of docstrings, without examples."""
    for path, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = re.split(r"\n\s*>>>|\n\s{4,}\S", ast.get_docstring(node) or "")[0]
                yield from ((f"{path}:{getattr(node, 'name', '')}", one) for one in _split(text))


def prose() -> Iterator[tuple[str, str]]:
    """Sentences of pages, without the changelog of past versions."""
    for page in pages():
        for sentence in sentences(page.read_text(encoding="utf-8")):
            yield from ((str(page.relative_to(ROOT)), one) for one in _split(sentence))


def main(argv: list[str] | None = None) -> int:
    """Print a draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=25, help="sentences of each kind (default: 25)")
    args = parser.parse_args(argv)
    draw = random.Random(args.seed)
    for kind in (help_texts, errors, docstrings, prose):
        population = sorted(set(kind()))
        print(f"# {kind.__name__}: {args.each} of {len(population)}")
        for number, (place, sentence) in enumerate(draw.sample(population, args.each), 1):
            print(f"{number:2} {place}\n   {sentence}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
