"""insync found: the bugs that were found here in Apache Kafka, each shown on Apache Kafka's own code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, terminal
from insync_cli.exits import Exit, UsageError, did_you_mean
from insync_cli.options import Usage, choice, flag, group, option, optional_argument
from insync_cli.terminal import QuietOutput
from isr_found import BUGS, PLACES, Outcome, Reproduction, Trial
from isr_found.controllers import FAULTS, QuorumReproduction

if TYPE_CHECKING:
    from rich.console import Console

    from isr_found import KafkaBug, StoryReproduction
    from isr_found.controllers import QuorumFault

EXAMPLE = """\
insync found
insync found kept-positions
insync found kept-positions --control
insync found overtaken-request --on brokers --kafka 4.3.1 --fixed
insync found removed-replica --way fewer
insync found removed-voter --kafka 4.0.1
insync found overtaken-request --unit --fixed
insync found --all --on classes --kafka-home kafka_2.13-4.4.0 --expect fixed"""
USAGE = Usage(
    "found",
    "Ways to lose an acknowledged record that were found here in Apache Kafka, shown on its own code, and faults of "
    "its quorum that lose none, shown on controllers. Exit code 12: lost, or the fault shows; 0: not; 30: it could not "
    "be tried, and the last line says why. With --expect, 22: one is otherwise than expected; 0: all are as expected.",
    EXAMPLE,
)
EXPECTATIONS = {"lost": Outcome.LOST, "fixed": Outcome.HELD}
"""What may be expected of every bug on some Kafka."""
WAYS = tuple(way for bug in BUGS.values() for way in bug.other_ways)
FIXES = tuple(fix for bug in BUGS.values() for fix in bug.fixes)
EXITS = {
    Outcome.LOST: Exit.SAFETY,
    Outcome.FAULT: Exit.SAFETY,
    Outcome.HELD: Exit.HOLDS,
    Outcome.NOT_TRIED: Exit.ENDED,
}
WORDS = {
    Outcome.LOST: "VIOLATED",
    Outcome.FAULT: "VIOLATED",
    Outcome.HELD: "HOLDS",
    Outcome.NOT_TRIED: "UNKNOWN",
}
STARTS = {
    "classes": "Kafka's classes in one JVM",
    "brokers": "a controller and its brokers, each in a JVM of its own",
}
SAYS = {
    Outcome.LOST: "an acknowledged record is lost",
    Outcome.HELD: "no acknowledged record is lost",
    Outcome.NOT_TRIED: "it could not be tried",
}
SHORT = {Outcome.LOST: "lost a record", Outcome.HELD: "held", Outcome.NOT_TRIED: "could not be tried"}
SCHEMA = "insync/found/1"
SCHEMA_OF_ALL = "insync/found-all/1"
UNIT_SAYS = {
    Outcome.LOST: "a unit test fails, for the reason that it names",
    Outcome.HELD: "its unit tests pass",
    Outcome.NOT_TRIED: SAYS[Outcome.NOT_TRIED],
}


@attrs.frozen(kw_only=True)
class Options:
    bug: str | None = optional_argument("BUG", "which one; without it, all are listed", str)
    every: bool = flag("every way to lose a record, one after the other", name="all")
    expect: str | None = choice(tuple(EXPECTATIONS), "with --all: what each run is expected to show")
    on: str | None = choice(PLACES, "Kafka's classes in one JVM (seconds; the usual), or three real brokers (a minute)")
    kafka: str | None = option("RELEASE", "which Kafka (insync kafka versions); the newest", str, rival="kafka")
    kafka_home: Path | None = option("DIR", "a downloaded Kafka instead, with its libs/", Path, rival="kafka")
    control: bool = flag("the same steps without the condition that decides")
    fixed: bool = flag("with the bug's fix in Kafka's byte code", rival="fix")
    fix: str | None = option("NAME", f"with this fix: {', '.join(FIXES)}", str, rival="fix")
    unit: bool = flag("its unit tests in Kafka's own style instead (found/upstream), on the release with test jars")
    way: str | None = option("NAME", f"in another way than the usual one: {', '.join(WAYS)}", str)
    output: QuietOutput = group(QuietOutput)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    invocation.output.check()
    if invocation.every:
        return run_all(invocation)
    if invocation.expect is not None:
        raise UsageError("--expect goes with --all")
    if invocation.bug is None:
        return list_bugs(invocation)
    if invocation.bug in FAULTS:
        return reproduce_fault(FAULTS[invocation.bug], invocation)
    if invocation.bug not in BUGS:
        hint = did_you_mean(invocation.bug, [*BUGS, *FAULTS])
        raise UsageError(f"there is no bug '{invocation.bug}' here{hint} (insync found lists them)")
    bug = BUGS[invocation.bug]
    return run_units(bug, invocation) if invocation.unit else reproduce(bug, invocation)


def list_bugs(invocation: Options) -> int:
    rows = [(bug.name, bug.loses, bug.when) for bug in BUGS.values()]
    faults = [(fault.name, fault.shows, fault.when) for fault in FAULTS.values()]
    report = {
        "schema": SCHEMA,
        "bugs": [attrs.asdict(bug) | {"places": bug.places} for bug in BUGS.values()],
        "faults": [dict(zip(("name", "shows", "when"), row, strict=True)) for row in faults],
    }
    line = (
        f"insync found: {len(rows)} ways to lose an acknowledged record in Apache Kafka, and {len(faults)} faults that "
        "lose none; found/README.md"
    )

    def tables(out: Console) -> None:
        terminal.print_table(out, ("bug", "loses", "when"), rows)
        terminal.print_table(out, ("fault", "shows", "when"), faults)

    invocation.output.answer(report, tables, line)
    return Exit.HOLDS


def reproduce_fault(fault: QuorumFault, invocation: Options) -> int:
    """A fault of the quorum, on controllers."""
    rivals = {
        "--on": invocation.on,
        "--way": invocation.way,
        "--fixed": invocation.fixed,
        "--fix": invocation.fix,
        "--unit": invocation.unit,
        "--kafka-home": invocation.kafka_home,
    }
    check_rivals(rivals, f"{fault.name} is shown on controllers of a release")
    reproduction = QuorumReproduction(fault, invocation.kafka, invocation.control)
    estimate = f"{fault.controllers} controllers, each in a JVM of its own: estimate {fault.seconds} s"
    result = play(reproduction, estimate, invocation)
    says = {
        Outcome.FAULT: fault.shows,
        Outcome.HELD: "it does not come to that",
        Outcome.NOT_TRIED: SAYS[Outcome.NOT_TRIED],
    }[result[0]]
    how = " --control" * invocation.control
    report = run_report(fault.name, "controllers", result, control=invocation.control)
    return answer_run(report, result[0], f"{fault.name}{how}", says, invocation)


def check_rivals(values_by_option: Mapping[str, object], why: str) -> None:
    """UsageError if an option was given that another makes meaningless."""
    if others := [option for option, value in values_by_option.items() if value]:
        raise UsageError(f"{why}, and takes no {others[0]}")


def run_report(
    name: str,
    on: str,
    result: tuple[Outcome, str | None, list[str]],
    *,
    control: bool = False,
    fix: str | None = None,
    way: str | None = None,
) -> dict[str, object]:
    """The report of one run, from what `play` says of it."""
    outcome, why, lines = result
    return {
        "bug": name,
        "on": on,
        "control": control,
        "fix": fix,
        "way": way,
        "outcome": outcome.name,
        "why": why,
        "told": lines,
    }


def answer_run(report: Mapping[str, object], outcome: Outcome, question: str, says: str, invocation: Options) -> int:
    """Tell what came of one run; the exit code."""
    reason = f": {report['why']}" if report["why"] else ""
    line = f"insync found {question}: {WORDS[outcome]} - {says}{reason}"
    invocation.output.answer({"schema": SCHEMA, **report}, lambda out: None, line)
    return EXITS[outcome]


def fix_of(bug: KafkaBug, invocation: Options) -> str | None:
    """The name of the fix that was asked for, which must be one of this bug's."""
    if invocation.fix is not None and invocation.fix not in bug.fixes:
        raise UsageError(f"{bug.name} has no fix '{invocation.fix}'{did_you_mean(invocation.fix, bug.fixes)}")
    return invocation.fix or (bug.fixes[0] if invocation.fixed else None)


def reproduce(bug: KafkaBug, invocation: Options) -> int:
    fix, on = fix_of(bug, invocation), invocation.on or bug.places[0]
    if on not in bug.places:
        raise UsageError(f"{bug.name} is shown on {' and '.join(bug.places)} only")
    if invocation.way is not None and invocation.way not in bug.other_ways:
        raise UsageError(f"{bug.name} has no way '{invocation.way}'{did_you_mean(invocation.way, bug.other_ways)}")
    outcome, report = reproduce_in(bug, invocation, on, invocation.way, fix)
    flags = (("way", invocation.way), ("fix", fix))
    how = " --control" * invocation.control + "".join(f" --{name} {value}" for name, value in flags if value)
    return answer_run(report, outcome, f"{bug.name} --on {on}{how}", SAYS[outcome], invocation)


def reproduce_in(
    bug: KafkaBug, invocation: Options, on: str, way: str | None, fix: str | None
) -> tuple[Outcome, dict[str, object]]:
    """What came of one run, and the report of it."""
    trial = Trial(
        on=on,
        release=invocation.kafka,
        home=invocation.kafka_home,
        control=invocation.control,
        fix=fix,
        way=way,
    )
    estimate = f"{STARTS[on]}: estimate {bug.seconds[on]} s on two quiet cores"
    result = play(Reproduction(bug, trial), estimate, invocation)
    return result[0], run_report(bug.name, on, result, control=invocation.control, fix=fix, way=way)


def run_all(invocation: Options) -> int:
    """Every bug in every way: in the place asked for if it is shown there, or else in the first where it is shown."""
    rivals = {"BUG": invocation.bug, "--way": invocation.way, "--fix": invocation.fix, "--unit": invocation.unit}
    check_rivals(rivals, "--all runs every bug in every way")
    bugs = [bug for bug in BUGS.values() if invocation.on is None or invocation.on in bug.places]
    reports: list[dict[str, object]] = []
    count: Counter[Outcome] = Counter()
    for bug in bugs:
        on, fix = invocation.on or bug.places[0], bug.fixes[0] if invocation.fixed else None
        for way in (None, *bug.other_ways):
            outcome, report = reproduce_in(bug, invocation, on, way, fix)
            count[outcome] += 1
            reports.append(report | {"expected": expected(invocation, outcome)})
    absent = [name for name in BUGS if name not in {bug.name for bug in bugs}]
    verdict, code = verdict_of_all(invocation, count)
    summary = {"schema": SCHEMA_OF_ALL, "expect": invocation.expect, "not_shown_there": absent, "runs": reports}
    parts = [f"{n} {SHORT[outcome]}" for outcome, n in count.items()]
    parts += [f"not shown on {invocation.on}: {', '.join(absent)}"] if absent else []
    line = f"insync found --all: {verdict} - of {count.total()} runs {', '.join(parts)}"
    rows = [(str(r["bug"]), str(r["on"]), str(r["way"] or ""), str(r["outcome"])) for r in reports]
    invocation.output.answer(
        summary, lambda out: terminal.print_table(out, ("bug", "on", "way", "outcome"), rows), line
    )
    return code


def expected(invocation: Options, outcome: Outcome) -> bool | None:
    """Whether a run shows what was expected; None where nothing was, and where it could not be tried."""
    if invocation.expect is None or outcome is Outcome.NOT_TRIED:
        return None
    return outcome is EXPECTATIONS[invocation.expect]


def verdict_of_all(invocation: Options, count: Counter[Outcome]) -> tuple[str, Exit]:
    """The word of all runs and the exit code. One that could not be tried is never taken for one that held."""
    if invocation.expect is not None:
        other = count.total() - count[Outcome.NOT_TRIED] - count[EXPECTATIONS[invocation.expect]]
        if other:
            return "UNEXPECTED", Exit.UNEXPECTED
        return ("UNKNOWN", Exit.ENDED) if count[Outcome.NOT_TRIED] else ("AS EXPECTED", Exit.HOLDS)
    worst = next(o for o in (Outcome.LOST, Outcome.NOT_TRIED, Outcome.HELD) if count[o])
    return WORDS[worst], EXITS[worst]


def play(reproduction: StoryReproduction, estimate: str, invocation: Options) -> tuple[Outcome, str | None, list[str]]:
    """What came of it, why it could not be tried, and its lines, which people see as they come."""
    from isr_kafka import Unavailable

    lines: list[str] = []
    out = invocation.output.console()
    why: str | None = None
    people = invocation.output.for_people and not invocation.output.quiet
    if people:
        out.print(estimate, style="dim", soft_wrap=True)
    try:
        for line in reproduction.lines():
            lines.append(line)
            if people:
                out.print(line, soft_wrap=True)
    except Unavailable as problem:
        why = str(problem)
    outcome = reproduction.outcome or Outcome.NOT_TRIED
    if outcome is Outcome.NOT_TRIED and why is None:
        why = next((line for line in reversed(lines) if line.strip()), "it does not say why").strip()
    return outcome, why, lines


def run_units(bug: KafkaBug, invocation: Options) -> int:
    """The bug's unit tests: VIOLATED if one fails, each that fails for its reason, HOLDS if all pass."""
    from isr_found.units import UNITS, UnitReproduction
    from isr_kafka.jars import UNIT_TESTS

    rivals = {
        "--on": invocation.on,
        "--way": invocation.way,
        "--control": invocation.control,
        "--kafka": invocation.kafka,
        "--kafka-home": invocation.kafka_home,
    }
    check_rivals(rivals, f"--unit runs on Kafka {UNIT_TESTS}, whose test jars are there")
    fix = UNITS[bug.name].fix if invocation.fixed else fix_of(bug, invocation)
    reproduction = UnitReproduction(bug.name, fix)
    estimate = f"unit tests on Kafka {UNIT_TESTS}: estimate 5 s on two quiet cores"
    result = play(reproduction, estimate, invocation)
    how = f" --fix {fix}" if fix else ""
    report = run_report(bug.name, "unit", result, fix=fix)
    return answer_run(report, result[0], f"{bug.name} --unit{how}", UNIT_SAYS[result[0]], invocation)
