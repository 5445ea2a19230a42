"""The exported TLA+ reads as if written by hand: few parentheses, no hidden names, long things broken where
a person would."""

import pytest
from tests.support.models import every_operator
from tests.support.models.every_operator import (
    EVERYTHING,
    Item,
    Mode,
    Node,
    Place,
    State,
    agreed,
    filled,
    top,
    turned,
)

from isr_check.export import tla
from isr_check.export.layout import WIDTH, Term, junction, lines
from isr_check.export.tla_module import Module
from isr_check.export.tla_scope import Scope
from isr_lang import NONE, Maybe, Seq, Set, count, exists, forall, largest, when
from isr_lang.expr import Expr

OLD, NEW = State(), State(primed=True)
IDLE, BUSY = OLD.mode == Mode.IDLE, OLD.mode == Mode.BUSY
FREE = OLD.owner == NONE


CASES: dict[str, tuple[Expr, str]] = {
    "or in and": ((IDLE | BUSY) & FREE, r'(mode = "idle" \/ mode = "busy") /\ owner = None'),
    "and in implies": ((IDLE & FREE).implies(BUSY), r'mode = "idle" /\ owner = None => mode = "busy"'),
    "implies in implies": (IDLE.implies(BUSY).implies(FREE), '(mode = "idle" => mode = "busy") => owner = None'),
    "not equal": (~IDLE, 'mode # "idle"'),
    "not and": (~(IDLE & FREE), r'~(mode = "idle" /\ owner = None)'),
    "truths equal": ((IDLE & FREE) == BUSY, r'mode = "idle" /\ owner = None <=> mode = "busy"'),
    "sum less sum": (agreed(OLD) + 1 < agreed(OLD) - 1, "Agreed + 1 < Agreed - 1"),
    "minus a sum": (agreed(OLD) - (agreed(OLD) + 1) >= 0, "Agreed - (Agreed + 1) >= 0"),
    "literal on the right": (agreed(OLD) > 0, "Agreed > 0"),
    "set algebra": ((OLD.members | Node.all()) & OLD.members, r"(members \cup Node) \cap members"),
    "members listed": (Set.of(Mode.IDLE, Mode.DONE), '{"idle", "done"}'),
    "one number out of range": (OLD.marks.including(agreed(OLD) + 1), r"marks \cup ({Agreed + 1} \cap Place)"),
    "one number out of range beside a difference": (
        (OLD.marks - OLD.marks).including(agreed(OLD) + 1),
        r"(marks \ marks) \cup ({Agreed + 1} \cap Place)",
    ),
    "positions": (Place.below(agreed(OLD)), "0..Agreed - 1"),
    "beyond the positions": (Place.below(agreed(OLD) + 1), r"{i \in Place : i < Agreed + 1}"),
    "a key out of range": (OLD.turns[agreed(OLD) + 1] + 0, "Get(turns, Agreed + 1, 0) + 0"),
    "if inside": (when(IDLE, OLD.owner, OLD.owner) == NONE, '(IF mode = "idle" THEN owner ELSE owner) = None'),
    "some": (OLD.mark == agreed(OLD), "mark = Agreed"),
    "one quantifier": (
        forall(OLD.seen[n][i] for n in Node.all() for i in Item.all()),
        r"\A n \in Node, i \in Item : seen[n][i]",
    ),
    "quantifiers over one set": (
        exists(OLD.queue[a] == OLD.queue[b] for a in OLD.members for b in OLD.members),
        r"\E a, b \in members : queue[a] = queue[b]",
    ),
    "a domain that depends": (
        exists(filled(OLD, n, i) for n in Node.all() for i in Place.below(OLD.queue[n].length())),
        r"\E n \in Node : \E i \in 0..Len(queue[n]) - 1 : Filled(n, i)",
    ),
    "count": (count(IDLE for _ in Node.all()) > 1, r'Cardinality({x \in Node : mode = "idle"}) > 1'),
    "largest of a set": (largest((p for p in OLD.marks), or_else=0), "Max(marks, 0)"),
    "a primed definition": (
        exists(top(NEW, n) == top(OLD, n) for n in Node.all()),
        r"\E n \in Node : Top(n)' = Top(n)",
    ),
    "a primed definition of the new state": (turned(NEW, NEW.turns[agreed(NEW)]), "Turned(turns[Agreed])'"),
    "a primed definition of the old state": (turned(NEW, OLD.turns[agreed(OLD)]), "Get(turns', turns[Agreed], 0)"),
    "nothing": (Maybe.of(agreed(OLD)) == NONE, "Agreed = None"),
    "no items": (Seq.empty(Place, Item), "<<>>"),
}


@pytest.mark.parametrize(("expression", "written"), CASES.values(), ids=CASES)
def test_an_expression_has_the_parentheses_it_needs(expression: Expr, written: str) -> None:
    assert Module(EVERYTHING).writer.term(expression.node, Scope()).flat == written


def test_a_name_never_hides_another() -> None:
    hidden = forall(exists(OLD.queue[n] == OLD.queue[m] for n in Node.all()) for m in Node.all())
    inner = exists(hidden & (OLD.owner == n) for n in Node.all())
    text = Module(EVERYTHING).writer.term(inner.node, Scope()).flat
    assert text == r"\E n \in Node : (\A m \in Node : \E n2 \in Node : queue[n2] = queue[m]) /\ owner = n"


def test_a_long_disjunction_is_a_bulleted_list() -> None:
    parts = [Term((f"this is the condition with the number {i}",)) for i in range(3)]
    inner = junction("\\/", parts)
    assert lines(junction("/\\", [parts[0], inner]), 60) == [
        r"/\ this is the condition with the number 0",
        r"/\ \/ this is the condition with the number 0",
        r"   \/ this is the condition with the number 1",
        r"   \/ this is the condition with the number 2",
    ]


def test_a_variable_without_use_keeps_its_value() -> None:
    assert r"marks' = IF Extra THEN marks \cup" in tla(every_operator.EVERYTHING)


def test_lines_are_as_wide_as_a_page() -> None:
    wide = [line for line in tla(every_operator.EVERYTHING).splitlines() if len(line) > WIDTH + 4]
    assert not wide
