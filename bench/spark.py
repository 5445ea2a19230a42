"""Exploration by Spark beside the native engine, in one run; what is measured goes to docs/measurements/spark.md.

    python bench/spark.py [throughput] [fixed] [stores] [executors] [apart] [memory] [equality]

The last three only if named.

Processor time is that of all processes that take part, Java included, as the system counts it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import cast

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support import s3
from tests.support.expected import outcome, table
from tests.support.sparks import cluster, environment, strangers

from isr_check import native
from isr_check.engine import Exploration, Limits
from isr_designs import DESIGNS
from isr_lang import Instance
from isr_lang.constants import Value
from isr_pipeline import session
from isr_pipeline.explore import IN_MEMORY, SETTINGS, explore
from isr_pipeline.locations import Location
from isr_pipeline.store import Remade, Store

PAGE = Path(__file__).resolve().parent.parent / "docs" / "measurements" / "spark.md"
LARGE: Mapping[str, Value] = {"isr_changes": 4, "epochs": 2, "crashes": 0}
LARGER: Mapping[str, Value] = {"isr_changes": 4, "epochs": 2}
SMALL: Mapping[str, Value] = {"replicas": 2}
GIVEN, BUCKETS = 512 << 20, 16
"""Bytes that Java is given where memory is the question, and buckets of which two are in use at a time."""
MOST = 5_000_000
"""States of a run where the question is whether the answers are the same."""


@attrs.frozen
class Used:
    """Seconds of the clock, and of the processor by who used them."""

    wall: float
    driver: float
    python: float
    java: float

    @property
    def cpu(self) -> float:
        return self.driver + self.python + self.java


def processes() -> dict[int, tuple[str, float, int]]:
    """This process and all below it: name, processor time with that of ended children, bytes that are no file's."""
    known = dict[int, tuple[int, str, float]]()
    for entry in Path("/proc").iterdir():
        try:
            before, _, after = (entry / "stat").read_text().rpartition(")") if entry.name.isdigit() else ("", "", "")
        except OSError:
            continue
        if fields := after.split():
            times = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            known[int(entry.name)] = int(fields[1]), before.partition("(")[2], times
    mine = {os.getpid()}
    while more := {p for p, (parent, _, _) in known.items() if parent in mine} - mine:
        mine |= more
    return {p: (known[p][1], known[p][2], anonymous(p)) for p in mine}


def anonymous(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon")), 0)


def used_by(name: str) -> float:
    found = processes()
    return sum(t for p, (called, t, _) in found.items() if called == name and p != os.getpid())


@contextmanager
def using() -> Generator[list[Used], None, None]:
    """The one item of the list is there at the end."""
    result, start, own = list[Used](), time.monotonic(), time.process_time()
    python, java = used_by("python"), used_by("java")
    yield result
    wall, driver = time.monotonic() - start, time.process_time() - own
    result.append(Used(wall, driver, used_by("python") - python, used_by("java") - java))


def instance(settings: Mapping[str, Value]) -> Instance:
    return Instance(DESIGNS["kip-966"], settings)


def answer(found: Exploration) -> Exploration:
    return attrs.evolve(found, seconds=0)


def warm(workers: int, memory: int | None = None, scratch: Path | None = None) -> Callable[[], object]:
    """A session that has run a task on each core; returns what ends it. Its visited sets are in `scratch`."""
    given = {"spark.driver.memory": f"{memory >> 20}m"} if memory else {}
    given |= {"spark.local.dir": str(scratch)} if scratch else {}
    everything = {**session.SETTINGS, **session.LOCALLY, **SETTINGS, **IN_MEMORY, **given}
    spark = session.start(session.local(workers), everything)
    explore(instance(SMALL), ("type-ok",), partitions=workers, handover=2000)
    return lambda: session.stop(spark)


def spent(place: Location) -> dict[str, float]:
    total = dict[str, float]()
    for commit in Store(place).commits():
        for on, seconds in commit.spent.items():
            total[on] = total.get(on, 0.0) + seconds
    return total


def throughput(folder: Path) -> list[str]:
    asked = instance(LARGE)
    native.explore(asked, (), Limits(max_seconds=5), workers=2)  # the machine code is in the cache from now on
    with using() as by_native:
        expected = native.explore(asked, workers=2)
    end = warm(2)
    with using() as by_spark:
        found = explore(asked, folder=folder / "large", partitions=2)
    end()
    assert answer(found) == answer(expected)
    rows = [("native, 2 workers", by_native[0]), ("spark, local[2], 2 partitions", by_spark[0])]
    lines = [
        f"`{options(LARGE)}`: {found.distinct:,} states, {found.generated:,} generated, {len(found.levels)} levels."
    ]
    lines += [
        "",
        "| engine | s | distinct/s | part of native | cpu s | distinct per cpu s | part of native |",
        "|" + "---|" * 7,
    ]
    for name, used in rows:
        rates = found.distinct / used.wall, found.distinct / used.cpu
        base = found.distinct / by_native[0].wall, found.distinct / by_native[0].cpu
        parts = [f"{r:,.0f} | {r / b:.2f}" for r, b in zip(rates, base, strict=True)]
        lines.append(f"| {name} | {used.wall:.1f} | {parts[0]} | {used.cpu:.1f} | {parts[1]} |")
    place = Location.of(folder / "large")
    lines += ["", *where(spent(place), by_spark[0], found), "", *travelled(place, found)]
    return lines


def travelled(place: Location, found: Exploration) -> list[str]:
    """How much goes through Spark, which is what a network would have to carry."""
    sent, words = sum(c.sent for c in Store(place).commits()), cast("int", Store(place).plan()["words"])
    each, size = sent / found.distinct, 8 * words
    return [
        f"Of {found.generated / found.distinct:.2f} successors per distinct state {each:.2f} are sent to their owners, "
        f"{size} bytes each: {each * size:.0f} bytes per distinct state, {sent * size / 1e9:.1f} GB in all."
    ]


def where(on: Mapping[str, float], used: Used, found: Exploration) -> list[str]:
    """The table of where the time goes."""
    parts = {
        "expand: successors, their checks, and duplicates within a task": on["expand"],
        "deal: by owner": on["deal"],
        "absorb: into the owner's visited set": on["absorb"],
        "check: properties of new states": on["check"],
        "files: levels written and read": on["files"],
        "visited sets: taken, or made again": on["remake"],
        "rest of the tasks: blocks to and from Java": on["task"] - sum(on[k] for k in on if k != "task"),
        "Python around the tasks, and this process between levels": used.driver + used.python - on["task"],
        "Java: plans, schedules, passes blocks on": used.java,
    }
    lines = ["| where | cpu s | share | ns per distinct state |", "|---|---|---|---|"]
    for name, seconds in parts.items():
        lines.append(f"| {name} | {seconds:.1f} | {seconds / used.cpu:.0%} | {1e9 * seconds / found.distinct:,.0f} |")
    return lines


def fixed(folder: Path) -> list[str]:
    end = warm(2)
    rows, found = list[tuple[float, float]](), native.explore(instance(SMALL), ("type-ok",))
    for turn in range(3):
        with using() as used:
            explore(instance(SMALL), ("type-ok",), folder=folder / str(turn), partitions=2, handover=0)
        rows.append((used[0].wall / len(found.levels), used[0].cpu / len(found.levels)))
    end()
    best = min(rows)
    return [
        f"A level of hardly any states ({found.distinct:,} states, {len(found.levels)} levels, all of them jobs, 2 "
        f"partitions, best of three): {best[0]:.2f} s of the clock, {best[1]:.2f} s of processor time."
    ]


def stores(folder: Path) -> list[str]:
    """What a level costs more where it lasts in an S3 store; all tasks are done by this process."""
    rows, asked = dict[str, list[tuple[float, float, float]]](), instance(SMALL)
    found = explore(asked, ("type-ok",), partitions=4, handover=1 << 60)  # machine code is in the cache from now on
    files = dict[str, int]()
    with s3.server(folder) as url:
        for turn in range(3):
            for name, place in (("a folder", str(folder / str(turn))), ("S3", url.format(turn))):
                kept = used_by("versitygw")
                with using() as used:
                    found = explore(asked, ("type-ok",), partitions=4, handover=1 << 60, store=place)
                level = [1000 * s / len(found.levels) for s in (used[0].driver, used_by("versitygw") - kept)]
                rows.setdefault(name, []).append((level[0], level[1], 1000 * used[0].wall / len(found.levels)))
                files = Location.of(place).files()
    least = [(name, min(turns)) for name, turns in rows.items()]
    lines = ["| store | cpu ms | cpu ms of the S3 server | ms of the clock |", "|---|---|---|---|"]
    lines += [f"| {name} | {cpu:.0f} | {server:.0f} | {wall:.0f} |" for name, (cpu, server, wall) in least]
    return [
        f"A level of hardly any states ({found.distinct:,} states, {len(found.levels)} levels, 4 partitions, no Spark, "
        f"the least of three; {len(files)} files of {sum(files.values()) / 1e3:.0f} kB in all), by where it lasts:",
        "",
        *lines,
    ]


def executors(folder: Path) -> list[str]:
    """By a standalone cluster on this machine, with one and with two executors of a core each, in turns."""
    best, travel, cores = dict[int, tuple[float, float]](), list[str](), os.sched_getaffinity(0)
    os.environ.update(environment())
    asked, states = instance({"isr_changes": 3}), 0
    for turn, workers in enumerate((1, 2, 2, 1)):
        home = folder / str(turn)
        home.mkdir()
        with cluster(home, workers) as url, session.running(url, settings=SETTINGS):
            explore(instance(SMALL), ("type-ok",), partitions=2, handover=2000)
            with using() as used:
                found = explore(asked, folder=home / "states", partitions=2)
        states, travel = found.distinct, travelled(Location.of(home / "states"), found)
        best[workers] = min(best.get(workers, (float("inf"), 0.0)), (used[0].wall, used[0].cpu))
    lines = ["| executors | partitions | s | cpu s | distinct/s | times one |", "|" + "---|" * 6]
    for workers, (wall, cpu) in sorted(best.items()):
        row = f"{wall:.1f} | {cpu:.1f} | {states / wall:,.0f} | {best[1][0] / wall:.2f}"
        lines.append(f"| {workers} | 2 | {row} |")
    said = f"executors of a core each on this machine of {len(cores)}, the better of two runs"
    return [f"`kip-966 --isr-changes 3`: {states:,} states, by a standalone cluster; {said}.", "", *lines, "", *travel]


def apart(folder: Path) -> list[str]:
    """By two users who share nothing but a store, beside a cluster that sees one folder, in turns."""
    asked, rows, travel = instance({"isr_changes": 3}), list[str](), list[str]()
    os.environ.update(environment())
    with using() as by_native:
        expected = native.explore(asked, workers=2)
    with s3.server(folder) as url, strangers("nobody", "daemon") as users:
        for name, owners in (("one folder", []), ("S3, two users", users)):
            home = folder / name.replace(" ", "-")
            home.mkdir()
            place = url.format("run") if owners else str(home / "states")
            with cluster(home, 2, owners=owners) as master, session.running(master, settings=SETTINGS):
                explore(instance(SMALL), ("type-ok",), partitions=4, handover=2000, store=place, master=master)
                kept = used_by("versitygw")
                with using() as used:
                    found = explore(asked, partitions=4, store=place, master=master)
                kept = used_by("versitygw") - kept
            assert answer(found) == answer(expected)
            commits, store = Store(Location.of(place)).commits(), Location.of(place).files()
            travel = travelled(Location.of(place), found)
            again = sum((c.remade for c in commits), Remade())
            wall, cpu = used[0].wall, used[0].cpu
            row = f"{wall:.1f} | {found.distinct / wall:,.0f} | {by_native[0].wall / wall:.2f} | "
            row += f"{cpu:.1f} | {by_native[0].cpu / cpu:.2f} | {kept:.1f} | {len(commits)} | "
            row += f"{again.buckets} of {again.states:,} states, {again.seconds:.1f} s"
            rows.append(f"| {name} | {row} | {len(store)}, {sum(store.values()) / 1e6:.0f} MB |")
    took = f"native took {by_native[0].wall:.1f} s with two workers, {by_native[0].cpu:.1f} s of processor time"
    said = f"{expected.distinct:,} states, 4 partitions, two executors of a core each"
    return [
        f"`kip-966 --isr-changes 3`: {said}; {took}.",
        "",
        "| store | s | distinct/s | part of native | cpu s | part of native | cpu s of the S3 server | levels | "
        "visited sets made again | files in the store |",
        "|" + "---|" * 10,
        *rows,
        "",
        *travel,
    ]


def memory(folder: Path) -> list[str]:
    """More states than Java is given memory for; meanwhile, how much the processes hold that is no file's."""
    scratch = folder / "local"
    scratch.mkdir()
    end, peak, done = warm(2, GIVEN, scratch), dict[str, int](), threading.Event()

    def watch() -> None:
        while not done.wait(1.0):
            for name, _, held in processes().values():
                peak[name] = max(peak.get(name, 0), held)

    watcher = threading.Thread(target=watch)
    watcher.start()
    home, sets = folder / "larger", list[int]()
    with using() as used:
        found = explore(
            instance(LARGER), (), None, lambda _: sets.append(size_of(scratch)), folder=home, partitions=BUCKETS
        )
    done.set()
    watcher.join()
    end()
    expected = native.explore(instance(LARGER), workers=2)
    assert answer(found) == answer(expected)
    return [
        f"`{options(LARGER)}`: {found.distinct:,} states, {found.generated:,} generated, {len(found.levels)} levels, "
        f"with {GIVEN >> 20} MB for Java (`--memory`) and {BUCKETS} partitions, two tasks at a time; the visited sets "
        f"and what is shuffled grew to {max(sets) / 1e9:.1f} GB of files, the levels have "
        f"{size_of(home / 'states') / 1e9:.1f} GB. It took "
        f"{used[0].wall:.0f} s; native took {expected.seconds:.0f} s in memory. All answers are the same. Memory that "
        f"is no file's, at most: Java {peak['java'] / 1e9:.1f} GB, any Python process {peak['python'] / 1e9:.2f} GB. "
        "What the system keeps of files in memory was not limited."
    ]


def size_of(folder: Path) -> int:
    """Bytes on disk."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())


def equality(folder: Path) -> list[str]:
    """Every run of tests/expected.toml below MOST states, the smallest first; Spark does the large levels of each."""
    end, levels, paths, states = warm(2), 0, 0, 0
    todo = sorted(((said.distinct, run.name, run, said) for run, said, _ in table() if said.distinct < MOST), key=first)
    for number, (distinct, name, run, said) in enumerate(todo, 1):
        expected = native.explore(run.instance())
        assert outcome(expected) == said, name
        handover = max(expected.levels) * 4 // 5
        for partitions in (1, 2, 7):
            home = folder / str(partitions)
            found = explore(run.instance(), folder=home, partitions=partitions, handover=handover)
            assert answer(found) == answer(expected), (name, partitions)
        levels += 3 * sum(size > handover for size in expected.levels)
        states += distinct
        paths += sum(f.path is not None for f in expected.findings)
        print(f"{number} of {len(todo)}: {name}, {distinct:,} states, as expected", file=sys.stderr, flush=True)
    end()
    violated = sum(bool(said.violated) for *_, said in todo)
    return [
        f"All {len(todo)} runs of `tests/expected.toml` with fewer than {MOST:,} states ({states:,} together), for 1, "
        "2 and 7 partitions each: verdicts, states, transitions, depth, levels, counts of actions and guards, and every"
        " counterexample and witness, step for step, are those of the native engine, which are those of the table. "
        f"In {violated} of the runs something is violated; {paths} paths were compared. Spark did the levels above "
        f"four fifths of the largest, {levels:,} of them, and the same tasks in one process did the others."
    ]


def first(row: tuple[int, str, object, object]) -> tuple[int, str]:
    return row[:2]


def options(settings: Mapping[str, Value]) -> str:
    return " ".join(["kip-966", *(f"--{name.replace('_', '-')} {value}" for name, value in settings.items())])


PARTS: dict[str, Callable[[Path], list[str]]] = {
    "throughput": throughput,
    "fixed": fixed,
    "stores": stores,
    "executors": executors,
    "apart": apart,
    "memory": memory,
    "equality": equality,
}


def main() -> None:
    for name in sys.argv[1:] or ("throughput", "fixed", "stores", "executors"):
        load = os.getloadavg()[0]
        with tempfile.TemporaryDirectory() as folder:
            lines = PARTS[name](Path(folder))
        when = f"{datetime.now():%Y-%m-%d}, {len(os.sched_getaffinity(0))} processors"
        text = "\n".join([*lines, "", f"({when}, load average {load:.1f} before and {os.getloadavg()[0]:.1f} after.)"])
        print(text, flush=True)
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        page = PAGE.read_text("utf-8") if PAGE.exists() else ""
        if begin in page:
            before, rest = page.split(begin)
            PAGE.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
