"""insync kafka: which releases of Apache Kafka can be driven, and what is on this machine for it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import cast

from insync_cli import options, terminal
from insync_cli.exits import Exit, InputError

EXAMPLE = """insync kafka versions
insync kafka fetch 4.4.0"""


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("kafka", "Apache Kafka's own code: what can be driven, and fetching it.", EXAMPLE)
    p.add_argument("what", metavar="WHAT", choices=("versions", "fetch"), help="versions, or fetch")
    p.add_argument("release", metavar="RELEASE", nargs="?", help="what to fetch; default the newest")
    p.add_argument("--quiet", action="store_true", help="only the result line")
    p.add_json()
    return p.read(argv)


def run(given: Namespace) -> int:
    from isr_kafka import RELEASES, Unavailable, jars, java, javac, tools
    from isr_kafka.jars import cached

    terminal.check_json_target(cast("str | None", given.json))
    if given.what == "fetch":
        release = cast("str | None", given.release) or RELEASES[0]
        try:
            _ = java(), javac(), tools()
            found = jars(release)
        except Unavailable as problem:
            raise InputError(str(problem)) from None
        report = {"schema": "insync/kafka/1", "release": release, "jars": len(found)}
        line = f"insync kafka: {release}, {len(found)} jars in {found[0].parent}"
        terminal.answer(given, report, lambda out: None, line)
        return Exit.HOLDS
    rows = [(release, "fetched" if cached(release) else "by Maven") for release in RELEASES]
    report = {"schema": "insync/kafka/1", "releases": [{"release": r, "fetched": f == "fetched"} for r, f in rows]}
    terminal.answer(
        given,
        report,
        lambda out: terminal.print_table(out, ("release", "jars"), rows),
        f"insync kafka: {len(rows)} releases, {rows[0][0]} the newest",
    )
    return Exit.HOLDS
