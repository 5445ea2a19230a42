"""`insync check`: explore a design, a verdict per property, counterexamples saved and shown."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import attrs

from insync_cli import options, registry, runfile, terminal
from insync_cli.exits import Exit, UsageError, did_you_mean
from insync_cli.main import version
from insync_cli.model import check_text, exploration
from insync_cli.tracefiles import default_folder, print_short, save
from isr_check.engine import CHECKED, DEADLOCK, TYPE_OK, Exploration, Finding, Verdict
from isr_lang import Design, Instance

EXAMPLE = """\
insync check kafka-0.8 --property acked-survives
insync check kip-966 --replicas 2 --workers 2 --json -
insync check kip-966 --min-insync 1 --expect acked-survives=VIOLATED
insync check kip-966 --lossy-crashes 1 --without controller_moves_leadership
insync check kip-966 --replicas 4 --symmetry on --memory 4G --out runs/four
insync check kip-966 --log 4 --records 4 --simulate 10000 --seed 7

insync check kip-966 --replicas 2 --property healthy-partition-commits --unfair follower_appends"""


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("check", "Explore every reachable state of a design: a verdict per property.", EXAMPLE)
    p.add_argument("design", metavar="DESIGN", help="see: insync designs")
    p.add_without()
    p.add_argument("--property", action="append", default=[], metavar="P", help="check only this one; repeatable")
    p.add_argument("--deadlock", action="store_true", help="also look for a state without any next step")
    p.add_argument("--coverage", choices=("report", "strict"), default="report", help="strict: exit 21 on a gap")
    p.add_argument("--expect", action="append", default=[], metavar="P=VERDICT", help="exit 22 unless; repeatable")
    p.add_argument("--out", metavar="DIR", help="where run.json and the traces go (default: below runs/)")
    p.add_argument("--quiet", action="store_true", help="only the result line")
    p.add_running()
    exploration.add_options(p)
    p.add_fairness()
    p.add_json()
    p.add_constants(argv)
    return p.read(argv)


@attrs.frozen
class Question:
    """What is asked: `wanted` goes to the engine, `named` are the user's own words."""

    instance: Instance
    named: tuple[str, ...]
    expected: dict[str, str]
    deadlock: bool
    liveness: bool

    @property
    def asked(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.named, *self.expected)))

    @property
    def wanted(self) -> tuple[str, ...]:
        stated = self.instance.properties
        checkable = [*(p.name for p in stated if p.kind in CHECKED), TYPE_OK]
        chosen = [n for n in checkable if not self.named or n in self.asked]
        live = [p.name for p in stated if p.kind not in CHECKED]
        chosen += [n for n in live if n in self.asked or (self.liveness and not self.named)]
        return (*chosen, *((DEADLOCK,) if self.deadlock or DEADLOCK in self.asked else ()))

    def unanswered(self) -> list[Finding]:
        """What was asked for by name and is off at these settings."""
        off = [self.instance.design.property_named(n) for n in self.asked if n in self.instance.off_properties]
        return [Finding(p.name, p.kind, Verdict.VACUOUS) for p in off]

    def not_checked(self) -> list[str]:
        """The liveness properties that nobody asked for."""
        names = [p.name for p in self.instance.properties if p.kind not in CHECKED]
        return [] if self.named else [n for n in names if n not in self.wanted]


def run(given: Namespace) -> int:
    design = options.design_given(given)
    question = Question(
        registry.instance_of(design, options.constants_given(given)),
        tuple(registry.check_property(design, name) for name in cast("list[str]", given.property)),
        expectations(design, cast("list[str]", given.expect)),
        cast("bool", given.deadlock),
        given.liveness == "on",
    )
    exploration.check(given, question.instance, question.asked)
    engine, json_target = exploration.engine_name(given), cast("str | None", given.json)
    terminal.check_json_target(json_target)
    asked = (question.wanted, engine, *(["symmetry"] if given.symmetry == "on" else []))
    folder = terminal.make_folder(exploration.folder(given, lambda: default_folder(question.instance, *asked)))
    found, stopped_by, workers = exploration.explored(question.instance, question.wanted, given, folder)
    findings = (*judged(found), *question.unanswered())
    saved = save(question.instance, findings, folder, shortest=not given.simulate)
    answer = runfile.run_file(
        question.instance,
        found,
        command=cast("list[str]", given.command),
        version=version(),
        engine=engine,
        workers=workers,
        seed=exploration.seed(given),
        walks=cast("int | None", given.simulate),
        findings=findings,
        traces={name: str(path) for name, path in saved.items()},
    )
    terminal.write_json(str(folder / "run.json"), answer)
    terminal.write_json(json_target, answer)
    about = check_text.notes(
        question.instance, complete=found.complete, stopped_by=stopped_by, not_checked=question.not_checked()
    )
    if json_target != "-":
        show(given, answer, design, about, folder)
    if found.distinct == 0 and question.wanted:
        return Exit.ASSUMPTION
    return runfile.exit_code(
        answer,
        named=question.named,
        strict=given.coverage == "strict",
        uncovered=found.complete and bool(runfile.uncovered(answer)),
        expected=question.expected,
    )


def judged(found: Exploration) -> tuple[Finding, ...]:
    """The engine's findings; what holds of no state at all says nothing."""
    if found.distinct:
        return found.findings
    return tuple(attrs.evolve(f, verdict=Verdict.VACUOUS) for f in found.findings)


def expectations(design: Design, words: list[str]) -> dict[str, str]:
    """`acked-survives=VIOLATED` as a table."""
    table: dict[str, str] = {}
    verdicts = [v.value for v in Verdict]
    for word in words:
        name, equals, verdict = word.partition("=")
        if not equals:
            raise UsageError(f"--expect is PROPERTY=VERDICT, not {word}")
        registry.check_property(design, name)
        if verdict.upper() not in verdicts:
            hint = did_you_mean(verdict.upper(), verdicts) or f"; they are {', '.join(verdicts)}"
            raise UsageError(f"there is no verdict '{verdict}'{hint}")
        table[name] = verdict.upper()
    return table


def show(given: Namespace, answer: runfile.Run, design: Design, about: check_text.Notes, folder: Path) -> None:
    out = terminal.console(plain=cast("bool", given.plain))
    if not given.quiet:
        check_text.render(out, answer, design, about)
        violated = [line for line in answer["properties"] if line["verdict"] == Verdict.VIOLATED and line["trace"]]
        for i, line in enumerate(violated):
            if i == 0:
                print_short(out, Path(str(line["trace"])))
            out.print(f"whole trace of {line['name']}: insync show {line['trace']}", soft_wrap=True)
        out.print(f"\nwritten to {folder}/run.json", soft_wrap=True)
        if about.stopped_by and exploration.resumable(folder):
            out.print(f"to go on from here, add: --resume {folder}", soft_wrap=True)
    for name, word in expected_otherwise(answer, cast("list[str]", given.expect)):
        out.print(f"expected {name}, but it is {word}", soft_wrap=True)
    out.print(check_text.result_line(answer, about), soft_wrap=True)


def expected_otherwise(answer: runfile.Run, words: list[str]) -> list[tuple[str, str]]:
    verdicts = {line["name"]: line["verdict"] for line in answer["properties"]}
    pairs = [(word, verdicts.get(word.partition("=")[0], "absent")) for word in words]
    return [(word, actual) for word, actual in pairs if word.partition("=")[2].upper() != actual]
