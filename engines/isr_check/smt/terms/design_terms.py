"""A design as terms of the solver: states, expressions and steps, for constants some of which may be left open."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from typing import cast

import attrs

from isr_check.smt.terms import logic
from isr_check.smt.terms.extremes import extreme, unbounded
from isr_check.smt.terms.logic import Term, Truth, Whole, all_of, and_, any_of, at_most, less, or_
from isr_check.smt.terms.operators import MEANING, can_be_written_out, candidates, look_up, put
from isr_check.smt.terms.ranges import typed
from isr_check.smt.terms.shapes import Shapes
from isr_check.smt.terms.values import Key, Members, Table, Value, key, with_memory
from isr_lang import Action, Constant, Definition, Design, Node, text
from isr_lang import Value as Setting
from isr_lang.instance import check_constants
from isr_lang.types import MapType, NumberType, Scalar, SetType, SortType, Type

State = Mapping[str, Value]
Environment = Mapping[object, Value]


@attrs.frozen(eq=False)
class Scope:
    """The values of names: variables before and after a step, parameters and bound variables."""

    old: State
    new: State | None
    names: Environment


def environment_of(values: Mapping[str, Value]) -> Environment:
    """An environment that has the values of parameters only."""
    return cast("Environment", values)


@attrs.frozen(eq=False)
class Choice:
    """A choice of an action's parameters: for a sort one element, for another type an unknown value.

    `ranges` says that the values are in range. `environment_of`: how many elements of each sort the parameters name;
    they are the first ones of the sort.
    """

    values: dict[str, Value]
    ranges: tuple[Truth, ...]
    named_elements: Mapping[SortType, int] = attrs.field(factory=dict[SortType, int])

    def text(self) -> str:
        """The parameters as text: an element by its number, any other value as `?`."""
        return ", ".join(f"{n}={v if isinstance(v, int) else '?'}" for n, v in self.values.items())


@attrs.frozen(eq=False)
class Step:
    """A step: its guards, each with its text, and the state after it."""

    guards: tuple[tuple[str, Truth], ...]
    new: dict[str, Value]


class Translation:
    """Translates a design to terms, under constants that have values, or None where a bound is left open.

    `assumptions` is known of the open bounds. `axioms` define the symbols that stand for the least or the greatest of
    many values; their number grows with what is translated.
    """

    def __init__(self, design: Design, constants: Mapping[str, Setting | None]) -> None:
        self.design = design
        known = check_constants(design, {k: v for k, v in constants.items() if v is not None})
        self.settings = {**known, **constants}
        self._constants: dict[str, Value] = {}
        self.bounds: dict[str, Term] = {}
        self.assumptions: list[Truth] = []
        self.axioms: list[tuple[Term, Term]] = []
        self.shapes = Shapes(lambda node: cast("Whole", self.evaluate(cast("Node", node), {})))
        self.special: dict[str, Callable[[Node, Scope], Value]] = {
            "literal": self._literal,
            "constant": self._constant,
            "variable": self._variable,
            "parameter": self._variable,
            "bound": self._variable,
            "call": self._call,
            "forall": self._quantifier,
            "exists": self._quantifier,
            "count": self._count,
            "smallest": self._extreme,
            "largest": self._extreme,
            "select": self._select,
            "build": self._build,
        }
        """The operators that read a scope or bind a variable; all others are in `operators.MEANING`."""
        self._memo: dict[Key, Value] = {}
        self._occurring = logic.Occurring()
        self._alive: list[object] = []
        self._footprints: dict[Node, tuple[object, ...]] = {}
        self._read: dict[Definition, tuple[str, ...]] = {}
        for constant in design.constants():
            self._value_of(constant)
        self.assumptions += [cast("Truth", self.evaluate(a.condition, {})) for a in design.assumptions]
        self.exists: dict[str, Truth] = {
            v.name: True if v.when is None else cast("Truth", self.evaluate(v.when, {})) for v in design.variables
        }
        start = {u.variable: u.value for u in design.initial.updates}
        self.absent = {v: self.evaluate(start[v], {}) for v, there in self.exists.items() if there is not True}

    def defining(self, terms: Sequence[Term], compared_terms: Sequence[Term] = ()) -> list[Term]:
        """The axioms about all symbols that occur in these terms, or in the axioms themselves.

        Sizes of sets are compared only if they occur in the terms `compared_terms`.
        """
        axioms_by_id, waiting = dict[int, Term](), list(terms)
        functions, symbols, summands = set[int](), set[int](), set[int]()
        sizes = set[int]().union(*map(self._occurring.symbols, compared_terms))
        comparable = set[int]().union(*map(self._occurring.functions, compared_terms))
        while waiting:
            for t in waiting:
                functions |= self._occurring.functions(t)
                symbols |= self._occurring.symbols(t)
                summands |= self._occurring.summands(t)
            more = [a for f, a in self.axioms if logic.function(f) in functions]
            more += self.shapes.sizes.defining(symbols, sizes)
            more += self.shapes.sizes.of_sums(summands, comparable)
            waiting = [a for a in more if logic.identity(a) not in axioms_by_id]
            axioms_by_id |= {logic.identity(a): a for a in waiting}
        return list(axioms_by_id.values())

    # states

    def state(self, name: str) -> dict[str, Value]:
        """A state with an unknown value for every variable; names of the symbols begin with `name`."""
        return {
            v.name: self.absent[v.name]
            if self.exists[v.name] is False
            else self.shapes.symbol(v.type, f"{name}{v.name}")
            for v in self.design.variables
        }

    def lifted_state(self, values: Mapping[str, object]) -> dict[str, Value]:
        """A state, given by variable with Python values (isr_lang.types), as terms; absent variables may be missing."""
        return {
            v.name: self.shapes.lift(v.type, values[v.name]) if v.name in values else self.absent[v.name]
            for v in self.design.variables
        }

    def typed(self, state: State, unlike: State | None = None) -> list[Truth]:
        """The formulas that say that a state's values are in range, for the variables that differ from `unlike`."""
        formulas: list[Truth] = []
        for v in self.design.variables:
            there, value = self.exists[v.name], state[v.name]
            if there is False or (unlike is not None and unlike[v.name] is value):
                continue
            formulas += typed(self.shapes, v.type, value)
            if there is not True:
                formulas.append(or_(there, self.shapes.same(v.type, value, self.absent[v.name])))
        return [t for t in formulas if t is not True]

    # steps

    def parameters(self, action: Action, apart: Collection[SortType] = ()) -> list[Choice]:
        """The choices of an action's parameters; one of those that differ in names of symmetric sorts only.

        `apart` are the sorts whose elements some expression can tell apart (orbits.told_apart).
        """
        ways: list[Choice] = []
        sorts = [
            (name, t) for name, t in action.parameters if isinstance(t, SortType) and self._names_element(t, apart)
        ]
        others = [(name, t) for name, t in action.parameters if (name, t) not in sorts]
        for elements in product(*(self._elements(t, sorts) for _, t in sorts)):
            named_counts: dict[SortType, int] = {}
            least = True
            for (_, sort), k in zip(sorts, elements, strict=True):
                least &= k <= named_counts.get(sort, 0) or not sort.symmetric or sort in apart
                named_counts[sort] = max(named_counts.get(sort, 0), k + 1)
            if not least:
                continue
            values: dict[str, Value] = {name: k for (name, _), k in zip(sorts, elements, strict=True)}
            ranges = [self.shapes.inside(t, k) for (_, t), k in zip(sorts, elements, strict=True)]
            for name, t in others:
                values[name] = value = self.shapes.symbol(t, self.shapes.fresh(name))
                if isinstance(t, NumberType) and not isinstance(value, int):
                    self.shapes.ranging[logic.identity(cast("Term", value))] = t
                ranges += self._range_of_parameter(t, values[name])
            ways.append(Choice({name: values[name] for name, _ in action.parameters}, tuple(ranges), named_counts))
        return ways

    def _range_of_parameter(self, type: Type, value: Value) -> list[Truth]:
        """What is known of a parameter: it has a value of its type, also where a bound of that is left open."""
        inside = [self.shapes.inside(type, cast("Whole", value))] if isinstance(type, NumberType) else []
        return [*inside, *typed(self.shapes, type, value)]

    def _names_element(self, sort: SortType, apart: Collection[SortType]) -> bool:
        """Whether a parameter of the sort names an element: the elements are known, or nothing tells them apart."""
        return self.shapes.few(sort) or (sort.symmetric and sort not in apart)

    def _elements(self, sort: SortType, sorts: Sequence[tuple[str, SortType]]) -> range:
        """The elements that parameters of this sort can name: all, or as many as there are such parameters."""
        size = self.shapes.size(sort)
        return range(sum(t == sort for _, t in sorts) if size is None else size)

    def step(self, action: Action, choice: Choice, old: State) -> Step:
        scope = Scope(old, None, environment_of(choice.values))
        guards = tuple((text(g.condition), cast("Truth", self.value(g.condition, scope))) for g in action.guards)
        types = {v.name: v.type for v in self.design.variables}
        new = dict(old)
        for update in action.updates:
            name, there = update.variable, self.exists[update.variable]
            if there is False:
                continue
            path = tuple(self.value(n, scope) for n in update.path)
            changed = self._updated_value(types[name], old.get(name), path, self.value(update.value, scope))
            new[name] = changed if there is True else self.shapes.choose(types[name], there, changed, old[name])
        return Step(guards, new)

    def _updated_value(self, type: Type, old: Value | None, path: tuple[Value, ...], value: Value) -> Value:
        if not path:
            return value
        assert isinstance(type, MapType)
        assert old is not None
        inner = self._updated_value(type.value, look_up(self.shapes, type, old, path[0]), path[1:], value)
        return put(self.shapes, type, old, path[0], inner)

    def start(self, choice: Choice) -> dict[str, Value]:
        """The initial state for a choice of its parameters."""
        scope = Scope({}, None, environment_of(choice.values))
        new = {u.variable: self.value(u.value, scope) for u in self.design.initial.updates}
        return {
            v.name: self.absent[v.name] if self.exists[v.name] is False else new[v.name] for v in self.design.variables
        }

    # expressions

    def evaluate(
        self, node: Node, old: State, new: State | None = None, parameters: Mapping[str, Value] | None = None
    ) -> Value:
        return self.value(node, Scope(old, new, environment_of(parameters or {})))

    def value(self, node: Node, scope: Scope) -> Value:
        if node.op == "bound" or node.op == "parameter":
            return scope.names[node.attr]
        k: list[Key] = [id(node)]
        for part in self._footprint(node):
            value = self._lookup(part, scope)
            k.append(id(value) if isinstance(part, tuple) else key(value))
        memo_key = tuple(k)
        if memo_key not in self._memo:
            self._alive.append(scope)
            self._memo[memo_key] = self._compute(node, scope)
        return self._memo[memo_key]

    def _lookup(self, part: object, scope: Scope) -> Value:
        if isinstance(part, tuple):
            name, primed = cast("tuple[str, bool]", part)
            state = scope.new if primed else scope.old
            assert state is not None, f"{name} after a step is read, and there is no step"
            return state[name]
        return scope.names[part]

    def _compute(self, node: Node, scope: Scope) -> Value:
        if (special := self.special.get(node.op)) is not None:
            return special(node, scope)
        return MEANING[node.op](self.shapes, node, tuple(self.value(a, scope) for a in node.args))

    def _footprint(self, node: Node) -> tuple[object, ...]:
        """What the value of an expression depends on: variables as (name, primed), names and binders."""
        if node not in self._footprints:
            dependencies: dict[object, None] = {}
            for a in node.args:
                dependencies |= dict.fromkeys(self._footprint(a))
            if node.op in ("variable", "parameter", "bound"):
                dependencies[node.attr] = None
            elif node.op == "call":
                definition, primed = node.attr
                dependencies |= dict.fromkeys((name, primed) for name in self._variables_of(definition))
            elif node.op in BINDERS:
                dependencies.pop(node.attr, None)
            self._footprints[node] = tuple(dependencies)
        return self._footprints[node]

    def _variables_of(self, definition: Definition) -> tuple[str, ...]:
        if definition not in self._read:
            parts = self._footprint(definition.body)
            self._read[definition] = tuple(cast("tuple[str, bool]", p)[0] for p in parts if isinstance(p, tuple))
        return self._read[definition]

    # leaves

    def _literal(self, node: Node, scope: Scope) -> Value:
        return self.shapes.lift(node.type, node.attr)

    def _constant(self, node: Node, scope: Scope) -> Value:
        return self._value_of(cast("Constant", node.attr))

    def _value_of(self, constant: Constant) -> Value:
        if constant.name not in self._constants:
            value = self.settings[constant.name]
            if value is None:
                self.bounds[constant.name] = free = logic.int_symbol(constant.option)  # no variable's name begins so
                self.assumptions.append(at_most(constant.low, free))
                self._constants[constant.name] = free
            elif constant.choice is not None:
                self._constants[constant.name] = constant.names.index(cast("str", value))
            else:
                self._constants[constant.name] = cast("int", value)
        return self._constants[constant.name]

    def _variable(self, node: Node, scope: Scope) -> Value:
        return self._lookup(node.attr, scope)

    def _call(self, node: Node, scope: Scope) -> Value:
        definition, primed = cast("tuple[Definition, bool]", node.attr)
        actuals = (self.value(a, scope) for a in node.args)
        names = {name: value for (name, _), value in zip(definition.parameters, actuals, strict=True)}
        state = scope.new if primed else scope.old
        return self.value(definition.body, Scope({} if state is None else state, None, environment_of(names)))

    # binders

    def _inner(self, node: Node, scope: Scope, x: Value, position: int = 1) -> Value:
        return self.value(node.args[position], Scope(scope.old, scope.new, {**scope.names, node.attr: x}))

    def _domain(self, node: Node, scope: Scope) -> tuple[Scalar, Value]:
        return cast("SetType", node.args[0].type).of, self.value(node.args[0], scope)

    def _quantifier(self, node: Node, scope: Scope) -> Truth:
        universal = node.op == "forall"
        of, domain = self._domain(node, scope)

        def holds(x: Value) -> Truth:
            return cast("Truth", self._inner(node, scope, x))

        def counts(x: Value, guard: Truth) -> Truth:
            if guard is False:
                return universal
            return logic.implies(guard, holds(x)) if universal else and_(guard, holds(x))

        connective = all_of if universal else any_of
        if can_be_written_out(self.shapes, of, domain):
            return connective(counts(x, guard) for x, guard in candidates(self.shapes, of, domain))
        members, inside = cast("Members", domain), self.shapes.inside
        if isinstance(of, SortType):
            return self.shapes.over(of, lambda x: counts(x, members.has(x)), node.attr.name, universal)
        parts: list[Truth] = []
        end = members.below
        while (
            end is not None and not isinstance(end, int) and (longer := self.shapes.appended.get(logic.identity(end)))
        ):
            end = longer[1]
            parts.append(counts(end, and_(inside(of, end), members.has(end))))
        x = self.shapes.bind(node.attr.name, *(() if end is None else (end,)))
        self.shapes.ranging[logic.identity(x)] = of
        guard = and_(inside(of, x), True if end is None else less(x, end), members.has(x))
        parts.append((logic.forall if universal else logic.exists)(x, counts(x, guard)))
        return connective(parts)

    def _count(self, node: Node, scope: Scope) -> Value:
        of, domain = self._domain(node, scope)
        if isinstance(of, SortType) and not can_be_written_out(self.shapes, of, domain):
            return self.shapes.sizes.of(of, cast("Members", self._select(node, scope)))
        pairs = candidates(self.shapes, of, domain)
        return logic.how_many(and_(m, cast("Truth", self._inner(node, scope, x))) for x, m in pairs if m is not False)

    def _extreme(self, node: Node, scope: Scope) -> Value:
        of, domain = self._domain(node, scope)
        otherwise, least = cast("Whole", self.value(node.args[2], scope)), node.op == "smallest"
        if can_be_written_out(self.shapes, of, domain):
            pairs = candidates(self.shapes, of, domain)
            return extreme(
                [(cast("Whole", self._inner(node, scope, x)), m) for x, m in pairs if m is not False], otherwise, least
            )
        symbol, axioms = unbounded(
            self.shapes,
            (node.op, node.attr.name, of),
            cast("Members", domain),
            lambda x: cast("Whole", self._inner(node, scope, x)),
            otherwise,
        )
        self.axioms += axioms
        return symbol

    def _select(self, node: Node, scope: Scope) -> Value:
        of, domain = self._domain(node, scope)

        def also(x: Value, member: Truth) -> Truth:
            return member if member is False else and_(member, cast("Truth", self._inner(node, scope, x)))

        if isinstance(domain, Members):
            has = with_memory(lambda x: also(x, domain.has(x)))
            return Members(cast("Callable[[Whole], Truth]", has), domain.below)
        pairs = candidates(self.shapes, of, domain)
        return tuple(also(x, m) for x, m in pairs)

    def _build(self, node: Node, scope: Scope) -> Value:
        of, domain = self._domain(node, scope)
        if isinstance(domain, Members):
            return Table(with_memory(lambda x: self._inner(node, scope, x)))
        return tuple(self._inner(node, scope, x) for x in self.shapes.elements(of))


BINDERS = ("forall", "exists", "count", "smallest", "largest", "select", "build")
