"""What an experiment consists of: cells, each a design with settings, a schedule, and what is expected of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, TypeAlias

import attrs

from isr_broker.settings import RACK_AWARE
from isr_experiment.stage import Stage

Schedule: TypeAlias = Callable[[Stage], None]

REPLICAS: Final = (2, 3, 4)
"""The brokers with a replica; the first broker has the controller only."""

SESSION_MS: Final = 1_500
LAG_MS: Final = 3_000
"""Short, so that runs are; a session is shorter than a follower may lag, as with Kafka's defaults (9 s and 30 s)."""

PROGRESS_NS: Final = 5_000_000_000
"""In which something has to be acknowledged after everything was healed."""

AFTERMATH: Final = 5.5
"""Seconds that clients go on after the last healing."""

BASE: Final[Mapping[str, str]] = {
    "broker.session.timeout.ms": str(SESSION_MS),
    "broker.heartbeat.interval.ms": "200",
    "replica.lag.time.max.ms": str(LAG_MS),
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "50",
    "replica.socket.timeout.ms": "1000",
    "controller.socket.timeout.ms": "1000",
    "leader.imbalance.check.interval.seconds": "100000",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "insync.waits.for.joiners": "false",
}


class Expected(StrEnum):
    """What a cell is to show."""

    NOTHING = "loses nothing"
    LOSS = "loses acknowledged writes"
    CAUGHT = "is caught"


@attrs.frozen(kw_only=True)
class Question:
    """What the model is asked: `acked-survives` of a design, with these constants."""

    design: str
    constants: Mapping[str, int | str]

    def command(self) -> str:
        """What asks the same on a command line."""
        options = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in self.constants.items())
        return f"insync check {self.design} {options} --property acked-survives"


@attrs.frozen(kw_only=True)
class Cell:
    """One row of a table. `questions` are put to the model; it predicts a loss if any of them is violated."""

    name: str
    schedule: Schedule
    design: str = "kip-966"
    acks: str = "all"
    min_insync: int = 2
    unclean: bool = False
    flush: str = "never"
    expected: Expected = Expected.NOTHING
    because: str = ""
    questions: tuple[Question, ...] = ()
    idempotent: bool = True
    follower_reads: bool = False
    compares_traces: bool = True
    """Whether the brokers' traces are compared with the model of the design, of a planted bug with that of today's."""
    leaders: int = 1
    """How many changes of the leader a run needs to be valid, `isrs` how many of the ISR."""
    isrs: int = 1
    more: Mapping[str, str] = attrs.field(factory=dict[str, str])
    replicas: int = 3
    """Of the topic."""
    shows_waits: bool = False
    """Whether a table says how long its writes waited."""
    instead_of: str = ""
    """The cell in whose place this one is run, where a system under test has not its design."""

    def properties(self) -> dict[str, str]:
        """The brokers' settings."""
        settings = {
            **BASE,
            "insync.design": self.design,
            "min.insync.replicas": str(self.min_insync),
            "unclean.leader.election.enable": str(self.unclean).lower(),
            "insync.follower.reads": str(self.follower_reads).lower(),
            **self.more,
        }
        if self.follower_reads:
            settings["replica.selector.class"] = RACK_AWARE
        if self.flush == "always":
            settings["log.flush.interval.messages"] = "1"
        return settings

    def claims(self) -> dict[str, object]:
        """What the history checker is told."""
        return {
            "acks": self.acks,
            "idempotence": self.once,
            "min_insync": self.min_insync,
            "unclean": self.unclean,
            "progress_within": PROGRESS_NS,
        }

    @property
    def once(self) -> bool:
        """Whether producers are idempotent, which they can only be with acks=all."""
        return self.idempotent and self.acks == "all"

    @property
    def batches(self) -> bool:
        """Whether producers send more than one record at a time. Not to a design that does not notice divergence: where
        the log of a former leader ends within a batch of the present one it could never follow, and 0.8 had no batches.
        """
        return self.design not in ("kafka-0.8", "zookeeper")


def question(cell: Cell, **faults: int) -> Question:
    """The model with the settings of a cell and these budgets of faults."""
    nothing = {"crashes": 0, "lossy_crashes": 0}
    bounds: dict[str, int | str] = {"replicas": 3, "isr_changes": 4, "epochs": 2, **nothing, **faults}
    settings: dict[str, int | str] = {"min_insync": cell.min_insync, "unclean": "on" if cell.unclean else "off"}
    if bounds["lossy_crashes"]:
        settings["flush"] = cell.flush  # without a power failure nothing depends on it
    return Question(design=cell.design, constants={**bounds, **settings, "acks": cell.acks})
