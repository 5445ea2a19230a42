"""How long `insync history` takes for a million operations: half of them sends, half polls of four records.

A correct log of eight partitions, sixteen producers, eight consumers, some unknown outcomes, a final read of each.
Run by `make bench`, or as `python bench/history.py [OPERATIONS]`.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from pathlib import Path
from time import perf_counter, process_time

from insync_cli.main import main as insync

PARTITIONS, PRODUCERS, CONSUMERS, BATCH = 8, 16, 8, 4
UNKNOWN_EVERY = 97


def write(path: Path, operations: int) -> None:
    """A history in which everything is as it should be."""
    logs: list[list[int]] = [[] for _ in range(PARTITIONS)]
    position = [0] * CONSUMERS
    time = 0
    with path.open("w", encoding="utf-8") as out:

        def line(**fields: object) -> None:
            nonlocal time
            time += 1000
            out.write(json.dumps({**fields, "time": time}) + "\n")

        for n in range(operations // 2):
            at = n % PARTITIONS
            who = n % PRODUCERS
            line(type="invoke", f="produce", process=who, partition=f"t-{at}", value=n)
            if n % UNKNOWN_EVERY:
                line(type="ok", f="produce", process=who, offset=len(logs[at]))
            else:
                line(type="info", f="produce", process=who, error="REQUEST_TIMED_OUT")
            logs[at].append(n)
            reader = n % CONSUMERS
            name, begin = f"c{reader}", position[reader]
            got = [[begin + m, v] for m, v in enumerate(logs[reader][begin : begin + BATCH])]
            position[reader] += len(got)
            line(type="invoke", f="poll", process=name)
            line(type="ok", f="poll", process=name, records={f"t-{reader}": got})
        for at, log in enumerate(logs):
            line(type="invoke", f="final-read", process="end", partition=f"t-{at}")
            found = [[offset, value] for offset, value in enumerate(log)]
            line(type="ok", f="final-read", process="end", partition=f"t-{at}", records=found, end=len(log))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operations", nargs="?", type=int, default=1_000_000)
    operations: int = parser.parse_args().operations
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.jsonl"
        write(path, operations)
        size = path.stat().st_size // 2**20
        begin, cpu = perf_counter(), process_time()
        code = insync(["history", str(path), "--quiet"])
        wall, cpu = perf_counter() - begin, process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{operations:,} operations, {size} MB: exit {code}, {wall:.1f} s ({cpu:.1f} s of CPU), peak {peak:,} MB")


if __name__ == "__main__":
    main()
