"""Reports of `insync conform` and `insync found --all` as lines of a log that GitHub shows beside a change.

    python -m insync_cli.conformance.annotations conform.json found.json

Each line is a workflow command, `::error title=...::...` (docs.github.com, "Workflow commands for GitHub Actions").
The exit code says nothing of the reports: theirs is that of the verb. 65: a file is no such report.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from insync_cli.exits import InputError

Report = Mapping[str, object]


def conform_lines(report: Report) -> Iterator[str]:
    """An error for each difference that is nobody's known one."""
    for difference in cast("Sequence[Report]", report["examples"]):
        doc, *rules = cast("Sequence[str]", difference["rules"]) or ("",)
        steps = len(cast("Sequence[object]", difference["path"]))
        parts = [
            f"{difference['kind']} after {steps} steps",
            *_places(difference),
            str(difference["said"]),
            doc,
            *rules,
        ]
        yield command("error", f"insync conform: {difference['action']}", "\n".join(filter(None, parts)))


def _places(difference: Report) -> Iterator[str]:
    for place in cast("Sequence[Report]", difference["places"]):
        yield f"{place['place']}: the model has {json.dumps(place['model'])}, the system {json.dumps(place['system'])}"


def found_lines(report: Report) -> Iterator[str]:
    """An error for each run that is not as expected, a warning for each that could not be tried."""
    for run in cast("Sequence[Report]", report["runs"]):
        name = " ".join(str(run[part]) for part in ("bug", "way") if run[part])
        if run["why"] is not None:
            yield command("warning", f"insync found: {name}", f"it could not be tried: {run['why']}")
        elif run["expected"] is False:
            story = "\n".join(cast("Sequence[str]", run["told"])[-1:])
            yield command("error", f"insync found: {name}", f"{run['outcome']}, and not as expected\n{story}")


LINES: Final[Mapping[str, Callable[[Report], Iterator[str]]]] = {
    "insync/conform/1": conform_lines,
    "insync/found-all/1": found_lines,
}
"""What each schema of a report says."""


def command(level: str, title: str, text: str) -> str:
    """One workflow command; what would end it early or begin another is escaped."""
    return f"::{level} title={_escape(title, more=':,')}::{_escape(text)}"


def _escape(text: str, more: str = "") -> str:
    """The text with `%`, the ends of lines and these more characters as `%` and two digits."""
    return "".join(f"%{ord(char):02X}" if char in f"%\r\n{more}" else char for char in text)


def lines_of(file: Path) -> Iterator[str]:
    """The lines of one report; InputError if the file is none."""
    try:
        report = cast("object", json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError) as problem:
        raise InputError(f"{file}: {problem}") from None
    schema = cast("Report", report).get("schema") if isinstance(report, dict) else None
    if schema not in LINES:
        raise InputError(f"{file} is no report of {' or '.join(LINES)}")
    yield from LINES[cast("str", schema)](cast("Report", report))


def main(files: Sequence[str]) -> int:
    for file in files:
        try:
            for line in lines_of(Path(file)):
                print(line)
        except InputError as problem:
            print(f"annotations: {problem}", file=sys.stderr)
            return problem.exit
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
