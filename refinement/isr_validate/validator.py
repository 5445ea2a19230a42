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
from isr_validate.model_step import TRACED_DESIGNS
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
    all_lives = list(lives)
    settings = settings_of(all_lives)
    bad: BadTrace | None = None
    if of_kafka(all_lives):
        events = in_time(all_lives)
        level = Level.EVENTS if level is Level.FULL else level
        lines = TraceLines(level, KAFKA + settings.get("insync.design", "kip-966"))
        KafkaReader(settings, lines).read_all(events)
    else:
        events, bad = _order_events(all_lives)
        lines = TraceLines(
            level,
            settings.get("insync.design", "kip-966"),
            settings.get("insync.waits.for.joiners") == "true",
            settings.get("insync.follower.reads") == "true",
        )
        TraceReader(settings, lines).read_all(events)
    validation = Validation(
        stutters=lines.stutters, unchecked_lines=lines.unchecked_lines, level=level.value, lines=len(events)
    )
    _search(lines, validation, Budget(budget), details, progress)
    limit = validation.rejected.place if validation.rejected is not None else len(events)
    for place, event in enumerate(events[:limit]):
        validation.events = place + 1
        if level is not Level.CLIENT and isinstance(event.says.get("action"), str):
            validation.steps[str(event.says["action"])] += 1
    if bad is not None and validation.rejected is None:
        raise bad
    return validation


def settings_of(lives: Iterable[Life]) -> Mapping[str, str]:
    """The settings in the first header; BadTrace if the model does not have its design.

    For a planted bug the design is today's, which the broker claims to have.
    """
    headers = [fields(life.header.get("settings")) for life in lives if life.header.get("settings")]
    settings = {name: str(value) for name, value in headers[0].items()} if headers else {}
    design = settings.get("insync.design", "kip-966")
    if design not in (*TRACED_DESIGNS, *PLANTED):
        raise BadTrace(f"traces of {design} are not validated, for the model has no such design")
    return settings if design in TRACED_DESIGNS else {**settings, "insync.design": "kip-966"}


def _order_events(lives: list[Life]) -> tuple[list[Event], BadTrace | None]:
    """The events in causal order, up to the first without its causes, and the error there, if there is one."""
    events: list[Event] = []
    try:
        for event in in_order(lives):
            events.append(event)
    except BadTrace as bad:
        return events, bad
    return events, None


def _search(lines: TraceLines, validation: Validation, budget: Budget, details: bool, progress: Progress) -> None:
    limit, before = len(lines.events), 0
    total = sum(map(len, lines.by_owner.values()))
    if lines.refusal is not None:
        place, no = lines.refusal
        validation.rejected = _rejected(
            lines, place, ("", ""), no.why, [FailedAttempt("", no.why, no.guards, no.differences)], ()
        )
        limit = place
    outside: list[tuple[int, str]] = []
    for owner, chain in lines.by_owner.items():
        owner_lines = [line for line in chain if line.place < limit]
        steps, result = _search_owner(
            lines, owner, owner_lines, budget, partial(_report_progress, progress, before, total)
        )
        before += len(chain)
        validation.successors += result.tried_states
        validation.widest = max(validation.widest, result.widest)
        if result.is_spent:
            spent = f"the budget was spent after {result.explained_lines} of {len(owner_lines)} lines"
            validation.unknown = f"{owner[0]}, {owner[1]}: {spent}"
            continue
        if result.explained_lines < len(owner_lines):
            place = owner_lines[result.explained_lines].place
            validation.rejected = _found_wrong(lines, owner, owner_lines[result.explained_lines], result)
            if details:
                state = result.states[0] if result.states else None
                state = state.replica if isinstance(state, KafkaState) else state
                table, legend = false_guards(lines, owner, owner_lines[result.explained_lines], state)
                validation.rejected = attrs.evolve(validation.rejected, table=table, legend=legend)
            limit = place
        outside += [(place, why) for place, why in steps.outside.items() if place < limit]
    lines.outside += [(lines.events[p].life, lines.events[p].number + 1, why) for p, why in outside]
    places = {(event.life, event.number + 1): n for n, event in enumerate(lines.events)}
    validation.outside = sorted(
        (o for o in lines.outside if places[o[0], o[1]] < limit), key=lambda o: places[o[0], o[1]]
    )
    if validation.rejected is not None:
        validation.unknown = None


def _search_owner(
    lines: TraceLines, owner: Owner, owner_lines: list[Line], budget: Budget, progress: Callable[[int], None]
) -> tuple[HasOutside, SearchResult]:
    """Search one owner's lines, with the steps of whichever broker wrote them."""
    node, tp = owner
    if lines.design.startswith(KAFKA):
        kafka = [line for line in owner_lines if isinstance(line, KafkaLine)]
        if node == CONTROLLER:
            made, withdrawals = lines.proposals.get(tp, []), lines.withdrawals.get(tp, [])
            decided = KafkaControllerSteps(ControllerSteps(lines, tp), made, withdrawals)
            return decided, search(decided, owner_lines, budget, progress)
        taken = KafkaReplicaSteps(ReplicaSteps(lines, node, tp), kafka)
        return taken, search(taken, owner_lines, budget, progress)
    if node == CONTROLLER:
        ruled = ControllerSteps(lines, tp)
        return ruled, search(ruled, owner_lines, budget, progress)
    replica = ReplicaSteps(lines, node, tp)
    return replica, search(replica, owner_lines, budget, progress)


def _report_progress(progress: Progress, before: int, total: int, here: int) -> None:
    progress(before + here, total)


def _found_wrong(lines: TraceLines, owner: Owner, line: Line, result: SearchResult) -> Rejection:
    attempts = list(result.attempts)
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
        tuple(map(str, result.states)),
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

    remaining_states: int


@attrs.frozen
class SearchResult:
    """The result of a search: how many lines are explained, and whether the search was `is_spent` before it was
    decided.

    `states` are those that were possible before the first line that is not explained; `attempts` say how that line
    fails from them. `tried_states` counts states, and `widest` is the most states that were possible after the same
    line.
    """

    explained_lines: int
    is_spent: bool
    tried_states: int
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
    has_successor: bool = False


def search(
    steps: OwnerSteps[S], chain: list[Line], budget: Budget, progress: Callable[[int], None] = lambda explained: None
) -> SearchResult:
    """Search for a run through all lines: the first that is found, or the longest part of one."""
    visited: list[set[S]] = [set() for _ in range(len(chain) + 1)]
    failed: list[tuple[S, list[FailedAttempt]]] = []
    tried_states, furthest = 0, 0
    stack: list[_Node[S]] = []

    def open_node(at: int, state: S) -> _Node[S]:
        attempts: list[FailedAttempt] = []
        return _Node(at, state, steps.after(chain[at], state, attempts), attempts)

    if chain:
        stack.append(open_node(0, steps.first()))
    while stack and budget.remaining_states > 0:
        top = stack[-1]
        following = next(top.rest, None)
        if following is None:
            stack.pop()
            if not top.has_successor and top.at == furthest:
                failed.append((top.state, top.attempts))
            continue
        top.has_successor = True
        if following in visited[top.at + 1]:
            continue
        visited[top.at + 1].add(following)
        budget.remaining_states -= 1
        tried_states += 1
        if top.at + 1 > furthest:
            furthest, failed = top.at + 1, []
            progress(furthest)
        if furthest == len(chain):
            break
        stack.append(open_node(top.at + 1, following))
    widest = max(map(len, visited))
    if furthest == len(chain):
        return SearchResult(furthest, False, tried_states, widest)
    attempts = tuple(way for _, found in failed for way in found)
    return SearchResult(
        furthest, bool(stack) or steps.bounded, tried_states, widest, attempts, tuple(s for s, _ in failed)
    )
