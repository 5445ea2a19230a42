"""The ways in which a system under test is driven: along every edge, a sample, walks, or the steps of a stored trace.

A system that can save its state is driven along every edge, each from the saved state before it; any other is driven
along paths that begin with a reset.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Final, cast

import attrs

from isr_broker.snapshot import Json
from isr_check.reference import Evaluator
from isr_conform.broken_promises import PromiseWatch
from isr_conform.compared_run import MOST_COUNTED, BudgetSpent, ComparedRun, StepOutcome, answers_to
from isr_conform.conformance_result import Schedule
from isr_conform.edge_cover import RandomWalk, ReachableStates, SpanningTree, UncoveredEdges
from isr_conform.model_rules import step_text
from isr_conform.read_ahead import ReadAhead
from isr_conform.sut_client import SutFailure
from isr_conform.value_json import JsonObject

AHEAD: Final = 8
"""Branches that are asked for before the answer to the first of them has come."""
STRIDE: Final = 64
"""Steps of a walk that are chosen before the answer to the first of them has come."""
PIPE: Final = 1 << 15
"""Bytes of requests that may lie in the pipe to the system, which holds twice as many."""


def drive_every_edge(run: ComparedRun) -> None:
    """Drive every edge, each from the saved state before it."""
    run.count_edges(run.graph.explore(MOST_COUNTED))
    tokens: dict[int, Json] = {}
    for initial in run.graph.initial:
        run.reset(initial)
        run.predecessor[initial], tokens[initial] = None, run.save()
        level = [initial]
        while level:
            run.graph.expand(level)
            new: list[int] = []
            for state in level:
                for label, target in run.graph.steps(state).items():
                    if (state, label) in run.tried_edges:
                        continue
                    run.client.ask("restore", token=tokens[state])
                    _, run.path = ReachableStates(run.predecessor).path(state)
                    if run.step(state, label) is StepOutcome.TAKEN and target not in tokens:
                        run.predecessor[target], tokens[target] = (state, label), run.save()
                        new.append(target)
            level = new


def drive_depth_first(run: ComparedRun) -> None:
    """Drive every edge from the saved state before it; no more states are saved at a time than lie on one path."""
    run.predecessor = run.explore().predecessor
    visited = set(run.graph.initial)
    for initial in run.graph.initial:
        run.reset(initial)
        way: list[int] = []
        ahead = [(initial, run.save(), list(run.graph.steps(initial)))]
        while ahead:
            state, token, labels = ahead[-1]
            if not labels:
                run.client.ask("forget", token=token)
                ahead.pop()
                way = way[:-1]
                continue
            run.client.ask("restore", token=token)
            run.path, label = list(way), labels.pop()
            target = run.graph.steps(state)[label]
            if run.step(state, label) is StepOutcome.TAKEN and target not in visited:
                visited.add(target)
                way.append(label)
                ahead.append((target, run.save(), list(run.graph.steps(target))))


def drive_tree(run: ComparedRun) -> None:
    """Drive every edge, or a sample, from saved states, to each of which a shortest path leads.

    A state behind an edge that the system does not pass is gone to another way, if the model was explored.
    """
    reachable_states = run.explore()
    remaining_labels: dict[int, set[int]] = {}
    for state, label in sorted(run.drawn_edges):
        remaining_labels.setdefault(state, set()).add(label)
    if not run.limits.draws_edges:
        remaining_labels = {state: set(run.graph.steps(state)) for state in reachable_states.predecessor}
    while remaining_labels:
        run.predecessor = reachable_states.predecessor
        before = len(remaining_labels)
        _climb(run, SpanningTree(reachable_states, remaining_labels), remaining_labels)
        if len(remaining_labels) == before or run.limits.near_walks is not None:
            break
        reachable_states = run.graph.explore(None, lambda edge: edge not in run.blocked_edges)


def _climb(run: ComparedRun, tree: SpanningTree, remaining_labels: dict[int, set[int]]) -> None:
    """Drive what is left from each state of the tree, and take from `remaining_labels` what was driven.

    Some requests are on their way at a time, so that the system works while an answer is compared.
    """
    for initial in run.graph.initial:
        if initial not in tree.children:
            continue
        run.reset(initial)
        ahead = [(initial, run.save())]
        flying = Flight(run)
        old_tokens: list[Json] = []
        try:
            while ahead or flying.branches:
                while ahead and flying.has_room():
                    state, token = ahead.pop()
                    labels = sorted(remaining_labels.get(state, set()).union(tree.children[state]))
                    flying.send(Branch(state, token, labels), tree.children[state], old_tokens)
                    old_tokens = []
                branch = flying.branches[0]
                ahead += _receive_branch(run, flying, tree)
                old_tokens.append(branch.token)
                remaining_labels.pop(branch.state, None)
        except BudgetSpent:
            flying.land()
            raise


@attrs.frozen
class Branch:
    """Steps that are asked for from one saved state, all in one request."""

    state: int
    token: Json
    labels: list[int]


class Flight:
    """Branches that are asked for, and not yet compared: the oldest first."""

    def __init__(self, run: ComparedRun) -> None:
        self.run = run
        self.branches: deque[Branch] = deque()
        self._sizes: deque[int] = deque()
        self._answers: deque[JsonObject] = deque()

    def has_room(self) -> bool:
        """Whether one more may be asked for."""
        return not self.branches or (len(self.branches) < AHEAD and sum(self._sizes) < PIPE)

    def send(self, branch: Branch, save: Collection[int], old_tokens: list[Json]) -> None:
        """Ask for a branch; the states after the steps `save` are saved."""
        run = self.run
        enabled = run.hello.lists_enabled and branch.state not in run.asked_in
        steps = run.questions(branch.labels, save)
        self._sizes.append(
            run.client.send("branch", token=branch.token, enabled=enabled, steps=steps, forget=old_tokens)
        )
        self.branches.append(branch)

    def receive(self) -> tuple[Branch, JsonObject]:
        """The oldest branch with its answer."""
        self._sizes.popleft()
        return self.branches.popleft(), self._answers.popleft() if self._answers else self.run.client.receive()

    def ask(self, branch: Branch) -> JsonObject:
        """The answer to another branch, which is asked for now; those of all before it are kept for later."""
        steps = self.run.questions(branch.labels)
        self.run.client.send("branch", token=branch.token, enabled=False, steps=steps, forget=[])
        self.land()
        return self.run.client.receive()

    def land(self) -> None:
        """Wait for all answers that are still to come."""
        while len(self._answers) < len(self.branches):
            self._answers.append(self.run.client.receive())


def _receive_branch(run: ComparedRun, flying: Flight, tree: SpanningTree) -> list[tuple[int, Json]]:
    """Compare what came of the steps from a state: the states to go on from, with their tokens."""
    branch, answer = flying.receive()
    state, labels = branch.state, branch.labels
    run.start, run.path = ReachableStates(run.predecessor).path(state)
    after = answers_to(answer, labels)
    run.reached_states.add(state)
    if "enabled" in answer:
        unexpected_labels = run.note_enabled(state, run.messages.step_labels(answer["enabled"], run.labels))
        if unexpected_labels:
            own = flying.ask(Branch(state, branch.token, unexpected_labels))
            run.note_unexpected(state, unexpected_labels, own)
    next_states: list[tuple[int, Json]] = []
    for label, came in zip(labels, after, strict=True):
        run.check_limits()
        run.asking = label
        target = run.graph.steps(state)[label]
        outcome = run.messages.unlike(came.get("state"), target) if run.was_done(came) else run.refusal(came, target)
        run.asking = None
        if run.judge(state, label, outcome, []) is not StepOutcome.TAKEN:
            continue
        run.reached_states.add(target)
        if label in tree.children[state]:
            if "token" not in came:
                raise SutFailure("its answer to branch has no token for a step that was to be saved")
            next_states.append((target, came["token"]))
    return next_states


def drive_paths(run: ComparedRun) -> None:
    """Drive every edge, or a sample, along paths from resets.

    A path goes on for as long as edges are left nearby.
    """
    reached = run.explore()
    run.predecessor = reached.predecessor
    wanted = None if run.hello.node is None else run.asked_edges(reached)
    remaining = UncoveredEdges(run.graph, reached, run.drawn_edges if run.limits.draws_edges else wanted)
    while (nearest := remaining.begin()) is not None:
        initial, route = nearest
        run.reset(initial)
        state: int | None = initial
        while state is not None and (label := _next_label(run, remaining, state, route)) is not None:
            state = _drive(run, remaining, state, label)


def _next_label(run: ComparedRun, remaining: UncoveredEdges, state: int, route: list[int]) -> int | None:
    """The next step: of the route to an uncovered edge, or else an uncovered edge itrun.

    None if no edge is left.
    """
    if route:
        return route.pop(0)
    if (label := remaining.next_from(state)) is not None:
        return label
    if (more := remaining.route(state)) is None:
        return None
    route += more
    return route.pop(0)


def _drive(run: ComparedRun, remaining: UncoveredEdges, state: int, label: int) -> int | None:
    """Drive an edge; the state to go on from, None if the path ends here."""
    went = run.step(state, label)
    remaining.remove_edge((state, label), went is StepOutcome.TAKEN)
    match went:
        case StepOutcome.TAKEN:
            return run.graph.steps(state)[label]
        case StepOutcome.NOT_TAKEN:
            return state if remaining.next_from(state) is not None else None
        case StepOutcome.DIVERGED:
            return None


def drive_walks(run: ComparedRun, walks: int) -> None:
    """Drive so many walks, each from a reset.

    Steps are asked for before those before them were compared, until the system does something else than the model. A
    part of the model is not asked ahead, for what it is told then would not go with what it has.
    """
    walk, client = RandomWalk(run.graph, run.limits.seed), ReadAhead(run.client)
    run.client = client
    run.progress_unit, run.of = "walks", walks
    for run.progress_count in range(walks):
        state, before, went = walk.start(), "", StepOutcome.TAKEN
        run.reset(state)
        while went is not StepOutcome.DIVERGED and len(run.path) < run.limits.walk_length:
            is_ahead = run.hello.surroundings is None and not client.surprises
            most = min(STRIDE, run.limits.walk_length - len(run.path)) if is_ahead else 1
            labels = list(walk.steps(state, before, run.blocked_edges, most))
            if not labels:
                break
            if is_ahead:
                client.expect(run.requests_along(state, labels), PIPE)
            for n, label in enumerate(labels, 1):
                went = run.step(state, label)
                if went is StepOutcome.TAKEN:
                    state, before = run.graph.steps(state)[label], run.labels.name(label)[0]
                else:
                    client.take_back()
                if client.surprises:
                    walk.take_back(n)
                    break


def drive_schedule(run: ComparedRun, schedule: Schedule) -> None:
    """Drive the steps of a stored trace, without those that the model forbids in its present state.

    After each that the system took it is asked which promises broke.
    """
    starts = Evaluator(run.instance).initial_states()
    names = [name for name, _ in run.instance.initial.parameters]
    wanted = tuple(schedule.initial.get(name) for name in names)
    state = run.packing.packed(next((s for given, s in starts if given == wanted), starts[0][1]))
    run.reset(state)
    run.of = len(schedule.steps)
    watch = PromiseWatch(run.instance, run.hello.variables)
    run.result.broken_promises += watch.begins(run.packing.unpack(state))
    for number, (action, given) in enumerate(schedule.steps, 1):
        parameters = tuple(cast("int", value) for value in given.values())
        label = run.labels.number(action, *parameters)
        target = run.graph.steps(state).get(label)
        if target is None or run.step(state, label) is StepOutcome.NOT_TAKEN:
            run.result.skipped_steps.append(step_text(run.instance, action, parameters))
        elif (state, label) in run.blocked_edges:
            break
        else:
            text = step_text(run.instance, action, parameters)
            states = run.packing.unpack(state), run.packing.unpack(target)
            run.result.broken_promises += watch.steps(*states, number, text)
            state = target
