"""The table of reports on docs/kraft.md has every report and its mend, each with its verdict, within a minute.

Without it a report could be said to be gone with a mend that nobody asked, or whose bounds are too small.
"""

from __future__ import annotations

from pathlib import Path

from bench.engines import ProcessEnd
from bench.pages import markdown
from bench.quorum_reports import BEGIN, END, MOST_SECONDS, REPORTS, Answer, Row, table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kraft.md"
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")]
    for line in PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip().splitlines()[2:]
]


def test_the_table_has_every_report_and_every_mend() -> None:
    asked = [(row[0], row[1], row[4]) for row in ROWS]
    assert asked == [
        (
            report.numbers,
            f"`insync {' '.join(report.command(report.words))}`",
            f"`insync {' '.join(report.command(report.mend))}`" if report.mend else "no such bounds",
        )
        for report in REPORTS
    ]


def test_each_report_is_found_and_fifteen_mends_were_asked_and_hold() -> None:
    assert all(row[2].startswith("VIOLATED in ") and float(row[3]) <= MOST_SECONDS for row in ROWS)
    mends = [row for row in ROWS if row[4].startswith("`")]
    assert all(row[5] == "HOLDS" and float(row[6]) <= MOST_SECONDS for row in mends)
    assert len(mends) >= 15


def test_a_mend_that_is_too_small_or_too_slow_is_none() -> None:
    def of(verdict: str, seconds: float) -> Answer:
        return Answer(verdict, 3, ProcessEnd(seconds, seconds, 0, ""))

    found = of("VIOLATED", 1)
    assert Row(REPORTS[0], found, of("HOLDS", 59)).holds
    assert not Row(REPORTS[0], found, of("TOO SMALL", 1)).holds
    assert not Row(REPORTS[0], found, of("HOLDS", 61)).holds
    assert not Row(REPORTS[0], of("HOLDS", 1), of("HOLDS", 1)).holds
    assert len(table([Row(REPORTS[0], found, None)]).splitlines()) == len(markdown(("a",), [("b",)]).splitlines())
