"""Any implementation held to the model: what docs/conform.md calls a system under test, driven through the graph.

Whatever step the model allows is asked for and must be taken; the state after it must be the model's, messages and
answers included; and where the system says what it can do, that must be what the model allows, no less and no more. One
that can save its state is driven along every edge from the state before it; any other along paths from a reset.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Final, cast

import attrs

from isr_broker.snapshot import Json
from isr_check.reference import Evaluator
from isr_conform.edge_cover import Edge, Graph, Reached, Remaining, Wanderer, drawn
from isr_conform.model_rules import Rules, shown
from isr_conform.outcome import Conformed, Limits, Schedule, Unlike
from isr_conform.sut_client import Broken, Party, Talk
from isr_conform.sut_messages import Hello, Place, Wording, met
from isr_conform.value_json import written
from isr_lang import Instance
from isr_replay.packed_states import Packing
from isr_replay.replay import Kind

MOST_COUNTED: Final = 200_000
"""States of the model that are counted where not all of them are driven."""


class Went(Enum):
    """Where a system is after a step was asked for: where the model is, where it was, or nobody knows."""

    THERE = auto()
    NOWHERE = auto()
    ASTRAY = auto()


class _Enough(Exception):
    """A budget is spent."""


class Conformance:
    """One system under test, driven."""

    def __init__(self, instance: Instance, talk: Party, limits: Limits, progress: Callable[[int, int], None]) -> None:
        self.instance, self.talk, self.limits, self.progress = instance, talk, limits, progress
        self.hello: Hello = met(talk, instance)
        self.packing = Packing(instance)
        self.words = Wording(instance, self.packing, self.hello.variables)
        self.graph = Graph(instance, self.packing, self.hello.actions)
        self.labels = self.graph.labels
        self.rules = Rules(instance)
        self.began = time.monotonic()
        self.closed: set[Edge] = set()
        self.tried: set[Edge] = set()
        self.denied: set[Edge] = set()
        """Steps of the model that are not among what the system says that it can take."""
        self.asked_in: set[int] = set()
        self.reached: set[int] = set()
        self.pairs: set[tuple[str, str]] = set()
        self.found: dict[tuple[Kind, str], tuple[Unlike, int, int]] = {}
        self.here: list[int] = []
        self.start = 0
        self.asking: int | None = None
        self._excuse = ""
        self.way: dict[int, Edge | None] = {}
        self.drawn: set[Edge] = set()
        off = tuple(a.name for a in instance.actions if a.name not in self.hello.actions)
        self.done = Conformed(
            name=self.hello.name,
            design=instance.design.name,
            constants=instance.constants,
            walks=limits.walks,
            each=limits.each,
            seed=limits.seed,
            story=limits.schedule is not None,
            saves=self.hello.saves,
            variables=self.hello.variables,
            left_out=off,
        )

    def run(self) -> Conformed:
        """Drive it, within the limits."""
        try:
            if self.limits.schedule is not None:
                self._follow(self.limits.schedule)
            elif self.limits.walks is not None:
                self._wander(self.limits.walks)
            elif self.hello.saves and not self.limits.paths and self.limits.each is None:
                self._everywhere()
            else:
                self._along_paths()
            self.done.complete = True
        except _Enough:
            pass
        except Broken as problem:
            raise Broken(f"{problem}{self._where()}", problem.ended) from None
        self._total()
        return self.done

    # One request

    def reset(self, initial: int) -> None:
        """A fresh system in an initial state."""
        self.here, self.start, self.asking = [], initial, None
        self.talk.ask("reset", state=self.words.state(initial))
        self.done.resets += 1
        places = self.words.differences(self.talk, initial)
        if places:
            place, model, system = places[0]
            raise Broken(f"after its reset {place} is {written(system)}, not {written(model)}")
        self._arrived(initial)

    def _arrived(self, state: int) -> None:
        self.reached.add(state)
        if self.hello.tells and state not in self.asked_in:
            self.asked_in.add(state)
            told, model = self.words.enabled(self.talk, self.labels), self.graph.steps(state).keys()
            for label in sorted(told - model):
                self._differs(Kind.UNEXPECTED, state, label)
            self.denied |= {(state, label) for label in model - told}

    def step(self, state: int, label: int) -> Went:
        """Ask for a step of the model, and see where the system is after it."""
        self._check_limits()
        action, _ = self.labels.name(label)
        edge = (state, label)
        answer = self._asked(state, label)
        self.done.steps += 1
        new = self._try(edge)
        if answer is None or isinstance(answer, str):
            self.closed.add(edge)
            moved = self.words.differences(self.talk, state) if answer is not None else []
            if new and answer is not None:
                self._differs(Kind.MISSING, state, label, moved, answer)
            elif new:
                self.done.cannot[self._excuse] += 1
            return Went.ASTRAY if moved else Went.NOWHERE
        if answer:
            self.closed.add(edge)
            if new:
                self._differs(Kind.INCONSISTENT, state, label, answer)
            return Went.ASTRAY
        if new and edge in self.denied:
            self._differs(Kind.MISSING, state, label, said="it takes it, and does not say so among what is enabled")
        elif new:
            self.done.edges += 1
            self.done.actions[action] += 1
        if self.here:
            self.pairs.add((self.labels.name(self.here[-1])[0], action))
        self.here.append(label)
        self._arrived(self.graph.steps(state)[label])
        return Went.THERE

    def _asked(self, state: int, label: int) -> list[Place] | str | None:
        """Where the system differs after the step; why it refuses; None if it could not be brought to it."""
        action, parameters = self.labels.name(label)
        self.asking = label
        answer = self.talk.ask("step", action=action, parameters=self.words.parameters(action, parameters))
        if "cannot" in answer:
            self._excuse = str(answer["cannot"])
            return None
        if answer.get("done") is False:
            return str(answer.get("why", ""))
        if answer.get("done") is not True:
            raise Broken(f"its answer to step says neither that it is done nor that it is not: {answer}")
        places = self.words.differences(self.talk, self.graph.steps(state)[label])
        self.asking = None
        return places

    def _try(self, edge: Edge) -> bool:
        if edge in self.tried:
            return False
        self.tried.add(edge)
        return True

    def _check_limits(self) -> None:
        limits, done = self.limits, self.done
        if limits.max_steps is not None and done.steps >= limits.max_steps:
            raise _Enough
        if limits.max_seconds is not None and time.monotonic() - self.began >= limits.max_seconds:
            raise _Enough
        if done.steps % 64 == 63:
            self.progress(len(self.tried), done.steps)

    def _where(self) -> str:
        """The steps that had been asked for since the last reset."""
        named = [shown(self.instance, *self.labels.name(label)) for label in self.here]
        if self.asking is not None:
            named.append(shown(self.instance, *self.labels.name(self.asking)))
        if not named:
            return ""
        *before, last = named
        return f" (in step {len(named)}, {last}" + (f", after {', '.join(before)})" if before else ")")

    # Ways through the graph

    def _everywhere(self) -> None:
        """Every edge, each from its saved state."""
        tokens: dict[int, Json] = {}
        for initial in self.graph.initial:
            self.reset(initial)
            self.way[initial], tokens[initial] = None, self._saved()
            level = [initial]
            while level:
                self.graph.find(level)
                new: list[int] = []
                for state in level:
                    for label, target in self.graph.steps(state).items():
                        if (state, label) in self.tried:
                            continue
                        self.talk.ask("restore", token=tokens[state])
                        _, self.here = Reached(self.way).path(state)
                        if self.step(state, label) is Went.THERE and target not in tokens:
                            self.way[target], tokens[target] = (state, label), self._saved()
                            new.append(target)
                level = new

    def _saved(self) -> Json:
        answer = self.talk.ask("save")
        if "token" not in answer:
            raise Broken("its answer to save has no token")
        return answer["token"]

    def _along_paths(self) -> None:
        """Every edge, or those that are drawn, by paths from resets that are as long as may be."""
        reached = self.graph.explore(None)
        self.way = reached.way
        if self.limits.each is not None:
            self.drawn = drawn(self.graph, reached, self.limits.each, self.limits.seed)
        remaining = Remaining(self.graph, reached, None if self.limits.each is None else self.drawn)
        while (nearest := remaining.begin()) is not None:
            initial, route = nearest
            self.reset(initial)
            state: int | None = initial
            while state is not None and (label := self._next(remaining, state, route)) is not None:
                state = self._driven(remaining, state, label)

    def _next(self, remaining: Remaining, state: int, route: list[int]) -> int | None:
        """The next step of the route to an edge that is left, and after that such an edge."""
        if route:
            return route.pop(0)
        if (label := remaining.next_from(state)) is not None:
            return label
        if (more := remaining.route(state)) is None:
            return None
        route += more
        return route.pop(0)

    def _driven(self, remaining: Remaining, state: int, label: int) -> int | None:
        """Drive an edge; where the system is after it, None where that is not known or nothing is left to do."""
        went = self.step(state, label)
        remaining.done((state, label), went is Went.THERE)
        match went:
            case Went.THERE:
                return self.graph.steps(state)[label]
            case Went.NOWHERE:
                return state if remaining.next_from(state) is not None else None
            case Went.ASTRAY:
                return None

    def _wander(self, walks: int) -> None:
        """So many walks from resets."""
        wanderer = Wanderer(self.graph, self.limits.seed)
        for _ in range(walks):
            state, before, went = wanderer.start(), "", Went.THERE
            self.reset(state)
            while went is not Went.ASTRAY and len(self.here) < self.limits.longest:
                label = wanderer.step(state, before, self.closed)
                if label is None:
                    break
                went = self.step(state, label)
                if went is Went.THERE:
                    state, before = self.graph.steps(state)[label], self.labels.name(label)[0]

    def _follow(self, schedule: Schedule) -> None:
        """One story, without the steps that the model forbids."""
        starts = Evaluator(self.instance).initial_states()
        names = [name for name, _ in self.instance.initial.parameters]
        wanted = tuple(schedule.initial.get(name) for name in names)
        state = self.packing.packed(next((s for given, s in starts if given == wanted), starts[0][1]))
        self.reset(state)
        for action, given in schedule.steps:
            parameters = tuple(cast("int", value) for value in given.values())
            label = self.labels.number(action, *parameters)
            target = self.graph.steps(state).get(label)
            if target is None or self.step(state, label) is Went.NOWHERE:
                self.done.skipped.append(shown(self.instance, action, parameters))
            elif (state, label) in self.closed:
                break
            else:
                state = target

    # What differs

    def _differs(self, kind: Kind, state: int, label: int, places: list[Place] | None = None, said: str = "") -> None:
        """Note a difference; of each kind and action the one nearest to an initial state is told."""
        self.done.count[kind] += 1
        action, parameters = self.labels.name(label)
        known = self.found.get((kind, action))
        if known is not None and self._far(known[1]) <= self._far(state):
            return
        rules = self._rules(kind, state, label, [place.partition("[")[0] for place, _, _ in places or ()])
        unlike = Unlike(
            kind=kind,
            action=action,
            parameters=parameters,
            initial=self.start,
            path=tuple(self.labels.name(step) for step in self.here),
            places=tuple(places or ()),
            said=said,
            rules=(self.rules.action(action), *rules),
        )
        self.found[kind, action] = (unlike, state, label)
        if self.limits.first:
            raise _Enough

    def _rules(self, kind: Kind, state: int, label: int, variables: list[str]) -> list[str]:
        action, parameters = self.labels.name(label)
        match kind:
            case Kind.INCONSISTENT:
                return self.rules.make(action, variables)
            case Kind.MISSING:
                return self.rules.allow(action, parameters)
            case Kind.UNEXPECTED:
                return self.rules.forbid(action, parameters, self.packing.unpacked(state))

    def _far(self, state: int) -> int:
        """How many steps a state is from an initial one, if that is known; else how many were taken."""
        return len(Reached(self.way).path(state)[1]) if state in self.way else len(self.here)

    def _shortened(self) -> list[Unlike]:
        """What differs, each by the shortest way that shows it: the way is driven before it is told."""
        found: list[Unlike] = []
        for unlike, state, label in self.found.values():
            short = Reached(self.way).path(state) if state in self.way else None
            if short is not None and len(short[1]) < len(unlike.path) and self._shows(unlike.kind, *short, label):
                path = tuple(self.labels.name(step) for step in short[1])
                unlike = attrs.evolve(unlike, initial=short[0], path=path)
            found.append(unlike)
        return sorted(found, key=lambda u: len(u.path))

    def _shows(self, kind: Kind, initial: int, labels: list[int], last: int) -> bool:
        """Whether the system differs in the same way after these steps."""
        self.talk.ask("reset", state=self.words.state(initial))
        state = initial
        for label in labels:
            if self._asked(state, label) != []:
                return False
            state = self.graph.steps(state)[label]
        if kind is Kind.UNEXPECTED:
            return last in self.words.enabled(self.talk, self.labels)
        answer = self._asked(state, last)
        if kind is Kind.INCONSISTENT:
            return isinstance(answer, list) and bool(answer)
        return isinstance(answer, str) or last not in self.words.enabled(self.talk, self.labels)

    # The sums

    def _total(self) -> None:
        """What there is in the model, of which so much was driven."""
        done = self.done
        done.states, done.pairs = len(self.reached), len(self.pairs)
        done.drawn, done.of_drawn = len((self.drawn & self.tried) - self.closed), len(self.drawn)
        done.asked, done.seconds = self.talk.asked, time.monotonic() - self.began
        graph = self.graph.explore(MOST_COUNTED if self.limits.partial or not done.complete else None)
        self.way = graph.way if graph.complete else self.way
        done.unlike = self._shortened()
        if not graph.complete:
            return
        done.of_states = len(graph.way)
        done.of_actions, done.of_pairs = self.graph.sums(graph)
        done.of_edges = done.of_actions.total()


def conform(
    instance: Instance,
    command: str,
    limits: Limits,
    *,
    patience: float = 10.0,
    progress: Callable[[int, int], None] = lambda edges, steps: None,
) -> Conformed:
    """Start the command, drive it, and end it; Broken if it cannot be asked, does not answer, or talks nonsense.

    `patience` is how many seconds it has for an answer; `progress` is told how many edges were tried in how many steps.
    """
    talk = Talk(command, patience)
    try:
        return Conformance(instance, talk, limits, progress).run()
    finally:
        talk.close()
