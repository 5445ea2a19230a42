"""Exploration by Spark beside the native engine, in one run; what is measured goes to docs/measurements/spark.md.

    python bench/spark.py [throughput] [fixed] [stores] [apart] [limited] [equality] [rows]

The last two only if named. `stores`, `apart`, `limited` and `rows` need versitygw on the PATH; the last three of these
are for root, who makes users, a small disk and a control group.

Processor time is that of all processes that take part, Java included, as the system counts it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import cast
from urllib.request import urlopen

import attrs
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.pages import put_between
from bench.parts import one_of
from tests.support import s3
from tests.support.apart import apart as cluster_apart
from tests.support.apart import bare
from tests.support.expected import Run, outcome, table
from tests.support.limits import memory_group
from tests.support.sparks import cluster, environment, strangers

from isr_check import native
from isr_check.engine import Exploration, Limits, Progress
from isr_check.native.buffers import FULLEST
from isr_lang import Instance
from isr_lang.constants import Value
from isr_pipeline import session
from isr_pipeline.explore import IN_MEMORY, SETTINGS, explore
from isr_pipeline.locations import Location
from isr_pipeline.store import Commit, Remaking, Store
from isr_protocol.by_name import DESIGNS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "measurements" / "spark.md"
LARGE: Mapping[str, Value] = {"isr_changes": 4, "epochs": 2, "crashes": 0}
SMALL: Mapping[str, Value] = {"replicas": 2}
MEMORY_LIMIT, DISK, BUCKETS = 1 << 30, 512 << 20, 16
"""Where limits are the question: bytes of memory and of disk of an executor, and buckets of which one is in use."""
MOST = 5_000_000
"""States of a run where the question is whether the answers are the same."""


@attrs.frozen
class SecondsUsed:
    """Seconds of the clock, and of the processor by who used them."""

    wall: float
    driver: float
    python: float
    java: float

    @property
    def cpu(self) -> float:
        return self.driver + self.python + self.java


def processes() -> dict[int, tuple[str, float]]:
    """This process and all below it: name, and processor time with that of ended children."""
    process_table = dict[int, tuple[int, str, float]]()
    for entry in Path("/proc").iterdir():
        try:
            before, _, after = (entry / "stat").read_text().rpartition(")") if entry.name.isdigit() else ("", "", "")
        except OSError:
            continue
        if fields := after.split():
            times = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            process_table[int(entry.name)] = int(fields[1]), before.partition("(")[2], times
    mine = {os.getpid()}
    while more := {p for p, (parent, _, _) in process_table.items() if parent in mine} - mine:
        mine |= more
    return {p: process_table[p][1:] for p in mine}


def used_by(name: str) -> float:
    found = processes()
    return sum(t for p, (called, t) in found.items() if called == name and p != os.getpid())


@contextmanager
def using() -> Generator[list[SecondsUsed], None, None]:
    """The one item of the list is there at the end."""
    result, start, own = list[SecondsUsed](), time.monotonic(), time.process_time()
    python, java = used_by("python"), used_by("java")
    yield result
    wall, driver = time.monotonic() - start, time.process_time() - own
    result.append(SecondsUsed(wall, driver, used_by("python") - python, used_by("java") - java))


def instance(settings: Mapping[str, Value]) -> Instance:
    return Instance(DESIGNS["kip-966"], settings)


def answer(exploration: Exploration) -> Exploration:
    return attrs.evolve(exploration, seconds=0)


def warm(workers: int) -> Callable[[], object]:
    """A session that has run a task on each core; returns what ends it."""
    everything = {**session.SETTINGS, **session.LOCALLY, **SETTINGS, **IN_MEMORY}
    spark = session.start(session.local(workers), everything)
    explore(instance(SMALL), ("type-ok",), partitions=workers, handover=2000)
    return lambda: session.stop(spark)


def task_seconds(place: Location) -> dict[str, float]:
    total = dict[str, float]()
    for commit in Store(place).commits():
        for on, seconds in commit.spent.items():
            total[on] = total.get(on, 0.0) + seconds
    return total


def throughput(folder: Path) -> list[str]:
    model = instance(LARGE)
    native.explore(model, (), Limits(max_seconds=5), workers=2)  # the machine code is in the cache from now on
    with using() as by_native:
        expected = native.explore(model, workers=2)
    end = warm(2)
    with using() as by_spark:
        exploration = explore(model, folder=folder / "large", partitions=2)
    end()
    assert answer(exploration) == answer(expected)
    rows = [("native, 2 workers", by_native[0]), ("spark, local[2], 2 partitions", by_spark[0])]
    lines = [
        f"`{options(LARGE)}`: {exploration.distinct:,} states, {exploration.generated:,} generated, "
        f"{len(exploration.levels)} levels."
    ]
    lines += [
        "",
        "| engine | s | distinct/s | part of native | cpu s | distinct per cpu s | part of native |",
        "|" + "---|" * 7,
    ]
    for name, usage in rows:
        rates = exploration.distinct / usage.wall, exploration.distinct / usage.cpu
        base = exploration.distinct / by_native[0].wall, exploration.distinct / by_native[0].cpu
        parts = [f"{r:,.0f} | {r / b:.2f}" for r, b in zip(rates, base, strict=True)]
        lines.append(f"| {name} | {usage.wall:.1f} | {parts[0]} | {usage.cpu:.1f} | {parts[1]} |")
    place = Location.of(folder / "large")
    lines += ["", *where(task_seconds(place), by_spark[0], exploration), "", *traffic_lines(place, exploration)]
    return lines


def traffic_lines(place: Location, exploration: Exploration) -> list[str]:
    """How much goes through Spark, which is what a network would have to carry."""
    sent_states, words = sum(c.sent for c in Store(place).commits()), cast("int", Store(place).plan()["words"])
    each, size = sent_states / exploration.distinct, 8 * words
    return [
        f"Of {exploration.generated / exploration.distinct:.2f} successors per distinct state {each:.2f} are sent to "
        f"their owners, "
        f"{size} bytes each: {each * size:.0f} bytes per distinct state, {sent_states * size / 1e9:.1f} GB in all."
    ]


def where(on: Mapping[str, float], usage: SecondsUsed, exploration: Exploration) -> list[str]:
    """The table of where the time goes."""
    parts = {
        "expand: successors, their checks, and duplicates within a task": on["expand"],
        "deal: by owner": on["deal"],
        "absorb: into the owner's visited set": on["absorb"],
        "check: properties of new states": on["check"],
        "files: levels written and read": on["files"],
        "visited sets: taken, or made again": on["remake"],
        "rest of the tasks: blocks to and from Java": on["task"] - sum(on[k] for k in on if k != "task"),
        "Python around the tasks, and this process between levels": usage.driver + usage.python - on["task"],
        "Java: plans, schedules, passes blocks on": usage.java,
    }
    lines = ["| where | cpu s | share | ns per distinct state |", "|---|---|---|---|"]
    for name, seconds in parts.items():
        lines.append(
            f"| {name} | {seconds:.1f} | {seconds / usage.cpu:.0%} | {1e9 * seconds / exploration.distinct:,.0f} |"
        )
    return lines


def fixed_costs(folder: Path) -> list[str]:
    end = warm(2)
    rows, exploration = list[tuple[float, float]](), native.explore(instance(SMALL), ("type-ok",))
    for turn in range(3):
        with using() as usage:
            explore(instance(SMALL), ("type-ok",), folder=folder / str(turn), partitions=2, handover=0)
        rows.append((usage[0].wall / len(exploration.levels), usage[0].cpu / len(exploration.levels)))
    end()
    best = min(rows)
    return [
        f"A level of hardly any states ({exploration.distinct:,} states, {len(exploration.levels)} levels, all of them "
        f"jobs, 2 "
        f"partitions, best of three): {best[0]:.2f} s of the clock, {best[1]:.2f} s of processor time."
    ]


def stores(folder: Path) -> list[str]:
    """What a level costs more where it lasts in an S3 store; all tasks are done by this process."""
    rows, model = dict[str, list[tuple[float, float, float]]](), instance(SMALL)
    exploration = explore(
        model, ("type-ok",), partitions=4, handover=1 << 60
    )  # machine code is in the cache from now on
    files = dict[str, int]()
    with s3.server(folder) as url:
        for turn in range(3):
            for name, place in (("a folder", str(folder / str(turn))), ("S3", url.format(turn))):
                kept = used_by("versitygw")
                with using() as usage:
                    exploration = explore(model, ("type-ok",), partitions=4, handover=1 << 60, store=place)
                level = [1000 * s / len(exploration.levels) for s in (usage[0].driver, used_by("versitygw") - kept)]
                rows.setdefault(name, []).append((level[0], level[1], 1000 * usage[0].wall / len(exploration.levels)))
                files = Location.of(place).files()
    least = [(name, min(turns)) for name, turns in rows.items()]
    lines = ["| store | cpu ms | cpu ms of the S3 server | ms of the clock |", "|---|---|---|---|"]
    lines += [f"| {name} | {cpu:.0f} | {server:.0f} | {wall:.0f} |" for name, (cpu, server, wall) in least]
    return [
        f"A level of hardly any states ({exploration.distinct:,} states, {len(exploration.levels)} levels, 4 "
        f"partitions, no Spark, "
        f"{len(files)} files of {sum(files.values()) / 1e3:.0f} kB in all, the least of three), by where it lasts:",
        "",
        *lines,
    ]


@attrs.frozen
class BytesMoved:
    """Bytes that Spark wrote to its disks for other tasks, and that executors read of it from each other."""

    bytes_written: int
    fetched: int

    def __sub__(self, other: BytesMoved) -> BytesMoved:
        return BytesMoved(self.bytes_written - other.bytes_written, self.fetched - other.fetched)


def shuffle_bytes(spark: SparkSession) -> BytesMoved:
    """What Spark's own page counts so far."""
    url = f"{session.page(spark)}/api/v1/applications/{spark.sparkContext.applicationId}/stages"
    with urlopen(url) as page:
        stages = cast("list[dict[str, int]]", json.load(page))
    return BytesMoved(sum(s["shuffleWriteBytes"] for s in stages), sum(s["shuffleRemoteBytesRead"] for s in stages))


@contextmanager
def executed_by_all() -> Generator[None, None, None]:
    """Executors of any user find a Python that they may run."""
    with bare() as python:
        os.environ.update({**environment(), "PYSPARK_PYTHON": python})
        yield


def apart(folder: Path) -> list[str]:
    """By executors that share nothing but a store, one and two, after a cluster that sees one folder."""
    model, rows, travel = instance({"isr_changes": 3}), list[str](), list[str]()
    native.explore(model, (), Limits(max_seconds=5), workers=2)  # the machine code is in the cache from now on
    with using() as by_native:
        expected = native.explore(model, workers=2)
    with s3.server(folder) as url, executed_by_all(), strangers("nobody", "daemon") as users:
        for name, owners in (("a folder that both see", []), ("S3", users[:1]), ("S3", users)):
            many = len(owners) or 2
            home = folder / f"cluster-{len(rows)}"
            home.mkdir()
            place = url.format(home.name) if owners else str(home / "states")
            with cluster(home, many, owners=owners) as master, session.running(master, settings=SETTINGS) as spark:
                level = small_levels(place, master)
                server_seconds, before = used_by("versitygw"), shuffle_bytes(spark)
                with using() as usage:
                    exploration = explore(model, partitions=4, store=place, master=master)
                server_seconds, through = used_by("versitygw") - server_seconds, shuffle_bytes(spark) - before
            assert answer(exploration) == answer(expected)
            again = sum((c.remade for c in Store(Location.of(place)).commits()), Remaking())
            wall, cpu = usage[0].wall, usage[0].cpu
            row = f"{wall:.1f} | {exploration.distinct / wall:,.0f} | {by_native[0].wall / wall:.2f} | "
            row += f"{cpu:.1f} | {by_native[0].cpu / cpu:.2f} | {server_seconds:.1f} | "
            row += f"{level.wall:.2f}, {level.cpu:.2f} | "
            row += f"{again.buckets} of {again.states:,} states, {again.seconds:.1f} s"
            rows.append(f"| {name} | {many} | {row} |")
            travel = [*traffic_lines(Location.of(place), exploration), store_sentence(Location.of(place), through)]
    took = f"Native took {by_native[0].wall:.1f} s with two workers, {by_native[0].cpu:.1f} s of processor time"
    said = f"{expected.distinct:,} states, {len(expected.levels)} levels, 4 partitions, executors of a core each"
    return [
        f"`kip-966 --isr-changes 3`: {said}. {took}.",
        "",
        "| store | executors | s | distinct/s | part of native | cpu s | part of native | cpu s of the S3 server | "
        "a level of hardly any states: s, cpu s | visited sets made again |",
        "|" + "---|" * 10,
        *rows,
        "",
        *travel,
    ]


def small_levels(place: str, master: str) -> SecondsUsed:
    """What a level of hardly any states takes, each a job of this cluster."""
    explore(instance(SMALL), ("type-ok",), partitions=4, handover=2000, store=place, master=master)
    with using() as usage:
        found = explore(instance(SMALL), ("type-ok",), partitions=4, handover=0, store=place, master=master)
    return SecondsUsed(*(seconds / len(found.levels) for seconds in attrs.astuple(usage[0])))


def store_sentence(place: Location, through: BytesMoved) -> str:
    """What goes to the store and back, and what Spark says that it moved."""
    files, states = place.files(), size_in(place, "states/")
    return (
        f"Compressed that is {through.bytes_written / 1e6:,.0f} MB, of which two executors read "
        f"{through.fetched / 1e6:,.0f} MB from each other. {len(files)} files of {sum(files.values()) / 1e6:,.0f} MB "
        f"were put into the store. The {states / 1e6:,.0f} MB of states among them were read once to be expanded."
    )


def limited_memory(folder: Path) -> list[str]:
    """More states than an executor of one core has memory and local disk for; its states last in an S3 store."""
    model, peak, finish = instance(LARGE), [0, 0, 0], threading.Event()
    with (
        s3.server(folder) as url,
        executed_by_all(),
        strangers("nobody") as users,
        users[0].with_disk(DISK),
        memory_group(f"insync-{os.getpid()}", MEMORY_LIMIT) as group,
        cluster(folder, 1, memory="512m", owners=users) as master,
    ):
        for process in processes():
            if Path(f"/proc/{process}").owner() == users[0].name:
                group.add(process)

        def watch() -> None:
            while not finish.wait(0.5):
                disk, held = os.statvfs(users[0].local), group.number("memory.usage_in_bytes")
                now = ((disk.f_blocks - disk.f_bfree) * disk.f_frsize, held, group.anonymous())
                peak[:] = map(max, zip(peak, now, strict=True))

        watcher = threading.Thread(target=watch)
        watcher.start()
        place, settings = url.format("limited"), {**SETTINGS, "spark.executor.memory": "512m"}
        try:
            with session.running(master, settings=settings), using() as usage:
                exploration = explore(model, (), None, print_progress, partitions=BUCKETS, store=place, master=master)
        finally:
            finish.set()
            watcher.join()
        commits = Store(Location.of(place)).commits()
        sizes, words = total_sizes(commits), cast("int", Store(Location.of(place)).plan()["words"])
        again, states = sum((c.remade for c in commits), Remaking()), size_in(Location.of(place), "states/")
    with using() as by_native:
        expected = native.explore(model, workers=2)
    assert answer(exploration) == answer(expected)
    tasks = sum(len(c.sizes) for c in commits[1:])
    return [
        f"`{options(LARGE)}`: {exploration.distinct:,} states, {exploration.generated:,} generated, "
        f"{len(exploration.levels)} levels, by "
        f"an executor of one core, {BUCKETS} partitions. All answers are the same.",
        "",
        "| | memory | disk |",
        "|---|---|---|",
        f"| limit | {MEMORY_LIMIT >> 20} MiB (a control group, what the system keeps of files included) | "
        f"{DISK >> 20} MiB (a file system of its own) |",
        f"| the most in use at a time | {peak[1] >> 20} MiB, {peak[2] >> 20} MiB of it no file's | "
        f"{peak[0] >> 20} MiB |",
        "",
        "| engine | s | cpu s |",
        "|---|---|---|",
        f"| spark, within these limits | {usage[0].wall:.0f} | {usage[0].cpu:.0f} |",
        f"| native, 2 workers, in memory | {by_native[0].wall:.0f} | {by_native[0].cpu:.0f} |",
        "",
        f"All visited sets together are {visited_bytes(sizes, words) / 1e6:,.0f} MB, the levels in the store "
        f"{states / 1e6:,.0f} MB. In {tasks:,} tasks {again.buckets} visited sets were made again, for which "
        f"{again.states:,} states were read from the store in {again.seconds:.0f} s.",
    ]


def print_progress(at: Progress) -> None:
    """A long run says where it is."""
    text = " · ".join([f"depth {at.depth}", f"{at.distinct:,} states", f"{at.seconds:.0f} s", *at.beside])
    print(f"\r{text:<100}", end="", file=sys.stderr, flush=True)


def total_sizes(commits: list[Commit]) -> Counter[int]:
    """How many states each bucket has in the end."""
    total = Counter[int]()
    for commit in commits:
        total.update(commit.sizes)
    return total


def visited_bytes(sizes: Mapping[int, int], words: int) -> int:
    """The bytes of visited sets of these numbers of states, whose tables are as small as they can be."""
    places = [1 << math.ceil(math.log2(states / FULLEST)) for states in sizes.values()]
    return 8 * sum(words * (states + 1) + many for states, many in zip(sizes.values(), places, strict=True))


def size_in(place: Location, kind: str) -> int:
    return sum(size for name, size in place.files().items() if name.startswith(kind))


def expected_runs() -> Generator[tuple[Run, Exploration, int]]:
    """Every run of tests/expected.toml below MOST states, the smallest first.

    Each comes with native's answer, which is the table's, and four fifths of its largest level, above which Spark does
    levels. The run is told as answered when the next one is asked for.
    """
    todo = sorted(((said.distinct, run.name, run, said) for run, said, _ in table() if said.distinct < MOST), key=first)
    for number, (distinct, name, run, said) in enumerate(todo, 1):
        expected = native.explore(run.instance())
        assert outcome(expected) == said, name
        yield run, expected, max(expected.levels) * 4 // 5
        print(f"{number} of {len(todo)}: {name}, {distinct:,} states, as expected", file=sys.stderr, flush=True)


def equality(folder: Path) -> list[str]:
    """Every run of tests/expected.toml below MOST states, for several numbers of partitions, on this machine."""
    end, runs, levels, paths, states, violated = warm(2), 0, 0, 0, 0, 0
    for run, expected, handover in expected_runs():
        for partitions in (1, 2, 7):
            home = folder / str(partitions)
            found = explore(run.instance(), folder=home, partitions=partitions, handover=handover)
            assert answer(found) == answer(expected), (run.name, partitions)
        levels += 3 * sum(size > handover for size in expected.levels)
        runs += 1
        states += expected.distinct
        paths += sum(f.path is not None for f in expected.findings)
        violated += bool(outcome(expected).violated)
    end()
    return [
        f"All {runs} runs of `tests/expected.toml` with fewer than {MOST:,} states ({states:,} together) were asked, "
        "for 1, 2 and 7 partitions each. The answers are those of the native engine, which are those of the table: "
        "verdicts, states, transitions, depth, levels, counts of actions and guards, and every counterexample and "
        f"witness, step for step. In {violated} of the runs something is violated, and {paths} paths were compared. "
        f"Spark did the levels above four fifths of the largest, {levels:,} of them. The same tasks in one process did "
        "the others."
    ]


def rows(folder: Path) -> list[str]:
    """Every run of tests/expected.toml below MOST states, by a cluster that shares nothing but a store."""
    runs, levels, states, begin = 0, 0, 0, time.monotonic()
    with cluster_apart(folder) as made, session.running(made.master, settings={**session.SETTINGS, **SETTINGS}):
        for runs, (run, expected, handover) in enumerate(expected_runs(), 1):
            store = made.store(str(runs))
            found = explore(run.instance(), store=store, master=made.master, partitions=4, handover=handover)
            assert answer(found) == answer(expected), run.name
            levels += sum(size > handover for size in expected.levels)
            states += expected.distinct
    return [
        f"All {runs} runs of `tests/expected.toml` below {MOST:,} states were asked, {states:,} states together. They "
        "were asked of a cluster of two workers that share nothing but an S3 store with each other and the driver, "
        "with 4 partitions. Every answer is that of the native engine, which is that of the table. The cluster did the "
        f"levels above four fifths of the largest, {levels:,} of them, and the driver the others. "
        f"It took {time.monotonic() - begin:,.0f} s."
    ]


def first(row: tuple[int, str, object, object]) -> tuple[int, str]:
    return row[:2]


def options(settings: Mapping[str, Value]) -> str:
    return " ".join(["kip-966", *(f"--{name.replace('_', '-')} {value}" for name, value in settings.items())])


PARTS: dict[str, Callable[[Path], list[str]]] = {
    "throughput": throughput,
    "fixed": fixed_costs,
    "stores": stores,
    "apart": apart,
    "limited": limited_memory,
    "equality": equality,
    "rows": rows,
}


USUAL = ("throughput", "fixed", "stores", "apart", "limited")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", type=one_of(PARTS), help=f"some of {', '.join(PARTS)}")
    for name in cast("list[str]", parser.parse_args().parts) or USUAL:
        load = os.getloadavg()[0]
        with tempfile.TemporaryDirectory() as folder:
            lines = PARTS[name](Path(folder))
        when = f"{datetime.now():%Y-%m-%d}, {len(os.sched_getaffinity(0))} processors"
        text = "\n".join([*lines, "", f"({when}, load average {load:.1f} before and {os.getloadavg()[0]:.1f} after.)"])
        print(text, flush=True)
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        if PAGE.exists() and begin in PAGE.read_text("utf-8"):
            put_between(PAGE, begin, f"\n{text}\n", end)


if __name__ == "__main__":
    main()
