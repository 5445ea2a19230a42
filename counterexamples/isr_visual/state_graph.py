"""The state graph of a small world, as graphviz draws it: every state, or its quotient by what people talk about.

The quotient puts states together that agree on who leads, how many are in the ISR, and who is alive. An arrow has the
actions that lead from some state here to some state there; a node is marked where one of its states breaks a promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs

from isr_lang import Instance
from isr_trace.diff import plain
from isr_trace.replay import Evaluator, Replay, Values
from isr_trace.scene import NOBODY, View
from isr_visual.states import expressions

ACTIONS_SHOWN = 3
"""Names on one arrow; more are counted."""


PLAIN, START, HARM = ("#ffffff", "#5a6169"), ("#e8ecfa", "#3451c6"), ("#fbeae8", "#b3261e")
"""The colours of a node: what fills it, and its border."""


class TooLarge(Exception):
    """There are more states than were allowed."""


@attrs.frozen
class Group:
    """States that are drawn as one: how many, whether one is initial, which promises some break, and how many do."""

    label: str
    states: int
    initial: bool
    broken: tuple[str, ...]
    breaking: int


@attrs.frozen
class StateGraph:
    """`arrows`: from a group to a group, by position, the actions that do it in the order of the model."""

    groups: tuple[Group, ...]
    arrows: Mapping[tuple[int, int], tuple[str, ...]]
    states: int


def state_graph(
    evaluator: Evaluator,
    *,
    whole: bool,
    states_at_most: int,
    progress: Callable[[int, int], None] = lambda explored, known: None,
) -> StateGraph:
    """Every reachable state, explored here; TooLarge when there are more of them.

    `progress` is told how many states are explored, and how many are known so far.
    """
    replay, label = Replay(evaluator), _label(evaluator.instance, whole=whole)
    number: dict[Values, int] = {}
    names: dict[str, int] = {}
    count, first, broken_by_group, breaking = list[int](), set[int](), list[dict[str, None]](), list[int]()

    def group(state: Values) -> int:
        if state not in number:
            if len(number) >= states_at_most:
                raise TooLarge
            n = names.setdefault(label(state, len(number)), len(names))
            if n == len(count):
                count.append(0)
                breaking.append(0)
                broken_by_group.append({})
            number[state] = n
            count[n] += 1
            names_broken = dict.fromkeys(_broken_promises(evaluator, state))
            broken_by_group[n] |= names_broken
            breaking[n] += bool(names_broken)
        return number[state]

    waiting = list(dict.fromkeys(replay.starts.values()))
    first |= {group(state) for state in waiting}
    arrows: dict[tuple[int, int], dict[str, None]] = {}
    for explored, state in enumerate(waiting):
        progress(explored, len(number))
        for move, after in replay.expand(state):
            new = after not in number
            arrow = number[state], group(after)
            arrows.setdefault(arrow, {})[move.action] = None
            if new:
                waiting.append(after)
    groups = tuple(
        Group(name, count[n], n in first, tuple(broken_by_group[n]), breaking[n]) for name, n in names.items()
    )
    order = [a.name for a in evaluator.instance.actions]
    told = {ends: tuple(sorted(actions, key=order.index)) for ends, actions in arrows.items()}
    return StateGraph(groups, told, len(number))


def _broken_promises(evaluator: Evaluator, state: Values) -> Iterable[str]:
    return (p.name for p in evaluator.instance.properties if p.kind == "always" and not evaluator.holds(p, state))


def _label(instance: Instance, *, whole: bool) -> Callable[[Values, int], str]:
    if whole:
        return lambda _, n: f"s{n}"

    def quotient(state: Values, _: int) -> str:
        view = View.of_plain({name: plain(value) for name, value in expressions(instance, state).items()})
        leader = view.values_by_role.get("leader")
        leaders = [leader] if leader is not None else [r for r in view.replicas if view.leads(r)]
        leads = ", ".join(f"{r} leads" for r in leaders if r not in (None, NOBODY)) or "nobody leads"
        down = [r for r in view.replicas if view.down(r)]
        alive = f"{', '.join(down)} down" if down else "all up" if "alive" in view.values_by_role else ""
        in_sync = f"\\nISR of {len(view.many('isr'))}" if "isr" in view.values_by_role else ""
        return f"{leads}{in_sync}" + (f"\\n{alive}" if alive else "")

    return quotient


def dot(graph: StateGraph) -> str:
    """In the language of graphviz."""
    lines = [
        "digraph states {",
        '  graph [bgcolor="transparent", rankdir="LR", nodesep="0.35", ranksep="0.9"]',
        '  node [shape="box", style="rounded,filled", fontname="sans-serif", fontsize="12"]',
        '  edge [fontname="sans-serif", fontsize="10", color="#5a6169", fontcolor="#5a6169"]',
    ]
    for n, group in enumerate(graph.groups):
        fill, border = HARM if group.broken else START if group.initial else PLAIN
        many = f"\\n{group.states} states" if group.states > 1 else ""
        breaks = f"\\n{group.breaking} break {', '.join(group.broken)}" if group.broken else ""
        text = f"{group.label}{many}{breaks}".replace('"', "'").replace("\n", "\\n")
        lines.append(f'  n{n} [label="{text}", fillcolor="{fill}", color="{border}"]')
    for (a, b), actions in graph.arrows.items():
        more = [f"and {len(actions) - ACTIONS_SHOWN} more"] if len(actions) > ACTIONS_SHOWN else []
        text = "\\n".join([action.replace("_", " ") for action in actions[:ACTIONS_SHOWN]] + more)
        lines.append(f'  n{a} -> n{b} [label="{text}"]')
    return "\n".join([*lines, "}", ""])
