"""How much of an invariant is found without whoever wrote it: candidates, what Houdini keeps, and what follows from it.

Candidates come from two sources that know nothing of the invariant: templates over the design's own variables and
definitions, and the actions themselves (provenance). What is kept is inductive by itself. A part of a conjunct is
found if it holds in every state that satisfies all that was kept. Candidates are looked for at small bounds; at
larger ones Houdini drops what is true of the small ones only, and what follows is asked there, too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import attrs

from isr_check.smt.strengthening.houdini import Houdini, InductionFailure
from isr_check.smt.strengthening.provenance import provenances
from isr_check.smt.strengthening.suggestions import Effort, Say, Search
from isr_check.smt.strengthening.templates import Clause
from isr_lang import Design, Node, Property
from isr_lang import Value as Setting
from isr_lang.nodes import apply


@attrs.frozen
class Share:
    """What was found of one conjunct: so many of the parts that say more than the types do."""

    conjunct: str
    found: int
    parts: int

    @property
    def whole(self) -> bool:
        return self.found == self.parts


@attrs.frozen
class Derivation:
    """What was tried, what was kept of it, and what follows. `in_time`: every candidate was decided.

    `inductive` candidates are so together at the small bounds; those `kept`, at the larger ones, too.
    """

    templates: int
    provenances: int
    inductive: int
    kept: tuple[Clause, ...]
    shares: tuple[Share, ...]
    unproved: tuple[str, ...]
    seconds: float
    in_time: bool

    def lines(self) -> list[str]:
        """The report: the figures, each conjunct, and what was kept."""
        whole = sum(s.whole for s in self.shares)
        found, parts = sum(s.found for s in self.shares), sum(s.parts for s in self.shares)
        told = [
            f"{self.templates} candidates from templates and {self.provenances} from actions; "
            f"{self.inductive} are inductive together, {len(self.kept)} also at larger bounds ({self.seconds:.1f} s)",
            f"Of {len(self.shares)} conjuncts {whole} follow from these, and of their {parts} parts {found}.",
        ]
        told += [f"  {s.conjunct}: {'found' if s.whole else f'{s.found} of {s.parts} parts'}" for s in self.shares]
        told += ["Of the promises nothing is left to prove." if not self.unproved else _left(self.unproved)]
        if not self.in_time:
            told.append("The time was up before every candidate was decided, so more may be found.")
        return [*told, "Kept:", *(f"  {c}" for c in self.kept)]


def _left(unproved: Sequence[str]) -> str:
    return f"{len(unproved)} obligations of the promises fail beside these, the first of them {unproved[0]}"


def derive(
    design: Design,
    constants: Mapping[str, Setting | None],
    larger: Mapping[str, Setting],
    invariant: Sequence[Property],
    wanted: Sequence[Property],
    effort: Effort | None = None,
    say: Say = lambda _: None,
) -> Derivation:
    """How much of `invariant` follows from what is found for the sake of the promises `wanted`.

    Candidates are looked for with `constants`, and kept if they are inductive with those that are `larger`, too.
    """
    effort, began = effort or Effort(), time.monotonic()
    search = Search(design, constants, (), wanted, effort, say)
    houdini = Houdini(design, search.constants, (), wanted, effort.question)
    sources = {"templates": 0, "provenances": 0}
    named: dict[str, Clause] = {}
    failures: list[InductionFailure] = houdini.failures(())
    alive: list[str] = []
    in_time = True
    for number in range(effort.rounds):
        made = {"templates": search.generated(failures, pairs=number > 0)}
        made["provenances"] = provenances(design) if number == 0 else []
        asked: list[Property] = []
        for source, clauses in made.items():
            sources[source] += len(clauses)
            fresh = {f"{source}-{len(named) + k}": c for k, c in enumerate(clauses)}
            named |= fresh
            asked += houdini.new_to_the_known(search.held([c.property(n) for n, c in fresh.items()]), effort.asked)
        say(f"round {number + 1}: {len(asked)} candidates hold in the states that were explored ({search.elapsed()})")
        houdini.add(asked)
        found = houdini.inductive(search.end)
        if found is None:
            in_time = False
            break
        alive = found
        failures = houdini.failures(alive)
        say(f"{len(alive)} are inductive; {len(failures)} obligations of the promises fail ({search.elapsed()})")
        if not failures or not asked:
            break
    wide = Houdini(design, {**search.constants, **larger}, (), wanted, effort.question)
    wide.add([named[n].property(n) for n in alive])
    kept = wide.inductive(search.end)
    return Derivation(
        sources["templates"],
        sources["provenances"],
        len(alive),
        tuple(named[n] for n in kept or ()),
        tuple(shares(wide, invariant, kept or ())),
        tuple(f.name for f in wide.failures(kept or ())),
        time.monotonic() - began,
        in_time and kept is not None,
    )


def shares(houdini: Houdini, invariant: Sequence[Property], alive: Sequence[str]) -> list[Share]:
    """For each conjunct, how many of its parts follow from these candidates."""
    found: list[Share] = []
    for c in invariant:
        pieces = [attrs.evolve(c, name=f"{c.name}-{k}", condition=x) for k, x in enumerate(parts(c.condition))]
        said = set(houdini.follows(pieces, ()))
        more = [p for p in pieces if p.name not in said]
        found.append(Share(c.name, len(houdini.follows(more, alive)), len(more)))
    return found


def parts(condition: Node) -> list[Node]:
    """Conditions of which the conjunction is the same, as small as conjunctions, quantifiers and arrows allow."""
    match condition.op:
        case "and":
            return [x for a in condition.args for x in parts(a)]
        case "forall":
            domain, body = condition.args
            return [apply("forall", domain, x, attr=condition.attr) for x in parts(body)]
        case "implies":
            guard, body = condition.args
            return [apply("implies", guard, x) for x in parts(body)]
        case _:
            return [condition]
