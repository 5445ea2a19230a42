"""What takes a finding its worth, for any model: a premise that is never met, bounds that leave no room."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from isr_check.best_first import SearchProgress
from isr_check.engine import Engine, Exploration, Finding, Limits, Progress, Verdict
from isr_check.family import Worth
from isr_check.room_search import Room, find_room, room_limits
from isr_lang import Design, Property, Value
from isr_lang.nodes import Node, apply

PROMISES = ("always", "step", "eventually")
OPEN_VERDICTS = (Verdict.SAMPLED, Verdict.BUDGETED, Verdict.UNKNOWN)
"""The verdicts on a premise without a witness of which it is not decided whether it is ever met."""


def premises_of(names: Iterable[str], premises: Mapping[str, Property]) -> tuple[Property, ...]:
    """The premises of the promises of these names, each once; `premises` has them by the name of the promise."""
    return tuple({premises[name].name: premises[name] for name in names if name in premises}.values())


def without_premises(
    exploration: Exploration, property_names: Sequence[str], premises: Mapping[str, Property]
) -> Exploration:
    """The findings on the properties of these names: a promise that holds, while its premise has no witness, is
    vacuous.
    """
    own = {p.name for p in premises.values()} - set(property_names)
    absences = {
        f.name for f in exploration.findings if f.name in own and f.path is None and f.verdict not in OPEN_VERDICTS
    }
    findings = [
        attrs.evolve(f, verdict=Verdict.VACUOUS)
        if f.verdict is Verdict.HOLDS and f.name in premises and premises[f.name].name in absences
        else f
        for f in exploration.findings
        if f.name not in own
    ]
    return attrs.evolve(exploration, findings=tuple(findings))


def antecedent_of(promise: Property) -> Property | None:
    """What an implication speaks about, as a probe: `forall(p.implies(q))` is true of nothing where no `p` ever holds.

    None for a promise of another form. It tells less than a premise that somebody wrote, and is there for every one.
    """
    kind = {"always": "sometimes", "step": "sometimes-step"}.get(promise.kind)
    condition = _antecedent(promise.condition)
    if kind is None or condition is None:
        return None
    doc = f"What {promise.name} speaks about happens."
    return attrs.evolve(promise, name=f"{promise.name}-speaks", kind=kind, condition=condition, doc=doc)


def _antecedent(node: Node) -> Node | None:
    if node.op == "forall":
        inner = _antecedent(node.args[1])
        return None if inner is None else apply("exists", node.args[0], inner, attr=node.attr)
    if node.op != "implies":
        return None
    inner = _antecedent(node.args[1])
    return node.args[0] if inner is None else apply("and", node.args[0], inner)


def promises_without_encounter(exploration: Exploration, premises: Mapping[str, Property]) -> tuple[str, ...]:
    """The promises that random walks do not violate, and of which they did not meet what they speak about.

    `exploration` has the findings on the premises, too.
    """
    names = {f.name for f in exploration.findings if f.verdict is Verdict.SAMPLED and f.path is None}
    return tuple(name for name in premises if name in names and premises[name].name in names)


def judge_findings(findings: Sequence[Finding], room_answer: Room) -> tuple[Finding, ...]:
    """The findings; a promise that holds where there is no room for the faults says too little.

    Where it was not decided whether there is room, it is not decided what the promise says.
    """
    if room_answer.witness is not None:
        return tuple(findings)
    word = Verdict.BUDGETED if room_answer.stopped else Verdict.TOO_SMALL
    return tuple(
        attrs.evolve(f, verdict=word) if f.kind in PROMISES and f.verdict is Verdict.HOLDS else f for f in findings
    )


@attrs.frozen
class Story:
    """A behaviour for which bounds are to leave room: a watched design, its milestones, and bounds that have room."""

    design: Design
    milestones: tuple[Property, ...]
    larger: Mapping[str, Value]


def worth_with_room(
    exploration: Exploration,
    names: Sequence[str],
    premises: Mapping[str, Property],
    story: Story,
    constants: Mapping[str, Value],
    engine: Engine,
    limits: Limits,
    progress: Callable[[Progress], None],
    search_progress: SearchProgress,
) -> Worth:
    """What the findings are worth by their premises, and by the room that the bounds leave for one story."""
    without_encounter = promises_without_encounter(exploration, premises)
    nonvacuous = without_premises(exploration, names, premises)
    if not any(f.kind in PROMISES and f.verdict is Verdict.HOLDS for f in nonvacuous.findings):
        return Worth(nonvacuous, without_encounter=without_encounter)
    most = room_limits(limits, exploration.distinct)
    answer = find_room(story.design, story.milestones, constants, story.larger, engine, most, progress, search_progress)
    judged = attrs.evolve(nonvacuous, findings=judge_findings(nonvacuous.findings, answer))
    return Worth(judged, answer, without_encounter=without_encounter)
