"""Every step that the cores can take from a state of the system, whatever the environment chooses.

The environment delivers a message or does not, lets a timer run out, makes a request, ends a process. It keeps to the
model's rules about itself: the bounds, one fetch of each follower and one AlterPartition of each leader in flight, no
message that outlives its process, and what nobody would heed is not in flight. Whether somebody would is for the core
to say: the message is shown to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import attrs

from isr_broker.core.effects import CONTROLLER
from isr_broker.core.inputs import Received
from isr_broker.core.messages import Error
from isr_replay import inputs
from isr_replay.core_driver import CoreFailed, Done, Ruled, records, told
from isr_replay.core_system import BEYOND, FAILED, NONE, Cores, Turn, Verdict
from isr_replay.packed_states import OutOfRange
from isr_replay.system_state import TP, AlterMessage, Answered, Asked, Broker, Decided, FetchMessage, Proposed


class Steps(Cores):
    """The steps of the system, part by part."""

    def found(self, key: tuple[object, ...], make: Callable[[], Sequence[Turn]]) -> Sequence[Turn]:
        """The turns that are possible; a core that fails takes a turn of that name."""
        self.runs += 1
        try:
            known = make()
        except (CoreFailed, OutOfRange, AssertionError, ValueError, KeyError) as problem:
            known = (Turn(self.labels.number(f"{key[0]}: {problem}"), FAILED),)
        self.turns[key] = known
        return known

    def ruled(self, key: tuple[object, ...], make: Callable[[], Sequence[Verdict]]) -> Sequence[Verdict]:
        """The same for the controller."""

        self.runs += 1
        try:
            known = make()
        except (CoreFailed, OutOfRange, AssertionError, ValueError, KeyError) as problem:
            known = (Verdict(self.labels.number(f"{key[0]}: {problem}"), FAILED),)
        self.verdicts[key] = known
        return known

    def index(self, broker: int) -> int:
        """Which replica of the model it is."""
        return self.view.index(broker)

    # What the inputs of a broker do.

    def turn(self, done: Done, *parameters: int, message: int = NONE) -> Turn:
        """The outcome of an input as a turn."""
        assert done.action is not None
        return Turn(self.labels.number(done.action, *parameters), self.numbered(done.broker), message, done.acked)

    def produces(self, i: int, broker: int, record: int) -> Sequence[Turn]:
        key = ("produce", broker, record)
        if (known := self.turns.get(key)) is not None:
            return known

        def make() -> Sequence[Turn]:
            done = inputs.produced(self.brokers.values[broker], record, self.acks)
            return () if done is None else (self.turn(done, i),)

        return self.found(key, make)

    def fetched(self, leader: int, broker: int, follower: int, message: int) -> Sequence[Turn]:
        """A fetch arrives at its leader; no turn if that does not take it."""
        key = ("fetch", broker, follower, message)
        if (known := self.turns.get(key)) is not None:
            return known

        def make() -> Sequence[Turn]:
            asked = self.fetches[follower].values[message]
            assert isinstance(asked, Asked)
            done = inputs.fetched(self.brokers.values[broker], asked)
            if done is None:
                return ()
            answer = self.fetches[follower].number(inputs.answer_sent(done))
            return (self.turn(done, leader, follower, message=answer),)

        return self.found(key, make)

    def answered(self, i: int, broker: int, message: int) -> Sequence[Turn]:
        """The answer to a fetch arrives; no turn if nobody waits for it."""
        key = ("answer", broker, message)
        if (known := self.turns.get(key)) is not None:
            return known

        def make() -> Sequence[Turn]:
            answer = self.fetches[i].values[message]
            assert isinstance(answer, Answered)
            done = inputs.answered(self.brokers.values[broker], answer)
            return () if done is None else (self.turn(done, i, message=self._asks(i, done)),)

        return self.found(key, make)

    def _asks(self, i: int, done: Done) -> int:
        return self.fetches[i].number(inputs.fetch_sent(done))

    def asks_again(self, i: int, broker: int) -> Sequence[Turn]:
        key = ("wait", broker)
        if (known := self.turns.get(key)) is not None:
            return known

        def make() -> Sequence[Turn]:
            done = inputs.waited_for_answer(self.brokers.values[broker])
            if done is None:
                return ()
            sent = inputs.fetch_sent(done)
            to = () if sent is None else (self.index(sent.to),)
            return (self.turn(done, i, *to, message=self._asks(i, done)),)

        return self.found(key, make)

    def proposes(self, i: int, broker: int) -> Sequence[Turn]:
        """The leader does what it wants to do at once, or looks for members that lag: any of them."""
        key = ("tick", broker)
        if (known := self.turns.get(key)) is not None:
            return known

        def make() -> Sequence[Turn]:
            value, about = self.brokers.values[broker], self.about[broker]
            outcomes: list[Done | None] = [inputs.ticked(value)]
            outcomes += [inputs.ticked_for(value, f) for f in self.ids if about.leads]
            for size in range(len(about.members) + 1):
                for lagging in combinations(about.members, size):
                    outcomes.append(inputs.looked_for_lag(value, frozenset(lagging)))
            outcomes += [inputs.reminded(value, f) for f in self.ids if about.leads and f != value.me]
            turns = [self._proposal(i, value, done) for done in outcomes if done is not None]
            return tuple(dict.fromkeys(turns))

        return self.found(key, make)

    def _proposal(self, i: int, before: Broker, done: Done) -> Turn:
        proposed = inputs.proposal_sent(before, done)
        number = self.alters[i].number(proposed)
        if proposed.joins is not None:
            return self.turn(done, i, self.index(proposed.joins), message=number)
        assert before.replica is not None
        members = frozenset((before.me, *self.about[self.numbered(before)].members))
        return self.turn(done, i, self.view.mask(members - proposed.request.members), message=number)

    def heard(self, i: int, broker: int, message: int) -> Sequence[Turn]:
        """The controller's answer arrives; no turn if nobody waits for it."""
        key = ("hear", broker, message)
        if (known := self.turns.get(key)) is not None:
            return known

        def make() -> Sequence[Turn]:
            answer = self.alters[i].values[message]
            assert isinstance(answer, Decided)
            done = inputs.heard(self.brokers.values[broker], answer)
            return () if done is None else (self.turn(done, i),)

        return self.found(key, make)

    def reads(self, i: int, broker: int, position: int) -> Sequence[Turn]:
        key = ("consume", broker, position)
        if (known := self.turns.get(key)) is not None:
            return known

        def make() -> Sequence[Turn]:
            outcome = inputs.consumed(self.brokers.values[broker], position)
            if outcome is None:
                return ()
            return (attrs.evolve(self.turn(outcome[0], i), read=outcome[1]),)

        return self.found(key, make)

    def learns(self, i: int, controller: int, broker: int) -> Sequence[Turn]:
        key = ("learn", controller, broker)
        if (known := self.turns.get(key)) is not None:
            return known

        def make() -> Sequence[Turn]:
            done = inputs.learned(self.controllers.values[controller], self.brokers.values[broker])
            return () if done is None else (self.turn(done, i, message=self._asks(i, done)),)

        return self.found(key, make)

    # What the inputs of the controller do.

    def after(self, ruling: Ruled) -> int:
        """The number of the controller; BEYOND if that has changed the metadata more often than the bounds allow."""
        core, constants = ruling.rested, self.instance.constants
        partition = core.partitions[TP]
        too_far = partition.partition_epoch > int(constants["isr_changes"])
        return BEYOND if too_far or partition.leader_epoch > int(constants["epochs"]) else self.controllers.number(core)

    def decides(self, i: int, controller: int, message: int, broker: int) -> Sequence[Verdict]:
        """An AlterPartition arrives; an answer of unknown effect is told to the leader at once."""
        key = ("alter", i, controller, message, broker)
        if (known := self.verdicts.get(key)) is not None:
            return known

        def make() -> Sequence[Verdict]:
            proposed = self.alters[i].values[message]
            assert isinstance(proposed, Proposed)
            ruling, answer = inputs.decided(self.controllers.values[controller], proposed)
            if not ruling.took:
                raise CoreFailed(f"an AlterPartition is answered with {answer.error} and is no action")
            label, after = self.labels.number(ruling.took[0].action, i), self.after(ruling)
            answer = attrs.evolve(answer, attempt=1)
            number, value = self.alters[i].number(Decided(answer)), self.brokers.values[broker]
            if answer.error in (Error.NONE, Error.INELIGIBLE_REPLICA):
                heard = self.about[broker].leads and self.heard(i, broker, number)
                return (Verdict(label, after, number if heard else NONE),)
            if value.node is None:
                return (Verdict(label, after),)
            done = told(value, Received(CONTROLLER, answer))
            if done.action is not None:
                raise CoreFailed(f"{done.action} because of {answer.error}")
            return (Verdict(label, after, NONE, self.numbered(done.rested)),)

        return self.ruled(key, make)

    def _verdicts(self, rulings: Sequence[Ruled], before: int) -> Sequence[Verdict]:
        """What the controller does of itself, under every order of assignment."""
        verdicts: dict[Verdict, None] = {}
        for ruling in rulings:
            after = self.after(ruling)
            if not ruling.took:
                if after == BEYOND or self.controllers.bits[after] != self.controllers.bits[before]:
                    raise CoreFailed("the controller took no action and yet is another")
                continue
            took = ruling.took[0]
            verdicts[Verdict(self._controller_label(took.action, took.replica, ruling), after)] = None
        return tuple(verdicts)

    def _controller_label(self, action: str, replica: int, ruling: Ruled) -> int:
        parameters = [self.index(replica)]
        leader = ruling.core.partitions[TP].leader
        if action == "controller_fences_leader" and leader is not None:
            parameters.append(self.index(leader))
        return self.labels.number(action, *parameters)

    def rules(self, controller: int, at_once: bool) -> Sequence[Verdict]:
        """What is due `at_once`, if it is to be done, and leadership moved to any replica."""
        key = ("rule", controller, at_once)
        if (known := self.verdicts.get(key)) is not None:
            return known

        def make() -> Sequence[Verdict]:
            core = self.controllers.values[controller]
            rulings = [inputs.due(core, first) for first in self.ids] if core.due and at_once else []
            rulings += [inputs.preferred(core, first) for first in self.ids]
            return self._verdicts(rulings, controller)

        return self.ruled(key, make)

    def fences(self, i: int, controller: int) -> Sequence[Verdict]:
        key = ("session", i, controller)
        if (known := self.verdicts.get(key)) is not None:
            return known

        def make() -> Sequence[Verdict]:
            core = self.controllers.values[controller]
            return self._verdicts([inputs.lost_session(core, self.ids[i], first) for first in self.ids], controller)

        return self.ruled(key, make)

    def returns(self, i: int, controller: int, broker: int) -> Sequence[Verdict]:
        """A fenced broker is heard."""
        key = ("return", controller, broker)
        if (known := self.verdicts.get(key)) is not None:
            return known

        def make() -> Sequence[Verdict]:
            ruling, done = inputs.called(self.controllers.values[controller], self.brokers.values[broker])
            if done.action is not None:
                raise CoreFailed(f"{done.action} because of a heartbeat")
            (verdict,) = self._verdicts([ruling], controller)
            return (attrs.evolve(verdict, broker=self.numbered(done.rested)),)

        return self.ruled(key, make)

    def asks_to_stop(self, i: int, controller: int, broker: int) -> Sequence[Verdict]:
        """The process is asked to stop in order, and tells the controller."""
        key = ("stop", controller, broker)
        if (known := self.verdicts.get(key)) is not None:
            return known

        def make() -> Sequence[Verdict]:
            ruling, done = inputs.asked_to_stop(self.controllers.values[controller], self.brokers.values[broker])
            if done.action is not None or done.stopped:
                raise CoreFailed(f"{done.action or 'the end'} because somebody wants to stop")
            (verdict,) = self._verdicts([ruling], controller)
            return (attrs.evolve(verdict, broker=self.numbered(done.rested)),)

        return self.ruled(key, make)

    def stops(self, i: int, controller: int, broker: int) -> Sequence[Verdict]:
        """A broker that wants to stop is heard, and may or may not; that the controller fences it is part of it."""
        key = ("stopping", controller, broker)
        if (known := self.verdicts.get(key)) is not None:
            return known

        def make() -> Sequence[Verdict]:
            ruling, done = inputs.called(self.controllers.values[controller], self.brokers.values[broker])
            if not done.stopped:
                if ruling.took or ruling.rested != self.controllers.values[controller] or done.action is not None:
                    raise CoreFailed("a heartbeat of a broker that must wait does something")
                return ()
            label = self.labels.number("broker_shuts_down", i)
            return (Verdict(label, self.after(ruling), broker=self.numbered(done.rested)),)

        return self.ruled(key, make)

    def restarts(self, i: int, controller: int, broker: int) -> Sequence[Verdict]:
        key = ("restart", controller, broker)
        if (known := self.verdicts.get(key)) is not None:
            return known

        def make() -> Sequence[Verdict]:
            core, value = self.controllers.values[controller], self.brokers.values[broker]
            outcome = inputs.restarted(core, value, self.of_brokers)
            if outcome is None:
                return ()
            (verdict,) = self._verdicts([outcome[0]], controller)
            return (attrs.evolve(verdict, broker=self.numbered(outcome[1])),)

        return self.ruled(key, make)

    # What the environment knows.

    def message_of(self, i: int, number: int) -> FetchMessage:
        return self.fetches[i].values[number]

    def alter_of(self, i: int, number: int) -> AlterMessage:
        return self.alters[i].values[number]

    def log_of(self, broker: int) -> tuple[int, ...]:
        return records(self.brokers.values[broker])
