"""Traces against the model: is there a run of the model that says what brokers wrote?

`validate(lives)` is the entry for other code: it stays `validate(lives) -> Validated`, with `rejected` as before.
`level` says how much of a line is looked at (`lines.Level`), `budget` how many states may be tried before the answer is
that it is not known (`Validated.unknown`; `accepted` is False then). BadTrace for what is no trace.

A line is read once (`reading`), then each replica and each ruling is searched alone (`replica_steps`,
`controller_steps`, `searching`). The first line in causal order that one of them cannot explain is the rejected one.
What a network does and the model's does not is `outside`: counted, with its line, neither accepted silently nor called
a fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from isr_broker.designs import PLANTED
from isr_broker.trace_reader import BadTrace, Event, Life, in_order
from isr_validate.controller_steps import ControllerSteps
from isr_validate.line_values import fields, mails
from isr_validate.refusal import refusals
from isr_validate.replica_steps import ReplicaSteps
from isr_validate.run_search import Budget, Found, search
from isr_validate.trace_lines import CONTROLLER, Level, Line, Lines, Owner
from isr_validate.trace_reader import Reading
from isr_validate.traced_designs import TRACED
from isr_validate.verdict import Refused, Rejected, Validated, Way

BUDGET: Final = 5_000_000


def validate(
    lives: Iterable[Life], level: Level = Level.FULL, budget: int = BUDGET, details: bool = False
) -> Validated:
    """Every line, to the end or to the first that is rejected; with `details` its table of false guards, too."""
    known = list(lives)
    settings = settings_of(known)
    events, bad = _ordered(known)
    lines = Lines(
        level,
        settings.get("insync.design", "kip-966"),
        settings.get("insync.waits.for.joiners") == "true",
        settings.get("insync.follower.reads") == "true",
    )
    Reading(settings, lines).all(events)
    done = Validated(stutters=lines.stutters, unchecked=lines.unchecked, level=level.value, lines=len(events))
    _search(lines, done, Budget(budget), details)
    limit = done.rejected.place if done.rejected is not None else len(events)
    for place, event in enumerate(events[:limit]):
        done.events = place + 1
        if level is not Level.CLIENT and isinstance(event.says.get("action"), str):
            done.steps[str(event.says["action"])] += 1
    if bad is not None and done.rejected is None:
        raise bad
    return done


def settings_of(lives: Iterable[Life]) -> Mapping[str, str]:
    """What the first header says; of today's design with a planted bug it is today's. BadTrace for an unknown one."""
    headers = [fields(life.header.get("settings")) for life in lives if life.header]
    settings = {name: str(value) for name, value in headers[0].items()} if headers else {}
    design = settings.get("insync.design", "kip-966")
    if design not in (*TRACED, *PLANTED):
        raise BadTrace(f"traces of {design} are not validated, for the model has no such design")
    return settings if design in TRACED else {**settings, "insync.design": "kip-966"}


def _ordered(lives: list[Life]) -> tuple[list[Event], BadTrace | None]:
    """All events that have their causes; and what is wrong behind them."""
    events: list[Event] = []
    try:
        for event in in_order(lives):
            events.append(event)
    except BadTrace as bad:
        return events, bad
    return events, None


def _search(lines: Lines, done: Validated, budget: Budget, details: bool) -> None:
    limit = len(lines.events)
    if lines.refused is not None:
        place, no = lines.refused
        assert isinstance(no, Refused)
        done.rejected = _rejected(lines, place, ("", ""), no.why, [Way("", no.why, no.guards, no.differences)], ())
        limit = place
    outside: list[tuple[int, str]] = []
    for owner, chain in lines.chains.items():
        wanted = [line for line in chain if line.place < limit]
        steps: ReplicaSteps | ControllerSteps
        if owner[0] == CONTROLLER:
            steps = rulings = ControllerSteps(lines, owner[1])
            found = search(rulings, wanted, budget)
        else:
            steps = replica = ReplicaSteps(lines, *owner)
            found = search(replica, wanted, budget)
        done.successors += found.tried
        done.widest = max(done.widest, found.widest)
        if found.spent:
            done.unknown = (
                f"{owner[0]}, {owner[1]}: the budget was spent after {found.explained} of {len(wanted)} lines"
            )
            continue
        if found.explained < len(wanted):
            place = wanted[found.explained].place
            done.rejected = _found_wrong(lines, owner, wanted[found.explained], found)
            if details:
                state = found.states[0] if found.states else None
                table, legend = refusals(lines, owner, wanted[found.explained], state)
                done.rejected = attrs.evolve(done.rejected, table=table, legend=legend)
            limit = place
        outside += [(place, why) for place, why in steps.outside.items() if place < limit]
    lines.outside += [(lines.events[p].life, lines.events[p].number + 1, why) for p, why in outside]
    places = {(event.life, event.number + 1): n for n, event in enumerate(lines.events)}
    done.outside = sorted((o for o in lines.outside if places[o[0], o[1]] < limit), key=lambda o: places[o[0], o[1]])
    if done.rejected is not None:
        done.unknown = None


def _found_wrong(lines: Lines, owner: Owner, line: Line, found: Found) -> Rejected:
    ways = list(found.ways)
    nearest = (
        min(ways, key=lambda w: (not w.differences, len(w.differences))) if ways else Way("", "no step leads here")
    )
    return _rejected(
        lines,
        line.place,
        owner,
        nearest.why,
        [nearest, *(w for w in ways if w is not nearest)],
        tuple(map(str, found.states)),
    )


def _rejected(lines: Lines, place: int, owner: Owner, why: str, ways: list[Way], states: tuple[str, ...]) -> Rejected:
    event = lines.events[place]
    recent: list[str] = []
    for earlier in lines.events[:place]:
        node = earlier.life.partition(".")[0]
        recent += [f"{node} -> {sent.to} {sent.kind} {sent.id}" for sent in mails(node, earlier.says.get("sent"))]
    return Rejected(
        event.life,
        event.number + 1,
        str(event.says.get("action", event.says.get("input"))),
        why,
        ways[0].guards if ways else (),
        ways[0].differences if ways else {},
        tuple(recent[-20:]),
        place,
        " ".join(owner).strip(),
        tuple(ways),
        states,
    )
