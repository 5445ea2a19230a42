"""What is one disk of a controller worth on Apache Kafka? Three racks, one is cut off, and another loses that disk.

    python bench/controller_disks.py [--release VERSION]... [--only TEXT] [--write]

The story is `tests/support/controller_disks.py`, each time on a cluster of its own: six processes, of which one is a
broker and a voter, two are voters and three have the partition, with min.insync.replicas=2. Voters are known by number
or by directory ids, and the disk is kept, empty, or formatted by the same command again. `--write` puts the table into
docs/kraft.md. Exit code 1 if it is not as expected: lost where an empty disk counts as the voter, and held elsewhere.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.pages import markdown, put_between
from tests.support.controller_disks import CASES, DiskCase, DiskOutcome, DiskTrial, NextDisk, Voters

from isr_cluster.kafka import archive
from isr_kafka.node import node_files

DOCS: Final = Path(__file__).resolve().parent.parent / "docs" / "kraft.md"
BEGIN: Final = "<!-- Made by bench/controller_disks.py --write: -->\n"
END: Final = "<!-- until here. -->\n"
HEAD: Final = ("Kafka", "voters are known", "the disk of the second", "active then", "leader then", "in the end")


def is_expected_to_lose(case: DiskCase) -> bool:
    """The empty disk counts as the voter that it was."""
    return case.disk is NextDisk.SAME_ID or (case.voters is Voters.STATIC and case.disk is NextDisk.EMPTY)


def cells(outcome: DiskOutcome) -> tuple[str, ...]:
    case, of = outcome.case, f"of {outcome.acknowledged} acknowledged"
    leads = "nobody"
    if outcome.leader is not None:
        leads = f"the third, and {outcome.missing_then} {of} are missing"
    end = f"LOST: {outcome.missing} {of}" if outcome.missing else f"HELD: all {of.removeprefix('of ')}"
    return (outcome.release, case.voters.value, case.disk.value, outcome.active, leads, end)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", action="append", help="may be repeated; 4.4.0 and 4.0.1 where none is given")
    parser.add_argument("--only", default="", help="the cases whose row has this text")
    parser.add_argument("--write", action="store_true", help="put the table into docs/kraft.md")
    options = parser.parse_args()
    outcomes = list[DiskOutcome]()
    for release in options.release or ("4.4.0", "4.0.1"):
        files = node_files(release)
        archive(files)
        for case in CASES:
            if options.only not in f"{case.voters.name} {case.disk.name}":
                continue
            with tempfile.TemporaryDirectory(prefix="insync-disks-") as folder:
                story = DiskTrial.on(files, Path(folder), case)
                try:
                    outcome = story.tells()
                finally:
                    story.trial.kafka.kill_all()
            outcomes.append(outcome)
            print(" | ".join(cells(outcome)), f"| {outcome.seconds:.0f} s", flush=True)
    if options.write:
        table = markdown(HEAD, [cells(o) for o in outcomes])
        put_between(DOCS, BEGIN, f"\n{table}\n\n", END)
    return int(any(bool(o.missing) != is_expected_to_lose(o.case) for o in outcomes))


if __name__ == "__main__":
    sys.exit(main())
