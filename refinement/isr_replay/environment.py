"""The environment of the cores: the initial states of the system, and all successors of a state.

The environment delivers messages or loses them, lets timers expire, makes requests, and ends processes. It keeps the
rules that the model has for it: the bounds, at most one fetch of each follower and one AlterPartition of each leader in
flight, and no message that outlives the process of its sender or receiver. A message that its receiver would ignore is
not in flight. To find out whether it would, the message is given to the core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Final

import attrs
from immutables import Map

from isr_broker.core.controller import controller_from_records
from isr_broker.core.effects import CONTROLLER
from isr_broker.core.inputs import Received, Start
from isr_broker.core.messages import BrokerId, BrokerRegistered, CreateTopic, RegisterBroker
from isr_broker.core.node import Node
from isr_broker.designs import Design
from isr_broker.topic_configs import MIN_ISR, UNCLEAN
from isr_lang import Instance
from isr_replay import canonical_form, inputs
from isr_replay.core_driver import run_broker, run_controller, send_to_controller
from isr_replay.core_steps import CoreSteps
from isr_replay.core_system import BEYOND, NONE, BrokerStep, ControllerStep, State, Step
from isr_replay.system_state import (
    NOW,
    TP,
    AlterAnswered,
    AlterRequested,
    Broker,
    FetchAnswered,
    FetchRequested,
    History,
)

COMMITS_BEFORE_PROPOSAL = (
    "a follower is proposed again, after a refusal, only once it fetched again, which first commits"
)
"""Why cores do not take some proposals of the model.

The model proposes the follower without moving the high watermark. A core proposes when the follower fetches, and that
fetch moves the high watermark first.
"""

LOGS_LOST: Final = {"disk_is_replaced": "disks_replaced", "directory_is_removed": "directories_removed"}
"""How a broker that is down may lose its log, and the budget for it."""


class Environment(CoreSteps):
    """The states and steps of the whole system."""

    def __init__(self, instance: Instance, ids: tuple[int, ...], own_look: bool, planted: Design | None = None) -> None:
        super().__init__(instance, ids, own_look, planted)
        self.bound = {name: value for name, value in instance.constants.items() if isinstance(value, int)}
        entering = ("becomes_leader", "becomes_follower", *(("replica_is_deleted",) if self.has_operations else ()))
        self._entering = frozenset(self.labels.number(a, i) for a in entering for i in range(self.n))
        self._sessions_of: dict[int, tuple[tuple[bool, ...], tuple[bool, ...]]] = {}
        self._past: dict[tuple[int, ...], int] = {}

    def initial_states(self) -> Iterator[State]:
        """States in which all brokers are registered and know a topic, one state for each broker as its leader.

        Where replicas are reassigned there is one for each choice of spares, too: brokers without a replica.
        """
        spares = self.bound["spares"] if self.has_operations and self.bound["reassignments"] else 0
        for first in self.ids:
            others = [b for b in self.ids if b != first]
            for number in range(min(spares, len(others)) + 1):
                for without in combinations(others, number):
                    yield self._initial_state(first, tuple(b for b in self.ids if b not in without))

    def _initial_state(self, first: int, replicas: tuple[BrokerId, ...]) -> State:
        core = controller_from_records(self.settings, [], NOW)
        brokers: list[Broker] = []
        for me in self.ids:
            broker = Broker(me, Node(me=me, settings=self.of_brokers))
            broker_outcome = run_broker(broker, Start(incarnation=0))
            (asks,) = [s for s in broker_outcome.sends if isinstance(s.message, RegisterBroker)]
            outcome = send_to_controller(canonical_form.with_next_broker_epoch(core, me), me, asks)
            (answer,) = [s.message for s in outcome.sends if isinstance(s.message, BrokerRegistered)]
            broker_outcome = run_broker(broker_outcome.broker, Received(CONTROLLER, answer))
            outcome, broker_outcome = inputs.send_heartbeat(
                outcome.canonical, attrs.evolve(broker_outcome.canonical, incarnation=answer.broker_epoch)
            )
            core = outcome.canonical
            brokers.append(broker_outcome.canonical)
        create = CreateTopic(request=0, topic=TP.topic, assignments=(replicas,), configs=self._configs())
        core = run_controller(core, Received(CONTROLLER, create)).canonical
        partition = attrs.evolve(core.partitions[TP], leader=first)
        core = attrs.evolve(core, partitions=Map({TP: partition}))
        fetches: list[int] = []
        numbers: list[int] = []
        for i, broker in enumerate(brokers):
            minimum = self.bound["min_insync"]
            broker = attrs.evolve(broker, minimum=minimum if self.has_operations else 0)
            first_news = inputs.deliver_metadata(core, broker)
            known = inputs.reads_metadata(core, broker) if first_news is None else first_news.broker
            numbers.append(self.broker_number(known))
            fetches.append(self.fetches[i].number(inputs.fetch_sent(first_news) if first_news is not None else None))
        least = min(self.bound["min_insync"], len(replicas)) if self.has_operations else 0
        history = self.histories.number(History(least=least))
        return (self.controllers.number(core), history, *numbers, *fetches, *[NONE] * self.n)

    def _configs(self) -> tuple[tuple[str, str], ...]:
        """The topic's own settings, where people change them: so each value comes from one place."""
        if not self.has_operations:
            return ()
        unclean = str(bool(self.instance.constants["unclean"])).lower()
        return ((MIN_ISR, str(self.bound["min_insync"])), (UNCLEAN, unclean))

    # Successors

    def successors(self, state: State) -> list[Step]:
        """Every step from a state, with the label that the cores give it."""
        steps: list[Step] = []
        n = self.n
        controller = state[0]
        for i in range(n):
            about = self.about[state[2 + i]]
            self._messages(state, i, steps)
            if about.alive:
                self._broker(state, i, steps)
            else:
                for controller_step in self.restart(i, controller, state[2 + i]):
                    self._add_controller_step(state, i, controller_step, steps, restart=True)
                if self.has_operations:
                    self._disks(state, i, steps)
            self._sessions(state, i, about.alive, steps)
        for controller_step in self.tick_controller(controller, not self._died_shutting_down(state)):
            self._add_controller_step(state, 0, controller_step, steps)
        if self.has_operations:
            self._people(state, steps)
        return steps

    def _people(self, state: State, steps: list[Step]) -> None:
        """What people ask of the controller; nobody reassigns while nobody leads."""
        past, leader = self.histories.values[state[1]], self.controllers.values[state[0]].partitions[TP].leader
        asks: dict[str, Callable[[int], Sequence[ControllerStep]]] = {
            "minimum_changes": self.set_minimum,
            "unclean_switches": self.switch_unclean,
        }
        if leader is not None:
            asks["reassignments"] = self.reassign
        for budget, ask in asks.items():
            if past.times(budget) < self.bound[budget]:
                after = self.histories.number(past.with_one_more(budget))
                for controller_step in ask(state[0]):
                    self._add_controller_step(state, 0, controller_step, steps, history=after)

    def _disks(self, state: State, i: int, steps: list[Step]) -> None:
        """The log of a replica that is down and fenced is gone, with its disk or with one of its directories.

        Not of as many as there were logs of an acknowledged record.
        """
        past = self.histories.values[state[1]]
        if not self.sessions(state[0])[0][i] or self.ids[i] not in self.assigned(state[0]):
            return
        if past.times("disks_replaced") + past.times("directories_removed") + 1 >= past.least:
            return
        for action, budget in LOGS_LOST.items():
            if past.times(budget) < self.bound[budget]:
                new = list(state)
                new[1] = self.histories.number(past.with_one_more(budget))
                new[2 + i] = self.broker_number(inputs.lose_log(self.brokers.values[state[2 + i]]))
                steps.append((self.labels.number(action, i), tuple(new)))

    def _died_shutting_down(self, state: State) -> bool:
        """Whether a broker has died while shutting down: in the model it then loses leadership only by being fenced."""
        leaving = self.sessions(state[0])[1]
        return any(leaving) and any(leaves and not self.about[state[2 + i]].alive for i, leaves in enumerate(leaving))

    def sessions(self, controller: int) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
        """For each broker whether it is fenced, and whether it is shutting down and not fenced."""
        flags = self._sessions_of.get(controller)
        if flags is None:
            brokers = [self.controllers.values[controller].brokers[b] for b in self.ids]
            leaving = tuple(b.shutting_down and not b.fenced for b in brokers)
            flags = self._sessions_of[controller] = (tuple(b.fenced for b in brokers), leaving)
        return flags

    def _messages(self, state: State, i: int, steps: list[Step]) -> None:
        """Deliver the fetch message of a broker, and its AlterPartition message."""
        n = self.n
        fetch, alter = state[2 + n + i], state[2 + 2 * n + i]
        if fetch:
            message = self.fetches[i].values[fetch]
            if isinstance(message, FetchRequested):
                q = self.index(message.to)
                if self.about[state[2 + q]].alive:
                    for broker_step in self.deliver_fetch(q, state[2 + q], i, fetch):
                        answer = broker_step.message
                        if broker_step.broker >= 0 and not self._is_awaited(state, i, answer):
                            answer = NONE
                        self._add_broker_step(state, q, broker_step, steps, fetch_of=i, fetch=answer)
            elif isinstance(message, FetchAnswered) and self.about[state[2 + i]].alive:
                for broker_step in self.deliver_fetch_answer(i, state[2 + i], fetch):
                    self._add_broker_step(state, i, broker_step, steps, fetch_of=i, fetch=broker_step.message)
        if alter:
            message_to = self.alters[i].values[alter]
            if isinstance(message_to, AlterRequested):
                for controller_step in self.decide_alter_partition(i, state[0], alter, state[2 + i]):
                    self._add_controller_step(state, i, controller_step, steps, alter=controller_step.message)
            elif isinstance(message_to, AlterAnswered):
                for broker_step in self.deliver_alter_answer(i, state[2 + i], alter):
                    self._add_broker_step(state, i, broker_step, steps, alter=NONE)

    def _is_awaited(self, state: State, i: int, answer: int) -> bool:
        """Whether the follower waits for this answer."""
        broker = state[2 + i]
        return self.about[broker].alive and bool(self.deliver_fetch_answer(i, broker, answer))

    def _broker(self, state: State, i: int, steps: list[Step]) -> None:
        """The steps of a running broker: requests of clients, timers, metadata, and crashes."""
        n, broker = self.n, state[2 + i]
        about, past = self.about[broker], self.histories.values[state[1]]
        if len(past.written_in) < self.bound["records"] and about.end < self.bound["log"]:
            for broker_step in self.produce(i, broker, len(past.written_in)):
                self._add_broker_step(state, i, broker_step, steps, appended=True)
        if about.fetches_in is not None and self._fetch_is_lost(state, i, about.fetches_in):
            for broker_step in self.time_out_fetch(i, broker):
                self._add_broker_step(state, i, broker_step, steps, fetch_of=i, fetch=broker_step.message)
        if about.leads and not state[2 + 2 * n + i]:
            for broker_step in self.propose_isr(i, broker):
                self._add_broker_step(state, i, broker_step, steps, alter=broker_step.message)
        for broker_step in self.deliver_metadata(i, state[0], broker):
            self._metadata_learned(state, i, broker_step, steps)
        if self.bound["consumers"]:
            for broker_step in self.consume(i, broker, past.position):
                self._add_broker_step(state, i, broker_step, steps)
        if past.crashes < self.bound["crashes"] or past.lossy_crashes < self.bound["lossy_crashes"]:
            self._crashes(state, i, steps)

    def _fetch_is_lost(self, state: State, i: int, epoch: int) -> bool:
        """Whether neither the follower's present fetch nor its answer is in flight."""
        message = self.fetches[i].values[state[2 + self.n + i]]
        match message:
            case None:
                return True
            case FetchRequested(_, request):
                return request.leader_epoch != epoch
            case FetchAnswered(response):
                return response.leader_epoch != epoch

    def _metadata_learned(self, state: State, i: int, broker_step: BrokerStep, steps: list[Step]) -> None:
        """A broker has learned newer metadata.

        Its fetch stays in flight if the leader of before would still take it.
        """
        n = self.n
        fetch, alter = state[2 + n + i], state[2 + 2 * n + i]
        if broker_step.broker >= 0:
            entered = broker_step.label in self._entering
            if entered and not self._fetch_still_valid(state, i, fetch):
                fetch = broker_step.message
            if alter and isinstance(self.alters[i].values[alter], AlterAnswered):
                alter = (
                    alter
                    if self.about[broker_step.broker].leads and self.deliver_alter_answer(i, broker_step.broker, alter)
                    else NONE
                )
        self._add_broker_step(state, i, broker_step, steps, fetch_of=i, fetch=fetch, alter=alter)

    def _fetch_still_valid(self, state: State, i: int, fetch: int) -> bool:
        message = self.fetches[i].values[fetch]
        if not isinstance(message, FetchRequested):
            return False
        q = self.index(message.to)
        broker = state[2 + q]
        return q != i and self.about[broker].alive and bool(self.deliver_fetch(q, broker, i, fetch))

    def _crashes(self, state: State, i: int, steps: list[Step]) -> None:
        """The process crashes; how much of log and checkpoint survives is chosen now."""
        past, broker = self.histories.values[state[1]], state[2 + i]
        about, value = self.about[broker], self.brokers.values[broker]
        if past.crashes < self.bound["crashes"]:
            after = attrs.evolve(past, crashes=past.crashes + 1)
            for checkpoint in range(about.watermark + 1):
                crash = inputs.crash(value, about.end, checkpoint)
                label = self.labels.number("broker_crashes", i, checkpoint)
                self._process_ended(state, i, label, self.broker_number(crash), self.histories.number(after), steps)
        flushes = self.instance.constants["flush"] == "always"
        if past.lossy_crashes < self.bound["lossy_crashes"] and not flushes:
            after = attrs.evolve(past, lossy_crashes=past.lossy_crashes + 1)
            for survivors in range(about.end):
                for checkpoint in range(min(about.watermark, survivors) + 1):
                    crash = inputs.crash(value, survivors, checkpoint)
                    label = self.labels.number("broker_loses_power", i, survivors, checkpoint)
                    self._process_ended(state, i, label, self.broker_number(crash), self.histories.number(after), steps)

    def _process_ended(self, state: State, i: int, label: int, broker: int, history: int, steps: list[Step]) -> None:
        """A process has ended: fetches from and to it are dropped, and the controller's answer to it."""
        n, new = self.n, list(state)
        new[1], new[2 + i] = history, broker
        for f in range(n):
            message = self.fetches[f].values[state[2 + n + f]]
            if f == i or (isinstance(message, FetchRequested) and self.index(message.to) == i):
                new[2 + n + f] = NONE
        if isinstance(self.alters[i].values[state[2 + 2 * n + i]], AlterAnswered):
            new[2 + 2 * n + i] = NONE
        steps.append((label, tuple(new)))

    def _sessions(self, state: State, i: int, alive: bool, steps: list[Step]) -> None:
        """Sessions: one expires, a fenced broker returns, or a broker shuts down."""
        fenced, leaving = self.sessions(state[0])
        if fenced[i]:
            if alive:
                for controller_step in self.unfence(i, state[0], state[2 + i]):
                    self._add_controller_step(state, i, controller_step, steps)
            return
        past = self.histories.values[state[1]]
        if alive and leaving[i]:
            # In the model a broker keeps its session while it shuts down.
            for controller_step in self.shut_down(i, state[0], state[2 + i]):
                self._add_controller_step(state, i, controller_step, steps, stopped=True)
            return
        if alive and past.shutdowns < self.bound["shutdowns"]:
            after = self.histories.number(attrs.evolve(past, shutdowns=past.shutdowns + 1))
            for controller_step in self.ask_to_shut_down(i, state[0], state[2 + i]):
                self._add_controller_step(state, i, controller_step, steps, history=after)
        if alive and past.sessions_lost >= self.bound["sessions_lost"]:
            return
        history = state[1]
        if alive:
            history = self.histories.number(attrs.evolve(past, sessions_lost=past.sessions_lost + 1))
        for controller_step in self.expire_session(i, state[0]):
            self._add_controller_step(state, i, controller_step, steps, history=history)

    # Known differences

    def known_difference(self, state: State, label: int) -> str | None:
        """The reason why the cores do not take a step of the model here, if it is a known one.

        A reason is given only if running the cores confirms it.
        """
        action, parameters = self.labels.name(label)
        if action == "leader_proposes_expansion":
            leader, follower = parameters
            broker = self.brokers.values[state[2 + leader]]
            if self.about[state[2 + leader]].leads and inputs.repeated_fetch_commits(broker, self.ids[follower]):
                return COMMITS_BEFORE_PROPOSAL
        return None

    def _with_least(self, history: int, controller: int) -> int:
        """The history, where an acknowledgement takes no more logs from now on than this controller asks for."""
        past, partition = self.histories.values[history], self.controllers.values[controller].partitions[TP]
        least = min(past.least, partition.effective_min_isr)
        return history if least == past.least else self.histories.number(attrs.evolve(past, least=least))

    # A step of one core as a step of the system

    def _add_broker_step(
        self,
        state: State,
        i: int,
        broker_step: BrokerStep,
        steps: list[Step],
        *,
        fetch_of: int = 0,
        fetch: int = -1,
        alter: int = -1,
        appended: bool = False,
    ) -> None:
        if broker_step.broker < 0:
            steps.append((broker_step.label, state))
            return
        n, new = self.n, list(state)
        new[1] = self._history_after(state[1], broker_step, appended)
        new[2 + i] = broker_step.broker
        if fetch >= 0:
            new[2 + n + fetch_of] = fetch
        if alter >= 0:
            new[2 + 2 * n + i] = alter
        steps.append((broker_step.label, tuple(new)))

    def _history_after(self, history: int, broker_step: BrokerStep, appended: bool) -> int:
        """The history after a broker's step: records that were written, acknowledged, read and committed."""
        key = (history, broker_step.broker, broker_step.acked, broker_step.read, appended)
        if (known := self._past.get(key)) is not None:
            return known
        past, about = self.histories.values[history], self.about[broker_step.broker]
        replica = self.brokers.values[broker_step.broker].replica
        if appended and replica is not None:
            past = attrs.evolve(past, written_in=(*past.written_in, replica.leader_epoch))
        past = attrs.evolve(past, acked=past.acked | broker_step.acked)
        if broker_step.read >= 0:
            past = attrs.evolve(past, position=past.position + 1, consumed=(*past.consumed, broker_step.read))
        if about.leads and about.watermark > len(past.committed):
            past = attrs.evolve(past, committed=self.log_of(broker_step.broker)[: about.watermark])
        number = self._past[key] = self.histories.number(past)
        return number

    def _add_controller_step(
        self,
        state: State,
        i: int,
        controller_step: ControllerStep,
        steps: list[Step],
        *,
        history: int = -1,
        alter: int = -1,
        restart: bool = False,
        stopped: bool = False,
    ) -> None:
        if controller_step.controller < 0:
            if controller_step.controller != BEYOND:
                steps.append((controller_step.label, state))
            return
        n, new = self.n, list(state)
        new[0] = controller_step.controller
        if history >= 0:
            new[1] = history
        if self.has_operations:
            new[1] = self._with_least(new[1], new[0])
        if controller_step.broker >= 0:
            new[2 + i] = controller_step.broker
        if alter >= 0:
            new[2 + 2 * n + i] = alter
        if restart:
            new[2 + 2 * n + i] = NONE
        if stopped and controller_step.broker >= 0:
            self._process_ended(tuple(new), i, controller_step.label, controller_step.broker, new[1], steps)
            return
        steps.append((controller_step.label, tuple(new)))
