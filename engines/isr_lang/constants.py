"""What is fixed when a run starts: bounds, switches and settings. In the model they are symbols, so that one
tracing serves all sizes."""

from __future__ import annotations

from typing import TypeVar, cast

import attrs

from isr_lang.errors import ModelError
from isr_lang.expr import wrap
from isr_lang.nodes import Node
from isr_lang.scalars import Bool, Choice, Count
from isr_lang.types import BOOL, COUNT, ChoiceType

C = TypeVar("C", bound=Choice)
Value = int | bool | str


@attrs.frozen(cache_hash=True)
class Constant:
    """A bound (low..high), a switch, or a setting with named values."""

    name: str
    default: Value
    doc: str
    low: int = 0
    high: int = 1
    choice: ChoiceType | None = None
    names: tuple[str, ...] = ()
    budget: bool = False

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")


def bound(name: str, doc: str, *, default: int, low: int = 0, high: int, budget: bool = False) -> Count:
    """A whole number in low..high, chosen on the command line; a fault budget when `budget`."""
    if not low <= default <= high:
        raise ModelError(f"the default of {name} is {default}, outside of {low}..{high}")
    return Count(Node("constant", (), Constant(name, default, doc, low, high, budget=budget), COUNT))


def switch(name: str, doc: str, *, default: bool) -> Bool:
    """A setting that is on or off."""
    return Bool(Node("constant", (), Constant(name, default, doc, names=("off", "on")), BOOL))


def setting(name: str, doc: str, *, values: dict[str, C], default: str) -> C:
    """A setting with named values: each member of one Choice, in the order of its declaration."""
    kind = cast("ChoiceType", next(iter(values.values())).node.type)
    if [member.node.attr for member in values.values()] != list(range(len(values))):
        raise ModelError(f"name the members of {kind} in this order: {', '.join(kind.members)}")
    if default not in values:
        raise ModelError(f"the default of {name} is none of {', '.join(values)}")
    constant = Constant(name, default, doc, choice=kind, names=tuple(values))
    return cast("C", wrap(Node("constant", (), constant, kind)))
