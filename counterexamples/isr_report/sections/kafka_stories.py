"""Which of Kafka's releases can still take which stored counterexample, as `insync kafka stories` stored it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final, cast

from isr_report.html import code, command, table

SCHEMA: Final = "insync/kafka/1"
STORIES_FILE: Final = Path(__file__).with_name("kafka-stories.json")
TAKES_IT: Final = "takes it"
"""In a cell whose release takes every step."""
MADE_BY: Final = "insync kafka stories --store --write docs/kafka-classes.md"


def read_stories(path: Path = STORIES_FILE) -> list[Mapping[str, str]]:
    """A row for each case: its name under `case`, and under each release what came of it, in Markdown."""
    report = cast("Mapping[str, object]", json.loads(path.read_text(encoding="utf-8")))
    return cast("list[Mapping[str, str]]", report["stories"])


def columns(rows: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The columns of a table: a heading, and the release whose cells it has.

    Releases one after the other that say the same of every case are one column.
    """
    groups: list[list[str]] = []
    for release in (name for name in rows[0] if name != "case"):
        if groups and all(row[groups[-1][0]] == row[release] for row in rows):
            groups[-1].append(release)
        else:
            groups.append([release])
    return {group[0] if len(group) == 1 else f"{group[0]} to {group[-1]}": group[0] for group in groups}


def section(rows: Sequence[Mapping[str, str]]) -> str:
    """The table, with what its cells mean and the command that makes it."""
    by_heading = columns(rows)
    releases = list(by_heading.values())
    takes = sum(TAKES_IT in row[releases[0]] for row in rows)
    says = (
        f"The steps of each stored counterexample were asked of Kafka's own classes until one was refused. "
        f"Kafka {releases[0]} takes {takes} of {len(rows)} to the end; another stops where the mended code says no, "
        f"or where the step belongs to a design that it has left behind."
    )
    taken = [row for row in rows if any(TAKES_IT in row[release] for release in releases)]
    stopped = [(code(row["case"]), _where(row, by_heading)) for row in rows if row not in taken]
    cells = [(code(row["case"]), *(_cell(row[release]) for release in releases)) for row in taken]
    header = ("case", *(f"Kafka {escape(heading)}" for heading in by_heading))
    return (
        f'<h3>Stored counterexamples, told to Apache Kafka\'s releases</h3><p class="quiet">{says}</p>'
        f'{table(header, cells)}<details class="fold"><summary>Where the other {len(stopped)} stop</summary>'
        f"{table(('case', 'where it stops on every release, or on which'), stopped)}</details>{command(MADE_BY)}"
    )


def _where(row: Mapping[str, str], by_heading: Mapping[str, str]) -> str:
    """Where all releases stop; each column by itself where they differ."""
    if len({row[release] for release in by_heading.values()}) == 1:
        return _cell(row[next(iter(by_heading.values()))])
    return "<br>".join(f"Kafka {escape(heading)}: {_cell(row[release])}" for heading, release in by_heading.items())


def _cell(markdown: str) -> str:
    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(markdown))
    return re.sub(r"\*\*([^*]*)\*\*", r'<b class="flagged">\1</b>', text)
