"""The steps of single cores: what each input does to a broker or to the controller, computed once and remembered.

The methods are named after the inputs. Each returns every step that the input can lead to, for all choices of the
environment in it. `environment` decides which inputs there are in a state of the system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Final

import attrs

from isr_broker.core.effects import CONTROLLER
from isr_broker.core.inputs import Received
from isr_broker.core.messages import AlterPartitionResponse, BrokerId, Error
from isr_broker.core.reassignments import is_under_way
from isr_broker.topic_configs import MIN_ISR, UNCLEAN
from isr_replay import inputs
from isr_replay.core_driver import BrokerOutcome, ControllerOutcome, CoreFailed, records, run_broker
from isr_replay.core_system import BEYOND, FAILED, NONE, BrokerStep, ControllerStep, Cores
from isr_replay.packed_states import OutOfRange
from isr_replay.system_state import (
    TP,
    AlterAnswered,
    AlterRequested,
    Broker,
    FetchAnswered,
    FetchRequested,
)

REASSIGNS: Final = frozenset(
    {"controller_reassigns_at_once", "controller_cancels_reassignment", "controller_accepts_and_completes"}
)


def _leaves_nobody_to_lead(outcome: ControllerOutcome) -> bool:
    """A reassignment takes the leader away, and all members that are left shut down, if there are any (not given)."""
    core, partition = outcome.core, outcome.core.partitions[TP]
    if partition.leader is not None or not any(took.action in REASSIGNS for took in outcome.took):
        return False
    return all(core.brokers[member].shutting_down for member in partition.isr)


class CoreSteps(Cores):
    """The steps of the brokers and of the controller."""

    def _remember_broker_steps(
        self, key: tuple[object, ...], make: Callable[[], Sequence[BrokerStep]]
    ) -> Sequence[BrokerStep]:
        """Compute the steps of an input and remember them.

        A core that fails gives one step, labelled with its error.
        """
        self.runs += 1
        try:
            known = make()
        except (CoreFailed, OutOfRange, AssertionError, ValueError, KeyError) as problem:
            known = (BrokerStep(self.labels.number(f"{key[0]}: {problem}"), FAILED),)
        self.broker_steps[key] = known
        return known

    def _remember_controller_steps(
        self, key: tuple[object, ...], make: Callable[[], Sequence[ControllerStep]]
    ) -> Sequence[ControllerStep]:
        """The same for the controller."""
        self.runs += 1
        try:
            known = make()
        except (CoreFailed, OutOfRange, AssertionError, ValueError, KeyError) as problem:
            known = (ControllerStep(self.labels.number(f"{key[0]}: {problem}"), FAILED),)
        self.controller_steps[key] = known
        return known

    def index(self, broker: int) -> int:
        """The index of a broker among the model's replicas."""
        return self.view.index(broker)

    # What the inputs of a broker do.

    def broker_step(self, outcome: BrokerOutcome, *parameters: int, message: int = NONE) -> BrokerStep:
        """The outcome of an input as a step."""
        assert outcome.action is not None
        return BrokerStep(
            self.labels.number(outcome.action, *parameters), self.broker_number(outcome.broker), message, outcome.acked
        )

    def produce(self, i: int, broker: int, record: int) -> Sequence[BrokerStep]:
        key = ("produce", broker, record)
        if (known := self.broker_steps.get(key)) is not None:
            return known

        def make() -> Sequence[BrokerStep]:
            done = inputs.produce(self.brokers.values[broker], record, self.acks)
            return () if done is None else (self.broker_step(done, i),)

        return self._remember_broker_steps(key, make)

    def deliver_fetch(self, leader: int, broker: int, follower: int, message: int) -> Sequence[BrokerStep]:
        """A fetch arrives at its leader; no step if the leader refuses it."""
        key = ("fetch", broker, follower, message)
        if (known := self.broker_steps.get(key)) is not None:
            return known

        def make() -> Sequence[BrokerStep]:
            asked = self.fetches[follower].values[message]
            assert isinstance(asked, FetchRequested)
            done = inputs.deliver_fetch(self.brokers.values[broker], asked)
            if done is None:
                return ()
            answer = self.fetches[follower].number(inputs.answer_sent(done))
            return (self.broker_step(done, leader, follower, message=answer),)

        return self._remember_broker_steps(key, make)

    def deliver_fetch_answer(self, i: int, broker: int, message: int) -> Sequence[BrokerStep]:
        """The answer to a fetch arrives; no step if the follower does not wait for it."""
        key = ("answer", broker, message)
        if (known := self.broker_steps.get(key)) is not None:
            return known

        def make() -> Sequence[BrokerStep]:
            answer = self.fetches[i].values[message]
            assert isinstance(answer, FetchAnswered)
            done = inputs.deliver_fetch_answer(self.brokers.values[broker], answer)
            return () if done is None else (self.broker_step(done, i, message=self._asks(i, done)),)

        return self._remember_broker_steps(key, make)

    def _asks(self, i: int, outcome: BrokerOutcome) -> int:
        return self.fetches[i].number(inputs.fetch_sent(outcome))

    def time_out_fetch(self, i: int, broker: int) -> Sequence[BrokerStep]:
        key = ("wait", broker)
        if (known := self.broker_steps.get(key)) is not None:
            return known

        def make() -> Sequence[BrokerStep]:
            outcome = inputs.time_out_fetch(self.brokers.values[broker])
            if outcome is None:
                return ()
            sent = inputs.fetch_sent(outcome)
            to = () if sent is None else (self.index(sent.to),)
            return (self.broker_step(outcome, i, *to, message=self._asks(i, outcome)),)

        return self._remember_broker_steps(key, make)

    def propose_isr(self, i: int, broker: int) -> Sequence[BrokerStep]:
        """The leader ticks: it proposes a follower, or finds any set of members lagging and proposes to shrink."""
        key = ("tick", broker)
        if (known := self.broker_steps.get(key)) is not None:
            return known

        def make() -> Sequence[BrokerStep]:
            value, about = self.brokers.values[broker], self.about[broker]
            outcomes: list[BrokerOutcome | None] = [inputs.tick(value)]
            outcomes += [inputs.tick_proposing(value, f) for f in self.ids if about.leads]
            for size in range(len(about.members) + 1):
                for lagging in combinations(about.members, size):
                    outcomes.append(inputs.check_lag(value, frozenset(lagging)))
            outcomes += [inputs.repeat_fetch_and_tick(value, f) for f in self.ids if about.leads and f != value.me]
            broker_steps = [self._proposal(i, value, done) for done in outcomes if done is not None]
            return tuple(dict.fromkeys(broker_steps))

        return self._remember_broker_steps(key, make)

    def _proposal(self, i: int, before: Broker, outcome: BrokerOutcome) -> BrokerStep:
        proposal = inputs.proposal_sent(before, outcome)
        number = self.alters[i].number(proposal)
        if proposal.joins is not None:
            return self.broker_step(outcome, i, self.index(proposal.joins), message=number)
        assert before.replica is not None
        members = frozenset((before.me, *self.about[self.broker_number(before)].members))
        return self.broker_step(outcome, i, self.view.mask(members - proposal.request.members), message=number)

    def deliver_alter_answer(self, i: int, broker: int, message: int) -> Sequence[BrokerStep]:
        """The controller's answer arrives; no step if the leader does not wait for it."""
        key = ("hear", broker, message)
        if (known := self.broker_steps.get(key)) is not None:
            return known

        def make() -> Sequence[BrokerStep]:
            answer = self.alters[i].values[message]
            assert isinstance(answer, AlterAnswered)
            done = inputs.deliver_alter_answer(self.brokers.values[broker], answer)
            return () if done is None else (self.broker_step(done, i),)

        return self._remember_broker_steps(key, make)

    def consume(self, i: int, broker: int, position: int) -> Sequence[BrokerStep]:
        key = ("consume", broker, position)
        if (known := self.broker_steps.get(key)) is not None:
            return known

        def make() -> Sequence[BrokerStep]:
            outcome = inputs.consume(self.brokers.values[broker], position)
            if outcome is None:
                return ()
            return (attrs.evolve(self.broker_step(outcome[0], i), read=outcome[1]),)

        return self._remember_broker_steps(key, make)

    def deliver_metadata(self, i: int, controller: int, broker: int) -> Sequence[BrokerStep]:
        key = ("learn", controller, broker)
        if (known := self.broker_steps.get(key)) is not None:
            return known

        def make() -> Sequence[BrokerStep]:
            done = inputs.deliver_metadata(self.controllers.values[controller], self.brokers.values[broker])
            return () if done is None else (self.broker_step(done, i, message=self._asks(i, done)),)

        return self._remember_broker_steps(key, make)

    # What the inputs of the controller do.

    def after(self, outcome: ControllerOutcome) -> int:
        """The number of the controller; BEYOND if it has changed the metadata more often than the bounds allow."""
        core, constants = outcome.canonical, self.instance.constants
        partition = core.partitions[TP]
        too_far = partition.partition_epoch > int(constants["isr_changes"])
        return BEYOND if too_far or partition.leader_epoch > int(constants["epochs"]) else self.controllers.number(core)

    def decide_alter_partition(self, i: int, controller: int, message: int, broker: int) -> Sequence[ControllerStep]:
        """An AlterPartition arrives; an error that the model has no answer for is delivered to the leader at once."""
        key = ("alter", i, controller, message, broker)
        if (known := self.controller_steps.get(key)) is not None:
            return known

        def make() -> Sequence[ControllerStep]:
            proposed, core = self.alters[i].values[message], self.controllers.values[controller]
            assert isinstance(proposed, AlterRequested)
            there = self.assigned(controller)
            firsts = there if is_under_way(core.partitions[TP]) else there[:1]
            outcomes = [inputs.deliver_alter_partition(core, proposed, first) for first in firsts]
            given = (outcome for outcome in outcomes if not _leaves_nobody_to_lead(outcome[0]))
            return tuple(dict.fromkeys(self._decision(i, broker, *outcome) for outcome in given))

        return self._remember_controller_steps(key, make)

    def _decision(
        self, i: int, broker: int, outcome: ControllerOutcome, answer: AlterPartitionResponse
    ) -> ControllerStep:
        """A decision on an AlterPartition as a step, with the answer in flight, or delivered if it tells no action."""
        if not outcome.took:
            raise CoreFailed(f"an AlterPartition is answered with {answer.error} and is no action")
        label, after = self._controller_label(outcome.took[0].action, self.ids[i], outcome), self.after(outcome)
        partition = outcome.core.partitions[TP]
        answer = attrs.evolve(answer, attempt=1)
        number, value = self.alters[i].number(AlterAnswered(answer)), self.brokers.values[broker]
        same_epoch = answer.error is Error.NONE and partition.leader_epoch == answer.leader_epoch
        if same_epoch or answer.error is Error.INELIGIBLE_REPLICA:
            deliver_alter_answer = self.about[broker].leads and self.deliver_alter_answer(i, broker, number)
            return ControllerStep(label, after, number if deliver_alter_answer else NONE)
        if value.node is None:
            return ControllerStep(label, after)
        done = run_broker(value, Received(CONTROLLER, answer))
        if done.action is not None:
            raise CoreFailed(f"{done.action} because of {answer.error}")
        return ControllerStep(label, after, NONE, self.broker_number(done.canonical))

    def _controller_steps(
        self, outcomes: Sequence[ControllerOutcome], before: int, of_broker: tuple[str, int] | None = None
    ) -> Sequence[ControllerStep]:
        """The distinct steps of these outcomes; CoreFailed if one changes the controller without an action.

        `of_broker`: what the model calls the step, and the broker, where that has no replica. The controller notes an
        action for each partition that is on a broker, and so none there.
        """
        controller_steps: dict[ControllerStep, None] = {}
        for outcome in outcomes:
            after = self.after(outcome)
            if not outcome.took:
                if of_broker is not None and self.ids[of_broker[1]] not in self.assigned(before):
                    controller_steps[ControllerStep(self.labels.number(*of_broker), after)] = None
                elif after == BEYOND or self.controllers.bits[after] != self.controllers.bits[before]:
                    raise CoreFailed("the controller took no action and yet is another")
                continue
            took = outcome.took[0]
            controller_steps[ControllerStep(self._controller_label(took.action, took.replica, outcome), after)] = None
        return tuple(controller_steps)

    def assigned(self, controller: int) -> tuple[BrokerId, ...]:
        """The replicas as the controller has them."""
        return self.controllers.values[controller].partitions[TP].replicas

    def _controller_label(self, action: str, replica: int, outcome: ControllerOutcome) -> int:
        """The label of what the controller did; where it may choose a leader, that is a parameter."""
        leader = outcome.core.partitions[TP].leader
        successor = () if leader is None else (self.index(leader),)
        match action:
            case "controller_fences_leader" | "controller_accepts_and_completes":
                return self.labels.number(action, self.index(replica), *successor)
            case "controller_cancels_reassignment":
                return self.labels.number(action, *successor)
            case "controller_elects_unclean" if self.has_operations and not self.instance.constants["unclean"]:
                return self.labels.number("controller_elects_unclean_since_switched", self.index(replica))
            case _:
                return self.labels.number(action, self.index(replica))

    # What people ask of the controller.

    def reassign(self, controller: int) -> Sequence[ControllerStep]:
        """Somebody asks for other replicas, any of them the preferred leader, or cancels what is under way.

        Not given: to ask for the replicas that there are meanwhile, and what leaves nobody who may lead.
        """
        key = ("reassign", controller)
        if (known := self.controller_steps.get(key)) is not None:
            return known

        def make() -> Sequence[ControllerStep]:
            core, there = self.controllers.values[controller], frozenset(self.assigned(controller))
            steps: dict[ControllerStep, None] = {}
            for size in range(int(self.instance.constants["least_replicas"]), self.n + 1):
                for target in combinations(self.ids, size):
                    for first in target if frozenset(target) != there else ():
                        outcome = inputs.reassign(core, (first, *(r for r in target if r != first)))
                        steps |= dict.fromkeys(self._reassigned(outcome, frozenset(target)))
            for first in self.assigned(controller):
                outcome = inputs.cancel_reassignment(core, first)
                if not _leaves_nobody_to_lead(outcome):
                    steps |= dict.fromkeys(self._controller_steps([outcome], controller))
            return tuple(steps)

        return self._remember_controller_steps(key, make)

    def _reassigned(self, outcome: ControllerOutcome, target: frozenset[BrokerId]) -> Iterator[ControllerStep]:
        """The step to this target, if it is any."""
        if not outcome.took or _leaves_nobody_to_lead(outcome):
            return
        leader, parameters = outcome.core.partitions[TP].leader, [self.view.mask(target)]
        if outcome.took[0].action == "controller_reassigns_at_once" and leader is not None:
            parameters.append(self.index(leader))
        yield ControllerStep(self.labels.number(outcome.took[0].action, *parameters), self.after(outcome))

    def set_minimum(self, controller: int) -> Sequence[ControllerStep]:
        """Somebody gives min.insync.replicas of the topic another value."""
        key = ("minimum", controller)
        if (known := self.controller_steps.get(key)) is not None:
            return known

        def make() -> Sequence[ControllerStep]:
            core = self.controllers.values[controller]
            others = [value for value in range(1, self.n + 1) if value != core.partitions[TP].min_insync_replicas]
            return tuple(
                ControllerStep(
                    self.labels.number("controller_sets_minimum", value),
                    self.after(inputs.set_topic(core, MIN_ISR, str(value))),
                )
                for value in others
            )

        return self._remember_controller_steps(key, make)

    def switch_unclean(self, controller: int) -> Sequence[ControllerStep]:
        """Somebody sets unclean.leader.election.enable of the topic to what it is not."""
        key = ("switch", controller)
        if (known := self.controller_steps.get(key)) is not None:
            return known

        def make() -> Sequence[ControllerStep]:
            core = self.controllers.values[controller]
            value = str(not core.partitions[TP].unclean_leader_election).lower()
            label = self.labels.number("controller_switches_unclean_election")
            return (ControllerStep(label, self.after(inputs.set_topic(core, UNCLEAN, value))),)

        return self._remember_controller_steps(key, make)

    def tick_controller(self, controller: int, at_once: bool) -> Sequence[ControllerStep]:
        """What the controller does at once, if `at_once` is true.

        And elections of any replica as the preferred leader.
        """
        key = ("rule", controller, at_once)
        if (known := self.controller_steps.get(key)) is not None:
            return known

        def make() -> Sequence[ControllerStep]:
            core = self.controllers.values[controller]
            there = self.assigned(controller)
            outcomes = [inputs.tick_controller(core, first) for first in there] if core.due and at_once else []
            outcomes += [inputs.elect_preferred(core, first) for first in there]
            return self._controller_steps(outcomes, controller)

        return self._remember_controller_steps(key, make)

    def expire_session(self, i: int, controller: int) -> Sequence[ControllerStep]:
        key = ("session", i, controller)
        if (known := self.controller_steps.get(key)) is not None:
            return known

        def make() -> Sequence[ControllerStep]:
            core = self.controllers.values[controller]
            outcomes = [inputs.expire_session(core, self.ids[i], first) for first in self.assigned(controller)]
            return self._controller_steps(outcomes, controller, ("controller_fences_outsider", i))

        return self._remember_controller_steps(key, make)

    def unfence(self, i: int, controller: int, broker: int) -> Sequence[ControllerStep]:
        """The controller receives a heartbeat of a fenced broker."""
        key = ("return", controller, broker)
        if (known := self.controller_steps.get(key)) is not None:
            return known

        def make() -> Sequence[ControllerStep]:
            outcome, done = inputs.send_heartbeat(self.controllers.values[controller], self.brokers.values[broker])
            if done.action is not None:
                raise CoreFailed(f"{done.action} because of a heartbeat")
            (controller_step,) = self._controller_steps([outcome], controller, ("controller_unfences", i))
            return (attrs.evolve(controller_step, broker=self.broker_number(done.canonical)),)

        return self._remember_controller_steps(key, make)

    def ask_to_shut_down(self, i: int, controller: int, broker: int) -> Sequence[ControllerStep]:
        """The process is asked to shut down, and tells the controller in a heartbeat."""
        key = ("stop", controller, broker)
        if (known := self.controller_steps.get(key)) is not None:
            return known

        def make() -> Sequence[ControllerStep]:
            outcome, done = inputs.ask_to_shut_down(self.controllers.values[controller], self.brokers.values[broker])
            if done.action is not None or done.stopped:
                raise CoreFailed(f"{done.action or 'the end'} because somebody wants to stop")
            (controller_step,) = self._controller_steps([outcome], controller, ("broker_asks_to_shut_down", i))
            return (attrs.evolve(controller_step, broker=self.broker_number(done.canonical)),)

        return self._remember_controller_steps(key, make)

    def shut_down(self, i: int, controller: int, broker: int) -> Sequence[ControllerStep]:
        """A broker that shuts down sends a heartbeat; if it may stop, the controller fences it in the same step."""
        key = ("stopping", controller, broker)
        if (known := self.controller_steps.get(key)) is not None:
            return known

        def make() -> Sequence[ControllerStep]:
            outcome, broker_outcome = inputs.send_heartbeat(
                self.controllers.values[controller], self.brokers.values[broker]
            )
            if not broker_outcome.stopped:
                if (
                    outcome.took
                    or outcome.canonical != self.controllers.values[controller]
                    or broker_outcome.action is not None
                ):
                    raise CoreFailed("a heartbeat of a broker that must wait does something")
                return ()
            label = self.labels.number("broker_shuts_down", i)
            return (ControllerStep(label, self.after(outcome), broker=self.broker_number(broker_outcome.canonical)),)

        return self._remember_controller_steps(key, make)

    def restart(self, i: int, controller: int, broker: int) -> Sequence[ControllerStep]:
        key = ("restart", controller, broker)
        if (known := self.controller_steps.get(key)) is not None:
            return known

        def make() -> Sequence[ControllerStep]:
            core, value = self.controllers.values[controller], self.brokers.values[broker]
            outcome = inputs.restart(core, value, self.of_brokers)
            if outcome is None:
                return ()
            (controller_step,) = self._controller_steps([outcome[0]], controller, ("broker_restarts", i))
            return (attrs.evolve(controller_step, broker=self.broker_number(outcome[1])),)

        return self._remember_controller_steps(key, make)

    # What the environment knows.

    def log_of(self, broker: int) -> tuple[int, ...]:
        return records(self.brokers.values[broker])
