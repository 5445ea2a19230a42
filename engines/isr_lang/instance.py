"""A design with its constants fixed: sizes known, settings folded away.

What the settings decide is decided here, once, for every engine: a guard that they make true is dropped, an
action that they make impossible is off, a variable that does not exist under them keeps its initial value
and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy
from typing import Final, cast

import attrs

from isr_lang.declare import Action, Constant, Definition, Property, Update, Value
from isr_lang.design import Design
from isr_lang.errors import ModelError
from isr_lang.expr import nearest
from isr_lang.left_out import storing_in_range
from isr_lang.nodes import Node, literal, walk
from isr_lang.printing import text
from isr_lang.types import (
    BOOL,
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

UNBOUNDED: Final = 1 << 30
"""A value for a bound or a fault budget that no step reaches, because no counter of a state gets so far."""


class SettingError(ValueError):
    """A constant that does not exist, or a value that it cannot have: one sentence for the command line."""


@attrs.frozen(eq=False)
class FoldedGuard:
    """A guard that the settings do not decide. `index` is its place among the guards as written, `name` its text."""

    index: int
    name: str
    condition: Node


@attrs.frozen(eq=False)
class FoldedAction:
    """An action that the settings leave possible."""

    action: Action
    guards: tuple[FoldedGuard, ...]
    updates: tuple[Update, ...]

    @property
    def name(self) -> str:
        return self.action.name

    @property
    def parameters(self) -> tuple[tuple[str, Type], ...]:
        return self.action.parameters


class Instance:
    """design + constants; `actions`, `initial`, `properties` and `body` are folded.

    `unbounded` gives numeric constants values above the range that the design declares for explorations, such as
    UNBOUNDED; they must still not be below it. Such an instance is for taking single steps from given states. Nothing
    may enumerate its states: an exploration would not end, and the states may not fit into packed words.
    """

    def __init__(
        self,
        design: Design,
        constants: Mapping[str, Value] | None = None,
        *,
        unbounded: Mapping[str, int] | None = None,
    ) -> None:
        self.design = design
        self.constants = check_constants(design, constants or {}, unbounded or {})
        self._folded: dict[Node, Node] = {}
        self._folded_within: dict[Node, Node] = {}
        self._in_definition = False
        self._bodies: dict[Definition, Node] = {}
        self._off: dict[str, Node] = {}
        self._check_assumptions()
        design = storing_in_range(design)
        start, still = {u.variable: u.value for u in design.initial.updates}, set[str]()
        for v in design.variables:
            if v.when is not None and self.fold(v.when).attr is False:
                value = self.fold(start[v.name])
                if value.op != "literal" or self.contains(v.type, value.attr):
                    self._off[v.name] = value
                else:
                    still.add(v.name)  # it is there, so that type-ok can say that it is out of range
        self._folded.clear()  # what was folded before the absent variables were known
        self._folded_within.clear()
        self._bodies.clear()
        self.variables = tuple(v for v in design.variables if v.name not in self._off)
        self.initial = cast("FoldedAction", self._action(design.initial, frozenset()))
        folded = [(a.name, self._action(a, still)) for a in design.actions]
        self.actions = tuple(a for _, a in folded if a is not None)
        self.off_actions = tuple(name for name, a in folded if a is None)
        self.properties = tuple(self._property(p) for p in design.properties if self._is_promised(p))
        self.off_properties = tuple(p.name for p in design.properties if not self._is_promised(p))

    def promising(self, *properties: Property) -> Instance:
        """The same question with more properties, each restated for the design.

        What is folded already is shared, not folded again: actions, variables and properties are the same objects, so
        what an engine finds of one instance is found of the other.
        """
        wider, old = copy(self), self.design
        wider.design = attrs.evolve(old, properties=(*old.properties, *map(old.restated_property, properties)))
        wider.constants = {**check_constants(wider.design, {}), **self.constants}
        more = wider.design.properties[len(old.properties) :]
        wider.properties += tuple(wider._property(p) for p in more if wider._is_promised(p))
        wider.off_properties += tuple(p.name for p in more if not wider._is_promised(p))
        return wider

    def _check_assumptions(self) -> None:
        for a in self.design.assumptions:
            condition = self.fold(a.condition)
            if condition.op != "literal":
                raise ModelError(f"the constants do not decide the assumption {text(a.condition)}")
            if not condition.attr:
                named = (cast("Constant", n.attr) for n in walk(a.condition) if n.op == "constant")
                given = ", ".join(f"{c.option} {_value_text(self.constants[c.name])}" for c in named)
                raise SettingError(f"{a.sentence} ({given})")

    # sizes

    def bounds(self, type: Scalar) -> tuple[int, int]:
        """The lowest and highest value of a scalar type."""
        match type:
            case BoolType():
                return 0, 1
            case NumberType():
                if type.high is None:
                    raise ModelError(f"{type} has no bounds; it is not the type of a variable")
                return type.low, cast("int", self.fold(type.high).attr)
            case SortType():
                return 0, cast("int", self.fold(type.size).attr) - 1
            case ChoiceType():
                return 0, len(type.members) - 1

    def positions(self, type: Scalar) -> int:
        """How many values a scalar type has."""
        low, high = self.bounds(type)
        return max(0, high - low + 1)

    def first(self, type: Type) -> object:
        """The first value of a type, which is the answer of operators out of range: the lowest, none, or empty."""
        match type:
            case MaybeType() | SetType():
                return 0
            case SeqType():
                return ()
            case MapType():
                return (self.first(type.value),) * self.positions(type.key)
            case BoolType():
                return False
            case _:
                return self.bounds(type)[0]

    def contains(self, type: Type, value: object) -> bool:
        """Whether a value (isr_lang.types) is in the range of the type: what `type-ok` asks of each variable."""
        match type:
            case NumberType() | SortType():
                low, high = self.bounds(type)
                return low <= cast("int", value) <= high
            case MaybeType():
                return 0 <= cast("int", value) <= self.positions(type.of)
            case MapType():
                return all(self.contains(type.value, v) for v in cast("tuple[object, ...]", value))
            case SeqType():
                items = cast("tuple[object, ...]", value)
                return len(items) <= self.bounds(type.index)[1] and all(self.contains(type.of, v) for v in items)
            case BoolType() | SetType() | ChoiceType():
                return True

    def body(self, definition: Definition) -> Node:
        """The folded body of a definition.

        It is folded apart from actions, because an argument may be out of range, as in f(x + 1).
        """
        if definition not in self._bodies:
            outside = self._folded, self._in_definition
            self._folded, self._in_definition = self._folded_within, True
            self._bodies[definition] = self.fold(definition.body)
            self._folded, self._in_definition = outside
        return self._bodies[definition]

    # folding

    def fold(self, node: Node) -> Node:
        """The node with constants replaced by their values, and simplified as far as these decide."""
        done = self._folded.get(node)
        if done is None:
            done = self._folded[node] = self._fold(node)
        return done

    def _fold(self, node: Node) -> Node:
        if node.op == "constant":
            return self._constant(node)
        if node.op == "variable":
            if node.attr[0] in self._off:
                return self._off[node.attr[0]]
            return self._single(node)
        args = tuple(self.fold(a) for a in node.args)
        rebuilt = Node(node.op, args, node.attr, node.type)
        rule = SIMPLIFY.get(node.op)
        simpler = rule(self, rebuilt) if rule else None
        return simpler if simpler is not None else self._single(rebuilt)

    def _constant(self, node: Node) -> Node:
        constant = cast("Constant", node.attr)
        value = self.constants[constant.name]
        if constant.choice is not None:
            return literal(constant.names.index(cast("str", value)), node.type)
        return literal(value, node.type)

    def _single(self, node: Node) -> Node:
        """The only value of the node's type, if it has one value and the node is in range; else the node."""
        if isinstance(node.type, NumberType | SortType) and self.is_in_range(node, in_definition=self._in_definition):
            low, high = self.bounds(node.type)
            if low == high:
                return literal(low, node.type)
        return node

    def is_in_range(self, node: Node, *, in_definition: bool) -> bool:
        """Whether a value is in the range of its type: stored and chosen numbers are, sums need not be.

        Stored numbers are in the states in which anything is asked but `type-ok`: no engine asks more of a state that
        violates it, nor goes on from there (isr_check.engine). So what is folded here is so where it counts.
        """
        if isinstance(node.type, SortType | ChoiceType):
            return True
        if node.op in ("get", "at", "length"):
            return self.is_in_range(node.args[0], in_definition=in_definition)
        return node.op in ("variable", "bound") or (node.op == "parameter" and not in_definition)

    def interval(self, node: Node) -> tuple[int, int] | None:
        """The least and greatest value that the node can have; None if the node alone does not say it."""
        if node.op == "literal" and isinstance(node.attr, int):
            return node.attr, node.attr
        if not isinstance(node.type, NumberType | SortType | ChoiceType):
            return None
        return self.bounds(node.type) if self.is_in_range(node, in_definition=self._in_definition) else None

    def is_within(self, node: Node, type: Scalar) -> bool:
        """Whether the node alone says that its value is in the range of the type."""
        interval, (low, high) = self.interval(node), self.bounds(type)
        return interval is not None and low <= interval[0] and interval[1] <= high

    def _update(self, update: Update) -> Update:
        return Update(update.variable, tuple(self.fold(n) for n in update.path), self.fold(update.value))

    def _action(self, action: Action, still: Collection[str]) -> FoldedAction | None:
        guards: list[FoldedGuard] = []
        for i, guard in enumerate(action.guards):
            condition = self.fold(guard.condition)
            if condition.op == "literal":
                if not condition.attr:
                    return None
                continue
            guards.append(FoldedGuard(i, text(guard.condition), condition))
        updates = tuple(self._update(u) for u in action.updates if u.variable not in {*self._off, *still})
        return FoldedAction(action, tuple(guards), updates)

    def _is_promised(self, p: Property) -> bool:
        return p.when is None or self.fold(p.when).attr is not False

    def _property(self, p: Property) -> Property:
        trigger = self.fold(p.trigger) if p.trigger is not None else None
        return attrs.evolve(p, condition=self.fold(p.condition), trigger=trigger)


def check_constants(
    design: Design, constants: Mapping[str, Value], unbounded: Mapping[str, int] | None = None
) -> dict[str, Value]:
    """The value of every constant: as given, else the design's default, else the constant's own default.

    Constants in `unbounded` have the value there; only the lower limit is checked. Raises SettingError.
    """
    constants_by_name = {c.name: c for c in design.constants()}
    wide = unbounded or {}
    for name in (*constants, *wide):
        if name not in constants_by_name:
            raise SettingError(
                f"{design.name} has no bound or setting '{name}'{nearest(name, list(constants_by_name))}"
            )
    for c in (constants_by_name[name] for name in wide):
        if c.names or wide[c.name] < c.low:
            raise SettingError(f"{c.option} cannot be {wide[c.name]}, bounded or not")
    values: dict[str, Value] = {}
    for name, c in constants_by_name.items():
        value = constants.get(name, design.defaults.get(name, c.default))
        if c.names and c.choice is None:
            value = c.names.index(value) == 1 if isinstance(value, str) and value in c.names else value
            if not isinstance(value, bool):
                raise SettingError(f"{c.option} is on or off, not {value}")
        elif c.choice is not None:
            if str(value) not in c.names:
                raise SettingError(f"{c.option} is one of {', '.join(c.names)}, not {value}")
            value = str(value)
        elif name in wide:
            value = wide[name]
        elif not isinstance(value, int) or isinstance(value, bool) or not c.low <= value <= c.high:
            raise SettingError(f"{c.option} is a whole number from {c.low} to {c.high}, not {value}")
        values[name] = value
    return values


def _value_text(value: Value) -> str:
    return ("off", "on")[value] if isinstance(value, bool) else str(value)


TRUE, FALSE = literal(True, BOOL), literal(False, BOOL)


def _truth(value: bool) -> Node:
    return TRUE if value else FALSE


def _not(_: Instance, n: Node) -> Node | None:
    (a,) = n.args
    return _truth(not a.attr) if a.op == "literal" else a.args[0] if a.op == "not" else None


def _and(_: Instance, n: Node) -> Node | None:
    a, b = n.args
    return FALSE if FALSE in (a, b) else b if a is TRUE else a if b is TRUE else None


def _or(_: Instance, n: Node) -> Node | None:
    a, b = n.args
    return TRUE if TRUE in (a, b) else b if a is FALSE else a if b is FALSE else None


def _implies(_: Instance, n: Node) -> Node | None:
    a, b = n.args
    return TRUE if a is FALSE or b is TRUE else b if a is TRUE else None


def _when(_: Instance, n: Node) -> Node | None:
    c, a, b = n.args
    return a if c is TRUE or a is b else b if c is FALSE else None


def _equal(i: Instance, n: Node) -> Node | None:
    a, b = n.args
    if a is b:
        return TRUE
    if a.op == b.op == "literal":
        return _truth(a.attr == b.attr)
    if n.args[0].type == BOOL and b.op == "literal":
        return a if b.attr else i.fold(Node("not", (a,), None, BOOL))
    return None


def _fold_order(strict: bool) -> Callable[[Instance, Node], Node | None]:
    def rule(i: Instance, n: Node) -> Node | None:
        a, b = (i.interval(x) for x in n.args)
        if a is None or b is None:
            return None
        if a[1] < b[0] or (not strict and a[1] == b[0]):
            return TRUE
        if a[0] > b[1] or (strict and a[0] == b[1]):
            return FALSE
        return None

    return rule


def _arithmetic(sign: int) -> Callable[[Instance, Node], Node | None]:
    def rule(_: Instance, n: Node) -> Node | None:
        a, b = n.args
        if a.op == b.op == "literal":
            return literal(cast("int", a.attr) + sign * cast("int", b.attr), n.type)
        return a if b.op == "literal" and b.attr == 0 and a.type == n.type else None

    return rule


def _get(i: Instance, n: Node) -> Node | None:
    m, key = n.args
    if m.op != "literal" or len(set(m.attr)) != 1:
        return None
    within = isinstance(key.type, BoolType) or i.is_within(key, cast("MapType", m.type).key)
    return literal(m.attr[0], n.type) if within or m.attr[0] == i.first(n.type) else None


def _has(_: Instance, n: Node) -> Node | None:
    return FALSE if n.args[0].op == "literal" and n.args[0].attr == 0 else None


def _build(i: Instance, n: Node) -> Node | None:
    domain, body = n.args
    if body.op == "literal" and domain.op == "every":
        return literal((body.attr,) * i.positions(cast("SetType", domain.type).of), n.type)
    return None


def _constant_body(n: Node, value: Node) -> Node | None:
    return value if n.args[1] is value else None


def _call(i: Instance, n: Node) -> Node | None:
    body = i.body(n.attr[0])
    return body if body.op == "literal" else None


Rule = Callable[[Instance, Node], Node | None]

SIMPLIFY: dict[str, Rule] = {
    "not": _not,
    "and": _and,
    "or": _or,
    "implies": _implies,
    "when": _when,
    "equal": _equal,
    "less": _fold_order(strict=True),
    "at_most": _fold_order(strict=False),
    "plus": _arithmetic(1),
    "minus": _arithmetic(-1),
    "get": _get,
    "has": _has,
    "build": _build,
    "forall": lambda i, n: _constant_body(n, TRUE),
    "exists": lambda i, n: _constant_body(n, FALSE),
    "call": _call,
}


def reads(node: Node, instance: Instance) -> set[str]:
    """The variables that a folded expression reads, itself or through the definitions that it calls."""
    variable_names: set[str] = set()
    for n in walk(node):
        if n.op == "variable":
            variable_names.add(n.attr[0])
        elif n.op == "call":
            variable_names |= reads(instance.body(n.attr[0]), instance)
    return variable_names
