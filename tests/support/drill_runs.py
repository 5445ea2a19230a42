"""What becomes of a runbook in the simulator: carried out at random, or as the story of a drill says.

The brokers are those that insync serves with. A client writes all the time. An acknowledged record counts as lost
where no disk has it, or where a broker leads that lacks it. Nothing of the drill is used to look at that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, partial
from itertools import pairwise
from random import Random
from typing import Final

import attrs
from tests.support.drill_cases import RELEASES, Case, Seen, drilled, random_case, steps_of

from isr_broker import topic_configs
from isr_broker.core.controller_state import Controller
from isr_broker.core.effects import CONTROLLER, AnswerProduce, DiskOperation
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import (
    AlterTopicConfigs,
    BrokerId,
    ElectUncleanLeader,
    Error,
    Message,
    Metadata,
    Millis,
    PartitionMetadata,
    ReassignPartition,
    TopicPartition,
)
from isr_broker.core.record_batch import batches
from isr_broker.designs import DESIGNS
from isr_broker.runtime import Runtime
from isr_broker.settings import Settings
from isr_broker.storage.disk import Disk
from isr_broker.storage.disk_memory import Everything, MemoryDisk, Nothing
from isr_check.reference import State
from isr_drill.course import Entry
from isr_drill.drill import PartitionDrill, Records
from isr_drill.exploration import evaluator
from isr_drill.runbook import CANCEL, CUT, REASSIGN, SET, WAIT_REASSIGNED
from isr_drill.situation import Situation
from isr_drill.story import values_of
from isr_sim.clients import Admin, Producer
from isr_sim.damage import Purpose, files
from isr_sim.host import Host
from isr_sim.invariants import Invariants
from isr_sim.scenario import leads
from isr_sim.simulate import QUICK
from isr_sim.world import FAIR, World

T0: Final = TopicPartition("t", 0)
FOREVER: Final[Millis] = 10**9
WRITERS: Final = (100,)
PAUSE_MS: Final[Millis] = 120
PATIENCE: Final[Millis] = 15_000
"""How long a wait of a runbook, or what a story waits for, may take."""
Key = tuple[int, int, int]
"""A record, by its producer, the producer's epoch, and the sequence number."""


@attrs.define
class NoWatcher:
    """Looks at nothing: promises are not what these runs are about."""

    def starts(self, broker: BrokerId, disk: Disk) -> None: ...
    def note_opened_log(self, broker: BrokerId, tp: TopicPartition, log: LogView, records: bytes) -> None: ...
    def note_disk_operation(self, broker: BrokerId, operation: DiskOperation, log: LogView) -> None: ...
    def note_retention(self, tp: TopicPartition, topic_id: int, log: LogView) -> None: ...
    def check_message(self, host: Host, message: Message) -> None: ...
    def check_controller(self, host: Host, core: Controller, by_clock: bool) -> None: ...
    def check_news(self, host: Host, news: Metadata) -> None: ...
    def check_metadata_log(self, world: World) -> None: ...
    def note_refusal(self, host: Host, why: str) -> None: ...
    def check_step(self, world: World) -> None: ...


@attrs.define
class Ledger(Invariants):
    """What was acknowledged."""

    keys: list[Key] = attrs.field(factory=list[Key])

    def acknowledged(self, tp: TopicPartition, offset: int, count: int, topic_id: int) -> None:
        """Nothing more is promised than that it stays."""


@attrs.define
class Writer(Producer):
    """A producer that takes its time, and whose acknowledged records are noted by their keys."""

    def next(self, world: World) -> None:
        """The next batch, some time from now."""
        world.after(PAUSE_MS, lambda: Producer.next(self, world))

    def take_answer(self, world: World, answer: AnswerProduce, topic_id: int) -> None:
        """An acknowledgement is noted before it is acted upon."""
        if answer.error is Error.NONE:
            assert isinstance(self.invariants, Ledger)
            self.invariants.keys.append((self.identity, self.epoch, self.sequence))
        Producer.take_answer(self, world, answer, topic_id)


@attrs.define
class Trial:
    """A case in the simulator. `loss` says how a record was lost, "" while none is.

    `flushed_only` has of each broker that was killed what its disk would have without power. `cut` are brokers that
    nobody hears, `apart` those that hear no other broker, but the controller.
    """

    case: Case
    chance: Random
    session_ms: Millis = QUICK.broker_session_timeout_ms
    world: World = attrs.field(init=False)
    ledger: Ledger = attrs.field(factory=Ledger)
    loss: str = ""
    flushed_only: dict[BrokerId, MemoryDisk] = attrs.field(factory=dict[BrokerId, MemoryDisk])
    cut: set[BrokerId] = attrs.field(factory=set[BrokerId])
    apart: set[BrokerId] = attrs.field(factory=set[BrokerId])
    pairs: set[tuple[BrokerId, BrokerId]] = attrs.field(factory=set[tuple[BrokerId, BrokerId]])

    def __attrs_post_init__(self) -> None:
        hosts = {b: Host(b) for b in range(1, self.case.brokers + 1)}
        self.world = World(self.settings, self.chance, hosts, NoWatcher(), weather=FAIR)
        for host in self.world.machines:
            self.begins(host)
        self.world.run(1_000)
        Admin(T0.topic, (self.case.replicas,)).next(self.world)
        self.world.run(1_500)
        for identity in WRITERS:
            Writer(identity, T0, -1, self.ledger).next(self.world)
        self.wait(self.is_in_sync)
        self.wait(lambda: bool(self.ledger.keys))
        assert self.ledger.keys, "nothing was acknowledged in a healthy cluster"

    @property
    def settings(self) -> Settings:
        case = self.case
        return attrs.evolve(
            QUICK,
            min_insync_replicas=case.minimum,
            default_replication_factor=len(case.replicas),
            unclean_leader_election_enable=case.unclean,
            log_flush_interval_messages=1 if case.flushed else QUICK.log_flush_interval_messages,
            insync_design=attrs.evolve(DESIGNS[case.design], keeps_removed_in_elr=True),
            auto_leader_rebalance_enable=False,
            broker_session_timeout_ms=self.session_ms,
            broker_heartbeat_interval_ms=450,
            replica_fetch_wait_max_ms=450,
        )

    # Looking

    @property
    def partition(self) -> PartitionMetadata:
        return self.world.controller.partitions[T0]

    def host(self, broker: BrokerId) -> Host:
        return self.world.hosts[broker]

    def is_in_sync(self) -> bool:
        return self.partition.isr == frozenset(self.partition.replicas)

    def is_reassigned(self) -> bool:
        return not (self.partition.adding_replicas or self.partition.removing_replicas)

    def is_fenced(self, broker: BrokerId) -> bool:
        known = self.world.controller.brokers.get(broker)
        return known is None or known.fenced

    def is_out(self, broker: BrokerId) -> bool:
        return broker not in self.partition.isr

    def is_registered(self, broker: BrokerId) -> bool:
        """The controller knows this very process."""
        node, known = self.host(broker).node, self.world.controller.brokers.get(broker)
        return node is not None and known is not None and node.broker_epoch == known.epoch

    def is_leaving(self, broker: BrokerId) -> bool:
        known = self.world.controller.brokers.get(broker)
        return known is not None and known.shutting_down

    def records(self, broker: BrokerId) -> set[Key]:
        """What is on a broker's disk of the partition."""
        disk, keys = self.host(broker).disk, set[Key]()
        for path in files(disk, Purpose.RECORDS):
            if path.startswith(f"{T0}/"):
                found = batches(bytes(disk.image(path).visible_bytes))
                keys |= {(b.producer_id, b.producer_epoch, b.base_sequence) for b in found}
        return keys

    def look(self) -> None:
        """Whether a record is lost by now."""
        if self.loss:
            return
        on = {b: self.records(b) for b in self.world.hosts}
        acked, everywhere = set(self.ledger.keys), set[Key]().union(*on.values())
        leader = self.partition.leader
        if acked - everywhere:
            self.loss = f"no disk has {min(acked - everywhere)}"
        elif leader is not None and self.host(leader).alive and acked - on[leader]:
            self.loss = f"{leader} leads, and lacks {min(acked - on[leader])}"

    def seen(self) -> Seen:
        """What an operator sees now."""
        p = self.partition
        living = tuple(b for b in self.world.hosts if not self.is_fenced(b) and self.host(b).alive)
        last = p.last_known_leader if not p.isr else None
        return Seen(p.leader, p.replicas, tuple(sorted(p.isr)), tuple(sorted(p.elr)), last, living)

    # Time and the network

    def passes(self, millis: Millis) -> None:
        """Time passes, and it is looked at now and then."""
        end = self.world.now + millis
        while self.world.now < end and not self.loss:
            self.world.run(min(end, self.world.now + 500))
            self.look()

    def wait(self, until: Callable[[], bool], most: Millis = PATIENCE) -> bool:
        """Let time pass until something is so; False where it never is."""
        end = self.world.now + most
        while not until():
            if self.world.now >= end:
                return False
            self.world.run(self.world.now + 20)
        return True

    def cuts(self) -> None:
        """Cut what is to be cut, and nothing else."""
        brokers, pairs = set(self.world.hosts), set(self.pairs)
        for b in self.apart:
            pairs |= {(b, o) for o in brokers - {b}} | {(o, b) for o in brokers - {b}}
        for b in self.cut:
            others = {*brokers, *WRITERS, CONTROLLER, self.world.seat.broker} - {b}
            pairs |= {(b, o) for o in others} | {(o, b) for o in others}
        self.world.cut = pairs

    # What people do

    def asks(self, message: Message) -> None:
        """An admin asks the controller."""

        def happens(runtime: Runtime, now: Millis) -> None:
            runtime.receive_messages([(self.world.seat.broker, CONTROLLER, message)], now)

        self.world.turn(self.world.seat, happens)

    def order(self, first: BrokerId) -> None:
        """Of several who may be elected, this one is: it comes first in the order of assignment."""
        core = self.world.seat.runtime.controller if self.world.seat.runtime is not None else None
        if core is None or first not in self.partition.replicas or not self.is_reassigned():
            return
        assert self.world.seat.runtime is not None
        p = core.partitions[T0]
        replicas = (first, *(b for b in p.replicas if b != first))
        changed = attrs.evolve(core, partitions=core.partitions.set(T0, attrs.evolve(p, replicas=replicas)))
        self.world.seat.runtime.controller = self.world.controller = changed

    def does(self, deed: str, broker: BrokerId) -> None:
        """A step of a runbook at one broker, or something of `PAST`."""
        world, host = self.world, self.host(broker)
        match deed:
            case "STOP" | "stop":
                if host.alive and host.busy_until < world.now + FOREVER // 2:
                    world.shut_down(host)
            case "KILL" | "kill":
                self.dies(host)
            case "POWER_LOSS":
                self.loses_power(host)
            case "DESTROY":
                self.dies(host)
                host.disk = MemoryDisk()
                self.flushed_only.pop(broker, None)
            case "PAUSE":
                if host.alive:
                    world.pause(host, FOREVER)
            case "partition":
                self.cut.add(broker)
            case "RESUME":
                self.cut.discard(broker)
            case "START":
                self.starts(host)
            case "lag":
                self.apart.add(broker)
            case "wipe" | "wipe and kill":
                self.does("DESTROY", broker)
                self.apart.add(broker)
                self.cuts()
                self.wait(lambda: self.is_fenced(broker))
                self.starts(host)
                self.wait(lambda: not self.is_fenced(broker), 3_000)
                if deed != "wipe":
                    self.dies(host)
            case _:
                raise AssertionError(deed)
        self.cuts()

    def dies(self, host: Host) -> None:
        """The process ends, and the machine does not."""
        if host.alive:
            powerless = host.disk.copy()
            powerless.crash(Nothing())
            self.flushed_only[host.broker] = powerless
            self.world.stop(host, Everything())

    def loses_power(self, host: Host) -> None:
        """What was not flushed is gone, also of a broker that was killed before."""
        if host.alive:
            self.world.stop(host, Nothing())
        elif host.broker in self.flushed_only:
            host.disk = self.flushed_only.pop(host.broker)

    def starts(self, host: Host) -> None:
        """A process goes on, or a new one starts."""
        if host.alive and host.busy_until >= self.world.now + FOREVER // 2:
            host.busy_until = self.world.now
            self.world.turn(host, lambda runtime, now: runtime.tick(now))
            return
        if host.alive and self.is_leaving(host.broker):
            self.wait(lambda: not host.alive)
        if not host.alive:
            self.flushed_only.pop(host.broker, None)
            self.begins(host)

    def begins(self, host: Host) -> None:
        """A process starts. Nobody looks at the steps of its broker, which takes a fifth of the time."""
        self.world.start(host)
        if host.runtime is not None:
            host.runtime.trace = None

    def changes(self, entry: Entry) -> None:
        """A reassignment, or another minimum."""
        if entry.kind in (REASSIGN, CANCEL):
            target = entry.brokers if entry.kind == REASSIGN else None
            self.asks(ReassignPartition(request=0, partition=T0, replicas=target))
        elif entry.kind == SET:
            value = str(entry.minimum)
            self.asks(AlterTopicConfigs(request=0, topic=T0.topic, changes=((topic_configs.MIN_ISR, value),)))
        else:
            self.asks(ElectUncleanLeader(request=0, partition=T0))


def begun(case: Case, seed: str, past: Sequence[tuple[str, int]], session_ms: Millis) -> Trial:
    """A trial to which its past has happened. What a member of ISR or ELR lacks by then was lost before."""
    trial = Trial(case, Random(seed), session_ms)
    for deed, broker in past:
        trial.does(deed, broker)
        trial.passes(500)
        down = deed in ("stop", "kill", "wipe and kill")
        trial.wait(partial(trial.is_fenced if down else trial.is_out, broker), 20_000)
        trial.passes(700)
    members = [trial.records(b) for b in trial.partition.isr | trial.partition.elr]
    trial.ledger.keys[:] = [key for key in trial.ledger.keys if all(key in records for records in members)]
    trial.loss = ""
    return trial


# At random


def random_run(case: Case, number: int, expected: Seen | None = None) -> str:
    """The runbook carried out while the network, leadership and the clock are random: how a record is lost, or ""."""
    trial = begun(case, f"run {number} of {case.seed}", case.past, QUICK.broker_session_timeout_ms)
    if expected is not None and trial.seen() != expected:
        return ""
    chance = Random(f"adversary {number} of {case.seed}")
    _disturb(trial, chance)
    trial.apart.clear()
    trial.cuts()
    for step in steps_of(case):
        for stage in step.stages:
            trial.passes(chance.choice((0, 0, 30, 200, 700, 1_500, 2_500)))
            kind = CUT if step.text.split()[0] == CUT else stage.kind
            if not _stage(trial, chance, kind, stage.brokers, stage.minimum, stage.assignment.replicas_of("t-0")):
                trial.look()
                return trial.loss
            trial.look()
    trial.passes(chance.choice((300, 2_500)))
    trial.pairs.clear()
    trial.cuts()
    trial.passes(1_500)
    return trial.loss


def _stage(
    trial: Trial, chance: Random, kind: str, brokers: Sequence[int], minimum: int, target: tuple[int, ...] | None
) -> bool:
    """One stage of the runbook; False where it never gets further."""
    if kind == "WAIT":
        return trial.wait(trial.is_in_sync, 20_000)
    if kind == WAIT_REASSIGNED:
        return trial.wait(trial.is_reassigned, 20_000)
    if kind in (SET, REASSIGN, CANCEL, "ELECT"):
        trial.changes(Entry(kind, target or (), minimum))
        return True
    for broker in chance.sample(list(brokers), len(brokers)):
        if kind == "START" and not trial.host(broker).alive:
            trial.wait(partial(trial.is_fenced, broker), 5_000)
        trial.does(kind, broker)
        trial.passes(chance.choice((0, 0, 20, 300)))
    return True


def _disturb(trial: Trial, chance: Random) -> None:
    """Every now and then two brokers do not hear each other, or leadership moves."""

    def strikes() -> None:
        trial.world.after(chance.randint(200, 1_500), strikes)
        trial.pairs.clear()
        if chance.random() < 0.6:
            one, other = chance.sample(sorted(trial.world.hosts), 2)
            trial.pairs.update({(one, other), (other, one)})
        trial.cuts()
        if chance.random() < 0.3 and trial.partition.isr and trial.is_reassigned():
            leads(trial.world, chance.choice(sorted(trial.partition.isr)))

    trial.world.after(chance.randint(1, 800), strikes)


# As a story says


ELECTIONS: Final = ("controller_elects_returned", "controller_elects_unclean", "controller_elects_by_order")
"""Steps whose leader is the first, in the order of assignment, of those who can lead then."""


@attrs.define
class Driver:
    """A trial that is steered along the way of a drill to its loss.

    Who is in the ISR hears the others. Nobody else does, but who is about to join. `early`: until the record is
    acknowledged it is those who are to have it then. Who has left the ISR before by the way leaves it after that.
    """

    trial: Trial
    situation: Situation
    answer: PartitionDrill
    early: bool
    texts: Sequence[str]

    def states(self) -> Iterator[tuple[str, tuple[object, ...], State, State]]:
        """The steps of the way, each with the states before and after."""
        way = self.answer.way
        assert way is not None
        setting, state = self.situation.setting, way.start
        steps = evaluator(setting.design, tuple(setting.constants(self.situation.phases).items()), True)
        for name, parameters in way.path.steps:
            after = next(
                s
                for a, p, s in steps.successors(state)
                if steps.instance.actions[a].name == name and tuple(p) == tuple(parameters)
            )
            yield name, tuple(parameters), state, after
            state = after

    def named(self, mask: object) -> set[BrokerId]:
        return {b for i, b in enumerate(self.situation.brokers) if int(str(mask)) >> i & 1}

    @cached_property
    def holders(self) -> set[BrokerId] | None:
        """Who has the record when it is acknowledged, or had it until its disk was gone."""
        for name, _, _, after in self.states():
            if name == "record_is_acknowledged":
                values = values_of(self.situation, after)
                return self.named(values["holders"]) | self.named(values["wounds"])
        return None

    def drive(self) -> str:
        """How a record is lost, or ""."""
        trial, acked = self.trial, False
        where, whole = 0, list(self.states())
        for (name, parameters, before, after), (later, named, _, _) in pairwise([*whole, whole[-1]]):
            old, new = (values_of(self.situation, s) for s in (before, after))
            acked = bool(old["acked"])
            members = self.named(old["controller_isr"]) | self.named(new["controller_isr"])
            if name == "isr_shrinks":
                members = self.named(new["controller_isr"])
            if name == "record_is_copied":
                members |= {self.broker(parameters[0])}
            if self.is_early(acked=acked):
                members = self.holders or set()
            trial.apart = set(trial.world.hosts) - members - self.named(old.get("removing", 0))
            trial.cuts()
            if name == "next_phase_begins":
                where = int(str(parameters[0]))
            if later in ELECTIONS:
                trial.order(self.broker(named[0]))
            self.act(name, parameters, where)
            trial.wait(partial(self.is_done, name, parameters, len(trial.ledger.keys), acked), self.most(name))
            if name == "record_is_acknowledged" and self.early:
                isr = self.named(new["controller_isr"])
                trial.apart = set(trial.world.hosts) - isr
                trial.cuts()
                trial.wait(partial(self.is_isr, isr), 4_000)
            trial.look()
            if trial.loss:
                return trial.loss
        trial.passes(2_000)
        return trial.loss

    def is_early(self, *, acked: bool) -> bool:
        """Whether those hear each other who are to have the record, whoever is in the ISR."""
        return self.early and not acked and self.holders is not None

    def is_isr(self, isr: set[BrokerId]) -> bool:
        return set(self.trial.partition.isr) == isr

    def most(self, name: str) -> Millis:
        return 1_500 if name == "record_is_acknowledged" else PATIENCE

    def broker(self, position: object) -> BrokerId:
        return self.situation.brokers[int(str(position))]

    def is_cutting(self, phase: int) -> bool:
        """Whether the phase belongs to a step that cuts brokers off."""
        step = next(i for i, end in enumerate(self.situation.ends) if end >= phase)
        return self.texts[step - 1].split()[0] == CUT

    def act(self, name: str, parameters: tuple[object, ...], phase: int) -> None:
        """Do what is to be done for a step of the way; most just come to pass."""
        trial = self.trial
        match name:
            case "broker_asks_to_shut_down":
                trial.does("STOP", self.broker(parameters[0]))
            case "broker_is_killed":
                trial.does("KILL", self.broker(parameters[0]))
            case "power_fails":
                trial.does("POWER_LOSS" if parameters[1] else "KILL", self.broker(parameters[0]))
            case "disk_is_destroyed":
                trial.does("DESTROY", self.broker(parameters[0]))
            case "broker_is_paused":
                trial.does(CUT if self.is_cutting(phase) else "PAUSE", self.broker(parameters[0]))
            case "broker_resumes":
                broker = self.broker(parameters[0])
                trial.does("RESUME" if broker in trial.cut else "START", broker)
            case "broker_restarts":
                trial.does("START", self.broker(parameters[0]))
            case "controller_moves_leadership":
                leads(trial.world, self.broker(parameters[0]))
            case "controller_fences_leader" | "isr_grows_and_completes" | "controller_reassigns_at_once":
                target, *more = parameters
                if more:
                    trial.order(self.broker(more[0]))
                if name == "controller_reassigns_at_once":
                    trial.changes(Entry(REASSIGN, self.target(target)))
            case "controller_elects_by_order":
                trial.changes(Entry("ELECT"))
            case "controller_starts_reassignment":
                trial.changes(Entry(REASSIGN, self.target(parameters[0])))
            case "controller_cancels_reassignment":
                trial.changes(Entry(CANCEL))
            case "minimum_is_set":
                trial.changes(Entry(SET, minimum=int(str(parameters[0]))))
            case _:
                pass

    def target(self, mask: object) -> tuple[int, ...]:
        """The replicas of a reassignment, its leader first where it stays."""
        several = sorted(self.named(mask))
        leader = self.trial.partition.leader
        return tuple(sorted(several, key=lambda b: b != leader))

    def is_done(self, name: str, parameters: tuple[object, ...], acknowledged: int, acked: bool) -> bool:
        """Whether a step of the way has come to pass."""
        trial, p = self.trial, self.trial.partition
        position = int(str(parameters[0])) if parameters else 0
        first = self.situation.brokers[position] if position < len(self.situation.brokers) else 0
        match name:
            case "controller_fences_outsider" | "controller_fences_follower" | "controller_fences_last_leader":
                return trial.is_fenced(first) or (trial.is_leaving(first) and p.leader != first)
            case "controller_fences_leader":
                return p.leader == self.broker(parameters[1])
            case "controller_unfences":
                return not trial.is_fenced(first)
            case "controller_elects_returned" | "controller_elects_last_known_leader" | "controller_elects_unclean":
                return p.leader == first
            case "controller_elects_by_order" | "controller_moves_leadership":
                return p.leader == first
            case "broker_shuts_down":
                return not trial.host(first).alive
            case "broker_restarts":
                return trial.is_registered(first)
            case "isr_grows" | "isr_grows_and_completes":
                return first in p.isr
            case "isr_shrinks":
                later = (self.holders or set[BrokerId]()) if self.is_early(acked=acked) else set[BrokerId]()
                return not p.isr & (self.named(parameters[0]) - later)
            case "record_is_acknowledged":
                return len(trial.ledger.keys) > acknowledged
            case "record_is_copied":
                return bool(trial.ledger.keys) and trial.ledger.keys[-1] in trial.records(first)
            case "replica_is_deleted":
                return not trial.records(first)
            case _:
                return True


def pasts_of(case: Case, seen: Seen, situation: Situation, start: State) -> Iterator[tuple[tuple[str, int], ...]]:
    """Other pasts of the same description, as the story begins: whether who is down left the mark of a clean shutdown,
    and that a member has its disk. Then the same where others have new disks, who lack what was acknowledged."""
    values = values_of(situation, start)

    def named(variable: str) -> set[BrokerId]:
        return {b for i, b in enumerate(situation.brokers) if int(str(values[variable])) >> i & 1}

    marked, members = named("clean_shutdown"), named("controller_isr") | named("controller_elr")
    past: list[tuple[str, int]] = []
    for deed, broker in case.past:
        is_down = deed in ("stop", "kill") or (deed == "wipe and kill" and broker in members)
        if deed != "wipe" or broker not in members:
            past.append((("stop" if broker in marked else "kill") if is_down else deed, broker))
    yield tuple(past)
    lacking = [b for b in seen.replicas if values["acked"] and b not in members | named("holders")]
    new_disks = [("wipe" if b in seen.living else "wipe and kill", b) for b in lacking]
    if not {*new_disks} <= {*past}:
        yield (*new_disks, *((deed, b) for deed, b in past if b not in lacking and deed != "lag"))


def driven_run(case: Case, seen: Seen, answer: PartitionDrill, *, early: bool, session_ms: Millis) -> str:
    """The runbook as the story of a drill says, from the first past that shows it: how a record is lost, or ""."""
    assert answer.way is not None
    for past in pasts_of(case, seen, answer.situation, answer.way.start):
        trial = begun(case, f"driven {case.seed}", past, session_ms)
        if attrs.evolve(trial.seen(), leader=seen.leader) != seen:
            continue
        if seen.leader is not None and trial.partition.leader != seen.leader:
            leads(trial.world, seen.leader)
            trial.passes(500)
        texts = [step.text for step in steps_of(case)]
        if loss := Driver(trial, answer.situation, answer, early, texts).drive():
            return loss
    return ""


# The judge


@attrs.frozen
class Judgement:
    """What a drill says of a case, and what was seen. `shown`: how a record was lost, by which schedule."""

    case: Case
    seen: Seen
    verdict: Records
    because: str = ""
    shown: str = ""
    schedule: str = ""

    @property
    def is_wrong(self) -> bool:
        """Called safe, and lost."""
        return self.verdict is Records.SAFE and bool(self.shown)

    @property
    def is_unshown(self) -> bool:
        """Called lost, and no schedule that was tried shows it."""
        return self.verdict is Records.MAY_BE_LOST and not self.shown

    def __str__(self) -> str:
        said = self.verdict.name.lower().replace("_", " ")
        how = f"{self.schedule}: {self.shown}" if self.shown else "no loss was seen"
        return f"{said}: {how} [{self.case}]" + (f" ({self.because})" if self.because else "")


SCHEDULES: Final = ((False, 9_000), (True, 9_000), (False, 3_000), (True, 3_000))
"""Ways to drive a story: whether nobody else gets the record from the start on, and how long a session is."""


def judge(seed: int, *, safe_runs: int, lost_runs: int) -> Judgement:
    """The case of a seed: drilled, and carried out.

    `safe_runs`: random runs of what is not called lost; `lost_runs`: those of what is, where its story shows no loss.
    """
    case = random_case(seed)
    seen = begun(case, f"seen {seed}", case.past, QUICK.broker_session_timeout_ms).seen()
    answer = drilled(case, seen).partitions[0]
    verdict = min(o.records for o in answer.outcomes)
    because = next((o.because for o in answer.outcomes if o.because), "")
    judgement = Judgement(case, seen, verdict, because)
    if verdict is Records.MAY_BE_LOST:
        for early, session_ms in SCHEDULES:
            if shown := driven_run(case, seen, answer, early=early, session_ms=session_ms):
                return attrs.evolve(judgement, shown=shown, schedule="as the story says")
    for number in range(lost_runs if verdict is Records.MAY_BE_LOST else safe_runs):
        if shown := random_run(case, number, seen):
            return attrs.evolve(judgement, shown=shown, schedule=f"random run {number}")
    return judgement


def protocols_of(judgements: Collection[Judgement]) -> list[str]:
    """The protocols that were met, in the order of `RELEASES`."""
    met = {j.case.design for j in judgements}
    return [name for name in RELEASES if name in met]


def table(judgements: Sequence[Judgement]) -> str:
    """A row for each protocol and each kind of runbook, in Markdown."""
    rows = ["| protocol | runbooks | safe | of these lost | may be lost | of these shown | UNKNOWN |", "|---" * 7 + "|"]

    def row(name: str, some: Sequence[Judgement]) -> str:
        by = {v: [j for j in some if j.verdict is v] for v in Records}
        lost = by[Records.MAY_BE_LOST]
        wrong, shown = sum(j.is_wrong for j in some), sum(bool(j.shown) for j in lost)
        share = f" ({100 * shown / len(lost):.1f} %)" if lost else ""
        cells = (len(some), len(by[Records.SAFE]), wrong, len(lost), f"{shown}{share}", len(by[Records.UNKNOWN]))
        return f"| {name} | {' | '.join(map(str, cells))} |"

    def changes(j: Judgement) -> bool:
        return "reassign" in j.case.text or "set " in j.case.text

    for design in protocols_of(judgements):
        mine = [j for j in judgements if j.case.design == design]
        rows.append(row(design, [j for j in mine if not changes(j)]))
        rows.append(row(f"{design}, with changes", [j for j in mine if changes(j)]))
    return "\n".join([*rows, row("all", judgements)])
