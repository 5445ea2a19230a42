"""The system of cores explored: its initial states and its successors, with the environment's choices."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
from immutables import Map

from isr_broker.core.controller_state import recovered
from isr_broker.core.effects import CONTROLLER
from isr_broker.core.inputs import Received, Start
from isr_broker.core.messages import BrokerRegistered, CreateTopic, RegisterBroker
from isr_broker.core.node import Node
from isr_broker.designs import Design
from isr_lang import Instance
from isr_replay import canonical_form, inputs
from isr_replay.core_driver import asked_to, ruled, told
from isr_replay.core_steps import Steps
from isr_replay.core_system import BEYOND, NONE, State, Step, Turn, Verdict
from isr_replay.system_state import NOW, TP, Answered, Asked, Broker, Decided, History, Proposed

COMMITS_FIRST = "a follower is proposed again, after a refusal, only once it fetched again, which first commits"
"""The model proposes it at the watermark as it was; a core asks when the follower fetches, and moves the watermark."""


class World(Steps):
    """States and steps of the whole system."""

    def __init__(self, instance: Instance, ids: tuple[int, ...], own_look: bool, planted: Design | None = None) -> None:
        super().__init__(instance, ids, own_look, planted)
        self.bound = {name: value for name, value in instance.constants.items() if isinstance(value, int)}
        entering = ("becomes_leader", "becomes_follower")
        self._entering = frozenset(self.labels.number(a, i) for a in entering for i in range(self.n))
        self._sessions_of: dict[int, tuple[tuple[bool, ...], tuple[bool, ...]]] = {}
        self._past: dict[tuple[int, ...], int] = {}

    def initial_states(self) -> Iterator[State]:
        """Registered, with a topic created, and everybody knows it: once with each broker as its leader."""
        for first in self.ids:
            yield self._healthy(first)

    def _healthy(self, first: int) -> State:
        core = recovered(self.settings, [], NOW)
        brokers: list[Broker] = []
        for me in self.ids:
            broker = Broker(me, Node(me=me, settings=self.of_brokers))
            done = told(broker, Start(incarnation=0))
            (asks,) = [s for s in done.sent if isinstance(s.message, RegisterBroker)]
            ruling = asked_to(canonical_form.before_registration(core, me), me, asks)
            (answer,) = [s.message for s in ruling.sent if isinstance(s.message, BrokerRegistered)]
            done = told(done.broker, Received(CONTROLLER, answer))
            ruling, done = inputs.called(ruling.rested, attrs.evolve(done.rested, incarnation=answer.broker_epoch))
            core = ruling.rested
            brokers.append(done.rested)
        create = CreateTopic(request=0, topic=TP.topic, partitions=1, replication_factor=self.n)
        core = ruled(core, Received(CONTROLLER, create)).rested
        partition = attrs.evolve(core.partitions[TP], leader=first)
        core = attrs.evolve(core, partitions=Map({TP: partition}))
        fetches: list[int] = []
        numbers: list[int] = []
        for i, broker in enumerate(brokers):
            first_news = inputs.learned(core, broker)
            assert first_news is not None
            numbers.append(self.numbered(first_news.broker))
            fetches.append(self.fetches[i].number(inputs.fetch_sent(first_news)))
        history = self.histories.number(History())
        return (self.controllers.number(core), history, *numbers, *fetches, *[NONE] * self.n)

    # Successors

    def successors(self, state: State) -> list[Step]:
        """Every step, under the label that the cores give it."""
        steps: list[Step] = []
        n = self.n
        controller = state[0]
        for i in range(n):
            about = self.about[state[2 + i]]
            self._messages(state, i, steps)
            if about.alive:
                self._broker(state, i, steps)
            else:
                for verdict in self.restarts(i, controller, state[2 + i]):
                    self._controller(state, i, verdict, steps, restarted=True)
            self._sessions(state, i, about.alive, steps)
        for verdict in self.rules(controller, not self._died_leaving(state)):
            self._controller(state, 0, verdict, steps)
        return steps

    def _died_leaving(self, state: State) -> bool:
        """A broker has died that asked to be relieved: the model relieves it only by fencing it."""
        leaving = self.sessions(state[0])[1]
        return any(leaving) and any(leaves and not self.about[state[2 + i]].alive for i, leaves in enumerate(leaving))

    def sessions(self, controller: int) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
        """Which brokers have no session, and which of the others are shutting down."""
        known = self._sessions_of.get(controller)
        if known is None:
            brokers = [self.controllers.values[controller].brokers[b] for b in self.ids]
            leaving = tuple(b.shutting_down and not b.fenced for b in brokers)
            known = self._sessions_of[controller] = (tuple(b.fenced for b in brokers), leaving)
        return known

    def _messages(self, state: State, i: int, steps: list[Step]) -> None:
        """The message of a follower's fetch, and that of a leader's AlterPartition, arrive."""
        n = self.n
        fetch, alter = state[2 + n + i], state[2 + 2 * n + i]
        if fetch:
            message = self.fetches[i].values[fetch]
            if isinstance(message, Asked):
                q = self.index(message.to)
                if self.about[state[2 + q]].alive:
                    for turn in self.fetched(q, state[2 + q], i, fetch):
                        answer = turn.message
                        if turn.broker >= 0 and not self._heeded(state, i, answer):
                            answer = NONE
                        self._turned(state, q, turn, steps, fetch_of=i, fetch=answer)
            elif isinstance(message, Answered) and self.about[state[2 + i]].alive:
                for turn in self.answered(i, state[2 + i], fetch):
                    self._turned(state, i, turn, steps, fetch_of=i, fetch=turn.message)
        if alter:
            message_to = self.alters[i].values[alter]
            if isinstance(message_to, Proposed):
                for verdict in self.decides(i, state[0], alter, state[2 + i]):
                    self._controller(state, i, verdict, steps, alter=verdict.message)
            elif isinstance(message_to, Decided):
                for turn in self.heard(i, state[2 + i], alter):
                    self._turned(state, i, turn, steps, alter=NONE)

    def _heeded(self, state: State, i: int, answer: int) -> bool:
        """Whether the follower would take the answer."""
        broker = state[2 + i]
        return self.about[broker].alive and bool(self.answered(i, broker, answer))

    def _broker(self, state: State, i: int, steps: list[Step]) -> None:
        """A living broker is asked for something, ticks, learns, or ends."""
        n, broker = self.n, state[2 + i]
        about, past = self.about[broker], self.histories.values[state[1]]
        if len(past.written_in) < self.bound["records"] and about.end < self.bound["log"]:
            for turn in self.produces(i, broker, len(past.written_in)):
                self._turned(state, i, turn, steps, appended=True)
        if about.fetches_in is not None and self._fetch_is_lost(state, i, about.fetches_in):
            for turn in self.asks_again(i, broker):
                self._turned(state, i, turn, steps, fetch_of=i, fetch=turn.message)
        if about.leads and not state[2 + 2 * n + i]:
            for turn in self.proposes(i, broker):
                self._turned(state, i, turn, steps, alter=turn.message)
        for turn in self.learns(i, state[0], broker):
            self._learned(state, i, turn, steps)
        if self.bound["consumers"]:
            for turn in self.reads(i, broker, past.position):
                self._turned(state, i, turn, steps)
        if past.crashes < self.bound["crashes"] or past.lossy_crashes < self.bound["lossy_crashes"]:
            self._ends(state, i, steps)

    def _fetch_is_lost(self, state: State, i: int, epoch: int) -> bool:
        """The follower's present question is not in flight, nor is the answer to it."""
        message = self.fetches[i].values[state[2 + self.n + i]]
        match message:
            case None:
                return True
            case Asked(_, request):
                return request.leader_epoch != epoch
            case Answered(response):
                return response.leader_epoch != epoch

    def _learned(self, state: State, i: int, turn: Turn, steps: list[Step]) -> None:
        """A broker has learned newer metadata. A question that an older leader would take stays on its way."""
        n = self.n
        fetch, alter = state[2 + n + i], state[2 + 2 * n + i]
        if turn.broker >= 0:
            entered = turn.label in self._entering
            if entered and not self._request_lives(state, i, fetch):
                fetch = turn.message
            if alter and isinstance(self.alters[i].values[alter], Decided):
                alter = alter if self.about[turn.broker].leads and self.heard(i, turn.broker, alter) else NONE
        self._turned(state, i, turn, steps, fetch_of=i, fetch=fetch, alter=alter)

    def _request_lives(self, state: State, i: int, fetch: int) -> bool:
        message = self.fetches[i].values[fetch]
        if not isinstance(message, Asked):
            return False
        q = self.index(message.to)
        broker = state[2 + q]
        return q != i and self.about[broker].alive and bool(self.fetched(q, broker, i, fetch))

    def _ends(self, state: State, i: int, steps: list[Step]) -> None:
        """The process crashes, with what it kept chosen now."""
        past, broker = self.histories.values[state[1]], state[2 + i]
        about, value = self.about[broker], self.brokers.values[broker]
        if past.crashes < self.bound["crashes"]:
            after = attrs.evolve(past, crashes=past.crashes + 1)
            for checkpoint in range(about.watermark + 1):
                crashed = inputs.crashed(value, about.end, checkpoint)
                label = self.labels.number("broker_crashes", i, checkpoint)
                self._gone(state, i, label, self.numbered(crashed), self.histories.number(after), steps)
        flushes = self.instance.constants["flush"] == "always"
        if past.lossy_crashes < self.bound["lossy_crashes"] and not flushes:
            after = attrs.evolve(past, lossy_crashes=past.lossy_crashes + 1)
            for survivors in range(about.end):
                for checkpoint in range(min(about.watermark, survivors) + 1):
                    crashed = inputs.crashed(value, survivors, checkpoint)
                    label = self.labels.number("broker_loses_power", i, survivors, checkpoint)
                    self._gone(state, i, label, self.numbered(crashed), self.histories.number(after), steps)

    def _gone(self, state: State, i: int, label: int, broker: int, history: int, steps: list[Step]) -> None:
        """A process has ended: no fetch from it or on its way to it is left, nor an answer of the controller."""
        n, new = self.n, list(state)
        new[1], new[2 + i] = history, broker
        for f in range(n):
            message = self.fetches[f].values[state[2 + n + f]]
            if f == i or (isinstance(message, Asked) and self.index(message.to) == i):
                new[2 + n + f] = NONE
        if isinstance(self.alters[i].values[state[2 + 2 * n + i]], Decided):
            new[2 + 2 * n + i] = NONE
        steps.append((label, tuple(new)))

    def _sessions(self, state: State, i: int, alive: bool, steps: list[Step]) -> None:
        """The controller has not heard of a broker for long, or hears of one that has no session."""
        fenced, leaving = self.sessions(state[0])
        if fenced[i]:
            if alive:
                for verdict in self.returns(i, state[0], state[2 + i]):
                    self._controller(state, i, verdict, steps)
            return
        past = self.histories.values[state[1]]
        if alive and leaving[i]:
            # In the model a broker that shuts down in order keeps its session meanwhile.
            for verdict in self.stops(i, state[0], state[2 + i]):
                self._controller(state, i, verdict, steps, stopped=True)
            return
        if alive and past.shutdowns < self.bound["shutdowns"]:
            after = self.histories.number(attrs.evolve(past, shutdowns=past.shutdowns + 1))
            for verdict in self.asks_to_stop(i, state[0], state[2 + i]):
                self._controller(state, i, verdict, steps, history=after)
        if alive and past.sessions_lost >= self.bound["sessions_lost"]:
            return
        history = state[1]
        if alive:
            history = self.histories.number(attrs.evolve(past, sessions_lost=past.sessions_lost + 1))
        for verdict in self.fences(i, state[0]):
            self._controller(state, i, verdict, steps, history=history)

    # What the model has more of

    def explained(self, state: State, label: int) -> str | None:
        """Why the cores do not take a step of the model here, if that is known and shown by running them."""
        action, parameters = self.labels.name(label)
        if action == "leader_proposes_expansion":
            leader, follower = parameters
            broker = self.brokers.values[state[2 + leader]]
            if self.about[state[2 + leader]].leads and inputs.commits_first(broker, self.ids[follower]):
                return COMMITS_FIRST
        return None

    # A step of one core as a step of the system

    def _turned(
        self,
        state: State,
        i: int,
        turn: Turn,
        steps: list[Step],
        *,
        fetch_of: int = 0,
        fetch: int = -1,
        alter: int = -1,
        appended: bool = False,
    ) -> None:
        if turn.broker < 0:
            steps.append((turn.label, state))
            return
        n, new = self.n, list(state)
        new[1] = self._seen(state[1], turn, appended)
        new[2 + i] = turn.broker
        if fetch >= 0:
            new[2 + n + fetch_of] = fetch
        if alter >= 0:
            new[2 + 2 * n + i] = alter
        steps.append((turn.label, tuple(new)))

    def _seen(self, history: int, turn: Turn, appended: bool) -> int:
        """What the history has seen by a broker's turn: records written, answered, committed."""

        key = (history, turn.broker, turn.acked, turn.read, appended)
        if (known := self._past.get(key)) is not None:
            return known
        past, about = self.histories.values[history], self.about[turn.broker]
        replica = self.brokers.values[turn.broker].replica
        if appended and replica is not None:
            past = attrs.evolve(past, written_in=(*past.written_in, replica.leader_epoch))
        past = attrs.evolve(past, acked=past.acked | turn.acked)
        if turn.read >= 0:
            past = attrs.evolve(past, position=past.position + 1, consumed=(*past.consumed, turn.read))
        if about.leads and about.watermark > len(past.committed):
            past = attrs.evolve(past, committed=self.log_of(turn.broker)[: about.watermark])
        number = self._past[key] = self.histories.number(past)
        return number

    def _controller(
        self,
        state: State,
        i: int,
        verdict: Verdict,
        steps: list[Step],
        *,
        history: int = -1,
        alter: int = -1,
        restarted: bool = False,
        stopped: bool = False,
    ) -> None:
        if verdict.controller < 0:
            if verdict.controller != BEYOND:
                steps.append((verdict.label, state))
            return
        n, new = self.n, list(state)
        new[0] = verdict.controller
        if history >= 0:
            new[1] = history
        if verdict.broker >= 0:
            new[2 + i] = verdict.broker
        if alter >= 0:
            new[2 + 2 * n + i] = alter
        if restarted:
            new[2 + 2 * n + i] = NONE
        if stopped and verdict.broker >= 0:
            self._gone(tuple(new), i, verdict.label, verdict.broker, new[1], steps)
            return
        steps.append((verdict.label, tuple(new)))
