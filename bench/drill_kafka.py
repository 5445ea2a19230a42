"""Is a drill true of Apache Kafka? Runbooks drilled on a live cluster of seven nodes, and then carried out on it.

    python bench/drill_kafka.py [--release VERSION] [--only TEXT] [--random N] [--seed N]

First the twenty runbooks that people use (`tests/support/drill_kafka.py`), then random ones. What is called safe must
lose nothing. What may be lost is carried out as it stands, and then as the story says: who is out of the ISR there
stands still here. A line a runbook, then a table. Exit code 1 if something that is called safe was lost, or fewer than
half of the losses were shown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.drill_kafka import USUAL, KafkaCase, KafkaJudgement, KafkaTrial, random_kafka_case

from isr_cluster.kafka import archive
from isr_drill.drill import Records
from isr_kafka.node import node_files

SHARE = 0.5


def cases(options: argparse.Namespace) -> Iterator[KafkaCase]:
    yield from (case for case in USUAL if options.only in case.name)
    every = (random_kafka_case(seed) for seed in count(options.seed))
    yield from islice((case for case in every if case is not None), options.random)


def line(judgement: KafkaJudgement) -> str:
    case, verdict = judgement.case, judgement.verdict
    answer = "no answer" if verdict is None else verdict.name.lower().replace("_", " ")
    runs = ("as it stands", "as the story says")
    losses = "; ".join(f"{run}: {loss}" for run, loss in zip(runs, judgement.shown, strict=False) if loss)
    past = f"{case.past}; then " if case.past else ""
    where = f"{list(case.replicas)}, minimum {case.minimum}"
    found = judgement.mishap or losses or "nothing lost"
    return f"{case.name} | {where} | {past}{case.text} | {answer} | {found} | {judgement.seconds:.0f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", default="4.4.0")
    parser.add_argument("--only", default="", help="those of the twenty whose name has this text")
    parser.add_argument("--random", type=int, default=0, help="so many random ones more")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    files, whole = node_files(options.release), list[KafkaJudgement]()
    archive(files)
    with tempfile.TemporaryDirectory(prefix="insync-drill-") as folder:
        clusters = count()
        trial = KafkaTrial(files, Path(folder) / str(next(clusters)))
        try:
            for case in cases(options):
                judgement = trial.judge(case)
                if judgement.mishap:
                    # A broker may never register again (docs/reports.md), so the case gets a cluster of its own.
                    print(f"again, on a new cluster: {line(judgement)}", flush=True)
                    trial.kafka.kill_all()
                    trial = KafkaTrial(files, Path(folder) / str(next(clusters)))
                    judgement = trial.judge(case)
                whole.append(judgement)
                print(line(judgement), flush=True)
        except KeyboardInterrupt:
            print("stopped; of those until now:")
        finally:
            trial.kafka.kill_all()
    verdicts = Counter(j.verdict for j in whole if not j.mishap)
    losses, wrong = verdicts[Records.MAY_BE_LOST], sum(j.is_wrong for j in whole)
    sights = sum(j.is_shown for j in whole)
    at_once = sum(bool(j.shown and j.shown[0]) for j in whole if j.is_shown)
    print(
        f"\nKafka {options.release}: {len(whole)} runbooks, {sum(bool(j.mishap) for j in whole)} failed; "
        f"{verdicts[Records.SAFE]} safe, {wrong} of them lost; {losses} may be lost, {sights} of them shown "
        f"({at_once} as they stand); {verdicts[Records.UNKNOWN]} UNKNOWN"
    )
    return 1 if wrong or sights < SHARE * losses else 0


if __name__ == "__main__":
    sys.exit(main())
