"""The graph of implications among properties; every edge is decided by the solver.

An edge from one property says that every state with it, reachable or not, has the other, too. An edge from several says
from which conjuncts of an invariant a promise, or another conjunct, follows. An edge that the solver cannot decide is
not drawn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations

import attrs

from isr_check.smt.hypotheses import SMALL
from isr_check.smt.induction import Induction, Query
from isr_check.smt.obligations import Counterexample, Proved, decide
from isr_check.smt.step_solver import Incremental
from isr_check.smt.strategy import Strategy
from isr_check.smt.terms import logic
from isr_check.smt.terms.design_terms import Choice
from isr_lang import Design, Property
from isr_lang import Value as Setting

Names = tuple[str, ...]
Say = Callable[[str], None]


@attrs.frozen
class Edge:
    """All sources together imply the target, and none can be left out."""

    sources: Names
    target: str


@attrs.frozen
class PropertyGraph:
    """The implications among the `promises` and the `conjuncts` of an invariant.

    `alone`: implications by one property, without those that follow from two others. `together`: implications by
    several properties. `alike`: groups of equivalent properties, by the first of each. `independent`: conjuncts that no
    others imply, and promises that do not follow. `trivial`: properties of every state, at these bounds.
    `undecided_edges`: edges that the solver did not decide. `summaries`: property -> its summary.
    """

    promises: Names
    conjuncts: Names
    alone: tuple[Edge, ...]
    together: tuple[Edge, ...]
    alike: Mapping[str, Names]
    independent: Names
    trivial: Names
    undecided_edges: tuple[Edge, ...]
    summaries: Mapping[str, str]

    def edges(self) -> list[Edge]:
        return [*self.alone, *self.together]


class _Small:
    """Implications where every bound has a small value.

    The solver decides them quickly, and each state that refutes one implication is first tried on the next ones.
    """

    def __init__(
        self, design: Design, constants: Mapping[str, Setting], properties: Sequence[Property], seconds: float
    ) -> None:
        induction = Induction(design, constants, ())
        self.terms = {p.name: logic.term(induction.promised_truth(p, induction.old)) for p in properties}
        query = Query(tuple(induction.hypotheses), logic.term(False), induction.old, Choice({}, ()), None)
        always = [x for _, x in induction.assertions(query)]
        self.solver = Incremental([*always, *induction.translation.defining(list(self.terms.values()))], seconds)
        self.solver.assume(self.terms)
        self.visited: list[dict[str, bool]] = []

    def refuted(self, sources: Sequence[str], target: str) -> bool:
        """Whether a state seen before satisfies the sources and not the target."""
        return any(not s[target] and all(s[n] for n in sources) for s in self.visited)

    def implied(self, sources: Sequence[str], target: str) -> Names | None:
        """Sources that suffice to imply the target; None if all together do not, or if the solver does not know."""
        if self.refuted(sources, target):
            return None
        found = self.solver.fails([self.terms[target]], sources)
        if found.value is not None:
            self.visited.append({n: bool(found.value(x)) for n, x in self.terms.items()})
        return found.used_assumptions if found.status == "unsat" else None

    def fewest(self, sources: Sequence[str], target: str) -> Names | None:
        """Sources that imply the target and none of which can be left out; None if all together do not imply it."""
        enough = self.implied(sources, target)
        if enough is None:
            return None
        return tuple(self.solver.smaller_core(self.terms[target], enough, time.process_time() + self.solver.seconds))


class _Open:
    """Implications where bounds are left open, asked as obligations of a proof are."""

    def __init__(
        self, design: Design, constants: Mapping[str, Setting | None], properties: Sequence[Property], seconds: float
    ) -> None:
        self.design, self.constants, self.seconds = design, constants, seconds
        self.properties = {p.name: p for p in properties}

    def implied(self, sources: Sequence[str], target: str) -> bool | None:
        """Whether the sources imply the target; None if the solver does not know."""
        induction = Induction(self.design, self.constants, [self.properties[n] for n in sources])
        wanted = self.properties[target]
        obligation = next(o for o in induction.obligations([wanted], ["-"]) if o.kind == "implies")
        strategy = Strategy(induction, {})
        result = decide(induction, obligation, self.seconds, first=strategy.decide)
        return True if isinstance(result, Proved) else False if isinstance(result, Counterexample) else None


def property_graph(
    design: Design,
    constants: Mapping[str, Setting | None],
    conjuncts: Sequence[Property],
    properties: Sequence[Property] = (),
    *,
    seconds: float = 10.0,
    say: Say = lambda _: None,
) -> PropertyGraph:
    """The implications among promises and conjuncts, for every value of a bound that is None."""
    return _Builder(design, constants, conjuncts, properties, seconds, say).graph()


class _Builder:
    def __init__(
        self,
        design: Design,
        constants: Mapping[str, Setting | None],
        conjuncts: Sequence[Property],
        properties: Sequence[Property],
        seconds: float,
        say: Say,
    ) -> None:
        self.say = say
        known = {c.name: c for c in conjuncts}
        self.properties = [*conjuncts, *(w for w in properties if w.kind == "always" and w.name not in known)]
        self.promises = tuple(w.name for w in properties if w.kind == "always")
        self.conjuncts = tuple(known)
        bounds = {c.name: c for c in design.constants()}
        small = {k: max(bounds[k].low, min(bounds[k].high, SMALL)) if v is None else v for k, v in constants.items()}
        self.small = _Small(design, small, self.properties, seconds)
        open_bounds = any(v is None for v in constants.values())
        self.open = _Open(design, constants, self.properties, seconds) if open_bounds else None
        self.undecided_edges: list[Edge] = []

    def graph(self) -> PropertyGraph:
        names = [p.name for p in self.properties]
        trivial = [b for b in names if self._is_confirmed((), b, self.small.implied((), b))]
        message = [n for n in names if n not in trivial]
        pairs = {
            (a, b) for a, b in permutations(message, 2) if self._is_confirmed((a,), b, self.small.implied((a,), b))
        }
        self.say(f"{len(pairs)} implications of {len(message) * (len(message) - 1)} hold alone")
        alike = _alike(message, pairs)
        selection = list(dict.fromkeys(alike))
        together: list[Edge] = []
        independent: list[str] = []
        for b in message:
            alone = any(a not in alike.get(b, (b,)) for a, t in pairs if t == b)
            rest = [n for n in self.conjuncts if n not in _group(alike, b)]
            sources = None if alone or b not in selection else self.small.fewest(rest, b)
            if sources is not None and self._is_confirmed(sources, b, sources):
                together.append(Edge(sources, b))
            elif not alone and b in selection:
                independent.append(b)
        return PropertyGraph(
            self.promises,
            self.conjuncts,
            tuple(Edge((a,), b) for a, b in reduced(selection, pairs)),
            tuple(together),
            {a: alike[a] for a in selection if len(alike[a]) > 1},
            tuple(independent),
            tuple(trivial),
            tuple(self.undecided_edges),
            {p.name: p.summary for p in self.properties},
        )

    def _is_confirmed(self, sources: Names, target: str, small: Names | None) -> bool:
        """Whether an implication that holds with small bounds (`small`) also holds where bounds are open."""
        if small is None or self.open is None:
            return small is not None
        answer = self.open.implied(sources, target)
        if answer is None:
            self.undecided_edges.append(Edge(sources, target))
        return answer is True


def _group(alike: Mapping[str, Names], name: str) -> Names:
    return next((g for g in alike.values() if name in g), (name,))


def _alike(names: Sequence[str], pairs: set[tuple[str, str]]) -> dict[str, Names]:
    """Groups of properties that imply each other, by the first of each; a property may be alone in its group."""
    found: dict[str, Names] = {}
    for a in names:
        if not any(a in g for g in found.values()):
            found[a] = (a, *(b for b in names if (a, b) in pairs and (b, a) in pairs))
    return found


def reduced(names: Sequence[str], pairs: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs of a transitive relation between these names, without those that follow from two other pairs."""
    inside = [(a, b) for a, b in permutations(names, 2) if (a, b) in pairs]
    kept = set(inside)
    return [(a, b) for a, b in inside if not any((a, c) in kept and (c, b) in kept for c in names if c not in (a, b))]
