"""Is a drill true of Apache Kafka? Runbooks drilled on a live cluster of seven nodes, and then carried out on it.

    python bench/drill_kafka.py [--release VERSION] [--list NAME] [--only TEXT] [--random N] [--seed N]
                                [--keep] [--write]
    python bench/drill_kafka.py --table [--write]

A list of runbooks (`tests/support/drill_kafka.py`): the twenty that people use, power failures, or controllers; then
random ones. What is called safe must lose nothing. What may be lost is carried out as it stands, and then as the story
says: who is out of the ISR there stands still here. A line a runbook, then the sums. `--keep` adds what was seen to
docs/measurements/drill-kafka.jsonl. `--write` makes docs/measurements/drill-kafka.md of all that is kept, and puts the
sums, and the usual runbooks one by one, into docs/drill.md; `--table` runs nothing. Exit code 1 if something that is
called safe was lost, or fewer than half of the losses were shown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import attrs
from bench.drill_kafka_tables import RANDOM, RESULTS, Row, kept_rows, sums, write_pages
from tests.support.drill_kafka import CONTROLLERS_ALONE, LISTS, KafkaCase, KafkaTrial, random_kafka_case

from isr_cluster.kafka import archive
from isr_kafka.node import NodeFiles, node_files

SHARE: Final = 0.5


def cases(options: argparse.Namespace) -> Iterator[tuple[str, KafkaCase]]:
    """The runbooks with the lists that they are of."""
    for name in options.list or ():
        yield from ((name, case) for case in LISTS[name] if options.only in case.name)
    every = (random_kafka_case(seed) for seed in count(options.seed))
    yield from islice(((RANDOM, case) for case in every if case is not None), options.random)


def rows_of(options: argparse.Namespace, files: NodeFiles, folder: Path) -> Iterator[Row]:
    """Each runbook, carried out; on a new cluster where something else goes wrong."""
    clusters = count()
    more = CONTROLLERS_ALONE if "controllers" in (options.list or ()) else ()

    def new() -> KafkaTrial:
        return KafkaTrial(files, folder / str(next(clusters)), more)

    trial = new()
    try:
        for name, case in cases(options):
            row = Row(options.release, name, f"{datetime.now(UTC):%Y-%m-%d}", trial.judge(case))
            if row.judgement.mishap:
                # A broker may never register again (docs/reports.md), so the case gets a cluster of its own.
                print(f"again, on a new cluster: {' | '.join(row.cells)}", flush=True)
                print("\n".join(trial.controller_lines), flush=True)
                trial.kafka.kill_all()
                trial = new()
                row = attrs.evolve(row, judgement=trial.judge(case))
            yield row
    finally:
        trial.kafka.kill_all()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", default="4.4.0")
    parser.add_argument("--list", action="append", choices=list(LISTS), help="may be repeated")
    parser.add_argument("--only", default="", help="those of the lists whose name has this text")
    parser.add_argument("--random", type=int, default=0, help="so many random ones more")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="add what is seen to the file")
    parser.add_argument("--table", action="store_true", help="run nothing")
    parser.add_argument("--write", action="store_true", help="put what is kept on its page")
    options = parser.parse_args()
    whole = list[Row]()
    if not options.table:
        files = node_files(options.release, noting=True)
        archive(files)
        with tempfile.TemporaryDirectory(prefix="insync-drill-") as folder:
            try:
                for row in rows_of(options, files, Path(folder)):
                    whole.append(row)
                    print(f"{' | '.join(row.cells)} | {row.judgement.seconds:.0f} s", flush=True)
                    if options.keep:
                        with RESULTS.open("a", encoding="utf-8") as file:
                            file.write(f"{row.line()}\n")
            except KeyboardInterrupt:
                print("stopped; of those until now:")
    everything = kept_rows()
    if options.write:
        write_pages(everything)
    told = sums(everything if options.table else whole)
    print(f"\n{', '.join(f'{number} {name}' for name, number in told.items())}")
    shown = told["may be lost"] - told["not shown"]
    return 1 if told["of these lost"] or shown < SHARE * told["may be lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
