"""How long does it take to find each report about KRaft that has a design?

    python bench/quorum_reports.py [--write]

Each is one `insync check` of its promise at the design's own bounds, in a process of its own. `--write` puts the table
into docs/kraft.md. That the mend of each keeps the promise is in tests/kraft_protocol and tests/controller_protocol.
The exit code is 1 if a report is not found.
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
    """The number in Kafka's JIRA, and the command that finds it; `lasting`: the promise is of what comes to pass."""

    numbers: str
    words: str
    lasting: bool = False

    def command(self) -> list[str]:
        """A cycle of states is looked for among states, and all else among orbits."""
        words = shlex.split(self.words)
        return ["check", *words, *(("--liveness", "on") if self.lasting else ("--symmetry", "on"))]


REPORTS: Final = (
    Report("10527", "kafka-10527 --property leader-has-its-epoch"),
    Report("10533", "kafka-10533 --property leaders-complete"),
    Report("12181, 14077", "kafka-14077 --property one-leader-per-epoch"),
    Report("12460", "kafka-12460 --property watermark-within-log"),
    Report("12619", "kafka-12619 --property leaders-complete --reduction on"),
    Report("13104", "kafka-13104 --property leaders-have-not-given-up"),
    Report("13959", "kafka-13959 --property living-brokers-are-unfenced", lasting=True),
    Report("14154", "kafka-14154 --property no-leader-is-stuck"),
    Report("15345", "kafka-15345 --property decisions-follow-a-commit"),
    Report("15489", "kafka-15489 --property cut-off-leader-resigns", lasting=True),
    Report("16530", "kafka-16530 --property committed-by-majority"),
    Report("16531", "kafka-16531 --property only-a-majority-suffices"),
    Report("17426", "kafka-17426 --property one-leader-per-epoch"),
    Report("17608", "kafka-17608 --property deposed-find-a-snapshot"),
    Report("18138", "kafka-18138 --property stopped-brokers-have-sessions"),
    Report("19130", "kafka-19130 --property fenced-brokers-may-register"),
    Report("19850", "kafka-19850 --property removed-voter-stays-out"),
    Report("20839", "kafka-20839 --property metadata-begin-with-the-bootstrap"),
    Report("20895", "kafka-20895 --property resigned-leader-is-no-obstacle"),
)


@attrs.frozen
class Answer:
    """What was said of a report's promise, in how many steps, and what its process took."""

    report: Report
    verdict: str
    steps: int
    process: ProcessEnd


def answers() -> Iterator[Answer]:
    for report in REPORTS:
        with tempfile.TemporaryDirectory(prefix="insync-reports-") as folder:
            end = process([INSYNC, *report.command(), "--quiet", "--out", f"{folder}/out"], Path(folder))
            run = Path(folder, "out", "run.json")
            if not run.exists():
                raise SystemExit(f"{report.words}: {end.output}")
            (asked,) = (
                p for p in json.loads(run.read_text("utf-8"))["properties"] if p["name"] in report.words.split()
            )
            yield Answer(report, asked["verdict"], asked["depth"] or 0, end)


def table(rows: list[Answer]) -> str:
    lines = [
        (
            a.report.numbers,
            f"`insync {' '.join(a.report.command())}`",
            *(a.verdict, a.steps, f"{a.process.wall:.1f}", f"{a.process.cpu:.1f}"),
        )
        for a in rows
    ]
    return markdown(("KAFKA-", "command", "verdict", "steps", "seconds", "of processor"), lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into docs/kraft.md")
    options = parser.parse_args()
    rows = list(answers())
    print(table(rows))
    if options.write:
        put_between(DOCS, BEGIN, f"\n{table(rows)}\n\n", END)
    return int(any(a.verdict != "VIOLATED" for a in rows))


if __name__ == "__main__":
    sys.exit(main())
