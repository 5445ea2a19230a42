"""A design is what it replaces and all that was replaced before it: nothing in it calls what another stands for."""

from __future__ import annotations

import attrs
import pytest

from isr_lang import Design
from isr_lang.declare import Definition
from isr_lang.nodes import Node, walk
from isr_protocol.by_name import DESIGNS
from isr_protocol.designs.zookeeper import leader_answers_next_epoch_start


def stale(design: Design) -> set[str]:
    """What the design's actions and properties call, directly or not, though another definition stands for it."""
    replaced = {old.name: new for override in design.overrides for old, new in override.replacements.items()}
    found, seen = set[str](), set[Definition]()

    def visit(node: Node, within: str) -> None:
        for at in walk(node):
            if at.op == "call":
                called: Definition = at.attr[0]
                new = replaced.get(called.name)
                if new is not None and new.name not in (called.name, within):
                    found.add(called.name)
                if called not in seen:
                    seen.add(called)
                    visit(called.body, called.name)

    for root in design.roots():
        visit(root, "")
    return found


@pytest.mark.parametrize("name", DESIGNS)
def test_nothing_calls_what_was_replaced(name: str) -> None:
    assert not stale(DESIGNS[name])


def test_an_action_that_is_put_in_as_it_was_stated_is_noticed() -> None:
    design = DESIGNS["kip-101"]
    kept = tuple(a for a in design.actions if a.name != "leader_answers_epoch_end")
    as_stated = attrs.evolve(leader_answers_next_epoch_start, name="leader_answers_epoch_end")
    assert stale(attrs.evolve(design, actions=(*kept, as_stated))) == {"takes", "waits"}
    assert not stale(attrs.evolve(design, actions=kept).adding(as_stated))
