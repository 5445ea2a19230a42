"""The simulator runs what users run: a mistake in what drives the cores, not in the cores, is found by it."""

from __future__ import annotations

import json

import attrs
import pytest

from isr_broker.core.effects import CONTROLLER, Slice
from isr_broker.core.inputs import Written
from isr_broker.core.messages import AlterPartitionRequest, MetadataSnapshot, Millis, TopicPartition
from isr_broker.core.record_batch import BadBatch
from isr_broker.runtime import Runtime
from isr_broker.storage.metadata_log import NAME, MetadataLog
from isr_sim.clients import PATIENCE_MS
from isr_sim.faults import ALL, Kind
from isr_sim.histories import Silent, telling
from isr_sim.simulate import QUICK, Config, Run, finish_run, simulate

pytestmark = pytest.mark.explores


def with_faults(*kinds: Kind) -> Config:
    return Config(kinds=kinds, patience_ms=8_000)


def broken(config: Config, seeds: int = 12) -> set[str]:
    """The promises that are broken, up to the first seed that breaks one."""
    for seed in range(seeds):
        promise = simulate(seed, config).promise
        if promise is not None:
            return {promise}
    return set()


def test_every_process_is_the_runtime_of_the_server_and_one_has_the_controller_with_its_log() -> None:
    run = Run(Config(safety_ms=100), 0)
    run.set_up()
    assert [type(host.runtime) for host in run.world.machines] == [Runtime] * 4
    assert [host.disk.exists(NAME) for host in run.world.machines] == [True, False, False, False]
    records = MetadataLog.open(run.world.seat.disk)[1]
    assert len(records) == run.world.controller.durable_offset > 4


def test_a_controller_that_tells_of_what_it_has_not_written_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets(self: Runtime, now: Millis) -> None:
        self._write_queue = []  # pyright: ignore[reportPrivateUsage]
        if self.controller is not None and self.controller.durable_offset < self.controller.offset:
            self._tell_controller(Written(self.controller.offset), now)  # pyright: ignore[reportPrivateUsage]

    monkeypatch.setattr(Runtime, "_write_metadata", forgets)
    assert broken(with_faults(Kind.CONTROLLER_RESTART)) == {"metadata-survives"}


def test_a_snapshot_that_is_written_over_the_metadata_log_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A power failure in the middle leaves neither the records nor the snapshot, and the controller starts no more."""

    def overwrites(self: MetadataLog, snapshot: MetadataSnapshot) -> None:
        self.file.truncate(0)
        self.growth = 0
        self.append((snapshot,))

    config = with_faults(Kind.CONTROLLER_POWER_LOSS)
    often = attrs.evolve(config.settings, metadata_log_max_record_bytes_between_snapshots=1)
    config = attrs.evolve(config, settings=often)
    assert broken(config, 4) == set()
    monkeypatch.setattr(MetadataLog, "compact", overwrites)
    assert broken(config) == {"metadata-survives"}


def test_a_broker_that_goes_on_without_timers_when_its_disk_is_full_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was when the error of a checkpoint ended the timer and not the process."""
    original = Runtime.deadline

    def stays(self: Runtime, why: str) -> None:
        self.settings = attrs.evolve(self.settings, broker_rack="no timers")

    def never(self: Runtime) -> Millis | None:
        return None if self.settings.broker_rack else original(self)

    config = with_faults(Kind.FULL_DISK)
    assert broken(config, 4) == set()
    monkeypatch.setattr(Runtime, "_ends", stays)
    monkeypatch.setattr(Runtime, "deadline", never)
    assert broken(config) == {"convergence"}


def test_a_read_that_fails_is_answered_and_a_read_path_that_raises_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(self: Runtime, tp: TopicPartition, wanted: Slice | None) -> bytes:
        return b"" if wanted is None else self.logs.read(tp, wanted)

    config = with_faults(Kind.READS)
    assert broken(config, 4) == set()
    monkeypatch.setattr(Runtime, "_read", raises)
    with pytest.raises(BadBatch):
        broken(config)


def test_a_request_that_is_never_answered_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Runtime.ask

    def leaks(self: Runtime, make: object, then: object, now: Millis) -> None:
        self.waiting.setdefault(0, lambda answer, records: None)
        original(self, make, then, now)  # type: ignore[arg-type]  # as given

    monkeypatch.setattr(Runtime, "ask", leaks)
    assert broken(with_faults(Kind.PAUSE), 1) == {"every-request-answered"}


def test_old_segments_go_and_topics_are_made_again() -> None:
    run = Run(Config(kinds=(Kind.RETENTION, Kind.RECREATION)), 1)
    assert finish_run(run).promise is None
    assert max(run.invariants.kept_from.values()) > 0 or run.invariants.topics[TopicPartition("t", 0)] > 9


def test_what_an_unclean_leader_lacks_is_forgiven_and_nothing_else() -> None:
    settings = attrs.evolve(QUICK, unclean_leader_election_enable=True, min_insync_replicas=1)
    kinds = (Kind.CRASH, Kind.CUT_FROM_CONTROLLER, Kind.ISOLATE, Kind.RETENTION)
    config = Config(settings=settings, kinds=kinds, forgives_unclean=True, every_ms=250)
    outcomes = [simulate(seed, config) for seed in range(6)]
    assert [outcome.violation for outcome in outcomes] == [None] * 6
    assert sum(outcome.actions.get("controller_elects_unclean", 0) for outcome in outcomes) > 0


def test_each_kind_of_fault_strikes() -> None:
    struck: set[Kind] = set()
    for seed in range(40):
        struck |= set(simulate(seed, Config(kinds=ALL)).faults)
        if struck == set(ALL):
            return
    assert struck == set(ALL)


def test_a_consumer_that_stops_while_it_gives_up_hears_no_late_answer() -> None:
    """Else the history would have the end of a poll twice, and could not be read."""
    run = telling(Config(safety_ms=100), 0)
    run.set_up()
    (consumer,), silent = run.consumers, run.invariants
    assert isinstance(silent, Silent)
    while json.loads(silent.lines[-1]).get("type") != "invoke" or '"poll"' not in silent.lines[-1]:
        run.world.run(run.world.now + 1)
    for leader in run.world.hosts:
        run.world.lag[leader, consumer.identity] = 2 * PATIENCE_MS
    consumer.stopped = True
    run.world.run(run.world.now + 5 * PATIENCE_MS)
    told = [json.loads(line) for line in silent.lines]
    assert [line["type"] for line in told if line["f"] == "poll"][-2:] == ["invoke", "info"]


def test_a_message_that_waited_for_a_paused_process_is_not_taken_for_one_of_the_next_topic_of_its_name() -> None:
    """On the wire it names a topic id, which is compared when it is read, and not when it comes."""
    run = Run(Config(safety_ms=100), 0)
    run.set_up()
    world, tp = run.world, TopicPartition("t", 0)
    before = world.controller.partitions[tp]
    assert before.leader is not None
    alone = AlterPartitionRequest(
        partition=tp,
        leader=before.leader,
        broker_epoch=world.controller.brokers[before.leader].epoch,
        leader_epoch=before.leader_epoch,
        partition_epoch=before.partition_epoch,
        isr=((before.leader, world.controller.brokers[before.leader].epoch),),
    )
    world.pause(world.seat, 5_000)
    world.send(world.hosts[before.leader], (before.leader, CONTROLLER, alone), tells=True)
    world.run(world.now + 50)
    world.seat.busy_until = world.now
    run.admin.wants_another(world)
    world.run(world.now + 6_000)
    after = world.controller.partitions[tp]
    assert after.topic_id != before.topic_id
    assert (after.leader_epoch, after.partition_epoch) == (before.leader_epoch, before.partition_epoch)
    assert "controller_accepts_alter_partition" not in world.actions
