"""Which rule of the model says so: for a step that is not alike, in the model's own words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from isr_check.reference import Evaluator, Parameters
from isr_lang import Definition, FoldedAction, Instance, Node, show, text, walk
from isr_lang.declare import summary
from isr_lang.nodes import literal
from isr_lang.types import BoolType
from isr_trace.reasons import Explainer, substitute

LONG = 160
MOST = 3
"""Expressions that are told of one step."""


class Rules:
    """The guards and updates of an instance, evaluated where it is asked for."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._evaluator = Evaluator(instance)
        self._actions = {a.name: a for a in instance.actions}

    def action(self, name: str) -> str:
        """What the action is, in one sentence."""
        return summary(self._actions[name].action.doc) if name in self._actions else "no action of this model"

    def forbid(self, name: str, parameters: Parameters, state: tuple[object, ...]) -> list[str]:
        """The guards that are false, the first one first, each with what decides it."""
        action = self._actions.get(name)
        if action is None:
            return ["no action of this model, with these settings"]
        found: list[str] = []
        for condition in self._guards(action, parameters):
            if not self._evaluator.evaluate(condition, state, None):
                found += _told(Explainer(self._evaluator, state, None).why(condition, holds=False).leaves())
                break
        return found

    def allow(self, name: str, parameters: Parameters) -> list[str]:
        """The guards, all of which hold."""
        return [_cut(text(condition)) for condition in self._guards(self._actions[name], parameters)]

    def make(self, name: str, variables: Iterable[str]) -> list[str]:
        """What the action says of these variables, and the definitions that it uses for that."""
        action, wanted = self._actions[name], set(variables)
        found: list[str] = []
        used: dict[Definition, None] = {}
        for update in action.updates:
            if update.variable in wanted:
                keys = "".join(f"[{text(key)}]" for key in update.path)
                found.append(_cut(f"new.{update.variable}{keys} == {text(update.value)}"))
                self._definitions(update.value, used)
        untouched = wanted - {u.variable for u in action.updates}
        found += [f"{name} leaves {variable} as it is" for variable in sorted(untouched)]
        return [f"{d.name}: {summary(d.doc)}" for d in used if d.doc and d.name != "log_end"] + found[:MOST]

    def _definitions(self, node: Node, used: dict[Definition, None]) -> None:
        for part in walk(node):
            if part.op == "call":
                definition, _ = cast("tuple[Definition, bool]", part.attr)
                used.setdefault(definition)

    def _guards(self, action: FoldedAction, parameters: Parameters) -> Iterator[Node]:
        values: dict[object, Node] = {}
        for (name, type), value in zip(action.parameters, parameters, strict=True):
            values[name] = literal(bool(value) if isinstance(type, BoolType) else value, type)
        for guard in action.guards:
            yield substitute(guard.condition, values)


def _told(leaves: Iterable[object]) -> list[str]:
    from isr_trace.reasons import Reason

    found: list[str] = []
    for leaf in leaves:
        assert isinstance(leaf, Reason)
        values = ", ".join(f"{name} is {value}" for name, value in leaf.values)
        found.append(_cut(leaf.text) + (f"   ({values})" if values else ""))
    return found


def _cut(written: str) -> str:
    return written if len(written) <= LONG else f"{written[: LONG - 3]}..."


def shown(instance: Instance, action: str, parameters: Parameters) -> str:
    """`leader_appends(leader=r1)`."""
    types = next((a.parameters for a in instance.actions if a.name == action), ())
    if len(types) != len(parameters):
        return f"{action}({', '.join(map(str, parameters))})"
    given = (f"{name}={show(value, type)}" for (name, type), value in zip(types, parameters, strict=True))
    return f"{action}({', '.join(given)})"
