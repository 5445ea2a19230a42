"""`insync check`: explore a design, a verdict per property, counterexamples saved and shown."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import options, registry, runfile, terminal
from insync_cli.exits import Exit, UsageError, did_you_mean
from insync_cli.families import family_of
from insync_cli.model import check_text, exploration
from insync_cli.model.exploration import Explored
from insync_cli.options import Usage, choice, command, flag, group, repeated_option, switch
from insync_cli.own_premises import own_premises
from insync_cli.room_line import notice_line, precursor_line, room_line
from insync_cli.terminal import QuietOutput
from insync_cli.tracefiles import default_folder, load, print_short, save
from insync_cli.version import version
from insync_cli.view import pages
from insync_cli.view.remedy import remedy_lines
from isr_check.engine import CHECKED_KINDS, DEADLOCK, TYPE_OK, Exploration, Finding, Limits, Unsound, Verdict
from isr_check.reference import Evaluator
from isr_check.worth import without_premises
from isr_lang import Design, Instance, Value
from isr_lang.instance import check_constants

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLE = """\
insync check kafka-0.8 --property acked-survives
insync check kip-966 --replicas 2 --workers 2 --json -
insync check kip-966 --replicas 2 --min-insync 1 --unclean on --property acked-survives --expect acked-survives=VIOLATED
insync check kip-966 --lossy-crashes 1 --without controller_moves_leadership
insync check kip-966 --replicas 4 --symmetry on --memory 4G --out runs/four
insync check kip-966 --log 4 --records 4 --simulate 10000 --seed 7
insync check kip-966 --replicas 2 --property healthy-partition-commits --unfair follower_appends"""
USAGE = Usage("check", "Explore every reachable state of a design: a verdict per property.", EXAMPLE)


@attrs.frozen(kw_only=True)
class World(options.FairWorld):
    """A design whose bounds follow the faults and settings that are asked for."""

    constants: Mapping[str, Value] = options.constants(
        about="Fault budgets are bounds too. Where those, the replicas, or a setting that allows more\n"
        "are not the design's own, the bounds that are not given are larger than these\n"
        "defaults, so that there is room for it all. They are also as large as it takes to notice\n"
        "known mistakes, where that takes seconds; run.json tells them."
    )


@attrs.frozen(kw_only=True)
class Options:
    world: World = group(World)
    properties: tuple[str, ...] = repeated_option("P", "check only this one", str, name="property")
    liveness: bool = switch("check also what must come to pass", default=False)
    deadlock: bool = flag("also look for a state without any next step")
    coverage: str = choice(("report", "strict"), "strict: exit 21 on a gap", "report")
    expect: tuple[str, ...] = repeated_option("P=VERDICT", "exit 22 unless", str)
    exploring: exploration.Exploring = group(exploration.Exploring)
    output: QuietOutput = group(QuietOutput)
    command: tuple[str, ...] = command()


@attrs.frozen
class Question:
    """The question. The engine gets `property_names`; `named_properties` are those that --property names."""

    instance: Instance
    named_properties: tuple[str, ...]
    expected: dict[str, str]
    deadlock: bool
    liveness: bool
    grown_bounds: tuple[str, ...] = ()
    """Bounds that were not given, and are larger than it takes for the faults, to notice known mistakes."""
    is_large: bool = False
    """Whether a bound that was not given is larger than the design's own, or the family calls the model large."""

    @property
    def requested_properties(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.named_properties, *self.expected)))

    @property
    def property_names(self) -> tuple[str, ...]:
        stated = self.instance.properties
        checkable = [*(p.name for p in stated if p.kind in CHECKED_KINDS), TYPE_OK]
        chosen = [n for n in checkable if not self.named_properties or n in self.requested_properties]
        live = [p.name for p in stated if p.kind not in CHECKED_KINDS]
        chosen += [n for n in live if n in self.requested_properties or (self.liveness and not self.named_properties)]
        return (*chosen, *((DEADLOCK,) if self.deadlock or DEADLOCK in self.requested_properties else ()))

    def vacuous_findings(self) -> list[Finding]:
        """The properties that the user named and that the settings switch off: each is VACUOUS."""
        off = [
            self.instance.design.property_named(n)
            for n in self.requested_properties
            if n in self.instance.off_properties
        ]
        return [Finding(p.name, p.kind, Verdict.VACUOUS) for p in off]

    def not_checked(self) -> list[str]:
        """The liveness properties that are left out because the user did not ask for them."""
        names = [p.name for p in self.instance.properties if p.kind not in CHECKED_KINDS]
        return [] if self.named_properties else [n for n in names if n not in self.property_names]


@attrs.frozen(eq=False)
class Answer:
    """What was asked, by which options, and what was found; `run` and the traces that it names are in `folder`."""

    invocation: Options
    question: Question
    explored: Explored
    run: runfile.Run
    folder: Path
    code: Exit


def run(argv: Sequence[str]) -> int:
    answer = answer_of(options.read_options(Options, USAGE, argv))
    output = answer.invocation.output
    output.write(answer.run)
    if output.for_people:
        show(output.console(), answer, quiet=output.quiet)
    return answer.code


def answer_of(invocation: Options) -> Answer:
    """Explore what is asked, and write run.json and the traces; nothing is printed but progress."""
    question, output = question_of(invocation), invocation.output
    exploring = exploring_for(question, invocation.exploring)
    exploring.check(question.instance, question.requested_properties)
    output.check()
    folder = terminal.make_folder(exploring.folder(lambda: question_folder(question, exploring)))
    explored = explore(question, exploring, output, folder)
    answer = make_run_file(question, explored, attrs.evolve(invocation, exploring=exploring), folder)
    terminal.write_json(str(folder / "run.json"), answer)
    code = exit_code(question, explored, answer, strict=invocation.coverage == "strict")
    return Answer(invocation, question, explored, answer, folder, code)


def explore(question: Question, exploring: exploration.Exploring, output: QuietOutput, folder: Path) -> Explored:
    """What was found of what is wanted, with what it is worth: premises, a precursor, room for the faults, slack."""
    own, names, began = question.instance, question.property_names, time.monotonic()
    family = family_of(own.design)
    of_own = own_premises(own.design, names)
    probes = (*family.probes(names), *family.slack_probes(own, names), *of_own.values())
    probed = own.promising(*probes)  # the same actions and properties, and the probes
    explored = exploration.explored(probed, (*names, *(p.name for p in probes)), exploring, output, folder)
    result, slack = family.slack(own, without_premises(explored.result, names, of_own), names)
    engine = exploration.engine_for_room(exploring, explored.workers)
    duration = exploring.running.max_seconds
    limits = Limits(stop=lambda: duration is not None and time.monotonic() - began >= duration)
    with output.ticker() as ticker:
        looked = partial(ticker.count, what="states, at most, looked at: do the bounds leave room?")
        worth = family.worth(own, result, names, engine, limits, ticker, looked)
    result, notice = family.noticing(own, worth.exploration, names)
    return attrs.evolve(
        explored,
        result=result,
        stopped_by=f"--max-seconds {duration:g}, which left no time to look for room for the faults,"
        if worth.room is not None and worth.room.stopped
        else explored.stopped_by,
        room=worth.room,
        precursor=worth.precursor,
        notice=notice,
        slack=slack,
        without_encounter=worth.without_encounter,
    )


def question_of(invocation: Options) -> Question:
    """The question; UsageError for names that do not exist and constants that contradict each other."""
    design, constants = invocation.world.design, invocation.world.constants
    named_properties = tuple(registry.check_property(design, name) for name in invocation.properties)
    expected = expectations(design, invocation.expect)
    if may_grow(invocation):
        names = (*named_properties, *expected) if named_properties else (*registry.property_names(design),)
        instance, grown = registry.instance_that_notices(design, constants, names)
        is_large = instance.constants != check_constants(design, constants) or family_of(design).is_large(instance)
    else:
        instance, grown, is_large = registry.instance_with_room(design, constants), (), False
    return Question(instance, named_properties, expected, invocation.deadlock, invocation.liveness, grown, is_large)


def may_grow(invocation: Options) -> bool:
    """Whether bounds that are not given may be larger than the faults need, to notice known mistakes.

    It takes the fastest engine. What cannot be asked of orbits of states (liveness), or counts steps (strict
    coverage), is asked within the smaller bounds, as random walks are.
    """
    kinds = {p.name: p.kind for p in invocation.world.design.properties}
    names = [*invocation.properties, *(word.partition("=")[0] for word in invocation.expect)]
    live = invocation.liveness or any(kinds.get(name) == "eventually" for name in names)
    return invocation.exploring.engine == "native" and not live and invocation.coverage != "strict"


def exploring_for(question: Question, exploring: exploration.Exploring) -> exploration.Exploring:
    """As asked; where bounds are larger than a design's own by themselves, or the model is large, one state of each
    orbit and of each kind, unless somebody says otherwise."""
    large, fewer = exploring.large, question.is_large
    symmetry = fewer and has_orbits(question) if large.symmetry is None else large.symmetry
    reduction = fewer if large.reduction is None else large.reduction
    return attrs.evolve(exploring, large=attrs.evolve(large, symmetry=symmetry, reduction=reduction))


def has_orbits(question: Question) -> bool:
    """Whether one state of each orbit is enough to answer the question."""
    from isr_check.symmetry import Symmetry

    try:
        Symmetry(question.instance, question.property_names)
    except Unsound:
        return False
    return True


def question_folder(question: Question, exploring: exploration.Exploring) -> str:
    """A folder below runs/. The same question gets the same folder, so that asking again replaces the answer."""
    large = exploring.large
    fewer = [name for name, on in (("symmetry", large.symmetry), ("reduction", large.reduction)) if on]
    return default_folder(question.instance, question.property_names, exploring.engine, *fewer)


def make_run_file(question: Question, explored: Explored, invocation: Options, folder: Path) -> runfile.Run:
    """The run file; the counterexamples and witnesses that it names are in the folder."""
    exploring, result = invocation.exploring, explored.result
    findings = (*findings_of(result), *question.vacuous_findings())
    trace_paths = save(question.instance, findings, folder, shortest=not exploring.simulation.simulate)
    return runfile.run_file(
        question.instance,
        result,
        command=invocation.command,
        version=version(),
        engine=exploring.engine,
        workers=explored.workers,
        seed=exploring.simulation.used_seed,
        walks=exploring.simulation.simulate,
        room=room_line(explored.room),
        precursor=precursor_line(explored.precursor),
        notice=notice_line(explored.notice),
        slack=explored.slack,
        without_encounter=explored.without_encounter,
        named_properties=question.named_properties,
        strict=invocation.coverage == "strict",
        findings=findings,
        traces={name: str(path) for name, path in trace_paths.items()},
    )


def exit_code(question: Question, explored: Explored, answer: runfile.Run, *, strict: bool) -> Exit:
    """The exit code."""
    result = explored.result
    if result.distinct == 0 and question.property_names:
        return Exit.ASSUMPTION
    return runfile.exit_for_findings(
        answer,
        named_properties=question.named_properties,
        strict=strict,
        is_uncovered=result.complete and bool(runfile.uncovered_findings(answer)),
        expected=question.expected,
    )


def findings_of(result: Exploration) -> tuple[Finding, ...]:
    """The engine's findings. Where there is no initial state every promise holds of nothing, so each is VACUOUS."""
    if result.distinct:
        return result.findings
    return tuple(attrs.evolve(f, verdict=Verdict.VACUOUS) for f in result.findings)


def expectations(design: Design, words: Sequence[str]) -> dict[str, str]:
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


def violations(run: runfile.Run) -> list[tuple[str, Path]]:
    """The properties that are violated, each with the file of its trace."""
    return [
        (line["name"], Path(line["trace"]))
        for line in run["properties"]
        if line["verdict"] == Verdict.VIOLATED and line["trace"]
    ]


def show(out: Console, whole: Answer, *, quiet: bool = False) -> None:
    """The answer in words, the first counterexample, what to do about it, and one line at the end."""
    invocation, question, explored, answer = whole.invocation, whole.question, whole.explored, whole.run
    about = check_text.notes(
        question.instance,
        complete=explored.result.complete,
        stopped_by=explored.stopped_by,
        not_checked=question.not_checked(),
        grown_bounds=question.grown_bounds,
        decisive_names=[
            line["name"]
            for line in runfile.decisive_lines(
                answer["properties"], question.named_properties, strict=invocation.coverage == "strict"
            )
        ],
        has_gaps=whole.code is Exit.UNCOVERED and answer["verdict"] != Verdict.VACUOUS,
        is_by_name=bool(question.named_properties),
    )
    own = registry.own_option(question.instance.design)
    if not quiet:
        check_text.render(out, answer, question.instance.design, about)
        for i, (name, path) in enumerate(violations(answer)):
            if i == 0:
                evaluator = Evaluator(question.instance)
                print_short(out, path, evaluator)
                for text in remedy_lines(pages.what_to_do(path, load(path), evaluator), str(path), own):
                    out.print(text, soft_wrap=True)
            out.print(f"whole trace of {name}: insync show {path}{own}", soft_wrap=True)
        if answer["verdict"] == Verdict.HOLDS and explored.result.complete:
            out.print(f"\nwhat it looks like when it works: {samples(question.instance)}", soft_wrap=True)
        out.print(f"\nwritten to {whole.folder}/run.json", soft_wrap=True)
        if about.stopped_by and exploration.resumable(whole.folder, invocation.exploring):
            out.print(f"to go on from here, add: --resume {whole.folder}", soft_wrap=True)
    for name, word in expected_otherwise(answer, invocation.expect):
        out.print(f"expected {name}, but it is {word}", soft_wrap=True)
    out.print(check_text.result_line(answer, about), soft_wrap=True)


def samples(instance: Instance) -> str:
    """The command that makes a page of behaviours in which nothing goes wrong, in the same world."""
    words = ["insync sample", instance.design.name, options.command_options(instance.constants, instance.design)]
    words += [f"--without {action}" for action in registry.left_out(instance.design)]
    return " ".join(filter(None, words)) + f"{registry.own_option(instance.design)} --count 5 --html works.html"


def expected_otherwise(answer: runfile.Run, words: Sequence[str]) -> list[tuple[str, str]]:
    verdicts = {line["name"]: line["verdict"] for line in answer["properties"]}
    pairs = [(word, verdicts.get(word.partition("=")[0], "absent")) for word in words]
    return [(word, actual) for word, actual in pairs if word.partition("=")[2].upper() != actual]
