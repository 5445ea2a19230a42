"""`insync graph`: the state graph of small bounds as a picture, or its quotient by who leads, the ISR and who is up."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

import attrs

from insync_cli import options, registry
from insync_cli.exits import Exit, Inconclusive, UsageError
from insync_cli.options import Usage, flag, group, option, positive
from insync_cli.terminal import Output, count
from isr_check.reference import Evaluator
from isr_trace.itf import write_text
from isr_trace.trace import TraceError
from isr_visual.state_graph import TooLarge, dot, state_graph

EXAMPLE = """\
insync graph kafka-0.8 --replicas 2 --crashes 1 --svg graph.svg
insync graph kip-966 --replicas 1 --isr-changes 0 --epochs 0 --whole --svg states.svg"""
SUMMARY = "The state graph of small bounds: broken states are marked, actions stand on its arrows."
USAGE = Usage("graph", SUMMARY, EXAMPLE)
STATES_AT_MOST, WHOLE_AT_MOST = 20_000, 200
"""States in a quotient, and nodes of a whole graph: graphviz takes minutes for more."""
MANY = f"give up when there are more; without it {STATES_AT_MOST:,}, with --whole {WHOLE_AT_MOST}"


@attrs.frozen(kw_only=True)
class Options:
    world: options.SmallerWorld = group(options.SmallerWorld)
    whole: bool = flag("every state, not the quotient (of a partition: by leader, size of the ISR, and who is alive)")
    states: int | None = option(
        "N", f"give up when there are more; without it {STATES_AT_MOST}, with --whole {WHOLE_AT_MOST}", positive
    )
    svg: Path | None = option("FILE", "where the picture goes; without it, the text for graphviz on stdout", Path)
    output: Output = group(Output)


class _Source(Protocol):
    def pipe(self, format: str) -> bytes: ...


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    design = invocation.world.design
    evaluator = Evaluator(registry.instance_of(design, invocation.world.constants))
    most = invocation.states or (WHOLE_AT_MOST if invocation.whole else STATES_AT_MOST)
    try:
        with invocation.output.ticker() as ticker:
            graph = state_graph(
                evaluator,
                whole=invocation.whole,
                states_at_most=most,
                progress=lambda explored, known: ticker.count(explored, known, "states explored", grows=True),
            )
    except TooLarge:
        raise Inconclusive(
            f"{design.name} has more than {most} states at these bounds; give smaller ones, or --states"
        ) from None
    text = dot(graph)
    broken_states = sum(group.breaking for group in graph.groups)
    report = {
        "schema": "insync/graph/1",
        "design": design.name,
        "states": graph.states,
        "nodes": [attrs.asdict(group) for group in graph.groups],
        "arrows": [{"from": a, "to": b, "actions": list(names)} for (a, b), names in graph.arrows.items()],
    }
    invocation.output.write(report)
    if invocation.svg is None:
        if invocation.output.for_people:
            print(text, end="")
        return Exit.HOLDS
    try:
        write_text(invocation.svg, svg_of(text))
    except TraceError as problem:
        raise UsageError(str(problem)) from None
    if invocation.output.for_people:
        marked = f", {count(broken_states, 'state')} break a promise" if broken_states else ", no promise is broken"
        print(f"{invocation.svg}: {count(graph.states, 'state')} in {count(len(graph.groups), 'node')}{marked}")
    return Exit.HOLDS


def svg_of(text: str) -> str:
    """The picture of a graph as SVG; UsageError where there is nothing to draw it with."""
    graphviz = import_module("graphviz")
    try:
        return cast("_Source", graphviz.Source(text)).pipe("svg").decode()
    except graphviz.ExecutableNotFound:
        raise UsageError("there is no program dot to draw with (Debian: apt-get install graphviz)") from None
