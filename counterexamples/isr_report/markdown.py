"""The report as Markdown, from the same material: for a pull request, a wiki, or a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from isr_report.html import HOLDS
from isr_report.material import Control, Material, Question, Story, claims, target
from isr_report.matrix.coverage import probes
from isr_report.matrix.grid import FaultEntry, PromiseEntry, is_probe, verdict_of
from isr_report.sections.overview import COUNTS, asked_of, recommended_runs, weakest
from isr_trace.diagrams import mermaid
from isr_trace.scene import scene


def markdown(m: Material) -> str:
    """The text of report.md; links are relative to it, as those of the page."""
    parts = [
        ["# What Kafka's replication promises, and when it does not"],
        [f"insync {m.version}, model {m.model_hash}. Every number is from a run file beside this file."],
        ["## Questions", *_answers(m)],
        ["## Guarantees", *_overview(m)],
        ["## Where a promise is broken", *_broken_promises(m)],
        ["## Stories", *(line for s in m.stories for line in _story(s))],
        ["## Rejected alternatives", *_alternatives(m)],
        ["## Negative controls", *_controls(m)],
        ["## Probes", *_probes(m)],
        ["## How much was explored", *_space(m)],
        ["## Traceability: what is missing", *_missing(m)],
        ["## What is not modelled", m.assumptions],
        ["## Every claim again", *_claims(m)],
    ]
    return "\n\n".join(line for part in parts for line in part if line) + "\n"


def rows(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table; a bar in a cell is escaped."""
    listed = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    text = ["| " + " | ".join(line) + " |" for line in [list(header), ["---"] * len(header), *listed]]
    return "\n".join(text)


def _answers(m: Material) -> Iterator[str]:
    """A line for each question; at the end those that no run of this report answers."""
    without: list[str] = []
    for q in m.questions:
        story, check = q.story(m.stories), m.checks.get(q.check)
        if story is not None:
            yield _answer_of_run(q, story.bug_run, story.case.property_name, story.page)
            continue
        if check is not None:
            yield _answer_of_run(q, check.run, check.promise, check.page)
            continue
        cell = q.cell(m.matrix)
        entry = verdict_of(cell, q.promise) if cell is not None else None
        if cell is None or entry is None:
            without.append(f"- {q.asks} **Not answered.**")
            continue
        word = q.holds if entry["verdict"] in HOLDS else q.breaks if entry["verdict"] == "VIOLATED" else "Undecided"
        run = f"[{entry['verdict']}]({m.folder}/{cell['run']})"
        shown = f", [in {entry['depth']} steps]({target(m, entry['trace'])})" if entry["trace"] else ""
        yield f"- {q.asks} **{word}** ({q.design}, `{q.promise}`: {run}{shown})"
    yield from without


def _answer_of_run(q: Question, run: Control, promise: str, page: str) -> str:
    word = q.holds if run.verdict in HOLDS else q.breaks if run.verdict == "VIOLATED" else "Undecided"
    steps = f", [in {run.depth} steps]({page})" if page and run.depth else ""
    return f"- {q.asks} **{word}** ({run.design}, `{promise}`: [{run.verdict}]({run.run}){steps})"


def _overview(m: Material) -> Iterator[str]:
    usual = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in m.matrix["usual"].items())
    if asked := recommended_runs(m.matrix):
        yield "At the settings that Kafka's documentation recommends:"
        yield "\n".join(f"- {c['design']}, {f['says']}: `{p['name']}` {_verdict(m, f, p)}" for f, c, p in asked)
    yield f"At {usual}; the weakest verdict under one fault and under two, and what breaks it."
    designs = [d["name"] for d in m.matrix["designs"]]
    yield rows(
        ("promise", *designs),
        ((f"{says} (`{name}`)", *(_summary(m, name, d) for d in designs)) for name, says in m.matrix["client"].items()),
    )


def _summary(m: Material, promise: str, design: str) -> str:
    parts: list[str] = []
    for words, two in COUNTS:
        if found := asked_of(m, design, promise, two=two):
            broken = ", ".join(_verdict(m, f, p) for f, _, p in found if p["verdict"] == "VIOLATED")
            parts.append(f"{words}: {broken or weakest(found)['verdict']}")
    return "; ".join(parts) or "not promised"


def _verdict(m: Material, fault: FaultEntry, entry: PromiseEntry) -> str:
    """The verdict; of a broken promise with the fault, the steps and the counterexample."""
    if entry["verdict"] != "VIOLATED" or not entry["trace"]:
        return entry["verdict"]
    return f"VIOLATED [{fault['name']} in {entry['depth']}]({target(m, entry['trace'])})"


def _broken_promises(m: Material) -> Iterator[str]:
    lines: list[tuple[str, ...]] = []
    for c in m.matrix["cells"]:
        no = [p for p in c["promises"] if p["verdict"] == "VIOLATED" and not is_probe(p)]
        shown = ", ".join(f"[`{p['name']}` {p['depth']}]({target(m, p['trace'])})" for p in no if p["trace"])
        if no:
            settings = ", ".join(f"{k.replace('_', '-')} {v}" for k, v in c["settings"].items())
            lines.append((c["design"], settings, c["fault"], shown))
    yield rows(("design", "settings", "fault", "broken, in so many steps"), lines)


def _story(s: Story) -> Iterator[str]:
    yield f"### {s.case.title}"
    known = f" {', '.join(s.case.tracker)}." if s.case.tracker else ""
    yield f"`{s.case.property_name}` on `{s.case.design}`.{known} [Walk through it]({s.page}), [trace]({s.itf})."
    yield s.case.result.strip()
    yield "\n".join(f"- T{i}: `{s.trace.step_text(step)}`" for i, step in enumerate(s.trace.steps, 1))
    drawn = scene(s.trace, len(s.trace.states) - 1)
    if drawn is not None:
        yield "```\n" + "\n".join(drawn.lines()) + "\n```"
    yield f"```mermaid\n{mermaid(s.trace).strip()}\n```"
    yield f"**What would have stopped it.** {s.case.fix.strip() or 'Nothing: this is what the setting means.'}"


def _alternatives(m: Material) -> Iterator[str]:
    for a in m.alternatives:
        if a.story is not None:
            killed = f"[The trace that killed it]({a.story.page})."
            yield f"- **{a.design}**: {a.summary}. Not taken, for {a.because.rstrip('.')}. {killed}"
    others = ", ".join(f"`{a.design}`" for a in m.alternatives if a.story is None)
    if others:
        yield f"Not run for this page, which says nothing of them: {others}."


def _controls(m: Material) -> Iterator[str]:
    def row_cells(s: Story) -> Iterator[str]:
        yield f"[{s.case.name}]({s.page})"
        for c in (s.bug_run, s.fix_run):
            yield f"{c.design}: [{c.verdict}]({c.run}), {c.distinct:,} states" if c is not None else ""

    yield rows(("story", "where it is", "where it is mended"), ([*row_cells(s)] for s in m.stories))


def _probes(m: Material) -> Iterator[str]:
    def witness_text(name: str, depth: int | None, trace: str | None) -> str:
        return f"[{depth} steps]({target(m, trace)})" if trace else f"no run reaches {name}"

    yield rows(
        ("probe", "reached in runs", "shortest witness"),
        (
            (
                f"`{p.name}`",
                f"{p.witness_count} of {p.run_count}",
                witness_text(p.name, p.shortest["depth"], p.shortest["trace"])
                if p.shortest
                else witness_text(p.name, None, None),
            )
            for p in probes(m.matrix)
        ),
    )


def _space(m: Material) -> Iterator[str]:
    def row_cells(name: str) -> Iterator[str]:
        own = [c for c in m.matrix["cells"] if c["design"] == name]
        covered = m.covered.get(name)
        yield name
        yield f"{len(own)}"
        for key in ("distinct", "generated"):
            yield f"{sum(c[key] for c in own):,}"
        yield f"{max((c['depth'] for c in own), default=0)}"
        yield ", ".join(f"`{a}`" for a in covered.never) if covered is not None else ""

    header = ("design", "runs", "states", "steps taken", "depth", "actions that no run took")
    yield rows(header, ([*row_cells(d["name"])] for d in m.matrix["designs"]))


def _missing(m: Material) -> Iterator[str]:
    if m.traceability is None:
        yield "Made outside of a checkout: the sources are not here."
    else:
        yield "\n".join(f"- {line}" for line in m.traceability.missing) or "Nothing."


def _claims(m: Material) -> Iterator[str]:
    yield "In [claims.json](claims.json), each with its command and the verdicts that it must give. The first of them:"
    yield "\n".join(f"    {c.command}" for c in claims(m)[:1])
