"""The second version of the simulator: settings change, single files of disks are damaged, strangers call.

Without these a broker that loses acknowledged records when an operator changes a setting, or when a disk comes back
without one file, would keep every promise of the first version. `insync simulate --wider --seeds 0..9999` is the long
run; that each planted bug of these is found is in `tests/isr_kills`.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import attrs
import pytest
from immutables import Map
from tests.support.sample import sample

from isr_broker.core.controller_state import Controller
from isr_broker.core.effects import Slice
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import Metadata, PartitionMetadata, TopicPartition
from isr_broker.runtime import Runtime
from isr_broker.storage.checkpoints import LOG_STARTS, read_offsets
from isr_broker.storage.disk_memory import Everything, MemoryDisk, Nothing
from isr_broker.storage.log_directory import LogDirectory
from isr_broker.storage.meta_properties import Claim, NotOurs, claim
from isr_broker.storage.owner import META_PROPERTIES
from isr_sim import world as worlds
from isr_sim.damage import Archive, Damage, FileDamage, Purpose, archive_files, files, partition_of, purpose, spoil_file
from isr_sim.faults import ALL, WIDER, Kind
from isr_sim.host import Host, Impostor, MachineDeath
from isr_sim.invariants import Invariants, Violation
from isr_sim.simulate import EVERYTHING, QUICK, Config, Run, finish_run, simulate
from isr_sim.traces import again, origin_of
from isr_sim.wider import WiderFaults
from isr_sim.world import STRANGE

pytestmark = pytest.mark.explores

SEGMENT = f"t-0/{0:020d}.log"
CHUNK = 12


@pytest.mark.parametrize("first", sample(range(0, 10 * CHUNK, CHUNK), 2))
def test_every_promise_is_kept_while_settings_change_disks_are_damaged_and_strangers_call(first: int) -> None:
    for seed in range(first, first + CHUNK):
        outcome = simulate(seed, Config(kinds=WIDER))
        assert outcome.violation is None, f"seed {seed}: {outcome.violation}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 11_000, 500))
def test_it_is_so_for_many_more_seeds(first: int) -> None:
    for seed in range(first, first + 500):
        outcome = simulate(seed, Config(kinds=WIDER))
        assert outcome.violation is None, f"seed {seed}: {outcome.violation}"


def test_every_new_fault_strikes() -> None:
    """Without it one of them could find no occasion for ever, and every seed would hold."""
    new, struck = [kind for kind in WIDER if kind not in ALL], Counter[Kind]()
    for seed in range(12):
        struck.update(simulate(seed, Config(kinds=(*new, Kind.CRASH, Kind.SHUTDOWN), every_ms=200)).faults)
        if all(struck[kind] for kind in new):
            return
    assert [kind.name for kind in new if not struck[kind]] == []


# Two versions


def test_runs_of_the_first_version_have_nothing_of_the_second() -> None:
    """Their seeds mean what they meant: one more question for chance would make other histories of all of them."""
    assert tuple(Kind)[: len(ALL)] == ALL
    assert ALL[-1] is Kind.RECREATION
    run = Run(Config(kinds=ALL, safety_ms=100), 0)
    run.set_up()
    assert not run.config.second_version
    assert not isinstance(run.faults, WiderFaults)
    assert not any(host.disk.exists(META_PROPERTIES) for host in run.world.machines)
    assert run.world.cluster == ""
    assert run.readers == []


def test_a_run_of_the_second_version_is_one_again_by_its_trace() -> None:
    config = Config(wider=True, kinds=(Kind.MINIMUM,))
    read = again({"simulation": origin_of(config, 7), "settings": dict(config.settings.properties())})
    assert read is not None
    assert (read[0].second_version, read[0].kinds, read[1]) == (True, (Kind.MINIMUM,), 7)
    assert simulate(3, config).trace == simulate(3, config).trace != simulate(4, config).trace


def test_a_seed_is_one_history_though_files_have_random_ids() -> None:
    """In this one a bit of meta.properties flips, and which one depends on what is in the file."""
    assert len({simulate(2385, Config(kinds=WIDER)).trace for _ in range(6)}) == 1


# What is promised: each promise is broken by somebody


def broken(config: Config, seeds: int = 25) -> set[str]:
    """The promises that are broken, up to the first seed that breaks one."""
    for seed in range(seeds):
        promise = simulate(seed, config).promise
        if promise is not None:
            return {promise}
    return set()


def test_a_refusal_that_names_no_file_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(kinds=(Kind.IDENTITY_DAMAGE, Kind.CONTROLLER_DAMAGE), patience_ms=8_000)
    assert broken(config, 3) == set()

    def says_little(disk: MemoryDisk, mine: Claim) -> None:
        try:
            claim(disk, mine)
        except NotOurs:
            raise NotOurs("something is wrong") from None

    monkeypatch.setattr(worlds, "claim", says_little)
    assert broken(config) == {"refusal-names-file"}


def test_records_that_nobody_can_read_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is in every log, and in sync; only who reads from the beginning sees nothing."""
    original = LogDirectory.read

    def reads(self: LogDirectory, tp: TopicPartition, log_slice: Slice) -> bytes:
        return b"" if log_slice.offset == 0 and log_slice.max_bytes == EVERYTHING else original(self, tp, log_slice)

    config = Config(kinds=(Kind.STRANGER,), patience_ms=4_000, safety_ms=1_000)
    assert broken(config, 1) == set()
    monkeypatch.setattr(LogDirectory, "read", reads)
    outcome = simulate(0, config)
    assert outcome.violation is not None
    assert "a consumer reads up to 0 of" in outcome.violation


def test_a_log_that_starts_later_by_itself_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first segment is missing, and it passes for one whose old records retention has removed."""
    original = LogDirectory.load

    def forgets(self: LogDirectory) -> object:
        clean, opened = original(self)
        for tp, log in self.logs.items():
            start = min(log.view.start + 3, log.view.end)
            log.view = attrs.evolve(log.view, start=start)
            opened = [attrs.evolve(o, log=log.view) if o.partition == tp else o for o in opened]
        return clean, opened

    config = Config(wider=True, kinds=(Kind.SHUTDOWN,), patience_ms=6_000)
    assert broken(config, 1) == set()
    monkeypatch.setattr(LogDirectory, "load", forgets)
    assert broken(config) == {"starts-by-retention"}


def test_where_a_log_starts_counts_though_its_process_dies_of_it() -> None:
    """Retention has decided, and the disk has it, but no core was told: what is gone is gone for its age."""
    run = Run(Config(wider=True, kinds=()), 0)
    run.set_up()
    run.world.run(6_000)
    host, tp = run.world.hosts[2], TopicPartition("t", 0)

    def dies(disk: MemoryDisk, operation: str, path: str) -> None:
        if operation == "remove" and path == SEGMENT:
            raise MachineDeath(Everything())

    host.disk.hook = dies
    run.faults.retains(host)
    run.world.run(7_000)
    assert not host.alive
    assert 0 < read_offsets(host.disk, LOG_STARTS)[tp] == run.invariants.retention_points[tp]


def test_a_checkpoint_of_a_log_that_was_set_aside_need_not_be_whole() -> None:
    """It was damaged under the name of the log, and nobody reads it under the other."""
    invariants, disk = Invariants(strict=True), MemoryDisk()
    disk.make_folder("t-1.0f-stray")
    disk.put("t-1.0f-stray/leader-epoch-checkpoint", b"half")
    invariants.starts(1, disk)
    disk.make_folder("t-1")
    disk.put("t-1/leader-epoch-checkpoint", b"half")
    with pytest.raises(Violation, match="checkpoints-whole"):
        invariants.starts(1, disk)


def test_retention_of_a_topic_that_was_deleted_is_none_of_the_next_one() -> None:
    tp, invariants = TopicPartition("t", 0), Invariants(strict=True)
    invariants.topics[tp] = 7
    invariants.note_retention(tp, 6, LogView(start=3, end=5))
    assert invariants.retention_points == {}
    invariants.note_retention(tp, 7, LogView(start=3, end=5))
    assert invariants.retention_points == {tp: 3}


@pytest.mark.parametrize(("behind", "promise"), [(True, "metadata-survives"), (False, "strangers-kept-out")])
def test_a_broker_that_learns_from_a_controller_that_is_none_of_ours_is_found(behind: bool, promise: str) -> None:
    invariants = Invariants(strict=True, controller_behind=Controller(settings=QUICK) if behind else None)
    invariants.check_news(Host(1), Metadata(since=0, offset=1, life=STRANGE - 1))
    invariants.check_news(Host(1, impostor=Impostor.BEHIND), Metadata(since=0, offset=1, life=STRANGE))
    with pytest.raises(Violation, match=promise):
        invariants.check_news(Host(1), Metadata(since=0, offset=1, life=STRANGE))


def test_a_controller_that_is_behind_may_decide_by_the_clock_and_for_nobody_who_asks() -> None:
    tp, behind = TopicPartition("t", 0), Host(0, impostor=Impostor.BEHIND)
    before = PartitionMetadata(partition=tp, replicas=(1, 2), isr=frozenset({1, 2}), leader=1, leader_epoch=4)
    elected = attrs.evolve(before, leader=2, leader_epoch=5)
    cores = [Controller(settings=QUICK, partitions=Map({tp: p})) for p in (before, elected)]
    invariants = Invariants(strict=True, controller_behind=cores[0])
    with pytest.raises(Violation, match="metadata-survives"):
        invariants.check_controller(behind, cores[1], by_clock=False)
    invariants.check_controller(behind, cores[1], by_clock=True)
    invariants.check_controller(behind, cores[1], by_clock=False)
    with pytest.raises(Violation, match="metadata-survives"):
        invariants.check_controller(behind, cores[0], by_clock=False)


def test_a_broker_of_another_cluster_and_a_controller_that_is_behind_stand_there_and_leave() -> None:
    struck = Counter[Kind]()
    for seed in range(4):
        kinds = (Kind.FOREIGN_BROKER, Kind.FOREIGN_CONTROLLER, Kind.CONTROLLER_BEHIND)
        run = Run(Config(kinds=kinds, every_ms=300), seed)
        outcome = finish_run(run)
        assert outcome.violation is None
        assert all(host.impostor is None for host in run.world.machines)
        assert {host.disk.exists(META_PROPERTIES) for host in run.world.machines} == {True}
        struck.update(outcome.faults)
    assert struck[Kind.FOREIGN_BROKER]
    assert struck[Kind.FOREIGN_CONTROLLER]


def test_a_topic_that_is_made_again_while_nobody_could_lead_needs_no_more_producers() -> None:
    """They stop where nobody may lead; the next topic of the name has to converge all the same."""
    run = Run(Config(wider=True, kinds=(), patience_ms=4_000), 0)
    run.set_up()
    run.world.run(run.world.now + 500)
    for producer in run.producers:
        producer.stopped = True
    run.world.run(run.world.now + 2_000)
    assert run.heal() <= 4_000


# What is to be borne


def test_what_a_disk_loses_is_borne_only_while_others_have_it() -> None:
    """The least minimum since all were in sync counts, and of those who may lead somebody must be left."""
    run = Run(Config(wider=True), 0)
    run.set_up()
    run.world.run(4_000)
    faults = run.faults
    assert isinstance(faults, WiderFaults)
    faults._notes_minima()  # pyright: ignore[reportPrivateUsage]
    bears = faults._bearable  # pyright: ignore[reportPrivateUsage]
    assert bears(Kind.SEGMENT_DAMAGE, 1)
    faults.lossy.add(2)
    faults.crash_lives[2] = run.world.hosts[2].life
    assert not bears(Kind.SEGMENT_DAMAGE, 1), "two of three, with a minimum of two"
    assert not bears(Kind.CRASH, 1), "to the controller a crash is no other"
    faults.lossy.clear()
    faults.crash_lives.clear()
    faults.least_minimum = dict.fromkeys(faults.least_minimum, 1)
    assert not bears(Kind.SEGMENT_DAMAGE, 1), "something may be committed on one broker alone"


def test_a_copy_whose_offsets_are_damaged_is_none() -> None:
    """Whoever takes the offset in a header for a place in the log counts up to it for ever."""
    run = Run(Config(wider=True), 0)
    run.set_up()
    run.world.run(3_000)
    tp, faults = TopicPartition("t", 0), run.faults
    assert isinstance(faults, WiderFaults)
    sound = faults._sound  # pyright: ignore[reportPrivateUsage]
    assert sound(1, tp)
    run.world.hosts[1].disk.flip(SEGMENT, 1)
    assert not sound(1, tp)


# Files


def disk_with(path: str, contents: bytes) -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_folder("t-0")
    disk.put(path, contents)
    disk.crash(Everything())
    return disk


@pytest.mark.parametrize("how", list(Damage))
@pytest.mark.parametrize("path", ["log-start-offset-checkpoint", SEGMENT])
def test_damage_is_durable_and_can_be_put_right(how: Damage, path: str) -> None:
    before, versions = b"0\n1\nt 0 10\n", Archive({"log-start-offset-checkpoint": [b"0\n0\n", b"0\n1\nt 0 10\n"]})
    disk = disk_with(path, before)
    harm = spoil_file(disk, path, how, versions, Random(1), [before, b"of another broker"])
    if harm is None:
        assert (how, path) == (Damage.OLDER, SEGMENT), "there is no batch in it"
        return
    disk.crash(Nothing())
    now = disk.image(path).durable if disk.exists(path) else None
    assert now == harm.after != before
    assert (now == b"of another broker") == (how is Damage.FOREIGN)
    assert harm.repair(now) == before


def test_a_file_of_another_broker_is_of_the_same_name_and_a_segment_of_the_same_topic() -> None:
    run = Run(Config(wider=True, kinds=()), 0)
    run.set_up()
    run.world.run(3_000)
    faults, host, other = run.faults, run.world.hosts[1], run.world.hosts[2]
    assert isinstance(faults, WiderFaults)
    elsewhere = faults._elsewhere  # pyright: ignore[reportPrivateUsage]
    assert len(list(elsewhere(host, SEGMENT))) == 2
    other.disk.put("t-0/partition.metadata", b"version: 0\ntopic_id: of another topic\n")
    assert len(list(elsewhere(host, SEGMENT))) == 1
    assert len(list(elsewhere(host, "t-0/partition.metadata"))) == 2
    other.impostor = Impostor.FOREIGN
    assert len(list(elsewhere(host, META_PROPERTIES))) == 1


def test_files_of_other_brokers_take_the_place_of_some() -> None:
    """Else one of the kinds of damage could find no occasion for ever, and every seed would hold."""
    places = set[Purpose]()
    for seed in range(40):
        kinds = (Kind.CHECKPOINT_DAMAGE, Kind.IDENTITY_DAMAGE, Kind.SEGMENT_DAMAGE, Kind.SHUTDOWN)
        run = Run(Config(kinds=kinds, every_ms=150, patience_ms=20_000), seed)
        run.world.keeps_lines = True
        assert finish_run(run).violation is None
        places |= {purpose(line.split()[1]) for line in run.world.lines if line.endswith(Damage.FOREIGN.value)}
        if len(places) == 3:
            return
    assert places == {Purpose.CHECKPOINT, Purpose.IDENTITY, Purpose.RECORDS}


def test_a_bit_is_put_right_below_what_was_written_since() -> None:
    assert FileDamage(Damage.FLIP, b"abc", b"abb").repair(b"abbde") == b"abcde"
    twice = FileDamage(Damage.FLIP, b"abc", b"abb").after_another(FileDamage(Damage.FLIP, b"abb", b"aab"))
    assert twice.repair(b"aab") == b"abc"


def test_a_flipped_bit_is_flipped_for_readers_and_after_a_crash_durable_or_not() -> None:
    disk = disk_with(SEGMENT, b"\0\0")
    disk.open(SEGMENT).append(b"\0")
    disk.flip(SEGMENT, 9)
    disk.flip(SEGMENT, 16)
    assert disk.open(SEGMENT).read(0, 9) == b"\0\2\1"
    disk.crash(Nothing())
    assert disk.image(SEGMENT).durable == b"\0\2"


def test_files_are_told_apart_by_what_they_are_for() -> None:
    paths = {
        "metadata.log": Purpose.METADATA,
        "meta.properties": Purpose.IDENTITY,
        "t-0/partition.metadata": Purpose.IDENTITY,
        "t-0/leader-epoch-checkpoint": Purpose.CHECKPOINT,
        ".kafka_cleanshutdown": Purpose.CHECKPOINT,
        SEGMENT: Purpose.RECORDS,
    }
    assert {path: purpose(path) for path in paths} == paths
    disk = MemoryDisk()
    for path in (*paths, "t-0.0123-stray/00000000000000000000.log", "meta.properties.tmp"):
        disk.put(path, b"x")
    assert files(disk, Purpose.RECORDS) == [SEGMENT]
    assert files(disk, Purpose.IDENTITY) == ["meta.properties", "t-0/partition.metadata"]
    assert partition_of(SEGMENT) == TopicPartition("t", 0)
    assert partition_of("meta.properties") is None


def test_the_archive_has_what_was_there_and_no_damage() -> None:
    disk, versions = disk_with("meta.properties", b"1"), Archive()
    archive_files(versions, disk, {})
    harm = spoil_file(disk, "meta.properties", Damage.EMPTY, versions, Random(0))
    assert harm is not None
    archive_files(versions, disk, {"meta.properties": harm})
    assert versions == {"meta.properties": [b"1"]}


def test_ids_of_topics_cost_no_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a run in which a topic is made again would go on otherwise with other ids."""
    asked = list[int]()
    original = Runtime.start

    def starts(self: Runtime, incarnation: int, now: int, with_controller: bool) -> None:
        ids = self.topic_ids
        assert ids is not None

        def counts() -> int:
            asked.append(1)
            return ids()

        self.topic_ids = counts
        original(self, incarnation, now, with_controller)

    monkeypatch.setattr(Runtime, "start", starts)
    run = Run(Config(wider=True, kinds=(), safety_ms=100), 0)
    before = run.world.ids.getstate()
    run.set_up()
    assert asked == [1]
    assert run.world.ids.getstate() != before
