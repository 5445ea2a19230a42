"""Candidates by provenance: whatever an action leaves behind, its guards and its other updates were true when it did.

An action that sends a message, or notes a decision, gives a variable a value by which one sees that it was taken: its
mark. A candidate says that wherever the mark is, one guard of the action holds still, or one other update of it. Most
candidates are false, for what was true then need not last; Houdini drops those. After Basilisk (Zhang et al., OSDI
2025), which has history to speak of and so needs no luck.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce

from isr_check.smt.strengthening.templates import Clause
from isr_check.smt.strengthening.vocabulary import ELEMENTS, MOST_ELEMENTS, Element, parameters, substituted
from isr_lang import Action, Design, Node, walk
from isr_lang.declare import Update
from isr_lang.nodes import apply
from isr_lang.override import called
from isr_lang.types import BoolType, ChoiceType, MapType, MaybeType, SortType, Type


def provenances(design: Design) -> list[Clause]:
    """A clause `mark => fact` for each mark of each action and each fact that it leaves, each once."""
    found: dict[str, Clause] = {}
    for action in design.actions:
        types = {v.name: v.type for v in design.variables}
        targets = {u.variable: _target(u, types[u.variable]) for u in action.updates}
        for clause in _of_action(action, targets):
            found.setdefault(str(clause), clause)
    return list(found.values())


def _of_action(action: Action, targets: Mapping[str, Node]) -> Iterator[Clause]:
    """The candidates of one action; `targets`: what it writes, by the variable."""
    named = [(name, t) for name, t in action.parameters if isinstance(t, SortType)]
    if len(named) > MOST_ELEMENTS:
        return
    elements = {name: Element(ELEMENTS[i], t) for i, (name, t) in enumerate(named)}
    meaning = {name: e.node for name, e in elements.items()}
    known = frozenset(e.name for e in elements.values())
    facts: list[tuple[str | None, Node]] = [(None, x) for g in action.guards for x in _conjuncts(g.condition)]
    facts += [(u.variable, x) for u in action.updates for x in _equation(u, targets[u.variable])]
    for marked, guards in _marks(action, targets):
        for written, fact in facts:
            if written == marked or (written is None and marked in _read(fact)):
                continue
            parts = [substituted(x, meaning) for x in (*guards, fact)]
            if all(parameters(x) <= known for x in parts):
                used = frozenset[str]().union(*map(parameters, parts))
                yield Clause(tuple(e for e in elements.values() if e.name in used), tuple(parts[:-1]), parts[-1])


def _conjuncts(condition: Node) -> list[Node]:
    if condition.op == "and":
        return [x for a in condition.args for x in _conjuncts(a)]
    return [condition]


def _target(update: Update, type: Type) -> Node:
    """What the update writes, as an expression: a variable, or the value of a map at a key."""
    variable = Node("variable", (), (update.variable, False), type)
    return reduce(lambda of, key: apply("get", of, key), update.path, variable)


def _equation(update: Update, target: Node) -> list[Node]:
    """That the variable has its new value; nothing where that value is computed from its old one, or is a whole map."""
    if update.variable in _read(update.value) or isinstance(target.type, MapType):
        return []
    return [_equal(target, update.value)]


def _equal(target: Node, value: Node) -> Node:
    """That a variable has a value; of one that is true or false, as one would write it."""
    if isinstance(target.type, BoolType) and value.op == "literal":
        return target if value.attr else apply("not", target)
    return apply("equal", target, value)


def _marks(action: Action, targets: Mapping[str, Node]) -> Iterator[tuple[str, tuple[Node, ...]]]:
    """The values by which one sees that the action was taken: (variable, conditions)."""
    for u in action.updates:
        target = targets[u.variable]
        if isinstance(target.type, BoolType | ChoiceType | MaybeType):
            for conditions, value in _branches(u.value):
                if value.op in ("literal", "some"):
                    yield u.variable, (_equal(target, value), *conditions)


def _branches(value: Node) -> Iterator[tuple[tuple[Node, ...], Node]]:
    """The values that a case distinction may have, each with its conditions."""
    if value.op != "when":
        yield (), value
        return
    condition, then, otherwise = value.args
    yield from (((condition, *more), x) for more, x in _branches(then))
    yield from (((apply("not", condition), *more), x) for more, x in _branches(otherwise))


def _read(node: Node) -> frozenset[str]:
    """The names of the variables that an expression reads, itself or by way of definitions."""
    nodes = walk(node, *(d.body for d in called(node)))
    return frozenset(n.attr[0] for n in nodes if n.op == "variable")
