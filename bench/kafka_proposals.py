"""How often does a leader of Apache Kafka forget a proposal that is on its way (found/forgotten-proposal)?

    python bench/kafka_proposals.py [--controllers N] [--partitions N] [--minutes M] [--per-second R] [--acks-1 R]
                                    [--kafka RELEASE]

Three brokers and some controllers, each in a JVM of its own, and a producer with acks=all. With
--acks-1 another one goes on where two brokers are down. Two brokers at a time are stopped in order, started again, and
come back. Nothing is delayed on purpose.

Kafka's Partition has a line of ours in its byte code, which writes down what metadata of the same leader epoch do to a
leader. Counted are those of a partition epoch that it knows from an answer ("same"), and proposals that they made it
forget. Of these two more are counted: the leader commits a record that the forgotten member lacks before it hears of
the next change ("commits"), and the member is in the ISR by that change and lacks records still ("behind"). Both are as
far as the leader knows, which is one fetch late. In the end every acknowledged record is looked for.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.kafka_watch import watch_of

KINDS = ("same", "newer", "forgets", "commits", "behind")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--controllers", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--per-second", type=int, default=100)
    parser.add_argument("--acks-1", type=int, default=0, help="records a second with acks=1 beside them")
    parser.add_argument("--kafka", default=None, metavar="RELEASE")
    options = parser.parse_args()
    numbers = (options.controllers, options.partitions, options.minutes, options.per_second, options.acks_1)
    status, watch = watch_of(options.kafka, "FollowersReturn", numbers, "proposals")
    lines = [line.split() for line in watch]
    count = Counter(words[0] for words in lines)
    for kind in KINDS:
        print(f"{count[kind]:>8}  {kind}")
    lacking = sorted(int(words[3]) for words in lines if words[0] == "behind")
    if lacking:
        print(f"{lacking[-1]:>8}  committed records that a member lacked, at most")
    return status


if __name__ == "__main__":
    sys.exit(main())
