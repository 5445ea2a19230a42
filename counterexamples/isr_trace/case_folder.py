"""A counterexample as a short document: its folder is generated from the trace and the prose of `cases.toml`.

The order is that of the counterexamples in CCF's repository: result, property, steps, minimality, reproduce,
why checking missed it before, why it fails. The tests generate every folder again and compare.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from isr_trace.cases import CASES, Case, Corpus, FixedBy, option
from isr_trace.diff import changes
from isr_trace.explain import Explanation, explain, reason_lines, step_names
from isr_trace.itf import itf_text, write_text
from isr_trace.lasso import FairStep, Loop, put_off_there
from isr_trace.minimise import minimise
from isr_trace.replay import Evaluator
from isr_trace.scene import legend, scene
from isr_trace.show import ending, minimality, narration, plain_text
from isr_trace.trace import Trace, TraceError

TRACE_FILE = "trace.itf.json"
GENERATED = "<!-- generated from cases.toml and the model; do not edit -->"

INTRODUCTION = """\
Every folder tells the shortest behaviour that breaks a promise, step by step. It is a bug of Kafka's, a rule
without which it would have one, or a loss that a setting means.

Each is found by the command in its README, on the design named here. With the same bounds it is not found on the
design in the last column. The tests find all of them again and compare every file.

In a checkout the command is `.venv/bin/insync`. It ends with exit code 12 where a promise is broken, and with 0 where
it holds in every reachable state. `insync show TRACE --interactive` walks through a trace. `insync explain TRACE`
says which part of the promise fails."""

ROUND = """\
What has to come to pass is broken by a behaviour that goes round for ever. Such a trace has a beginning and a loop, and
its command ends with exit code 13."""

PUBLIC = """\
H is hachikuji/kafka-specification, V the KRaft part of Vanlightly/kafka-tlaplus. TLC's lengths are in states, the
initial one included. Ours are in steps, one less."""


def tell(
    case: Case, trace: Trace, evaluator: Evaluator, corpus: str = CASES, mend: Evaluator | None = None
) -> dict[str, str]:
    """The files of the case's folder in a corpus, by name, from a counterexample that some engine found.

    `mend`: the design that mends the case, at its bounds. It says what ends a loop. TraceError when the trace is of
    another design or property than the case.
    """
    about = (trace.design, trace.property_name, trace.without)
    if about != (case.design, case.property_name, case.without):
        raise TraceError(
            f"{case.name} is about {case.property_name} on {case.design}{without(case.without)}, "
            f"the trace about {trace.property_name} on {trace.design}{without(trace.without)}"
        )
    minimal = minimise(trace, evaluator) if trace.loop is None else trace
    put_off = put_off_there(trace, mend) if mend is not None else None
    return case_files(case, minimal, explain(minimal, evaluator), corpus, put_off)


def case_files(
    case: Case, trace: Trace, explanation: Explanation, corpus: str = CASES, put_off: FairStep | None = None
) -> dict[str, str]:
    """The files of the folder from a trace that is minimal already; `put_off`: what ends its loop in the mend."""
    return {"README.md": _readme(case, trace, explanation, corpus, put_off), TRACE_FILE: itf_text(trace)}


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write them, each whole or not at all; TraceError when that is impossible."""
    for name, text in files.items():
        write_text(folder / name, text)


def stale(folder: Path, files: Mapping[str, str]) -> list[str]:
    """The names of the files in the folder that are missing or differ from these."""
    return [name for name, text in files.items() if _text(folder / name) != text]


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def index(corpus: Corpus, traces: Mapping[str, Trace]) -> str:
    """`counterexamples/cases/README.md`: every case on a line, then the bugs that wait for a part of the model."""
    lines = ["# Counterexamples", "", GENERATED, "", *INTRODUCTION.splitlines(), ""]
    if any(case.fixed_by is not None and case.fixed_by.to_depth for case in corpus.cases):
        lines += ["Where a README says so, that design was explored for as many steps, and not whole.", ""]
    if any(trace.loop is not None for trace in traces.values()):
        lines += [*ROUND.splitlines(), ""]
    lines += ["| case | what happens | found on | by | steps | not on |", "|---|---|---|---|---|---|"]
    for case in corpus.cases:
        steps = _step_count(traces[case.name]) if case.name in traces else ""
        fixed = _fixing_design(case.fixed_by) if case.fixed_by is not None else "expected"
        lines.append(
            f"| [{case.name}]({case.name}/README.md) | {_cell(case.title)} | `{case.design}` "
            f"| `{case.property_name}` | {steps} | {fixed} |"
        )
    if corpus.waiting:
        lines += [
            "",
            "## Waiting",
            "",
            "Bugs of the same class that need a part which the model does not have.",
        ]
        lines += ["", "| bug | in brief | needs |", "|---|---|---|"]
        lines += [f"| {w.name} | {_cell(w.bug)} | {_cell(w.needs)} |" for w in corpus.waiting]
    return "\n".join(lines) + "\n"


def _fixing_design(by: FixedBy) -> str:
    """The design, and the settings that differ where the design alone does not say it."""
    return f"`{by.design}`" + "".join(f", `{option(k, v)}`" for k, v in by.settings.items())


def _step_count(trace: Trace) -> str:
    """How many steps there are, and how many of them are the loop."""
    steps = len(trace.steps)
    if trace.loop is None:
        return str(steps)
    return f"{trace.loop}, then {steps - trace.loop or 'none'} for ever"


def _readme(case: Case, trace: Trace, explanation: Explanation, corpus: str, put_off: FairStep | None) -> str:
    tracker_text = f" ({', '.join(case.tracker)})" if case.tracker else ""
    because = plain_text(reason_lines(explanation.reason, lines=False))
    sections: list[tuple[str, list[str]]] = [
        ("Result", [_result(case, trace), "", case.result, *_operator(case)]),
        ("Property", [f"`{case.property_name}`: {_sentences(explanation.promise or trace.promise)}"]),
        ("Steps", list(_steps(trace))),
        ("Minimality", list(_minimality(case, trace, explanation)))
        if explanation.loop is None
        else ("Why it may go on for ever", list(_fairness(explanation.loop))),
        ("Reproduce", list(_reproduce(case, corpus))),
        ("Why checking missed it before", [case.why_missed]),
        ("Why it fails", [case.why_fails, "", *_block(because)]),
        ("What would fix it" if case.is_open else "What fixed it", list(_fix(case, put_off))),
    ]
    if case.public:
        sections.append(("What the public specifications find", [*PUBLIC.splitlines(), "", case.public]))
    body = "\n".join(f"## {title}\n\n" + "\n".join(lines) + "\n" for title, lines in sections)
    return f"# {case.title}{tracker_text}\n\n{GENERATED}\n\n{body}"


def without(actions: Sequence[str]) -> str:
    """` without a, b`, or nothing."""
    return f" without {', '.join(actions)}" if actions else ""


def _operator(case: Case) -> Iterator[str]:
    if case.operator is not None:
        yield ""
        yield from (f"- **{question}?** {answer}" for question, answer in case.operator.answers())


def _result(case: Case, trace: Trace) -> str:
    design = f"`{case.design}`{without([f'`{a}`' for a in case.without])}"
    last = len(trace.steps)
    how = f"in {last} steps"
    if trace.loop is not None:
        again = f"{last - trace.loop} that come again" if trace.loop < last else "none"
        how = f"by {trace.loop} steps, and then {again} for ever"
    return f"**{trace.verdict}**: {design} breaks `{case.property_name}` {how}."


def _steps(trace: Trace) -> Iterator[str]:
    yield "| step | action | actor | what changed |"
    yield "|---|---|---|---|"
    for i, step in enumerate(trace.steps, 1):
        changed = "<br>".join(f"`{_cell(str(c))}`" for c in changes(trace, i))
        yield f"| T{i} | `{_cell(trace.step_text(step))}` | {step.actor} | {changed} |"
    if trace.loop is not None:
        yield ""
        said = ending(trace).plain
        yield f"{said[0].upper()}{said[1:]}."
    yield ""
    yield "In words:"
    yield ""
    for i, step in enumerate(trace.steps, 1):
        yield f"{i}. {_sentences(narration(trace, step)) or step.action.replace('_', ' ')}"
    picture = scene(trace, len(trace.states) - 1)
    if picture is not None:
        yield ""
        yield "In the end:" if trace.loop is None else "In the loop:"
        yield ""
        yield from _block("\n".join((*picture.lines(), "", legend(trace))))


def _fairness(loop: Loop) -> Iterator[str]:
    yield "The promise is about fair behaviours. A step is one action with one choice of its parameters. It is"
    yield ""
    for what, actions in loop.fairness():
        yield f"- {what}: {', '.join(f'`{a}`' for a in actions)}."
    yield ""
    if not loop.fair_steps:
        yield "None of these steps is possible in the loop. So a fair behaviour may stay there."
        return
    yield "These steps are possible in the loop. Each is taken there, or is again and again impossible."
    yield ""
    yield "| fair step | possible after | taken at |"
    yield "|---|---|---|"
    for step in loop.fair_steps:
        yield f"| `{_cell(step.text)}` | {step_names(step.possible_at)} | {step_names(step.taken_at) or 'no step'} |"


def _minimality(case: Case, trace: Trace, explanation: Explanation) -> Iterator[str]:
    if trace.minimisation is not None:
        yield minimality(trace.minimisation).capitalize() + "."
    removable = [f"T{s.index}" for s in explanation.steps if s.role == "removable"]
    if removable:
        yield f"It would end alike without {', '.join(removable)}."
        return
    yield ""
    yield "| without | then |"
    yield "|---|---|"
    for s in explanation.steps:
        cannot = ", ".join(f"T{i}" for i in s.enables)
        then = f"{cannot} cannot happen" if cannot else f"all else happens, and `{case.property_name}` holds"
        yield f"| T{s.index} | {then} |"


def _reproduce(case: Case, corpus: str) -> Iterator[str]:
    yield from _block(f"{case.command}\ninsync show {corpus}/{case.name}/{TRACE_FILE}", "sh")


def _fix(case: Case, put_off: FairStep | None) -> Iterator[str]:
    if case.fixed_by is None:
        yield "Nothing: this is what the setting means, and it is shown so that nobody expects otherwise."
        return
    yield case.fix
    yield ""
    if put_off is not None:
        yield f"The same loop is not fair there: `{put_off.text}` {put_off.delay}."
        yield ""
    if case.fixed_by.to_depth:
        design = f"`{case.fixed_by.design}`"
        yield f"At the same bounds {design} keeps the property for as many steps. This goes on to its end:"
        yield ""
        yield from _block(case.fixed_command, "sh")
        return
    yield f"At the same bounds `{case.fixed_by.design}` keeps the property:"
    yield ""
    yield from _block(case.fixed_command, "sh")
    if put_off is not None:
        return
    yield ""
    yield "The bounds are the smallest that show the bug. They may leave no room for an election, a rejoin and a commit"
    yield "after the last fault, or notice too few mistakes. Then this command says `TOO SMALL` (exit code 23), not"
    yield "`HOLDS`, and what is enough."


def _sentences(text: str) -> str:
    """The model's notes join sentences with semicolons; a page has each on its own."""
    return re.sub(r"; ([a-zA-Z])(?![^()]*\))", lambda start: f". {start[1].upper()}", text)


def _block(text: str, language: str = "text") -> list[str]:
    return [f"```{language}", *text.rstrip("\n").split("\n"), "```"]


def _cell(text: str) -> str:
    """Text that does not end a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")
