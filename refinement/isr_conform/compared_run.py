"""A run against a system under test: a step is asked for, its outcome compared with the model's, what differs noted.

Which steps are asked for, and in which order, is `driving`'s affair.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator
from enum import Enum, auto
from typing import Final, cast

import attrs

from isr_broker.snapshot import Json
from isr_conform.conformance_result import ConformanceResult, Difference, Explain, Limits, Progress, nothing_known
from isr_conform.edge_cover import Edge, ModelGraph, ReachableStates, sample_edges, walked_states
from isr_conform.model_rules import ModelRules, step_text
from isr_conform.sut_client import SutClient, SutFailure
from isr_conform.sut_messages import Hello, ModelMessages, Place, greet
from isr_conform.switches import switched_actions
from isr_conform.value_json import JsonObject, json_text
from isr_lang import Instance
from isr_replay.packed_states import Packing
from isr_replay.replay import Kind

MOST_COUNTED: Final = 200_000
"""States of the model that are counted before its graph is driven, or when only a part of it is."""


class StepOutcome(Enum):
    """In which state a system is after it was asked for a step."""

    TAKEN = auto()
    """In the state after the step, as the model is."""
    NOT_TAKEN = auto()
    """Still in the state before the step."""
    DIVERGED = auto()
    """In another state; nothing can be driven from there without a reset."""


@attrs.frozen
class Refusal:
    """A step that the system did not take: its reason, and what came of the step that it took in its place.

    `own`: the places at which the state after that step is not the model's after the refused one; None if it took none.
    """

    reason: str
    own: list[Place] | None = None


class BudgetSpent(Exception):
    """The limit of steps or seconds is reached, or the run was to stop at the first difference."""


class ComparedRun:
    """One run against one system under test."""

    def __init__(
        self,
        instance: Instance,
        client: SutClient,
        limits: Limits,
        progress: Progress = lambda what, done, of: None,
        explain: Explain = nothing_known,
    ) -> None:
        self.explain = explain
        self.instance, self.client, self.limits, self.progress = instance, client, limits, progress
        self.hello: Hello = greet(client, instance)
        self.packing = Packing(instance)
        self.messages = ModelMessages(
            *(instance, self.packing, self.hello.variables, self.hello.surroundings),
            leaves_out=self.hello.node is not None,
            settles=self.hello.settles,
        )
        every = frozenset(a.name for a in instance.actions)
        self.graph = ModelGraph(
            instance, self.packing, self.hello.actions if self.hello.surroundings is None else every
        )
        self.labels = self.graph.labels
        self.rules = ModelRules(instance)
        self.began = time.monotonic()
        self.blocked_edges: set[Edge] = set()
        self.tried_edges: set[Edge] = set()
        self.undeclared_edges: set[Edge] = set()
        """Steps of the model that the system did not list as enabled."""
        self.asked_in: set[int] = set()
        self.reached_states: set[int] = set()
        self.pairs: set[tuple[str, str]] = set()
        self.examples: dict[tuple[Kind, str], tuple[Difference, int, int]] = {}
        self.path: list[int] = []
        self.start = 0
        self.asking: int | None = None
        self._reason = ""
        self.predecessor: dict[int, Edge | None] = {}
        self.drawn_edges: set[Edge] = set()
        self.progress_unit, self.progress_count, self.of = "edges", 0, cast("int | None", None)
        """What is told of the progress: what is counted, how many are done, and of how many."""
        off = tuple(a.name for a in instance.actions if a.name not in self.hello.actions)
        is_whole = self.hello.surroundings is None
        self.result = ConformanceResult(
            name=self.hello.name,
            design=instance.design.name,
            constants=instance.constants,
            walks=limits.walks,
            per_action=limits.per_action,
            near_walks=limits.near_walks,
            seed=limits.seed,
            follows_schedule=limits.schedule is not None,
            saves=self.hello.saves,
            variables=self.hello.variables,
            left_out=off if is_whole else (),
            model_alone=() if is_whole else off,
        )

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
        self.reached_states.add(state)
        if self.hello.lists_enabled and state not in self.asked_in:
            unexpected_labels = self.note_enabled(state, self.messages.enabled(self.client, self.labels, state))
            answer: JsonObject | None = None
            if unexpected_labels and self.hello.branches:
                token, steps = self.save(), self.questions(unexpected_labels)
                answer = self.client.ask("branch", token=token, enabled=False, steps=steps, forget=[token])
            self.note_unexpected(state, unexpected_labels, answer)

    def note_enabled(self, state: int, listed_labels: set[int]) -> list[int]:
        """Note which steps of the model the system does not list; those that it lists beyond the model's come back."""
        self.asked_in.add(state)
        model = {label for label in self.graph.steps(state) if self.is_asked(label)}
        self.undeclared_edges |= {(state, label) for label in model - listed_labels}
        return sorted(listed_labels - model)

    def questions(self, labels: list[int], save: Collection[int] = ()) -> list[Json]:
        """Steps that a system that branches is asked for, from a saved state, and which states after them it saves."""
        steps: list[Json] = []
        for label in labels:
            action, parameters = self.labels.name(label)
            given = self.messages.parameters(action, parameters)
            steps.append({"action": action, "parameters": given, "save": label in save})
        return steps

    def note_unexpected(self, state: int, labels: list[int], answer: JsonObject | None = None) -> None:
        """Steps that the model forbids; with the answer to `questions` what comes of each is known."""
        after = [None] * len(labels) if answer is None else answers_to(answer, labels)
        for label, came in zip(labels, after, strict=True):
            own = None
            if came is not None and self.was_done(came):
                values = self.rules.outcome(*self.labels.name(label), self.packing.unpack(state))
                own = self.messages.unlike_values(came.get("state"), values)
            self._note_difference(Kind.UNEXPECTED, state, label, own=own)

    def step(self, state: int, label: int) -> StepOutcome:
        """Ask for a step that the model allows, and compare the state after it."""
        self.check_limits()
        if not self.is_asked(label):
            self.result.alone_steps += 1
            self._note_step(state, label)
            return StepOutcome.TAKEN
        answer = self._ask_step(state, label)
        moved = self.messages.differences(self.client, state) if isinstance(answer, Refusal) else []
        went = self.judge(state, label, answer, moved)
        if went is StepOutcome.TAKEN:
            self._note_step(state, label)
        return went

    def requests_along(self, state: int, labels: list[int]) -> Iterator[tuple[str, JsonObject]]:
        """What `step` asks for these steps, one after the other, while the system does as the model."""
        asked_in = set[int]()
        for label in labels:
            if self.is_asked(label):
                yield "step", self._step_request(state, label)
                yield "snapshot", {}
            state = self.graph.steps(state)[label]
            if self.hello.lists_enabled and state not in self.asked_in and state not in asked_in:
                asked_in.add(state)
                yield "enabled", self.messages.surroundings(state)

    def _step_request(self, state: int, label: int) -> JsonObject:
        action, parameters = self.labels.name(label)
        given = self.messages.parameters(action, parameters)
        return {"action": action, "parameters": given, **self.messages.surroundings(state)}

    def is_asked(self, label: int) -> bool:
        """Whether the system takes part in a step; else the model takes it alone."""
        action, parameters = self.labels.name(label)
        if action not in self.hello.actions or self.hello.node is None:
            return action in self.hello.actions
        return next(iter(self.messages.parameters(action, parameters).values()), None) == self.hello.node

    def asked_edges(self, reachable_states: ReachableStates) -> set[Edge]:
        """The edges of these states in which the system takes part."""
        states = reachable_states.predecessor
        return {(state, label) for state in states for label in self.graph.steps(state) if self.is_asked(label)}

    def _note_step(self, state: int, label: int) -> None:
        self._note_pair(label)
        self.path.append(label)
        self._note_state(self.graph.steps(state)[label])

    def _note_pair(self, label: int) -> None:
        if self.path:
            self.pairs.add((self.labels.name(self.path[-1])[0], self.labels.name(label)[0]))

    def judge(
        self, state: int, label: int, answer: list[Place] | Refusal | None, changed_places: list[Place]
    ) -> StepOutcome:
        """What came of a step (see `_ask_step`); `changed_places`: where a refused one changed the state."""
        action, _ = self.labels.name(label)
        edge = (state, label)
        self.result.steps += 1
        new = self._first_try(edge)
        if answer is None or isinstance(answer, Refusal):
            self.blocked_edges.add(edge)
            if new and answer is not None:
                self._note_difference(Kind.MISSING, state, label, changed_places, answer.reason, answer.own)
            elif new:
                self.result.cannot[self._reason] += 1
                self.result.cannot_actions[action] += 1
            return StepOutcome.DIVERGED if changed_places else StepOutcome.NOT_TAKEN
        if answer:
            self.blocked_edges.add(edge)
            if new:
                self._note_difference(Kind.INCONSISTENT, state, label, answer)
            return StepOutcome.DIVERGED
        if new and edge in self.undeclared_edges:
            self._note_difference(
                Kind.MISSING, state, label, reason="it takes it, and does not say so among what is enabled"
            )
        elif new:
            self.result.edges += 1
            self.result.actions[action] += 1
        self._note_pair(label)
        return StepOutcome.TAKEN

    def _ask_step(self, state: int, label: int) -> list[Place] | Refusal | None:
        """Ask for a step: the places that differ after it, or its refusal; None if the answer is `cannot`."""
        if not self.is_asked(label):
            return []
        self.asking = label
        answer = self.client.ask("step", **self._step_request(state, label))
        if not self.was_done(answer):
            return self.refusal(answer, self.graph.steps(state)[label])
        places = self.messages.differences(self.client, self.graph.steps(state)[label])
        self.asking = None
        return places

    def was_done(self, answer: JsonObject) -> bool:
        if answer.get("done") is True:
            return True
        if "cannot" in answer or answer.get("done") is False:
            return False
        raise SutFailure(f"its answer to step says neither that it is done nor that it is not: {answer}")

    def refusal(self, answer: JsonObject, target: int) -> Refusal | None:
        """Why a step to `target` was refused; None if the system could not be brought to try it."""
        if "cannot" not in answer:
            own = self.messages.unlike(answer["instead"], target) if "instead" in answer else None
            return Refusal(str(answer.get("why", "")), own)
        self._reason = str(answer["cannot"])
        return None

    def _first_try(self, edge: Edge) -> bool:
        if edge in self.tried_edges:
            return False
        self.tried_edges.add(edge)
        if self.limits.walks is None and (not self.drawn_edges or edge in self.drawn_edges):
            self.progress_count += 1
        return True

    def check_limits(self) -> None:
        limits, result = self.limits, self.result
        if limits.max_steps is not None and result.steps >= limits.max_steps:
            raise BudgetSpent
        if limits.max_seconds is not None and time.monotonic() - self.began >= limits.max_seconds:
            raise BudgetSpent
        if limits.stop():
            raise BudgetSpent
        if result.steps % 64 == 63:
            self.progress(f"{self.progress_unit} driven", self.progress_count, self.of)

    def steps_so_far(self) -> str:
        """The steps since the last reset, for an error message."""
        steps = [step_text(self.instance, *self.labels.name(label)) for label in self.path]
        if self.asking is not None:
            steps.append(step_text(self.instance, *self.labels.name(self.asking)))
        if not steps:
            return ""
        *before, last = steps
        return f" (in step {len(steps)}, {last}" + (f", after {', '.join(before)})" if before else ")")

    # The graph

    def explore(self) -> ReachableStates:
        """The states of the model, or some; the sample is drawn from their edges, and how much is to do is known."""
        limits, steps = self.limits, self.graph.steps
        if limits.near_walks is not None:
            reachable_states = walked_states(self.graph, limits.near_walks, limits.walk_length, limits.seed)
            self.drawn_edges = {(state, label) for state in reachable_states.predecessor for label in steps(state)}
        else:
            reachable_states = self.graph.explore(None, progress=self._explored)
        if limits.per_action is not None:
            self.drawn_edges = sample_edges(self.graph, reachable_states, limits.per_action, limits.seed)
        if limits.draws_edges:
            self.progress_unit, self.of = "sampled edges", len(self.drawn_edges)
        else:
            self.count_edges(reachable_states)
        return reachable_states

    def _explored(self, states: int) -> None:
        if self.limits.stop():
            raise BudgetSpent
        self.progress("states of the model explored", states, None)

    def count_edges(self, reachable_states: ReachableStates) -> None:
        if reachable_states.complete:
            self.of = len(self.asked_edges(reachable_states))

    def save(self) -> Json:
        answer = self.client.ask("save")
        if "token" not in answer:
            raise SutFailure("its answer to save has no token")
        return answer["token"]

    # Differences

    def _note_difference(
        self,
        kind: Kind,
        state: int,
        label: int,
        places: list[Place] | None = None,
        reason: str = "",
        own: list[Place] | None = None,
    ) -> None:
        """Count a difference; for each kind and action, keep the one that is nearest to an initial state."""
        action, parameters = self.labels.name(label)
        given = self.messages.parameters(action, parameters)
        known_as = self.explain(kind.value, self.messages.state(state), action, given, places or (), own)
        if known_as:
            self.result.known_differences[known_as] += 1
            return
        self.result.count[kind] += 1
        known = self.examples.get((kind, action))
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
        self.examples[kind, action] = (difference, state, label)
        if self.limits.stop_at_first:
            raise BudgetSpent

    def _rules(self, kind: Kind, state: int, label: int, variables: list[str]) -> list[str]:
        action, parameters = self.labels.name(label)
        match kind:
            case Kind.INCONSISTENT:
                return self.rules.updates(action, variables)
            case Kind.MISSING:
                return self.rules.guards(action, parameters)
            case Kind.UNEXPECTED:
                return self.rules.false_guard(action, parameters, self.packing.unpack(state))

    def _distance(self, state: int) -> int:
        """How many steps a state is from an initial one, if that is known.

        Else how many were driven since the reset.
        """
        return len(ReachableStates(self.predecessor).path(state)[1]) if state in self.predecessor else len(self.path)

    def _shortest_examples(self) -> list[Difference]:
        """The differences that were kept, each with the shortest path on which the system shows it when driven
        again."""
        differences: list[Difference] = []
        for difference, state, label in self.examples.values():
            short = ReachableStates(self.predecessor).path(state) if state in self.predecessor else None
            if (
                short is not None
                and len(short[1]) < len(difference.path)
                and self._reproduces(difference.kind, *short, label)
            ):
                path = tuple(self.labels.name(step) for step in short[1])
                difference = attrs.evolve(difference, initial=short[0], path=path)
            differences.append(difference)
        return sorted(differences, key=lambda u: len(u.path))

    def _reproduces(self, kind: Kind, initial: int, labels: list[int], last: int) -> bool:
        """Whether the system shows a difference of this kind again after these steps."""
        self.client.ask("reset", state=self.messages.state(initial))
        state = initial
        for label in labels:
            if self._ask_step(state, label) != []:
                return False
            state = self.graph.steps(state)[label]
        if kind is Kind.UNEXPECTED:
            return last in self.messages.enabled(self.client, self.labels, state)
        answer = self._ask_step(state, last)
        if kind is Kind.INCONSISTENT:
            return isinstance(answer, list) and bool(answer)
        if isinstance(answer, Refusal) or not self.hello.lists_enabled:
            return isinstance(answer, Refusal)
        return last not in self.messages.enabled(self.client, self.labels, state)

    # Totals

    def count_totals(self) -> None:
        """Fill in the totals of the model and the differences."""
        result = self.result
        result.states, result.pairs = len(self.reached_states), len(self.pairs)
        result.drawn_edges, result.of_drawn = (
            len((self.drawn_edges & self.tried_edges) - self.blocked_edges),
            len(self.drawn_edges),
        )
        result.requests, result.seconds = self.client.request_count, time.monotonic() - self.began
        graph = self.graph.explore(MOST_COUNTED if self.limits.partial or not result.complete else None)
        self.predecessor = graph.predecessor if graph.complete else self.predecessor
        result.differences = self._shortest_examples()
        if not graph.complete:
            return
        result.of_states = len(graph.predecessor)
        of_actions, result.of_pairs = self.graph.totals(graph, self.is_asked)
        result.of_actions = Counter({name: n for name, n in of_actions.items() if name in self.hello.actions})
        result.of_edges = result.of_actions.total()
        result.untaken_actions = tuple(
            f"{action} ({setting})"
            for action, setting in switched_actions(self.instance).items()
            if action in self.hello.actions and not result.of_actions[action]
        )


def answers_to(answer: JsonObject, labels: list[int]) -> list[JsonObject]:
    """The answers to the steps of one branch; SutFailure if there is not one object for each."""
    after = answer.get("after")
    if not isinstance(after, list) or len(after) != len(labels):
        raise SutFailure("its answer to branch has not one answer for each step")
    found = [came for came in after if isinstance(came, dict)]
    if len(found) != len(labels):
        raise SutFailure("its answer to branch has not one object for each step")
    return found
