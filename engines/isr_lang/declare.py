"""What a model declares beside its state and its promises: definitions and actions.

Each declaration traces its function once, at import, into the expression graph. Nothing here knows how a
model is explored.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar, cast, get_type_hints

import attrs

from isr_lang.constants import Constant, Value, bound, setting, switch
from isr_lang.containers import type_of
from isr_lang.errors import ModelError, Where, def_line
from isr_lang.expr import Expr, as_object, fits, wrap
from isr_lang.nodes import Node, walk
from isr_lang.quantify import rename_apart
from isr_lang.scalars import Bool
from isr_lang.state import Struct, Variable, var
from isr_lang.types import BOOL, COUNT, MapType, Scalar, SeqType, Type

__all__ = [
    "Action",
    "Constant",
    "Definition",
    "Guard",
    "Property",
    "Step",
    "Struct",
    "Update",
    "Value",
    "Variable",
    "action",
    "bound",
    "define",
    "initial",
    "setting",
    "switch",
    "var",
]

P = ParamSpec("P")
T = TypeVar("T", bound=Expr)
Step = tuple[Bool, ...]


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
    under weak fairness of the actions named in `fair` and strong fairness of those in `strongly_fair`, which are
    then not in `fair`. No exploration goes on for the sake of an `optional` one: it ends when all else is decided.
    """

    name: str
    kind: str
    condition: Node
    doc: str
    where: Where
    when: Node | None = None
    trigger: Node | None = None
    fair: tuple[str, ...] = ()
    strongly_fair: tuple[str, ...] = ()
    optional: bool = False

    @property
    def summary(self) -> str:
        return summary(self.doc)


def summary(doc: str) -> str:
    """The first paragraph of a docstring on one line."""
    return " ".join(doc.split("\n\n")[0].split())


def _parameters(function: Callable[..., object]) -> Iterator[tuple[str, object]]:
    hints = get_type_hints(function)
    for name in inspect.signature(function).parameters:
        if name not in hints:
            raise ModelError(f"parameter '{name}' of {function.__name__} needs a type: {name}: ...", def_line(function))
        yield name, hints[name]


def doc_of(function: Callable[..., object]) -> str:
    return inspect.getdoc(function) or ""


def _state(hint: object) -> type[Struct] | None:
    return hint if isinstance(hint, type) and issubclass(hint, Struct) else None


def symbolic_arguments(
    function: Callable[..., object], primes: tuple[bool, ...]
) -> tuple[list[Expr | Struct], list[tuple[str, Type]]]:
    """The symbolic arguments with which a function is traced, and its parameters by name and type.

    States come first, at most as many as `primes`, which says for each whether it is the state after a step.
    """
    formals: list[Expr | Struct] = []
    parameters: list[tuple[str, Type]] = []
    for name, hint in _parameters(function):
        if state := _state(hint):
            if parameters or len(formals) == len(primes):
                expected = " and ".join(("old", "new")[-len(primes) :]) if any(primes) else "one state"
                raise ModelError(f"{function.__name__} takes {expected} first, then its parameters", def_line(function))
            formals.append(state(primes[len(formals)]))
        else:
            try:
                parameters.append((name, type_of(hint)))
            except ModelError as error:
                raise ModelError(f"parameter '{name}': {error.message}", def_line(function)) from None
            formals.append(wrap(Node("parameter", (), name, parameters[-1][1])))
    return formals, parameters


def define(function: Callable[P, T]) -> Callable[P, T]:
    """A named operator of one state and some scalars; called like a function, kept as a call."""
    formals, parameters = symbolic_arguments(function, (False,))
    body = cast("Callable[..., object]", function)(*formals)
    if not isinstance(body, Expr):
        raise ModelError(f"a definition returns one symbolic value, not {body!r}", def_line(function))
    rename_apart(body.node, frozenset(n for n, _ in parameters))
    of_state = bool(formals) and isinstance(formals[0], Struct)
    named = tuple((n, cast("Scalar", t)) for n, t in parameters)
    definition = Definition(function.__name__, named, body.node, doc_of(function), of_state, def_line(function))

    def call(*actuals: object) -> Expr:
        if len(actuals) != len(formals):
            names = ", ".join(inspect.signature(function).parameters)
            raise ModelError(f"{definition.name} takes {len(formals)} arguments, ({names}), not {len(actuals)}")
        is_primed = False
        args: list[Node] = []
        for formal, actual in zip(formals, actuals, strict=True):
            if isinstance(formal, Struct):
                if not isinstance(actual, type(formal)):
                    raise ModelError(f"{definition.name} takes the state as its first argument")
                is_primed = actual.primed
            elif isinstance(actual, Expr) and fits(actual.node.type, formal.node.type):
                args.append(actual.node)
            else:
                shown = f"{actual!r}: {actual.node.type}" if isinstance(actual, Expr) else repr(actual)
                raise ModelError(f"'{formal!r}' of {definition.name} is a {formal.node.type}, not {shown}")
        return wrap(Node("call", tuple(args), (definition, is_primed), definition.body.type))

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    vars(call)["definition"] = definition  # for Design.replacing
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
    return any(n.op in ("variable", "call") and n.attr[1] for n in walk(node))


def as_update(node: Node) -> Update | None:
    """The update that a conjunct makes: new.x[i] == e, new.x[i] (to true) or ~new.x[i] (to false); None for a guard."""
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
    start = _trace_action(function, (True,))
    for guard in start.guards:
        raise ModelError("the initial condition is new.x == value, once for every variable", guard.where)
    if partial := [u.variable for u in start.updates if u.path]:
        raise ModelError(
            f"the initial condition gives all of {partial[0]}: new.{partial[0]} == Map.build(...)", start.where
        )
    return start


def _conjuncts(function: Callable[..., Step], formals: list[Expr | Struct]) -> list[Bool]:
    result = as_object(function(*formals))
    if not isinstance(result, tuple):
        shown = "nothing" if result is None else f"a {type(result).__name__}"
        where = result.site if isinstance(result, Expr) else def_line(function)
        raise ModelError(f"{function.__name__} returns a tuple of conjuncts, return (a, b) or (a,), not {shown}", where)
    conjuncts: list[Bool] = []
    for conjunct in cast("tuple[object, ...]", result):
        if not isinstance(conjunct, Bool):
            where = conjunct.site if isinstance(conjunct, Expr) else def_line(function)
            unpack = "; unpack a step with *" if isinstance(conjunct, tuple) else ""
            raise ModelError(f"a conjunct of {function.__name__} is {conjunct!r}, not a condition{unpack}", where)
        conjuncts.append(conjunct)
    return conjuncts


def _trace_action(function: Callable[..., Step], primes: tuple[bool, ...]) -> Action:
    formals, parameters = symbolic_arguments(function, primes)
    for name, kind in parameters:
        if kind == COUNT or isinstance(kind, MapType | SeqType):
            raise ModelError(f"'{name}' is chosen among few: not among all of {kind}", def_line(function))
    names = frozenset(n for n, _ in parameters)
    guards: list[Guard] = []
    updates: dict[str, Update] = {}
    for conjunct in _conjuncts(function, formals):
        rename_apart(conjunct.node, names)
        update = as_update(conjunct.node)
        if update is None:
            if mentions_primed(conjunct.node):
                raise ModelError(
                    "new stands alone on the left, new.x == e or new.x[i] == e, and a guard reads old only",
                    conjunct.site,
                )
            guards.append(Guard(conjunct.node, conjunct.site))
            continue
        if any(mentions_primed(n) for n in (*update.path, update.value)):
            raise ModelError("an update is computed from old only: new.x == e, e without new", conjunct.site)
        if (name := update.variable) in updates:
            raise ModelError(
                f"{function.__name__} updates '{name}' twice; write new.{name} == once, for two keys "
                f"old.{name}.put(i, a).put(j, b)",
                conjunct.site,
            )
        updates[name] = update
    return Action(
        function.__name__,
        tuple(parameters),
        tuple(guards),
        tuple(updates.values()),
        doc_of(function),
        def_line(function),
        function.__name__,
    )
