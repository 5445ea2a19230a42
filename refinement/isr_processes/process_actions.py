"""The actions of the model on real processes: each method under the name of an action has them take it.

What cannot be had with processes says so (`Cannot`), and what they do not take is refused (`Refuses`).
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
from isr_broker.core.record_batch import HEADER_BYTES
from isr_broker.core.replica_state import Leading, Replica
from isr_broker.storage.checkpoints import WATERMARKS, read_offsets, write_offsets
from isr_broker.wire import protocol
from isr_processes.process_state import PATIENCE, Cannot, Refuses, Steering, assigned, joining, lagging, put_back
from isr_replay import canonical_form
from isr_replay.environment import COMMITS_FIRST
from isr_replay.inputs import commits_first
from isr_replay.system_state import TP, Answered, Asked, Decided, Proposed, batch_of

NOT_YET = "a broker gets its session back only when it has learned what was decided until it registered"
TWICE = "the follower's last fetch cannot arrive a second time: there is none, or the next one asks the same"
LEAVING = "a broker that asked to shut down and has died is relieved at once, and the model fences it in that step"
IDLE = "to relieve a broker of nothing is a step of the model that changes nothing, and none of the controller"
UNKNOWN = "a fetch names the topic by its id, which a leader that has just started does not know yet"
FLUSHED = "what was flushed survives a loss of power"


class Processes(Steering):
    """The actions of the model on real processes, by name."""

    def replica(self, broker: BrokerId) -> Replica:
        """The core of a broker's replica."""
        held = self.machines.inside(broker).node.held.get(TP)
        if held is None:
            raise Refuses(f"broker {broker} has no replica")
        return held

    def leads(self, broker: BrokerId) -> Leading:
        """The same, of a leader."""
        role = self.replica(broker).role
        if not isinstance(role, Leading):
            raise Refuses(f"broker {broker} does not lead")
        return role

    def alive(self, broker: BrokerId) -> bool:
        """Its process runs."""
        return broker in self.machines.running

    # Clients

    def leader_appends(self, leader: BrokerId) -> None:
        record, epoch = len(self.past.written_in), self.replica(leader).leader_epoch
        partition = {"index": 0, "records": batch_of(record)}
        fields = {"transactional_id": None, "acks": self.cores.acks, "timeout": 2_000_000_000}
        topics = [{"name": TP.topic, "partition_data": [partition]}]
        number, future = self.client(leader, protocol.PRODUCE, 7, {**fields, "topic_data": topics})
        self.expect("leader_appends")
        self.past = attrs.evolve(self.past, written_in=(*self.past.written_in, epoch))
        if self.cores.acks != 0:
            self.produced[record] = (leader, number, future)

    def consumer_reads(self, r: BrokerId) -> None:
        position = self.past.position
        asked = {"partition": 0, "fetch_offset": position, "partition_max_bytes": 1}
        limits = {"replica_id": -1, "max_wait": 0, "min_bytes": 0, "max_bytes": 1, "isolation_level": 0}
        topics = [{"topic": TP.topic, "partitions": [asked]}]
        _, future = self.client(r, protocol.FETCH, 4, {**limits, "topics": topics})
        self.expect("consumer_reads")
        records = future.result(PATIENCE).all("responses")[0].all("partitions")[0].data("records") or b""
        consumed = (*self.past.consumed, records[HEADER_BYTES])
        self.past = attrs.evolve(self.past, position=position + 1, consumed=consumed)

    # Replication

    def follower_sends_fetch(self, follower: BrokerId, leader: BrokerId) -> None:
        self._known_at(leader)
        self.machines.tick(follower, canonical_form.aged_fetch)
        self.expect("follower_sends_fetch")
        self.fetches[follower] = self.fetch_sent(follower)

    def leader_answers_fetch(self, leader: BrokerId, follower: BrokerId, action: str = "leader_answers_fetch") -> None:
        entry = self.fetches[follower]
        if entry is None or not isinstance(entry[0], Asked) or entry[0].to != leader:
            raise Refuses("there is no such fetch")
        self.machines.take(entry[1])
        self.expect(action)
        self.last_fetch[leader, follower] = entry[1]
        found = self.arrived(FetchResponse, follower, leader)
        self.fetches[follower] = None
        if found is None or not self.alive(follower):
            return
        if self.replica(follower).leader_epoch == found[1].leader_epoch:
            self.fetches[follower] = Answered(found[1]), found[0]

    def leader_answers_diverging(self, leader: BrokerId, follower: BrokerId) -> None:
        self.leader_answers_fetch(leader, follower, "leader_answers_diverging")

    def follower_appends(self, follower: BrokerId, action: str = "follower_appends") -> None:
        entry = self.fetches[follower]
        if entry is None or not isinstance(entry[0], Answered):
            raise Refuses("there is no answer to a fetch")
        self.machines.take(entry[1])
        self.expect(action)
        self.fetches[follower] = self.fetch_sent(follower)

    def follower_truncates(self, follower: BrokerId) -> None:
        self.follower_appends(follower, "follower_truncates")

    # The in-sync set

    def leader_proposes_shrink(self, leader: BrokerId, lagging: list[BrokerId]) -> None:
        role = self.leads(leader)
        times = Map({b: known.caught_up_at for b, known in role.followers.items()})
        made, restored = lagging_made(frozenset(lagging)), partial(put_back, times=times)
        self.machines.tick(leader, made, restored=restored)
        self.expect("leader_proposes_shrink")
        self.alters[leader] = self.proposal_sent(leader, role.isr)

    def leader_proposes_expansion(self, leader: BrokerId, f: BrokerId) -> None:
        role = self.leads(leader)
        if f not in role.joining:
            self._reminds(leader, f)
            role = self.leads(leader)
        if f not in role.joining:
            raise Cannot(TWICE)
        only, all = partial(joining, members=frozenset({f})), partial(joining, members=role.joining)
        self.machines.tick(leader, only, restored=all)
        self.expect("leader_proposes_expansion")
        self.alters[leader] = self.proposal_sent(leader, role.isr)

    def _reminds(self, leader: BrokerId, follower: BrokerId) -> None:
        """The follower's last fetch arrives a second time, which may only remind the leader of it."""
        again = self.last_fetch.get((leader, follower))
        known = self.broker(leader, self.machines.inside(leader))
        entry = self.fetches[follower]
        next_one = entry[1].message if entry is not None and isinstance(entry[0], Asked) else None
        if again is None or (next_one is not None and _same(next_one, again.message)):
            raise Cannot(TWICE)
        if commits_first(known, follower):
            raise Cannot(COMMITS_FIRST)
        self.machines.take(again, again=True)
        self.machines.took_since()

    def controller_accepts_alter_partition(self, leader: BrokerId) -> None:
        self._decides(leader, "controller_accepts_alter_partition")

    def controller_refuses_alter_partition(self, leader: BrokerId) -> None:
        self._decides(leader, "controller_refuses_alter_partition")

    def controller_rejects_stale_alter_partition(self, leader: BrokerId) -> None:
        self._decides(leader, "controller_rejects_stale_alter_partition")

    def _decides(self, leader: BrokerId, action: str) -> None:
        entry = self.alters[leader]
        if entry is None or not isinstance(entry[0], Proposed):
            raise Refuses("there is no AlterPartition")
        self.machines.take(entry[1])
        self.expect(action)
        self.alters[leader] = None
        found = self.arrived(AlterPartitionResponse, leader, CONTROLLER)
        if found is None or not self.alive(leader):
            return
        arrived, answer = found
        if answer.error not in (Error.NONE, Error.INELIGIBLE_REPLICA):
            self.machines.take(arrived)
        elif self._hears(leader, answer):
            self.alters[leader] = Decided(answer), arrived

    def _hears(self, leader: BrokerId, answer: AlterPartitionResponse) -> bool:
        """Whether the leader still waits for the answer."""
        role = self.replica(leader).role if self.alive(leader) else None
        pending = role.pending if isinstance(role, Leading) else None
        if pending is None or not pending.in_flight:
            return False
        return (pending.request.leader_epoch, pending.request.attempt) == (answer.leader_epoch, answer.attempt)

    def leader_adopts_isr(self, leader: BrokerId, action: str = "leader_adopts_isr") -> None:
        entry = self.alters[leader]
        if entry is None or not isinstance(entry[0], Decided):
            raise Refuses("there is no answer to an AlterPartition")
        self.machines.take(entry[1])
        self.expect(action)
        self.alters[leader] = None

    def leader_rolls_back(self, leader: BrokerId) -> None:
        self.leader_adopts_isr(leader, "leader_rolls_back")

    # Metadata

    def _known_at(self, leader: BrokerId | None) -> None:
        """A leader that has started again has learned of the topic; before that it knows no topic by its id."""
        if leader in self.machines.running and TP not in self.machines.inside(leader).node.partitions:
            raise Cannot(UNKNOWN)

    def becomes_leader(self, r: BrokerId, action: str = "becomes_leader") -> None:
        if action == "becomes_follower":
            self._known_at(self._controller().partitions[TP].leader)
        kept = self._request_lives(r)
        self.leader_learns_isr(r, action)
        if not kept:
            self.fetches[r] = self.fetch_sent(r)

    def becomes_follower(self, r: BrokerId) -> None:
        self.becomes_leader(r, "becomes_follower")

    def leader_learns_isr(self, leader: BrokerId, action: str = "leader_learns_isr") -> None:
        self.learn(leader)
        self.expect(action)
        entry = self.alters[leader]
        if entry is not None and isinstance(entry[0], Decided):
            self.alters[leader] = None

    def _request_lives(self, follower: BrokerId) -> bool:
        """Whether the follower's fetch is on its way to a leader that would still take it."""
        entry = self.fetches[follower]
        if entry is None or not isinstance(entry[0], Asked) or entry[0].to == follower or not self.alive(entry[0].to):
            return False
        there = self.machines.inside(entry[0].to).node.held.get(TP)
        leads = there is not None and isinstance(there.role, Leading)
        return leads and there is not None and there.leader_epoch == entry[0].request.leader_epoch

    # Sessions and elections

    def _controller(self) -> Controller:
        core = self.machines.inside(CONTROLLER).controller
        assert core is not None
        return core

    def _fences(self, r: BrokerId, action: str, first: BrokerId) -> None:
        orderly = self.alive(r) and self._controller().brokers[r].shutting_down
        if orderly and action == "controller_fences_outsider":
            raise Cannot(IDLE)
        if orderly:
            self._at_once()
            self.rule(canonical_form.assigned_first, first)
        else:
            self.rule(session_ended, r, first)
        self.expect(action)
        if self.alive(r) and not orderly:
            self.past = attrs.evolve(self.past, sessions_lost=self.past.sessions_lost + 1)

    def controller_fences_outsider(self, r: BrokerId) -> None:
        self._fences(r, "controller_fences_outsider", r)

    def controller_fences_follower(self, r: BrokerId) -> None:
        self._fences(r, "controller_fences_follower", r)

    def controller_fences_leader(self, r: BrokerId, successor: BrokerId) -> None:
        self._fences(r, "controller_fences_leader", successor)

    def controller_fences_last_leader(self, r: BrokerId) -> None:
        self._fences(r, "controller_fences_last_leader", r)

    def controller_unfences(self, r: BrokerId) -> None:
        self._returns(r, "controller_unfences")

    def controller_elects_returned(self, r: BrokerId) -> None:
        self._returns(r, "controller_elects_returned")

    def controller_elects_last_known_leader(self, r: BrokerId) -> None:
        self._returns(r, "controller_elects_last_known_leader")

    def _at_once(self) -> None:
        """Nothing else is due at once but what the step is about."""
        brokers = self._controller().brokers
        if any(brokers[b].shutting_down and not brokers[b].fenced and not self.alive(b) for b in self.ids):
            raise Cannot(LEAVING)

    def _returns(self, r: BrokerId, action: str) -> None:
        if not self._controller().brokers[r].fenced:
            self._at_once()
            self.rule(canonical_form.assigned_first, r)
            self.expect(action)
            return
        node = self.machines.inside(r).node
        if node.metadata_offset < node.broker_epoch:
            raise Cannot(NOT_YET)
        self.machines.tick(r, canonical_form.calling)
        self.taken(Heartbeat, CONTROLLER, r)
        self.expect(action)
        self.taken(HeartbeatAnswer, r, CONTROLLER)

    def controller_moves_leadership(self, leader: BrokerId) -> None:
        self.rule(canonical_form.assigned_first, leader, ticks=False)
        asked = next(b for b in self.ids if self.alive(b))
        topics = [{"topic": TP.topic, "partitions": [TP.partition]}]
        fields = {"election_type": 0, "topic_partitions": topics, "timeout": 60_000}
        _, future = self.client(asked, protocol.ELECT_LEADERS, 1, fields)
        self.taken(ElectPreferredLeader, CONTROLLER, asked)
        self.expect("controller_moves_leadership")
        self.rule(assigned, self.order, ticks=False)
        self.taken(AdminAnswer, asked, CONTROLLER)
        future.result(PATIENCE)

    def controller_elects_unclean(self, leader: BrokerId) -> None:
        self._at_once()
        self.rule(canonical_form.assigned_first, leader)
        self.expect("controller_elects_unclean")

    # Processes

    def _stops(self, r: BrokerId) -> None:
        """No fetch from it or on its way to it is left, nor an answer of the controller."""
        self.last_fetch = {pair: fetch for pair, fetch in self.last_fetch.items() if pair[0] != r}
        for follower, entry in self.fetches.items():
            if follower == r or (entry is not None and isinstance(entry[0], Asked) and entry[0].to == r):
                self.fetches[follower] = None
        alter = self.alters[r]
        if alter is not None and isinstance(alter[0], Decided):
            self.alters[r] = None

    def _checkpointed(self, r: BrokerId, checkpoint: int) -> None:
        """The file with the watermarks is an earlier one."""
        if read_offsets(self.disk(r), WATERMARKS).get(TP, 0) != checkpoint:
            write_offsets(self.disk(r), WATERMARKS, [(TP, checkpoint)])

    def broker_crashes(self, r: BrokerId, checkpoint: int) -> None:
        self.machines.kill(r)
        self._checkpointed(r, checkpoint)
        self._stops(r)
        self.past = attrs.evolve(self.past, crashes=self.past.crashes + 1)

    def broker_loses_power(self, r: BrokerId, survivors: int, checkpoint: int) -> None:
        if survivors < self.replica(r).log.flushed:
            raise Cannot(FLUSHED)
        self.machines.kill(r)
        size = sum(map(len, self.log(r)[:survivors]))
        with self.segment(r).open("r+b") as file:
            file.truncate(size)
        self._checkpointed(r, checkpoint)
        self._stops(r)
        self.past = attrs.evolve(self.past, lossy_crashes=self.past.lossy_crashes + 1)

    def broker_restarts(self, r: BrokerId) -> None:
        self.machines.start(r)
        self.registered(r)
        self.expect("broker_restarts")
        self.alters[r] = None

    def broker_asks_to_shut_down(self, r: BrokerId) -> None:
        self.machines.call(r, "shut down")
        self.taken(Heartbeat, CONTROLLER, r)
        self.expect("broker_asks_to_shut_down")
        self.taken(HeartbeatAnswer, r, CONTROLLER)
        self.past = attrs.evolve(self.past, shutdowns=self.past.shutdowns + 1)

    def broker_shuts_down(self, r: BrokerId) -> None:
        self.machines.tick(r, canonical_form.calling)
        self.taken(Heartbeat, CONTROLLER, r)
        self.expect("controller_fences_outsider")  # which in the model is part of this step
        self.taken(HeartbeatAnswer, r, CONTROLLER)
        self.machines.ended(r)
        self._stops(r)


def _same(one: Message, other: Message) -> bool:
    """Two fetches ask the same, so an answer to one is one to the other."""
    assert isinstance(one, FetchRequest)
    assert isinstance(other, FetchRequest)
    return (one.leader_epoch, one.offset, one.last_epoch) == (other.leader_epoch, other.offset, other.last_epoch)


def session_ended(core: Controller, broker: BrokerId, first: BrokerId) -> Controller:
    """Nothing was heard of the broker for long; `first` comes first in the order of assignment."""
    return canonical_form.aged_session(canonical_form.assigned_first(core, first), broker)


def lagging_made(members: frozenset[BrokerId]) -> Callable[..., object]:
    """See `steering.lagging`."""
    return partial(lagging, members=members)
