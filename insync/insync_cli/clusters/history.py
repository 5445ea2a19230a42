"""`insync history`: what clients did and saw, checked for the anomalies that a log must not show."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from insync_cli import old_options as options
from insync_cli import terminal
from insync_cli.clusters import history_spark, history_text
from insync_cli.exits import Exit, InputError, UsageError, did_you_mean
from isr_anomalies import ANOMALIES, Answer, Claims, Item, Malformed, Verdict, check, paired, read_edn, read_json
from isr_anomalies.collector import no_collector
from isr_anomalies.read_json import checked_claims

if TYPE_CHECKING:
    from isr_anomalies import Anomaly, History

EXAMPLE = """\
insync history run/history.jsonl
insync history jepsen/history.edn --isolation read_committed --json -
insync history runs/*.jsonl --engine spark --out tables
insync history --list"""

NANOSECONDS = 1_000_000_000
WORST_FIRST = (Exit.SAFETY, Exit.INCONCLUSIVE, Exit.UNCOVERED, Exit.HOLDS)
CHOICES = {"acks": ("0", "1", "all"), "isolation": ("read_uncommitted", "read_committed")}
SWITCHES = {
    "idempotence": "producers are idempotent",
    "exactly-once": "consumers commit their offsets in transactions",
    "unclean": "unclean.leader.election.enable",
}


def parser(argv: Sequence[str]) -> Namespace:
    summary = "Check what clients did and saw for the anomalies of docs/history.md; each file is a history."
    p = options.Parser("history", summary, EXAMPLE)
    p.add_argument("files", metavar="FILE", nargs="*", help="JSON lines, or EDN of Jepsen's kafka workload (.edn)")
    p.add_argument("--list", action="store_true", help="the table of anomalies, and nothing else")
    p.add_argument("--anomaly", action="append", default=[], metavar="A", help="look for this one only; repeatable")
    p.add_argument("--quiet", action="store_true", help="only the result lines")
    group = p.add_argument_group("claims", "instead of those in the file; what nobody says is Kafka's default")
    for name, words in CHOICES.items():
        group.add_argument(f"--{name}", choices=words)
    for name, says in SWITCHES.items():
        group.add_argument(f"--{name}", choices=("on", "off"), help=says)
    group.add_argument("--min-insync", type=options.positive, metavar="N", help="min.insync.replicas")
    limits = p.add_argument_group("limits")
    limits.add_argument("--progress-acks", type=options.positive, metavar="N", help="so many acks after a healing")
    limits.add_argument("--progress-within", type=options.seconds, metavar="S", help="in so many seconds (default 30)")
    limits.add_argument("--max-lag", type=options.seconds, metavar="S", help="more is a finding; default: measure only")
    limits.add_argument("--max-unavailable", type=options.seconds, metavar="S", help="the same of acknowledgements")
    history_spark.add_options(p)
    p.add_json()
    return p.read(argv)


def run(given: Namespace) -> int:
    target = cast("str | None", given.json)
    files = [Path(name) for name in cast("list[str]", given.files)]
    if given.list:
        if target != "-":
            history_text.print_list(terminal.console(plain=cast("bool", given.plain)))
        terminal.write_json(target, {"schema": "insync/anomalies/1", "anomalies": history_text.listed()})
        return Exit.HOLDS
    if not files:
        raise UsageError("insync history: a FILE is required, or --list (see insync history --help)")
    wanted = chosen(cast("list[str]", given.anomaly))
    terminal.check_json_target(target)
    history_spark.check(given)
    reports: list[history_text.Report] = []
    codes: list[Exit] = []
    for path, answer, claims, quotes in answers(files, wanted, given):
        report = history_text.report(path, answer, claims, quotes, cast("list[str]", given.command))
        reports.append(report)
        if target is None:
            terminal.write_json(str(beside(path)), report)
        if target != "-":
            out = terminal.console(plain=cast("bool", given.plain))
            history_text.render(out, report, None if target else beside(path), quiet=cast("bool", given.quiet))
        codes.append(exit_code(answer, named=bool(given.anomaly)))
    terminal.write_json(target, reports[0] if len(reports) == 1 else reports)
    return next(code for code in WORST_FIRST if code in codes)


def answers(
    files: list[Path], wanted: tuple[Anomaly, ...], given: Namespace
) -> Iterator[tuple[Path, Answer, Claims, dict[int, str]]]:
    """Each file's verdicts with the claims that they follow from, and the lines that witnesses point to."""
    if given.engine == history_spark.SPARK:
        said = claims_given(given)
        for one in history_spark.checked(files, wanted, lambda of: checked_claims(0, said, of), given):
            yield one.path, one.answer, one.claims, one.quotes
        return
    for path in files:
        with no_collector():
            history = read(path, given)
            answer = check(history, wanted)
        yield path, answer, history.claims, quoted(path, answer)


def chosen(names: list[str]) -> tuple[Anomaly, ...]:
    known = {anomaly.name: anomaly for anomaly in ANOMALIES} | {str(anomaly.number): anomaly for anomaly in ANOMALIES}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no anomaly '{name}'{did_you_mean(name, known)} (insync history --list)")
    asked = {known[name].number for name in names}
    return tuple(anomaly for anomaly in ANOMALIES if not asked or anomaly.number in asked)


def beside(path: Path) -> Path:
    """history.json beside history.jsonl or history.edn; never the history itself."""
    return path.with_suffix(".verdict.json" if path.suffix == ".json" else ".json")


def read(path: Path, given: Namespace) -> History:
    if path.suffix == ".parquet":
        raise UsageError(f"{path}: a history in Parquet is for --engine {history_spark.SPARK}")
    try:
        with path.open(encoding="utf-8") as file:
            items = iter(read_edn(file.read())) if is_edn(path, file) else read_json(file)
            return paired(with_options(items, given))
    except OSError as problem:
        raise InputError(f"cannot read {path}: {terminal.reason(problem)}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8") from None
    except Malformed as problem:
        raise InputError(f"{path}, {problem}") from None


def is_edn(path: Path, file: TextIO) -> bool:
    """By its name; else by its beginning: a JSON object has a quoted key where EDN has a keyword."""
    if path.suffix in (".edn", ".jsonl", ".ndjson", ".json"):
        return path.suffix == ".edn"
    start = file.read(4096).lstrip()
    file.seek(0)
    return start[:1] in "[;#" or start[1:].lstrip()[:1] == ":"


def with_options(items: Iterator[Item | Claims], given: Namespace) -> Iterator[Item | Claims]:
    """The items of a file; claims of the command line count more than those of its header."""
    said = claims_given(given)
    yield checked_claims(0, said)
    for item in items:
        yield checked_claims(0, said, item) if isinstance(item, Claims) else item


def claims_given(given: Namespace) -> dict[str, object]:
    told = cast("dict[str, object]", vars(given))
    said = {name: told[name] for name in (*CHOICES, "min_insync", "progress_acks") if told[name] is not None}
    for name in ("progress_within", "max_lag", "max_unavailable"):
        if told[name] is not None:
            said[name] = round(cast("float", told[name]) * NANOSECONDS)
    switches = [name.replace("-", "_") for name in SWITCHES]
    return said | {name: told[name] == "on" for name in switches if told[name] is not None}


def quoted(path: Path, answer: Answer) -> dict[int, str]:
    """The lines that witnesses point to, from a second pass over the file."""
    lines = {line for judgement in answer.judgements for found in judgement.witnesses for line in found.lines}
    if not lines:
        return {}
    with suppress(OSError), path.open(encoding="utf-8") as file:
        return {number: text.strip() for number, text in enumerate(file, 1) if number in lines}
    return {}


def exit_code(answer: Answer, *, named: bool) -> Exit:
    """12 if anything is violated; no answer is no success; what is vacuous counts where it was asked for."""
    words = [judgement.verdict for judgement in answer.judgements]
    if Verdict.VIOLATED in words:
        return Exit.SAFETY
    if Verdict.UNKNOWN in words:
        return Exit.INCONCLUSIVE
    vacuous = answer.verdict is Verdict.VACUOUS or (named and Verdict.VACUOUS in words)
    return Exit.UNCOVERED if vacuous else Exit.HOLDS
