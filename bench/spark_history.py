"""How long `insync history --engine spark` takes for millions of operations, and whether it finds what was planted.

Half sends, half polls, eight at once, in 64 partitions of which half have consumers; ten kinds of anomalies, each a
known number of times. From 20 million operations on there are 64 partitions more for every ten million.
`python bench/spark_history.py [OPERATIONS] [WORKERS] [--local] [--s3] [--file FILE]`; --local compares with
one process as well. --s3: the history, and what jobs leave for each other, is in an S3 store (versitygw on the PATH).
--file: the history is there afterwards, and is not written again if it is there before.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import threading
from array import array
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter, process_time, sleep

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support import s3

from isr_anomalies import Answer, Claims, check, pair_operations, read_json
from isr_pipeline import session
from isr_pipeline.histories import check_files
from isr_pipeline.locations import Location

AT_ONCE, BATCH = 8, 4
ROUNDS = 20_000
"""After so many rounds other processes send, as after crashes."""
GAP = -(1 << 62)
"""In a log: nothing is here."""
UNKNOWN_EVERY = 997
PLANTED = {
    "lost-write": 3,
    "duplicate": 5,
    "phantom": 4,
    "aborted-read": 3,
    "nonmonotonic-poll": 6,
    "poll-skip": 5,
    "int-poll-skip": 7,
    "unavailability": 1,
}
IMPLIED = {"unseen": 3, "offset-gap": 3}
"""What a lost write is as well."""
SECOND = 1_000_000_000


class History:
    """Written line by line; `due` says which anomaly comes at which round."""

    def __init__(self, path: Path, rounds: int) -> None:
        self.out = path.open("w", encoding="utf-8", buffering=1 << 20)
        partitions = 64 * max(1, AT_ONCE * rounds // 5_000_000)
        self.polled_ones = partitions // 2
        """The first partitions have consumers."""
        self.logs = [array("q") for _ in range(partitions)]
        self.position = [0] * self.polled_ones
        self.time = 0
        self.values = 0
        kinds = [kind for kind, many in PLANTED.items() for _ in range(many)]
        self.due = {(n + 1) * rounds // (len(kinds) + 2): kind for n, kind in enumerate(kinds)}
        self.lines = list[str]()
        self.pending = list[str]()
        self.gaps = set[int]()
        self.again = dict[int, int]()

    def line(self, text: str) -> None:
        self.time += 1000
        self.lines.append(f'{{"time": {self.time}, {text}}}\n')

    def round(self, number: int) -> None:
        """Eight sends at once, then eight polls at once. What is planted in a log goes where nobody polls."""
        due = self.due.get(number)
        if due is not None:
            self.pending.append(due)
        if "unavailability" in self.pending:
            self.pending.remove("unavailability")
            self.time += 10 * SECOND
        first, ends = AT_ONCE * (number // ROUNDS), list[str]()
        for n in range(AT_ONCE):
            at, value, process = (AT_ONCE * number + n) % len(self.logs), self.values, first + n
            self.values += 1
            sends = f'"f": "produce", "process": {process}, "partition": "t-{at}", "value": {value}'
            self.line(f'"type": "invoke", {sends}')
            ends.append(self.append_record(number, process, at, value))
        for n in range(AT_ONCE):
            self.line(ends[(5 * n + number) % AT_ONCE])
        batches = [self.polled((AT_ONCE * number + n) % self.polled_ones) for n in range(AT_ONCE)]
        for at, _ in batches:
            self.line(f'"type": "invoke", "f": "poll", "process": "c{at}"')
        for at, records in batches:
            self.line(f'"type": "ok", "f": "poll", "process": "c{at}", "records": {{"t-{at}": {records}}}')
        self.out.write("".join(self.lines))
        self.lines.clear()

    def append_record(self, number: int, process: int, at: int, value: int) -> str:
        """Append it, or what is planted instead; says how the send ends."""
        log = self.logs[at]
        ok_line = f'"type": "ok", "f": "produce", "process": {process}, "offset": {len(log)}'
        kind = None
        if self.pending and at >= self.polled_ones:
            kind = next((k for k in self.pending if not k.endswith(("poll", "skip"))), None)
        if at in self.again or (kind == "lost-write" and at in self.gaps):
            kind = None  # a complete read with two gaps is one finding
        if kind is not None:
            self.pending.remove(kind)
        if kind == "lost-write":
            self.gaps.add(at)
            log.append(GAP)
            return ok_line
        log.append(value)
        if kind == "aborted-read":
            return f'"type": "error", "f": "produce", "process": {process}, "error": "NOT_ENOUGH_REPLICAS"'
        if at in self.again:
            log.append(self.again.pop(at))
        if kind == "duplicate":
            self.again[at] = value  # after the next one, so that offsets go in a circle
        if kind == "phantom":
            log.append(-value)
        if kind is None and (AT_ONCE * number + process % AT_ONCE) % UNKNOWN_EVERY == 0:
            return f'"type": "info", "f": "produce", "process": {process}, "error": "REQUEST_TIMED_OUT"'
        return ok_line

    def polled(self, at: int) -> tuple[int, list[list[int]]]:
        log, begin = self.logs[at], self.position[at]
        end = begin + BATCH if len(log) >= begin + BATCH else begin  # fewer are not worth an answer
        kind = next((k for k in self.pending if k.endswith(("poll", "skip"))), None) if self.pending else None
        if kind == "nonmonotonic-poll" and begin > 0:
            begin -= 1
        elif kind == "poll-skip" and 0 < begin < end - 1:
            begin += 1
        elif kind != "int-poll-skip" or end < begin + 3:
            kind = None
        records = [[offset, log[offset]] for offset in range(begin, end)]
        if kind == "int-poll-skip":
            del records[1]
        if kind is not None:
            self.pending.remove(kind)
        self.position[at] = end
        return at, records

    def close(self) -> None:
        assert not self.pending, f"never planted: {self.pending}"
        for at, log in enumerate(self.logs):
            self.line(f'"type": "invoke", "f": "final-read", "process": "end{at}", "partition": "t-{at}"')
            found = json.dumps([[offset, value] for offset, value in enumerate(log) if value != GAP])
            told = f'"process": "end{at}", "partition": "t-{at}", "records": {found}, "end": {len(log)}'
            self.line(f'"type": "ok", "f": "final-read", {told}')
            self.out.write("".join(self.lines))
            self.lines.clear()
        self.out.close()


def write(path: Path, operations: int) -> None:
    rounds = operations // (2 * AT_ONCE)
    history = History(path, rounds)
    history.out.write(json.dumps({"history": 1, "settings": {"max_unavailable": 5 * SECOND}}) + "\n")
    for number in range(rounds):
        history.round(number)
    history.close()


class Peaks(threading.Thread):
    """The most memory that this process's descendants had at once (each page counted by whoever shares it)."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most: Counter[str] = Counter()
        self.cpu: Counter[str] = Counter()
        """Ticks of processor time, the most that was seen."""
        self.going = True

    def run(self) -> None:
        while self.going:
            now: Counter[str] = Counter()
            ticks: Counter[str] = Counter()
            for process in Path("/proc").iterdir():
                try:
                    if not process.name.isdigit() or not self.ours(process):
                        continue
                    name = "java" if (process / "comm").read_text().strip() == "java" else "python"
                    of = dict(row.split(":", 1) for row in (process / "smaps_rollup").read_text().splitlines()[1:])
                    now[name] += int(of["Pss"].split()[0]) // 1024
                    fields = (process / "stat").read_text().rpartition(")")[2].split()
                    ticks[name] += sum(map(int, fields[11:15]))  # with those of children that have ended
                except (OSError, KeyError):
                    continue
            self.most, self.cpu = self.most | now, self.cpu | ticks
            sleep(1)

    def ours(self, process: Path) -> bool:
        """Whether it is a descendant of this process, or this process."""
        at = int(process.name)
        while at > 1:
            if at == os.getpid():
                return True
            at = int((Path("/proc") / str(at) / "stat").read_text().rpartition(")")[2].split()[1])
        return False


def forbidden_counts(answer: Answer) -> dict[str, int]:
    return {j.name: j.forbidden for j in answer.judgements if j.forbidden}


def print_duration(name: str, took: float) -> None:
    print(f"  {name:<8}{took:8.1f} s", flush=True)


def put(path: Path, place: Location) -> None:
    with path.open("rb") as told, place.open_for_writing() as file:
        shutil.copyfileobj(told, file, 1 << 24)


def seconds(watch: Peaks, name: str) -> float:
    return watch.cpu[name] / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operations", nargs="?", type=int, default=1_000_000)
    parser.add_argument("workers", nargs="?", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--local", action="store_true")
    parser.add_argument("--s3", action="store_true")
    parser.add_argument("--file", type=Path)
    options = parser.parse_args()
    operations: int = options.operations
    workers: int = options.workers
    history_file: Path | None = options.file
    with tempfile.TemporaryDirectory() as folder, ExitStack() as closing:
        path = history_file or Path(folder) / "history.jsonl"
        begin = process_time()
        if not path.exists():
            write(path, operations)
        writing_seconds = process_time() - begin
        size = path.stat().st_size >> 20
        print(
            f"{operations:,} operations, {size:,} MB, written in {writing_seconds:.0f} s of processor time", flush=True
        )
        place, history = Location.of(folder), Location.of(path)
        if options.s3:
            place = Location.of(closing.enter_context(s3.server(Path(folder))).format("run"))
            history = place / path.name
            put(path, history)
        watch = Peaks()
        watch.start()
        with session.running(workers=workers, memory=2 << 30) as spark:
            begin = perf_counter()
            [result] = check_files(spark, [history], place / "tables", report_job=print_duration)
            took = perf_counter() - begin
        watch.going = False
        expected = {**PLANTED, **IMPLIED}
        many = result.answer.operations
        java, python = seconds(watch, "java"), seconds(watch, "python") - writing_seconds
        print(f"{took:.0f} s with {workers} tasks at once; processor time: Java {java:.0f} s, Python {python:.0f} s")
        print(f"peak MB {dict(watch.most)}; {many:,} operations checked")
        right = forbidden_counts(result.answer) == expected
        print(
            "exactly what was planted" if right else f"found {forbidden_counts(result.answer)}, planted {expected}",
            flush=True,
        )
        if options.local:
            begin = perf_counter()
            with path.open(encoding="utf-8") as file:
                alone = check(pair_operations(read_json(file)))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            same = "the same" if alone == result.answer else "NOT the same"
            print(f"{same} by one process, {perf_counter() - begin:.0f} s, peak {peak:,} MB")
        assert right
        assert result.claims == Claims(max_unavailable=5 * SECOND)


if __name__ == "__main__":
    main()
