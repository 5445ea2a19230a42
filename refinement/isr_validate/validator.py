"""The trace validator: is there a run of the model in which the brokers write exactly these lines?

`validate(lives)` reads all lines (`trace_reader`), then searches for a run of each owner alone (`replica_steps`,
`controller_steps`). The first line in causal order that some owner cannot explain is the rejected one.

The search is depth first over pairs of a line and a state of the owner, and visits each pair once. A real network does
things that the environment of the model never does, such as delivering a message twice. Lines with those are `outside`:
they are counted and listed, neither accepted silently nor called a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

import attrs

from isr_broker.designs import PLANTED
from isr_broker.trace_reader import BadTrace, Event, Life, in_order
from isr_validate.controller_steps import ControllerSteps
from isr_validate.false_guards import false_guards
from isr_validate.kafka_design import KAFKA
from isr_validate.kafka_reader import KafkaLine, KafkaReader
from isr_validate.kafka_steps import KafkaControllerSteps, KafkaReplicaSteps, KafkaState
from isr_validate.kafka_trace import in_time, of_kafka
from isr_validate.model_step import TRACED
from isr_validate.replica_steps import ReplicaSteps
from isr_validate.trace_lines import CONTROLLER, Level, Line, Owner, TraceLines
from isr_validate.trace_reader import TraceReader
from isr_validate.trace_values import fields, sent_messages
from isr_validate.verdict import FailedAttempt, Rejection, Validation

BUDGET: Final = 5_000_000
Progress = Callable[[int, int], None]


def validate(
    lives: Iterable[Life],
    level: Level = Level.FULL,
    budget: int = BUDGET,
    details: bool = False,
    progress: Progress = lambda done, total: None,
) -> Validation:
    """Validate a trace up to the first line that is rejected; BadTrace if it is no trace.

    `level` says how much of a line must be explained. After `budget` states the result is `unknown`. With `details` a
    rejection has a table of the guards that are false. `progress` is told how many lines are explained, and of how
    many: a line that concerns several replicas has to be explained for each of them.
    """
    known = list(lives)
    settings = settings_of(known)
    bad: BadTrace | None = None
    if of_kafka(known):
        events = in_time(known)
        level = Level.EVENTS if level is Level.FULL else level
        lines = TraceLines(level, KAFKA + settings.get("insync.design", "kip-966"))
        KafkaReader(settings, lines).read_all(events)
    else:
        events, bad = _ordered(known)
        lines = TraceLines(
            level,
            settings.get("insync.design", "kip-966"),
            settings.get("insync.waits.for.joiners") == "true",
            settings.get("insync.follower.reads") == "true",
        )
        TraceReader(settings, lines).read_all(events)
    done = Validation(stutters=lines.stutters, unchecked=lines.unchecked, level=level.value, lines=len(events))
    _search(lines, done, Budget(budget), details, progress)
    limit = done.rejected.place if done.rejected is not None else len(events)
    for place, event in enumerate(events[:limit]):
        done.events = place + 1
        if level is not Level.CLIENT and isinstance(event.says.get("action"), str):
            done.steps[str(event.says["action"])] += 1
    if bad is not None and done.rejected is None:
        raise bad
    return done


def settings_of(lives: Iterable[Life]) -> Mapping[str, str]:
    """The settings in the first header; BadTrace if the model does not have its design.

    For a planted bug the design is today's, which the broker claims to have.
    """
    headers = [fields(life.header.get("settings")) for life in lives if life.header.get("settings")]
    settings = {name: str(value) for name, value in headers[0].items()} if headers else {}
    design = settings.get("insync.design", "kip-966")
    if design not in (*TRACED, *PLANTED):
        raise BadTrace(f"traces of {design} are not validated, for the model has no such design")
    return settings if design in TRACED else {**settings, "insync.design": "kip-966"}


def _ordered(lives: list[Life]) -> tuple[list[Event], BadTrace | None]:
    """The events in causal order, up to the first without its causes, and the error there, if there is one."""
    events: list[Event] = []
    try:
        for event in in_order(lives):
            events.append(event)
    except BadTrace as bad:
        return events, bad
    return events, None


def _search(lines: TraceLines, done: Validation, budget: Budget, details: bool, progress: Progress) -> None:
    limit, before = len(lines.events), 0
    total = sum(map(len, lines.by_owner.values()))
    if lines.refused is not None:
        place, no = lines.refused
        done.rejected = _rejected(
            lines, place, ("", ""), no.why, [FailedAttempt("", no.why, no.guards, no.differences)], ()
        )
        limit = place
    outside: list[tuple[int, str]] = []
    for owner, chain in lines.by_owner.items():
        wanted = [line for line in chain if line.place < limit]
        steps, found = _search_owner(lines, owner, wanted, budget, partial(_explained, progress, before, total))
        before += len(chain)
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
                state = state.replica if isinstance(state, KafkaState) else state
                table, legend = false_guards(lines, owner, wanted[found.explained], state)
                done.rejected = attrs.evolve(done.rejected, table=table, legend=legend)
            limit = place
        outside += [(place, why) for place, why in steps.outside.items() if place < limit]
    lines.outside += [(lines.events[p].life, lines.events[p].number + 1, why) for p, why in outside]
    places = {(event.life, event.number + 1): n for n, event in enumerate(lines.events)}
    done.outside = sorted((o for o in lines.outside if places[o[0], o[1]] < limit), key=lambda o: places[o[0], o[1]])
    if done.rejected is not None:
        done.unknown = None


def _search_owner(
    lines: TraceLines, owner: Owner, wanted: list[Line], budget: Budget, progress: Callable[[int], None]
) -> tuple[HasOutside, SearchResult]:
    """Search one owner's lines, with the steps of whichever broker wrote them."""
    node, tp = owner
    if lines.design.startswith(KAFKA):
        kafka = [line for line in wanted if isinstance(line, KafkaLine)]
        if node == CONTROLLER:
            made, withdrawn = lines.proposals.get(tp, []), lines.withdrawn.get(tp, [])
            decided = KafkaControllerSteps(ControllerSteps(lines, tp), made, withdrawn)
            return decided, search(decided, wanted, budget, progress)
        taken = KafkaReplicaSteps(ReplicaSteps(lines, node, tp), kafka)
        return taken, search(taken, wanted, budget, progress)
    if node == CONTROLLER:
        ruled = ControllerSteps(lines, tp)
        return ruled, search(ruled, wanted, budget, progress)
    replica = ReplicaSteps(lines, node, tp)
    return replica, search(replica, wanted, budget, progress)


def _explained(progress: Progress, before: int, total: int, here: int) -> None:
    progress(before + here, total)


def _found_wrong(lines: TraceLines, owner: Owner, line: Line, found: SearchResult) -> Rejection:
    attempts = list(found.attempts)
    nearest = (
        min(attempts, key=lambda w: (not w.differences, len(w.differences)))
        if attempts
        else FailedAttempt("", "no step leads here")
    )
    return _rejected(
        lines,
        line.place,
        owner,
        nearest.why,
        [nearest, *(w for w in attempts if w is not nearest)],
        tuple(map(str, found.states)),
    )


def _rejected(
    lines: TraceLines, place: int, owner: Owner, why: str, attempts: list[FailedAttempt], states: tuple[str, ...]
) -> Rejection:
    event = lines.events[place]
    recent: list[str] = []
    for earlier in lines.events[:place]:
        node = earlier.life.partition(".")[0]
        recent += [
            f"{node} -> {sent.to} {sent.kind} {sent.id}" for sent in sent_messages(node, earlier.says.get("sent"))
        ]
    return Rejection(
        event.life,
        event.number + 1,
        str(event.says.get("action", event.says.get("input"))),
        why,
        attempts[0].guards if attempts else (),
        attempts[0].differences if attempts else {},
        tuple(recent[-20:]),
        place,
        " ".join(owner).strip(),
        tuple(attempts),
        states,
    )


S = TypeVar("S", bound=Hashable)


class HasOutside(Protocol):
    """The steps of an owner, as far as a report needs them: lines that the environment of the model never has."""

    @property
    def outside(self) -> dict[int, str]:
        """Why, by the place of the line."""
        ...


class OwnerSteps(HasOutside, Protocol[S]):
    """The steps of an owner. `bounded` becomes true if not every hidden step was tried."""

    @property
    def bounded(self) -> bool:
        """Whether some were left untried."""
        ...

    def first(self) -> S:
        """The state before the first line."""
        ...

    def after(self, line: Line, state: S, attempts: list[FailedAttempt], /) -> Iterator[S]:
        """Every state after a line, the likeliest first; failed attempts are added to `attempts`."""
        ...


@attrs.define
class Budget:
    """How many more states all searches together may try."""

    left: int


@attrs.frozen
class SearchResult:
    """The result of a search: how many lines are explained, and whether the search was `spent` before it was decided.

    `states` are those that were possible before the first line that is not explained; `attempts` say how that line
    fails from them. `tried` counts states, and `widest` is the most states that were possible after the same line.
    """

    explained: int
    spent: bool
    tried: int
    widest: int
    attempts: tuple[FailedAttempt, ...] = ()
    states: tuple[object, ...] = ()


@attrs.define
class _Node(Generic[S]):
    """A state before a line, with the states after the line that are still to be tried."""

    at: int
    state: S
    rest: Iterator[S]
    attempts: list[FailedAttempt]
    led: bool = False


def search(
    steps: OwnerSteps[S], chain: list[Line], budget: Budget, progress: Callable[[int], None] = lambda explained: None
) -> SearchResult:
    """Search for a run through all lines: the first that is found, or the longest part of one."""
    seen: list[set[S]] = [set() for _ in range(len(chain) + 1)]
    failed: list[tuple[S, list[FailedAttempt]]] = []
    tried, furthest = 0, 0
    stack: list[_Node[S]] = []

    def opened(at: int, state: S) -> _Node[S]:
        attempts: list[FailedAttempt] = []
        return _Node(at, state, steps.after(chain[at], state, attempts), attempts)

    if chain:
        stack.append(opened(0, steps.first()))
    while stack and budget.left > 0:
        top = stack[-1]
        following = next(top.rest, None)
        if following is None:
            stack.pop()
            if not top.led and top.at == furthest:
                failed.append((top.state, top.attempts))
            continue
        top.led = True
        if following in seen[top.at + 1]:
            continue
        seen[top.at + 1].add(following)
        budget.left -= 1
        tried += 1
        if top.at + 1 > furthest:
            furthest, failed = top.at + 1, []
            progress(furthest)
        if furthest == len(chain):
            break
        stack.append(opened(top.at + 1, following))
    widest = max(map(len, seen))
    if furthest == len(chain):
        return SearchResult(furthest, False, tried, widest)
    attempts = tuple(way for _, found in failed for way in found)
    return SearchResult(furthest, bool(stack) or steps.bounded, tried, widest, attempts, tuple(s for s, _ in failed))
