"""What a model promises: conditions on states, on steps and on the future.

A property is traced like an action, from a function of one state or, for a step, of two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, reduce
from typing import TypeVar, overload

import attrs

from isr_lang.declare import Action, Definition, Property, doc_of, symbolic_arguments
from isr_lang.errors import ModelError, def_line, model_line
from isr_lang.expr import Expr, as_object
from isr_lang.nodes import Node, apply, literal
from isr_lang.quantify import rename_apart
from isr_lang.scalars import Bool
from isr_lang.state import Struct
from isr_lang.types import BOOL, BoolType, ChoiceType, NumberType, SortType

ANY_NUMBER = "any number"


@attrs.frozen(eq=False)
class Conjunct:
    """One conjunct of an inductive invariant: a property, and the lemmas that its proof needs.

    `by` maps an action, or "*" for any other action, to names of conjuncts that are tried first as lemmas. A primed
    name, `"name'"`, means that conjunct after the step; this is sound if the conjunct comes earlier in the list. The
    key `ANY_NUMBER` has lemmas for proofs about any number of elements only; other proofs would be slower with them.
    Leaving out a lemma never makes a proof wrong, but may let it fail.
    """

    promise: Property
    by: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict[str, tuple[str, ...]])

    @property
    def name(self) -> str:
        return self.promise.name


S = TypeVar("S", bound=Struct)
Fair = tuple[Action | str, ...]
PropertyFunction = Callable[..., Bool]


def _property(kind: str, function: PropertyFunction, when: Bool | None) -> Property:
    primes = (False, True) if kind.endswith("step") else (False,)
    formals, parameters = symbolic_arguments(function, primes)
    if parameters or len(formals) != len(primes):
        expected = "old and new" if len(primes) == 2 else "one state"
        raise ModelError(f"{function.__name__} takes {expected} and nothing else", def_line(function))
    condition = as_object(function(*formals))
    if not isinstance(condition, Bool):
        raise ModelError(f"{function.__name__} returns a condition, not {condition!r}", def_line(function))
    rename_apart(condition.node, frozenset())
    name = function.__name__.replace("_", "-")
    scope = when.node if when is not None else None
    return Property(name, kind, condition.node, doc_of(function), def_line(function), scope)


class _Kind:
    """A decorator for one kind of property: `@always`, or `@always(when=SETTING)` to promise it only then."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    @overload
    def __call__(self, function: PropertyFunction) -> Property: ...
    @overload
    def __call__(self, *, when: Bool) -> Callable[[PropertyFunction], Property]: ...
    def __call__(
        self, function: PropertyFunction | None = None, *, when: Bool | None = None
    ) -> Property | Callable[[PropertyFunction], Property]:
        if function is not None:
            return _property(self._kind, function, when)
        return lambda f: _property(self._kind, f, when)


@cache
def _guards(action: Action) -> Definition:
    """The conjunction of an action's guards as a definition of its parameters."""
    scalars = [(n, t) for n, t in action.parameters if isinstance(t, BoolType | NumberType | SortType | ChoiceType)]
    if len(scalars) < len(action.parameters):
        raise ModelError(f"a parameter of {action.name} is a set; whether it is enabled cannot be asked", action.where)
    body = reduce(lambda a, b: apply("and", a, b), (g.condition for g in action.guards), literal(True, BOOL))
    doc = f"Every guard of {action.name} holds."
    return Definition(f"{action.name}_is_enabled", tuple(scalars), body, doc, True, action.where)


def enabled(action: Action, *arguments: Expr) -> Bool:
    """Whether the action can be taken with these arguments in the state before the step (TLA+'s ENABLED)."""
    definition, args = _guards(action), tuple(a.node for a in arguments)
    if [a.type for a in args] != [t for _, t in definition.parameters]:
        names = ", ".join(f"{n}: {t}" for n, t in definition.parameters)
        raise ModelError(f"{action.name} takes ({names}), not ({', '.join(str(a.type) for a in args)})")
    return Bool(Node("call", args, (definition, False), BOOL))


always = _Kind("always")
"""An invariant: it holds in every reachable state."""

step = _Kind("step")
"""It holds of every step, as a relation of old and new."""

sometimes = _Kind("sometimes")
"""Some reachable state is like this: what guards against a model in which nothing happens."""

sometimes_step = _Kind("sometimes-step")
"""Some step is like this."""


@overload
def leads_to(
    name: str,
    doc: str,
    trigger: Property,
    goal: Property,
    *,
    fair: Fair,
    strong: Fair = (),
    when: Bool | None = None,
) -> Property: ...
@overload
def leads_to(
    name: str,
    doc: str,
    trigger: Callable[[S], Bool],
    goal: Callable[[S], Bool],
    *,
    state: type[S],
    fair: Fair,
    strong: Fair = (),
    when: Bool | None = None,
) -> Property: ...
def leads_to(
    name: str,
    doc: str,
    trigger: Property | Callable[[S], Bool],
    goal: Property | Callable[[S], Bool],
    *,
    state: type[S] | None = None,
    fair: Fair,
    strong: Fair = (),
    when: Bool | None = None,
) -> Property:
    """Whenever the trigger holds, the goal holds then or later, provided that actions are fair (TLA+'s `~>`).

    Fairness is about an action with one choice of its parameters. In `fair` (weak): if it is possible from some point
    on, it is taken again and again. In `strong`: if it is possible again and again, it is taken again and again.

    Trigger and goal are properties of one state, or functions of one; for functions `state` is the class of the state.
    """

    def condition(of: Property | Callable[[S], Bool]) -> Node:
        if isinstance(of, Property):
            return of.condition
        if state is None:
            raise ModelError("say of which state: leads_to(..., state=State)")
        rename_apart(node := of(state()).node, frozenset())
        return node

    scope = when.node if when is not None else None
    weakly, strongly = (tuple(a.name if isinstance(a, Action) else a for a in chosen) for chosen in (fair, strong))
    weakly = tuple(a for a in weakly if a not in strongly)
    return Property(name, "eventually", condition(goal), doc, model_line(), scope, condition(trigger), weakly, strongly)
