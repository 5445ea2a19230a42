"""insync kafka: which releases of Apache Kafka can be driven, and what is on this machine for it."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from insync_cli import options, terminal
from insync_cli.exits import Exit, InputError
from insync_cli.options import Usage, argument, group, optional_argument
from insync_cli.terminal import QuietOutput

EXAMPLE = """insync kafka versions
insync kafka fetch 4.4.0"""
USAGE = Usage("kafka", "Apache Kafka's own code: what can be driven, and fetching it.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    what: str = argument(
        "WHAT", "versions: which releases there are; fetch: get one", str, choices=("versions", "fetch")
    )
    release: str | None = optional_argument("RELEASE", "what to fetch; without it, the newest", str)
    output: QuietOutput = group(QuietOutput)


def run(argv: Sequence[str]) -> int:
    given = options.read(Options, USAGE, argv)
    given.output.check()
    return fetched(given) if given.what == "fetch" else listed(given)


def fetched(given: Options) -> int:
    from isr_kafka import RELEASES, Unavailable, jars, java, javac, tools

    release = given.release or RELEASES[0]
    try:
        _ = java(), javac(), tools()
        found = jars(release)
    except Unavailable as problem:
        raise InputError(str(problem)) from None
    report = {"schema": "insync/kafka/1", "release": release, "jars": len(found)}
    line = f"insync kafka: {release}, {len(found)} jars in {found[0].parent}"
    given.output.answer(report, lambda out: None, line)
    return Exit.HOLDS


def listed(given: Options) -> int:
    from isr_kafka import RELEASES
    from isr_kafka.jars import cached

    rows = [(release, "fetched" if cached(release) else "by Maven") for release in RELEASES]
    report = {"schema": "insync/kafka/1", "releases": [{"release": r, "fetched": f == "fetched"} for r, f in rows]}
    given.output.answer(
        report,
        lambda out: terminal.print_table(out, ("release", "jars"), rows),
        f"insync kafka: {len(rows)} releases, {rows[0][0]} the newest",
    )
    return Exit.HOLDS
