"""One run: set up, let things go wrong while clients write and read, heal, and require convergence."""

from __future__ import annotations

from random import Random
from typing import Final

import attrs

from isr_broker.core.controller_state import Controller
from isr_broker.core.messages import Millis, TopicPartition
from isr_broker.core.topic_changes import place_replicas
from isr_broker.settings import Settings
from isr_sim.clients import PATIENCE_MS, PAUSE_MS, Admin, Consumer, Producer
from isr_sim.faults import ALL, OF_THE_MODEL, Faults, Kind
from isr_sim.host import Clock, Host
from isr_sim.invariants import Chain, Invariants, Violation
from isr_sim.wider import WiderFaults
from isr_sim.world import FAIR, Weather, World

CLUSTER: Final = "insync"
EVERYTHING: Final = 100_000
QUICK: Final = Settings(
    min_insync_replicas=2,
    default_replication_factor=3,
    replica_lag_time_max_ms=1_500,
    replica_fetch_wait_max_ms=250,
    replica_fetch_backoff_ms=100,
    replica_socket_timeout_ms=700,
    controller_socket_timeout_ms=700,
    broker_session_timeout_ms=1_200,
    broker_heartbeat_interval_ms=350,
    replica_high_watermark_checkpoint_interval_ms=600,
    metadata_log_max_record_bytes_between_snapshots=3_000,
    leader_imbalance_check_interval_seconds=1,
    log_segment_bytes=700,
    log_index_interval_bytes=200,
    log_retention_ms=3_600_000,
    log_retention_check_interval_ms=400,
)
"""Kafka's settings with all times shortened, so that more happens in fewer steps."""


@attrs.frozen(kw_only=True)
class Config:
    """What a run is about: the settings, with the design; which faults may happen, how often, and for how long.

    `forgives_unclean`: after an unclean election what the new leader has counts as committed, and no more.
    `wider` is the second version: data directories say whose they are, an operator mends what he can, and more is
    promised. It is so wherever one of its faults may happen.
    `bears` is how many brokers may be crashed at a time if one of them lost something; `min.insync.replicas` - 1 if
    None.
    """

    settings: Settings = QUICK
    brokers: int = 3
    partitions: int = 1
    kinds: tuple[Kind, ...] = OF_THE_MODEL
    wider: bool = False
    forgives_unclean: bool = False
    weather: Weather = attrs.field(factory=Weather)
    safety_ms: Millis = 8_000
    every_ms: Millis = 350
    longest_ms: Millis = 2_500
    bears: int | None = None
    patience_ms: Millis = 30_000
    keeps_lines: bool = False

    @property
    def second_version(self) -> bool:
        """Whether the run is one of the second version."""
        return self.wider or any(kind not in ALL for kind in self.kinds)


@attrs.frozen(kw_only=True)
class Outcome:
    """What came of a run. `violation` is None if every promise was kept and the cluster converged.

    `stranded_partitions` partitions have nobody left who may lead, though all replicas are back: each of those who
    could was struck when it came back from a crash. Kafka then waits for an operator, as the model's controller does
    for ever. `trace` is the hash of every step; `lines` the last of them if they were kept.
    """

    seed: int
    trace: str
    violation: str | None
    promise: str | None
    steps: int
    committed: int
    acked: int
    converged_after_ms: Millis
    stranded_partitions: int
    faults: dict[Kind, int]
    actions: dict[str, int]
    lines: tuple[str, ...] = ()


@attrs.define
class Run:
    """A run while it goes on."""

    config: Config
    seed: int
    world: World = attrs.field(init=False)
    invariants: Invariants = attrs.field(factory=Invariants)
    faults: Faults = attrs.field(init=False)
    kind: type[World] = World
    producer: type[Producer] = Producer
    consumer: type[Consumer] = Consumer
    admin: Admin = attrs.field(init=False)
    producers: list[Producer] = attrs.field(factory=list[Producer])
    consumers: list[Consumer] = attrs.field(factory=list[Consumer])
    readers: list[Consumer] = attrs.field(factory=list[Consumer])

    def __attrs_post_init__(self) -> None:
        wider = self.config.second_version
        self.invariants.forgives = self.config.forgives_unclean or Kind.UNCLEAN in self.config.kinds
        self.invariants.strict = wider
        chance = Random(self.seed)
        hosts = {
            broker: Host(broker, clock=Clock(chance.randint(0, 10_000), chance.randint(900, 1_100)))
            for broker in range(1, self.config.brokers + 1)
        }
        self.world = self.kind(
            self.config.settings, chance, hosts, self.invariants, keeps_lines=self.config.keeps_lines, weather=FAIR
        )
        copies = self.config.settings.default_replication_factor
        self.admin = Admin("t", tuple(place_replicas(sorted(hosts), self.config.partitions, copies, 0)))
        self.world.cluster, self.world.ids = CLUSTER if wider else "", Random(f"ids {self.seed}")
        self.faults = (WiderFaults if wider else Faults)(
            self.world,
            self.invariants,
            self.admin,
            self.config.kinds,
            self.config.every_ms,
            self.config.longest_ms,
            self.config.bears,
        )

    def set_up(self) -> None:
        """All brokers run, and the topic is there."""
        for host in self.world.machines:
            self.world.start(host)
        self.world.run(1_000)
        self.admin.next(self.world)
        self.world.run(1_500)
        assert len(self.world.controller.partitions) == self.config.partitions
        self.admin.grows = self.serves
        self.serves(range(self.config.partitions))

    def serves(self, numbers: range) -> None:
        """Producers and consumers of these partitions begin."""
        producers, consumers = list[Producer](), list[Consumer]()
        for number in numbers:
            tp = TopicPartition("t", number)
            for identity, acks in ((100, -1), (101, -1), (102, 1)):
                producers.append(self.producer(identity + 10 * number, tp, acks, self.invariants))
            consumers.append(self.consumer(109 + 10 * number, tp, self.invariants))
        self.producers += producers
        self.consumers += consumers
        for producer in producers:
            producer.next(self.world)
        for consumer in consumers:
            consumer.next(self.world)

    def go_wrong(self) -> None:
        """The safety phase."""
        self.world.weather = self.config.weather
        self.faults.next()
        self.world.run(self.world.now + self.config.safety_ms)

    def heal(self) -> Millis:
        """The liveness phase: how long until all is well again; a Violation if it never is."""
        self.world.weather = FAIR
        self.faults.heal()
        if self.invariants.strict:
            self.readers = [
                self.consumer(1_000 + c.identity, c.tp, self.invariants, max_bytes=EVERYTHING) for c in self.consumers
            ]
        for reader in self.readers:
            reader.next(self.world)
        began, before = self.world.now, [p.acked for p in self.producers]
        while self.world.now < began + self.config.patience_ms:
            self.world.run(self.world.now + 250)
            self.faults.revive()
            stranded_partitions = self.stranded_partitions()
            for client in self.producers:
                client.stopped = client.stopped or client.tp in stranded_partitions
            # Who has stopped while nobody could lead writes no more, also where the topic has been made again since.
            all_acked = all(p.acked > b or p.stopped for p, b in zip(self.producers, before, strict=True))
            if all_acked and all(client.stopped for client in self.producers):
                if self._convergence_failure() is None:
                    healed = self.world.now - began
                    self._leaves_nothing()
                    return healed
            elif all_acked:
                for producer in self.producers:
                    producer.stopped = True
        raise Violation("convergence", self._convergence_failure() or "producers get no acknowledgements")

    def _leaves_nothing(self) -> None:
        """every-request-answered: once clients are gone no process remembers a request."""
        for consumer in (*self.consumers, *self.readers):
            consumer.stopped = True
        for producer in self.producers:  # one without a leader until now would go on, if the topic is made again
            producer.silent = True
        self.world.run(self.world.now + PATIENCE_MS + PAUSE_MS)
        for host in self.world.machines:
            if host.runtime is not None and host.runtime.waiting:
                left = sorted(host.runtime.waiting)
                raise Violation("every-request-answered", f"broker {host.broker} never answered requests {left}")

    def stranded_partitions(self) -> set[TopicPartition]:
        """Partitions that have no leader and nobody who may become it, or only one whose log is damaged."""
        damages = {
            (host.broker, tp) for host in self.world.hosts.values() if host.node is not None for tp in host.node.offline
        }
        return {
            tp
            for tp, p in self.world.controller.partitions.items()
            if p.leader is None and not p.isr and not p.elr
            if p.last_known_leader is None or (p.last_known_leader, tp) in damages
        }

    def _convergence_failure(self) -> str | None:
        """What is not yet well: every replica in sync, and every log and watermark the same."""
        controller: Controller = self.world.controller
        if any(host.impostor is not None for host in self.world.machines):
            return "a machine that is none of ours is still in the place of one"
        stranded_partitions = self.stranded_partitions()
        if len(controller.partitions) != len(self.admin.where):
            return f"there are {len(controller.partitions)} partitions"
        for tp, metadata in sorted(controller.partitions.items()):
            if tp in stranded_partitions:
                continue
            if metadata.leader is None or metadata.isr != frozenset(metadata.replicas):
                return f"{tp}: leader {metadata.leader}, ISR {sorted(metadata.isr)}, ELR {sorted(metadata.elr)}"
            committed = self.invariants.committed.get(tp, Chain())
            for broker in metadata.replicas:
                node = self.world.hosts[broker].node
                replica = node.replicas.get(tp) if node is not None else None
                if replica is None:
                    return f"{tp}: broker {broker} holds no replica"
                ends = (replica.log.end, replica.high_watermark, committed.end)
                chain = self.invariants.logs[broker, tp]
                since = self.invariants.kept_from.get(tp, 0)
                if len(set(ends)) != 1 or not chain.agrees(committed, committed.end, since):
                    return f"{tp}: broker {broker} has log end, watermark {ends[:2]}, committed are {committed.end}"
        return self._reader_behind(stranded_partitions) if self.invariants.strict else None

    def _reader_behind(self, stranded_partitions: set[TopicPartition]) -> str | None:
        """Committed records that no consumer can read who begins when everything is healed."""
        for consumer in self.readers:
            end = self.invariants.committed.get(consumer.tp, Chain()).end
            if consumer.position < end and consumer.tp not in stranded_partitions:
                return f"{consumer.tp}: a consumer reads up to {consumer.position} of {end} committed"
        return None

    def outcome(self, violation: Violation | None, converged_after_ms: Millis) -> Outcome:
        """The run in a few numbers."""
        return Outcome(
            seed=self.seed,
            trace=self.world.trace,
            violation=None if violation is None else str(violation),
            promise=None if violation is None else violation.promise,
            steps=self.world.steps,
            committed=sum(chain.end for chain in self.invariants.committed.values()),
            acked=sum(p.acked for p in self.producers),
            converged_after_ms=converged_after_ms,
            stranded_partitions=len(self.stranded_partitions()),
            faults=dict(self.faults.occurrences),
            actions=dict(self.world.actions),
            lines=tuple(self.world.lines),
        )


def simulate(seed: int, config: Config | None = None) -> Outcome:
    """One seed, one history: run it, and say whether every promise was kept."""
    return finish_run(Run(config or Config(), seed))


def finish_run(run: Run) -> Outcome:
    """Carry the run out to its end."""
    try:
        run.set_up()
        run.go_wrong()
        healed = run.heal()
    except Violation as violation:
        run.world.note(f"violated: {violation}")
        return run.outcome(violation, 0)
    return run.outcome(None, healed)
