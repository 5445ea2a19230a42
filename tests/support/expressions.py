"""Random well-typed expressions of the language, as text: every operator, quantifiers and definitions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import attrs

Kind = str | tuple["Kind", ...]
"""A type: "Bool", a number "N" or "M", a sort "A" or "B", the choice "C", or a container with its parts."""

Signature = tuple[str, list[tuple[str, Kind]], Kind]
"""A definition: its name, its parameters beside the state, and the type of its value."""

CHOICE = ("C.RED", "C.GREEN", "C.BLUE")
LOW, HIGH = {"N": "0", "M": "1"}, {"N": "TOP", "M": "3"}
EDGES = {"N": ["0", "1", "TOP"], "M": ["0", "1", "3"]}
COMPARED: list[Kind] = ["Bool", "N", "M", "A", "B", "C", ("Maybe", "A"), ("Set", "A"), ("Seq", "N", "M")]
RANGED: list[Kind] = ["A", "B", "N", "M"]


def spelling(kind: Kind) -> str:
    return kind if isinstance(kind, str) else f"{kind[0]}[{', '.join(spelling(k) for k in kind[1:])}]"


@attrs.frozen
class Scope:
    """What an expression may mention: states by name, and local names with their types."""

    states: tuple[str, ...]
    locals: dict[str, Kind]
    wild: frozenset[str] = frozenset()
    """The local names of numbers that may be out of range: what a definition is called with."""

    def binding(self, name: str, kind: Kind) -> Scope:
        return Scope(self.states, {**self.locals, name: kind}, self.wild - {name})


def fixed(kind: Kind) -> list[str]:
    """The constants of a type."""
    match kind:
        case "Bool":
            return ["Bool.true", "Bool.false", "GATE"]
        case "N" | "M":
            return [f"{kind}.of({HIGH[kind]})", f"{kind}.of({LOW[kind]})"]
        case "C":
            return [*CHOICE, "HOW"]
        case ("Set", "A" | "B" | "N" | "M" as of):
            return [f"{of}.all()", f"Set.empty({of})"]
        case ("Set", of):
            return [f"Set.empty({spelling(of)})"]
        case ("Seq", index, of):
            return [f"Seq.empty({spelling(index)}, {spelling(of)})"]
        case _:
            return []


class Expressions:
    """Makes up expressions over the given variables; each method returns text.

    Choices come from a generator with a seed, and not from Hypothesis one by one: it prefers the first of
    every choice, and most of its models would stand still.
    """

    def __init__(self, rng: Random, variables: dict[str, Kind], definitions: list[Signature]) -> None:
        self.rng = rng
        self.variables = variables
        self.definitions = definitions

    def maybe(self) -> bool:
        return self.rng.random() < 0.5

    def pick(self, *options: str) -> str:
        return self.rng.choice(options)

    def leaves(self, kind: Kind, scope: Scope) -> list[str]:
        """What is there without further ado; what varies counts more than what is fixed."""
        varying = [name for name, k in scope.locals.items() if k == kind]
        varying += [f"{s}.{v}" for s in scope.states for v, k in self.variables.items() if k == kind]
        if kind == "Bool":
            varying += self.facts(scope)
        return varying * 6 + fixed(kind)

    def facts(self, scope: Scope) -> list[str]:
        """A condition or two about each variable."""
        found = [f"({x} <= {HIGH[k]})" for x, k in scope.locals.items() if isinstance(k, str) and k in HIGH]
        for variable in (f"{s}.{v}" for s in scope.states for v in self.variables):
            match self.variables[variable.split(".")[1]]:
                case "N" | "M":
                    found += [f"({variable} > 1)", f"({variable} == {self.pick('0', '1', '2')})"]
                case "A" | "B" | "C" as kind:
                    found += [f"({variable} == {x})" for x, k in scope.locals.items() if k == kind]
                    found += [f"({variable} != C.GREEN)"] * (kind == "C")
                case ("Maybe", of):
                    found += [f"({variable} == NONE)"]
                    known = {x: k for x, k in scope.locals.items() if x not in scope.wild}
                    found += [f"({variable} == {x})" for x, k in known.items() if k == of]
                case ("Set", of):
                    found += [f"{variable}.is_empty()"]
                    found += [f"{variable}.has({x})" for x, k in scope.locals.items() if k == of]
                case ("Map", key, "Bool"):
                    found += [f"{variable}[{x}]" for x, k in scope.locals.items() if k == key]
                case ("Seq", "N", _):
                    found += [f"({variable}.length() == 1)"]
                case _:
                    pass
        return found

    def possible(self, kind: Kind, scope: Scope) -> bool:
        """Sorts have no constants: without an element at hand there is no expression of such a type."""
        if self.leaves(kind, scope):
            return True
        match kind:
            case ("Maybe", of):
                return self.possible(of, scope)
            case ("Map", key, value):
                return self.possible(value, scope.binding("k", key))
            case _:
                return False

    def any(self, kind: Kind, scope: Scope, depth: int) -> str:
        """An expression of the type; a number may be out of its range."""
        leaves = self.leaves(kind, scope)
        if leaves and (depth <= 0 or self.rng.random() < (0.5 if kind in ("A", "B", "C") else 0.15)):
            return self.pick(*leaves)
        options = [*self.general(kind, scope, depth - 1), *self.special(kind, scope, depth - 1)]
        return self.rng.choice(options)() if options else self.pick(*leaves)

    def key(self, kind: Kind, scope: Scope, depth: int) -> str:
        """An expression; if it is a number, it is out of its range more often than others."""
        value = self.any(kind, scope, depth)
        return self.pick(value, value, f"({value} - 2)", f"({value} + 2)") if kind in ("N", "M") else value

    def stored(self, kind: Kind, scope: Scope, depth: int) -> str:
        """An expression whose value is within its type."""
        if kind in ("N", "M"):
            assert isinstance(kind, str)
            leaves = [leaf for leaf in self.leaves(kind, scope) if leaf not in scope.wild]
            if depth <= 0 or self.rng.random() < 0.25:
                return self.pick(*leaves)
            value = self.any(kind, scope, depth)
            return f"when(({value} >= {LOW[kind]}) & ({value} <= {HIGH[kind]}), {value}, {self.pick(*leaves)})"
        value = self.any(kind, scope, depth)
        return f"{value}.take(N.of(TOP))" if isinstance(kind, tuple) and kind[0] == "Seq" else value

    def moved(self, old: str, kind: Kind, scope: Scope) -> str | None:
        """The value of a variable, a little changed: random expressions seldom lead anywhere."""
        match kind:
            case "Bool":
                return f"~{old}"
            case "N" | "M":
                up = f"when({old} < {HIGH[kind]}, {old} + 1, {kind}.of({LOW[kind]}))"
                return self.pick(up, f"when({old} > {LOW[kind]}, {old} - 1, {old})")
            case "C":
                return f"when({old} == C.RED, C.GREEN, when({old} == C.GREEN, C.BLUE, C.RED))"
            case ("Maybe", of) if self.leaves(of, scope):
                return f"when({old} == NONE, {self.any(kind, scope, 1)}, NONE)"
            case ("Set", of) if self.possible(of, scope):
                return f"{old}.{self.pick('including', 'excluding')}({self.stored(of, scope, 0)})"
            case ("Seq", "N", of):
                return f"{old}.append({self.stored(of, scope, 1)}).take(N.of(TOP))"
            case _:
                return None

    def general(self, kind: Kind, scope: Scope, depth: int) -> list[Callable[[], str]]:
        """What makes a value of any type: choosing, looking up, calling."""
        options: list[Callable[[], str]] = []
        if self.leaves(kind, scope):
            options.append(
                lambda: (
                    f"when({self.any('Bool', scope, depth)}, {self.any(kind, scope, depth)}, "
                    f"{self.any(kind, scope, depth)})"
                )
            )
        for held in dict.fromkeys(self.variables.values()):
            match held:
                case ("Map", key, value) if value == kind and scope.states and self.possible(key, scope):
                    options.append(partial(self.looked_up, held, "{}[{}]", key, scope, depth))
                case ("Maybe", of) if of == kind and scope.states and self.leaves(kind, scope):
                    options.append(partial(self.looked_up, held, "{}.or_else({})", kind, scope, depth))
                case ("Seq", "N", of) if of == kind and scope.states:
                    options.append(partial(self.looked_up, held, "{}[{}]", "N", scope, depth))
                case _:
                    pass
        for name, parameters, result in self.definitions:
            if result == kind and scope.states and all(self.possible(k, scope) for _, k in parameters):
                options.append(partial(self.call, name, parameters, scope, depth))
        return options

    def looked_up(self, held: Kind, form: str, key: Kind, scope: Scope, depth: int) -> str:
        return form.format(self.any(held, scope, depth), self.key(key, scope, depth))

    def elements(self) -> list[Kind]:
        """The types of which there are sets, those of variables first."""
        return [*(k[1] for k in self.variables.values() if k[0] == "Set" and isinstance(k, tuple)), *RANGED]

    def call(self, name: str, parameters: list[tuple[str, Kind]], scope: Scope, depth: int) -> str:
        arguments = [self.pick(*scope.states), *(self.key(k, scope, depth) for _, k in parameters)]
        return f"{name}({', '.join(arguments)})"

    def special(self, kind: Kind, scope: Scope, depth: int) -> list[Callable[[], str]]:
        """What makes a value of this type only."""
        match kind:
            case "Bool":
                return self.conditions(scope, depth)
            case "N" | "M":
                return self.numbers(kind, scope, depth)
            case ("Maybe", of) if self.possible(of, scope):
                return [
                    lambda: f"Maybe.of({self.stored(of, scope, 0)})",
                    lambda: self.nothing(of, scope, depth),
                ]
            case ("Set", of):
                return self.sets(of, scope, depth)
            case ("Map", key, value):
                return self.maps(key, value, scope, depth)
            case ("Seq", "N", of):
                return [
                    lambda: f"{self.any(kind, scope, depth)}.append({self.stored(of, scope, depth)})",
                    lambda: f"{self.any(kind, scope, depth)}.take({self.key('N', scope, depth)})",
                ]
            case _:
                return []

    def nothing(self, of: Kind, scope: Scope, depth: int) -> str:
        return f"when({self.any('Bool', scope, depth)}, Maybe.of({self.stored(of, scope, 0)}), NONE)"

    def conditions(self, scope: Scope, depth: int) -> list[Callable[[], str]]:
        def operand() -> str:
            return self.any("Bool", scope, depth)

        def numbers() -> str:
            kind = self.pick("N", "M")
            left, symbol = self.any(kind, scope, depth), self.pick("<", "<=", ">", ">=")
            right = self.pick(self.any(kind, scope, depth), self.size(scope, depth), "SIZE", *EDGES[kind])
            return f"({left} {symbol} {right})"

        def equality() -> str:
            kinds = [*COMPARED, *self.variables.values(), *self.variables.values()]
            kind = self.rng.choice([k for k in kinds if self.possible(k, scope)])
            return f"({self.any(kind, scope, depth)} {self.pick('==', '!=')} {self.any(kind, scope, depth)})"

        def about_sets() -> str:
            of = self.rng.choice(self.elements())
            a, b = self.any(("Set", of), scope, depth), self.any(("Set", of), scope, depth)
            options = [f"({a} <= {b})", f"{a}.is_empty()"]
            if self.possible(of, scope):
                options.append(f"{a}.has({self.any(of, scope, depth)})")
            return self.pick(*options)

        def prefix() -> str:
            seqs = [k for k in self.variables.values() if k[0] == "Seq"]
            kind = self.rng.choice([*seqs, ("Seq", "N", "M")])
            return f"{self.any(kind, scope, depth)}.is_prefix_of({self.any(kind, scope, depth)})"

        return [
            lambda: f"({operand()} {self.pick('&', '|')} {operand()})",
            lambda: f"~{operand()}",
            lambda: f"{operand()}.implies({operand()})",
            numbers,
            equality,
            about_sets,
            prefix,
            lambda: self.quantified(self.pick("forall", "exists"), scope, depth),
        ]

    def quantified(self, name: str, scope: Scope, depth: int) -> str:
        if self.maybe():
            loop, inner = self.loop(scope, depth, hiding=True)
            return f"{name}({self.any('Bool', inner, depth)} {loop})"
        first, inner = self.loop(scope, depth)
        second, inner = self.loop(inner, depth)
        return f"{name}({self.any('Bool', inner, depth)} {first} {second})"

    def loop(self, scope: Scope, depth: int, hiding: bool = False) -> tuple[str, Scope]:
        """A loop over a set. Its variable may hide another where it is the only loop of its generator."""
        of = self.rng.choice(self.elements())
        taken = set[str]() if hiding else set(scope.locals)
        name = self.rng.choice([n for n in ("x", "y", "z", "w", "q", "r", "t") if n not in taken])
        return f"for {name} in {self.any(('Set', of), scope, depth)}", scope.binding(name, of)

    def size(self, scope: Scope, depth: int) -> str:
        """A count."""
        of = self.rng.choice(self.elements())
        if self.maybe():
            return f"{self.any(('Set', of), scope, depth)}.size()"
        loop, inner = self.loop(scope, depth)
        return f"count({self.any('Bool', inner, depth)} {loop})"

    def numbers(self, kind: str, scope: Scope, depth: int) -> list[Callable[[], str]]:
        def extreme() -> str:
            loop, inner = self.loop(scope, depth)
            name, rest = self.pick("smallest", "largest"), self.any(kind, scope, depth)
            return f"{name}(({self.any(kind, inner, depth)} {loop}), or_else={rest})"

        def sum_or_difference() -> str:
            other = self.pick("1", "SIZE", self.any(kind, scope, depth), self.size(scope, depth))
            return f"({self.any(kind, scope, depth)} {self.pick('+', '-')} {other})"

        options = [sum_or_difference, sum_or_difference, extreme]
        if kind == "N":
            options.append(lambda: f"{self.any(('Seq', 'N', 'M'), scope, depth)}.length()")
        return options

    def sets(self, of: Kind, scope: Scope, depth: int) -> list[Callable[[], str]]:
        def operand() -> str:
            return self.any(("Set", of), scope, depth)

        def where() -> str:
            name = self.pick("x", "u")
            return f"{operand()}.where(lambda {name}: {self.any('Bool', scope.binding(name, of), depth)})"

        options = [lambda: f"({operand()} {self.pick('|', '&', '-')} {operand()})", where]
        if self.possible(of, scope):
            options.append(lambda: f"{operand()}.{self.pick('including', 'excluding')}({self.key(of, scope, depth)})")
            options.append(lambda: f"Set.of({self.any(of, scope, depth)}, {self.any(of, scope, depth)})")
        if of in ("N", "M"):
            options.append(lambda: f"{spelling(of)}.below({self.pick('SIZE', self.key(of, scope, depth))})")
        return options

    def maps(self, key: Kind, value: Kind, scope: Scope, depth: int) -> list[Callable[[], str]]:
        options: list[Callable[[], str]] = []
        inner = scope.binding("k", key)
        if self.possible(value, inner):
            options.append(lambda: f"Map.build({spelling(key)}, lambda k: {self.stored(value, inner, depth)})")
        if self.leaves(("Map", key, value), scope) and self.possible(key, scope) and self.possible(value, scope):
            options.append(
                lambda: (
                    f"{self.any(('Map', key, value), scope, depth)}.put({self.key(key, scope, depth)}, "
                    f"{self.stored(value, scope, depth)})"
                )
            )
        return options
