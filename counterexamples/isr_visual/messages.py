"""The arrows of the space-time diagram: what was sent when, by whom, to whom, and when it was taken up or lost.

Messages are variables (isr_visual.roles.MAIL): one exists from the step that wrote it to the step that
overwrote it. What clients and the controller tell is read off what a step changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypedDict

from isr_trace.diff import Plain, expression, plain
from isr_trace.trace import Trace
from isr_visual.roles import CLIENTS, CONTROLLER, MAIL, METADATA, Mail

NOTHING = "none"

View = Mapping[str, Plain]


class Arrow(TypedDict):
    """`sent` and `taken` are positions of states (0: it was there from the start); `taken` is None while it is under
    way. `kind`: the variable that holds it, metadata, record, ack or read; `lost`: nobody took it up."""

    kind: str
    text: str
    source: str
    target: str
    sent: int
    taken: int | None
    lost: bool


def views(trace: Trace) -> list[View]:
    """Every state as plain values."""
    return [{n: plain(expression(trace, i, n)) for n in state} for i, state in enumerate(trace.states)]


def arrows(trace: Trace) -> list[Arrow]:
    """All messages of a trace, in the order in which they were sent; of a trace without actors none."""
    if not trace.steps:
        return []
    states = views(trace)
    arrow_list = [
        a for mail in MAIL if isinstance(states[0].get(mail.variable), dict) for a in _mail_arrows(trace, states, mail)
    ]
    arrow_list += _metadata_arrows(trace, states)
    arrow_list += _clients(trace, states)
    if not arrow_list:
        arrow_list = list(_taken_up(trace))
    return sorted(arrow_list, key=lambda a: (a["sent"], a["taken"] or len(states)))


def _at(state: View, name: str, key: str) -> Plain:
    values = state.get(name)
    return values.get(key, "") if isinstance(values, dict) else ""


def _mail_arrows(trace: Trace, states: list[View], mail: Mail) -> Iterator[Arrow]:
    keys = states[0][mail.variable]
    for key in keys if isinstance(keys, dict) else ():
        letters = [tuple(_at(s, name, key) for name in mail.variables()) for s in states]
        sent_at = 0
        for i in range(1, len(states) + 1):
            if i < len(states) and letters[i] == letters[sent_at]:
                continue
            made = _letter(trace, states, mail, key, sent_at)
            if made is not None:
                made["taken"] = i if i < len(states) else None
                made["lost"] = i < len(states) and not _takes(trace, states, made["target"], i)
                yield made
            sent_at = i


def _letter(trace: Trace, states: list[View], mail: Mail, key: str, sent_at: int) -> Arrow | None:
    state = states[sent_at]
    status = str(_at(state, mail.variable, key))
    actor = trace.steps[sent_at - 1].actor if sent_at else ""
    to = str(_at(state, mail.to, key)) if mail.to in state else mail.to
    if status in mail.questions:
        source, target, text = key, to, mail.questions[status]
    elif status in mail.answers:
        source, target, text = (actor if mail.to in state else mail.to), key, mail.answers[status]
    else:
        return None
    if not source or target in ("", NOTHING):
        return None
    return Arrow(kind=mail.variable, text=text, source=source, target=target, sent=sent_at, taken=None, lost=False)


def _takes(trace: Trace, states: list[View], target: str, index: int) -> bool:
    """Whether whoever should get it is who acts, and lives on."""
    alive, step = states[index].get("alive"), trace.steps[index - 1]
    if target == CONTROLLER:
        return step.action.split("_")[0] == CONTROLLER
    living = not isinstance(alive, tuple) or target in alive
    return step.actor == target and living


def _metadata_arrows(trace: Trace, states: list[View]) -> Iterator[Arrow]:
    """Metadata: from the controller's last change to the step in which a replica has the same number."""
    for i, step in enumerate(trace.steps, 1):
        for own, theirs in METADATA:
            number = states[i].get(theirs)
            new, old = _at(states[i], own, step.actor), _at(states[i - 1], own, step.actor)
            if number is None or new in ("", old) or not new == number == states[i - 1].get(theirs):
                continue
            since = next((j for j in range(i - 1, 0, -1) if states[j].get(theirs) != states[j - 1].get(theirs)), None)
            if since is not None and since < i:
                text = f"metadata {number}"
                yield Arrow(
                    kind="metadata",
                    text=text,
                    source=CONTROLLER,
                    target=step.actor,
                    sent=since,
                    taken=i,
                    lost=False,
                )
                break


def _clients(trace: Trace, states: list[View]) -> Iterator[Arrow]:
    """Records from producers, acknowledgements to them, and what a consumer read, all within one step."""
    for i, step in enumerate(trace.steps, 1):
        for name, text, kind in (
            ("written_in", "record", "record"),
            ("acked", "ack", "ack"),
            ("consumed", "read", "read"),
        ):
            new, old = states[i].get(name), states[i - 1].get(name)
            if not (isinstance(new, tuple) and isinstance(old, tuple)) or len(new) <= len(old):
                continue
            named = [str(len(old))] if kind == "record" else [str(m) for m in new if m not in old or kind == "read"]
            ends = (CLIENTS, step.actor) if kind == "record" else (step.actor, CLIENTS)
            label = f"{text} {', '.join(named[len(old) :] if kind == 'read' else named)}"
            yield Arrow(kind=kind, text=label, source=ends[0], target=ends[1], sent=i, taken=i, lost=False)


def _taken_up(trace: Trace) -> Iterator[Arrow]:
    """Of a model without such variables: steps towards a peer, and which step took them up."""
    for i, step in enumerate(trace.steps, 1):
        taken = next((j for j, later in enumerate(trace.steps, 1) if later.after == i), None)
        if step.peer:
            text = step.action.replace("_", " ")
            yield Arrow(
                kind="step", text=text, source=step.actor, target=step.peer, sent=i, taken=taken or i, lost=False
            )
