"""Is a drill true of Apache Kafka? Runbooks drilled on a live cluster of seven nodes, and then carried out on it.

    python bench/drill_kafka.py [--release VERSION] [--list NAME] [--only TEXT] [--random N] [--seed N]
                                [--keep] [--write]
    python bench/drill_kafka.py --table [--write]

A list of runbooks (`tests/support/drill_kafka.py`): the twenty that people use, power failures, or controllers; then
random ones. What is called safe must lose nothing. What may be lost is carried out as it stands, and then as the story
says: who is out of the ISR there stands still here. A line a runbook, then the sums. `--keep` adds what was seen to
docs/measurements/drill-kafka.jsonl. `--write` makes docs/measurements/drill-kafka.md of all that is kept, and puts its
sums into docs/drill.md; `--table` runs nothing. Exit code 1 if something that is called safe was lost, or fewer than
half of the losses were shown.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import attrs
from bench.bounds import put_on_page
from tests.support.drill_kafka import CONTROLLERS_ALONE, LISTS, KafkaCase, KafkaJudgement, KafkaTrial, random_kafka_case

from isr_cluster.kafka import archive
from isr_drill.drill import Records
from isr_kafka.node import NodeFiles, node_files

SHARE: Final = 0.5
MEASUREMENTS: Final = Path(__file__).resolve().parent.parent / "docs" / "measurements"
RESULTS: Final = MEASUREMENTS / "drill-kafka.jsonl"
PAGE: Final = MEASUREMENTS / "drill-kafka.md"
MARK: Final = "<!-- From here on it is made by bench/drill_kafka.py --write. -->\n"
DRILL: Final = MEASUREMENTS.parent / "drill.md"
BEGIN: Final = "<!-- Made by bench/drill_kafka.py --write: -->\n"
END: Final = "<!-- until here. -->\n"
RANDOM: Final = "random"
RUNS: Final = ("as it stands", "by the story")
SUMS: Final = ("safe", "of these lost", "may be lost", *RUNS, "not shown", "UNKNOWN", "failed")


@attrs.frozen
class Row:
    """A runbook that was carried out: of which list, on which release, on which day (UTC)."""

    release: str
    list: str
    day: str
    judgement: KafkaJudgement

    def line(self) -> str:
        """As it is kept, in JSON."""
        judgement = attrs.asdict(self.judgement)
        verdict = self.judgement.verdict
        judgement["verdict"] = None if verdict is None else verdict.name
        return json.dumps({"release": self.release, "list": self.list, "day": self.day, **judgement})

    @staticmethod
    def of(line: str) -> Row:
        """The row of a line that was kept."""
        fields = json.loads(line)
        case = fields["case"]
        case["replicas"] = tuple(case["replicas"])
        case["files"] = {name: tuple(row) for name, row in case["files"].items()}
        verdict = None if fields["verdict"] is None else Records[fields["verdict"]]
        judgement = KafkaJudgement(
            KafkaCase(**case), verdict, tuple(fields["shown"]), fields["mishap"], fields["seconds"]
        )
        return Row(fields["release"], fields["list"], fields["day"], judgement)

    @property
    def answer(self) -> str:
        verdict = self.judgement.verdict
        name = "no answer" if verdict is None else verdict.name
        return name if verdict is Records.UNKNOWN else name.lower().replace("_", " ")

    @property
    def fate(self) -> str:
        """What became of the records."""
        judgement = self.judgement
        losses = [f"{run}: {loss}" for run, loss in zip(RUNS, judgement.shown, strict=False) if loss]
        nothing = "not shown" if judgement.verdict is Records.MAY_BE_LOST else "nothing lost"
        return judgement.mishap or "; ".join(losses) or nothing

    @property
    def cells(self) -> tuple[str, ...]:
        case = self.judgement.case
        settings = f"min {case.minimum}{', unclean' if case.unclean else ''}{', flush' if case.flushed else ''}"
        past = f"{case.past}, before; " if case.past else ""
        files = "".join(f"; {name} is {list(replicas)}" for name, replicas in case.files.items())
        text = f"{past}`{case.text}`{files}"
        return self.release, case.name, f"{list(case.replicas)}, {settings}", text, self.answer, self.fate


def sums(rows: Sequence[Row]) -> dict[str, int]:
    """How often what was said, and seen."""
    outcomes = [r.judgement for r in rows if not r.judgement.mishap]
    losses = [j for j in outcomes if j.verdict is Records.MAY_BE_LOST]
    numbers = (
        sum(j.verdict is Records.SAFE for j in outcomes),
        sum(j.is_wrong for j in outcomes),
        len(losses),
        sum(bool(j.shown and j.shown[0]) for j in losses),
        sum(bool(j.shown[1:] and j.shown[1]) for j in losses),
        sum(not j.is_shown for j in losses),
        sum(j.verdict is Records.UNKNOWN for j in outcomes),
        len(rows) - len(outcomes),
    )
    return dict(zip(SUMS, numbers, strict=True))


def markdown(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def by_kind(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """The rows of each list on each release."""
    kinds = sorted({(r.list, r.release) for r in rows}, reverse=True)
    return {kind: [r for r in rows if (r.list, r.release) == kind] for kind in kinds}


def overview(rows: Sequence[Row]) -> str:
    """The table of sums."""
    counts = [(*kind, len(some), *sums(some).values()) for kind, some in by_kind(rows).items()]
    return markdown(("runbooks", "Kafka", "number", *SUMS), counts)


def page(rows: Sequence[Row]) -> str:
    """The table of sums, and a line a runbook."""
    kinds = by_kind(rows)
    parts = [overview(rows)]
    heads = ("Kafka", "name", "replicas", "runbook", "answer", "what was seen")
    for name in dict.fromkeys(kind[0] for kind in kinds):
        some = [r for kind, mine in kinds.items() if kind[0] == name for r in mine]
        days = sorted({r.day for r in some})
        table = markdown(heads, [r.cells for r in some])
        parts.append(f"\n## {name.capitalize()}\n\nRan on {', '.join(days)}.\n\n{table}")
    return "\n" + "\n".join(parts)


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
    everything = [Row.of(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()] if RESULTS.exists() else []
    if options.write:
        put_on_page(PAGE, MARK, page(everything))
        before, rest = DRILL.read_text(encoding="utf-8").split(BEGIN)
        DRILL.write_text(f"{before}{BEGIN}\n{overview(everything)}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")
    told = sums(everything if options.table else whole)
    print(f"\n{', '.join(f'{number} {name}' for name, number in told.items())}")
    shown = told["may be lost"] - told["not shown"]
    return 1 if told["of these lost"] or shown < SHARE * told["may be lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
