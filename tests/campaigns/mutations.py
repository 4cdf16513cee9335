"""Small faults of a Python file: one comparison, operation, constant, condition, return or raise that is changed."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A piece of a file to be replaced: lines and columns count from 1 and 0, columns in bytes.

    ``begin`` is the first line of the function around it, 0 for code that runs on import.
    """

    path: str
    line: int
    start: int
    end_line: int
    end: int
    text: str
    function: str
    begin: int
    kind: str

    def apply(self, source: bytes) -> bytes:
        lines = source.splitlines(keepends=True)
        before = b"".join(lines[: self.line - 1]) + lines[self.line - 1][: self.start]
        after = lines[self.end_line - 1][self.end :] + b"".join(lines[self.end_line :])
        return before + self.text.encode() + after

    def lines(self, source: bytes) -> tuple[str, str]:
        """Its lines, joined, as they are and with the fault."""
        mutated = self.apply(source)
        last = self.end_line + mutated.count(b"\n") - source.count(b"\n")
        parts = (source.splitlines()[self.line - 1 : self.end_line], mutated.splitlines()[self.line - 1 : last])
        old, new = (b" ".join(line.strip() for line in part).decode() for part in parts)
        return old, new

    def show(self, source: bytes) -> str:
        old, new = self.lines(source)
        return f"{self.path}:{self.line} {self.function} [{self.kind}]\n    - {old}\n    + {new}"


def mutant_at(path: str, source: str, span: tuple[int, int], text: str, kind: str) -> Mutant:
    """The mutant that replaces the characters of a span of a file that is not Python: its function is unknown."""
    content = source.encode()
    places = [len(source[:at].encode()) for at in span]
    (line, start), (end_line, end) = ((content.count(b"\n", 0, at), at - content.rfind(b"\n", 0, at)) for at in places)
    return Mutant(path, line + 1, start - 1, end_line + 1, end - 1, text, "", 0, kind)


COMPARISONS: dict[type, list[type]] = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
OPERATIONS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}


class Finder(ast.NodeVisitor):
    """Collects the mutants of one file; texts of errors, annotations and docstrings are left alone."""

    def __init__(self, path: str):
        self.found: list[Mutant] = []
        self._path = path
        self._function: list[str] = []
        self._begin = 0

    def _add(self, kind: str, node: Any, new: ast.AST | str) -> None:
        text = new if isinstance(new, str) else f"({ast.unparse(new)})"
        place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        function = ".".join(self._function) or "on import"
        self.found.append(Mutant(self._path, *place, text, function, self._begin, kind))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        around = self._begin
        self._begin = around or min(part.lineno for part in (node, *node.decorator_list))
        self._function.append(node.name)
        for line in node.body:
            self.visit(line)
        self._function.pop()
        self._begin = around

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._function.append(node.name)
        for line in node.body:
            self.visit(line)
        self._function.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add("raise removed", node, "pass")

    def visit_Import(self, node: ast.Import) -> None:
        pass

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        pass

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
                self._add("comparison", node, ast.Compare(node.left, ops, node.comparators))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = isinstance(node.left, (ast.JoinedStr, ast.Constant)) and isinstance(
            getattr(node.left, "value", ""), str
        )
        if type(node.op) in OPERATIONS and not texts:
            self._add("arithmetic", node, ast.BinOp(node.left, OPERATIONS[type(node.op)](), node.right))
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in OPERATIONS:
            mutated = ast.AugAssign(node.target, OPERATIONS[type(node.op)](), node.value)
            self._add("arithmetic", node, ast.unparse(mutated))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._add("and/or", node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self._add("sign", node, node.operand)
        if not isinstance(node.operand, ast.Constant):
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add("constant", node, str(not value))
        elif isinstance(value, int):
            self._add("constant", node, str(value + 1))
        elif isinstance(value, float):
            self._add("constant", node, repr(value * 1.5 if value else 1.0))

    def visit_If(self, node: ast.If) -> None:
        self._add("condition", node.test, ast.UnaryOp(ast.Not(), node.test))
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self._add("return", node, "return None")
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass
