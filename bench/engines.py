"""The engines side by side, and TLC on our own export where TLA2TOOLS_JAR names its jar.

    python bench/engines.py [--workers 1,2,4,8,16] [PART]...

All parts, or those named, are measured and go to docs/measurements/engines.md, each between its markers, and `engines`
as a picture beside it. `--help` lists them. Without --workers, numbers of workers are doubled up to that of the
processors.
Each measurement is a process of its own: its processor time and its peak memory are what the system says of it
at its end.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, cast
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import attrs
from bench.pages import put_between
from bench.parts import one_of

from isr_check import simulation
from isr_check.engine import Exploration
from isr_check.native import simulation as native_walks
from isr_check.native.buffers import resident
from isr_check.native.layout import SLACKS
from isr_check.native.machine import Kernel
from isr_check.native.search import Means, Search
from isr_check.native.team import Span, Team, Work
from isr_lang import Instance
from isr_protocol.by_name import DESIGNS
from isr_protocol.planted.bugs import PLANTED as PLANTED_DESIGNS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "measurements" / "engines.md"
PLOT = PAGE.with_suffix(".svg")
INSYNC = str(Path(sys.executable).with_name("insync"))
TLC_SECONDS = 90
RUNS = 5

MODELS = ("kip-320 --epochs 2 --isr-changes 5", "kip-966")
LARGER = "kip-966 --isr-changes 4"
LARGEST = "kip-966 --isr-changes 4 --epochs 2"
STATE_BYTES = 14
"""What memory may hold of each state where they are to be compressed."""
SMALL = "kip-966 --replicas 2 --isr-changes 3"
EVERYDAY = (SMALL, "kip-966 --replicas 2")
"""What somebody asks in passing."""
TINY = "kip-966 --replicas 2 --epochs 0 --crashes 0"
"""What a process holds that explores next to nothing."""
ENOUGH = 1_000_000
"""States, so many that what they take shows beside what a process holds anyway."""
LARGE = "--replicas 4 --log 4 --records 4 --epochs 4 --isr-changes 6 --crashes 2"
"""Bounds within which no exploration ends."""
WALK_MODELS = ("kip-966", f"kip-966 {LARGE}")
WALKS, FEW_WALKS, SEED = 50_000, 60, 1
"""Random walks by native code, and by the reference."""
PLANTED, PROMISE = f"truncate-to-watermark {LARGE}", "acked-survives"
"""A planted bug, within the same bounds."""
PATIENCE = 60
"""Seconds that an exploration has to find it."""
REDUCED = ("kip-966", "kip-966 --replicas 5 --isr-changes 1 --epochs 1 --crashes 0")
BILLIONS = (
    ("kip-966 --isr-changes 5 --epochs 3", "--symmetry on"),
    ("kip-966 --isr-changes 5 --epochs 3", "--symmetry on --reduction on"),
    ("kip-320 --replicas 6 --epochs 1 --isr-changes 4 --crashes 0 --memory 18G", "--symmetry on"),
)
"""Models and options; the last takes most of 24 GiB."""
PROOFS = (
    "kip-966 --replicas any --seconds 20",
    "kip-966 --replicas any --min-insync any --seconds 20",
    "kafka-4.4-mended --replicas any --min-insync any --spares any --reassignments any --minimum-changes any "
    "--late-news any --copies any --seconds 20",
    "abstract-quorum --voters any --dynamic on --lost-disks any --seconds 60",
)
LIVE = (SMALL,)
"""Models whose liveness is asked, without symmetry, which would count other steps."""


Bar = tuple[str, str, float]
"""The model, the engine, distinct states per second."""


@attrs.frozen
class ProcessEnd:
    """What the system says of a process; `wall` and `cpu` in seconds, `peak` in bytes."""

    wall: float
    cpu: float
    peak: int
    output: str


@attrs.frozen
class Row:
    """One line of the table. `stands_for` is more than `distinct` by symmetry; `base` is the peak of TINY."""

    model: str
    engine: str
    distinct: int
    stands_for: int
    seconds: float
    process: ProcessEnd
    base: int = 0

    @property
    def rate(self) -> float:
        return self.stands_for / self.seconds

    @property
    def cpu_rate(self) -> float:
        return self.stands_for / self.process.cpu

    def line(self, tlc: Row | None) -> str:
        counted = self.base and self.distinct > ENOUGH
        held = f"{(self.process.peak - self.base) / self.distinct:.0f}" if counted else "-"
        times = [f"{self.rate / tlc.rate:,.0f}", f"{self.cpu_rate / tlc.cpu_rate:,.0f}"] if tlc else ["-", "-"]
        counts = [f"{self.distinct:,}", f"{self.seconds:.1f}", f"{self.distinct / self.seconds:,.0f}"]
        counts.append(f"{self.distinct / self.process.cpu:,.0f}")
        cells = [f"`{self.model}`", self.engine, *counts, *times, f"{self.process.peak / 2**20:,.0f}", held]
        return f"| {' | '.join(cells)} |"


def process(command: Sequence[str], folder: Path, **environment: str) -> ProcessEnd:
    """Run it to its end; Python keeps its byte code, as it does unless told not to."""
    told = {**os.environ, **environment}
    told.pop("PYTHONDONTWRITEBYTECODE", None)
    with (folder / "output").open("w+", encoding="utf-8") as output:
        start = time.monotonic()
        started = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, env=told)
        _, status, usage = os.wait4(started.pid, 0)
        wall = time.monotonic() - start
        started.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        unit = 1 if sys.platform == "darwin" else 1024
        return ProcessEnd(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit, output.read())


def check(model: str, options: str, folder: Path, cache: Path) -> tuple[ProcessEnd, dict[str, int | float | None]]:
    """`insync check`: the process, and the numbers of its report."""
    command = [INSYNC, "check", *model.split(), *options.split(), "--quiet", "--out", str(folder / "out")]
    shutil.rmtree(folder / "out", ignore_errors=True)
    ended = process(command, folder, INSYNC_CACHE=str(cache))
    report = folder / "out" / "run.json"
    assert report.exists(), ended.output
    return ended, cast("dict[str, int | float | None]", json.loads(report.read_text("utf-8"))["stats"])


def ours(model: str, engine: str, options: str, folder: Path, cache: Path, base: int = 0) -> Row:
    ended, stats = check(model, options, folder, cache)
    distinct = int(stats["distinct"] or 0)
    return Row(model, engine, distinct, int(stats["unreduced"] or distinct), stats["seconds"] or 0, ended, base)


def tlc(model: str, jar: str, folder: Path) -> Row:
    """TLC on what we export, with TypeOK and all that is promised. Counted from its first report of progress on."""
    module_folder = folder / "tla"
    shutil.rmtree(module_folder, ignore_errors=True)
    done = process([INSYNC, "export", *model.split(), "--tla", str(module_folder)], folder)
    modules = list(module_folder.glob("*.tla"))
    assert modules, done.output
    module = modules[0].stem
    java = ["java", "-XX:+UseParallelGC", "-Xmx4g", f"-Dtlc2.TLC.stopAfter={TLC_SECONDS}", "-cp", jar, "tlc2.TLC"]
    options = ["-deadlock", "-nowarning", "-noGenerateSpecTE", "-workers", "2", "-config", f"{module}.cfg"]
    result = process([*java, *options, f"{module}.tla"], module_folder)
    assert "\nError:" not in result.output, result.output
    progress = re.findall(r"^Progress\(\d+\) at (.+?): .*? ([\d,]+) distinct states found", result.output, re.M)
    totals = re.findall(r" generated, (\d+) distinct states found, (\d+) states left", result.output)
    assert totals, result.output
    assert len(progress) > 1, result.output
    times = [datetime.fromisoformat(when) for when, _ in progress]
    counts = [int(count.replace(",", "")) for _, count in progress]
    ended_early = "" if totals[-1][1] == "0" else ", stopped"
    # The rate is that between the first and the last report; the seconds are those it would take for all it found.
    rate = (counts[-1] - counts[0]) / (times[-1] - times[0]).total_seconds()
    distinct = int(totals[-1][0])
    return Row(model, f"TLC, 2 workers{ended_early}", distinct, distinct, distinct / rate, result)


def everyday(folder: Path, cache: Path, _: Sequence[int]) -> list[str]:
    """From the prompt to what is printed: the verdicts on small models, and the help."""
    head = ["`insync`", "states", "machine code", "best", "median", "processor time, best"]
    lines = [f"{RUNS} runs each, in seconds:", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for model in EVERYDAY:
        cold = [check(model, "", folder, folder / f"cold-{run}")[0] for run in range(RUNS)]
        states = check(model, "", folder, cache)[1]["distinct"]
        warm = [check(model, "", folder, cache)[0] for _ in range(RUNS)]
        lines += [prompt_line(f"check {model}", f"{states:,}", "cold cache", cold)]
        lines += [prompt_line(f"check {model}", f"{states:,}", "warm", warm)]
    return [*lines, prompt_line("--help", "-", "-", [process([INSYNC, "--help"], folder) for _ in range(RUNS)])]


def prompt_line(command: str, states: str, machine_code: str, runs: Sequence[ProcessEnd]) -> str:
    walls = [r.wall for r in runs]
    times = [f"{seconds:.2f}" for seconds in (min(walls), median(walls), min(r.cpu for r in runs))]
    return f"| {' | '.join([f'`{command}`', states, machine_code, *times])} |"


def natives(workers: Sequence[int]) -> dict[str, str]:
    """The options of every run of the native engine, by its name."""
    found = {f"native, {n} worker{'s' * (n > 1)}": f"--workers {n}" for n in workers}
    return {**found, f"native, {workers[-1]} workers, symmetry": f"--workers {workers[-1]} --symmetry on"}


def scaling(rows: Sequence[Row]) -> list[str]:
    """What more workers gain, from the rows of one model."""
    lines = ["| workers | s | distinct/s | times one | processor time | times one |", "|---|---|---|---|---|---|"]
    one = rows[0]
    for row in rows:
        times, cost = one.seconds / row.seconds, row.process.cpu / one.process.cpu
        cells = [row.engine.removeprefix("native, ").split()[0], f"{row.seconds:.1f}", f"{row.rate:,.0f}"]
        cells += [f"{times:.2f}", f"{row.process.cpu:.1f}", f"{cost:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return [f"More workers, on `{one.model}` ({one.distinct:,} states):", "", *lines]


def cached(model: str) -> Instance:
    """The instance; its machine code is in the cache from now on."""
    instance = instance_of(model)
    first = Search(instance, (), SLACKS[0], Means(1), None)
    first.machine.improve()
    compiled()
    first.space.close(keep=False)
    return instance


def compressed(_: Path, cache: Path, workers: Sequence[int]) -> list[str]:
    """Explorations in arrays, and in so little memory that states are compressed, in this process."""
    os.environ["INSYNC_CACHE"] = str(cache)
    head = ["model", "distinct", "states", "bytes/state", "s", "distinct/s", "/cpu s", "speed", "speed, cpu"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for model in (LARGER, LARGEST):
        instance, one, number = cached(model), (0.0, 0.0), 0
        for kind in ("in arrays", "compressed"):
            search = Search(instance, (), SLACKS[0], Means(workers[-1]), None)
            search.space.budget = search.space.base + STATE_BYTES * number if number else None
            before, start, begin = resident(), time.monotonic(), time.process_time()
            exploration = search.run(lambda _, __: {})
            took, cpu = time.monotonic() - start, time.process_time() - begin
            bytes_held, space = resident() - before, search.space
            assert exploration.complete, exploration.stopped
            assert (space.compressed is not None) == bool(number), "what is measured is not what the line says"
            assert number in (0, exploration.distinct), "another number of states"
            space.close(keep=False)
            del search, space
            gc.collect()  # or the next line begins with what this one held, and gives it back in between
            one, number = one if number else (took, cpu), exploration.distinct
            cells = [
                f"`{model}`",
                f"{number:,}",
                kind,
                f"{bytes_held / number:.1f}",
                f"{took:.1f}",
                f"{number / took:,.0f}",
            ]
            cells += [f"{number / cpu:,.0f}", f"{one[0] / took:.2f}", f"{one[1] / cpu:.2f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return [f"With {workers[-1]} workers:", "", *lines]


def shared(_: Path, cache: Path, workers: Sequence[int]) -> list[str]:
    """What the workers of an exploration share, counted in this process, by processor time."""
    os.environ["INSYNC_CACHE"] = str(cache)
    instance = cached(LARGER)
    search = Search(instance, (), SLACKS[0], Means(workers[-1]), None)
    in_kernels, in_teams, spans = list[float](), list[float](), list[int]()
    run, share = dict(search.machine.run), Team.share

    def clock_kernel(kernel: Kernel) -> Kernel:
        def call(job: int) -> None:
            start = time.thread_time()
            kernel(job)
            in_kernels.append(time.thread_time() - start)

        return call

    def count_share(self: Team, todo: deque[Span], work: Work) -> None:
        start = time.thread_time()
        spans.append(len(todo))
        share(self, todo, work)
        in_teams.append(time.thread_time() - start)

    search.machine.run = {name: clock_kernel(kernel) for name, kernel in run.items()}
    with patch.object(Team, "share", count_share):
        start, begin = time.thread_time(), time.process_time()
        exploration = search.run(lambda _, __: {})
        alone, whole = time.thread_time() - start - sum(in_teams), time.process_time() - begin
    search.space.close(keep=False)
    python = whole - alone - sum(in_kernels)
    return [
        f"`{LARGER}` with {workers[-1]} workers:",
        "",
        "| processor time | s |",
        "|---|---|",
        f"| one thread's, between two rounds of shared work | {alone:.3f} ({100 * alone / whole:.1f} %) |",
        f"| in kernels, which hold no lock | {sum(in_kernels):.2f} ({100 * sum(in_kernels) / whole:.1f} %) |",
        f"| Python's around the kernels, under its global lock | {python:.2f} "
        f"({1e6 * python / sum(spans):.0f} microseconds for each span) |",
        f"| in all | {whole:.2f} |",
        "",
        f"Workers took {sum(spans):,} spans from the queue, in {len(spans)} rounds that end together. A distinct state "
        f"takes {exploration.generated / exploration.distinct:.1f} looks into the table that all share, each a cache "
        f"line from "
        f"anywhere in {search.space.table.size >> 17:,} MiB.",
    ]


def walks(folder: Path, cache: Path, workers: Sequence[int]) -> list[str]:
    """Random walks by each engine, in this process, and a planted bug that they find where exploring does not.

    Not by `insync check --simulate`, which makes every witness shorter: in Python, for hours at the larger bounds.
    """
    os.environ["INSYNC_CACHE"] = str(cache)
    head = ["model", "engine", "walks", "steps", "s", "steps/s", "/cpu s", "x reference, cpu"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for model in WALK_MODELS:
        instance = instance_of(model)
        runs = [("reference", FEW_WALKS, partial(simulation.simulate, instance, (), FEW_WALKS, SEED))]
        for n in workers:
            name = f"native, {n} worker{'s' * (n > 1)}"
            runs.append((name, WALKS, partial(native_walks.simulate, instance, (), WALKS, SEED, workers=n)))
        native_walks.simulate(instance, (), WALKS, SEED)
        compiled()
        reference = 0.0
        for name, number, walk in runs:
            seconds, cpu, found = time_walk(walk)
            steps = sum(found.steps_by_action.values())
            reference = reference or steps / cpu
            cells = [f"`{model}`", name, f"{number:,}", f"{steps:,}", f"{seconds:.1f}", f"{steps / seconds:,.0f}"]
            lines.append(f"| {' | '.join([*cells, f'{steps / cpu:,.0f}', f'{steps / cpu / reference:,.0f}'])} |")
    return [*lines, "", *planted(folder, cache)]


def planted(folder: Path, cache: Path) -> list[str]:
    wanted = (PROMISE,)
    seconds, _, found = time_walk(partial(native_walks.simulate, instance_of(PLANTED), wanted, WALKS, SEED))
    path = found.finding(PROMISE).path
    outcome = f"break `{PROMISE}` after {seconds:.1f} s" if path else f"do not break `{PROMISE}` in {seconds:.1f} s"
    asked = f"{PLANTED} --property {PROMISE}"
    explored, stats = check(asked, f"--max-seconds {PATIENCE} --memory 4G", folder, cache)
    tried = json.loads((folder / "out" / "run.json").read_text("utf-8"))
    return [
        f"At most {WALKS:,} walks of `{PLANTED}` {outcome}. `insync check {asked}`: {tried['verdict']} after "
        f"{explored.wall:.0f} s, with {stats['distinct']:,} states, in level {stats['depth']}."
    ]


def reduced(folder: Path, cache: Path, workers: Sequence[int]) -> list[str]:
    """States that make no difference, told apart and not; with and without symmetry."""
    orbits, merged = "--symmetry on", "--reduction on"
    asked = [(model, options) for model in REDUCED for options in (orbits, f"{orbits} {merged}")]
    return explorations([(REDUCED[0], ""), (REDUCED[0], merged), *asked], folder, cache, workers[-1])


def larger(folder: Path, cache: Path, workers: Sequence[int]) -> list[str]:
    """Explorations that end after minutes."""
    return explorations(BILLIONS, folder, cache, workers[-1])


def explorations(questions: Sequence[tuple[str, str]], folder: Path, cache: Path, workers: int) -> list[str]:
    """One run each, by the exploration's own clock: a verdict of VACUOUS takes longer, for larger bounds are tried."""
    head = ["`insync check` and", "verdict", "found", "stand for", "steps", "depth", "s", "found/s", "peak MiB"]
    lines = [f"With {workers} workers:", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for model, options in questions:
        line = " ".join(f"{model} {options}".split())
        check(line, f"--workers {workers} --max-seconds 2", folder, cache)  # makes the best machine code
        _, stats = check(line, f"--workers {workers}", folder, cache)
        verdict = json.loads((folder / "out" / "run.json").read_text("utf-8"))["verdict"]
        found, seconds = stats["distinct"] or 0, stats["seconds"] or 0
        stand_for = f"{stats['unreduced']:,}" if stats["unreduced"] and "reduction" not in options else "-"
        cells = [f"`{line}`", verdict, f"{found:,}", stand_for, f"{stats['generated']:,}", str(stats["depth"])]
        cells += [f"{seconds:.1f}", f"{found / seconds:,.0f}", f"{(stats['peak_rss_bytes'] or 0) / 2**20:,.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def proofs(folder: Path, _: Path, workers: Sequence[int]) -> list[str]:
    """Proofs without bounds, with what the last ones learnt: each ends by itself, proved or not."""
    head = ["`insync prove`", "verdict", "obligations", "asked", "s", "processor time, s", "of these the solver's"]
    lines = [f"With {workers[-1]} workers:", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for question in PROOFS:
        out = folder / "proof"
        shutil.rmtree(out, ignore_errors=True)
        words = [*question.split(), "--look", "0", "--workers", str(workers[-1]), "--quiet", "--out", str(out)]
        end = process([INSYNC, "prove", *words], folder)
        assert (out / "prove.json").exists(), end.output
        report = json.loads((out / "prove.json").read_text("utf-8"))
        stats = report["stats"]
        cells = [f"`{question}`", report["verdict"], f"{stats['obligations']:,}", str(stats["asked"])]
        cells += [f"{end.wall:.0f}", f"{end.cpu:.0f}", f"{stats['solver_seconds']:.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def liveness(folder: Path, cache: Path, workers: Sequence[int]) -> list[str]:
    """What must come to pass, beside the same exploration without that question."""
    head = ["model", "states", "s", "processor time, s", "with liveness, s", "processor time, s", "times, cpu"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for model in LIVE:
        options = f"--symmetry off --workers {workers[-1]}"
        for more in ("", " --liveness on"):
            check(model, options + more, folder, cache)  # the machine code is in the cache from now on
        runs: dict[str, list[ProcessEnd]] = {"": [], " --liveness on": []}
        states = 0
        for _ in range(RUNS):
            for more, found in runs.items():
                end, stats = check(model, options + more, folder, cache)
                found.append(end)
                states = int(stats["distinct"] or 0)
        without, beside = (sorted(found, key=lambda r: r.cpu)[RUNS // 2] for found in runs.values())
        cells = [f"`{model}`", f"{states:,}", f"{without.wall:.2f}", f"{without.cpu:.2f}"]
        cells += [f"{beside.wall:.2f}", f"{beside.cpu:.2f}", f"{beside.cpu / without.cpu:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def time_walk(walk: Callable[[], Exploration]) -> tuple[float, float, Exploration]:
    """Seconds by the clock, seconds of processor time, and the answer."""
    start, begin = time.monotonic(), time.process_time()
    found = walk()
    return time.monotonic() - start, time.process_time() - begin, found


def compiled() -> None:
    """Wait for the best machine code, which is in the cache from then on."""
    for compiler in (t for t in threading.enumerate() if t.name == "insync-compiler"):
        compiler.join()


def instance_of(line: str) -> Instance:
    """A design and bounds, as on the command line."""
    name, *words = line.split()
    pairs = zip(words[::2], words[1::2], strict=True)
    design = DESIGNS.get(name) or PLANTED_DESIGNS[name].design
    assert design is not None, f"{name} is not a bug of the model"
    return Instance(design, {option[2:].replace("-", "_"): int(value) for option, value in pairs})


def engines(folder: Path, cache: Path, workers: Sequence[int]) -> list[str]:
    """The engines side by side, as Markdown and as a picture."""
    jar = os.environ.get("TLA2TOOLS_JAR", "")
    check(TINY, "", folder, cache)
    base = check(TINY, "", folder, cache)[0].peak
    rows, bars, more = list[str](), list[Bar](), list[str]()
    for model in (*MODELS, LARGER):
        for options in natives(workers).values():
            check(model, options, folder, cache)  # the machine code is in the cache from now on
        runs: dict[str, list[Row]] = {name: [] for name in natives(workers)}
        other = None
        for turn in range(RUNS):
            if turn == RUNS // 2 and jar and model in MODELS:  # in the middle: a machine's speed drifts
                other = tlc(model, str(Path(jar).resolve()), folder)
            for name, options in natives(workers).items():
                runs[name].append(ours(model, name, options, folder, cache, base))
        found = [sorted(those, key=lambda row: row.process.cpu)[RUNS // 2] for those in runs.values()]
        everybody = (*found, *([other] if other else []))
        rows += [row.line(other) for row in everybody]
        bars += [(row.model, row.engine, row.rate) for row in everybody]
        more = scaling(found[: len(workers)])
    oracle = ours(SMALL, "reference", "--engine reference", folder, cache)
    rows.append(oracle.line(None))
    bars.append((oracle.model, oracle.engine, oracle.rate))
    print(plot(bars, PLOT))
    return [table(rows), "", *more]


def table(rows: Sequence[str]) -> str:
    head = ["model", "engine", "distinct", "s", "distinct/s", "/cpu s", "x TLC", "x TLC, cpu", "peak MiB"]
    head.append("bytes/state")
    return "\n".join([f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *rows])


def plot(bars: Sequence[Bar], target: Path) -> str:
    """Writes the picture, or says which package is missing for it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return f"no {target.name}: matplotlib is missing (pip install 'insync[bench]')"
    models = list(dict.fromkeys(model for model, _, _ in bars))
    figure: Any = Figure(figsize=(9, 1.0 + 0.32 * len(bars)), layout="constrained")
    panels = figure.subplots(len(models), 1, sharex=True, squeeze=False)[:, 0]
    for axes, model in zip(panels, models, strict=True):
        mine = [(engine, rate) for m, engine, rate in bars if m == model]
        drawn = axes.barh([e for e, _ in mine], [r for _, r in mine], color=["#2a6f97"] * len(mine))
        for bar, (engine, _) in zip(drawn, mine, strict=True):
            if not engine.startswith("native"):
                bar.set_color("#b08968")
        axes.bar_label(drawn, labels=[f" {r:,.0f}" for _, r in mine], fontsize=8)
        axes.set_title(model, fontsize=9, loc="left", family="monospace")
        axes.set_xscale("log")
        axes.invert_yaxis()
        axes.tick_params(labelsize=8)
        axes.margins(x=0.15)
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel(
        "states per second of the clock (of orbits, the states they stand for); logarithmic", fontsize=8
    )
    figure.savefig(target, metadata={"Date": None})
    return f"wrote {target.name}"


def numbers(words: str) -> list[int]:
    return sorted(int(word) for word in words.split(","))


PARTS = {
    "engines": engines,
    "everyday": everyday,
    "shared": shared,
    "compressed": compressed,
    "walks": walks,
    "reduced": reduced,
    "larger": larger,
    "proofs": proofs,
    "liveness": liveness,
}


def main() -> None:
    processors = len(os.sched_getaffinity(0))
    doubled = [1 << bits for bits in range(processors.bit_length())]
    parser = argparse.ArgumentParser(description="The engines side by side.")
    parser.add_argument("--workers", type=numbers, default=doubled, help="how many, such as 1,2,4,8,16")
    parser.add_argument("parts", nargs="*", type=one_of(PARTS), help=f"some of {', '.join(PARTS)}; without it, all")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in cast("list[str]", given.parts) or PARTS:
            load = os.getloadavg()[0]
            lines = PARTS[name](Path(folder), Path(folder) / "cache", cast("list[int]", given.workers))
            loads = f"load average {load:.1f} before and {os.getloadavg()[0]:.1f} after"
            put(name, [f"Measured {datetime.now():%Y-%m-%d}, {processors} processors, {loads}.", "", *lines])


def put(part: str, lines: Sequence[str]) -> None:
    """Print what was measured, and replace it on the page, between the part's markers."""
    text, begin, end = "\n".join(lines), f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    print(text)
    put_between(PAGE, begin, f"\n{text}\n", end)


if __name__ == "__main__":
    main()
