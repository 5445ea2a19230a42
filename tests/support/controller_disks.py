"""A controller's disk is lost on Apache Kafka: is a committed change of an ISR forgotten, and a record with it?

Three racks, each with a broker and a voter. The rack whose voter is active is the first. The third rack is cut off: its
broker stands still, its voter is killed. The ISR shrinks to the other two, and records are acknowledged. Then both
other racks fail, and the third goes on. The voter of the second comes back, with its disk or with an empty one. Last
the first rack and the second broker come back.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Final

import attrs
from tests.support.drill_kafka import (
    CONTROLLERS_ALONE,
    KafkaQuorum,
    KafkaTrial,
    Writer,
)

from isr_cluster.admin import RequestRefused
from isr_cluster.identity import CONTROLLER_BROKER
from isr_cluster.processes import Address
from isr_kafka.node import ELR, NodeFiles, initial_controllers, new_id

BROKERS: Final[Mapping[int, str]] = {2: "a", 3: "b", 4: "c"}
FIRST, SECOND, THIRD = BROKERS
MINIMUM: Final = 2
RECORDS: Final = 20
"""So many are acknowledged after the ISR has shrunk, at least."""
ELECTED_WITHIN: Final = 60.0
"""Seconds within which two voters have an active one, if they can: some thirty times the election time-out."""


class NextDisk(Enum):
    """The disk with which the second voter comes back."""

    KEPT = "its own"
    EMPTY = "an empty one"
    SAME_ID = "an empty one, formatted by the same command"


class Voters(Enum):
    """How the voters are known."""

    STATIC = "by number (`controller.quorum.voters`)"
    DIRECTORIES = "by number and directory id (`--initial-controllers`)"


@attrs.frozen
class DiskCase:
    """A run of the story."""

    voters: Voters
    disk: NextDisk


CASES: Final = (
    DiskCase(Voters.STATIC, NextDisk.KEPT),
    DiskCase(Voters.STATIC, NextDisk.EMPTY),
    DiskCase(Voters.DIRECTORIES, NextDisk.KEPT),
    DiskCase(Voters.DIRECTORIES, NextDisk.EMPTY),
    DiskCase(Voters.DIRECTORIES, NextDisk.SAME_ID),
)


@attrs.define(kw_only=True)
class DirectoryQuorum(KafkaQuorum):
    """The same nodes with voters that are known by their directory ids, too (KIP-853)."""

    directories: dict[int, str] = attrs.field(factory=dict[int, str])
    joins: set[int] = attrs.field(factory=set[int])
    """Voters whose next folder is formatted with `--no-initial-controllers`."""

    @property
    def voters(self) -> dict[int, Address]:
        return {CONTROLLER_BROKER: self.controller[1], **self.controllers}

    def command(self, broker: int) -> list[str]:
        """The same; the folder of a voter is formatted by Kafka's tool, with all voters in its first snapshot."""
        is_new = broker in self.voters and not self.data(broker).exists()
        command = KafkaQuorum.command(self, broker)
        path = self.root / f".server-{broker}.properties"
        settings = dict(line.split("=", 1) for line in path.read_text(encoding="utf-8").splitlines())
        del settings["controller.quorum.voters"]
        servers = ",".join(f"{host}:{port}" for host, port in self.voters.values())
        settings["controller.quorum.bootstrap.servers"] = servers
        path.write_text("".join(f"{k}={v}\n" for k, v in settings.items()), encoding="utf-8")
        if is_new:
            shutil.rmtree(self.data(broker))
            self.files.format(path, self.cluster, *self.way_to_format(broker))
        return command

    def way_to_format(self, broker: int) -> list[str]:
        if broker in self.joins:
            return ["--no-initial-controllers"]
        for voter in self.voters:
            self.directories.setdefault(voter, new_id())
        initial = initial_controllers(self.voters, self.directories)
        return ["--initial-controllers", initial, "--feature", f"{ELR}=1"]


@attrs.frozen(kw_only=True)
class DiskOutcome:
    """What was seen. `active`: the voter that two racks made active, None where none was. `leader`: who led then.

    `missing_then`: of so many acknowledged records those that this leader did not serve; `missing` in the end, when all
    racks are back.
    """

    case: DiskCase
    release: str
    acknowledged: int
    active: str
    leader: int | None
    missing_then: int
    ended: tuple[int, ...]
    missing: int
    isr: tuple[int, ...]
    seconds: float

    @property
    def verdict(self) -> str:
        return "LOST" if self.missing else "HELD"


@attrs.define
class RackTrial(KafkaTrial):
    """A cluster whose brokers with the partition are asked, and no others."""

    @property
    def brokers(self) -> list[int]:
        return sorted({*self.racks} & {*self.kafka.running} - self.paused - {*self.kafka.early_exits()})


@attrs.define
class DiskTrial:
    """The story, on a cluster of its own."""

    trial: RackTrial
    case: DiskCase

    @classmethod
    def on(cls, files: NodeFiles, folder: Path, case: DiskCase) -> DiskTrial:
        kind = KafkaQuorum if case.voters is Voters.STATIC else DirectoryQuorum
        return cls(RackTrial(files, folder, CONTROLLERS_ALONE, BROKERS, kind), case)

    def active(self) -> int | None:
        """Which voter the brokers say is active; None where they reach none."""
        try:
            return self.trial.active()
        except (RequestRefused, OSError):
            return None

    def ended(self) -> tuple[int, ...]:
        """Nodes that have ended by themselves."""
        return tuple(sorted(self.trial.kafka.early_exits()))

    def loses_disk(self, voter: int) -> None:
        kafka = self.trial.kafka
        if self.case.disk is NextDisk.KEPT:
            return
        shutil.rmtree(kafka.data(voter))
        if isinstance(kafka, DirectoryQuorum) and self.case.disk is NextDisk.EMPTY:
            kafka.joins.add(voter)

    def has_active(self, among: set[int]) -> bool:
        return self.active() in among

    def tells(self) -> DiskOutcome:
        """The whole story."""
        began, trial, kafka = time.monotonic(), self.trial, self.trial.kafka
        topic = "t"
        with trial.admin() as admin:
            admin.create(topic, config={"min.insync.replicas": str(MINIMUM)}, on=[[FIRST, SECOND, THIRD]])
        trial.wait(lambda: trial.is_in_sync(topic))
        writer = Writer(kafka.bootstrap, topic)
        trial.wait(lambda: len(writer.acked) > 3)
        first = trial.active()
        second, third = (v for v in (CONTROLLER_BROKER, *CONTROLLERS_ALONE) if v != first)

        # The third rack is cut off.
        trial.does("PAUSE", THIRD)
        time.sleep(0.5)
        kafka.kill(third)
        assert trial.wait(lambda: set(trial.partition(topic).isr) == {FIRST, SECOND}), "the ISR does not shrink"
        enough = len(writer.acked) + RECORDS
        assert trial.wait(lambda: len(writer.acked) >= enough), "nothing is acknowledged"
        writer.ends()

        # The others fail, and it goes on.
        for node in (first, second, FIRST, SECOND):
            kafka.kill(node)
        self.loses_disk(second)
        trial.goes_on(THIRD)
        for voter in (third, second):
            kafka.start(voter)
        trial.wait(lambda: self.has_active({second, third}), ELECTED_WITHIN)
        active = self.active()
        told = {second: "the second", third: "the third"}.get(active or 0, "none")
        trial.wait(lambda: trial.partition(topic).leader == THIRD, ELECTED_WITHIN)
        leader, missing_then = None, 0
        if told != "none" and trial.partition(topic).leader == THIRD:
            leader, there = trial.read_in_time(topic)
            missing_then = len(writer.acked - there)

        # All are back.
        ended = self.ended()
        for node in (*ended, first, FIRST, SECOND):
            if node in ended:
                kafka.kill(node)
            if node not in kafka.running:
                kafka.start(node)
        for node in (first, FIRST, SECOND):
            kafka.awaits(node)
        trial.wait(lambda: trial.alive() >= set(BROKERS))
        trial.wait(lambda: trial.is_in_sync(topic))
        _, there = trial.read_in_time(topic)
        return DiskOutcome(
            case=self.case,
            release=trial.files.release,
            acknowledged=len(writer.acked),
            active=told,
            leader=leader,
            missing_then=missing_then,
            ended=ended,
            missing=len(writer.acked - there),
            isr=tuple(sorted(trial.partition(topic).isr)),
            seconds=time.monotonic() - began,
        )
