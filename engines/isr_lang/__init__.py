"""The language in which models are written: typed Python, traced once into an expression graph.

A whole model, two processes and a lock:

    from isr_lang import *

    CLIENTS = bound("clients", "Clients that want the lock.", default=2, high=4)

    class Client(Sort, size=CLIENTS, prefix="c", symmetric=True):
        "Who wants the lock."

    class State(Struct):
        holder: Maybe[Client] = var("Who has the lock.")
        waiting: Set[Client] = var("Who asked for it.")

    @initial
    def init(new: State) -> Step:
        return (new.holder == NONE, new.waiting == Set.empty(Client))

    @action
    def asks(old: State, new: State, c: Client) -> Step:
        "A client queues up, unless it holds the lock."
        return (old.holder != c, new.waiting == old.waiting.including(c))

    @action
    def acquires(old: State, new: State, c: Client) -> Step:
        "The lock goes to any of those who wait."
        left = old.waiting.excluding(c)
        return (old.holder == NONE, old.waiting.has(c), new.holder == c, new.waiting == left)

    @action
    def releases(old: State, new: State, c: Client) -> Step:
        "The holder gives the lock back."
        return (old.holder == c, new.holder == NONE)

    @always
    def holder_does_not_wait(s: State) -> Bool:
        return forall((s.holder == c).implies(~s.waiting.has(c)) for c in Client.all())

    LOCK = Design("lock", "One lock.", State, init, (asks, acquires, releases), (holder_does_not_wait,))

An engine visits its 20 states:

    from isr_check.explorer import explore

    assert explore(Instance(LOCK, {"clients": 3})).distinct == 20

**An action** takes the state before the step, the state after it, and parameters; every combination of
parameters is tried, and there is no other nondeterminism. It returns a tuple of conjuncts, TLA+'s bulleted
list. `new.x == e`, or `new.x[i] == e` for one key of a map, or `new.flag` and `~new.flag`, is an update, at
most one per variable and computed from `old`; everything else is a guard; what is not mentioned stays. Steps
compose by unpacking: `return (*common(old, c), new.x == 1)`.

**Types.** `Bool`. A `Number` has a range (`class Level(Number, high=TOP)`) and mixes only with itself, Python
integers and bounds. A `Sort` has names without order. A `Choice` is one of a few names. Of these scalars are
made `Maybe[E]`, `Set[E]`, `Map[K, V]` (total) and `Seq[I, E]` (bounded, positions from 0). Where Python's own
constant says too little of its type, write `Level.of(0)`, `Maybe.of(x)`, `Set.of(x, y)`, `Set.empty(Client)`,
`Map.build(Client, lambda c: ...)` or `blank(old.x)`, the first value of the type of x.

**Conditions.** `& | ~` and `.implies()` with each comparison in parentheses; `when(c, a, b)` chooses a value;
`forall`, `exists`, `count`, `smallest` and `largest` take a generator expression over sets, whose loop
variables become bound variables: iterating is not looping. Hence there is no `if` in it; write
`forall(p.implies(q) for ...)`, `exists(p & q for ...)` or `S.where(lambda x: p)`.

**Promises.** `@always` and `@sometimes` are about one state, `@step` and `@sometimes_step` about two, and
`leads_to` is about the future. `@always(when=SETTING)` is promised under a setting only. `enabled(ACTION, ...)` says
that an action can be taken.

**Names.** `@define` gives a name to an expression of one state and some scalars; it is kept in the graph, for
exports and narration. `bound`, `switch` and `setting` are symbols that a run fixes. A variable declared with
`var(..., when=SETTING)` exists under the setting only; without it, it keeps its one initial value.

Python decides some things before a symbolic value can speak up (`and`, `or`, `not`, `if`, `in`, `a < b < c`);
these are refused when the model is imported, on its own line, with the right spelling. Every operator is
total (isr_lang.nodes). This package knows no engine and no protocol.

Reading order: `nodes` (the expression graph), `types`, `expr` (what symbolic values have in common), `scalars`,
`containers`, `quantify`, `constants` (what a run fixes), `state`, `declare` (actions and definitions), `promises`,
`design`, `instance` (a design with its constants fixed), `errors`.

- What is in range: `extents` (by the look of an expression), `left_out` (what a set or a map cannot store).
- Made of these: `design_table` (designs by name), `override` (a definition replaced), `refine` (a promise about an
  abstract state), `sequel` (steps of two actions), `blank` (values that nothing reads), `ranges` (reads out of range),
  `effects` (bounds that decide nothing under some settings), `printing` (expressions as text).
"""

from isr_lang.blank import blank
from isr_lang.constants import Constant, Value, bound, setting, switch
from isr_lang.containers import Map, Maybe, Seq, Set
from isr_lang.declare import (
    Action,
    Definition,
    Guard,
    Property,
    Step,
    Update,
    action,
    define,
    initial,
)
from isr_lang.design import Assumption, Design, assume
from isr_lang.errors import ModelError, Where
from isr_lang.expr import NONE
from isr_lang.instance import FoldedAction, FoldedGuard, Instance, SettingError, reads
from isr_lang.nodes import OPERATORS, Binder, Node, constants_in, variables_in, walk
from isr_lang.printing import show, text
from isr_lang.promises import ANY_NUMBER, Conjunct, always, enabled, leads_to, sometimes, sometimes_step, step
from isr_lang.quantify import count, exists, forall, largest, smallest, when
from isr_lang.scalars import Bool, Choice, Count, Number, Sort
from isr_lang.state import Struct, Variable, var

__all__ = [
    "ANY_NUMBER",
    "NONE",
    "OPERATORS",
    "Action",
    "Assumption",
    "Binder",
    "Bool",
    "Choice",
    "Conjunct",
    "Constant",
    "Count",
    "Definition",
    "Design",
    "FoldedAction",
    "FoldedGuard",
    "Guard",
    "Instance",
    "Map",
    "Maybe",
    "ModelError",
    "Node",
    "Number",
    "Property",
    "Seq",
    "Set",
    "SettingError",
    "Sort",
    "Step",
    "Struct",
    "Update",
    "Value",
    "Variable",
    "Where",
    "action",
    "always",
    "assume",
    "blank",
    "bound",
    "constants_in",
    "count",
    "define",
    "enabled",
    "exists",
    "forall",
    "initial",
    "largest",
    "leads_to",
    "reads",
    "setting",
    "show",
    "smallest",
    "sometimes",
    "sometimes_step",
    "step",
    "switch",
    "text",
    "var",
    "variables_in",
    "walk",
    "when",
]
