"""Traces of real processes under faults, to be validated: three brokers, an ordinary client, kills, pauses and stops.

    python -m tests.support.real_traces DIR [--runs N] [--writes N]

Each run is a folder of DIR with what the brokers wrote. Used by bench/validate.py.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import combinations
from pathlib import Path
from random import Random

import attrs
from tests.support.clusters import QUICK, three_processes
from tests.support.faults import ALL, TOPIC, Faults, healed, log_end, ready
from tests.support.writers import WRITERS, read

PER_SECOND = 60


def run(root: Path, kinds: tuple[str, ...], writes: int) -> Path:
    """One run: writes while the faults strike one after the other, then a reader; the folder with the traces."""
    traces = root / "traces"
    settings = attrs.evolve(
        QUICK, insync_trace_dir=str(traces), insync_waits_for_joiners=False, broker_session_timeout_ms=2_000
    )
    processes = three_processes(root, settings)
    try:
        processes.start_all()
        ready(processes)
        writer, faults = WRITERS["confluent-kafka"](processes.bootstrap, TOPIC), Faults(processes, kinds, 0.5)
        faults.begin()
        sent = 0
        while sent < writes or (len(faults.happened) < len(kinds) and not faults.failure):
            writer.send(b"%06d" % sent)
            sent += 1
            time.sleep(1 / PER_SECOND)
        faults.end()
        writer.finish()
        healed(processes)
        read("confluent-kafka", processes.bootstrap, TOPIC, log_end(processes))
        processes.stop_all()
    finally:
        processes.kill_all()
    return traces


def orders(count: int) -> list[tuple[str, ...]]:
    """So many triples of faults, each fault in about half of them, in an order by chance of a fixed seed."""
    chance = Random(6)
    triples = [tuple(chance.sample(triple, 3)) for triple in combinations(ALL, 3)]
    return [triples[n % len(triples)] for n in range(count)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--writes", type=int, default=400)
    given = parser.parse_args()
    for n, kinds in enumerate(orders(given.runs)):
        root = given.folder / f"{n:02d}"
        if (root / "traces").exists():
            continue
        try:
            run(root, kinds, given.writes)
            print(f"{root.name}: {', '.join(kinds)}", flush=True)
        except AssertionError as problem:
            print(f"{root.name}: {', '.join(kinds)}: {problem}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
