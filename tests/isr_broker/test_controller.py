"""The controller's core: sessions, elections, and when others may be told."""

from __future__ import annotations

import attrs
import pytest

from isr_broker.core import controller as controllers
from isr_broker.core.controller import controller_from_records
from isr_broker.core.controller_state import Controller
from isr_broker.core.effects import AppendMetadata, Effect, Send, Took
from isr_broker.core.inputs import ControllerInput, Received, Tick, Written
from isr_broker.core.messages import (
    AdminAnswer,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerRegistered,
    CreateTopic,
    ElectPreferredLeader,
    ElectUncleanLeader,
    Error,
    FetchMetadata,
    Heartbeat,
    HeartbeatAnswer,
    Message,
    Metadata,
    MetadataRecord,
    PartitionMetadata,
    RegisterBroker,
    TopicPartition,
)
from isr_broker.core.topic_changes import place_replicas
from isr_broker.designs import KIP_497, KIP_841, KIP_966, KRAFT_3_5, Design
from isr_broker.settings import Settings

TP = TopicPartition("t", 0)


class Quorum:
    """A controller whose log is durable at once, three brokers, one partition; and everything that it said."""

    def __init__(self, minimum: int = 2, **settings: bool | int | Design) -> None:
        base = Settings(min_insync_replicas=minimum, default_replication_factor=3)
        self.core: Controller = controller_from_records(attrs.evolve(base, **settings), [], 0)  # type: ignore[arg-type]
        self.effects: list[Effect] = []
        self.records: list[MetadataRecord] = []
        self.now = 0
        for broker in (1, 2, 3):
            self.starts(broker)
        self.hear(CreateTopic(request=0, topic="t"))

    def tell(self, told: ControllerInput) -> list[Effect]:
        self.effects.clear()
        pending = [told]
        while pending:
            step = controllers.handle(self.core, pending.pop(0), self.now)
            self.core = step.core
            self.effects += step.effects
            writes = [e for e in step.effects if isinstance(e, AppendMetadata)]
            self.records += [r for write in writes for r in write.records]
            pending += [Written(write.offset) for write in writes]
        return self.effects

    def hear(self, message: Message, source: int = 9) -> list[Message]:
        self.tell(Received(source, message))
        return [e.message for e in self.effects if isinstance(e, Send)]

    def actions(self) -> list[str]:
        return [e.action for e in self.effects if isinstance(e, Took)]

    def starts(self, broker: int, incarnation: int = 1, previous: int = -1) -> Error:
        register = RegisterBroker(broker=broker, incarnation=incarnation, previous_broker_epoch=previous)
        (answer,) = self.hear(register, broker)
        assert isinstance(answer, BrokerRegistered)
        if answer.error is Error.NONE:
            self.beats(broker)
        return answer.error

    def beats(self, broker: int, stop: bool = False) -> HeartbeatAnswer:
        epoch = self.core.brokers[broker].epoch
        beat = Heartbeat(broker=broker, broker_epoch=epoch, metadata_offset=self.core.offset, wants_to_shut_down=stop)
        (answer,) = self.hear(beat, broker)
        assert isinstance(answer, HeartbeatAnswer)
        return answer

    def loses(self, *brokers: int) -> list[str]:
        """The sessions of these brokers end, all others go on."""
        self.now += 9_000
        for broker in {1, 2, 3} - set(brokers):
            if not self.core.brokers[broker].fenced:
                self.beats(broker)
        actions: list[str] = []
        for _ in brokers:
            self.tell(Tick())
            actions += self.actions()
        return actions

    def alter(self, *isr: int, epoch: int | None = None, seen: int | None = None) -> Error:
        p = self.partition
        assert p.leader is not None
        epochs = {b: self.core.brokers[b].epoch for b in isr}
        request = AlterPartitionRequest(
            partition=TP,
            leader=p.leader,
            broker_epoch=epochs[p.leader],
            leader_epoch=p.leader_epoch,
            partition_epoch=p.partition_epoch if epoch is None else epoch,
            isr=tuple((b, epochs[b] if seen is None else seen) for b in isr),
        )
        (answer,) = self.hear(request, p.leader)
        assert isinstance(answer, AlterPartitionResponse)
        return answer.error

    @property
    def partition(self) -> PartitionMetadata:
        return self.core.partitions[TP]

    @property
    def summary(self) -> list[int | list[int] | None]:
        """Leader, ISR and ELR."""
        return [self.partition.leader, sorted(self.partition.isr), sorted(self.partition.elr)]


def test_a_broker_without_a_session_is_out_of_the_isr_and_leads_no_more() -> None:
    quorum = Quorum()
    assert quorum.loses(3) == ["controller_fences_follower"]
    assert quorum.summary == [1, [1, 2], []]
    assert quorum.loses(1) == ["controller_fences_leader"]
    assert quorum.summary == [2, [2], [1]], "under the minimum of two, who left is remembered"
    assert quorum.loses(2) == ["controller_fences_last_leader"]
    assert quorum.summary == [None, [], [1, 2]]
    assert quorum.partition.last_known_leader == 2


def test_a_member_of_the_elr_that_shut_down_in_order_is_elected_when_it_is_back() -> None:
    quorum = Quorum()
    for broker in (3, 1, 2):
        quorum.loses(broker)
    epoch = quorum.core.brokers[1].epoch
    quorum.starts(1, incarnation=2, previous=epoch)
    assert quorum.actions() == ["controller_elects_returned"]
    assert quorum.summary == [1, [1], [2]]


def test_a_member_of_the_elr_that_crashed_is_not() -> None:
    quorum = Quorum()
    for broker in (3, 1, 2):
        quorum.loses(broker)
    quorum.starts(1, incarnation=2)
    assert quorum.summary == [None, [], [2]]


def test_when_nobody_is_eligible_the_last_leader_leads_again() -> None:
    quorum = Quorum()
    for broker in (3, 1, 2):
        quorum.loses(broker)
    quorum.starts(1, incarnation=2)
    quorum.starts(2, incarnation=2)
    assert quorum.actions() == ["controller_elects_last_known_leader"]
    assert quorum.summary == [2, [2], []]


def test_before_kip_966_the_last_member_stays_in_the_isr_and_is_trusted() -> None:
    quorum = Quorum(insync_design=KRAFT_3_5)
    for broker in (3, 1, 2):
        quorum.loses(broker)
    assert quorum.summary == [None, [2], []]
    quorum.starts(1, incarnation=2)
    assert quorum.summary == [None, [2], []]
    quorum.starts(2, incarnation=2)
    assert quorum.summary == [2, [2], []]


def test_an_unclean_election_happens_only_where_it_is_allowed() -> None:
    for allowed, leader in ((False, None), (True, 3)):
        quorum = Quorum(minimum=1, unclean_leader_election_enable=allowed, insync_design=KRAFT_3_5)
        for broker in (3, 2, 1):
            quorum.loses(broker)
        quorum.starts(3, incarnation=2)
        while quorum.core.due:
            quorum.tell(Tick())
        assert quorum.partition.leader == leader


@pytest.mark.parametrize(
    ("elr", "last", "away", "leader", "action"),
    [
        ((), 2, (), 2, "controller_elects_last_known_leader"),
        ((), 2, (2,), 1, "controller_elects_unclean"),
        ((), None, (), 1, "controller_elects_unclean"),
        ((3,), 2, (3,), 1, "controller_elects_unclean"),
        ((3,), 2, (), 3, "controller_elects_returned"),
    ],
)
def test_an_operators_unclean_election_takes_who_is_eligible_or_led_last_before_anybody(
    elr: tuple[int, ...], last: int | None, away: tuple[int, ...], leader: int, action: str
) -> None:
    """PartitionChangeBuilder.electAnyLeader: the last known leader only where ISR and ELR are empty."""
    quorum = Quorum()
    if away:
        quorum.loses(*away)
    nobody = attrs.evolve(
        quorum.partition, leader=None, isr=frozenset[int](), elr=frozenset(elr), last_known_leader=last
    )
    partitions = quorum.core.partitions.set(TP, nobody)
    quorum.core = attrs.evolve(quorum.core, partitions=partitions, due=frozenset[TopicPartition]())
    (answer,) = quorum.hear(ElectUncleanLeader(request=1, partition=TP))
    assert answer == AdminAnswer(request=1)
    assert quorum.actions() == [action]
    assert (quorum.partition.leader, quorum.partition.isr) == (leader, frozenset({leader}))
    assert not quorum.partition.unclean_leader_election, "asked for once, and not from now on"


def test_a_broker_with_a_session_cannot_register_again() -> None:
    quorum = Quorum()
    assert quorum.starts(1, incarnation=2) is Error.DUPLICATE_BROKER_REGISTRATION
    assert Quorum(insync_design=KIP_497).starts(1, incarnation=2) is Error.NONE, "with ZooKeeper it could"


def test_an_isr_is_changed_only_for_the_metadata_that_the_leader_knew() -> None:
    quorum = Quorum()
    assert quorum.alter(1, 2) is Error.NONE
    assert quorum.summary == [1, [1, 2], []]
    assert quorum.alter(1, 2, 3, epoch=0) is Error.INVALID_UPDATE_VERSION
    assert quorum.actions() == ["controller_rejects_stale_alter_partition"]
    assert quorum.summary == [1, [1, 2], []]


@pytest.mark.parametrize(("design", "error"), [(KRAFT_3_5, Error.INELIGIBLE_REPLICA), (KIP_497, Error.NONE)])
def test_a_fenced_replica_is_kept_out_since_kip_841(design: Design, error: Error) -> None:
    quorum = Quorum(insync_design=design)
    quorum.loses(3)
    assert quorum.alter(1, 2, 3) is error


@pytest.mark.parametrize(("design", "error"), [(KRAFT_3_5, Error.INELIGIBLE_REPLICA), (KIP_841, Error.NONE)])
def test_a_replica_joins_only_as_the_incarnation_that_fetched_since_kip_903(design: Design, error: Error) -> None:
    quorum = Quorum(insync_design=design)
    assert quorum.alter(1, 2) is Error.NONE
    p, brokers = quorum.partition, quorum.core.brokers
    request = AlterPartitionRequest(
        partition=TP,
        leader=1,
        broker_epoch=brokers[1].epoch,
        leader_epoch=p.leader_epoch,
        partition_epoch=p.partition_epoch,
        isr=((1, brokers[1].epoch), (2, brokers[2].epoch), (3, brokers[3].epoch - 1)),
    )
    (answer,) = quorum.hear(request, 1)
    assert isinstance(answer, AlterPartitionResponse)
    assert answer.error is error


@pytest.mark.parametrize("drops", [True, False])
def test_a_copy_that_comes_after_a_later_one_was_refused_is_dropped(drops: bool) -> None:
    quorum = Quorum(insync_design=attrs.evolve(KIP_966, drops_overtaken=drops))
    quorum.loses(3)
    p, brokers = quorum.partition, quorum.core.brokers
    copies = [
        AlterPartitionRequest(
            partition=TP,
            leader=1,
            broker_epoch=brokers[1].epoch,
            leader_epoch=p.leader_epoch,
            partition_epoch=p.partition_epoch,
            isr=tuple((b, brokers[b].epoch) for b in (1, 2, 3)),
            attempt=attempt,
        )
        for attempt in (1, 2, 3)
    ]

    def decides(copy: AlterPartitionRequest) -> Error:
        (answer,) = quorum.hear(copy, 1)
        assert isinstance(answer, AlterPartitionResponse)
        assert answer.attempt == copy.attempt
        return answer.error

    assert decides(copies[1]) is Error.INELIGIBLE_REPLICA
    assert not quorum.beats(3).fenced
    assert decides(copies[0]) is (Error.INVALID_UPDATE_VERSION if drops else Error.NONE)
    assert quorum.summary == [1, [1, 2] if drops else [1, 2, 3], []]
    if drops:
        again = decides(copies[1])
        assert again is Error.INELIGIBLE_REPLICA, "a leader that hears this answer first does not wait for ever"
        assert decides(copies[2]) is Error.NONE
        assert quorum.summary == [1, [1, 2, 3], []]


def test_a_shrink_below_the_minimum_in_one_step_puts_all_leavers_into_the_elr() -> None:
    together, apart = Quorum(), Quorum()
    together.alter(1)
    apart.alter(1, 2)
    apart.alter(1)
    assert together.summary == [1, [1], [2, 3]]
    assert apart.summary == [1, [1], [2]]


def test_a_controlled_shutdown_relieves_the_broker_first_and_then_lets_it_go() -> None:
    quorum = Quorum()
    assert not quorum.beats(1, stop=True).may_shut_down
    assert set(quorum.actions()) == {"broker_asks_to_shut_down"}
    quorum.tell(Tick())
    assert quorum.actions() == ["controller_fences_leader"]
    assert quorum.summary == [2, [2, 3], []]
    quorum.beats(2)
    quorum.beats(3)
    assert quorum.beats(1, stop=True).may_shut_down
    assert quorum.core.brokers[1].fenced


def test_a_controlled_shutdown_waits_until_the_others_know_of_it() -> None:
    """Else they would go on sending clients there (BrokerHeartbeatManager.calculateNextBrokerState)."""
    quorum = Quorum()
    quorum.beats(1, stop=True)
    quorum.tell(Tick())
    quorum.hear(FetchMetadata(broker=2, broker_epoch=2, offset=quorum.core.offset), 2)
    quorum.hear(FetchMetadata(broker=3, broker_epoch=3, offset=quorum.core.offset - 1), 3)
    assert not quorum.beats(1, stop=True).may_shut_down, "3 has not read that another leads"
    assert quorum.core.brokers[1].shutting_down
    assert quorum.loses(3) == ["controller_fences_follower"]
    quorum.beats(2)
    assert quorum.beats(1, stop=True).may_shut_down, "nobody asks 3 any more"


def test_leadership_goes_back_to_the_first_replica() -> None:
    quorum = Quorum()
    quorum.loses(1)
    quorum.starts(1, incarnation=2)
    assert quorum.alter(1, 2, 3) is Error.NONE
    (answer,) = quorum.hear(ElectPreferredLeader(request=5, partition=TP))
    assert isinstance(answer, AdminAnswer)
    assert quorum.actions() == ["controller_moves_leadership"]
    assert quorum.summary == [1, [1, 2, 3], []]


def test_nobody_is_told_before_the_record_is_durable() -> None:
    quorum = Quorum()
    quorum.hear(FetchMetadata(broker=2, broker_epoch=2, offset=quorum.core.offset), 2)
    request = Received(9, CreateTopic(request=1, topic="u"))
    step = controllers.handle(quorum.core, request, quorum.now)
    assert not [e for e in step.effects if isinstance(e, Send)]
    told = controllers.handle(step.core, Written(step.core.offset), quorum.now)
    assert {type(e.message) for e in told.effects if isinstance(e, Send)} == {AdminAnswer, Metadata}


def test_news_are_what_changed_and_nothing_else() -> None:
    quorum = Quorum()
    since = quorum.core.offset
    quorum.alter(1, 2)
    (news,) = quorum.hear(FetchMetadata(broker=2, broker_epoch=2, offset=since), 2)
    assert isinstance(news, Metadata)
    assert not news.brokers
    assert [sorted(p.isr) for p in news.partitions] == [[1, 2]]


def test_a_controller_is_what_its_log_says() -> None:
    quorum = Quorum()
    quorum.loses(3)
    quorum.loses(1)
    again = controller_from_records(quorum.core.settings, quorum.records, quorum.now)
    assert (again.partitions, again.brokers, again.offset) == (
        quorum.core.partitions,
        quorum.core.brokers,
        quorum.core.offset,
    )


def test_a_controlled_shutdown_goes_on_with_the_next_controller() -> None:
    """The last one ended between the record that the broker shuts down and those that relieve it."""
    quorum = Quorum()
    quorum.beats(1, stop=True)
    quorum.core = controller_from_records(quorum.core.settings, quorum.records, quorum.now)
    quorum.tell(Tick())
    assert quorum.partition.leader == 2
    assert not quorum.beats(1, stop=True).may_shut_down, "it does not know yet who has read that"
    quorum.beats(2)
    quorum.beats(3)
    assert quorum.beats(1, stop=True).may_shut_down


def test_a_thousand_partitions_change_hands_in_one_batch() -> None:
    quorum = Quorum()
    quorum.hear(CreateTopic(request=1, topic="big", partitions=1_000))
    quorum.loses(2)
    (batch,) = (e for e in quorum.effects if isinstance(e, AppendMetadata))
    assert len(batch.records) == 1_002
    assert all(p.leader in p.isr and p.leader != 2 for p in quorum.core.partitions.values())


def test_replicas_and_leadership_are_spread_evenly() -> None:
    placement = place_replicas([1, 2, 3, 4], 24, 3, 0)
    for broker in (1, 2, 3, 4):
        assert sum(p[0] == broker for p in placement) == 6
        assert sum(broker in p for p in placement) == 18
    assert all(len(set(p)) == 3 for p in placement)
    assert len({p for p in placement if p[0] == 1}) == 3, "the followers of one leader differ, too"


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (CreateTopic(request=1, topic="t"), Error.TOPIC_ALREADY_EXISTS),
        (CreateTopic(request=1, topic="u", partitions=0), Error.INVALID_PARTITIONS),
        (CreateTopic(request=1, topic="u", replication_factor=4), Error.INVALID_REPLICATION_FACTOR),
    ],
)
def test_a_topic_that_cannot_be_created_is_refused(request_: CreateTopic, error: Error) -> None:
    (answer,) = Quorum().hear(request_)
    assert isinstance(answer, AdminAnswer)
    assert answer.error is error
