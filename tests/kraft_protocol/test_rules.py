"""The rules that re-implementations miss stand in the entrance of the model, and are marked where they act."""

from __future__ import annotations

import ast
import re
from pathlib import Path

SPEC = Path(__file__).parents[2] / "spec"
RULE = re.compile(r"\(([1-9]\d?)\) ")


def rules_in(text: str) -> list[str]:
    """The numbers of the rules in the docstring of a module."""
    return RULE.findall(ast.get_docstring(ast.parse(text)) or "")


def marks_in(text: str) -> set[str]:
    """The numbers of the rules in the docstrings of a module's functions."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return {mark for function in functions for mark in RULE.findall(ast.get_docstring(function) or "")}


def marks() -> set[str]:
    return {mark for file in (SPEC / "kraft_protocol").glob("*.py") for mark in marks_in(file.read_text("utf-8"))}


def test_every_rule_is_marked_where_it_acts() -> None:
    rules = rules_in((SPEC / "kraft_model.py").read_text("utf-8"))
    assert rules == [str(number) for number in range(1, len(rules) + 1)]
    assert set(rules) == marks()


def test_a_mark_is_read_of_functions_alone() -> None:
    assert marks_in('"""(1) no."""\ndef f() -> None:\n    """(2) yes."""\n    x = "(3) no"\n') == {"2"}
