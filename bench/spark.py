"""Exploration by Spark beside the native engine, in one run; what is measured goes to docs/scale.md.

    python bench/spark.py [throughput] [fixed] [executors] [memory] [equality]     the last two take long: only if named

Processor time is that of all processes that take part, Java included, as the system counts it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.expected import table

from isr_check import native
from isr_check.engine import Exploration, Limits
from isr_designs import DESIGNS
from isr_lang import Instance
from isr_lang.constants import Value
from isr_pipeline import session
from isr_pipeline.explore import IN_MEMORY, SETTINGS, explore

PAGE = Path(__file__).resolve().parent.parent / "docs" / "scale.md"
LARGE: Mapping[str, Value] = {"isr_changes": 4}
SMALL: Mapping[str, Value] = {"replicas": 2}
GIVEN = 512 << 20
"""Bytes that Java is given where memory is the question."""
MOST = 5_000_000


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


def warm(workers: int, memory: int | None = None) -> Callable[[], object]:
    """A session that has run a task on each core; returns what ends it."""
    given = {"spark.driver.memory": f"{memory >> 20}m"} if memory else {}
    everything = {**session.SETTINGS, **session.LOCALLY, **SETTINGS, **IN_MEMORY, **given}
    spark = session.start(session.local(workers), everything)
    explore(instance(SMALL), ("type-ok",), partitions=workers, handover=2000)
    return lambda: session.stop(spark)


def spent(folder: Path) -> dict[str, float]:
    total = dict[str, float]()
    for file in (folder / "commits").glob("*.json"):
        for on, seconds in json.loads(file.read_text())["spent"].items():
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
    lines += ["", *where(spent(folder / "large"), by_spark[0], found), "", *travelled(folder / "large", found)]
    return lines


def travelled(folder: Path, found: Exploration) -> list[str]:
    """How much goes through Spark, which is what a network would have to carry."""
    commits = [json.loads(file.read_text()) for file in (folder / "commits").glob("*.json")]
    sent, words = sum(c["sent"] for c in commits), json.loads((folder / "plan.json").read_text())["words"]
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
        "rest of the tasks: blocks to and from Java, mapping the sets": on["task"]
        - sum(on[k] for k in on if k != "task"),
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


def executors(folder: Path) -> list[str]:
    lines = ["| tasks at once | partitions | s | cpu s | distinct/s | times one |", "|" + "---|" * 6]
    first, states, travel = 0.0, 0, list[str]()
    for workers in (1, 2):
        end = warm(workers)
        with using() as used:
            found = explore(instance({"isr_changes": 3}), folder=folder / "workers", partitions=2)
        end()
        travel = travelled(folder / "workers", found)
        states, rate = found.distinct, found.distinct / used[0].wall
        first = first or rate
        row = [f"{used[0].wall:.1f}", f"{used[0].cpu:.1f}", f"{rate:,.0f}", f"{rate / first:.2f}"]
        lines.append(f"| {workers} | 2 | {' | '.join(row)} |")
    return [f"`kip-966 --isr-changes 3`: {states:,} states.", "", *lines, "", *travel]


def memory(folder: Path) -> list[str]:
    """More states than Java is given memory for; meanwhile, how much the processes hold that is no file's."""
    end, peak, done = warm(2, GIVEN), dict[str, int](), threading.Event()

    def watch() -> None:
        while not done.wait(1.0):
            for name, _, held in processes().values():
                peak[name] = max(peak.get(name, 0), held)

    watcher = threading.Thread(target=watch)
    watcher.start()
    home, sets = folder / "larger", list[int]()
    with using() as used:
        found = explore(
            instance(LARGE), (), None, lambda _: sets.append(size_of(home / "sets")), folder=home, partitions=8
        )
    done.set()
    watcher.join()
    end()
    expected = native.explore(instance(LARGE), workers=2)
    assert answer(found) == answer(expected)
    return [
        f"`{options(LARGE)}`: {found.distinct:,} states with {GIVEN >> 20} MB for Java and 8 partitions; the visited "
        f"sets were {max(sets) / 1e9:.1f} GB of files, the levels {size_of(home / 'states') / 1e9:.1f} GB. It took "
        f"{used[0].wall:.0f} s; native took {expected.seconds:.0f} s in memory. All answers are the same. Memory that "
        f"is no file's, at most: Java {peak['java'] / 1e9:.1f} GB, any Python process {peak['python'] / 1e9:.2f} GB."
    ]


def size_of(folder: Path) -> int:
    """Bytes on disk."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())


def equality(folder: Path) -> list[str]:
    """Runs of tests/expected.toml, the smallest first, until Ctrl-C; Spark does the largest levels of each."""
    end, done, levels, largest = warm(2), 0, 0, 0
    todo = sorted((said.distinct, run.name, run) for run, said, _ in table() if said.distinct < MOST)
    with suppress(KeyboardInterrupt):
        for distinct, name, run in todo:
            expected = native.explore(run.instance())
            assert expected.distinct == distinct, name
            handover = max(expected.levels) * 4 // 5
            for partitions in (1, 2, 7):
                home = folder / str(partitions)
                found = explore(run.instance(), folder=home, partitions=partitions, handover=handover)
                assert answer(found) == answer(expected), (name, partitions)
            done, levels, largest = done + 1, levels + 3 * sum(size > handover for size in expected.levels), distinct
            print(f"{done} of {len(todo)}: {name}, {distinct:,} states, as expected", file=sys.stderr, flush=True)
    end()
    return [
        f"{done} of the {len(todo)} runs of `tests/expected.toml` with fewer than {MOST:,} states, the smallest, up to "
        f"{largest:,} states, for 1, 2 and 7 partitions each: verdicts, states, transitions, depth, levels, counts of "
        "actions and guards, every counterexample and every witness are those of the native engine. Spark did "
        f"the levels above four fifths of the largest, {levels:,} of them."
    ]


def options(settings: Mapping[str, Value]) -> str:
    return " ".join(["kip-966", *(f"--{name.replace('_', '-')} {value}" for name, value in settings.items())])


PARTS: dict[str, Callable[[Path], list[str]]] = {
    "throughput": throughput,
    "fixed": fixed,
    "executors": executors,
    "memory": memory,
    "equality": equality,
}


def main() -> None:
    for name in sys.argv[1:] or ("throughput", "fixed", "executors"):
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
