"""The rules by which an exploration can be reduced, and how they are found in a model's expressions.

A request names the version of what it would change. Once the receiver's version has passed it, the request can only be
refused, and what else it says is never read: a `VersionRule` says where. Who asks for more
members counts those together with the ones that there are, and while the request cannot be accepted, it makes no
difference which of them are new: a `JoinRule` says where.

Nothing of this is asserted by hand. Each rule says what must hold of all actions and properties, and is kept for those
variables only for which that is seen in their expressions. Then states that differ only where the rule says are
bisimilar: an action is possible in both or in neither, and leads to states that again differ there only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, cast

import attrs

from isr_check.inlining import (
    Inlined,
    Write,
    bound,
    cell,
    conjuncts,
    is_variable,
    replace_parts,
    subsets,
    variables,
    whole,
)
from isr_lang import Instance, Node
from isr_lang.instance import FALSE, TRUE
from isr_lang.nodes import walk
from isr_lang.types import ChoiceType, MapType, NumberType, SeqType, SortType, Type


@attrs.frozen
class VersionRule:
    """Where `versions[k] < current`, the cells at k of the variables `blank` make no difference. It holds where

    - `current` never goes down: all that is written to it is itself, plus something or not;
    - a write to `versions` at a key overwrites the cells of all `blank` at this key;
    - no property that is asked about reads `blank`; nor does an action, at a key k, once `versions[k] == current` is
      taken to be false in it, unless that makes it impossible.
    """

    versions: str
    current: str
    blank: tuple[str, ...]


@attrs.frozen
class JoinRule:
    """Where `phase[k]` is in `phases`, `members[k]` counts only by being empty and in `beside[k] | members[k]`.

    So it does where `phase[k]` is in `waiting` and one of `version_rules` holds at k. It holds where

    - what reads `members` otherwise is an action that asks for another phase at the same key;
    - no such phase is reached from these, unless `members[k]` is overwritten;
    - a write to `beside` at a key overwrites `members` at this key.
    """

    members: str
    beside: str
    phase: str
    phases: tuple[int, ...]
    waiting: tuple[int, ...]
    version_rules: tuple[VersionRule, ...]


class Model:
    """What the rules are about: all actions, and the properties that are asked about, as expressions without calls."""

    def __init__(self, instance: Instance, actions: Sequence[Inlined], conditions: Sequence[Node]) -> None:
        self.instance, self.actions, self.conditions = instance, actions, conditions
        self.maps = {v.name: v.type for v in instance.variables if isinstance(v.type, MapType)}
        self.parts = (*chain.from_iterable(a.parts for a in actions), *conditions)
        self.whole = whole(self.parts)
        self._cells: dict[Node, frozenset[Node]] = {}
        self._cell_reads: dict[tuple[Inlined, frozenset[tuple[Node, bool]]], frozenset[Node]] = {}

    def writes(self, name: str) -> Iterator[tuple[Inlined, Write]]:
        """The updates of a variable."""
        return ((a, u) for a in self.actions for u in a.updates if u.variable == name)

    def cells(self, node: Node) -> frozenset[Node]:
        """The values x[k] of maps before the step that an expression reads."""
        if node not in self._cells:
            self._cells[node] = frozenset({node} if cell(node) else ()).union(*map(self.cells, node.args))
        return self._cells[node]

    def fold_nodes(self, nodes: Sequence[Node], truths: Mapping[Node, bool]) -> list[Node]:
        """The expressions where these conditions are known to hold or not."""
        meaning = {n: TRUE if truth else FALSE for n, truth in truths.items()}
        return [self.instance.fold(n) for n in replace_parts(nodes, meaning)]

    def cells_reached(self, action: Inlined, truths: Mapping[Node, bool]) -> frozenset[Node]:
        """The values x[k] that an action reads where these conditions are known to hold or not.

        A guard before the one that refuses reads, too: whether it ever refuses is reported.
        """
        question = (action, frozenset(truths.items()))
        if question not in self._cell_reads:
            parts = self.fold_nodes(action.parts, truths)
            guards = parts[: len(action.guards)]
            reached = guards[: guards.index(FALSE)] if FALSE in guards else parts
            self._cell_reads[question] = frozenset[Node]().union(*map(self.cells, reached))
        return self._cell_reads[question]


# versions that have been passed


def passed_rules(model: Model) -> list[VersionRule]:
    found = (_version_rule(model, versions, current) for versions, current in _comparisons(model))
    return [rule for rule in found if rule.blank]


def _comparisons(model: Model) -> list[tuple[str, str]]:
    """(versions, current) for each guard `versions[k] == current` of the model."""
    comparisons: dict[tuple[str, str], None] = {}
    for n in walk(*chain.from_iterable(a.guards for a in model.actions)):
        if n.op == "equal" and isinstance(n.args[0].type, NumberType):
            for one, other in (n.args, n.args[::-1]):
                if cell(one) and other.op == "variable":
                    comparisons[cell(one), other.attr[0]] = None
    return list(comparisons)


def _version_rule(model: Model, versions: str, current: str) -> VersionRule:
    """The rule with the most variables that may be blank: of all, those are struck that may not."""
    observed, key = variables(model.conditions) | model.whole, model.maps[versions].key
    fit = [n for n, t in model.maps.items() if t.key == key and _is_one_cell(t.value) and n not in observed]
    if not all(not u.path and _grows(u.value, current) for _, u in model.writes(current)):
        fit = []
    while True:
        rule = VersionRule(versions, current, tuple(fit))
        struck = {n for a in model.actions for n in _relevant_variables(model, a, rule)} if fit else set[str]()
        if not struck:
            return rule
        fit = [n for n in fit if n not in struck]


def _is_one_cell(type: Type) -> bool:
    """Whether a value of the type is one cell, and its first value names no element of a sort."""
    return not isinstance(type, SortType | MapType | SeqType)


def _grows(value: Node, variable: str) -> bool:
    """Whether a value written to the variable is never below the one it had."""
    match value.op:
        case "plus":
            return _grows(value.args[0], variable) and value.args[1].op == "literal" and value.args[1].attr >= 0
        case "when":
            return all(_grows(a, variable) for a in value.args[1:])
        case _:
            return is_variable(value, variable)


_COMPARISONS: Final = frozenset({"equal", "less", "at_most"})


def _relevant_variables(model: Model, action: Inlined, rule: VersionRule) -> Iterator[str]:
    """Those of the rule's blank variables whose cells make a difference to this action."""
    for update in action.updates:
        if update.variable == rule.versions:
            also = action.overwrites(update.path) if len(update.path) == 1 else set[str]()
            yield from (n for n in rule.blank if n not in also)
    nodes = walk(*action.parts)
    every = list(dict.fromkeys(n.args[1] for n in nodes if cell(n) in rule.blank))
    comparisons = [n for n in nodes if n.op in _COMPARISONS]
    for keys in subsets(every):
        others = [k for k in every if k not in keys]
        cells = model.cells_reached(action, where_passed(comparisons, rule, keys))
        read = (n for n in cells if cell(n) in rule.blank)
        yield from (cell(n) for n in read if bound(n.args[1]) or n.args[1] not in others)


def where_passed(nodes: Sequence[Node], rule: VersionRule, keys: Sequence[Node]) -> dict[Node, bool]:
    """What is known of these comparisons where the versions at the keys have been passed."""
    truths: dict[Node, bool] = {}
    for n in nodes:
        if n.op in _COMPARISONS:
            for (one, other), truth in ((n.args, n.op != "equal"), (n.args[::-1], False)):
                if cell(one) == rule.versions and one.args[1] in keys and is_variable(other, rule.current):
                    truths[n] = truth
    return truths


# members that count only beside others


def joined_rules(model: Model, version_rules: Sequence[VersionRule]) -> list[JoinRule]:
    rules = list[JoinRule]()
    for members, beside in _unions(model):
        phase, asked = _phase_of_readers(model, members, beside)
        if phase and members not in {n for r in version_rules for n in r.blank}:
            rules += _Phases(model, members, beside, phase, asked).rules(version_rules)
    return rules


def _unions(model: Model) -> list[tuple[str, str]]:
    """(members, beside) for every union of two sets at one key, where a write to the second overwrites the first."""
    unions: dict[tuple[str, str], None] = {}
    for n in walk(*model.parts):
        if n.op == "union" and cell(n.args[0]) and cell(n.args[1]) and n.args[0].args[1] is n.args[1].args[1]:
            for one, other in (n.args, n.args[::-1]):
                members, beside = cell(one), cell(other)
                paths = [(a, u.path) for a, u in model.writes(beside)]
                if members != beside and all(len(p) == 1 and members in a.overwrites(p) for a, p in paths):
                    unions[members, beside] = None
    return [pair for pair in unions if not model.whole & set(pair)]


def _phase_of_readers(model: Model, members: str, beside: str) -> tuple[str, set[int]]:
    """The variable of the phases, and the phases that actions ask for which read `members` in any other way.

    No variable if a property reads it so, or an action that asks for no phase, or actions that ask for several's.
    """
    if any(_otherwise(model.conditions, members, beside)):
        return "", set()
    phases, reader_phases = set[str](), set[int]()
    for action in model.actions:
        for key in set(_otherwise(action.parts, members, beside)):
            found = [c for c in conjuncts(action.guards) if _asks(c, key)]
            if not found:
                return "", set()
            phases.add(cell(found[0].args[0]))
            reader_phases.add(found[0].args[1].attr)
    return (phases.pop(), reader_phases) if len(phases) == 1 else ("", set())


def _asks(condition: Node, key: Node) -> bool:
    """Whether it is `phase[key] == one of its values`."""
    one, *more = condition.args or (condition,)
    if condition.op != "equal" or not cell(one) or one.args[1] is not key:
        return False
    return isinstance(one.type, ChoiceType) and more[0].op == "literal"


def _otherwise(parts: Sequence[Node], members: str, beside: str) -> Iterator[Node]:
    """The keys at which expressions read `members` otherwise than by being empty or in the union."""
    for n in walk(*parts):
        for i, of in enumerate(n.args):
            if of.op == "get" and of.args[0].op == "variable" and of.args[0].attr[0] == members:
                other = n.args[1 - i] if len(n.args) == 2 else n
                same_key = other.op == "get" and other.args[1] is of.args[1]
                union = n.op == "union" and same_key and other.args[0].attr == (beside, of.args[0].attr[1])
                empty = n.op == "equal" and other.op == "literal" and other.attr == 0
                if not (union or empty):
                    yield of.args[1]
    yield from (n.args[1] for n in parts if cell(n) == members)


class _Phases:
    """Which phases lead to one that is asked for."""

    def __init__(self, model: Model, members: str, beside: str, phase: str, reader_phases: set[int]) -> None:
        self.model, self.members, self.beside, self.phase, self.reader_phases = (
            model,
            members,
            beside,
            phase,
            reader_phases,
        )
        type = cast("ChoiceType", model.maps[phase].value)
        self.values = [v for v in range(len(type.members)) if v not in reader_phases]

    def rules(self, version_rules: Sequence[VersionRule]) -> list[JoinRule]:
        """One rule, if there is a phase for it."""
        closed = set(self.values)
        while bad := {v for v in closed if not self._stays(v, closed)}:
            closed -= bad
        rest = [v for v in self.values if v not in closed]
        waiting = {v: [r for r in version_rules if self._stays(v, closed, r)] for v in rest}
        usable = [r for r in version_rules if any(r in rules for rules in waiting.values())]
        kept = [v for v in rest if usable and all(r in waiting[v] for r in usable)]
        if not closed and not kept:
            return []
        return [JoinRule(self.members, self.beside, self.phase, tuple(closed), tuple(kept), tuple(usable))]

    def _stays(self, value: int, closed: set[int], version_rule: VersionRule | None = None) -> bool:
        """Whether no action leads from this phase out of the closed ones, but by overwriting `members`.

        With `version_rule`, where that holds, and the action may also leave both the phase and the version as they are.
        """
        watched = {self.phase} | ({version_rule.versions} if version_rule else set[str]())
        for action in self.model.actions:
            for update in action.updates:
                if update.variable in watched and not self._may_write(action, update.path, value, closed, version_rule):
                    return False
        return True

    def _may_write(
        self, action: Inlined, path: tuple[Node, ...], value: int, closed: set[int], version_rule: VersionRule | None
    ) -> bool:
        if len(path) != 1:
            return False
        variables_written = action.overwrites(path)
        if self.members in variables_written:
            return True
        (key,) = path
        truths = {n: n.args[1].attr == value for n in walk(*action.parts) if self._asks_phase(n, key)}
        if version_rule:
            truths |= where_passed(walk(*action.parts), version_rule, path)
        if FALSE in self.model.fold_nodes(action.guards, truths):
            return True
        unchanged = {value} if version_rule and version_rule.versions not in variables_written else set[int]()
        news = [u.value for u in action.updates if u.variable == self.phase and u.path == path]
        if not news:
            return False
        (written_phase,) = self.model.fold_nodes(news, truths)
        return self._outcomes(written_phase, key, value) <= closed | unchanged

    def _asks_phase(self, node: Node, key: Node) -> bool:
        return _asks(node, key) and cell(node.args[0]) == self.phase

    def _outcomes(self, expression: Node, key: Node, value: int) -> set[int]:
        """The phases that an expression may stand for."""
        if expression.op == "when":
            return self._outcomes(expression.args[1], key, value) | self._outcomes(expression.args[2], key, value)
        if expression.op == "literal":
            return {cast("int", expression.attr)}
        if cell(expression) == self.phase and expression.args[1] is key:
            return {value}
        return {*self.values, *self.reader_phases}
