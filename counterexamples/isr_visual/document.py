"""One JSON document per trace: all that the page shows beside the states themselves, which are the ITF file.

A trace of ours whose model is at hand is run again first, so that a page cannot show what the model does not do;
any other is shown as it was written, without promises, source and branches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypedDict

import attrs

from isr_lang import Value
from isr_trace.cases import Case
from isr_trace.cause import cause_of
from isr_trace.diagrams import mermaid, plantuml
from isr_trace.diff import changes
from isr_trace.explain import StepRole, step_roles
from isr_trace.itf import itf_text
from isr_trace.lasso import checked_run
from isr_trace.reasons import ReasonEntry
from isr_trace.replay import (
    OUTSIDERS,
    Evaluator,
    Replay,
    Run,
    Tell,
    Values,
    actors_of,
    check_goal,
    names_of,
    tell_nobody,
)
from isr_trace.scene import EVENTS, View
from isr_trace.show import minimality, narration
from isr_trace.story import Story, story
from isr_trace.trace import Step, Trace, TraceError
from isr_visual.messages import Arrow, arrows
from isr_visual.model_script import model_script
from isr_visual.roles import CLIENTS, roles
from isr_visual.schedule import Counterfactual, counterfactual, mending, without_states
from isr_visual.sources import Source, with_helpers
from isr_visual.states import ChangeLine
from isr_visual.strip import Promise, Strip
from isr_visual.survival import Outcome, survival

SCHEMA = "insync/visual/1"
ROLES_UP_TO = 60
"""Steps of which each is tried without: what that costs grows with their square."""
DIAGRAMS_UP_TO = 200
"""Steps that anyone would want in one sequence diagram."""


@attrs.frozen
class Model:
    """The model of a trace, ready to run; `roomier` is the same with more room at the bounds that end the world.

    `against` is the design to compare with, `family` what the designs of this model are of.
    """

    evaluator: Evaluator
    roomier: Evaluator
    against: Evaluator | None = None
    family: str = ""


class StepEntry(TypedDict):
    """`role`: needed, enabling (of the steps in `enables`), removable, or not known."""

    step: int
    action: str
    parameters: str
    actor: str
    peer: str
    says: str
    events: list[str]
    changes: list[ChangeLine]
    role: str
    enables: list[int]


class CaseEntry(TypedDict):
    title: str
    tracker: list[str]
    result: str
    why_fails: str
    why_missed: str
    fix: str
    fixed_by: str
    command: str


class SentenceEntry(TypedDict):
    step: int | None
    part: str
    text: str


class StoryEntry(TypedDict):
    """`breaks`: the step at which the promise breaks; `cause`: the one that took the guarantee away, if known."""

    headline: str
    breaks: int | None
    cause: int | None
    sentences: list[SentenceEntry]


class CommandEntry(TypedDict):
    """`text`: what is typed, `what` for what."""

    what: str
    text: str


class TodoEntry(TypedDict):
    """What somebody can do now about the promise that breaks."""

    says: str
    commands: list[CommandEntry]


class VariableEntry(TypedDict):
    name: str
    type: str
    about: str


class Document(TypedDict):
    """`mismatch` says why today's model cannot vouch for the trace; `digest` is the SHA-256 of the ITF text.

    `model` is JavaScript (isr_visual.model_script), with room for one election more than the trace's bounds have;
    `states` are those of the trace in the form that it computes with. Both are empty where no model is at hand.
    """

    schema: str
    name: str
    digest: str
    mismatch: str
    design: str
    family: str
    summary: str
    model_hash: str
    property: str
    kind: str
    verdict: str
    promise: str
    bounds: dict[str, Value]
    changed: list[str]
    minimality: str
    loop: int | None
    anywhere: bool
    story: StoryEntry
    case: CaseEntry | None
    todo: TodoEntry | None
    variables: list[VariableEntry]
    steps: list[StepEntry]
    lost: list[list[str]]
    actions: dict[str, Source]
    helpers: dict[str, Source]
    properties: list[Promise]
    reasons: list[ReasonEntry]
    lanes: list[str]
    arrows: list[Arrow]
    survival: list[list[Outcome]]
    states: list[Values]
    model: str
    against: Counterfactual | None
    roles: dict[str, object]
    mermaid: str
    plantuml: str


def document(
    trace: Trace,
    name: str,
    *,
    model: Model | None = None,
    mismatch: str = "",
    case: Case | None = None,
    todo: tuple[str, Sequence[tuple[str, str]]] | None = None,
    tell: Tell = tell_nobody,
) -> Document:
    """The document of a trace; TraceError when the model is given and does not do what the trace says.

    `todo`: what to do about the promise that breaks, as a sentence, and commands, each with what it is for. `tell`: how
    far the work is.
    """
    run = checked_run(trace, Replay(model.evaluator)) if model is not None else None
    strip = Strip(model.evaluator) if model is not None else None
    diagrams = (mermaid(trace), plantuml(trace)) if 0 < len(trace.steps) <= DIAGRAMS_UP_TO else ("", "")
    actions, helpers = _sources(trace, model)
    views = [View(trace, i) for i in range(len(trace.states))]
    role_list = _roles(trace, run, model, tell)
    other = _against(trace, run, model)
    script = model_script(model.roomier.instance) if model is not None and run is not None else ""
    return Document(
        schema=SCHEMA,
        name=name,
        digest=digest(itf_text(trace)),
        mismatch=mismatch,
        design=trace.design,
        family=model.family if model is not None else "",
        summary=model.evaluator.instance.design.summary if model is not None else "",
        model_hash=trace.model_hash,
        property=trace.property_name,
        kind=trace.kind,
        verdict=trace.verdict,
        promise=_promise(trace, model),
        bounds=dict(trace.constants),
        changed=_design_changes(trace),
        minimality=minimality(trace.minimisation) if trace.minimisation is not None else "",
        loop=trace.loop,
        anywhere=trace.anywhere,
        story=_story(trace, run, model, role_list, other),
        case=_case(case) if case is not None else None,
        todo=_todo(*todo) if todo is not None else None,
        variables=_variables(trace, model),
        steps=_steps(trace, views, {s.index: (s.role, list(s.enables)) for s in role_list}),
        lost=[list(v.losses()) if v.replicas else [] for v in views],
        actions=actions,
        helpers=helpers,
        properties=strip.over(run.states) if strip is not None and run is not None else [],
        reasons=strip.table if strip is not None else [],
        lanes=_lanes(trace),
        arrows=arrows(trace),
        survival=survival(trace, run.states, model.roomier, tell) if model is not None and run is not None else [],
        states=list(run.states) if script and run is not None else [],
        model=script,
        against=without_states(other) if other is not None else None,
        roles=roles(),
        mermaid=diagrams[0],
        plantuml=diagrams[1],
    )


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _promise(trace: Trace, model: Model | None) -> str:
    promised = model.evaluator.instance.properties if model is not None else ()
    return next((p.doc for p in promised if p.name == trace.property_name), trace.promise)


def _design_changes(trace: Trace) -> list[str]:
    """How the design of the trace differs from the one of its name."""
    told = (("without", trace.without), ("not fair:", trace.unfair), ("strongly fair:", trace.strong))
    return [f"{what} {', '.join(actions)}" for what, actions in told if actions]


def _case(case: Case) -> CaseEntry:
    return CaseEntry(
        title=case.title,
        tracker=list(case.tracker),
        result=case.result,
        why_fails=case.why_fails,
        why_missed=case.why_missed,
        fix=case.fix,
        fixed_by=case.fixed_by.design if case.fixed_by is not None else "",
        command=case.command,
    )


def _todo(says: str, commands: Sequence[tuple[str, str]]) -> TodoEntry:
    return TodoEntry(says=says, commands=[CommandEntry(what=what, text=text) for what, text in commands])


def _variables(trace: Trace, model: Model | None) -> list[VariableEntry]:
    about = {v.name: v.doc for v in model.evaluator.instance.variables} if model is not None else {}
    return [
        VariableEntry(name=name, type=str(type) if type is not None else "", about=about.get(name, ""))
        for name, type in trace.variables.items()
    ]


def _steps(trace: Trace, views: list[View], roles_by_step: dict[int, tuple[str, list[int]]]) -> list[StepEntry]:
    steps: list[Step | None] = [*trace.steps] or [None] * (len(trace.states) - 1)
    entries: list[StepEntry] = []
    for i, step in enumerate(steps, 1):
        role, enables = roles_by_step.get(i, ("", []))
        entries.append(
            StepEntry(
                step=i,
                action=step.action if step is not None else "",
                parameters=trace.parameters_text(step) if step is not None else "",
                actor=step.actor if step is not None else "",
                peer=step.peer if step is not None else "",
                says=narration(trace, step) if step is not None else "",
                events=_events(views[i - 1], views[i]),
                changes=[ChangeLine(path=c.path, before=c.before, after=c.after) for c in changes(trace, i)],
                role=role,
                enables=enables,
            )
        )
    return entries


def _events(before: View, after: View) -> list[str]:
    """What a client or the controller would notice: the roles that changed, and whether something is lost."""
    if not after.replicas:
        return []
    changed = [role for role in EVENTS if before.values_by_role.get(role) != after.values_by_role.get(role)]
    return [*changed, "loss"] if list(after.losses()) != list(before.losses()) else changed


def _roles(trace: Trace, run: Run | None, model: Model | None, tell: Tell) -> tuple[StepRole, ...]:
    """Of each step whether the end needs it; nothing where nobody can say (no model, too long, liveness)."""
    if run is None or model is None or not trace.property_name or len(run.moves) > ROLES_UP_TO:
        return ()
    try:
        check_goal(run, model.evaluator, trace.property_name)
    except TraceError:
        return ()
    return step_roles(trace, run, Replay(model.evaluator), tell)


def _story(
    trace: Trace, run: Run | None, model: Model | None, role_list: tuple[StepRole, ...], other: Counterfactual | None
) -> StoryEntry:
    cause, mend = None, ""
    if run is not None and model is not None and role_list:
        parts = other["parts"] if other is not None else None
        cause = cause_of(trace, run, model.evaluator, model.roomier, role_list, parts)
    if other is not None and (role_list or trace.loop is not None):
        mend = mending(trace, other)
    narrative: Story = story(trace, cause, _promise(trace, model), mend)
    return StoryEntry(
        headline=narrative.headline,
        breaks=narrative.breaks,
        cause=cause.step if cause is not None else None,
        sentences=[SentenceEntry(step=s.step, part=s.part, text=s.text) for s in narrative.sentences],
    )


def _sources(trace: Trace, model: Model | None) -> tuple[dict[str, Source], dict[str, Source]]:
    helpers: dict[str, Source] = {}
    listed = model.evaluator.instance.actions if model is not None else ()
    return {a.name: with_helpers(a.action.where, helpers) for a in listed}, helpers


def _lanes(trace: Trace) -> list[str]:
    """Who has a line: outsiders that act, everyone of the acting sort, clients if any step concerns them."""
    acting = {step.actor for step in trace.steps if step.actor}
    arrow_ends = {end for a in arrows(trace) for end in (a["source"], a["target"])}
    named = names_of(actors_of(trace.variables.values()))
    outside = [o for o in OUTSIDERS if o in acting or o in arrow_ends]
    clients = [CLIENTS] if CLIENTS in arrow_ends else []
    return list(dict.fromkeys([*clients, *named, *outside, *sorted(acting - {*named, *outside})]))


def _against(trace: Trace, run: Run | None, model: Model | None) -> Counterfactual | None:
    if run is None or model is None or model.against is None or trace.anywhere:
        return None
    return counterfactual(trace, run.states, model.evaluator, model.against)
