"""`insync conform`: a system under test is driven through the state graph of the model and compared after each step.

The system must take each step that the model allows. The state after it must be the model's, including the messages and
answers in it. If the system lists its enabled steps, they must be exactly those that the model allows. A system that
can save its state is driven along every edge, each from the saved state before it; any other is driven along paths that
begin with a reset. docs/conform.md states the protocol.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Final, TypeAlias, cast

import attrs

from isr_broker.snapshot import Json
from isr_check.reference import Evaluator, Parameters
from isr_conform.edge_cover import (
    Edge,
    ModelGraph,
    RandomWalk,
    ReachableStates,
    SpanningTree,
    UncoveredEdges,
    sample_edges,
)
from isr_conform.model_rules import ModelRules, step_text
from isr_conform.sut_client import ProcessClient, SutClient, SutFailure
from isr_conform.sut_messages import Hello, ModelMessages, Place, greet
from isr_conform.value_json import JsonObject, json_text
from isr_lang import Instance
from isr_lang.declare import Value
from isr_replay.packed_states import Packing
from isr_replay.replay import Kind, Named

AHEAD: Final = 8
"""Branches that are asked for before the answer to the first of them has come."""
PIPE: Final = 1 << 15
"""Bytes of requests that may lie in the pipe to the system, which holds twice as many."""
MOST_COUNTED: Final = 200_000
"""States of the model that are counted before its graph is driven, or when only a part of it is."""


# What is asked for, and what comes of it


@attrs.frozen(kw_only=True)
class Schedule:
    """The steps of a stored trace: the parameters of its initial state, then each action with its parameters.

    Values are the integers that the engines use.
    """

    initial: Mapping[str, object]
    steps: tuple[tuple[str, Mapping[str, object]], ...]


@attrs.frozen(kw_only=True)
class Limits:
    """How much is driven: a schedule, or walks, or a sample of the edges, or (with none of these given) every edge."""

    schedule: Schedule | None = None
    walks: int | None = None
    """How many walks, each of at most `walk_length` steps."""
    per_action: int | None = None
    """How many edges of each action are drawn at random; the edges on the paths to them are driven as well."""
    paths: bool = False
    """Drive paths from resets even if the system can save its state."""
    walk_length: int = 40
    seed: int = 0
    stop_at_first: bool = False
    """End the run at the first difference."""
    max_steps: int | None = None
    max_seconds: float | None = None
    stop: Callable[[], bool] = lambda: False
    """Asked before each step: whether somebody wants the run to end with what it has."""

    @property
    def partial(self) -> bool:
        """Whether the run can go without the whole state graph."""
        return self.walks is not None or self.schedule is not None


@attrs.frozen(kw_only=True)
class Difference:
    """A step at which system and model differ, with the shortest path known to it."""

    kind: Kind
    action: str
    parameters: Parameters
    initial: int
    path: tuple[Named, ...]
    places: tuple[tuple[str, Json, Json], ...] = ()
    """Where the states differ, with the model's value and the system's value."""
    reason: str = ""
    """What the system gave as its reason to refuse the step."""
    rules: tuple[str, ...] = ()
    """What the action is, then the guards or updates of the model that the system breaks."""


Explain: TypeAlias = "Callable[[str, JsonObject, str, JsonObject, Sequence[Place]], str]"
"""What is known of a difference, given its kind, the state before, action, parameters and places; "" if nothing is."""


Progress: TypeAlias = "Callable[[str, int, int | None], None]"
"""Called on the way with what is counted, how many are done, and of how many, None if that is not known."""


@attrs.define(kw_only=True)
class ConformanceResult:
    """What was driven, and what differed.

    Fields `of_...` are the totals in the model, None if they were not counted.
    """

    name: str
    design: str
    constants: Mapping[str, Value]
    walks: int | None
    seed: int
    saves: bool
    variables: tuple[str, ...]
    scheduled: bool = False
    """Whether a stored trace was driven."""
    per_action: int | None = None
    drawn: int = 0
    of_drawn: int = 0
    """Edges that were drawn at random, `per_action` of each action; `drawn` counts those that were driven."""
    left_out: tuple[str, ...] = ()
    """Actions that the system does not implement, by its answer to `hello`."""
    complete: bool = False
    """Whether everything that the limits ask for was driven."""
    states: int = 0
    of_states: int | None = None
    edges: int = 0
    of_edges: int | None = None
    steps: int = 0
    resets: int = 0
    asked: int = 0
    """Requests of any kind."""
    actions: Counter[str] = attrs.field(factory=Counter[str])
    of_actions: Counter[str] | None = None
    pairs: int = 0
    """Pairs of actions that were driven one right after the other."""
    of_pairs: int | None = None
    skipped: list[str] = attrs.field(factory=list[str])
    """Steps of a schedule that the design does not allow in the state in which the schedule has them."""
    cannot: Counter[str] = attrs.field(factory=Counter[str])
    """How many edges the system answered with `cannot`, by the reason that it gave."""
    explained: Counter[str] = attrs.field(factory=Counter[str])
    """Differences that are known, by what is known of them; they are not in `count`."""
    count: Counter[Kind] = attrs.field(factory=Counter[Kind])
    differences: list[Difference] = attrs.field(factory=list[Difference])
    seconds: float = 0.0

    @property
    def conforms(self) -> bool:
        """Whether no difference was found."""
        return not self.count


# The run


class StepOutcome(Enum):
    """In which state a system is after it was asked for a step."""

    TAKEN = auto()
    """In the state after the step, as the model is."""
    NOT_TAKEN = auto()
    """Still in the state before the step."""
    DIVERGED = auto()
    """In another state; nothing can be driven from there without a reset."""


class _BudgetSpent(Exception):
    """The limit of steps or seconds is reached, or the run was to stop at the first difference."""


class Conformance:
    """One run against one system under test."""

    def __init__(
        self,
        instance: Instance,
        client: SutClient,
        limits: Limits,
        progress: Progress,
        explain: Explain = lambda kind, before, action, parameters, places: "",
    ) -> None:
        self.explain = explain
        self.instance, self.client, self.limits, self.progress = instance, client, limits, progress
        self.hello: Hello = greet(client, instance)
        self.packing = Packing(instance)
        self.messages = ModelMessages(instance, self.packing, self.hello.variables)
        self.graph = ModelGraph(instance, self.packing, self.hello.actions)
        self.labels = self.graph.labels
        self.rules = ModelRules(instance)
        self.began = time.monotonic()
        self.blocked: set[Edge] = set()
        self.tried: set[Edge] = set()
        self.undeclared: set[Edge] = set()
        """Steps of the model that the system did not list as enabled."""
        self.asked_in: set[int] = set()
        self.reached: set[int] = set()
        self.pairs: set[tuple[str, str]] = set()
        self.found: dict[tuple[Kind, str], tuple[Difference, int, int]] = {}
        self.path: list[int] = []
        self.start = 0
        self.asking: int | None = None
        self._reason = ""
        self.predecessor: dict[int, Edge | None] = {}
        self.drawn: set[Edge] = set()
        self.counted, self.done, self.of = "edges", 0, cast("int | None", None)
        """What is told of the progress: what is counted, how many are done, and of how many."""
        off = tuple(a.name for a in instance.actions if a.name not in self.hello.actions)
        self.result = ConformanceResult(
            name=self.hello.name,
            design=instance.design.name,
            constants=instance.constants,
            walks=limits.walks,
            per_action=limits.per_action,
            seed=limits.seed,
            scheduled=limits.schedule is not None,
            saves=self.hello.saves,
            variables=self.hello.variables,
            left_out=off,
        )

    def run(self) -> ConformanceResult:
        """Drive the system within the limits; SutFailure if it cannot be driven any further."""
        try:
            if self.limits.schedule is not None:
                self._drive_schedule(self.limits.schedule)
            elif self.limits.walks is not None:
                self._drive_walks(self.limits.walks)
            elif self.hello.branches and not self.limits.paths:
                self._drive_tree()
            elif self.hello.saves and not self.limits.paths and self.limits.per_action is None:
                self._drive_depth_first() if self.hello.forgets else self._drive_every_edge()
            else:
                self._drive_paths()
            self.result.complete = True
        except _BudgetSpent:
            pass
        except SutFailure as problem:
            raise SutFailure(f"{problem}{self._steps_so_far()}", problem.ended) from None
        self._count_totals()
        return self.result

    # One request

    def reset(self, initial: int) -> None:
        """Put the system into an initial state; SutFailure if its snapshot then shows another state."""
        self.path, self.start, self.asking = [], initial, None
        self.client.ask("reset", state=self.messages.state(initial))
        self.result.resets += 1
        places = self.messages.differences(self.client, initial)
        if places:
            place, model, system = places[0]
            raise SutFailure(f"after its reset {place} is {json_text(system)}, not {json_text(model)}")
        self._note_state(initial)

    def _note_state(self, state: int) -> None:
        self.reached.add(state)
        if self.hello.lists_enabled and state not in self.asked_in:
            self._note_enabled(state, self.messages.enabled(self.client, self.labels))

    def _note_enabled(self, state: int, listed: set[int]) -> None:
        self.asked_in.add(state)
        model = self.graph.steps(state).keys()
        for label in sorted(listed - model):
            self._note_difference(Kind.UNEXPECTED, state, label)
        self.undeclared |= {(state, label) for label in model - listed}

    def step(self, state: int, label: int) -> StepOutcome:
        """Ask for a step that the model allows, and compare the state after it."""
        self._check_limits()
        answer = self._ask_step(state, label)
        moved = self.messages.differences(self.client, state) if isinstance(answer, str) else []
        went = self._judge(state, label, answer, moved)
        if went is StepOutcome.TAKEN:
            self.path.append(label)
            self._note_state(self.graph.steps(state)[label])
        return went

    def _judge(self, state: int, label: int, answer: list[Place] | str | None, moved: list[Place]) -> StepOutcome:
        """What came of a step: see `_ask_step`; `moved` is where a refused one has changed the state nevertheless."""
        action, _ = self.labels.name(label)
        edge = (state, label)
        self.result.steps += 1
        new = self._first_try(edge)
        if answer is None or isinstance(answer, str):
            self.blocked.add(edge)
            if new and answer is not None:
                self._note_difference(Kind.MISSING, state, label, moved, answer)
            elif new:
                self.result.cannot[self._reason] += 1
            return StepOutcome.DIVERGED if moved else StepOutcome.NOT_TAKEN
        if answer:
            self.blocked.add(edge)
            if new:
                self._note_difference(Kind.INCONSISTENT, state, label, answer)
            return StepOutcome.DIVERGED
        if new and edge in self.undeclared:
            self._note_difference(
                Kind.MISSING, state, label, reason="it takes it, and does not say so among what is enabled"
            )
        elif new:
            self.result.edges += 1
            self.result.actions[action] += 1
        if self.path:
            self.pairs.add((self.labels.name(self.path[-1])[0], action))
        return StepOutcome.TAKEN

    def _ask_step(self, state: int, label: int) -> list[Place] | str | None:
        """Ask for a step: the places that differ after it.

        Or the reason if it is refused; None if the answer is `cannot`.
        """
        action, parameters = self.labels.name(label)
        self.asking = label
        answer = self.client.ask("step", action=action, parameters=self.messages.parameters(action, parameters))
        if not self._done(answer):
            return self._not_done(answer)
        places = self.messages.differences(self.client, self.graph.steps(state)[label])
        self.asking = None
        return places

    def _done(self, answer: JsonObject) -> bool:
        if answer.get("done") is True:
            return True
        if "cannot" in answer or answer.get("done") is False:
            return False
        raise SutFailure(f"its answer to step says neither that it is done nor that it is not: {answer}")

    def _not_done(self, answer: JsonObject) -> str | None:
        if "cannot" not in answer:
            return str(answer.get("why", ""))
        self._reason = str(answer["cannot"])
        return None

    def _first_try(self, edge: Edge) -> bool:
        if edge in self.tried:
            return False
        self.tried.add(edge)
        if self.limits.walks is None and (not self.drawn or edge in self.drawn):
            self.done += 1
        return True

    def _check_limits(self) -> None:
        limits, done = self.limits, self.result
        if limits.max_steps is not None and done.steps >= limits.max_steps:
            raise _BudgetSpent
        if limits.max_seconds is not None and time.monotonic() - self.began >= limits.max_seconds:
            raise _BudgetSpent
        if limits.stop():
            raise _BudgetSpent
        if done.steps % 64 == 63:
            self.progress(f"{self.counted} driven", self.done, self.of)

    def _steps_so_far(self) -> str:
        """The steps since the last reset, for an error message."""
        named = [step_text(self.instance, *self.labels.name(label)) for label in self.path]
        if self.asking is not None:
            named.append(step_text(self.instance, *self.labels.name(self.asking)))
        if not named:
            return ""
        *before, last = named
        return f" (in step {len(named)}, {last}" + (f", after {', '.join(before)})" if before else ")")

    # Strategies

    def _explore(self) -> ReachableStates:
        """The states of the model; the sample is drawn from their edges, and how much is to do is known."""
        reached = self.graph.explore(None, told=self._explored)
        if self.limits.per_action is not None:
            self.drawn = sample_edges(self.graph, reached, self.limits.per_action, self.limits.seed)
            self.counted, self.of = "sampled edges", len(self.drawn)
        else:
            self._count_edges(reached)
        return reached

    def _explored(self, states: int) -> None:
        if self.limits.stop():
            raise _BudgetSpent
        self.progress("states of the model explored", states, None)

    def _count_edges(self, reached: ReachableStates) -> None:
        if reached.complete:
            self.of = sum(len(self.graph.steps(state)) for state in reached.predecessor)

    def _drive_every_edge(self) -> None:
        """Drive every edge, each from the saved state before it."""
        self._count_edges(self.graph.explore(MOST_COUNTED))
        tokens: dict[int, Json] = {}
        for initial in self.graph.initial:
            self.reset(initial)
            self.predecessor[initial], tokens[initial] = None, self._save()
            level = [initial]
            while level:
                self.graph.expand(level)
                new: list[int] = []
                for state in level:
                    for label, target in self.graph.steps(state).items():
                        if (state, label) in self.tried:
                            continue
                        self.client.ask("restore", token=tokens[state])
                        _, self.path = ReachableStates(self.predecessor).path(state)
                        if self.step(state, label) is StepOutcome.TAKEN and target not in tokens:
                            self.predecessor[target], tokens[target] = (state, label), self._save()
                            new.append(target)
                level = new

    def _drive_depth_first(self) -> None:
        """Drive every edge from the saved state before it; no more states are saved at a time than lie on one path."""
        self.predecessor = self._explore().predecessor
        visited = set(self.graph.initial)
        for initial in self.graph.initial:
            self.reset(initial)
            way: list[int] = []
            ahead = [(initial, self._save(), list(self.graph.steps(initial)))]
            while ahead:
                state, token, labels = ahead[-1]
                if not labels:
                    self.client.ask("forget", token=token)
                    ahead.pop()
                    way = way[:-1]
                    continue
                self.client.ask("restore", token=token)
                self.path, label = list(way), labels.pop()
                target = self.graph.steps(state)[label]
                if self.step(state, label) is StepOutcome.TAKEN and target not in visited:
                    visited.add(target)
                    way.append(label)
                    ahead.append((target, self._save(), list(self.graph.steps(target))))

    def _save(self) -> Json:
        answer = self.client.ask("save")
        if "token" not in answer:
            raise SutFailure("its answer to save has no token")
        return answer["token"]

    def _drive_tree(self) -> None:
        """Drive every edge, or a sample, from saved states, to each of which a shortest path leads.

        A state behind an edge that the system does not pass is gone to another way.
        """
        reached = self._explore()
        left: dict[int, set[int]] = {}
        for state, label in sorted(self.drawn):
            left.setdefault(state, set()).add(label)
        if self.limits.per_action is None:
            left = {state: set(self.graph.steps(state)) for state in reached.predecessor}
        while left:
            self.predecessor = reached.predecessor
            before = len(left)
            self._climb(SpanningTree(reached, left), left)
            if len(left) == before:
                break
            reached = self.graph.explore(None, lambda edge: edge not in self.blocked)

    def _climb(self, tree: SpanningTree, left: dict[int, set[int]]) -> None:
        """Drive what is left from each state of the tree, and take from `left` what was driven.

        Some requests are on their way at a time, so that the system works while an answer is compared.
        """
        for initial in self.graph.initial:
            if initial not in tree.children:
                continue
            self.reset(initial)
            ahead = [(initial, self._save())]
            flying: deque[tuple[int, list[int], int]] = deque()
            used: list[Json] = []
            try:
                while ahead or flying:
                    while ahead and (not flying or (len(flying) < AHEAD and sum(f[2] for f in flying) < PIPE)):
                        state, token = ahead.pop()
                        labels = sorted(left.get(state, set()).union(tree.children[state]))
                        size = self._send_branch(state, token, labels, tree, used)
                        flying.append((state, labels, size))
                        used = [token]
                    state, labels, _ = flying.popleft()
                    ahead += self._receive_branch(state, labels, tree)
                    left.pop(state, None)
            except _BudgetSpent:
                for _ in flying:  # their answers are still to come
                    self.client.receive()
                raise

    def _send_branch(self, state: int, token: Json, labels: list[int], tree: SpanningTree, used: list[Json]) -> int:
        steps: list[Json] = []
        for label in labels:
            action, parameters = self.labels.name(label)
            given = self.messages.parameters(action, parameters)
            steps.append({"action": action, "parameters": given, "save": label in tree.children[state]})
        enabled = self.hello.lists_enabled and state not in self.asked_in
        return self.client.send("branch", token=token, enabled=enabled, steps=steps, forget=used)

    def _receive_branch(self, state: int, labels: list[int], tree: SpanningTree) -> list[tuple[int, Json]]:
        """Compare what came of the steps from a state: the states to go on from, with their tokens."""
        self.start, self.path = ReachableStates(self.predecessor).path(state)
        answer = self.client.receive()
        after = answer.get("after")
        if not isinstance(after, list) or len(after) != len(labels):
            raise SutFailure("its answer to branch has not one answer for each step")
        self.reached.add(state)
        if "enabled" in answer:
            self._note_enabled(state, self.messages.listed(answer["enabled"], self.labels))
        found: list[tuple[int, Json]] = []
        for label, came in zip(labels, after, strict=True):
            self._check_limits()
            self.asking = label
            if not isinstance(came, dict):
                raise SutFailure("its answer to branch has not one object for each step")
            target = self.graph.steps(state)[label]
            outcome = self.messages.unlike(came.get("state"), target) if self._done(came) else self._not_done(came)
            self.asking = None
            if self._judge(state, label, outcome, []) is not StepOutcome.TAKEN:
                continue
            self.reached.add(target)
            if label in tree.children[state]:
                if "token" not in came:
                    raise SutFailure("its answer to branch has no token for a step that was to be saved")
                found.append((target, came["token"]))
        return found

    def _drive_paths(self) -> None:
        """Drive every edge, or a sample, along paths from resets.

        A path goes on for as long as edges are left nearby.
        """
        reached = self._explore()
        self.predecessor = reached.predecessor
        remaining = UncoveredEdges(self.graph, reached, None if self.limits.per_action is None else self.drawn)
        while (nearest := remaining.begin()) is not None:
            initial, route = nearest
            self.reset(initial)
            state: int | None = initial
            while state is not None and (label := self._next_label(remaining, state, route)) is not None:
                state = self._drive(remaining, state, label)

    def _next_label(self, remaining: UncoveredEdges, state: int, route: list[int]) -> int | None:
        """The next step: of the route to an uncovered edge, or else an uncovered edge itself.

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

    def _drive(self, remaining: UncoveredEdges, state: int, label: int) -> int | None:
        """Drive an edge; the state to go on from, None if the path ends here."""
        went = self.step(state, label)
        remaining.done((state, label), went is StepOutcome.TAKEN)
        match went:
            case StepOutcome.TAKEN:
                return self.graph.steps(state)[label]
            case StepOutcome.NOT_TAKEN:
                return state if remaining.next_from(state) is not None else None
            case StepOutcome.DIVERGED:
                return None

    def _drive_walks(self, walks: int) -> None:
        """Drive so many walks, each from a reset."""
        walk = RandomWalk(self.graph, self.limits.seed)
        self.counted, self.of = "walks", walks
        for self.done in range(walks):
            state, before, went = walk.start(), "", StepOutcome.TAKEN
            self.reset(state)
            while went is not StepOutcome.DIVERGED and len(self.path) < self.limits.walk_length:
                label = walk.step(state, before, self.blocked)
                if label is None:
                    break
                went = self.step(state, label)
                if went is StepOutcome.TAKEN:
                    state, before = self.graph.steps(state)[label], self.labels.name(label)[0]

    def _drive_schedule(self, schedule: Schedule) -> None:
        """Drive the steps of a stored trace, without those that the model forbids in its present state."""
        starts = Evaluator(self.instance).initial_states()
        names = [name for name, _ in self.instance.initial.parameters]
        wanted = tuple(schedule.initial.get(name) for name in names)
        state = self.packing.packed(next((s for given, s in starts if given == wanted), starts[0][1]))
        self.reset(state)
        self.of = len(schedule.steps)
        for action, given in schedule.steps:
            parameters = tuple(cast("int", value) for value in given.values())
            label = self.labels.number(action, *parameters)
            target = self.graph.steps(state).get(label)
            if target is None or self.step(state, label) is StepOutcome.NOT_TAKEN:
                self.result.skipped.append(step_text(self.instance, action, parameters))
            elif (state, label) in self.blocked:
                break
            else:
                state = target

    # Differences

    def _note_difference(
        self, kind: Kind, state: int, label: int, places: list[Place] | None = None, reason: str = ""
    ) -> None:
        """Count a difference; for each kind and action, keep the one that is nearest to an initial state."""
        action, parameters = self.labels.name(label)
        given = self.messages.parameters(action, parameters)
        known_as = self.explain(kind.value, self.messages.state(state), action, given, places or ())
        if known_as:
            self.result.explained[known_as] += 1
            return
        self.result.count[kind] += 1
        known = self.found.get((kind, action))
        if known is not None and self._distance(known[1]) <= self._distance(state):
            return
        rules = self._rules(kind, state, label, [place.partition("[")[0] for place, _, _ in places or ()])
        difference = Difference(
            kind=kind,
            action=action,
            parameters=parameters,
            initial=self.start,
            path=tuple(self.labels.name(step) for step in self.path),
            places=tuple(places or ()),
            reason=reason,
            rules=(self.rules.summary(action), *rules),
        )
        self.found[kind, action] = (difference, state, label)
        if self.limits.stop_at_first:
            raise _BudgetSpent

    def _rules(self, kind: Kind, state: int, label: int, variables: list[str]) -> list[str]:
        action, parameters = self.labels.name(label)
        match kind:
            case Kind.INCONSISTENT:
                return self.rules.updates(action, variables)
            case Kind.MISSING:
                return self.rules.guards(action, parameters)
            case Kind.UNEXPECTED:
                return self.rules.false_guard(action, parameters, self.packing.unpacked(state))

    def _distance(self, state: int) -> int:
        """How many steps a state is from an initial one, if that is known.

        Else how many were driven since the reset.
        """
        return len(ReachableStates(self.predecessor).path(state)[1]) if state in self.predecessor else len(self.path)

    def _shortest_examples(self) -> list[Difference]:
        """The differences that were kept, each with the shortest path on which the system shows it when driven
        again."""
        found: list[Difference] = []
        for difference, state, label in self.found.values():
            short = ReachableStates(self.predecessor).path(state) if state in self.predecessor else None
            if (
                short is not None
                and len(short[1]) < len(difference.path)
                and self._reproduces(difference.kind, *short, label)
            ):
                path = tuple(self.labels.name(step) for step in short[1])
                difference = attrs.evolve(difference, initial=short[0], path=path)
            found.append(difference)
        return sorted(found, key=lambda u: len(u.path))

    def _reproduces(self, kind: Kind, initial: int, labels: list[int], last: int) -> bool:
        """Whether the system shows a difference of this kind again after these steps."""
        self.client.ask("reset", state=self.messages.state(initial))
        state = initial
        for label in labels:
            if self._ask_step(state, label) != []:
                return False
            state = self.graph.steps(state)[label]
        if kind is Kind.UNEXPECTED:
            return last in self.messages.enabled(self.client, self.labels)
        answer = self._ask_step(state, last)
        if kind is Kind.INCONSISTENT:
            return isinstance(answer, list) and bool(answer)
        return isinstance(answer, str) or last not in self.messages.enabled(self.client, self.labels)

    # Totals

    def _count_totals(self) -> None:
        """Fill in the totals of the model and the differences."""
        done = self.result
        done.states, done.pairs = len(self.reached), len(self.pairs)
        done.drawn, done.of_drawn = len((self.drawn & self.tried) - self.blocked), len(self.drawn)
        done.asked, done.seconds = self.client.asked, time.monotonic() - self.began
        graph = self.graph.explore(MOST_COUNTED if self.limits.partial or not done.complete else None)
        self.predecessor = graph.predecessor if graph.complete else self.predecessor
        done.differences = self._shortest_examples()
        if not graph.complete:
            return
        done.of_states = len(graph.predecessor)
        done.of_actions, done.of_pairs = self.graph.totals(graph)
        done.of_edges = done.of_actions.total()


def conform(
    instance: Instance,
    command: str,
    limits: Limits,
    *,
    patience: float = 10.0,
    progress: Progress = lambda what, done, of: None,
    explain: Explain = lambda kind, before, action, parameters, places: "",
) -> ConformanceResult:
    """Start the command, drive it, and end it; SutFailure if it does not start or answer, or breaks the protocol.

    `patience` is how many seconds each answer may take; `explain` says what is known of a difference.
    """
    client = ProcessClient(command, patience)
    try:
        return Conformance(instance, client, limits, progress, explain).run()
    finally:
        client.close()
