"""How often does a leader of Apache Kafka skip an epoch, and commit at positions from before it?

    python bench/kafka_elections.py [--controllers N] [--partitions N] [--minutes M] [--per-second R] [--twice]
                                    [--kafka RELEASE]

Three brokers and some controllers in JVMs of their own, the brokers restarted in order one after the other, with a
preferred election of every partition after each, and a producer with acks=all; nothing is delayed on purpose. With
--twice each broker is restarted again right after the election that made it leader, so that two elections of a
partition are as close as an operator can make them.

Kafka's Partition has a line of ours in its byte code, which writes down each epoch that a replica enters. Two counts
matter: leaders that entered an epoch more than one above their last although they led before, and those of them
whose watermark moved in that very step. In the end every acknowledged record is looked for.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.kafka_watch import watch_of


@attrs.frozen
class EpochEntry:
    """One line of the watch: a replica entered an epoch. `led_before`: it led before."""

    leads: bool
    partition: str
    before: int
    now: int
    led_before: bool
    watermark_before: int
    watermark_now: int

    @property
    def skips_epoch(self) -> bool:
        """Whether it heard nothing of an epoch in between."""
        return self.now > self.before + 1


def read_steps(lines: Iterable[str]) -> list[EpochEntry]:
    found: list[EpochEntry] = []
    for line in lines:
        what, partition, before, now, led, old, new = line.split()
        found.append(EpochEntry(what == "L", partition, int(before), int(now), led == "1", int(old), int(new)))
    return found


def summary(steps: Iterable[EpochEntry]) -> Counter[str]:
    """How many steps of each kind."""
    count = Counter[str]()
    for step in steps:
        count["leader entered an epoch" if step.leads else "follower entered an epoch"] += 1
        if step.skips_epoch:
            count["leader skipped an epoch" if step.leads else "follower skipped an epoch"] += 1
            if step.leads and step.led_before:
                count["leader skipped an epoch, led before"] += 1
                count["of these, watermark moved at once"] += step.watermark_now > step.watermark_before
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--controllers", type=int, default=1)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--per-second", type=int, default=100)
    parser.add_argument("--twice", action="store_true", help="restart each broker again right after its election")
    parser.add_argument("--kafka", default=None, metavar="RELEASE")
    options = parser.parse_args()
    in_a_row = 2 if options.twice else 1
    numbers = (options.controllers, options.partitions, options.minutes, options.per_second, in_a_row)
    status, watch = watch_of(options.kafka, "RollingRestarts", numbers)
    steps = read_steps(watch)
    for what, count in sorted(summary(steps).items()):
        print(f"{count:>8}  {what}")
    return status


if __name__ == "__main__":
    sys.exit(main())
