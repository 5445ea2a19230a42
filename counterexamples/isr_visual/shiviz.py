"""A trace as an event log with vector clocks, which ShiViz reads: what happened before what, and what did not.

ShiViz is told how to read a log by a regular expression, with which ours begins. A step is an event of who acts; it
comes after that one's last event, and after the steps that sent what it takes up. A lost message orders nothing.
"""

from __future__ import annotations

import json

from isr_trace.diagrams import ENVIRONMENT
from isr_trace.trace import Trace, TraceError
from isr_visual.messages import arrows

PARSER = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)"

Clock = dict[str, int]


def shiviz(trace: Trace) -> str:
    """The parser, an empty line, then two lines for each step; TraceError for a trace without steps or end."""
    if not trace.steps:
        raise TraceError("this trace has no steps for an event log")
    if trace.loop is not None:
        raise TraceError("this behaviour goes round for ever, and an event log ends")
    lines = [PARSER, ""]
    for step, clock in zip(trace.steps, clocks(trace), strict=True):
        lines += [f"{host(step.actor)} {json.dumps(clock)}", trace.step_text(step)]
    return "\n".join(lines) + "\n"


def host(actor: str) -> str:
    return actor or ENVIRONMENT


def clocks(trace: Trace) -> list[Clock]:
    """Of each step how many events of everybody happened before it, its own included (Fidge, Mattern)."""
    last, clock_list = dict[str, Clock](), list[Clock]()
    heard = [a for a in arrows(trace) if a["taken"] is not None and not a["lost"] and a["sent"] != a["taken"]]
    for i, step in enumerate(trace.steps, 1):
        me = host(step.actor)
        causes = [clock_list[a["sent"] - 1] for a in heard if a["taken"] == i and a["sent"] and a["target"] == me]
        clock: Clock = {}
        for before in (last.get(me, {}), *causes):
            for who, n in before.items():
                clock[who] = max(clock.get(who, 0), n)
        clock[me] = clock.get(me, 0) + 1
        last[me] = clock
        clock_list.append(clock)
    return clock_list
