"""Acknowledged records through damage to each kind of file, faults of processes, other settings and strangers.

    python bench/damage.py [--seed N] [--rounds N] [--only TEXT]... [--design NAME] [--keep DIR]

Each kind of damage is one run of three processes with real files; `tests/support/damage_kinds.py` has them. A seed says
who is hit and which bit. One line a run, then a table with a row a kind. Exit code 1 if an acknowledged record was not
read back, or a refusal did not name the file; 30 if a run could not do what it is for, and the others are good.
`--design` takes a planted bug, so that the runs can be seen to find it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from confluent_kafka import KafkaException
from tests.support.damage_kinds import KINDS
from tests.support.damage_runs import NotDone, Outcome, perform, table

from isr_broker.designs import DESIGNS, PLANTED
from isr_cluster.admin import RequestRefused
from isr_cluster.processes import Mishap

LOSS, NOT_DONE = 1, 30


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1, help="how often each kind is run, each time with another seed")
    parser.add_argument("--only", action="append", metavar="TEXT", help="the kinds whose name has this text")
    parser.add_argument("--design", default="", choices=["", *DESIGNS, *PLANTED], metavar="NAME")
    parser.add_argument("--keep", type=Path, help="keep the brokers' data and logs there")
    options = parser.parse_args()
    texts: list[str] = options.only or [""]
    names = [name for name in KINDS if any(text in name for text in texts)]
    if not names:
        parser.error(f"no kind has this in its name; they are: {', '.join(KINDS)}")
    outcomes: list[Outcome] = []
    misses = 0
    with tempfile.TemporaryDirectory() as temporary:
        for seed in range(options.seed, options.seed + options.rounds):
            for number, name in enumerate(names):
                root = (options.keep or Path(temporary)) / f"{seed}-{number}"
                try:
                    outcome = perform(name, KINDS[name], seed, root, options.design)
                except (NotDone, Mishap, RequestRefused, KafkaException) as error:
                    misses += 1
                    print(f"{name} (seed {seed}): NOT DONE: {error}", flush=True)
                else:
                    outcomes.append(outcome)
                    print(outcome, flush=True)
                if options.keep is None:
                    shutil.rmtree(root, ignore_errors=True)
    print(f"\n{table(outcomes, {name: kind.row for name, kind in KINDS.items()})}\n")
    bad = sum(not outcome.good for outcome in outcomes)
    print(f"{len(outcomes)} runs, {bad} of them bad, {misses} that did not do what they are for")
    return LOSS if bad else NOT_DONE if misses else 0


if __name__ == "__main__":
    sys.exit(main())
