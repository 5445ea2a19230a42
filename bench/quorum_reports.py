"""How long does it take to find each report about KRaft that has a design, and to see that it is gone with its mend?

    python bench/quorum_reports.py [--write]

Each is one `insync check` of its promise at the design's own bounds, in a process of its own. So is its mend, at bounds
that say HOLDS. Of a mend without such bounds tests/kraft_protocol has that it keeps the promise for as many steps.
`--write` puts the table into docs/kraft.md. The exit code is 1 if a report is not found, or is not gone with its mend,
or if either took more than a minute of processor.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import attrs
from bench.engines import INSYNC, ProcessEnd, process
from bench.pages import markdown, put_between

DOCS: Final = Path(__file__).resolve().parent.parent / "docs" / "kraft.md"
BEGIN: Final = "<!-- Made by bench/quorum_reports.py --write: -->\n"
END: Final = "<!-- until here. -->\n"


@attrs.frozen
class Report:
    """The number in Kafka's JIRA, and the words that find it; `mend`: those that say it is gone, empty where none do.

    `lasting`: the promise is of what comes to pass.
    """

    numbers: str
    words: str
    mend: str
    lasting: bool = False

    def command(self, words: str) -> list[str]:
        """A cycle of states is looked for among states, and all else among orbits."""
        return ["check", *shlex.split(words), *(("--liveness", "on") if self.lasting else ("--symmetry", "on"))]


TERM: Final = "abstract-quorum --dynamic on --lost-disks 1 --property one-leader-a-term"
"""With directory ids, in the quorum without messages: at message grain three voters are too many states."""
REPORTS: Final = (
    Report(
        "10527",
        "kafka-10527 --property leader-has-its-epoch",
        "kafka-10533 --property leader-has-its-epoch",
    ),
    Report(
        "10533",
        "kafka-10533 --property leaders-complete",
        "kraft --restarts 1 --property leaders-complete",
    ),
    Report("12181, 14077", "kafka-14077 --property one-leader-per-epoch", TERM),
    Report(
        "12460",
        "kafka-12460 --property watermark-within-log",
        "kraft --voters 3 --epochs 2 --log 2 --writes 0 --lost-disks 1 --property watermark-within-log "
        "--reduction on --memory 2G --workers 1",
    ),
    Report("12619", "kafka-12619 --property leaders-complete --reduction on", ""),
    Report(
        "13104",
        "kafka-13104 --property leaders-have-not-given-up",
        "kraft-renouncing --property leaders-have-not-given-up",
    ),
    Report(
        "13959",
        "kafka-13959 --property living-brokers-are-unfenced",
        "kraft-busy-log --property living-brokers-are-unfenced",
        lasting=True,
    ),
    Report(
        "14154",
        "kafka-14154 --property no-leader-is-stuck",
        "kraft-controllers --property no-leader-is-stuck",
    ),
    Report(
        "15345",
        "kafka-15345 --property decisions-follow-a-commit",
        "kraft-activation --property decisions-follow-a-commit",
    ),
    Report(
        "15489",
        "kafka-15489 --property cut-off-leader-resigns",
        "kraft-cut-off --property cut-off-leader-resigns",
        lasting=True,
    ),
    Report(
        "16530",
        "kafka-16530 --property committed-by-majority",
        "kraft-853 --property committed-by-majority",
    ),
    Report("16531", "kafka-16531 --property only-a-majority-suffices", ""),
    Report("17426", "kafka-17426 --property one-leader-per-epoch", TERM),
    Report(
        "17608",
        "kafka-17608 --property deposed-find-a-snapshot",
        "kraft-activation --property deposed-find-a-snapshot",
    ),
    Report(
        "18138",
        "kafka-18138 --property stopped-brokers-have-sessions",
        "kraft-sessions --property stopped-brokers-have-sessions",
    ),
    Report(
        "19130",
        "kafka-19130 --property fenced-brokers-may-register",
        "kraft-sessions --property fenced-brokers-may-register",
    ),
    Report(
        "19850",
        "kafka-19850 --property removed-voter-stays-out",
        "kraft-joins-once --snapshots 0 --epochs 2 --log 4 --property removed-voter-stays-out",
    ),
    Report(
        "20839",
        "kafka-20839 --property metadata-begin-with-the-bootstrap",
        "kraft-activation --property metadata-begin-with-the-bootstrap",
    ),
    Report(
        "20895",
        "kafka-20895 --property resigned-leader-is-no-obstacle",
        "kraft-notes-end --epochs 2 --writes 0 --property resigned-leader-is-no-obstacle --reduction on",
    ),
)
MOST_SECONDS: Final = 60


@attrs.frozen
class Answer:
    """What was said of one question, in how many steps, and what its process took."""

    verdict: str
    steps: int
    process: ProcessEnd

    def is_as_asked(self, verdict: str) -> bool:
        """Whether that is the verdict, and took no more than a minute of processor."""
        return self.verdict == verdict and self.process.cpu <= MOST_SECONDS


@attrs.frozen
class Row:
    """A report, what was said of it, and of its mend, if that is asked."""

    report: Report
    of_report: Answer
    of_mend: Answer | None

    @property
    def holds(self) -> bool:
        """Whether the report is found, and gone with its mend."""
        return self.of_report.is_as_asked("VIOLATED") and (self.of_mend is None or self.of_mend.is_as_asked("HOLDS"))


def answer(report: Report, words: str) -> Answer:
    with tempfile.TemporaryDirectory(prefix="insync-reports-") as folder:
        end = process([INSYNC, *report.command(words), "--quiet", "--out", f"{folder}/out"], Path(folder))
        run = Path(folder, "out", "run.json")
        if not run.exists():
            raise SystemExit(f"{words}: {end.output}")
        (asked,) = (p for p in json.loads(run.read_text("utf-8"))["properties"] if p["name"] in words.split())
        return Answer(asked["verdict"], asked["depth"] or 0, end)


def rows() -> Iterator[Row]:
    for report in REPORTS:
        row = Row(report, answer(report, report.words), answer(report, report.mend) if report.mend else None)
        print(row.report.numbers, row.of_report.verdict, row.of_mend.verdict if row.of_mend else "-", flush=True)
        yield row


def table(all_rows: list[Row]) -> str:
    lines = [
        (
            row.report.numbers,
            f"`insync {' '.join(row.report.command(row.report.words))}`",
            f"{row.of_report.verdict} in {row.of_report.steps}",
            f"{row.of_report.process.cpu:.1f}",
            f"`insync {' '.join(row.report.command(row.report.mend))}`" if row.of_mend else "no such bounds",
            row.of_mend.verdict if row.of_mend else "",
            f"{row.of_mend.process.cpu:.1f}" if row.of_mend else "",
        )
        for row in all_rows
    ]
    return markdown(("KAFKA-", "the report", "verdict", "seconds", "its mend", "verdict", "seconds"), lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into docs/kraft.md")
    options = parser.parse_args()
    all_rows = list(rows())
    print(table(all_rows))
    if options.write:
        put_between(DOCS, BEGIN, f"\n{table(all_rows)}\n\n", END)
    return int(not all(row.holds for row in all_rows))


if __name__ == "__main__":
    sys.exit(main())
