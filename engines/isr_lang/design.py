"""A design: a state, an initial condition, actions and properties under one name, and how it differs from
the design it was made from."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from functools import cache

import attrs

from isr_lang.declare import Action, Constant, Definition, Property, Struct, Value, Variable
from isr_lang.errors import ModelError
from isr_lang.expr import nearest
from isr_lang.nodes import Node, walk
from isr_lang.override import DefinitionFunction, Override, definition_of
from isr_lang.scalars import Bool
from isr_lang.types import COUNT, MapType, MaybeType, Scalar, SeqType, SetType, Type


@attrs.frozen(eq=False)
class Assumption:
    """A condition over the constants without which a design means nothing; `sentence` is the error if it is false."""

    condition: Node
    sentence: str


def assume(condition: Bool, otherwise: str) -> Assumption:
    """An assumption, with the error if it is false: `assume(MIN <= SIZE, otherwise="the minimum is above it")`."""
    if any(n.op in ("variable", "parameter", "call") for n in walk(condition.node)):
        raise ModelError("an assumption is over bounds and settings only")
    return Assumption(condition.node, otherwise)


@attrs.frozen(eq=False)
class Design:
    """A value: `replacing`, `without`, `adding`, `promising` and `with_defaults` make another, and this one stays.

    `file`: the file of a user's own design; empty for a design that comes with insync.
    """

    name: str
    summary: str
    state: type[Struct]
    initial: Action
    actions: tuple[Action, ...]
    properties: tuple[Property, ...]
    defaults: Mapping[str, Value] = attrs.field(factory=dict[str, Value])
    expected: Mapping[str, str] = attrs.field(factory=dict[str, str])
    because: str = ""
    based_on: Design | None = None
    assumptions: tuple[Assumption, ...] = ()
    overrides: tuple[Override, ...] = ()
    file: str = ""

    def __attrs_post_init__(self) -> None:
        names = [a.name for a in self.actions]
        if len(set(names)) != len(names):
            raise ModelError(f"two actions of {self.name} have one name")
        started = {u.variable for u in self.initial.updates}
        missing = [v.name for v in self.state.variables() if v.name not in started]
        if missing:
            raise ModelError(f"the initial condition leaves out {', '.join(missing)}", self.initial.where)
        conditional = {v.name for v in self.state.variables() if v.when is not None}
        for update in self.initial.updates:
            chosen = next((n.attr for n in walk(update.value) if n.op == "parameter"), None)
            if chosen is not None and update.variable in conditional:
                raise ModelError(
                    f"'{update.variable}' exists under a setting only, and without it keeps one initial value; so that "
                    f"value cannot depend on '{chosen}', a parameter of the initial condition",
                    self.initial.where,
                )

    def replacing(self, name: str, summary: str, *, because: str, **parts: Action | DefinitionFunction) -> Design:
        """The design with some actions or definitions replaced, by name; `because` is the reason in one sentence.

        A replaced action keeps its name. Whatever calls a replaced definition calls the new one. That holds for the
        actions and definitions given here, too, and for those that later calls of `replacing` or `adding` bring.
        """
        actions = {slot: part for slot, part in parts.items() if isinstance(part, Action)}
        for slot in actions:
            self.action_named(slot)
        changes = len(actions) < len(parts)
        definitions_by_name = {d.name: d for d in self.definitions()} if changes else {}
        replacements: dict[Definition, Definition] = {}
        for slot, part in parts.items():
            if not isinstance(part, Action):
                if slot not in definitions_by_name:
                    raise ModelError(
                        f"{self.name} has no definition '{slot}'{nearest(slot, list(definitions_by_name))}"
                    )
                replacements[definitions_by_name[slot]] = self._restated_definition(definition_of(part))
        override = Override(replacements)
        brought = {slot: attrs.evolve(self._restated_action(a), name=slot) for slot, a in actions.items()}
        new_actions = (brought.get(a.name, a) for a in self.actions)
        return attrs.evolve(
            self,
            name=name,
            summary=summary,
            because=because,
            expected={},
            based_on=self,
            actions=tuple(override.action(a) for a in new_actions),
            properties=tuple(override.property(p) for p in self.properties),
            overrides=(*self.overrides, override),
        )

    def restated_property(self, p: Property) -> Property:
        """A property of the design from which this one was made, restated so that it calls this one's definitions."""
        for override in self.overrides:
            p = override.property(p)
        return p

    def _restated_action(self, action: Action) -> Action:
        for override in self.overrides:
            action = override.action(action)
        return action

    def _restated_definition(self, definition: Definition) -> Definition:
        for override in self.overrides:
            definition = override.within(definition)
        return definition

    def without(self, *names: str) -> Design:
        """The design without some actions, such as a message that it does not have."""
        for name in names:
            self.action_named(name)
        return attrs.evolve(self, actions=tuple(a for a in self.actions if a.name not in names))

    def adding(self, *actions: Action) -> Design:
        """The design with more actions. Where they call a definition that it has replaced, they call the new one."""
        return attrs.evolve(self, actions=(*self.actions, *map(self._restated_action, actions)))

    def in_state(self, state: type[Struct], start: Action) -> Design:
        """The design in a state that has more variables, with their first values; so far no action changes them."""
        return attrs.evolve(
            self,
            state=state,
            initial=attrs.evolve(self.initial, updates=(*self.initial.updates, *start.updates)),
        )

    def extending(self, **more: Action) -> Design:
        """The design where some actions, by name, take the guards and updates of another, too; it has no further
        parameters."""
        for slot, extra in more.items():
            known = dict(self.action_named(slot).parameters)
            if any(known.get(name) != type for name, type in extra.parameters):
                raise ModelError(f"{extra.name} has a parameter that {slot} has not", extra.where)

        def extended_action(a: Action) -> Action:
            extra = more.get(a.name)
            if extra is None:
                return a
            extra = self._restated_action(extra)
            return attrs.evolve(a, guards=(*a.guards, *extra.guards), updates=(*a.updates, *extra.updates))

        return attrs.evolve(self, actions=tuple(map(extended_action, self.actions)))

    def promising(self, *properties: Property) -> Design:
        """The design with more promises. Where they call a definition that it has replaced, they call the new one."""
        taken = {p.name: p for p in self.properties}
        for p in properties:
            if p.name in taken:
                raise ModelError(f"{self.name} has a property '{p.name}' already; give this one another name", p.where)
            taken[p.name] = p
        return attrs.evolve(self, properties=(*self.properties, *map(self.restated_property, properties)))

    def observed(
        self, state: type[Struct], start: Action, observes: Action, properties: tuple[Property, ...]
    ) -> Design:
        """The design with history variables (Abadi and Lamport): those that `state` has beyond the design's own state.

        `start` gives their first values, and every action takes the updates of `observes`, too, which follow the state
        before the step. No guard reads them, so the behaviours stay what they are. Only `properties` are asked.
        """
        if observes.guards or observes.parameters:
            raise ModelError("what observes a design has neither guards nor parameters", observes.where)
        own = {v.name for v in self.variables}
        if touched := [u.variable for u in (*start.updates, *observes.updates) if u.variable in own]:
            raise ModelError(f"a history variable of {self.name} is not one of its own, as {touched[0]} is")
        return attrs.evolve(
            self,
            state=state,
            initial=attrs.evolve(self.initial, updates=(*self.initial.updates, *start.updates)),
            actions=tuple(attrs.evolve(a, updates=(*a.updates, *observes.updates)) for a in self.actions),
            properties=tuple(map(self.restated_property, properties)),
            expected={},
        )

    def with_defaults(self, **defaults: Value) -> Design:
        return attrs.evolve(self, defaults={**self.defaults, **defaults})

    def failing(self, reason: str, *properties: Property) -> Design:
        """The design with a note that these properties are known to fail at the defaults, and why, in a sentence."""
        return attrs.evolve(self, expected={**self.expected, **dict.fromkeys((p.name for p in properties), reason)})

    def action_named(self, name: str) -> Action:
        found = next((a for a in self.actions if a.name == name), None)
        if found is None:
            raise ModelError(f"{self.name} has no action '{name}'{nearest(name, [a.name for a in self.actions])}")
        return found

    def with_fairness(self, *, unfair: Collection[str] = (), strong: Collection[str] = ()) -> Design:
        """The design with other fairness in its liveness properties: none for `unfair` actions, strong for `strong`."""

        def property_with_fairness(p: Property) -> Property:
            if p.kind != "eventually":
                return p
            weakly = tuple(a for a in p.fair if a not in unfair and a not in strong)
            strongly = dict.fromkeys((*(a for a in p.strongly_fair if a not in unfair), *strong))
            return attrs.evolve(p, fair=weakly, strongly_fair=tuple(strongly))

        for name in (*unfair, *strong):
            self.action_named(name)
        return attrs.evolve(self, properties=tuple(map(property_with_fairness, self.properties)))

    def property_named(self, name: str) -> Property:
        found = next((p for p in self.properties if p.name == name), None)
        if found is None:
            raise ModelError(f"{self.name} has no property '{name}'{nearest(name, [p.name for p in self.properties])}")
        return found

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self.state.variables()

    def roots(self) -> list[Node]:
        """Every expression of the design, in a fixed order."""
        roots: list[Node] = []
        for a in (self.initial, *self.actions):
            roots += [g.condition for g in a.guards]
            roots += [n for u in a.updates for n in (*u.path, u.value)]
        for p in self.properties:
            roots += [n for n in (p.condition, p.when, p.trigger) if n is not None]
        roots += [v.when for v in self.variables if v.when is not None]
        return roots + [a.condition for a in self.assumptions]

    def definitions(self) -> list[Definition]:
        """Every definition used, those used by others first."""
        return list(_definitions(self))

    def constants(self) -> list[Constant]:
        """Every bound, switch and setting, in the order of first use (types of the variables first)."""
        return list(_constants(self))

    def types(self) -> list[Scalar]:
        """Every scalar type: those of variables in order of declaration, of parameters, of expressions."""
        return list(_types(self))

    def model_hash(self) -> str:
        """A hash of all that the design means: 16 hexadecimal digits, stable across machines and versions."""
        return _model_hash(self)


# What takes a walk through the whole graph, once per design


@cache
def _definitions(design: Design) -> tuple[Definition, ...]:
    definitions: dict[Definition, None] = {}

    def visit(*nodes: Node) -> None:
        for n in walk(*nodes):
            if n.op == "call" and n.attr[0] not in definitions:
                visit(n.attr[0].body)
                definitions.setdefault(n.attr[0])

    visit(*design.roots())
    return tuple(definitions)


@cache
def _constants(design: Design) -> tuple[Constant, ...]:
    constants: dict[Constant, None] = {}

    bounds = [node for type in design.types() for node in (getattr(type, "size", None), getattr(type, "high", None))]
    sizes = [node for node in bounds if isinstance(node, Node)]
    for n in walk(*sizes, *design.roots(), *(d.body for d in design.definitions())):
        if n.op == "constant":
            constants.setdefault(n.attr)
    return tuple(constants)


@cache
def _types(design: Design) -> tuple[Scalar, ...]:
    scalar_types: dict[Scalar, None] = {}

    def visit(type: Type) -> None:
        match type:
            case MaybeType() | SetType():
                visit(type.of)
            case MapType():
                visit(type.key)
                visit(type.value)
            case SeqType():
                visit(type.index)
                visit(type.of)
            case _ if type != COUNT:
                scalar_types.setdefault(type)
            case _:
                pass

    for v in design.variables:
        visit(v.type)
    for a in (design.initial, *design.actions):
        for _, type in a.parameters:
            visit(type)
    for node in walk(*design.roots(), *(d.body for d in design.definitions())):
        visit(node.type)
    return tuple(scalar_types)


@cache
def _model_hash(design: Design) -> str:
    from isr_lang.printing import design_text

    return hashlib.sha256(design_text(design).encode()).hexdigest()[:16]
