"""What a model declares: constants, state variables, definitions, actions and properties.

Each declaration traces its function once, at import, into the expression graph. Nothing here knows how a
model is explored.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, get_type_hints, overload

import attrs

from isr_lang.errors import ModelError, Where
from isr_lang.nodes import Node, walk
from isr_lang.types import BOOL, COUNT, BoolType, ChoiceType, NumberType, Scalar, Type
from isr_lang.containers import type_of
from isr_lang.expr import Expr, nearest, wrap
from isr_lang.scalars import Bool, Choice, Count

P = ParamSpec("P")
T = TypeVar("T", bound=Expr)
C = TypeVar("C", bound=Choice)
Step = tuple[Bool, ...]
Value = int | bool | str


@attrs.frozen
class Constant:
    """A bound (low..high), a switch, or a setting with named values. Fixed when a run starts."""

    name: str
    default: Value
    doc: str = attrs.field(eq=False)
    low: int = attrs.field(default=0, eq=False)
    high: int = attrs.field(default=1, eq=False)
    choice: ChoiceType | None = attrs.field(default=None, eq=False)
    names: tuple[str, ...] = attrs.field(default=(), eq=False)
    budget: bool = attrs.field(default=False, eq=False)

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")


def bound(name: str, doc: str, *, default: int, low: int = 0, high: int, budget: bool = False) -> Count:
    """A whole number in low..high, chosen on the command line; a fault budget when `budget`."""
    return Count(Node("constant", (), Constant(name, default, doc, low, high, budget=budget), COUNT))


def switch(name: str, doc: str, *, default: bool) -> Bool:
    """A setting that is on or off."""
    return Bool(Node("constant", (), Constant(name, default, doc, names=("off", "on")), BOOL))


def setting(name: str, doc: str, *, values: dict[str, C], default: str) -> C:
    """A setting with named values, each a member of one Choice in declaration order."""
    first = next(iter(values.values()))
    kind = cast("ChoiceType", first.node.type)
    constant = Constant(name, default, doc, choice=kind, names=tuple(values))
    return cast("C", wrap(Node("constant", (), constant, kind)))


@attrs.frozen
class Variable:
    """A state variable. `when`: it exists only under this condition over the constants."""

    name: str
    type: Type = attrs.field(eq=False)
    doc: str = attrs.field(eq=False)
    when: Node | None = attrs.field(default=None, eq=False)
    ghost: bool = attrs.field(default=False, eq=False)


class _Declared:
    """The class attribute of a state variable; on an instance, its symbolic value."""

    def __init__(self, doc: str, condition: Bool | None, ghost: bool) -> None:
        self.doc, self.condition, self.ghost = doc, condition, ghost

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Struct | None, owner: type[Struct]) -> Any:
        if instance is None:
            return self
        return wrap(Node("variable", (), (self.name, instance.primed), owner.variable(self.name).type))

    def __set__(self, instance: Struct, value: object) -> None:
        raise ModelError(f"write new.{self.name} == ... (an update is an equation), not an assignment")


def var(doc: str, *, when: Bool | None = None, ghost: bool = False) -> Any:
    """A state variable: what it means; the setting under which it exists; whether it only records history."""
    return _Declared(doc, when, ghost)


class Struct:
    """The state of a model: `class State(Struct)` with one annotated `var(...)` per variable."""

    _variables: dict[str, Variable]

    def __init_subclass__(cls) -> None:
        hints = get_type_hints(cls)
        cls._variables = {}
        for name, declared in vars(cls).items():
            if isinstance(declared, _Declared):
                condition = declared.condition.node if declared.condition is not None else None
                cls._variables[name] = Variable(
                    name, type_of(hints[name]), declared.doc, condition, declared.ghost
                )

    def __init__(self, primed: bool = False) -> None:
        self.__dict__["primed"] = primed

    @classmethod
    def variables(cls) -> tuple[Variable, ...]:
        return tuple(cls._variables.values())

    @classmethod
    def variable(cls, name: str) -> Variable:
        return cls._variables[name]

    if not TYPE_CHECKING:  # for the type checkers a misspelt variable does not exist at all

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            raise ModelError(f"there is no variable '{name}'{nearest(name, list(self._variables))}")

        def __setattr__(self, name, value):
            if name in self._variables:
                object.__setattr__(self, name, value)
            raise ModelError(f"there is no variable '{name}'{nearest(name, list(self._variables))}")


@attrs.frozen(eq=False)
class Definition:
    """A named operator. Its docstring and name survive into exports and narration."""

    name: str
    parameters: tuple[tuple[str, Scalar], ...]
    body: Node
    doc: str
    of_state: bool
    where: Where

    def __lt__(self, other: Definition) -> bool:
        return self.name < other.name


@attrs.frozen(eq=False)
class Update:
    """`new.variable[path...] == value`."""

    variable: str
    path: tuple[Node, ...]
    value: Node


@attrs.frozen(eq=False)
class Guard:
    condition: Node
    where: Where


@attrs.frozen(eq=False)
class Action:
    """Guards in the order written, then updates; a variable without an update keeps its value."""

    name: str
    parameters: tuple[tuple[str, Type], ...]
    guards: tuple[Guard, ...]
    updates: tuple[Update, ...]
    doc: str
    where: Where
    function: str

    @property
    def summary(self) -> str:
        return summary(self.doc)


@attrs.frozen(eq=False)
class Property:
    """kind: 'always' | 'step' | 'sometimes' | 'sometimes-step' | 'eventually'.

    `when` is a condition over the constants outside of which the promise is not made. `condition` is over
    the state, or over two successive states for the step kinds. For 'eventually', `trigger` leads to it
    under weak fairness of the actions named in `fair`.
    """

    name: str
    kind: str
    condition: Node
    doc: str
    where: Where
    when: Node | None = None
    trigger: Node | None = None
    fair: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        return summary(self.doc)


def summary(doc: str) -> str:
    """The first paragraph of a docstring on one line."""
    return " ".join(doc.split("\n\n")[0].split())


def _where(function: Callable[..., object]) -> Where:
    return Where(function.__code__.co_filename, function.__code__.co_firstlineno)


def _parameters(function: Callable[..., object]) -> Iterator[tuple[str, type]]:
    hints = get_type_hints(function)
    for name in inspect.signature(function).parameters:
        if name not in hints:
            raise ModelError(f"parameter '{name}' of {function.__name__} needs a type", _where(function))
        yield name, hints[name]


def _is_state(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, Struct)


def define(function: Callable[P, T]) -> Callable[P, T]:
    """A named operator of one state and some scalars; called like a function, kept as a call."""
    formals: list[Expr | Struct] = []
    named: list[tuple[str, Scalar]] = []
    for name, hint in _parameters(function):
        if _is_state(hint):
            formals.append(hint())
        else:
            kind = type_of(hint)
            formals.append(wrap(Node("parameter", (), name, kind)))
            named.append((name, cast("Scalar", kind)))
    of_state = any(isinstance(f, Struct) for f in formals)
    if sum(isinstance(f, Struct) for f in formals) > 1:
        raise ModelError("a definition takes one state; write a plain function for a relation of two", _where(function))
    body = cast("Callable[..., Expr]", function)(*formals)
    if not isinstance(body, Expr):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(f"a definition returns one symbolic value, not {body!r}", _where(function))
    definition = Definition(
        function.__name__, tuple(named), body.node, inspect.getdoc(function) or "", of_state, _where(function)
    )

    def call(*actuals: Expr | Struct) -> Expr:
        if len(actuals) != len(formals):
            raise ModelError(f"{function.__name__} takes {len(formals)} arguments, not {len(actuals)}")
        primed = False
        args: list[Node] = []
        for formal, actual in zip(formals, actuals, strict=True):
            if isinstance(formal, Struct) or isinstance(actual, Struct):
                if type(formal) is not type(actual):
                    raise ModelError(f"{function.__name__} takes the state as its first argument")
                primed = cast("Struct", actual).primed
            elif formal.node.type != actual.node.type and actual.node.type != COUNT:
                raise ModelError(f"{function.__name__} takes a {formal.node.type}, not {actual!r}")
            else:
                args.append(actual.node)
        return wrap(Node("call", tuple(args), (definition, primed), definition.body.type))

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return cast("Callable[P, T]", call)


def primed_variable(node: Node) -> tuple[str, tuple[Node, ...]] | None:
    """(x, path) when the node is new.x or new.x[..][..], else None."""
    path: list[Node] = []
    while node.op == "get":
        path.insert(0, node.args[1])
        node = node.args[0]
    if node.op == "variable" and node.attr[1]:
        return node.attr[0], tuple(path)
    return None


def mentions_primed(node: Node) -> bool:
    return any(
        (n.op == "variable" and n.attr[1]) or (n.op == "call" and n.attr[1]) for n in walk(node)
    )


def as_update(node: Node) -> Update | None:
    """new.x[i] == e, new.x[i] (to true) or ~new.x[i] (to false)."""
    if node.op == "equal" and (target := primed_variable(node.args[0])):
        return Update(*target, node.args[1])
    flipped = node.op == "not"
    target = primed_variable(node.args[0] if flipped else node)
    return Update(*target, Node("literal", (), not flipped, BOOL)) if target else None


def action(function: Callable[..., Step]) -> Action:
    """A guarded action: a function of old, new and parameters that returns its conjuncts."""
    return _trace_action(function, (False, True))


def initial(function: Callable[..., Step]) -> Action:
    """The initial states: new.x == value for every variable; a parameter makes one state per value."""
    made = _trace_action(function, (True,))
    if any(u.path for u in made.updates) or made.guards:
        raise ModelError("the initial condition is new.x == value, once for every variable", made.where)
    return made


def _trace_action(function: Callable[..., Step], primes: tuple[bool, ...]) -> Action:
    where = _where(function)
    actuals: list[Expr | Struct] = []
    parameters: list[tuple[str, Type]] = []
    for name, hint in _parameters(function):
        if _is_state(hint):
            actuals.append(hint(primed=primes[min(len(actuals), len(primes) - 1)]))
        else:
            kind = type_of(hint)
            parameters.append((name, kind))
            actuals.append(wrap(Node("parameter", (), name, kind)))
    guards: list[Guard] = []
    updates: dict[str, Update] = {}
    conjuncts: object = function(*actuals)
    if not isinstance(conjuncts, tuple):
        raise ModelError(f"{function.__name__} returns a tuple of conjuncts", where)
    for conjunct in cast("tuple[object, ...]", conjuncts):
        if not isinstance(conjunct, Bool):
            raise ModelError(f"a conjunct of {function.__name__} is {conjunct!r}, not a condition", where)
        update = as_update(conjunct.node)
        if update is None:
            if mentions_primed(conjunct.node):
                raise ModelError("new may only stand alone on the left: new.x == e or new.x[i] == e", conjunct.site)
            guards.append(Guard(conjunct.node, conjunct.site))
            continue
        if any(mentions_primed(n) for n in (*update.path, update.value)):
            raise ModelError("an update is computed from old only", conjunct.site)
        if update.variable in updates:
            raise ModelError(f"{function.__name__} updates '{update.variable}' twice", conjunct.site)
        updates[update.variable] = update
    return Action(
        function.__name__,
        tuple(parameters),
        tuple(guards),
        tuple(updates.values()),
        inspect.getdoc(function) or "",
        where,
        function.__name__,
    )


def _property(kind: str, function: Callable[..., Bool], when: Bool | None) -> Property:
    states = [hint(primed=i == 1) for i, (_, hint) in enumerate(_parameters(function))]
    expected = 2 if kind.endswith("step") else 1
    if len(states) != expected or not all(isinstance(s, Struct) for s in states):
        raise ModelError(f"{function.__name__} takes {'old and new' if expected == 2 else 'one state'}", _where(function))
    condition = function(*states)
    name = function.__name__.replace("_", "-")
    doc = inspect.getdoc(function) or ""
    return Property(name, kind, condition.node, doc, _where(function), when.node if when is not None else None)


PropertyFunction = Callable[..., Bool]


def _decorator(kind: str) -> Callable[..., Any]:
    def decorate(function: PropertyFunction | None = None, *, when: Bool | None = None) -> Any:
        if function is not None:
            return _property(kind, function, when)
        return lambda f: _property(kind, f, when)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]

    return decorate


if TYPE_CHECKING:

    @overload
    def always(function: PropertyFunction, /) -> Property: ...
    @overload
    def always(*, when: Bool) -> Callable[[PropertyFunction], Property]: ...
    def always(*_: Any, **__: Any) -> Any:
        """An invariant of every reachable state."""

    step = sometimes = sometimes_step = always
else:
    always, step = _decorator("always"), _decorator("step")
    sometimes, sometimes_step = _decorator("sometimes"), _decorator("sometimes-step")


def leads_to(
    name: str, doc: str, trigger: Property, goal: Property, *, fair: tuple[Action, ...], when: Bool | None = None
) -> Property:
    """Whenever the trigger holds the goal holds then or later, if every fair action keeps its promise."""
    return Property(
        name,
        "eventually",
        goal.condition,
        doc,
        goal.where,
        when.node if when is not None else None,
        trigger.condition,
        tuple(a.name for a in fair),
    )


def scalar_number(type: Type) -> bool:
    return isinstance(type, NumberType | BoolType)
