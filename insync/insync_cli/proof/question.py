"""What `insync prove` asks and what it reports: the question from the command line, the report as data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

import attrs

from insync_cli import registry
from insync_cli.exits import Exit, UsageError, did_you_mean
from insync_cli.families import family_of
from insync_cli.options import ANY, SmallerWorld, constants, group, repeated_option
from insync_cli.runfile import KINDS, weakest
from isr_check.engine import TYPE_OK, Verdict

if TYPE_CHECKING:
    from isr_check.smt import Induction, Obligation, Result
    from isr_lang import Conjunct, Design, Instance, Property, Value

SCHEMA = "insync/prove/1"
PROVABLE = ("always", "step")
"""The kinds of property that induction can prove."""
SWITCHED_OFF = "not promised at these settings"
"""Why a promise is vacuous that the settings do not make."""
NOTHING = "-"
"""The name of no conjunct."""
PARTIAL = "PARTIAL"
"""The word for obligations that are all proved, and from which no promise follows: nobody asked its premises."""


class ObligationLine(TypedDict):
    kind: str
    conjunct: str
    action: str | None
    verdict: str
    queries: int
    seconds: float
    core: list[str]
    reason: str
    trace: str | None
    reached: str | None
    behaviour: str | None


class PromiseLine(TypedDict):
    name: str
    kind: str
    verdict: str
    reason: str


class PremiseLine(TypedDict):
    """A premise in prove.json. `verdict`: HOLDS if it is met, VACUOUS if it is never met, BUDGETED if none was seen.

    `depth`: the steps to the witness. `states`: how many were seen, at these `bounds`.
    """

    name: str
    text: str
    verdict: str
    depth: int | None
    states: int
    bounds: dict[str, Value]


class ExploredLine(TypedDict):
    bounds: dict[str, Value]
    verdict: str
    distinct: int
    complete: bool
    disagreements: list[str]
    run: str


class ProofStats(TypedDict):
    obligations: int
    asked: int
    queries: int
    solver_seconds: float
    seconds: float


class Report(TypedDict):
    """`line` is the one that ends the text. `extent` says of which worlds the promises are proved.

    `not_covered`: fault budgets that are 0, or that no action spends. `omissions`: promises that were not asked, or
    that the settings switch off; the verdict does not speak of them.
    """

    schema: str
    command: list[str]
    version: str
    model_hash: str
    design: str
    bounds: dict[str, Value | None]
    workers: int
    seconds: float
    verdict: str
    partial: bool
    line: str
    extent: str
    not_covered: list[str]
    omissions: list[str]
    premises: list[PremiseLine]
    promises: list[PromiseLine]
    obligations: list[ObligationLine]
    explored: ExploredLine | None
    stats: ProofStats


@attrs.frozen(eq=False)
class Question:
    """`instance`: the design where what is left open has the design's own value; with those `constants` is None.

    `only`, `actions`: a part of the obligations, if not empty.
    """

    instance: Instance
    constants: Mapping[str, Value | None]
    conjuncts: Sequence[Conjunct]
    properties: Sequence[Property]
    named_properties: tuple[str, ...]
    only: tuple[str, ...]
    actions: tuple[str, ...]

    @property
    def design(self) -> Design:
        return self.instance.design

    @property
    def partial(self) -> bool:
        return bool(self.only or self.actions)

    @property
    def promises(self) -> list[Property]:
        return [c.promise for c in self.conjuncts]

    @property
    def open(self) -> list[str]:
        return [name for name, value in self.constants.items() if value is None]

    @property
    def promise_names(self) -> list[str]:
        """The promises that get a verdict; none where only a part of the obligations is asked.

        What the settings switch off is no promise there. It gets a verdict where somebody names it, or nothing is left.
        """
        if self.partial:
            return []
        own = [TYPE_OK] if TYPE_OK in self.named_properties else []
        names, off = [p.name for p in self.properties], self.instance.off_properties
        return [*([n for n in names if n not in off or n in self.named_properties] or names), *own]

    def of_claims(self, claims: Iterable[str]) -> Question:
        """The same question with the conjuncts that these promises take."""
        return attrs.evolve(self, conjuncts=registry.invariant_of(self.design, claims))

    def obligations(self, induction: Induction, stop: Callable[[], bool] = lambda: False) -> list[Obligation]:
        """All that is asked; KeyboardInterrupt if it is to stop before all are stated, for nothing is decided yet."""
        wanted = [p for p in self.properties if not self.only or p.name in self.only]
        names = {c.name for c in self.conjuncts} | {TYPE_OK}
        only = [n for n in self.only if n in names] or ([NOTHING] if self.only else [])
        obligations: list[Obligation] = []
        for o in induction.obligations(wanted, only, self.actions):
            if stop():
                raise KeyboardInterrupt
            obligations.append(o)
        return obligations

    def closed(self) -> dict[str, Value]:
        """Every constant, where it was left open as the design has it."""
        return dict(self.instance.constants)

    def folder(self) -> str:
        """A folder below runs/. The same question gets the same folder, so that asking again replaces the answer."""
        asked = [p.name for p in self.properties], self.only, self.actions
        parts = [self.design.model_hash(), self.constants, *asked]
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]
        return f"runs/prove-{self.design.name}-{digest}"


def faults_not_covered(design: Design, constants: Mapping[str, Value | None]) -> tuple[str, ...]:
    """The fault budgets, as options without dashes, of which a proof says nothing: 0, or spent by no action."""
    idle = idle_budgets(design)
    return tuple(c.option[2:] for c in design.constants() if c.budget and (c.name in idle or constants[c.name] == 0))


def idle_budgets(design: Design) -> set[str]:
    """The fault budgets that no action spends: none changes a variable that counts up to that budget."""
    from isr_lang.types import NumberType

    spent_by = {
        v.name: v.type.high.attr.name
        for v in design.variables
        if isinstance(v.type, NumberType) and v.type.high is not None and v.type.high.op == "constant"
    }
    spent = {spent_by[u.variable] for a in design.actions for u in a.updates if u.variable in spent_by}
    budgets = {c.name for c in design.constants() if c.budget}
    return (budgets & set(spent_by.values())) - spent


def proof_defaults(design: Design) -> Mapping[str, Value]:
    """What a proof takes a constant to be that is not given, where that is not the design's default."""
    plan = family_of(design).proof_plan()
    return {**dict.fromkeys(plan.open_bounds, ANY), **plan.constants}


@attrs.frozen(kw_only=True)
class OpenWorld(SmallerWorld):
    """A design whose bounds may be left open."""

    constants: Mapping[str, Value] = constants(proof_defaults)


@attrs.frozen(kw_only=True)
class Part:
    """A part of the obligations."""

    only: tuple[str, ...] = repeated_option("CONJUNCT", "this conjunct or promise", str)
    action: tuple[str, ...] = repeated_option("ACTION", "this action", str)


@attrs.frozen(kw_only=True)
class ProofRequest:
    """What is to be proved, in the user's own words."""

    world: OpenWorld = group(OpenWorld)
    properties: tuple[str, ...] = repeated_option("P", "prove only this one", str, name="property")
    part: Part = group(Part, "a part of the proof, from which no promise follows")


def question(invocation: ProofRequest) -> Question:
    """UsageError for names that do not exist and constants that contradict each other."""
    from isr_lang import Conjunct

    design = invocation.world.design
    plan = family_of(design).proof_plan()
    if not registry.invariant_of(design):
        proved = family_of(design).proved
        raise UsageError(f"no invariant is known that speaks of {design.name}" + (f"; {proved}" if proved else ""))
    constants_by_name = {c.name: c for c in design.constants()}
    told = invocation.world.constants
    free = [k for k, v in told.items() if v == ANY and not constants_by_name[k].names]
    fixed = {k: v for k, v in plan.constants.items() if k in constants_by_name} | dict(told)
    instance = registry.instance_of(design, {k: v for k, v in fixed.items() if k not in free})
    left_open = [k for k in constants_by_name if k in free or (k in plan.open_bounds and k not in fixed)]
    named_properties = invocation.properties
    provable = {p.name: p for p in design.properties if p.kind in PROVABLE}
    for name in named_properties:
        registry.check_property(design, name)
        if name not in (*provable, TYPE_OK):
            raise UsageError(f"{name} is not something that always holds; induction cannot prove it")
    property_names = [n for n in plan.promises if n in provable and not named_properties] + [
        n for n in named_properties if n in provable
    ]
    conjuncts = registry.invariant_of(design, property_names)
    only, actions = invocation.part.only, invocation.part.action
    _check("conjunct or promise", only, [TYPE_OK, *(c.name for c in conjuncts), *provable], design)
    _check("action", actions, [a.name for a in design.actions], design)
    own = {c.name for c in conjuncts}
    more = [n for n in only if n in provable and n not in own]
    if actions:  # what an action does to a promise is asked like a conjunct: it held before the step
        conjuncts += [Conjunct(provable[n]) for n in more if provable[n].kind == "always"]
    property_names += [n for n in more if n not in property_names]
    return Question(
        instance,
        instance.constants | dict.fromkeys(left_open),
        conjuncts,
        [provable[n] for n in property_names],
        named_properties,
        only,
        actions,
    )


def _check(what: str, names: Iterable[str], choices: Sequence[str], design: Design) -> None:
    for name in names:
        if name not in choices:
            hint = did_you_mean(name, choices) or f"; those are {', '.join(choices)}"
            raise UsageError(f"the proof of {design.name} has no {what} '{name}'{hint}")


def obligation_line(obligation: Obligation, result: Result) -> ObligationLine:
    from isr_check.smt import Proved, Unknown
    from isr_check.smt.matrix import verdict

    return ObligationLine(
        kind=obligation.kind,
        conjunct=obligation.conjunct,
        action=obligation.action,
        verdict=verdict(result),
        queries=len(obligation.queries),
        seconds=round(result.seconds, 3),
        core=list(result.core) if isinstance(result, Proved) else [],
        reason=result.reason if isinstance(result, Unknown) else "",
        trace=None,
        reached=None,
        behaviour=None,
    )


Doubt = Callable[[str], tuple[Verdict, str] | None]
"""The name of a promise -> why it does not deserve PROVED, and what it deserves; None if it does."""


def promise_lines(
    proof_question: Question, lines: Sequence[ObligationLine], off: Iterable[str], doubt: Doubt = lambda _: None
) -> list[PromiseLine]:
    """The verdict on each wanted promise; none where only a part of the obligations was asked."""
    weak = [line for line in lines if line["kind"] != "implies" and line["verdict"] != "proved"]
    promise_kinds = {p.name: p.kind for p in proof_question.properties}
    promises: list[PromiseLine] = []
    for name in proof_question.promise_names:
        word, reason = _verdict_of(name, lines, weak, off, doubt(name))
        kind = promise_kinds.get(name, "always")
        promises.append(PromiseLine(name=name, kind=KINDS.get(kind, kind), verdict=word.value, reason=reason))
    return promises


def _verdict_of(
    name: str,
    lines: Sequence[ObligationLine],
    weak: Sequence[ObligationLine],
    off: Iterable[str],
    doubt: tuple[Verdict, str] | None,
) -> tuple[Verdict, str]:
    """The verdict on one promise, and why."""
    own = [line for line in lines if line["conjunct"] == name]
    missing = [line for line in own if line["verdict"] != "proved"]
    if name in off:
        return Verdict.VACUOUS, SWITCHED_OFF
    if any(line["reached"] == "reachable" for line in own):
        return Verdict.VIOLATED, "its counterexample can be reached"
    if any(line["verdict"] == "error" for line in own):
        return Verdict.ERROR, "the engines disagree"
    if doubt is not None and doubt[0] is Verdict.VACUOUS:
        return doubt
    if any(line["verdict"] == "counterexample" for line in weak):
        return Verdict.UNKNOWN, "the invariant is not inductive"
    if weak:
        return Verdict.UNKNOWN, "the invariant is not proved"
    if any(line["verdict"] == "counterexample" for line in missing):
        return Verdict.UNKNOWN, "it does not follow from the invariant"
    if missing:
        return Verdict.UNKNOWN, "no answer in time"
    return doubt or (Verdict.PROVED, "")


def exit_code(report: Report) -> Exit:
    """The answer as a number; what is not known is never a success, and neither is a part of a proof."""
    verdicts = [line["verdict"] for line in report["promises"]]
    obligation_verdicts = [line["verdict"] for line in report["obligations"]]
    explored = report["explored"]
    if "error" in obligation_verdicts or Verdict.ERROR in verdicts or (explored and explored["disagreements"]):
        return Exit.INTERNAL
    if Verdict.VIOLATED in verdicts:
        return Exit.SAFETY
    if "counterexample" in obligation_verdicts:
        return Exit.NOT_INDUCTIVE
    if Verdict.VACUOUS in verdicts:
        return Exit.UNCOVERED
    return (
        Exit.INCONCLUSIVE
        if "unknown" in obligation_verdicts or Verdict.UNKNOWN in verdicts or not obligation_verdicts or not verdicts
        else Exit.HOLDS
    )


def verdict(promises: Sequence[PromiseLine], lines: Sequence[ObligationLine]) -> str:
    """The word for the whole: of its weakest promise, or PARTIAL where obligations are proved and no promise is."""
    if promises:
        return weakest([line["verdict"] for line in promises])
    said = {line["verdict"] for line in lines}
    return Verdict.ERROR.value if "error" in said else PARTIAL if said == {"proved"} else Verdict.UNKNOWN.value
