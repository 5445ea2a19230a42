"""The offline what-if: the states around a trace, so that a reader can leave it and go on without a checker.

Breadth first from every state of the trace at once, so what is near to the trace comes first. Every step that is
possible in an embedded state is listed, also those whose successor is not embedded any more.
"""

from __future__ import annotations

import json
from typing import TypedDict

from isr_lang import show
from isr_trace.codec import Json
from isr_trace.replay import Move, Replay, Values
from isr_visual.states import expressions
from isr_visual.strip import Strip

STATES_AT_MOST, BYTES_AT_MOST = 600, 150_000
"""For one page; a gallery shares the bytes among its traces."""


class Way(TypedDict):
    """A possible step; `to` is a node, None beyond what is embedded. `broken`: the promises that it breaks."""

    action: str
    parameters: str
    to: int | None
    broken: list[str]


class Node(TypedDict):
    """A state: that of the trace at `at`, or the changed variables since the node `since`; `ways` is None where the
    neighbourhood ends."""

    at: int | None
    since: int | None
    values: dict[str, Json]
    ways: list[Way] | None


class Neighbourhood:
    """Nodes 0 to n are the states of the trace (in which equal states are one node)."""

    def __init__(
        self, states: tuple[Values, ...], replay: Replay, strip: Strip, bytes_at_most: int = BYTES_AT_MOST
    ) -> None:
        self.replay, self.strip, self.instance = replay, strip, replay.evaluator.instance
        self.types = {a.name: a.parameters for a in self.instance.actions}
        self.nodes: list[Node] = []
        self.states: list[Values] = []
        self.number: dict[Values, int] = {}
        self.bytes, self.bytes_at_most = 0, bytes_at_most
        for i, state in enumerate(states):
            if state not in self.number:
                self._add(state, Node(at=i, since=None, values={}, ways=None))
        self._grow()

    def _add(self, state: Values, node: Node) -> int:
        self.number[state] = len(self.nodes)
        self.nodes.append(node)
        self.states.append(state)
        return self.number[state]

    def _grow(self) -> None:
        at = 0
        while at < len(self.nodes) and self.bytes < self.bytes_at_most:
            ways = [self._way(at, move, state) for move, state in self.replay.expand(self.states[at])]
            self.nodes[at]["ways"] = ways
            self.bytes += len(json.dumps(ways))
            at += 1

    def _way(self, at: int, move: Move, state: Values) -> Way:
        to = self.number.get(state)
        if to is None and len(self.nodes) < STATES_AT_MOST:
            old, new = expressions(self.instance, self.states[at]), expressions(self.instance, state)
            differing = {name: value for name, value in new.items() if value != old[name]}
            node = Node(at=None, since=at, values=differing, ways=None)
            self.bytes += len(json.dumps(node))
            to = self._add(state, node)
        types = self.types[move.action]
        pairs = zip(types, move.parameters, strict=True)
        return Way(
            action=move.action,
            parameters=", ".join(f"{name}={show(value, type)}" for (name, type), value in pairs),
            to=to,
            broken=self.strip.broken(self.states[at], state),
        )
