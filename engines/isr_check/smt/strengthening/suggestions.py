"""Suggestions of conjuncts that strengthen an invariant: they hold in all reachable states, and are inductive.

Candidates are made from templates over the design's own variables and definitions. A sample of states refutes most of
them, an exploration more, and the solver drops those that some step can break. All this happens with small bounds. A
person names and understands what is suggested, and then proves it for all bounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import attrs

from isr_check.engine import Limits
from isr_check.native.states import holding, states
from isr_check.reference import State
from isr_check.smt.strengthening.houdini import Houdini, InductionFailure
from isr_check.smt.strengthening.samples import Sample
from isr_check.smt.strengthening.templates import Clause, Templates, fails_in, strongest
from isr_check.smt.strengthening.vocabulary import Context, Vocabulary, contexts, definitions
from isr_lang import Design, Instance, Property
from isr_lang import Value as Setting
from isr_lang.nodes import Node

SMALL = 2
"""The value that a bound gets if it was left open."""
BATCH = 60
"""How many properties one exploration checks."""

Say = Callable[[str], None]


@attrs.frozen
class Effort:
    """Limits of a search for suggestions.

    The sample has `states` states, and an exploration `explored`. A round generates `generated` candidates and asks the
    solver about `asked` of them. `question` is the limit of one question in seconds, `seconds` that of everything.
    """

    states: int = 1500
    explored: int = 300_000
    generated: int = 3000
    asked: int = 300
    question: float = 10.0
    rounds: int = 4
    seconds: float = 300.0


@attrs.frozen
class Suggestion:
    """A conjunct that holds and is inductive. `needed`: the proof that was found uses it.

    `excludes` names the obligations whose counterexample it rules out; `size` says how much there is to read.
    """

    text: str
    property: Property
    needed: bool
    excludes: tuple[str, ...]
    size: int


@attrs.frozen
class Suggestions:
    """The result. `failing`: obligations that fail without suggestions; `unproved`: those that fail with all of them.

    `generated` clauses hold in the sample of states, `held` of them in all explored states, and `asked` of these say
    something new. `complete`: all states were explored. `in_time`: every candidate was decided.
    """

    failing: tuple[str, ...]
    generated: int
    held: int
    asked: int
    kept: tuple[Suggestion, ...]
    unproved: tuple[str, ...]
    seconds: float
    complete: bool
    in_time: bool

    @property
    def offered(self) -> tuple[Suggestion, ...]:
        """The suggestions that the proof uses."""
        return tuple(s for s in self.kept if s.needed)

    @property
    def restores(self) -> bool:
        """Whether the suggestions prove everything, at these bounds."""
        return not self.unproved

    def lines(self, most: int = 20) -> list[str]:
        """The report, with at most `most` suggestions that the proof does not use."""
        explored = "all states" if self.complete else "the states that were explored"
        told = [
            f"{len(self.failing)} obligations fail" + (f": {_some(self.failing)}" if self.failing else ""),
            f"{self.generated} candidates hold in a sample, {self.held} in {explored}, {self.asked} say something new, "
            f"{len(self.kept)} are inductive beside what is known ({self.seconds:.1f} s)",
        ]
        if not self.in_time:
            told.append("The time was up before every candidate was decided.")
        if self.failing:
            verdict = "With these everything is proved at these bounds:" if self.restores else "These help:"
            told += [verdict, *(f"  {_line(s)}" for s in self.offered)] if self.offered else ["Nothing helps."]
            if self.unproved:
                told.append(f"Still not proved: {_some(self.unproved)}")
        others = [s for s in self.kept if not s.needed]
        told += ["Inductive too:", *(f"  {_line(s)}" for s in others[:most])] if others else []
        return told + ([f"  and {len(others) - most} more"] if len(others) > most else [])


def _line(s: Suggestion) -> str:
    return s.text + (f"    (rules out {_some(s.excludes, 2)})" if s.excludes else "")


def _some(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def suggest(
    design: Design,
    constants: Mapping[str, Setting | None],
    known: Sequence[Property] = (),
    wanted: Sequence[Property] = (),
    effort: Effort | None = None,
    say: Say = lambda _: None,
) -> Suggestions:
    """Suggest conjuncts that help to prove the known conjuncts and the wanted properties, with small bounds."""
    return Search(design, constants, known, wanted, effort or Effort(), say).run()


class Search:
    """Candidates for one design at small bounds: made, and refuted by states as far as states refute them."""

    def __init__(
        self,
        design: Design,
        constants: Mapping[str, Setting | None],
        known: Sequence[Property],
        wanted: Sequence[Property],
        effort: Effort,
        say: Say,
    ) -> None:
        self.began = time.monotonic()
        self.end = self.began + effort.seconds
        self.design, self.known, self.wanted, self.effort, self.say = design, known, wanted, effort, say
        known_bounds = {c.name: c for c in design.constants()}
        self.constants: dict[str, Setting] = {
            k: max(known_bounds[k].low, min(known_bounds[k].high, SMALL)) if v is None else v
            for k, v in constants.items()
        }
        self.instance = Instance(design, self.constants)
        self.excludes: dict[str, tuple[str, ...]] = {}
        self.clauses: dict[str, Clause] = {}
        self.counts = [0, 0, 0]
        self.complete = self.in_time = True
        self._sample: list[State] = []

    def run(self) -> Suggestions:
        houdini = Houdini(self.design, self.constants, self.known, self.wanted, self.effort.question)
        failures = first = houdini.failures(())
        alive: list[str] = []
        for number in range(self.effort.rounds):
            self.say(f"round {number + 1}: {len(failures)} obligations fail ({self.elapsed()})")
            asked = self._round(houdini, failures, pairs=number > 0)
            if not asked and number > 0:
                break
            houdini.add(asked)
            found = houdini.inductive(self.end)
            if found is None:
                self.in_time = False  # what earlier rounds kept is inductive all the same
                break
            alive = found
            self.say(f"{len(alive)} are inductive beside what is known ({self.elapsed()})")
            failures = houdini.failures(alive)
            if not failures:
                break
            if time.monotonic() > self.end:
                self.in_time = False
                break
        needed, unproved = houdini.support(alive, self.end + self.effort.seconds / 3)
        return self._report(first, alive, needed, unproved)

    def _round(self, houdini: Houdini, failures: Sequence[InductionFailure], pairs: bool) -> list[Property]:
        """The candidates of a round that hold in all explored states and say something new."""
        generated = self.generated(failures, pairs)
        self.counts[0] += len(generated)
        self.say(f"{len(generated)} candidates hold in a sample of the states ({self.elapsed()})")
        named = {f"candidate-{len(self.clauses) + i + 1}": c for i, c in enumerate(generated)}
        self.clauses |= named
        held = self.held([c.property(n) for n, c in named.items()])
        self.counts[1] += len(held)
        self.say(f"{len(held)} hold in the states that were explored ({self.elapsed()})")
        asked = houdini.new_to_the_known(held, self.effort.asked)
        self.counts[2] += len(asked)
        self.say(f"{len(asked)} say something new ({self.elapsed()})")
        return asked

    def _report(
        self, failures: Sequence[InductionFailure], alive: Sequence[str], needed: Sequence[str], unproved: Sequence[str]
    ) -> Suggestions:
        kept: list[Suggestion] = []
        for name in alive:
            clause = self.clauses[name]
            excludes = self.excludes.get(str(clause), ())
            kept.append(Suggestion(str(clause), clause.property(name), name in needed, excludes, clause.size))
        kept.sort(key=lambda s: (not s.needed, -len(s.excludes), s.size, s.text))
        generated, held, asked = self.counts
        seconds = time.monotonic() - self.began
        failing = tuple(c.name for c in failures)
        return Suggestions(
            failing, generated, held, asked, tuple(kept), tuple(unproved), seconds, self.complete, self.in_time
        )

    def elapsed(self) -> str:
        return f"{time.monotonic() - self.began:.1f} s"

    def generated(self, failures: Sequence[InductionFailure], pairs: bool) -> list[Clause]:
        """Candidates that hold in a sample, the most useful first; with `pairs`, also those with two guards."""
        if not self._sample:
            self._sample = states(self.instance, Limits(max_states=self.effort.explored), self.effort.states)
        names = [v.name for v in self.instance.variables]
        told = [c for c in failures if c.state]
        bad = [tuple(c.state[n] for n in names) for c in told]
        roots = [p.condition for p in (*self.known, *self.wanted)]
        design = attrs.evolve(self.design, properties=(*self.known, *self.wanted))
        found: list[Clause] = []
        for context in contexts(design):
            vocabulary = Vocabulary(design, context, definitions(design, roots))
            found += self._about(context, vocabulary, bad, pairs)
        clauses = self._unheard(strongest(found))
        for context in dict.fromkeys(c.context for c in clauses):
            self._note(context, [c for c in clauses if c.context is context], told, bad)
        clauses.sort(key=lambda c: (not self.excludes.get(str(c)), len(c.guards) > 1, c.size, str(c)))
        return clauses[: self.effort.generated]

    def _unheard(self, clauses: Sequence[Clause]) -> list[Clause]:
        """The clauses that no earlier round had."""
        earlier = {str(c) for c in self.clauses.values()}
        return [c for c in clauses if str(c) not in earlier]

    def _about(self, context: Context, vocabulary: Vocabulary, bad: list[State], pairs: bool) -> list[Clause]:
        columns, cases = (
            Sample(self.design, self.constants, context, vocabulary.terms, s) for s in (self._sample, bad)
        )
        templates = Templates(columns, cases, context, vocabulary)
        return templates.units(self.effort.generated) + (
            templates.pairs(self.effort.generated) if bad and pairs else []
        )

    def _note(
        self, context: Context, clauses: Sequence[Clause], told: Sequence[InductionFailure], bad: list[State]
    ) -> None:
        """Note for each clause the obligations whose counterexamples it rules out."""
        if not bad:
            return
        terms = list(dict.fromkeys(p for c in clauses for p in _atoms(c)))
        column = Sample(self.design, self.constants, context, terms, bad)
        for c in clauses:
            if rows := fails_in(column, c):
                ruled = (*self.excludes.get(str(c), ()), *(told[i].name for i in rows))
                self.excludes[str(c)] = tuple(dict.fromkeys(ruled))

    def held(self, properties: list[Property]) -> list[Property]:
        """The properties that hold in every state that an exploration reaches within its limits."""
        held: list[Property] = []
        for i in range(0, len(properties), BATCH):
            batch = properties[i : i + BATCH]
            instance = Instance(attrs.evolve(self.design, properties=tuple(batch)), self.constants)
            names, complete = holding(instance, tuple(p.name for p in batch), Limits(self.effort.explored))
            held += [p for p in batch if p.name in names]
            self.complete &= complete
        return held


def _atoms(clause: Clause) -> list[Node]:
    """The conditions of a clause, without negations around them."""
    return [p.args[0] if p.op == "not" else p for p in clause.parts]
