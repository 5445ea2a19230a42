"""The survival lane: who could be elected in a state, and which acknowledged records each outcome would lose.

"Could be elected" is asked of the model: one step of it makes that replica the leader. Bounds that end the
explored world (the highest epoch) are raised for the question, or every trace would end in safety.
"""

from __future__ import annotations

from typing import TypedDict

from isr_trace.diff import Plain, plain
from isr_trace.replay import Evaluator, Replay, Tell, Values, tell_nobody
from isr_trace.trace import Trace
from isr_visual.roles import ACKED, LEADER, LOG
from isr_visual.states import expressions


class Outcome(TypedDict):
    """`by`: the actions that would elect it now, empty if none; `leads`: it is elected already."""

    replica: str
    leads: bool
    by: list[str]
    loses: list[str]


def survival(
    trace: Trace,
    states: tuple[Values, ...],
    evaluator: Evaluator,
    tell: Tell = tell_nobody,
) -> list[list[Outcome]]:
    """Per state, one outcome per replica; nothing for a model without leaders, logs and acknowledgements.

    `tell`: how far that is.
    """
    if not {LEADER, LOG, ACKED} <= set(trace.variables):
        return []
    replay = Replay(evaluator)
    outcomes: list[list[Outcome]] = []
    for i, state in enumerate(states):
        tell("states asked who could be elected", i, len(states))
        outcomes.append(_outcomes(state, replay))
    return outcomes


def _outcomes(state: Values, replay: Replay) -> list[Outcome]:
    now = _plain_values(state, replay)
    electing: dict[str, list[str]] = {}
    for move, successor in replay.expand(state):
        elected = _plain_values(successor, replay)[LEADER]
        if elected != now[LEADER] and isinstance(elected, str):
            electing.setdefault(elected, []).append(move.action)
    logs, acked = now[LOG], now[ACKED]
    assert isinstance(logs, dict)
    assert isinstance(acked, tuple)
    return [
        Outcome(
            replica=r,
            leads=now[LEADER] == r,
            by=list(dict.fromkeys(electing.get(r, ()))),
            loses=[str(m) for m in acked if isinstance(held, tuple) and m not in held],
        )
        for r, held in logs.items()
    ]


def _plain_values(state: Values, replay: Replay) -> dict[str, Plain]:
    wanted = expressions(replay.evaluator.instance, state, (LEADER, LOG, ACKED))
    return {name: plain(value) for name, value in wanted.items()}
