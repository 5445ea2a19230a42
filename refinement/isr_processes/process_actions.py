"""The actions of the model on real processes: a method for each action, with its name and its parameters.

A method raises `CannotDrive` if real processes cannot be brought to the step, and `StepRefused` if they do not take it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs
from immutables import Map

from isr_broker.core.controller_state import Controller
from isr_broker.core.effects import CONTROLLER
from isr_broker.core.messages import (
    AdminAnswer,
    AlterPartitionResponse,
    BrokerId,
    ElectPreferredLeader,
    Error,
    FetchRequest,
    FetchResponse,
    Heartbeat,
    HeartbeatAnswer,
    Message,
)
from isr_broker.core.replica_state import Leading, Replica
from isr_broker.storage.checkpoints import WATERMARKS, read_offsets, write_offsets
from isr_broker.wire import protocol
from isr_processes.process_state import (
    PATIENCE,
    CannotDrive,
    ProcessSystem,
    StepRefused,
    with_assignment,
    with_caught_up_times,
    with_joining,
    with_lagging,
)
from isr_replay import canonical_form
from isr_replay.environment import COMMITS_BEFORE_PROPOSAL
from isr_replay.inputs import repeated_fetch_commits
from isr_replay.system_state import (
    TP,
    AlterAnswered,
    AlterRequested,
    FetchAnswered,
    FetchRequested,
    batch_of,
    record_in,
)

METADATA_BEHIND = "a broker gets its session back only when it has learned what was decided until it registered"
NO_SECOND_FETCH = "the follower's last fetch cannot arrive a second time: there is none, or the next one asks the same"
DIED_WHILE_LEAVING = (
    "a broker that asked to shut down and has died is relieved at once, and the model fences it in that step"
)
NOTHING_TO_RELIEVE = (
    "to relieve a broker of nothing is a step of the model that changes nothing, and none of the controller"
)
TOPIC_ID_UNKNOWN = "a fetch names the topic by its id, which a leader that has just started does not know yet"
FLUSHED_SURVIVES = "what was flushed survives a loss of power"


class ProcessActions(ProcessSystem):
    """The actions of the model on real processes; each public method without a docstring is one of them."""

    def replica(self, broker: BrokerId) -> Replica:
        """The core of a broker's replica; StepRefused if it has none."""
        held = self.processes.memory(broker).node.replicas.get(TP)
        if held is None:
            raise StepRefused(f"broker {broker} has no replica")
        return held

    def leading_role(self, broker: BrokerId) -> Leading:
        """What a leader knows beside that; StepRefused if the broker does not lead."""
        role = self.replica(broker).role
        if not isinstance(role, Leading):
            raise StepRefused(f"broker {broker} does not lead")
        return role

    def is_running(self, broker: BrokerId) -> bool:
        """Whether the process of the broker runs."""
        return broker in self.processes.running

    # Clients

    def leader_appends(self, leader: BrokerId) -> None:
        record, epoch = len(self.history.written_in), self.replica(leader).leader_epoch
        partition = {"index": 0, "records": batch_of(record)}
        fields = {"transactional_id": None, "acks": self.cores.acks, "timeout": 2_000_000_000}
        topics = [{"name": TP.topic, "partition_data": [partition]}]
        model_epoch, future = self.ask_as_client(leader, protocol.PRODUCE, 7, {**fields, "topic_data": topics})
        self.expect_action("leader_appends")
        self.history = attrs.evolve(self.history, written_in=(*self.history.written_in, epoch))
        if self.cores.acks != 0:
            self.produced[record] = (leader, model_epoch, future)

    def consumer_reads(self, r: BrokerId) -> None:
        position = self.history.position
        asked = {"partition": 0, "fetch_offset": position, "partition_max_bytes": 1}
        limits = {"replica_id": -1, "max_wait": 0, "min_bytes": 0, "max_bytes": 1, "isolation_level": 0}
        topics = [{"topic": TP.topic, "partitions": [asked]}]
        _, future = self.ask_as_client(r, protocol.FETCH, 4, {**limits, "topics": topics})
        self.expect_action("consumer_reads")
        records = future.result(PATIENCE).all("responses")[0].all("partitions")[0].data("records") or b""
        consumed = (*self.history.consumed, record_in(records))
        self.history = attrs.evolve(self.history, position=position + 1, consumed=consumed)

    # Replication

    def follower_sends_fetch(self, follower: BrokerId, leader: BrokerId) -> None:
        self._require_topic_known(leader)
        self.processes.tick(follower, canonical_form.with_fetch_timed_out)
        self.expect_action("follower_sends_fetch")
        self.fetches[follower] = self.sent_fetch(follower)

    def leader_answers_fetch(self, leader: BrokerId, follower: BrokerId, action: str = "leader_answers_fetch") -> None:
        entry = self.fetches[follower]
        if entry is None or not isinstance(entry[0], FetchRequested) or entry[0].to != leader:
            raise StepRefused("there is no such fetch")
        self.processes.deliver(entry[1])
        self.expect_action(action)
        self.last_fetch[leader, follower] = entry[1]
        answer = self.sent_message(FetchResponse, follower, leader)
        self.fetches[follower] = None
        if answer is None or not self.is_running(follower):
            return
        if self.replica(follower).leader_epoch == answer[1].leader_epoch:
            self.fetches[follower] = FetchAnswered(answer[1]), answer[0]

    def leader_answers_diverging(self, leader: BrokerId, follower: BrokerId) -> None:
        self.leader_answers_fetch(leader, follower, "leader_answers_diverging")

    def follower_appends(self, follower: BrokerId, action: str = "follower_appends") -> None:
        entry = self.fetches[follower]
        if entry is None or not isinstance(entry[0], FetchAnswered):
            raise StepRefused("there is no answer to a fetch")
        self.processes.deliver(entry[1])
        self.expect_action(action)
        self.fetches[follower] = self.sent_fetch(follower)

    def follower_truncates(self, follower: BrokerId) -> None:
        self.follower_appends(follower, "follower_truncates")

    # The in-sync set

    def leader_proposes_shrink(self, leader: BrokerId, lagging: list[BrokerId]) -> None:
        role = self.leading_role(leader)
        times = Map({b: known.caught_up_at for b, known in role.followers.items()})
        made, restored = partial_lagging(frozenset(lagging)), partial(with_caught_up_times, times=times)
        self.processes.tick(leader, made, restore=restored)
        self.expect_action("leader_proposes_shrink")
        self.alters[leader] = self.sent_proposal(leader, role.isr)

    def leader_proposes_expansion(self, leader: BrokerId, f: BrokerId) -> None:
        role = self.leading_role(leader)
        if f not in role.joining:
            self._repeat_last_fetch(leader, f)
            role = self.leading_role(leader)
        if f not in role.joining:
            raise CannotDrive(NO_SECOND_FETCH)
        only, all = partial(with_joining, members=frozenset({f})), partial(with_joining, members=role.joining)
        self.processes.tick(leader, only, restore=all)
        self.expect_action("leader_proposes_expansion")
        self.alters[leader] = self.sent_proposal(leader, role.isr)

    def _repeat_last_fetch(self, leader: BrokerId, follower: BrokerId) -> None:
        """Deliver the follower's last fetch a second time, so that the leader considers it for the ISR again.

        CannotDrive if there is no such fetch, or if the leader would also move its high watermark.
        """
        again = self.last_fetch.get((leader, follower))
        broker = self.broker(leader, self.processes.memory(leader))
        entry = self.fetches[follower]
        next_one = entry[1].message if entry is not None and isinstance(entry[0], FetchRequested) else None
        if again is None or (next_one is not None and _ask_the_same(next_one, again.message)):
            raise CannotDrive(NO_SECOND_FETCH)
        if repeated_fetch_commits(broker, follower):
            raise CannotDrive(COMMITS_BEFORE_PROPOSAL)
        self.processes.deliver(again, again=True)
        self.processes.pop_actions()

    def controller_accepts_alter_partition(self, leader: BrokerId) -> None:
        self._controller_decides(leader, "controller_accepts_alter_partition")

    def controller_refuses_alter_partition(self, leader: BrokerId) -> None:
        self._controller_decides(leader, "controller_refuses_alter_partition")

    def controller_rejects_stale_alter_partition(self, leader: BrokerId) -> None:
        self._controller_decides(leader, "controller_rejects_stale_alter_partition")

    def _controller_decides(self, leader: BrokerId, action: str) -> None:
        entry = self.alters[leader]
        if entry is None or not isinstance(entry[0], AlterRequested):
            raise StepRefused("there is no AlterPartition")
        self.processes.deliver(entry[1])
        self.expect_action(action)
        self.alters[leader] = None
        found = self.sent_message(AlterPartitionResponse, leader, CONTROLLER)
        if found is None or not self.is_running(leader):
            return
        arrived, answer = found
        if answer.error not in (Error.NONE, Error.INELIGIBLE_REPLICA):
            self.processes.deliver(arrived)
        elif self._awaits_answer(leader, answer):
            self.alters[leader] = AlterAnswered(answer), arrived

    def _awaits_answer(self, leader: BrokerId, answer: AlterPartitionResponse) -> bool:
        """Whether the leader still waits for this answer to its AlterPartition."""
        role = self.replica(leader).role if self.is_running(leader) else None
        pending = role.pending if isinstance(role, Leading) else None
        if pending is None or not pending.in_flight:
            return False
        return (pending.request.leader_epoch, pending.request.attempt) == (answer.leader_epoch, answer.attempt)

    def leader_adopts_isr(self, leader: BrokerId, action: str = "leader_adopts_isr") -> None:
        entry = self.alters[leader]
        if entry is None or not isinstance(entry[0], AlterAnswered):
            raise StepRefused("there is no answer to an AlterPartition")
        self.processes.deliver(entry[1])
        self.expect_action(action)
        self.alters[leader] = None

    def leader_rolls_back(self, leader: BrokerId) -> None:
        self.leader_adopts_isr(leader, "leader_rolls_back")

    # Metadata

    def _require_topic_known(self, leader: BrokerId | None) -> None:
        """CannotDrive if a leader has just restarted and does not know the id of the topic yet."""
        if leader in self.processes.running and TP not in self.processes.memory(leader).node.partitions:
            raise CannotDrive(TOPIC_ID_UNKNOWN)

    def becomes_leader(self, r: BrokerId, action: str = "becomes_leader") -> None:
        if action == "becomes_follower":
            self._require_topic_known(self._controller().partitions[TP].leader)
        kept = self._fetch_still_valid(r)
        self.leader_learns_isr(r, action)
        if not kept:
            self.fetches[r] = self.sent_fetch(r)

    def becomes_follower(self, r: BrokerId) -> None:
        self.becomes_leader(r, "becomes_follower")

    def leader_learns_isr(self, leader: BrokerId, action: str = "leader_learns_isr") -> None:
        self.fetch_metadata(leader)
        self.expect_action(action)
        entry = self.alters[leader]
        if entry is not None and isinstance(entry[0], AlterAnswered):
            self.alters[leader] = None

    def _fetch_still_valid(self, follower: BrokerId) -> bool:
        """Whether the follower's fetch is in flight to a leader that would still accept its leader epoch."""
        entry = self.fetches[follower]
        if (
            entry is None
            or not isinstance(entry[0], FetchRequested)
            or entry[0].to == follower
            or not self.is_running(entry[0].to)
        ):
            return False
        there = self.processes.memory(entry[0].to).node.replicas.get(TP)
        leading_role = there is not None and isinstance(there.role, Leading)
        return leading_role and there is not None and there.leader_epoch == entry[0].request.leader_epoch

    # Sessions and elections

    def _controller(self) -> Controller:
        core = self.processes.memory(CONTROLLER).controller
        assert core is not None
        return core

    def _fence(self, r: BrokerId, action: str, first: BrokerId) -> None:
        orderly = self.is_running(r) and self._controller().brokers[r].shutting_down
        if orderly and action == "controller_fences_outsider":
            raise CannotDrive(NOTHING_TO_RELIEVE)
        if orderly:
            self._require_nothing_else_due()
            self.tick_controller(canonical_form.with_first_assigned, first)
        else:
            self.tick_controller(with_expired_session, r, first)
        self.expect_action(action)
        if self.is_running(r) and not orderly:
            self.history = attrs.evolve(self.history, sessions_lost=self.history.sessions_lost + 1)

    def controller_fences_outsider(self, r: BrokerId) -> None:
        self._fence(r, "controller_fences_outsider", r)

    def controller_fences_follower(self, r: BrokerId) -> None:
        self._fence(r, "controller_fences_follower", r)

    def controller_fences_leader(self, r: BrokerId, successor: BrokerId) -> None:
        self._fence(r, "controller_fences_leader", successor)

    def controller_fences_last_leader(self, r: BrokerId) -> None:
        self._fence(r, "controller_fences_last_leader", r)

    def controller_unfences(self, r: BrokerId) -> None:
        self._unfence(r, "controller_unfences")

    def controller_elects_returned(self, r: BrokerId) -> None:
        self._unfence(r, "controller_elects_returned")

    def controller_elects_last_known_leader(self, r: BrokerId) -> None:
        self._unfence(r, "controller_elects_last_known_leader")

    def _require_nothing_else_due(self) -> None:
        """CannotDrive if the controller's next tick would also fence a broker that died while it was shutting down."""
        brokers = self._controller().brokers
        if any(brokers[b].shutting_down and not brokers[b].fenced and not self.is_running(b) for b in self.ids):
            raise CannotDrive(DIED_WHILE_LEAVING)

    def _unfence(self, r: BrokerId, action: str) -> None:
        if not self._controller().brokers[r].fenced:
            self._require_nothing_else_due()
            self.tick_controller(canonical_form.with_first_assigned, r)
            self.expect_action(action)
            return
        node = self.processes.memory(r).node
        if node.metadata_offset < node.broker_epoch:
            raise CannotDrive(METADATA_BEHIND)
        self.processes.tick(r, canonical_form.with_heartbeat_due)
        self.deliver(Heartbeat, CONTROLLER, r)
        self.expect_action(action)
        self.deliver(HeartbeatAnswer, r, CONTROLLER)

    def controller_moves_leadership(self, leader: BrokerId) -> None:
        self.tick_controller(canonical_form.with_first_assigned, leader, ticks=False)
        broker = next(b for b in self.ids if self.is_running(b))
        topics = [{"topic": TP.topic, "partitions": [TP.partition]}]
        fields = {"election_type": 0, "topic_partitions": topics, "timeout": 60_000}
        _, future = self.ask_as_client(broker, protocol.ELECT_LEADERS, 1, fields)
        self.deliver(ElectPreferredLeader, CONTROLLER, broker)
        self.expect_action("controller_moves_leadership")
        self.tick_controller(with_assignment, self.order, ticks=False)
        self.deliver(AdminAnswer, broker, CONTROLLER)
        future.result(PATIENCE)

    def controller_elects_unclean(self, leader: BrokerId) -> None:
        self._require_nothing_else_due()
        self.tick_controller(canonical_form.with_first_assigned, leader)
        self.expect_action("controller_elects_unclean")

    # Processes

    def _drop_messages_of(self, r: BrokerId) -> None:
        """Drop the fetches from and to a broker that has ended, and the controller's answer to it."""
        self.last_fetch = {pair: fetch for pair, fetch in self.last_fetch.items() if pair[0] != r}
        for follower, entry in self.fetches.items():
            if follower == r or (entry is not None and isinstance(entry[0], FetchRequested) and entry[0].to == r):
                self.fetches[follower] = None
        alter = self.alters[r]
        if alter is not None and isinstance(alter[0], AlterAnswered):
            self.alters[r] = None

    def _set_checkpoint(self, r: BrokerId, checkpoint: int) -> None:
        """Write an earlier high watermark into the broker's checkpoint file, as if it had ended before the last one."""
        if read_offsets(self.disk(r), WATERMARKS).get(TP, 0) != checkpoint:
            write_offsets(self.disk(r), WATERMARKS, [(TP, checkpoint)])

    def broker_crashes(self, r: BrokerId, checkpoint: int) -> None:
        self.processes.kill(r)
        self._set_checkpoint(r, checkpoint)
        self._drop_messages_of(r)
        self.history = attrs.evolve(self.history, crashes=self.history.crashes + 1)

    def broker_loses_power(self, r: BrokerId, survivors: int, checkpoint: int) -> None:
        if survivors < self.replica(r).log.flushed:
            raise CannotDrive(FLUSHED_SURVIVES)
        self.processes.kill(r)
        size = sum(map(len, self.log(r)[:survivors]))
        with self.segment(r).open("r+b") as file:
            file.truncate(size)
        self._set_checkpoint(r, checkpoint)
        self._drop_messages_of(r)
        self.history = attrs.evolve(self.history, lossy_crashes=self.history.lossy_crashes + 1)

    def broker_restarts(self, r: BrokerId) -> None:
        self.processes.start(r)
        self.register(r)
        self.expect_action("broker_restarts")
        self.alters[r] = None

    def broker_asks_to_shut_down(self, r: BrokerId) -> None:
        self.processes.call(r, "shut down")
        self.deliver(Heartbeat, CONTROLLER, r)
        self.expect_action("broker_asks_to_shut_down")
        self.deliver(HeartbeatAnswer, r, CONTROLLER)
        self.history = attrs.evolve(self.history, shutdowns=self.history.shutdowns + 1)

    def broker_shuts_down(self, r: BrokerId) -> None:
        self.processes.tick_controller(canonical_form.with_nobody_behind, ticks=False)
        self.processes.tick(r, canonical_form.with_heartbeat_due)
        self.deliver(Heartbeat, CONTROLLER, r)
        self.expect_action("controller_fences_outsider")  # which in the model is part of this step
        self.deliver(HeartbeatAnswer, r, CONTROLLER)
        self.processes.wait_for_exit(r)
        self._drop_messages_of(r)


def _ask_the_same(one: Message, other: Message) -> bool:
    """Whether two fetches are equal but for their connection, so that an answer to one answers the other."""
    assert isinstance(one, FetchRequest)
    assert isinstance(other, FetchRequest)
    return (one.leader_epoch, one.offset, one.last_epoch) == (other.leader_epoch, other.offset, other.last_epoch)


def with_expired_session(core: Controller, broker: BrokerId, first: BrokerId) -> Controller:
    """The controller's core with the session of a broker expired, and `first` as the first replica in the
    assignment."""
    return canonical_form.with_session_expired(canonical_form.with_first_assigned(core, first), broker)


def partial_lagging(members: frozenset[BrokerId]) -> Callable[..., object]:
    """`with_lagging` for these members."""
    return partial(with_lagging, members=members)
