"""Refinement: a promise about an abstract state, kept by a concrete one through a map."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from typing import TypeVar, cast

import attrs

from isr_lang.declare import Action, Definition, Property
from isr_lang.design import Design
from isr_lang.errors import ModelError
from isr_lang.expr import Expr
from isr_lang.nodes import Binder, Node, after, apply, literal
from isr_lang.quantify import rename_apart
from isr_lang.scalars import Number
from isr_lang.state import Struct
from isr_lang.types import BOOL, MapType, MaybeType, NumberType, Scalar, SeqType, SetType, Type

S = TypeVar("S", bound=Struct)


def refines(
    name: str,
    step: Property,
    abstract: type[Struct],
    state: type[S],
    mapping: Mapping[str, Callable[[S], Expr]],
) -> Property:
    """The concrete step, seen through the map, is a step of the abstract specification.

    `step` is the abstract next-state relation, stuttering included (kind 'step'); `mapping` gives the value of
    each abstract variable in a concrete state. The result is a step property of the concrete state.
    """
    reading = _reading_through(abstract, state, mapping)
    return attrs.evolve(step, name=name, condition=reading.node(step.condition))


def implements(
    name: str,
    doc: str,
    abstract: Design,
    state: type[S],
    mapping: Mapping[str, Callable[[S], Expr]],
    numbers: Mapping[type[Number], type[Number]] | None = None,
    *,
    variables: Collection[str] = (),
) -> Property:
    """The concrete step, seen through the map, is a step of one of the abstract design's actions, or none (TLA+'s
    [Next]_vars).

    With `variables` only these are compared after the step. The others are their environment, and change as they like.

    `mapping` as for `refines`. `numbers`: of a range of the abstract design the one that the concrete state has in its
    place. Bounds of the abstract design become those of the concrete range. The initial states are not compared.
    ModelError for an action with a parameter that is a set.
    """
    types = {a.type: c.type for a, c in (numbers or {}).items()}
    reading = _reading_through(abstract.state, state, mapping, types)
    names = [v.name for v in abstract.variables if not variables or v.name in variables]
    stays = {n: reading.equal(n, reading.images[n, False]) for n in names}
    cases = [_all([*stays.values()]), *(_step_of(a, reading, stays) for a in abstract.actions)]
    condition = reduce(lambda a, b: apply("or", a, b), cases)
    rename_apart(condition, frozenset())
    return Property(name, "step", condition, doc, abstract.initial.where)


def _reading_through(
    abstract: type[Struct],
    state: type[S],
    mapping: Mapping[str, Callable[[S], Expr]],
    types: Mapping[NumberType, NumberType] | None = None,
) -> Reading:
    names = {v.name for v in abstract.variables()}
    if names != set(mapping):
        raise ModelError(
            f"the map is of {', '.join(sorted(mapping))}, the abstract state has {', '.join(sorted(names))}"
        )
    old, new = state(), state(primed=True)
    images = {(n, p): mapping[n](new if p else old).node for n in names for p in (False, True)}
    return Reading(images, types)


def _all(conditions: Sequence[Node]) -> Node:
    return reduce(lambda a, b: apply("and", a, b), conditions, literal(True, BOOL))


def _step_of(action: Action, reading: Reading, stays: Mapping[str, Node]) -> Node:
    """Some choice of the action's parameters makes this step."""
    binders = {name: Binder(reading.type(type), name) for name, type in action.parameters}
    within = reading.with_parameters({n: Node("bound", (), b, b.type) for n, b in binders.items()})
    updates = {u.variable: u for u in action.updates}
    guards = [within.node(g.condition) for g in action.guards]
    changes: list[Node] = []
    for name, unchanged in stays.items():
        if name not in updates:
            changes.append(unchanged)
            continue
        u = updates[name]
        changes.append(
            reading.equal(name, put(reading.images[name, False], [*map(within.node, u.path)], within.node(u.value)))
        )
    node = _all([*guards, *changes])
    for name, binder in reversed(binders.items()):
        if not isinstance(binder.type, Scalar):
            raise ModelError(f"'{name}' of {action.name} is a set, and cannot be looked for", action.where)
        node = apply("exists", Node("every", (), None, SetType(binder.type)), node, attr=binder)
    return node


def put(value: Node, path: Sequence[Node], part: Node) -> Node:
    """The value with another part at this path of keys."""
    if not path:
        return part
    key, *rest = path
    return apply("put", value, key, put(apply("get", value, key), rest, part))


class Reading:
    """Reads expressions over other values than the variables: each variable has an image, given for both states.

    Calls are written out. `parameters`: what stands for the parameters of an action.
    """

    def __init__(
        self,
        images: Mapping[tuple[str, bool], Node],
        types: Mapping[NumberType, NumberType] | None = None,
        parameters: Mapping[str, Node] | None = None,
    ) -> None:
        self.images, self.types, self.parameters = images, types or {}, parameters or {}
        bounds = {old.high: new.high for old, new in self.types.items()}
        self._bounds = {old: new for old, new in bounds.items() if old is not None and new is not None}
        self._nodes: dict[Node, Node] = {}
        self._binders: dict[Binder, Binder] = {}

    def with_parameters(self, parameters: Mapping[str, Node]) -> Reading:
        return Reading(self.images, self.types, parameters)

    def equal(self, name: str, value: Node) -> Node:
        """The variable has this value after the step."""
        return apply("equal", self.images[name, True], value)

    def type(self, type: Type) -> Type:
        """The type that stands for this one."""
        match type:
            case NumberType():
                return self.types.get(type, type)
            case MaybeType() | SetType():
                return attrs.evolve(type, of=cast("Scalar", self.type(type.of)))
            case MapType():
                return MapType(cast("Scalar", self.type(type.key)), self.type(type.value))
            case SeqType():
                return SeqType(cast("NumberType", self.type(type.index)), cast("Scalar", self.type(type.of)))
            case _:
                return type

    def node(self, node: Node) -> Node:
        if node not in self._nodes:
            self._nodes[node] = self._read(node)
        return self._nodes[node]

    def _read(self, node: Node) -> Node:
        if node.op == "variable":
            return self.images.get(node.attr, node)
        if node.op == "parameter":
            return self.parameters.get(node.attr, node)
        if node in self._bounds:
            return self._bounds[node]
        args = tuple(map(self.node, node.args))
        if node.op == "call":
            definition: Definition = node.attr[0]
            body = after(definition.body) if node.attr[1] else definition.body
            names = (name for name, _ in definition.parameters)
            return self.with_parameters(dict(zip(names, args, strict=True))).node(body)
        attr: object = self._binder(node.attr) if isinstance(node.attr, Binder) else node.attr
        return Node(node.op, args, attr, self.type(node.type))

    def _binder(self, binder: Binder) -> Binder:
        """A binder of its own for each reading, so that no definition hides a variable of one in which it is called."""
        if binder not in self._binders:
            self._binders[binder] = Binder(cast("Scalar", self.type(binder.type)), binder.name)
        return self._binders[binder]
