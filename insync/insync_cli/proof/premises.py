"""Whether what a promise speaks about can happen at all in the world that is proved, at the same settings and actions.

A promise of which the premise is never met is proved of nothing. A proof does not see that, so an exploration looks for
a witness before it. Bounds that the proof leaves open have small values there, because a proof for every value is one
for these, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import attrs

from insync_cli import registry
from insync_cli.families import family_of
from insync_cli.own_premises import own_premises
from insync_cli.proof.question import PremiseLine, Question
from insync_cli.room_line import options_of
from isr_check.engine import Engine, Exploration, Limits, Progress, Verdict
from isr_check.reference import Evaluator
from isr_lang import Property, Value

SECONDS = 30.0
"""Seconds to look for what the promises speak about, at each of two bounds; a witness takes one or two."""
MEMORY = 1_500_000_000
"""Bytes at which such an exploration gives up."""
SMALL = 2
"""What an open bound has at least where its first value showed no witness; one of leader epochs and the like."""


@attrs.frozen
class Premises:
    """What was found of the premises: by promise its line, and whether there is an initial state."""

    by_promise: Mapping[str, PremiseLine]
    possible: bool = True

    @property
    def lines(self) -> list[PremiseLine]:
        """Each premise once."""
        return list({line["name"]: line for line in self.by_promise.values()}.values())

    def vacuous(self, promise: str) -> str:
        """Why the promise says nothing; empty if it says something, or if that is not known."""
        if not self.possible:
            return "there is no initial state"
        line = self.by_promise.get(promise)
        if line is None or line["verdict"] != Verdict.VACUOUS:
            return ""
        return f"never, in all {line['states']:,} states at {bounds_text(line)}: {line['text']}"

    def doubt(self, promise: str) -> tuple[Verdict, str] | None:
        """Why the promise does not deserve PROVED: VACUOUS, or UNKNOWN where nobody saw that it says anything."""
        if reason := self.vacuous(promise):
            return Verdict.VACUOUS, reason
        line = self.by_promise.get(promise)
        if line is None or line["verdict"] != Verdict.BUDGETED:
            return None
        return Verdict.UNKNOWN, f"not seen, in {line['states']:,} states at {bounds_text(line)}: {line['text']}"


def bounds_text(line: PremiseLine) -> str:
    return options_of(line["bounds"]) or "the bounds given"


def look(proof_question: Question, engine: Engine, limits: Limits, progress: Callable[[Progress], None]) -> Premises:
    """Look for a witness of the premise of every promise: at small bounds, then at larger ones where any are open.

    An exploration ends where every premise has a witness. `limits` are those of each.
    """
    if not any(True for _ in Evaluator(proof_question.instance).initial_states()):
        return Premises({}, possible=False)
    family = family_of(proof_question.design)
    premise_of = {p.name: q for p in proof_question.properties for q in family.premises([p.name])}
    premise_of |= own_premises(proof_question.design, [p.name for p in proof_question.properties])
    answers: dict[str, PremiseLine] = {}
    for constants in _worlds(proof_question):
        open_ones = {q.name: q for q in premise_of.values() if not _is_met(answers.get(q.name))}
        if not open_ones:
            break
        instance = registry.instance_of(proof_question.design, constants).promising(*open_ones.values())
        result = engine(instance, tuple(open_ones), limits, progress)
        bounds = {name: constants[name] for name in proof_question.open}
        for name, premise in open_ones.items():
            line = _line(premise, result, bounds)
            if name not in answers or line["verdict"] != Verdict.BUDGETED:
                answers[name] = line  # what was decided at smaller bounds stays, where larger ones take too long
    return Premises({promise: answers[q.name] for promise, q in premise_of.items()})


def _is_met(line: PremiseLine | None) -> bool:
    return line is not None and line["verdict"] == Verdict.HOLDS


def _line(premise: Property, result: Exploration, bounds: Mapping[str, Value]) -> PremiseLine:
    finding = result.finding(premise.name)
    return PremiseLine(
        name=premise.name,
        text=premise.doc,
        verdict=finding.verdict.value,
        depth=None if finding.path is None else len(finding.path.steps),
        states=result.distinct,
        bounds=dict(bounds),
    )


def _worlds(proof_question: Question) -> Iterator[dict[str, Value]]:
    """Every constant, with small values for what is open: first those with which `check` begins, then more."""
    fixed = {k: v for k, v in proof_question.constants.items() if v is not None}
    design = proof_question.design
    first = {**proof_question.closed(), **family_of(design).constants_with_room(design, fixed)}
    yield first
    most = {c.name: c.high for c in design.constants() if c.name in proof_question.open}
    more = {name: max(_whole(first[name]), min(SMALL, high)) for name, high in most.items()}
    if any(first[name] != value for name, value in more.items()):
        yield {**first, **more}


def _whole(value: Value) -> int:
    assert isinstance(value, int), "an open bound is a number"
    return value
