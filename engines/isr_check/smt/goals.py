"""Goals and hypotheses where a sort has any number of elements: a few elements stand for all.

The parameters of an action *name* elements: they are the first of their sort (Translation.parameters). A goal about
every element is proved for each named element, and for one more. Nothing tells the elements apart, so that one stands
for all others, and it counts as named from then on. A second variable can be one of the named elements, or one more,
and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import attrs

from isr_check.smt.terms.design_terms import Scope, Translation, environment_of
from isr_check.smt.terms.logic import Truth, all_of, and_, any_of, implies, not_, same_truth
from isr_check.smt.terms.shapes import WRITTEN_ELEMENTS
from isr_check.smt.terms.values import Members
from isr_lang import Definition, Node
from isr_lang.types import Scalar, SetType, SortType

Element = tuple[int, Truth, Mapping[SortType, int]]
"""An element, the condition that the sort has it, and how many elements of each sort are then named."""


@attrs.frozen(eq=False)
class Existential:
    """A part of a condition that says that an element of some kind exists.

    `part` is its place in the condition, and `about` has the named elements of the quantifiers around it. It speaks
    only if `there` holds. `some[k]` says that element k is such an element.
    """

    part: tuple[int, ...]
    about: tuple[int, ...]
    there: Truth
    some: tuple[Truth, ...]

    def formula(self) -> Truth:
        """The part itself: one of the elements is such an element."""
        return implies(self.there, any_of(self.some))

    def formula_with(self, others: Sequence[Existential]) -> Truth:
        """The part, and what `others` say of the element that it means: of the first, if there are several."""
        cases: list[Truth] = [self.formula()]
        for k, other in enumerate(others):
            first = and_(self.there, self.some[k], *(not_(x) for x in self.some[:k]))
            cases.append(implies(first, other.formula()))
        return all_of(cases)


@attrs.frozen(eq=False)
class Goals:
    """Splits goals and hypotheses into parts about few elements.

    `sorts` have any number of elements, which nothing tells apart. `more`: a variable may also be one more element than
    those named, as goals demand.
    """

    translation: Translation
    sorts: frozenset[SortType]
    more: bool = True

    def named_facts(self, node: Node, scope: Scope) -> Iterator[Truth]:
        """What a condition says of the first NAMED elements, part by part."""
        yield from attrs.evolve(self, more=False).parts(node, scope, dict.fromkeys(self.sorts, WRITTEN_ELEMENTS))

    def parts(self, node: Node, scope: Scope, named_counts: Mapping[SortType, int]) -> Iterator[Truth]:
        """Formulas which together imply the node; `named_counts`: how many elements of each sort are named already."""
        t = self.translation
        match node.op:
            case "and":
                for a in node.args:
                    yield from self.parts(a, scope, named_counts)
            case "implies":
                there = cast("Truth", t.value(node.args[0], scope))
                if there is not False:
                    yield from (implies(there, p) for p in self.parts(node.args[1], scope, named_counts))
            case "call":
                yield from self.parts(*self._body(node, scope), named_counts)
            case "forall" if (sort := self._of(node.args[0])) is not None:
                domain = cast("Members", t.value(node.args[0], scope))
                for k, there, more in self.each(sort, named_counts):
                    inside = and_(there, domain.has(k))
                    if inside is not False:
                        inner = Scope(scope.old, scope.new, {**scope.names, node.attr: k})
                        yield from (implies(inside, p) for p in self.parts(node.args[1], inner, more))
            case "subset" | "equal" if (sort := self._of(node.args[0])) is not None:
                first, second = (cast("Members", t.value(x, scope)) for x in node.args)
                alike = implies if node.op == "subset" else same_truth
                yield from (
                    implies(there, alike(first.has(k), second.has(k))) for k, there, _ in self.each(sort, named_counts)
                )
            case _:
                yield cast("Truth", t.value(node, scope))

    def witnesses(self, node: Node, scope: Scope, named_counts: Mapping[SortType, int]) -> Iterator[Existential]:
        """The parts of a condition which say, of named elements, that some element exists.

        That element is one of the named ones, or else it may be called the next one, because nothing tells elements
        apart. Only one such part may be used in a proof: another part may mean another element.
        """
        t = self.translation
        match node.op:
            case "and":
                for n, a in enumerate(node.args):
                    yield from (attrs.evolve(p, part=(n, *p.part)) for p in self.witnesses(a, scope, named_counts))
            case "implies":
                there = cast("Truth", t.value(node.args[0], scope))
                for p in self.witnesses(node.args[1], scope, named_counts):
                    yield attrs.evolve(p, there=and_(there, p.there))
            case "call":
                yield from self.witnesses(*self._body(node, scope), named_counts)
            case "forall" if (sort := self._of(node.args[0])) is not None:
                domain = cast("Members", t.value(node.args[0], scope))
                for k in range(named_counts[sort]):
                    inside = and_(t.shapes.inside(sort, k), domain.has(k))
                    inner = Scope(scope.old, scope.new, {**scope.names, node.attr: k})
                    for p in self.witnesses(node.args[1], inner, named_counts):
                        yield attrs.evolve(p, about=(k, *p.about), there=and_(inside, p.there))
            case "exists" if (sort := self._of(node.args[0])) is not None:
                domain = cast("Members", t.value(node.args[0], scope))
                some: list[Truth] = []
                for k in range(named_counts[sort] + 1):
                    inner = Scope(scope.old, scope.new, {**scope.names, node.attr: k})
                    body = cast("Truth", t.value(node.args[1], inner))
                    some.append(and_(t.shapes.inside(sort, k), domain.has(k), body))
                yield Existential((), (), True, tuple(some))
            case _:
                pass

    def depth(self, node: Node, sort: SortType) -> int:
        """The most elements of a sort that a part of the condition names."""
        match node.op:
            case "and":
                return max((self.depth(a, sort) for a in node.args), default=0)
            case "implies":
                return self.depth(node.args[1], sort)
            case "call":
                return self.depth(cast("tuple[Definition, bool]", node.attr)[0].body, sort)
            case "forall" if self._of(node.args[0]) is not None:
                return self.depth(node.args[1], sort) + (self._of(node.args[0]) == sort)
            case "subset" | "equal":
                return int(self._of(node.args[0]) == sort)
            case _:
                return 0

    def _body(self, node: Node, scope: Scope) -> tuple[Node, Scope]:
        """The body of a called definition, and the scope with the arguments."""
        definition, primed = cast("tuple[Definition, bool]", node.attr)
        actuals = (self.translation.value(a, scope) for a in node.args)
        names = {n: value for (n, _), value in zip(definition.parameters, actuals, strict=True)}
        return definition.body, Scope((scope.new if primed else scope.old) or {}, None, environment_of(names))

    def _of(self, node: Node) -> SortType | None:
        """The sort of a set's members if it is one of `sorts`, else None."""
        of: Scalar | None = node.type.of if isinstance(node.type, SetType) else None
        return of if isinstance(of, SortType) and of in self.sorts else None

    def each(self, sort: SortType, named_counts: Mapping[SortType, int]) -> Iterator[Element]:
        """Every named element, and one more if `more`."""
        before = named_counts.get(sort, 0)
        for k in range(before + self.more):
            yield k, self.translation.shapes.inside(sort, k), {**named_counts, sort: max(before, k + 1)}
