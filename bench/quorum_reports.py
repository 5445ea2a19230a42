"""How long does it take to find each report about KRaft that has a design?

    python bench/quorum_reports.py [--write]

Each is one `insync check` of its promise at the design's own bounds, in a process of its own. `--write` puts the table
into docs/kraft.md. That the mend of each keeps the promise is in tests/kraft_protocol and tests/controller_protocol.
The exit code is 1 if a report is not found.
"""

from __future__ import annotations

import argparse
import json
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

DOCS: Final = Path(__file__).resolve().parent.parent / "docs" / "kraft.md"
BEGIN: Final = "<!-- Made by bench/quorum_reports.py --write: -->\n"
END: Final = "<!-- until here. -->\n"


@attrs.frozen
class Report:
    """The number in Kafka's JIRA, and the command that finds it."""

    numbers: str
    words: str

    def command(self) -> list[str]:
        return ["check", *shlex.split(self.words), "--symmetry", "on"]


REPORTS: Final = (
    Report("10527", "kafka-10527 --property leader-has-its-epoch"),
    Report("10533", "kafka-10533 --property leaders-complete"),
    Report("12181, 14077", "kafka-14077 --property one-leader-per-epoch"),
    Report("12460", "kafka-12460 --property watermark-within-log"),
    Report("12619", "kafka-12619 --property leaders-complete --reduction on"),
    Report("14154", "kafka-14154 --property no-leader-is-stuck"),
    Report("16530", "kafka-16530 --property committed-by-majority"),
    Report("16531", "kafka-16531 --property only-a-majority-suffices"),
    Report("17426", "kafka-17426 --property one-leader-per-epoch"),
    Report("17608", "kafka-17608 --property deposed-find-a-snapshot"),
    Report("18138", "kafka-18138 --property stopped-brokers-have-sessions"),
    Report("19850", "kafka-19850 --property removed-voter-stays-out"),
    Report("20839", "kafka-20839 --property metadata-begin-with-the-bootstrap"),
    Report("20895", "kafka-20895 --property resigned-leader-is-no-obstacle"),
)


@attrs.frozen
class Answer:
    """What was said of a report's promise, in how many steps, and the seconds that it took, by the clock and of
    processor."""

    report: Report
    verdict: str
    steps: int
    seconds: float
    processor: float


def answers() -> Iterator[Answer]:
    for report in REPORTS:
        with tempfile.TemporaryDirectory(prefix="insync-reports-") as folder:
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            command = [sys.executable, "-P", "-m", "insync_cli.main", *report.command(), "--quiet", "--json", "-"]
            said = subprocess.run([*command, "--out", folder], capture_output=True, text=True, check=False)
            seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
            if not said.stdout.startswith("{"):
                raise SystemExit(f"{' '.join(command)}\n{said.stderr}")
            (asked,) = (p for p in json.loads(said.stdout)["properties"] if p["name"] in report.words.split())
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            yield Answer(report, asked["verdict"], asked["depth"] or 0, seconds, used)


def table(rows: list[Answer]) -> str:
    head = "| KAFKA- | command | verdict | steps | seconds | of processor |\n|---|---|---|---|---|---|"
    lines = (
        f"| {a.report.numbers} | `insync {' '.join(a.report.command())}` | {a.verdict} | {a.steps} |"
        f" {a.seconds:.1f} | {a.processor:.1f} |"
        for a in rows
    )
    return "\n".join((head, *lines))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into docs/kraft.md")
    options = parser.parse_args()
    rows = list(answers())
    print(table(rows))
    if options.write:
        before, rest = DOCS.read_text(encoding="utf-8").split(BEGIN)
        DOCS.write_text(f"{before}{BEGIN}\n{table(rows)}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")
    return int(any(a.verdict != "VIOLATED" for a in rows))


if __name__ == "__main__":
    sys.exit(main())
