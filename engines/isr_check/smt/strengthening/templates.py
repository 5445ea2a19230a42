"""Candidate conjuncts: clauses `guard & guard => relation` about elements that hold in all states of a sample.

Logically a clause is a set of conditions of which at least one holds. A clause that a shorter or stronger one implies
is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import product

import attrs
import numpy as np
from numpy.typing import NDArray

from isr_check.smt.strengthening.samples import NOWHERE, Column, Sample, Truths
from isr_check.smt.strengthening.vocabulary import (
    Context,
    Vocabulary,
    negated,
    parameters,
    size,
    stronger,
    substituted,
)
from isr_lang import Binder, Node, Property, text
from isr_lang.nodes import apply
from isr_lang.types import SetType

Key = tuple[str, ...]
Floats = NDArray[np.float32]

ROWS = 500
"""How many rows of a sample are tried first."""
GUARDS, RELATIONS = 300, 900
"""How many guards and relations are tried, the shortest, for clauses with two guards."""


@attrs.frozen(eq=False)
class Clause:
    """The clause that for all elements of the context the guards imply the relation."""

    context: Context
    guards: tuple[Node, ...]
    relation: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        """The conditions of which at least one holds: the negated guards, and the relation."""
        return (*map(negated, self.guards), self.relation)

    @property
    def size(self) -> int:
        """How much there is to read; shorter clauses are suggested first."""
        return sum(map(size, (*self.guards, self.relation))) + 2 * len(self.context)

    def property(self, name: str) -> Property:
        """The clause as a conjunct of this name."""
        binders = {e.name: Binder(e.type, e.name) for e in self.context}
        meaning = {e.name: Node("bound", (), binders[e.name], e.type) for e in self.context}
        node = substituted(self.relation, meaning)
        if self.guards:
            guards = [substituted(g, meaning) for g in self.guards]
            node = apply("implies", reduce(lambda a, b: apply("and", a, b), guards), node)
        for e in reversed(self.context):
            node = apply("forall", Node("every", (), None, SetType(e.type)), node, attr=binders[e.name])
        return Property(name, "always", node, "", NOWHERE)

    def __str__(self) -> str:
        return text(self.property("").condition).replace("old.", "s.")


class Names:
    """Gives keys to clauses; clauses that differ in names of elements only have the same key."""

    def __init__(self) -> None:
        self._texts: dict[tuple[Node, Context, Context], str] = {}

    def key(self, context: Context, parts: Iterable[Node]) -> Key:
        """The least of the clause's texts."""
        chosen = list(parts)
        named = frozenset[str]().union(*map(parameters, chosen))
        used = tuple(e for e in context if e.name in named)
        ways = (used, used[::-1]) if len(used) == 2 and used[0].type == used[1].type else (used,)
        return min(tuple(sorted(self._text(p, used, way) for p in chosen)) for way in ways)

    def _text(self, part: Node, used: Context, way: Context) -> str:
        if (part, used, way) not in self._texts:
            numbered = {e.name: Node("parameter", (), f"{e.type}{i}", e.type) for i, e in enumerate(way)}
            self._texts[part, used, way] = _ordered(substituted(part, numbered))
        return self._texts[part, used, way]


def _ordered(condition: Node) -> str:
    if condition.op == "not":
        return "~" + _ordered(condition.args[0])
    if condition.op == "equal":
        return " == ".join(sorted(map(text, condition.args)))
    return text(condition)


class Templates:
    """The clauses about some elements that hold in every row of a sample, the most useful first.

    `cases` are counterexamples to induction, as rows. A clause that is false in such a row rules it out, so it is
    useful.
    """

    def __init__(self, sample: Sample, cases: Sample, context: Context, vocabulary: Vocabulary) -> None:
        self.context, self.sample = context, sample
        relations = list(dict.fromkeys((*vocabulary.guards(), *vocabulary.relations())))
        equalities = [r for r in vocabulary.relations() if r.op == "equal"]
        self.guards = _varying(sample, vocabulary.guards())
        self.more = [*self.guards, *_varying(sample, equalities)]
        self.relations = relations
        self.cases = cases

    def units(self, most: int) -> list[Clause]:
        """Clauses with no guard or with one, at most `most` of the latter."""
        after, fails = _matrix(self.sample, self.relations), 1 - _matrix(self.cases, self.relations)
        always = _all(after)
        found = [Clause(self.context, (), r) for r, a in zip(self.relations, always, strict=True) if a]
        before, at = _matrix(self.sample, self.guards), _matrix(self.cases, self.guards)
        relations = [r for r, a in zip(self.relations, always, strict=True) if not a]
        i, k = _places((before @ (1 - after[~always]).T) == 0)
        useful = (at @ fails[~always].T)[i, k] > 0
        sizes = _sizes(self.guards)[i] + _sizes(relations)[k]
        for n in np.lexsort((sizes, ~useful))[:most]:
            found.append(Clause(self.context, (self.guards[i[n]],), relations[k[n]]))
        return [c for c in found if _about_all(c)]

    def pairs(self, most: int) -> list[Clause]:
        """At most `most` clauses with two guards, both of which are needed; only clauses that rule out a case."""
        guards, relations = self._apart(self.more)[:GUARDS], self._apart(self.relations)[:RELATIONS]
        at, fails = _matrix(self.cases, guards), 1 - _matrix(self.cases, relations)
        there, failing = _any(at), _any(fails)
        guards, relations = _where(guards, there), _where(relations, failing)
        at, fails = at[there], fails[failing].T
        before, after = _matrix(self.sample, guards), 1 - _matrix(self.sample, relations)
        few = slice(None, None, max(1, self.sample.rows // ROWS))
        short, broken = before[:, few], after[:, few]
        alone = (before @ after.T) == 0
        lengths = _sizes(guards)[:, None] + _sizes(relations)[None, :]
        found = [np.zeros((0, 4), dtype=np.int64)]
        for i in range(len(guards)):
            rows, there = short[i] > 0, at[i] > 0
            js = i + 1 + _places(_any(at[i + 1 :, there]) & _any(short[i + 1 :, rows]))[0]
            ks = _places(_any(fails[there].T) & ~alone[i])[0]
            held = (short[js][:, rows] @ broken[ks][:, rows].T) == 0
            held &= (at[js][:, there] @ fails[there][:, ks]) > 0
            held &= ~alone[js][:, ks]
            j, k = _places(held)
            least = np.argsort(lengths[js[j], ks[k]], kind="stable")[:most]
            j, k = js[j[least]], ks[k[least]]
            found.append(np.stack([lengths[j, k] + lengths[i, 0], np.full(len(j), i, dtype=np.int64), j, k], axis=1))
        every: Column = np.concatenate(found)
        chosen: list[Clause] = []
        for row in every[np.argsort(every[:, 0], kind="stable")]:
            x, y, z = int(row[1]), int(row[2]), int(row[3])
            if not (before[x] * before[y] * after[z]).any():
                clause = Clause(self.context, (guards[x], guards[y]), relations[z])
                chosen += [clause] * _about_all(clause)
            if len(chosen) >= most:
                break
        return chosen

    def _apart(self, conditions: Sequence[Node]) -> list[Node]:
        """The conditions, but only the shortest of those that agree in every row."""
        found: dict[bytes, Node] = {}
        for c in sorted(conditions, key=size):
            found.setdefault(self.sample.truth(c).tobytes() + self.cases.truth(c).tobytes(), c)
        return list(found.values())


def _varying(sample: Sample, conditions: Sequence[Node]) -> list[Node]:
    """The conditions that hold in some rows and not in others; as a guard, any other says nothing."""
    truths = ((c, sample.truth(c)) for c in conditions)
    return [c for c, truth in truths if truth.any() and not truth.all()]


def _any(rows: Floats) -> Truths:
    return np.asarray(rows.max(axis=1, initial=0) > 0, dtype=np.bool_)


def _all(rows: Floats) -> Truths:
    return np.asarray(rows.min(axis=1, initial=1) > 0, dtype=np.bool_)


def _places(truths: Truths) -> list[Column]:
    return [np.asarray(at, dtype=np.int64) for at in np.nonzero(truths)]


def _where(nodes: Sequence[Node], chosen: Truths) -> list[Node]:
    return [n for n, c in zip(nodes, chosen, strict=True) if c]


def _sizes(nodes: Sequence[Node]) -> Column:
    return np.array([size(n) for n in nodes], dtype=np.int64)


def fails_in(cases: Sample, clause: Clause) -> list[int]:
    """The numbers of the states of a sample that do not satisfy the clause."""
    truths = np.logical_or.reduce([cases.truth(p) for p in clause.parts])
    return [int(i) for i in (~truths.reshape(-1, len(cases.choices)).all(axis=1)).nonzero()[0]]


def _matrix(sample: Sample, conditions: Sequence[Node]) -> Floats:
    made = np.zeros((len(conditions), sample.rows), dtype=np.float32)
    for i, c in enumerate(conditions):
        made[i] = sample.truth(c)
    return made


def _about_all(clause: Clause) -> bool:
    parts = clause.parts
    return len(frozenset[str]().union(*map(parameters, parts))) == len(clause.context)


def strongest(clauses: Iterable[Clause]) -> list[Clause]:
    """The clauses, without those that another one plainly implies, and without those that differ in names only."""
    names = Names()
    keyed: dict[Key, Clause] = {}
    for c in sorted(clauses, key=lambda c: (len(c.guards), c.size)):
        if len(set(c.parts)) == len(c.parts) and not any(negated(p) in c.parts for p in c.parts):
            keyed.setdefault(names.key(c.context, c.parts), c)
    return [c for key, c in keyed.items() if not _implied(names, keyed, key, c)]


def _implied(names: Names, keyed: dict[Key, Clause], own: Key, clause: Clause) -> bool:
    for chosen in product(*([None, p, *stronger(p)] for p in clause.parts)):
        left = [p for p in chosen if p is not None]
        if left and (key := names.key(clause.context, left)) != own and key in keyed:
            return True
    return False
