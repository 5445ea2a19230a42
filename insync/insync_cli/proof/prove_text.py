"""A proof as text: each obligation that fails as it comes, the matrix, the promises, one line at the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from insync_cli import registry, terminal
from insync_cli.model.check_text import world
from insync_cli.omissions import MOST_NAMES, omissions_text, subject_and_ending
from insync_cli.options import value_text
from insync_cli.progress import Ticker
from insync_cli.proof.counterexamples import OPEN, REACHABLE, UNREACHABLE
from insync_cli.proof.question import PARTIAL, ObligationLine, Question, Report, faults_not_covered
from insync_cli.terminal import count
from insync_cli.tracefiles import print_short
from isr_check.engine import Verdict

if TYPE_CHECKING:
    from rich.console import Console

    from isr_lang import Design, Value

NOTHING, PROVED = ".", "+"
MARKS = {"proved": PROVED, "counterexample": "X", "unknown": "?", "error": "!"}
WORDS = {"counterexample": "COUNTEREXAMPLE TO INDUCTION", "unknown": "UNKNOWN", "error": "ERROR"}
INVARIANT_MAY_BE_WEAK = "the invariant may be too weak, which refutes no promise"
MOST_LINES, SLOWEST = 3, 5
ADVICE = {
    REACHABLE: "this state is reachable, so what fails is wrong; strengthening will not help",
    UNREACHABLE: "this state is not reachable at its bounds, so the invariant has to be strengthened to exclude it",
    OPEN: "whether this state is reachable was not found out in time",
}


class RunText:
    """What a run says while it goes on, and at its end. `quiet`: only the line at the end."""

    def __init__(
        self, out: Console, *, core: bool, quiet: bool = False, plain: bool = False, tells_progress: bool = False
    ) -> None:
        self.out, self.core, self.quiet, self.plain, self.tells_progress = out, core, quiet, plain, tells_progress
        self.own = ""
        self._ticker = self.ticker()

    def ticker(self) -> Ticker:
        return Ticker(quiet=not self.tells_progress, plain=self.plain)

    def begin(self, proof_question: Question, obligations: int, queries: int) -> None:
        self.own = registry.own_option(proof_question.design)
        if self.quiet:
            return
        self.out.print(f"{proof_question.design.name}: {proof_question.design.summary}", style="bold")
        left_out = {"without": " ".join(asked_without(proof_question))}
        rows = world(proof_question.design, {**proof_question.constants, **left_out})
        rows += [("asked", f"{count(obligations, 'obligation')}, {count(queries, 'question')} to the solver")]
        rows += [("model", proof_question.design.model_hash())]
        terminal.print_table(self.out, ("", ""), rows)
        self.out.print()

    def obligation(self, line: ObligationLine, decided_count: int, total: int, share: float | None = None) -> None:
        """What fails is said at once; what is proved is counted. `share`: how much of the work is done."""
        if self.quiet:
            return
        if line["verdict"] != "proved":
            self.close()
            self.out.print(f"{WORDS[line['verdict']]}  {name_of(line)}{_why(line)}", style="yellow", soft_wrap=True)
        elif self.core and line["core"]:
            self.close()
            self.out.print(f"{name_of(line)}  by {', '.join(line['core'])}", style="dim", soft_wrap=True)
        last = f"obligations decided, last {name_of(line)} in {line['seconds']:.1f} s"
        self._ticker.count(decided_count, total, last, share=share)

    def close(self) -> None:
        """Make room for a line."""
        self._ticker.close()

    def whole(self, proof_question: Question, report: Report, folder: Path) -> None:
        """All of it, for who was not told while it went on."""
        lines = report["obligations"]
        if lines:
            self.begin(proof_question, len(lines), report["stats"]["queries"])
        for line in lines:
            self.obligation(line, 0, len(lines))
        self.report(report, folder)

    def report(self, report: Report, folder: Path) -> None:
        if not self.quiet:
            self._whole(report, folder)
        self.out.print(report["line"], soft_wrap=True)

    def _whole(self, report: Report, folder: Path) -> None:
        lines, out = report["obligations"], self.out
        for text in matrix(lines):
            out.print(text, soft_wrap=True)
        slow = sorted((x for x in lines if x["seconds"] >= 1), key=lambda x: -x["seconds"])[:SLOWEST]
        terminal.print_lines(out, "Slowest", [f"{x['seconds']:7.1f} s  {name_of(x)}" for x in slow])
        self._counterexamples(lines)
        rows = [(line["verdict"], line["name"], line["kind"], line["reason"]) for line in report["promises"]]
        if rows:
            out.print()
            terminal.print_table(out, ("verdict", "property", "kind", ""), rows)
        if report["explored"] is not None:
            explored = report["explored"]
            how = "every reachable state" if explored["complete"] else "not every state, for it was stopped"
            out.print(f"\ncross-check: {explored['distinct']:,} states explored, {how}: {explored['run']}")
            for sentence in explored["disagreements"]:
                out.print(f"  the engines disagree: {sentence}", style="bold red", soft_wrap=True)
        out.print(f"\nwritten to {folder}/prove.json", soft_wrap=True)

    def _counterexamples(self, lines: Sequence[ObligationLine]) -> None:
        failures = [line for line in lines if line["verdict"] in ("counterexample", "error")]
        for line in failures[:MOST_LINES]:
            self.out.print(f"\n{name_of(line)}", style="bold")
            if line["trace"] is not None:
                print_short(self.out, Path(line["trace"]))
            advice = ADVICE.get(line["reached"] or "", "")
            said = "; ".join(x for x in (advice, line["reason"]) if x)
            self.out.print(said, style="bold" if advice else "", soft_wrap=True)
            if line["behaviour"]:
                self.out.print(f"how to get there: insync show {line['behaviour']}{self.own}", soft_wrap=True)
        more = [f"insync show {line['trace']}{self.own}" for line in failures[MOST_LINES:] if line["trace"]]
        terminal.print_lines(self.out, "More counterexamples to induction", more)


def asked_without(proof_question: Question) -> tuple[str, ...]:
    from insync_cli.registry import left_out

    return left_out(proof_question.design)


def name_of(line: ObligationLine) -> str:
    return f"{line['conjunct']} / {line['action'] or line['kind']}"


def _why(line: ObligationLine) -> str:
    return f" ({line['reason']})" if line["reason"] else ""


def matrix(lines: Sequence[ObligationLine]) -> list[str]:
    """One row per conjunct, one column per action, with the seconds of each.

    The columns are numbered, and named below.
    """
    columns = list(dict.fromkeys(x["action"] or x["kind"] for x in lines))
    rows = list(dict.fromkeys(x["conjunct"] for x in lines))
    width = max(map(len, rows), default=0)

    seconds = defaultdict[str, float](float)
    for x in lines:
        seconds[x["conjunct"]] += x["seconds"]
        seconds[f"/{x['action'] or x['kind']}"] += x["seconds"]
    cells = {(x["conjunct"], x["action"] or x["kind"]): mark(x) for x in lines}
    numbers = [f"{i + 1:2}" for i in range(len(columns))]
    text_lines = [
        " " * width + "  " + " ".join(n[0] for n in numbers),
        " " * width + "  " + " ".join(n[1] for n in numbers),
    ]
    for row in rows:
        marks = " ".join(cells.get((row, c), " ") for c in columns)
        text_lines.append(f"{row:{width}}  {marks}  {seconds[row]:6.1f} s")
    text_lines.append(
        f"\n{PROVED} proved   {NOTHING} nothing to ask   X counterexample to induction   ? no answer in time"
    )
    for n, c in zip(numbers, columns, strict=True):
        text_lines.append(f"  {n} {c:40} {seconds[f'/{c}']:6.1f} s")
    return text_lines


def mark(line: ObligationLine) -> str:
    return NOTHING if line["verdict"] == "proved" and not line["queries"] else MARKS[line["verdict"]]


def result_line(report: Report) -> str:
    """The one line to grep for."""
    stats = report["stats"]
    work = f"({count(stats['obligations'], 'obligation')}, {stats['seconds']:.0f} s)"
    return f"insync prove {report['design']}: {report['verdict']} - {sentence(report)} {work}"


def sentence(report: Report) -> str:
    lines = report["obligations"]
    of = {word: [x for x in lines if x["verdict"] == word] for word in MARKS}
    promises = [line["name"] for line in report["promises"] if line["verdict"] == Verdict.PROVED]
    violated = [line["name"] for line in report["promises"] if line["verdict"] == Verdict.VIOLATED]
    empty = [line for line in report["promises"] if line["verdict"] == Verdict.VACUOUS]
    parts = [f"{', '.join(violated)} violated"] if violated else []
    for reason in dict.fromkeys(line["reason"] for line in empty):
        names = ", ".join(line["name"] for line in empty if line["reason"] == reason)
        parts.append(f"{names} vacuous ({reason.rstrip('.')})")
    unseen = [line for line in report["premises"] if line["verdict"] == Verdict.BUDGETED]
    parts += [f"not seen in time: {line['text'].rstrip('.')}" for line in unseen]
    if report["explored"] and report["explored"]["disagreements"]:
        parts.append("the engines disagree")
    if promises:
        who, s = subject_and_ending(promises, "promise", by_name=len(report["promises"]) <= MOST_NAMES)
        parts.append(f"{who} hold{s} {report['extent']}")
        left = omissions_text((len(report["omissions"]), "other promise", ""))
        parts += [left] if left else []
    refutations = [line for line in of["counterexample"] if line["reached"] == REACHABLE]
    weak = [line for line in of["counterexample"] if line["reached"] != REACHABLE]
    for failures, what in (
        (of["error"], "on which the engines disagree"),
        (refutations, "refuted"),
        (weak, "not inductive"),
        (of["unknown"], "open"),
    ):
        if failures:
            parts.append(f"{count(len(failures), 'obligation')} {what}, first {name_of(failures[0])}")
    if weak and not violated:
        parts.append(INVARIANT_MAY_BE_WEAK)
    if report["verdict"] == PARTIAL:
        said = "every obligation that was asked is proved, which is a part of a proof and no promise"
        parts.append(", ".join(filter(None, (said, report["extent"]))))
    return "; ".join(parts) or "nothing was asked"


def extent(design: Design, constants: Mapping[str, Value | None]) -> str:
    """Of which worlds a promise is proved: every bound and setting, what is left out, and which faults are.

    A constant that is None has any value.
    """
    idle = faults_not_covered(design, constants)
    options = {c.name: c.option[2:] for c in design.constants() if c.option[2:] not in idle}
    free = [option for name, option in options.items() if constants[name] is None]
    settings = [
        f"{option} {value_text(value)}" for name, option in options.items() if (value := constants[name]) is not None
    ]
    left_out = registry.left_out(design)
    parts = [f"for every {and_list(free)}"] if free else []
    parts += [f"with {', '.join(settings)}"] if settings else []
    parts += [f"without {', '.join(left_out)}"] if left_out else []
    parts += [f"not covered: {', '.join(idle)}"] if idle else []
    return ", ".join(parts)


def and_list(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
