"""`insync prove --graph FILE`: which property implies which, as a picture."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from insync_cli.exits import Exit, Inconclusive, UsageError

if TYPE_CHECKING:
    from insync_cli.proof.question import Question

Say = Callable[[str], None]


def draw_implications(question: Question, path: Path, seconds: float, say: Say) -> int:
    """Write the graph as a picture or as its description; `seconds` is for one attempt of the solver at one edge."""
    from isr_check.smt.property_drawing import ENDINGS, NotDrawn, draw
    from isr_check.smt.property_graph import property_graph

    if path.suffix not in ENDINGS:
        raise UsageError(f"--graph takes a file that ends in {', '.join(ENDINGS)}, not '{path.name}'")
    graph = property_graph(
        question.design, question.constants, question.promises, question.properties, seconds=seconds, say=say
    )
    for name in (n for n in graph.independent if n in graph.promises):
        say(f"{name} does not follow from the conjuncts")
    for edge in graph.undecided_edges:
        print(f"insync: undecided, and not drawn: {', '.join(edge.sources)} -> {edge.target}", file=sys.stderr)
    try:
        say(f"{len(graph.edges())} arrows: {draw(graph, path)}")
    except NotDrawn as problem:
        raise Inconclusive(str(problem)) from None
    return Exit.HOLDS
