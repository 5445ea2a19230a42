"""The language in which models are written: typed Python, traced once into an expression graph.

An action is a function of `old`, `new` and parameters that returns a tuple of conjuncts, TLA+'s bulleted
list. `new.x == e` (or `new.x[i] == e`, `new.flag`, `~new.flag`) is an update, everything else a guard,
everything unmentioned unchanged. Iterating a symbolic set in a generator binds one variable, so a generator
expression is a quantifier. This package knows no engine and no protocol.
"""

from isr_lang.containers import Map, Maybe, Seq, Set
from isr_lang.declare import (
    Action,
    Constant,
    Definition,
    Guard,
    Property,
    Step,
    Struct,
    Update,
    Value,
    Variable,
    action,
    always,
    bound,
    define,
    initial,
    leads_to,
    setting,
    sometimes,
    sometimes_step,
    step,
    switch,
    var,
)
from isr_lang.design import Assumption, Design, assume
from isr_lang.errors import ModelError, Where
from isr_lang.expr import NONE
from isr_lang.instance import FoldedAction, FoldedGuard, Instance, SettingError, reads
from isr_lang.nodes import OPERATORS, Binder, Node, walk
from isr_lang.printing import show, text
from isr_lang.quantify import count, exists, forall, largest, smallest, when
from isr_lang.scalars import Bool, Choice, Count, Number, Sort

__all__ = [
    "NONE", "OPERATORS", "Action", "Assumption", "Binder", "Bool", "Choice", "Constant", "Count", "Definition", "Design", "FoldedAction",
    "FoldedGuard", "Guard", "Instance",
    "Map", "Maybe", "ModelError", "Node", "Number", "Property", "Seq", "Set", "SettingError", "Sort", "Step", "Struct", "Update",
    "Value", "Variable", "Where", "action", "always", "assume", "bound", "count", "define", "exists", "forall", "initial",
    "largest", "leads_to", "reads", "setting", "show", "smallest", "sometimes", "sometimes_step", "step", "switch", "text",
    "var", "walk", "when",
]  # fmt: skip
