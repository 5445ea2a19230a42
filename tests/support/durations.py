"""What each file of tests takes, from the XML that pytest writes; docs/measurements/tests.md is what this prints.

make test ARGS=--junitxml=test.xml
make slow ARGS=--junitxml=slow.xml
.venv/bin/python -m tests.support.durations test.xml slow.xml >docs/measurements/tests.md
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import attrs

HEAD = """\
# Measurements: what each file of tests takes

Made by `tests/support/durations.py`, which says how.

| run of | load at the end | cores |
|---|---:|---:|
| {day} | {load:.0f} | {cores} |

Processor seconds are those of the test and of the processes that it started and waited for. Seconds by the clock hold
what it waited for, too. They also hold what else the machine had to do.
A file that takes over ten seconds says at its top what would go unnoticed without it.

| file | tests | processor s | clock s | costliest test | processor s |
|---|---:|---:|---:|---|---:|
"""


@attrs.frozen
class Taken:
    """One test: its file, its name, and its seconds of processors and by the clock."""

    file: str
    name: str
    processors: float
    clock: float


def taken(document: Path) -> Iterable[Taken]:
    for case in ElementTree.parse(document).iter("testcase"):
        cpu = [p.get("value", "0") for p in case.iter("property") if p.get("name") == "processor_seconds"]
        if case.find("skipped") is None:
            name, clock = case.get("name", ""), float(case.get("time", "0"))
            yield Taken(file_of(case.get("classname", "")), name, float(cpu[0]) if cpu else 0.0, clock)


def file_of(classname: str) -> str:
    """tests.isr_log.test_x.TestClass -> tests/isr_log/test_x.py."""
    parts = classname.split(".")
    last = max((n for n, part in enumerate(parts) if part.startswith("test_")), default=len(parts) - 1)
    return "/".join(parts[: last + 1]) + ".py"


def rows(tests: Iterable[Taken]) -> list[str]:
    """One row for each file, the costliest first, and the sum."""
    files = dict[str, list[Taken]]()
    for test in tests:
        files.setdefault(test.file, []).append(test)
    costly = sorted(files.items(), key=lambda file: -sum(t.processors for t in file[1]))
    every = [t for _, those in costly for t in those]
    return [row(name, those) for name, those in costly] + [row("all", every)]


def row(name: str, tests: list[Taken]) -> str:
    processors, clock = sum(t.processors for t in tests), sum(t.clock for t in tests)
    worst = max(tests, key=lambda t: t.processors)
    what = worst.name.partition("[")[0]
    return f"| `{name}` | {len(tests)} | {processors:.1f} | {clock:.1f} | `{what}` | {worst.processors:.1f} |"


def main(documents: list[str]) -> None:
    day = min(suite.get("timestamp", "")[:10] for d in documents for suite in ElementTree.parse(d).iter("testsuite"))
    print(HEAD.format(day=day, load=os.getloadavg()[2], cores=os.cpu_count()), end="")
    print("\n".join(rows(test for document in documents for test in taken(Path(document)))))


if __name__ == "__main__":
    main(sys.argv[1:])
