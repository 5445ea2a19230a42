"""One run of a cell: brokers, network and clients are started, the schedule is played, what came of it is judged."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final, TextIO

import attrs

from isr_cluster.admin import Admin, RequestRefused
from isr_cluster.identity import CONTROLLER_BROKER
from isr_cluster.processes import Mishap
from isr_experiment import clients, verdicts
from isr_experiment.cells import AFTERMATH, Cell
from isr_experiment.clients import KINDS, PATIENCE, SPACE, FollowerReader, Reader, Writer
from isr_experiment.namespaces import Namespaces
from isr_experiment.network import Network, Proxies
from isr_experiment.power import record_of
from isr_experiment.recorder import Recorder
from isr_experiment.stage import Cut, FaultRecord, RunStuck, Stage
from isr_experiment.systems import BROKERS, OURS, SystemUnderTest
from isr_experiment.verdicts import Fate, TraceVerdict, Window
from isr_experiment.waits import Waits, majority_took, waits
from isr_experiment.watch import Observation

HISTORY: Final = "history.jsonl"


@attrs.frozen(kw_only=True)
class Options:
    """How to run: who writes and how fast, over which network, with traces or without, and for how long at most."""

    network: str = "proxies"
    writers: tuple[str, ...] = ("confluent-kafka", "kafka-python")
    per_second: float = 120.0
    most: int = 20_000
    """Values of each writer, at most."""
    traces: bool = True
    keep: bool = False
    """Keep the brokers' data and traces also where nothing was wrong with them."""
    seconds: float = 240.0
    """After so long a run ends with what it has."""
    system: SystemUnderTest = OURS
    """What is under test."""


@attrs.frozen(kw_only=True)
class Result:
    """What one run showed."""

    cell: str
    number: int
    invalid: tuple[str, ...]
    """Why the run shows nothing; empty if it does."""
    fates: tuple[Fate, ...]
    faults: tuple[FaultRecord, ...]
    leaders: int
    epochs: int
    isrs: int
    dropped_bytes: int
    observations: tuple[Observation, ...]
    windows: tuple[Window, ...]
    leaderless: tuple[tuple[int, int], ...]
    silences: tuple[int, ...]
    """Of each fault: the longest time without an acknowledgement that touches it, in nanoseconds."""
    verdict: str
    words: dict[str, list[str]]
    trace_verdict: TraceVerdict | None
    waits: tuple[Waits, ...] = ()
    """How long writes waited, phase by phase."""
    dumped_values: int = 0
    """Lost values that a broker wrote down before it cut its log (`insync.dropped.records`)."""
    resets: int
    """How often a consumer was told that the log ends before what it had read."""
    cut_short: bool
    seconds: float

    @property
    def whole(self) -> Fate:
        """The fate of all values."""
        return self.fates[0]

    @property
    def violated(self) -> list[str]:
        """Anomalies that the claims exclude."""
        return self.words.get("VIOLATED", [])


def conduct(
    cell: Cell, number: int, folder: Path, options: Options, over: threading.Event, tell: Callable[[str], None]
) -> Result:
    """One run; its history stays in the folder. Whatever happens, nothing is left running."""
    empty(folder)
    recorder = Recorder(folder / HISTORY, cell.claims())
    began = time.monotonic()
    with ExitStack() as stack:
        stack.callback(recorder.close)
        log = stack.enter_context((folder / "brokers.log").open("w", encoding="utf-8"))
        brokers, replicas = options.system.brokers, options.system.replicas(cell)
        network: Network = Namespaces(brokers) if options.network == "namespaces" else Proxies(brokers)
        stack.callback(network.close)
        traces = cell.compares_traces and options.traces and options.system.traces
        tells = _teller(log)
        processes = options.system.make_cluster(cell, folder, network, tells, traces)
        stack.callback(processes.kill_all)
        watch = options.system.watch(processes, recorder.began)
        stack.callback(watch.end)
        cannot = frozenset(options.system.cannot())
        stage = Stage(
            folder, processes, network, watch, recorder, replicas, began + options.seconds, over, cannot=cannot
        )
        why: list[str] = []
        try:
            _ready(stage, cell)
        except (Cut, RunStuck, Mishap) as problem:
            why.append(str(problem) or "it was stopped before it began")
            return _result(cell, number, stage, why, None, None, 0, True, began)
        cut_short, resets, final_read = _play_schedule(cell, stage, options, why)
        values = None if final_read is None else set(final_read.values())
        network_dropped = sum(network.dropped_bytes().values())
        last = watch.now
        # At once: in designs before KIP-841 a broker that stops in order may be put back into the ISR for ever.
        processes.kill_all()
        watch.end()
        if traces:
            options.system.completes_traces(processes, cell)
        logs = verdicts.note_replicas(_logs(stage), recorder, last, max(final_read or {-1}) + 1)
        recorder.close()
        traced = verdicts.compare_traces(folder / "trace", recorder, logs) if traces else None
        result = _result(cell, number, stage, why, values, traced, resets, cut_short, began, network_dropped)
    good = (
        not result.invalid and (result.trace_verdict is None or result.trace_verdict.accepted) and not result.violated
    )
    if not options.keep:
        _tidy(folder, good)
    return result


def empty(folder: Path) -> None:
    """The folder, without what an earlier run left: brokers would go on with its logs, and its traces be read as this
    run's. Every run begins a history, so a folder without one is not a run's."""
    if (folder / HISTORY).is_file():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)


def _logs(stage: Stage) -> dict[int, Path]:
    """The folders with the replicas' logs, where they are known."""
    found = {broker: stage.processes.logs(broker) for broker in stage.replicas}
    return {broker: path for broker, path in found.items() if path is not None}


def _teller(log: TextIO) -> Callable[[str], None]:
    """Every line, at once; nothing any more when the run is over."""

    def tells(line: str) -> None:
        if not log.closed:
            print(line, file=log, flush=True)

    return tells


def _ready(stage: Stage, cell: Cell) -> None:
    """Every broker has a session, and the topic's replicas are in sync."""
    stage.processes.start_all()
    at = stage.processes.found_at(CONTROLLER_BROKER)

    def topic_exists() -> bool:
        try:
            with Admin(at, 3.0) as admin:
                if len(admin.brokers()) < len(stage.processes.ports):
                    return False
                alone = len(stage.processes.ports) == 1  # whatever it calls itself
                number, on = (1, None) if alone else (-1, [list(stage.replicas)])
                admin.create(stage.recorder.topic, number, number, {"min.insync.replicas": str(cell.min_insync)}, on)
        except RequestRefused as refused:
            return "TOPIC_ALREADY_EXISTS" in str(refused)
        return True

    stage.waits(topic_exists, "the topic is created")
    stage.watch.begin()
    stage.waits(stage.whole, "every replica is in sync at the beginning")


def _play_schedule(
    cell: Cell, stage: Stage, options: Options, why: list[str]
) -> tuple[bool, int, dict[int, int] | None]:
    """Clients and schedule: whether it was cut short, how often a consumer was reset, and what is where at the end."""
    bootstrap, recorder = stage.processes.bootstrap, stage.recorder
    writers: list[Writer] = []
    share = options.per_second / len(options.writers)
    for n, kind in enumerate(options.writers):
        made = KINDS[kind](f"w{n}-{kind}", bootstrap, cell.acks, cell.once, cell.batches, recorder)
        writers.append(Writer(made, n * SPACE, share, options.most))
    readers: list[Reader | FollowerReader] = [Reader("r0-confluent-kafka", bootstrap, recorder)]
    if cell.follower_reads:
        addresses = {b: stage.processes.found_at(b) for b in stage.replicas}
        readers.append(FollowerReader("r1-followers", addresses, stage.leads, recorder))
        # The last replica: not the first leader, so that the leader sends it there (KIP-392).
        readers.append(Reader("r2-confluent-kafka", bootstrap, recorder, f"rack-{stage.replicas[-1]}"))
    for client in (*writers, *readers):
        client.begin()
    cut_short, failed = False, False
    try:
        cell.schedule(stage)
    except Cut:
        cut_short = True
    except RunStuck as stuck:
        why.append(str(stuck))
    stage.until, stage.over = time.monotonic() + 150, threading.Event()  # what was begun is brought to an end
    try:
        stage.heals()
        stage.phase("aftermath")
        stage.sleep(0.5 if cut_short else AFTERMATH)
    except (RunStuck, Cut) as problem:
        why.append(f"after the schedule: {problem}")
        failed = True
    for writer in writers:
        writer.stop()
    for writer in writers:
        writer.finish(1.0 if failed else PATIENCE + 5)
    final_read = None if failed else clients.read_all(bootstrap, recorder, 60)
    for reader in readers:
        reader.finish()
    if final_read is None:
        why.append("the partition could not be read to its end")
        return cut_short, sum(r.resets for r in readers), None
    return cut_short, sum(r.resets for r in readers), dict(final_read)


def _result(
    cell: Cell,
    number: int,
    stage: Stage,
    why: list[str],
    final_values: set[int] | None,
    trace_verdict: TraceVerdict | None,
    resets: int,
    cut_short: bool,
    began: float,
    dropped_bytes: int = 0,
) -> Result:
    recorder = stage.recorder
    recorder.close()
    leaders, epochs, isrs = stage.watch.changes()
    answer, losses = verdicts.judge_history(recorder.path)
    fates = verdicts.fates(recorder, final_values, losses)
    why = [*why, *_doubts(cell, stage, leaders, isrs, fates[0], cut_short)]
    end = max([*recorder.send_times.values(), *recorder.acked.values(), 0])
    observations = stage.watch.observations
    return Result(
        cell=cell.name,
        number=number,
        invalid=tuple(why),
        fates=tuple(fates),
        faults=tuple(stage.faults),
        leaders=leaders,
        epochs=epochs,
        isrs=isrs,
        dropped_bytes=dropped_bytes,
        observations=tuple(observations),
        windows=tuple(verdicts.windows(recorder, losses)),
        leaderless=tuple(verdicts.leaderless(observations, end)),
        silences=tuple(verdicts.silence_after(recorder, s.began, s.healed_at or end) for s in stage.faults),
        verdict=answer.verdict.value,
        words=dict(verdicts.by_word(answer)),
        trace_verdict=trace_verdict,
        waits=tuple(
            waits(recorder, {} if trace_verdict is None else majority_took(recorder.path, len(stage.replicas)))
        ),
        dumped_values=len(losses & verdicts.dumped_values(_logs(stage))),
        resets=resets,
        cut_short=cut_short,
        seconds=time.monotonic() - began,
    )


def _doubts(cell: Cell, stage: Stage, leaders: int, isrs: int, whole: Fate, cut_short: bool) -> list[str]:
    """What makes a run worthless: faults that did not bite, or nobody who wrote."""
    doubts = ["it was stopped before its schedule ended"] if cut_short else []
    for fault in stage.faults:
        if not fault.bit:
            lacks = [name for name in fault.needs if not fault.evidence.get(name)]
            doubts.append(f"{fault.kind} did not bite: no {', no '.join(lacks)}")
    if not stage.faults:
        doubts.append("no fault struck")
    if leaders < cell.leaders:
        doubts.append(f"{leaders} changes of the leader, {cell.leaders} needed")
    if isrs < cell.isrs:
        doubts.append(f"{isrs} changes of the ISR, {cell.isrs} needed")
    if not whole.acknowledged:
        doubts.append("nothing was acknowledged")
    return doubts


def _tidy(folder: Path, good: bool) -> None:
    """Data go; traces and what the brokers said stay where somebody will want to look."""
    for broker in BROKERS:
        shutil.rmtree(folder / str(broker), ignore_errors=True)
        record_of(folder, broker).unlink(missing_ok=True)
        (folder / f".server-{broker}.properties").unlink(missing_ok=True)
    if good:
        shutil.rmtree(folder / "trace", ignore_errors=True)
        (folder / "brokers.log").unlink(missing_ok=True)
