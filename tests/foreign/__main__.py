"""The suites of others, one after the other, and one table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from tests.foreign.go_suites import franz_go, sarama
from tests.foreign.kafka_tools import kafka_tools
from tests.foreign.librdkafka import librdkafka
from tests.foreign.outcomes import Expected, Judged, Outcome, judge, read_expected, table
from tests.foreign.programs import Missing, foreign_folder

from insync_cli.exits import Exit, did_you_mean
from isr_cluster.processes import Mishap

Suite: TypeAlias = Callable[[Expected, Sequence[str], Callable[[str], None]], list[Outcome]]

SUITES: Final[dict[str, Suite]] = {
    "franz-go": franz_go,
    "sarama": sarama,
    "kafka-tools": kafka_tools,
    "librdkafka": librdkafka,
}


def main(argv: Sequence[str]) -> int:
    """Run what is asked for; 0 if all went as expected, 22 if not, 30 if a suite could not be run."""
    parser = argparse.ArgumentParser(
        "python -m tests.foreign", description="Test suites of others against our brokers."
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"one of {', '.join(SUITES)}; all, if none is named")
    parser.add_argument("--only", action="append", default=[], metavar="TEST", help="of one suite, only this test")
    given = parser.parse_args(argv)
    names, only = list[str](given.suites) or list(SUITES), list[str](given.only)
    for name in names:
        if name not in SUITES:
            return _wrong(f"there is no suite '{name}'{did_you_mean(name, SUITES)} (there are {', '.join(SUITES)})")
    if only and len(names) != 1:
        return _wrong("--only names a test of one suite: name that, too")
    expected = read_expected()
    rows = [_run(name, expected.get(name, Expected()), only) for name in names]
    print(table(rows))
    return verdict(rows)


def verdict(rows: Sequence[Judged]) -> int:
    """The exit code: a failure that is not expected weighs more than a suite that could not be run."""
    if any(row.unexpected for row in rows):
        return Exit.UNEXPECTED
    return Exit.ENDED if any(row.missing for row in rows) else Exit.HOLDS


def _run(name: str, expected: Expected, only: Sequence[str]) -> Judged:
    tell(f"{name}: what it says goes to {foreign_folder(name)}")
    try:
        return judge(name, SUITES[name](expected, only, tell), expected, only)
    except (Missing, Mishap) as problem:
        return Judged(suite=name, missing=str(problem))


def tell(line: str) -> None:
    """What is going on, for people."""
    print(line, file=sys.stderr, flush=True)


def _wrong(sentence: str) -> int:
    print(f"tests.foreign: {sentence}", file=sys.stderr)
    return Exit.USAGE


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
