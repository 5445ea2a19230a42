"""The one exception of the language, raised on the model's own line.

A model is traced once, when it is imported. Whatever Python would do silently wrong with a symbolic
value (take one branch of an `if`, keep one operand of an `and`) is refused there and then.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable
from itertools import islice
from opcode import opname
from pathlib import Path
from types import FrameType

import attrs

_PACKAGE = str(Path(__file__).parent)


@attrs.frozen
class Where:
    """A line of the model."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


class ModelError(Exception):
    """Your model is wrong: which line, and what to write instead."""

    def __init__(self, message: str, where: Where | None = None) -> None:
        self.message, self.where = message, where or model_line()
        super().__init__(f"{self.where}: {message}")


def _model_frame() -> FrameType:
    """The innermost call that lies outside this package."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # the one way to the caller's line
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def model_line() -> Where:
    """The line of the model that is being read."""
    frame = _model_frame()
    return Where(frame.f_code.co_filename, frame.f_lineno)


def def_line(function: Callable[..., object]) -> Where:
    """The line of a function's `def`, below its decorators."""
    code = function.__code__
    line = code.co_firstlineno
    while (text := linecache.getline(code.co_filename, line).lstrip()) and not text.startswith("def "):
        line += 1
    return Where(code.co_filename, line if text else code.co_firstlineno)


INSTEAD = {
    "and": "Write a & b instead of `a and b`, each comparison in parentheses: (a == b) & (c == d)",
    "or": "Write a | b instead of `a or b`, each comparison in parentheses: (a == b) | (c == d)",
    "not": "Write ~a instead of `not a`",
    "if": "Write when(c, a, b) for a value, or one action per case, instead of `if`",
    "chain": "Write (a <= b) & (b <= c) instead of `a <= b <= c`",
    "filter": "Write forall(c.implies(p) for ...), exists(c & p for ...) or S.where(lambda x: c) instead of "
    "an `if` inside a generator",
    "assert": "Write an @always property instead of `assert`",
    "call": "Write when(a < b, a, b) instead of min(a, b), smallest(... for x in S, or_else=0) over a set, "
    "and forall and exists instead of all and any",
}
_ANYTHING = "Write & | ~ for and/or/not, when(c, a, b) for if, and S.has(x) for in"


def asked_for_truth() -> str:
    """What to write instead of the construct that asked a symbolic value for its truth.

    Python hands `and`, `if` and their kin to one method, `__bool__`, without saying which of them asks, so
    the model's source is read at the place that is being executed.
    """
    frame = _model_frame()
    if opname[frame.f_code.co_code[frame.f_lasti]].startswith("CALL"):
        return INSTEAD["call"]
    positions = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    except SyntaxError:
        return _ANYTHING
    return INSTEAD.get(_construct(tree, positions), _ANYTHING)


Positions = tuple[int | None, int | None, int | None, int | None]


def _construct(tree: ast.Module, positions: Positions | None) -> str:
    """The key in INSTEAD of the innermost construct that asks for a truth at a place; empty if it is unknown.

    Some versions of Python report the place of the value that is asked, others that of the whole statement or
    comprehension that asks.
    """
    if positions is None or None in positions:
        return ""
    place = _Extent(*(p or 0 for p in positions))
    construct, best = "", _Extent(0, sys.maxsize, 0, 0)
    for node in ast.walk(tree):
        for kind, part in _askers(node):
            extent = _extent(part)
            if place in extent and extent in best:
                construct, best = kind, extent
            elif isinstance(node, ast.expr | ast.stmt) and place == _extent(node) and place in best:
                construct, best = kind, place
    return construct


@attrs.frozen
class _Extent:
    """A stretch of source text."""

    line: int
    end_line: int
    column: int
    end_column: int

    def __contains__(self, other: _Extent) -> bool:
        starts = (self.line, self.column) <= (other.line, other.column)
        return starts and (other.end_line, other.end_column) <= (self.end_line, self.end_column)


def _extent(part: ast.expr | ast.stmt) -> _Extent:
    return _Extent(part.lineno, part.end_lineno or 0, part.col_offset, part.end_col_offset or 0)


def _askers(node: ast.AST) -> list[tuple[str, ast.expr]]:
    match node:
        case ast.BoolOp(op=op):
            return [("and" if isinstance(op, ast.And) else "or", node)]
        case ast.UnaryOp(op=ast.Not()):
            return [("not", node)]
        case ast.Compare(ops=[_, _, *_]):
            return [("chain", node)]
        case ast.IfExp(test=test) | ast.If(test=test) | ast.While(test=test):
            return [("if", test)]
        case ast.Assert(test=test):
            return [("assert", test)]
        case ast.GeneratorExp(generators=loops) | ast.ListComp(generators=loops) | ast.SetComp(generators=loops):
            return [("filter", test) for loop in loops for test in loop.ifs]
        case _:
            return []
