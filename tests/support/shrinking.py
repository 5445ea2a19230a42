"""The smallest program that still fails, by leaving out parts of its text.

A part is left out if what remains is a design that fails in the same way. So it does for whatever wrote the program.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import cast

import attrs

Step = tuple[str, int | None]
"""The way from a node to a child: its field, and its place there if the field is a list."""

SIMPLE = ("Bool.true", "0")


@attrs.frozen
class Edit:
    """What becomes of the node at the end of a way; None: it is left out."""

    way: tuple[Step, ...]
    replacement: ast.AST | None


def smaller(source: str, fails: Callable[[str], bool], most: int = 2000) -> str:
    """The program after every edit with which it still fails; at most so many are tried."""
    tree, tries = ast.parse(source), 0
    progress = True
    while progress and tries < most:
        progress = False
        for edit in list(edits(tree)):
            candidate = apply_edit(tree, edit)
            tries += 1
            if candidate is not None and fails(ast.unparse(candidate)):
                tree, progress = candidate, True
                break
            if tries >= most:
                break
    return ast.unparse(tree) + "\n"


def edits(tree: ast.Module) -> Iterator[Edit]:
    """All edits, those that leave out most first."""
    nodes = list(_nodes(tree, ()))
    for way, node in nodes:
        if isinstance(node, ast.FunctionDef):
            yield Edit(way, None)
    for way, node in nodes:
        if way and way[-1][0] in ("elts", "keywords", "body") and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield Edit(way, None)
    inside = [(way, node) for way, node in nodes if isinstance(node, ast.expr) and _is_in_function(way, tree)]
    for way, node in sorted(inside, key=lambda pair: -sum(1 for _ in ast.walk(pair[1]))):
        children = [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
        if children and not isinstance(node, ast.Attribute):
            yield from (Edit(way, child) for child in children if not isinstance(child, ast.Name))
            yield from (Edit(way, ast.parse(text, mode="eval").body) for text in SIMPLE)


def _nodes(node: ast.AST, way: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], ast.AST]]:
    yield way, node
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield from _nodes(value, (*way, (field, None)))
        elif isinstance(value, list):
            for place, child in enumerate(cast("list[ast.AST]", value)):
                yield from _nodes(child, (*way, (field, place)))


def _is_in_function(way: tuple[Step, ...], tree: ast.Module) -> bool:
    (_, place), *rest = way or (("", None),)
    top = tree.body[place] if place is not None else None
    return bool(rest) and isinstance(top, ast.FunctionDef | ast.Assign) and rest[0][0] in ("body", "value")


def apply_edit(tree: ast.Module, edit: Edit) -> ast.Module | None:
    """The program after the edit; a function that is left out is not listed any more."""
    changed = deepcopy(tree)
    parent: ast.AST = changed
    for field, place in edit.way[:-1]:
        value = getattr(parent, field)
        parent = value if place is None else value[place]
    field, place = edit.way[-1]
    if place is None:
        if edit.replacement is None:
            return None
        setattr(parent, field, edit.replacement)
        return changed
    siblings = getattr(parent, field)
    gone = siblings[place]
    siblings[place : place + 1] = [] if edit.replacement is None else [edit.replacement]
    if field == "body" and not siblings:
        return None
    if edit.replacement is None and isinstance(gone, ast.FunctionDef):
        for node in ast.walk(changed):
            if isinstance(node, ast.Tuple):
                node.elts = [e for e in node.elts if not (isinstance(e, ast.Name) and e.id == gone.name)]
    return changed
