"""The model as JavaScript, so that a reader of a page can go on from any state by any step that the model allows there.

An instance becomes one expression that evaluates to its actions and promises, a function each, made from the table
`MEANING` with one JavaScript expression per operator. What it calls is in `script/model.js`. A state is an array with
the value of each variable (representations: isr_lang.types). The tests run it beside the reference evaluator.
"""

from __future__ import annotations

import json
from typing import cast

from isr_lang import Binder, Definition, FoldedAction, Instance, Node, Property
from isr_lang.types import (
    BoolType,
    ChoiceType,
    MapType,
    MaybeType,
    NumberType,
    Scalar,
    SeqType,
    SetType,
    SortType,
    Type,
)

WIDEST = 31
"""Members of a set: JavaScript computes with 32 bits."""

MEANING: dict[str, str] = {
    "literal": "{value}",
    "constant": "{value}",
    "variable": "{state}[{index}]",
    "parameter": "{name}",
    "bound": "{name}",
    "call": "{function}({state}{args})",
    "not": "!{0}",
    "and": "({0} && {1})",
    "or": "({0} || {1})",
    "implies": "(!{0} || {1})",
    "when": "({0} ? {1} : {2})",
    "equal": "equal({0}, {1})",
    "less": "({0} < {1})",
    "at_most": "({0} <= {1})",
    "plus": "({0} + {1})",
    "minus": "({0} - {1})",
    "some": "some({0} - {low})",
    "or_else": "orElse({0}, {1}, {low})",
    "has": "has({0}, {1} - {low})",
    "with": "({0} | bit({1} - {low}, {size}))",
    "without": "({0} & ~bit({1} - {low}, {size}))",
    "union": "({0} | {1})",
    "intersection": "({0} & {1})",
    "difference": "({0} & ~{1})",
    "subset": "(({0} & ~{1}) === 0)",
    "size": "members({0}, 0).length",
    "get": "get({0}, {1} - {low}, {first})",
    "put": "put({0}, {1} - {low}, {2})",
    "length": "{0}.length",
    "at": "get({0}, {1}, {first})",
    "append": "[...{0}, {1}]",
    "take": "{0}.slice(0, Math.max(0, {1}))",
    "prefix": "begins({1}, {0})",
    "forall": "{range}.every(({x}) => {1})",
    "exists": "{range}.some(({x}) => {1})",
    "count": "{range}.filter(({x}) => {1}).length",
    "smallest": "least({range}.map(({x}) => {1}), {2})",
    "largest": "most({range}.map(({x}) => {1}), {2})",
    "select": "{range}.reduce((set, {x}) => ({1} ? set | (1 << ({x} - {low})) : set), 0)",
    "build": "{range}.map(({x}) => {1})",
    "every": "{full}",
    "below": "((1 << Math.min({size}, Math.max(0, {0} - {low}))) - 1)",
}

QUANTIFIERS = ("forall", "exists", "count", "smallest", "largest", "select", "build")


def model_script(instance: Instance) -> str:
    """The expression; empty for a model with wider sets than JavaScript computes with."""
    if any(instance.positions(of) > WIDEST for v in instance.variables for of in _sets(v.type)):
        return ""
    writer = _Writer(instance)
    actions = [writer.action(a) for a in instance.actions]
    promises = [writer.promise(p) for p in instance.properties if p.kind in ("always", "step")]
    variables = ", ".join(
        f"[{json.dumps(v.name)}, {json.dumps(_type_description(v.type, instance))}]" for v in instance.variables
    )
    return (
        "(() => {\n"
        + "".join(writer.lines)
        + f"return {{\n variables: [{variables}],\n actions: [\n{''.join(actions)} ],\n"
        + f" promises: [\n{''.join(promises)} ],\n}};\n}})()"
    )


def _sets(type: Type) -> list[Scalar]:
    match type:
        case SetType():
            return [type.of]
        case MapType():
            return _sets(type.value)
        case _:
            return []


def _type_description(type: Type, instance: Instance) -> dict[str, object]:
    """What `script/model.js` needs to write a value as an ITF expression."""
    match type:
        case BoolType():
            return {"kind": "bool"}
        case NumberType():
            return {"kind": "number", "low": type.low}
        case SortType():
            return {"kind": "sort", "prefix": type.prefix}
        case ChoiceType():
            return {"kind": "choice", "members": [m.lower() for m in type.members]}
        case MaybeType() | SetType() | SeqType():
            kind = {MaybeType: "maybe", SetType: "set", SeqType: "seq"}[type.__class__]
            return {"kind": kind, "of": _type_description(type.of, instance)}
        case MapType():
            return {
                "kind": "map",
                "key": _type_description(type.key, instance),
                "of": _type_description(type.value, instance),
            }


class _Writer:
    """Expressions of one instance; definitions become functions, in `lines`."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.index = {v.name: i for i, v in enumerate(instance.variables)}
        self.functions: dict[Definition, str] = {}
        self.lines: list[str] = []
        self.bound: dict[Binder, str] = {}

    def expression(self, node: Node) -> str:
        op, fields = node.op, dict[str, object]()
        if op in ("literal", "constant"):
            fields["value"] = json.dumps(node.attr)
        elif op == "variable":
            fields.update(state="T" if node.attr[1] else "S", index=self.index[node.attr[0]])
        elif op == "parameter":
            fields["name"] = f"p_{node.attr}"
        elif op == "bound":
            fields["name"] = self.bound[node.attr]
        elif op == "call":
            args = "".join(f", {self.expression(a)}" for a in node.args)
            fields.update(function=self.definition(node.attr[0]), state="T" if node.attr[1] else "S", args=args)
            return MEANING[op].format(**fields)
        elif op in QUANTIFIERS:
            fields["x"] = self.bound[node.attr] = f"{node.attr.name}_{len(self.bound)}"
            fields["range"] = self.range(node.args[0])
        if (counted := _position_type(node)) is not None:
            fields.update(low=self.instance.bounds(counted)[0], size=self.instance.positions(counted))
        if op in ("get", "at"):
            fields["first"] = json.dumps(self.instance.first(node.type))
        if op == "every":
            fields["full"] = (1 << self.instance.positions(cast("SetType", node.type).of)) - 1
        return MEANING[op].format(*(self.expression(a) for a in node.args), **fields)

    def range(self, domain: Node) -> str:
        low, high = self.instance.bounds(cast("SetType", domain.type).of)
        if domain.op == "every":
            return json.dumps(list(range(low, high + 1)))
        if domain.op == "below":
            return f"upTo({low}, Math.min({high + 1}, {self.expression(domain.args[0])}))"
        return f"members({self.expression(domain)}, {low})"

    def definition(self, definition: Definition) -> str:
        if definition not in self.functions:
            self.functions[definition] = f"{definition.name}_{len(self.functions)}"
            body = self.expression(self.instance.body(definition))
            params = "".join(f", p_{name}" for name, _ in definition.parameters)
            self.lines.append(f"const {self.functions[definition]} = (S{params}) => {body};\n")
        return self.functions[definition]

    def action(self, action: FoldedAction) -> str:
        """Its name, its parameters with their types, and the function from a state to all its steps."""
        loops = "".join(f"for (const p_{name} of {self.values(type)}) " for name, type in action.parameters)
        guards = " && ".join(self.expression(g.condition) for g in action.guards) or "true"
        updates = {u.variable: u for u in action.updates}
        parts: list[str] = []
        for v in self.instance.variables:
            old, update = f"S[{self.index[v.name]}]", updates.get(v.name)
            if update is not None:
                old = self.put(old, v.type, update.path, self.expression(update.value))
            parts.append(old)
        given = ", ".join(f"p_{name}" for name, _ in action.parameters)
        types = {name: _type_description(type, self.instance) for name, type in action.parameters}
        step = f"if ({guards}) steps.push([[{given}], [{', '.join(parts)}]]);"
        return (
            f"  [{json.dumps(action.name)}, {json.dumps(list(types.items()))},"
            f" (S) => {{ const steps = []; {loops}{step} return steps; }}],\n"
        )

    def promise(self, p: Property) -> str:
        return f"  [{json.dumps(p.name)}, {json.dumps(p.kind)}, (S, T) => {self.expression(p.condition)}],\n"

    def put(self, old: str, type: Type, path: tuple[Node, ...], value: str) -> str:
        if not path:
            return value
        assert isinstance(type, MapType)
        position = f"{self.expression(path[0])} - {self.instance.bounds(type.key)[0]}"
        was = f"get({old}, {position}, {json.dumps(self.instance.first(type.value))})"
        return f"put({old}, {position}, {self.put(was, type.value, path[1:], value)})"

    def values(self, type: Type) -> str:
        if isinstance(type, SetType):
            return f"upTo(0, {1 << self.instance.positions(type.of)})"
        low, high = self.instance.bounds(cast("Scalar", type))
        return json.dumps(list(range(low, high + 1)))


def _position_type(node: Node) -> Scalar | None:
    """The scalar type by whose positions an operator counts."""
    if node.op == "some":
        return cast("Scalar", node.args[0].type)
    if node.op == "or_else":
        return cast("MaybeType", node.args[0].type).of
    if node.op in ("has", "with", "without", "select", "below"):
        of = node.type if node.op == "below" else node.args[0].type
        return cast("SetType", of).of
    if node.op in ("get", "put"):
        return cast("MapType", node.args[0].type).key
    return None
