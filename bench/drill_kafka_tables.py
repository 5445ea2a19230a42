"""The tables of runbooks on Apache Kafka, of the rows that `bench/drill_kafka.py --keep` wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import attrs
from bench.pages import between, markdown, put_on_page
from tests.support.drill_kafka import RACKS, USUAL, KafkaCase, KafkaJudgement, random_kafka_case

from isr_drill.drill import Records
from isr_drill.runbook import LEAVES, Surroundings, read_runbook

MEASUREMENTS: Final = Path(__file__).resolve().parent.parent / "docs" / "measurements"
RESULTS: Final = MEASUREMENTS / "drill-kafka.jsonl"
PAGE: Final = MEASUREMENTS / "drill-kafka.md"
MARK: Final = "<!-- From here on it is made by bench/drill_kafka.py --write. -->\n"
DRILL: Final = MEASUREMENTS.parent / "drill.md"
BEGIN: Final = "<!-- Made by bench/drill_kafka.py --write: -->\n"
BEGIN_USUAL: Final = "<!-- The usual runbooks, made by bench/drill_kafka.py --write: -->\n"
END: Final = "<!-- until here. -->\n"
RANDOM, OF_USUAL, ALL = "random", "usual", "all"
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
        return self.judgement.mishap or "; ".join(f"{run}: {loss}" for run, loss in self.losses) or self.nothing

    @property
    def outcome(self) -> str:
        """The same without numbers."""
        return "failed" if self.judgement.mishap else next((run for run, _ in self.losses), self.nothing)

    @property
    def losses(self) -> tuple[tuple[str, str], ...]:
        """The runs that showed a loss, and which."""
        return tuple((run, loss) for run, loss in zip(RUNS, self.judgement.shown, strict=False) if loss)

    @property
    def nothing(self) -> str:
        """What it says where none did."""
        return "not shown" if self.judgement.verdict is Records.MAY_BE_LOST else "nothing lost"

    @property
    def seed(self) -> int | None:
        """Of which seed a random runbook was made."""
        word, _, number = self.judgement.case.name.rpartition(" ")
        return int(number) if word == "seed" else None

    @property
    def harms_no_replica(self) -> bool:
        """Whether no step takes a broker away that has a replica of the partition, or gets one."""
        case = self.judgement.case

        def file(name: str) -> str:
            return json.dumps({"partitions": [{"topic": "t", "partition": 0, "replicas": case.files[name]}]})

        steps = read_runbook(case.text, Surroundings(RACKS, RACKS, ["t"], file))
        replicas = {*case.replicas, *(b for several in case.files.values() for b in several)}
        away = {b for step in steps for stage in step.stages if stage.kind in LEAVES for b in stage.brokers}
        return away.isdisjoint(replicas)

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


def by_kind(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """The rows of each list on each release."""
    kinds = sorted({(r.list, r.release) for r in rows}, reverse=True)
    return {kind: [r for r in rows if (r.list, r.release) == kind] for kind in kinds}


HARMLESS: Final = "of these, no replica is harmed"


def overview(rows: Sequence[Row]) -> str:
    """The table of sums."""
    kinds = {**by_kind(rows), (ALL, ALL): list(rows)}
    counts = [(*kind, len(some), *sums(some).values()) for kind, some in kinds.items()]
    return markdown(("runbooks", "Kafka", "number", *SUMS), counts)


def ranges(seeds: Iterable[int]) -> str:
    """Seeds as `1 to 32, 70 to 83`: of those between, each was run or its past cannot be carried out."""
    parts: list[list[int]] = []
    for seed in sorted(seeds):
        if parts and all(random_kafka_case(s) is None for s in range(parts[-1][1] + 1, seed)):
            parts[-1][1] = seed
        else:
            parts.append([seed, seed])
    return ", ".join(f"{first} to {last}" if last > first else str(first) for first, last in parts)


def of_random(rows: Sequence[Row]) -> str:
    """What random runbooks are worth: how many are distinct, how many seeds were left out, and how many of those that
    are safe harm nothing."""
    random_rows = [r for r in rows if r.list == RANDOM]
    releases = sorted({r.release for r in random_rows}, reverse=True)
    lines: list[tuple[object, ...]] = []
    for release in (*releases, ALL):
        some = [r for r in random_rows if release in (r.release, ALL)]
        seeds = {r.seed for r in some if r.seed is not None}
        texts = {(r.judgement.case.text, r.judgement.case.replicas, r.judgement.case.past) for r in some}
        safe = [r for r in some if r.judgement.verdict is Records.SAFE and not r.judgement.mishap]
        harmless = sum(r.harms_no_replica for r in safe)
        lines.append((release, ranges(seeds), len(some), len(seeds), len(texts), left_out(seeds), len(safe), harmless))
    head = ("Kafka", "seeds", "runs", "distinct seeds", "distinct runbooks", "seeds left out", "safe", HARMLESS)
    return markdown(head, lines)


def left_out(seeds: Iterable[int]) -> int:
    """How many seeds within the ranges have a past that cannot be carried out."""
    ordered = sorted(seeds)
    gaps = (range(a + 1, b) for a, b in pairwise(ordered))
    return sum(len(gap) for gap in gaps if all(random_kafka_case(s) is None for s in gap))


def of_usual(rows: Sequence[Row]) -> str:
    """A line for each usual runbook that was kept, in the order of the list."""
    mine = {(r.judgement.case.name, r.release): r for r in rows if r.list == OF_USUAL}
    releases = sorted({release for _, release in mine}, reverse=True)
    lines: list[list[object]] = []
    for case in USUAL:
        found = [mine[case.name, release] for release in releases if (case.name, release) in mine]
        if found:
            answers = dict.fromkeys(r.answer for r in found)
            by_release = {r.release: r.outcome for r in found}
            outcomes = [by_release.get(release, "not run") for release in releases]
            settings = f"{len(case.replicas)}, {case.minimum}"
            lines.append([case.name, settings, " or ".join(answers), *outcomes])
    return markdown(("runbook", "replicas, minimum", "answer", *releases), lines)


def drill_page(text: str, rows: Sequence[Row]) -> str:
    """docs/drill.md with the tables of these rows. Where no usual runbook was kept, that table stays as it is."""
    text = between(text, BEGIN, f"\n{overview(rows)}\n\nOf the random ones:\n\n{of_random(rows)}\n\n", END)
    has_usual = any(r.list == OF_USUAL for r in rows)
    return between(text, BEGIN_USUAL, f"\n{of_usual(rows)}\n\n", END) if has_usual else text


def kept_rows() -> list[Row]:
    """All that was kept; of several runs of a runbook the last."""
    rows = map(Row.of, RESULTS.read_text(encoding="utf-8").splitlines()) if RESULTS.exists() else ()
    return list({(r.release, r.list, r.judgement.case.name): r for r in rows}.values())


def write_pages(rows: Sequence[Row]) -> None:
    """Put these rows on their pages."""
    put_on_page(PAGE, MARK, page(rows))
    DRILL.write_text(drill_page(DRILL.read_text(encoding="utf-8"), rows), encoding="utf-8")


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
