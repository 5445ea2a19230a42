"""The tables of runbooks on Apache Kafka are made of the rows that were kept, and of nothing else.

Without this a table in docs could say what no run has shown.
"""

from __future__ import annotations

import attrs
from bench.drill_kafka_tables import BEGIN_USUAL, DRILL, MARK, PAGE, Row, drill_page, kept_rows, of_random, page
from tests.support.drill_kafka import USUAL, KafkaCase, KafkaJudgement

from isr_drill.drill import Records


def row_of(case: KafkaCase, release: str, verdict: Records = Records.SAFE, *shown: str, mishap: str = "") -> Row:
    kind = "random" if case.name.startswith("seed") else "usual"
    return Row(release, kind, "2026-11-27", KafkaJudgement(case, verdict, shown, mishap))


def lines_of(text: str, name: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"| {name} |")]


def test_the_pages_are_made_of_what_was_kept() -> None:
    rows, text = kept_rows(), DRILL.read_text(encoding="utf-8")
    assert rows
    assert drill_page(text, rows) == text
    assert PAGE.read_text(encoding="utf-8").partition(MARK)[2] == f"{page(rows)}\n"
    lost = attrs.evolve(rows[0], judgement=attrs.evolve(rows[0].judgement, shown=("a record is gone",)))
    assert drill_page(text, [lost, *rows[1:]]) != text


def test_a_usual_runbook_has_a_line_with_each_release() -> None:
    text, raised = DRILL.read_text(encoding="utf-8"), next(c for c in USUAL if c.name == "the minimum is raised")
    rows = [
        row_of(USUAL[0], "4.4.0", Records.SAFE, "", mishap="a broker did not come back"),
        row_of(USUAL[0], "4.4.0", Records.SAFE, ""),
        row_of(USUAL[0], "4.0.1", Records.SAFE, "", mishap="a broker did not come back"),
        row_of(raised, "4.4.0", Records.MAY_BE_LOST, "", ""),
        row_of(USUAL[10], "4.4.0", Records.MAY_BE_LOST, "", "3 of 9 are missing"),
    ]
    made = drill_page(text, rows)
    assert lines_of(made, USUAL[0].name) == [f"| {USUAL[0].name} | 3, 2 | safe | nothing lost | failed |"]
    assert lines_of(made, raised.name) == [f"| {raised.name} | 3, 1 | may be lost | not shown | not run |"]
    assert lines_of(made, USUAL[10].name) == [f"| {USUAL[10].name} | 3, 2 | may be lost | by the story | not run |"]
    assert made.count(BEGIN_USUAL) == 1
    assert made.partition(BEGIN_USUAL)[0] == text.partition(BEGIN_USUAL)[0]
    assert made.endswith(text.partition("## How long it takes")[2])


def test_what_random_runbooks_are_worth() -> None:
    """Of seeds 1 to 7 the pasts of 5 and 6 cannot be carried out; a runbook that harms others tests little."""
    harmless = KafkaCase("seed 1", (2, 3), 1, "stop 4; start 2")
    target = KafkaCase("seed 2", (2, 3), 1, "reassign a; stop 4", files={"a": (2, 4)})
    harmful = KafkaCase("seed 7", (2, 3), 1, "stop 3")
    rows = [row_of(c, r) for r in ("4.4.0", "4.0.1") for c in (harmless, target, harmful)]
    rows.append(row_of(KafkaCase("seed 3", (2, 3), 1, "stop 3; stop 2"), "4.4.0", Records.MAY_BE_LOST, "", ""))
    rows.append(row_of(KafkaCase("seed 4", (2, 3), 1, "stop 3; stop 2"), "4.4.0", Records.MAY_BE_LOST, "", ""))
    text = of_random(rows)
    assert lines_of(text, "4.4.0") == ["| 4.4.0 | 1 to 7 | 5 | 5 | 4 | 2 | 3 | 1 |"]
    assert lines_of(text, "4.0.1") == ["| 4.0.1 | 1 to 2, 7 | 3 | 3 | 3 | 0 | 3 | 1 |"]
    assert lines_of(text, "all") == ["| all | 1 to 7 | 8 | 5 | 4 | 2 | 6 | 2 |"]
