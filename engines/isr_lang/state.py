"""The state of a model: one class, one annotated line per variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, get_type_hints

import attrs

from isr_lang.containers import type_of
from isr_lang.errors import ModelError
from isr_lang.expr import Expr, nearest, wrap
from isr_lang.nodes import Node
from isr_lang.scalars import Bool
from isr_lang.types import COUNT, Type


@attrs.frozen
class Variable:
    """A state variable. `when`: it exists only under this condition over the constants."""

    name: str
    type: Type = attrs.field(eq=False)
    doc: str = attrs.field(eq=False)
    when: Node | None = attrs.field(default=None, eq=False)
    ghost: bool = attrs.field(default=False, eq=False)


class _VariableDescriptor:
    """The class attribute of a state variable; on an instance, its symbolic value."""

    def __init__(self, doc: str, condition: Bool | None, ghost: bool) -> None:
        self.doc, self.condition, self.ghost = doc, condition, ghost

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Struct | None, owner: type[Struct]) -> _VariableDescriptor | Expr:
        if instance is None:
            return self
        return wrap(Node("variable", (), (self.name, instance.primed), owner.variable(self.name).type))

    def __set__(self, instance: Struct, value: object) -> NoReturn:
        raise ModelError(f"write new.{self.name} == ... (an update is an equation), not an assignment")


def var(doc: str, *, when: Bool | None = None, ghost: bool = False) -> Any:
    """A state variable: what it means; the setting under which it exists; whether it only records history.

    For the type checkers it has the type of its annotation: `done: Set[Worker] = var("Who is done.")`.
    """
    return _VariableDescriptor(doc, when, ghost)


class Struct:
    """The state of a model: `class State(Struct)` with one annotated `var(...)` per variable.

    A subclass has the variables of its bases and more (`Design.observed`).
    """

    _variables: ClassVar[dict[str, Variable]]
    primed: bool
    """Whether it is the state after the step."""

    def __init_subclass__(cls) -> None:
        hints = get_type_hints(cls)
        cls._variables = {}
        for inherited in cls.__mro__[:0:-1]:
            cls._variables |= vars(inherited).get("_variables", {})
        for name, declaration in vars(cls).items():
            if isinstance(declaration, _VariableDescriptor):
                if hasattr(Struct, name) or name == "primed":
                    raise ModelError(f"'{name}' cannot be the name of a variable")
                if name not in hints:
                    raise ModelError(f"variable '{name}' needs a type: {name}: Set[Worker] = var(...)")
                condition = declaration.condition.node if declaration.condition is not None else None
                kind = type_of(hints[name])
                if kind == COUNT:
                    raise ModelError(f"'{name}' needs a range: class Level(Number, high=...)")
                cls._variables[name] = Variable(name, kind, declaration.doc, condition, declaration.ghost)
        bare = [name for name in vars(cls).get("__annotations__", {}) if name not in cls._variables]
        if bare:
            raise ModelError(f'say what {bare[0]} means: {bare[0]}: ... = var("...")')

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
            raise ModelError(f"there is no variable '{name}'{nearest(name, self._variables)}")

        def __setattr__(self, name, value):
            if name in self._variables:
                object.__setattr__(self, name, value)
            raise ModelError(f"there is no variable '{name}'{nearest(name, self._variables)}")
