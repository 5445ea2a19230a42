"""The guards and updates of the model that a difference is about, as text for the report of `insync conform`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from isr_check.reference import Evaluator, Parameters
from isr_lang import Definition, FoldedAction, Instance, Node, show, text, walk
from isr_lang.declare import summary
from isr_lang.nodes import literal
from isr_lang.types import BoolType, Type
from isr_trace.reasons import Explainer, substitute

LONG = 160
"""Characters after which an expression is cut."""
MOST = 3
"""How many updates are reported for one step."""


class ModelRules:
    """The guards and updates of one instance of the model."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._evaluator = Evaluator(instance)
        self._actions = {a.name: a for a in instance.actions}

    def summary(self, name: str) -> str:
        """The first sentence of the action's documentation."""
        return summary(self._actions[name].action.doc) if name in self._actions else "no action of this model"

    def false_guard(self, name: str, parameters: Parameters, state: tuple[object, ...]) -> list[str]:
        """Why the model forbids the step in this state: the first guard that is false, reduced to what makes it
        false."""
        action = self._actions.get(name)
        if action is None:
            return ["no action of this model, with these settings"]
        lines: list[str] = []
        for condition in self._guards(action, parameters):
            if not self._evaluator.evaluate(condition, state, None):
                lines += _reason_lines(Explainer(self._evaluator, state, None).why(condition, holds=False).leaves())
                break
        return lines

    def outcome(self, name: str, parameters: Parameters, state: tuple[object, ...]) -> tuple[object, ...]:
        """The state to which the updates of an action lead, whether its guards hold or not."""
        return self._evaluator.outcome(self._actions[name], parameters, state)

    def guards(self, name: str, parameters: Parameters) -> list[str]:
        """All guards of the step."""
        return [_cut(text(condition)) for condition in self._guards(self._actions[name], parameters)]

    def updates(self, name: str, variables: Iterable[str]) -> list[str]:
        """The updates that the action makes of these variables, after the definitions that those updates use."""
        action, variable_names = self._actions[name], set(variables)
        lines: list[str] = []
        definitions: dict[Definition, None] = {}
        for update in action.updates:
            if update.variable in variable_names:
                keys = "".join(f"[{text(key)}]" for key in update.path)
                lines.append(_cut(f"new.{update.variable}{keys} == {text(update.value)}"))
                self._definitions(update.value, definitions)
        untouched = variable_names - {u.variable for u in action.updates}
        lines += [f"{name} leaves {variable} as it is" for variable in sorted(untouched)]
        return [f"{d.name}: {summary(d.doc)}" for d in definitions if d.doc and d.name != "log_end"] + lines[:MOST]

    def _definitions(self, node: Node, definitions: dict[Definition, None]) -> None:
        for part in walk(node):
            if part.op == "call":
                definition, _ = cast("tuple[Definition, bool]", part.attr)
                definitions.setdefault(definition)

    def _guards(self, action: FoldedAction, parameters: Parameters) -> Iterator[Node]:
        values: dict[object, Node] = {}
        for (name, type), value in zip(action.parameters, parameters, strict=True):
            values[name] = literal(bool(value) if isinstance(type, BoolType) else value, type)
        for guard in action.guards:
            yield substitute(guard.condition, values)


def _reason_lines(leaves: Iterable[object]) -> list[str]:
    from isr_trace.reasons import Reason

    lines: list[str] = []
    for leaf in leaves:
        assert isinstance(leaf, Reason)
        values = ", ".join(f"{name} is {value}" for name, value in leaf.values)
        lines.append(_cut(leaf.text) + (f"   ({values})" if values else ""))
    return lines


def _cut(json_text: str) -> str:
    return json_text if len(json_text) <= LONG else f"{json_text[: LONG - 3]}..."


def step_text(instance: Instance, action: str, parameters: tuple[object, ...]) -> str:
    """`leader_appends(leader=r1)`."""
    types = next((a.parameters for a in instance.actions if a.name == action), ())
    if len(types) != len(parameters):
        return f"{action}({', '.join(map(str, parameters))})"
    return f"{action}({parameters_text(types, parameters)})"


def parameters_text(types: Iterable[tuple[str, Type]], parameters: Iterable[object]) -> str:
    """`leader=r1, follower=r2`."""
    return ", ".join(f"{name}={show(value, type)}" for (name, type), value in zip(types, parameters, strict=True))
