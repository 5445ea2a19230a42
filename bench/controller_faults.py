"""Three controllers that are killed, paused and robbed of a disk, while a producer writes with acks=all: what is lost?

    python bench/controller_faults.py [--runs N] [--seed FIRST]

Each run has six processes, and its seed draws the order of the faults (`tests/support/controller_faults.py`). One line
for each run, and figures of all. Exit code 1 if anything was lost, or a run did not come to its end.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.controller_faults import Endurance, endure_controllers


def line(run: Endurance) -> str:
    """One run as a person reads it."""
    verdict = "nothing lost" if run.good else f"LOST {run.missing}, ended {', '.join(run.ends) or 'nobody'}"
    return (
        f"seed {run.seed}: {run.acknowledged} acknowledged, {verdict}, {run.epochs} epochs, {run.seconds:.0f} s;"
        f" {', '.join(run.faults)}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1, help="that of the first run; each next one has the next")
    options = parser.parse_args()
    runs, failures = list[Endurance](), 0
    for seed in range(int(options.seed), int(options.seed) + int(options.runs)):
        with tempfile.TemporaryDirectory(prefix="insync-controllers-") as folder:
            try:
                runs.append(endure_controllers(Path(folder), seed))
            except AssertionError as error:
                failures += 1
                print(f"seed {seed}: did not come to its end: {error}", flush=True)
                continue
        print(line(runs[-1]), flush=True)
    if runs:
        acknowledged, missing = sum(run.acknowledged for run in runs), sum(run.missing for run in runs)
        epochs, median = sum(run.epochs for run in runs), statistics.median(run.seconds for run in runs)
        print(f"{len(runs)} runs to their end, {failures} not: {acknowledged} records acknowledged, {missing} missing")
        print(f"{epochs} epochs of the quorum, median of a run {median:.0f} s")
    return 0 if runs and not failures and all(run.good for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
