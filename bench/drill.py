"""Is a drill true? Random runbooks on random small clusters, drilled, and then carried out in the simulator.

    python bench/drill.py [--seed N] [--runbooks N] [--safe-runs N] [--lost-runs N] [--jobs N]

A seed says the cluster, what happened to it before, and the runbook (`tests/support/drill_cases.py`). What is called
safe is carried out at random, and must lose nothing. What may be lost must be lost by some schedule: first by the story
that the drill tells, driven step by step, then at random (`tests/support/drill_runs.py`). A line for each
disagreement, then a table; Ctrl-C ends it with the table so far. Exit code 1 if something that is called safe was lost,
or fewer than 95 % were shown.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from functools import partial
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.drill_runs import Judgement, judge, table

from isr_drill.drill import Records

SHARE = 0.95


def judgements(options: argparse.Namespace) -> Iterator[Judgement]:
    judging = partial(judge, safe_runs=options.safe_runs, lost_runs=options.lost_runs)
    seeds = range(options.seed, options.seed + options.runbooks)
    if options.jobs == 1:
        yield from map(judging, seeds)
        return
    with get_context("spawn").Pool(options.jobs) as pool:
        yield from pool.imap(judging, seeds, chunksize=4)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runbooks", type=int, default=100)
    parser.add_argument("--safe-runs", type=int, default=4, help="random runs of what is called safe")
    parser.add_argument("--lost-runs", type=int, default=12, help="of what may be lost, where its story shows no loss")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    began, whole = time.monotonic(), list[Judgement]()
    try:
        for judgement in judgements(options):
            whole.append(judgement)
            if judgement.is_wrong or judgement.is_unshown:
                print(f"{'WRONG' if judgement.is_wrong else 'NOT SHOWN'} {judgement}", flush=True)
            if len(whole) % 50 == 0:
                print(f"{len(whole)} runbooks, {time.process_time():.0f} s of processor", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("stopped; of those until now:")
    print(f"\n{table(whole)}\n")
    losses = [j for j in whole if j.verdict is Records.MAY_BE_LOST]
    wrong, shows = sum(j.is_wrong for j in whole), sum(bool(j.shown) for j in losses)
    print(
        f"{len(whole)} runbooks, {wrong} called safe and lost, {shows} of {len(losses)} losses shown, "
        f"{time.monotonic() - began:.0f} s"
    )
    return 1 if wrong or shows < SHARE * len(losses) else 0


if __name__ == "__main__":
    sys.exit(main())
