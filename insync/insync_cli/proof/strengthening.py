"""`insync prove --suggest`, `--derive` and `--graph`: help for whoever works on an invariant."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from insync_cli.exits import Exit, Inconclusive, UsageError

if TYPE_CHECKING:
    from insync_cli.proof.question import Question
    from isr_lang import Value

Say = Callable[[str], None]

SMALL = {"log": 2, "records": 2, "epochs": 1, "isr_changes": 2, "crashes": 1, "sessions_lost": 0}
"""What was left open, where candidates are looked for: large enough for something to go wrong, and quick."""


def closed(asked: Question, values: Mapping[str, int] = SMALL) -> Mapping[str, Value]:
    """The constants, with these values for those that were left open."""
    known = {c.name: c for c in asked.design.constants()}
    return {
        k: max(known[k].low, min(known[k].high, values.get(k, 2))) if v is None else v
        for k, v in asked.constants.items()
    }


def suggested(asked: Question, seconds: float, say: Say, tell: Say) -> int:
    """Conjuncts that could be added; 0 if with them, or without any, everything is proved at small bounds."""
    from isr_check.smt.strengthening.suggestions import Effort, suggest

    constants = closed(asked)
    tell("looked for where " + ", ".join(f"{k}={constants[k]}" for k in asked.open if k in constants))
    effort = Effort(question=seconds)
    found = suggest(asked.design, constants, asked.promises, asked.wanted, effort, tell)
    for line in found.lines():
        say(line)
    return Exit.HOLDS if found.restores else Exit.INCONCLUSIVE


ROOM = {"log": 2, "records": 2, "epochs": 2, "isr_changes": 3, "crashes": 1, "sessions_lost": 1}
MORE_ROOM = {"log": 3, "records": 4, "epochs": 3, "isr_changes": 6, "crashes": 2, "sessions_lost": 2}
"""Where an invariant is looked for from nothing: room for every fault, or else what never happens there is found to be
impossible. What is true of the first bounds only goes at the second."""


def derived(asked: Question, seconds: float, say: Say, tell: Say) -> int:
    """How much of the invariant follows from conjuncts that are found without it."""
    from isr_check.smt.strengthening.derivation import derive
    from isr_check.smt.strengthening.suggestions import Effort

    constants, larger = closed(asked, ROOM), closed(asked, MORE_ROOM)
    for where, values in (("looked for", constants), ("kept", larger)):
        tell(f"{where} where " + ", ".join(f"{k}={values[k]}" for k in asked.open))
    effort = Effort(question=seconds, generated=1500, asked=1500, rounds=2, seconds=3600.0)
    found = derive(asked.design, constants, larger, asked.promises, asked.wanted, effort, tell)
    for line in found.lines():
        say(line)
    return Exit.HOLDS if found.in_time else Exit.INCONCLUSIVE


def drawn(asked: Question, path: Path, seconds: float, say: Say) -> int:
    """The graph of what implies what, as a picture or as its description."""
    from isr_check.smt.strengthening.property_drawing import ENDINGS, NotDrawn, draw
    from isr_check.smt.strengthening.property_graph import property_graph

    if path.suffix not in ENDINGS:
        raise UsageError(f"--graph takes a file that ends in {', '.join(ENDINGS)}, not '{path.name}'")
    found = property_graph(asked.design, asked.constants, asked.promises, asked.wanted, seconds=seconds, say=say)
    for name in (n for n in found.independent if n in found.promises):
        say(f"{name} does not follow from the conjuncts")
    for edge in found.undecided:
        print(f"insync: undecided, and not drawn: {', '.join(edge.sources)} -> {edge.target}", file=sys.stderr)
    try:
        say(f"{len(found.edges())} arrows: {draw(found, path)}")
    except NotDrawn as problem:
        raise Inconclusive(str(problem)) from None
    return Exit.HOLDS
