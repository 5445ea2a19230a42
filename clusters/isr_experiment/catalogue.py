"""The experiments by name: what each asks, its cells, and why a cell is expected to lose something or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Final

import attrs

from isr_experiment import nemesis, schedules
from isr_experiment.cells import Cell, Expected, Schedule, question
from isr_experiment.nemesis import KINDS, KINDS_WITHOUT_TRACE

LOSS, NOTHING = Expected.LOSS, Expected.NOTHING


@attrs.frozen(kw_only=True)
class Experiment:
    """Cells to run, `runs` times each unless told otherwise; `cells(number)` are those of one round."""

    name: str
    says: str
    cells: Callable[[int], tuple[Cell, ...]]
    runs: int = 1


def _asks(cell: Cell, *budgets: Mapping[str, int]) -> Cell:
    """The cell with the model's questions about it, one for each budget of faults."""
    return attrs.evolve(cell, questions=tuple(question(cell, **faults) for faults in budgets))


_POWER: Final = {"lossy_crashes": 1}
_CRASHES: Final = {"crashes": 2}


def _constant_cells(*cells: Cell) -> Callable[[int], tuple[Cell, ...]]:
    return lambda number: cells


def jepsen() -> tuple[Cell, ...]:
    """The schedule of 2013 on the design of its time, and on later ones."""
    cell = partial(Cell, schedule=schedules.jepsen_2013, leaders=0)
    bounds = {"crashes": 1}
    return (
        _asks(
            cell(
                name="kafka-0.8",
                design="kafka-0.8",
                min_insync=1,
                unclean=True,
                idempotent=False,
                expected=LOSS,
                because="the ISR shrinks to the leader, and anybody may be elected after it",
            ),
            bounds,
        ),
        _asks(
            cell(
                name="kip-966, settings of 2013",
                min_insync=1,
                unclean=True,
                idempotent=False,
                expected=LOSS,
                because="the settings lose, not the age of the protocol",
            ),
            bounds,
        ),
        _asks(cell(name="kip-497, min 2", design="kip-497", because="no write by the leader alone"), bounds),
        _asks(cell(name="kraft-3.5, min 2", design="kraft-3.5", because="no write by the leader alone"), bounds),
        _asks(cell(name="kip-966, min 2", because="no write by the leader alone"), bounds),
    )


def safe_settings(number: int) -> tuple[Cell, ...]:
    """Two faults in each run, all kinds in turn."""
    kinds = tuple(kind for kind in KINDS if kind not in KINDS_WITHOUT_TRACE)
    storm = partial(nemesis.storm, seed=number, count=2, kinds=kinds)
    return (
        Cell(
            name="kip-966, acks=all, min 2, unclean off",
            schedule=storm,
            leaders=0,
            because="what today's design promises",
        ),
    )


def full_disk() -> tuple[Cell, ...]:
    """A leader whose disk is full halts."""
    kinds = ("full-disk",)
    schedule = partial(nemesis.storm, seed=0, count=1, kinds=kinds)
    return (
        Cell(
            name="full disk",
            schedule=schedule,
            compares_traces=False,
            because="what was acknowledged is on two replicas",
        ),
    )


def acks_1() -> tuple[Cell, ...]:
    """The leader's word alone."""
    cell = partial(Cell, schedule=schedules.overtaken_failover)
    return (
        _asks(cell(name="acks=1", acks="1", expected=LOSS, because="nobody else has it"), {"crashes": 1}),
        _asks(cell(name="acks=all", because="it waits for the ISR"), {"crashes": 1}),
    )


def unclean() -> tuple[Cell, ...]:
    """Who left the ISR is elected, or waits."""
    cell = partial(Cell, schedule=schedules.last_member)
    return (
        _asks(
            cell(
                name="unclean on",
                unclean=True,
                idempotent=False,
                expected=LOSS,
                because="the replica that left first is elected",
            ),
            _CRASHES,
        ),
        _asks(cell(name="unclean off", because="it waits for a member of the ELR"), _CRASHES, _POWER),
    )


def last_replica_standing() -> tuple[Cell, ...]:
    """The last member of the ISR loses its unflushed tail (KIP-966)."""
    cell = partial(Cell, schedule=schedules.last_member, leaders=0)
    return (
        _asks(
            cell(
                name="kraft-3.5, min 2",
                design="kraft-3.5",
                expected=LOSS,
                because="only the last member may lead, whatever it brings",
            ),
            _POWER,
        ),
        _asks(cell(name="kip-966, min 2", because="who left at the minimum is in the ELR"), _POWER),
    )


def power_loss() -> tuple[Cell, ...]:
    """One replica at a time, and all at once."""
    dark = partial(Cell, schedule=schedules.power_of_all, leaders=0, isrs=0)
    return (
        _asks(Cell(name="one at a time, no flush", schedule=schedules.power_of_one, because="a copy is left"), _POWER),
        dark(
            name="all at once, no flush",
            expected=LOSS,
            idempotent=False,
            because="more power failures than min.insync.replicas - 1: nothing is promised",
        ),
        dark(name="all at once, each batch flushed", flush="always", because="what was acknowledged is on disk"),
    )


def rolling_restart() -> tuple[Cell, ...]:
    """In order, and with a hammer."""
    return (
        Cell(name="orderly, one by one", schedule=schedules.rolling_restart, because="each is whole before the next"),
        Cell(
            name="power off and on, no waiting, no flush",
            schedule=schedules.rolling_power,
            leaders=0,
            expected=LOSS,
            idempotent=False,
            more={"broker.session.timeout.ms": "9000"},
            because="every copy is lost before another is whole (a session takes 9 s, Kafka's default)",
        ),
    )


def controller_loss() -> tuple[Cell, ...]:
    """The leader goes on without a controller; then it fails, too."""
    cell = partial(Cell, schedule=schedules.controller_and_leader)
    return (
        _asks(cell(name="acks=all, min 2", because="who was in the ISR has all of it"), _POWER),
        _asks(cell(name="acks=1", acks="1", expected=LOSS, because="the leader alone had it"), _POWER),
    )


def one_replica() -> tuple[Cell, ...]:
    """A partition that only one broker has; what runs on any system, be it a single process."""

    def cell(name: str, how: str, because: str) -> Cell:
        schedule = partial(schedules.restart_of_one, how=how)
        return Cell(
            name=name,
            schedule=schedule,
            replicas=1,
            min_insync=1,
            leaders=0,
            isrs=0,
            compares_traces=False,
            because=because,
        )

    return (
        cell("paused", "paused", "it goes on where it stood still"),
        cell("stopped in order, and started", "stopped", "it writes what it has before it goes"),
        cell("killed, and started", "killed", "the system has what was written, and its power stays on"),
    )


def follower_reads() -> tuple[Cell, ...]:
    """What followers serve stays (KIP-392)."""
    cell = partial(Cell, schedule=schedules.jepsen_2013, follower_reads=True, leaders=0)
    return (
        cell(name="kip-966, min 2", because="followers serve what is committed"),
        cell(
            name="kafka-0.8 with follower reads",
            design="kafka-0.8",
            min_insync=1,
            unclean=True,
            idempotent=False,
            expected=LOSS,
            because="what was read was committed by the leader alone",
        ),
    )


def sweep() -> tuple[Cell, ...]:
    """Every combination of (acks, min ISR, unclean, flush) under one schedule that has what each of them risks."""
    cells: list[Cell] = []
    for acks, minimum, may, flush in product(("all", "1"), (1, 2), (False, True), ("never", "always")):
        loses = acks == "1" or may or (minimum == 1 and flush == "never")
        cell = Cell(
            name=f"acks={acks}, min {minimum}, unclean {'on' if may else 'off'}, flush {flush}",
            schedule=schedules.sweep,
            acks=acks,
            min_insync=minimum,
            unclean=may,
            flush=flush,
            idempotent=False,
            expected=LOSS if loses else NOTHING,
            because="see the model",
        )
        # Where everything is flushed a power failure is a crash that keeps the disk.
        cells.append(_asks(cell, *((_POWER, _CRASHES) if flush == "never" else (_CRASHES,))))
    return tuple(cells)


def availability() -> tuple[Cell, ...]:
    """Time without a leader and without acknowledgements, against what it should depend on."""
    cells: list[Cell] = []
    for session in (1_000, 2_000, 4_000):
        schedule = partial(schedules.one_fault, kind="kill leader", hold=session / 1000 + 3)
        more = {"broker.session.timeout.ms": str(session), "replica.lag.time.max.ms": "10000"}
        name = f"kill leader, session {session} ms"
        cells.append(Cell(name=name, schedule=schedule, more=more, because="until its session ends, nobody leads"))
    for lag in (2_000, 4_000, 8_000):
        schedule = partial(schedules.one_fault, kind="cut off a follower", hold=1.5 * lag / 1000 + 2)
        more = {"broker.session.timeout.ms": "1500", "replica.lag.time.max.ms": str(lag)}
        name = f"cut off a follower, lag {lag} ms"
        because = "until it has lagged so long, acks=all waits for it"
        cells.append(Cell(name=name, schedule=schedule, more=more, leaders=0, because=because))
    schedule = partial(schedules.one_fault, kind="stop leader", hold=2)
    cells.append(Cell(name="stop leader in order", schedule=schedule, because="it hands over before it goes"))
    return tuple(cells)


def recommendations() -> tuple[Cell, ...]:
    """Jepsen's two recommendations alone and together, as settings: no acknowledgement by less than a majority, and no
    leader from outside the ISR; what is cut is written down."""

    def cell(name: str, minimum: int, may: bool, expected: Expected, because: str) -> Cell:
        plain_cell = Cell(
            name=name,
            schedule=schedules.last_member,
            min_insync=minimum,
            unclean=may,
            idempotent=False,
            leaders=0,
            expected=expected,
            because=because,
            more={"insync.dropped.records": "true"},
        )
        return _asks(plain_cell, _POWER, _CRASHES)

    return (
        cell("neither", 1, True, LOSS, "the replica that left first is elected"),
        cell("a majority in sync", 2, True, LOSS, "the replica that left first is elected all the same"),
        cell("no leader from outside", 1, False, LOSS, "the last member is trusted with what its disk brings back"),
        cell("both", 2, False, NOTHING, "nobody commits alone, and the ELR has the record"),
    )


def latency() -> tuple[Cell, ...]:
    """How long a write waits when a follower is cut off, by acks and by how long a follower may lag."""

    def cell(acks: str, lag: int) -> Cell:
        return Cell(
            name=f"acks={acks}, lag {lag} ms",
            schedule=partial(schedules.one_fault, kind="cut off a follower", hold=1.5 * lag / 1000 + 4),
            acks=acks,
            leaders=0,
            shows_waits=True,
            because="nobody leads who did not" if acks != "all" else "it waits for the ISR, which has all of it",
            more={"broker.session.timeout.ms": "1500", "replica.lag.time.max.ms": str(lag)},
        )

    return (*(cell("all", lag) for lag in (2_000, 4_000, 8_000)), cell("1", 4_000), cell("0", 4_000))


def planted_bugs() -> tuple[Cell, ...]:
    """Today's design with a bug each, which `insync.design` takes; what is right with it is under the same schedule."""

    def bug_cell(bug: str, schedule: Schedule, because: str, flush: str = "never") -> Cell:
        cell = partial(Cell, name=bug, design=bug, expected=Expected.CAUGHT, leaders=0, isrs=0)
        return cell(schedule=schedule, because=because, flush=flush)

    first = schedules.last_member_first
    return (
        bug_cell("elect-outside-isr", schedules.last_member, "the replica that left first is elected"),
        bug_cell(
            "ungated-last-leader", first, "who led last is elected without its tail, although the ELR has a member"
        ),
        bug_cell("keep-elr", first, "a replica without its tail is still in the ELR"),
        bug_cell("ack-before-flush", schedules.power_of_all, "what was acknowledged is not on disk", flush="always"),
        bug_cell("read-above-watermark", schedules.jepsen_2013, "consumers see what the leader alone has"),
        Cell(name="kip-966, the last member first", schedule=first, because="it waits for the ELR"),
    )


def quick() -> tuple[Cell, ...]:
    """One expected loss and one expected not to be, in about a minute."""
    rows = {cell.name: cell for cell in jepsen()}
    alone = {"kafka-0.8": 30.0, "kip-966, settings of 2013": 30.0, "kip-966, min 2": 2.0}
    instead = {"kip-966, settings of 2013": "kafka-0.8"}
    return tuple(
        attrs.evolve(
            rows[name],
            schedule=partial(schedules.jepsen_2013_by_steps, alone=seconds),
            instead_of=instead.get(name, ""),
        )
        for name, seconds in alone.items()
    )


EXPERIMENTS: Final[Mapping[str, Experiment]] = {
    e.name: e
    for e in (
        Experiment(
            name="jepsen-2013",
            says="the schedule of Jepsen's analysis of Kafka 0.8, on that design and on later ones",
            cells=_constant_cells(*jepsen()),
        ),
        Experiment(
            name="safe-settings",
            says="today's design with acks=all, min ISR 2, unclean off, under every kind of fault",
            cells=safe_settings,
            runs=20,
        ),
        Experiment(name="acks-1", says="a failover to a follower that is behind", cells=_constant_cells(*acks_1())),
        Experiment(name="unclean", says="only a replica that left the ISR is alive", cells=_constant_cells(*unclean())),
        Experiment(
            name="last-replica-standing",
            says="the power of the last member of the ISR fails (KIP-966)",
            cells=_constant_cells(*last_replica_standing()),
        ),
        Experiment(
            name="power-loss", says="unflushed and torn tails of one, and of all", cells=_constant_cells(*power_loss())
        ),
        Experiment(name="rolling-restart", says="each broker in turn", cells=_constant_cells(*rolling_restart())),
        Experiment(
            name="controller-loss", says="the controller, then the leader", cells=_constant_cells(*controller_loss())
        ),
        Experiment(
            name="follower-reads",
            says="consumers that ask followers (KIP-392)",
            cells=_constant_cells(*follower_reads()),
        ),
        Experiment(
            name="one-replica",
            says="a partition on one broker, which stands still or starts again",
            cells=_constant_cells(*one_replica()),
        ),
        Experiment(name="full-disk", says="a leader that cannot write", cells=_constant_cells(*full_disk())),
        Experiment(
            name="sweep",
            says="acks x min ISR x unclean x flush, the model's verdict beside the measured one",
            cells=_constant_cells(*sweep()),
        ),
        Experiment(
            name="availability",
            says="time without a leader and without acknowledgements, against session and lag timeouts",
            cells=_constant_cells(*availability()),
        ),
        Experiment(
            name="latency",
            says="how long writes wait for a slow follower, and would for a majority, by acks and by lag",
            cells=_constant_cells(*latency()),
        ),
        Experiment(
            name="recommendations",
            says="Jepsen's two recommendations, alone and together; what is dropped is written to files",
            cells=_constant_cells(*recommendations()),
        ),
        Experiment(
            name="planted-bug",
            says="today's design with a bug: each has to be caught",
            cells=_constant_cells(*planted_bugs()),
        ),
        Experiment(name="quick", says="2013 and today, in under two minutes", cells=_constant_cells(*quick())),
    )
}
"""Every experiment."""
