"""Random small models, as programs: what Hypothesis reports as a falsifying example can be pasted and run.

`models()` draws a `Model`: the text, the `Design` it defines and constants for a run. Whatever a model stores
is within the range of its type, so that its states mean the same to an engine that packs them into bits; what
it only computes with may be out of range, and every operator must have an answer there.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import attrs
from hypothesis import strategies as st
from hypothesis.vendor.pretty import RepresentationPrinter
from tests.support.expressions import Expressions, Kind, Scope, Signature, spelling

from isr_lang import Design, Instance, Value

PRELUDE = """\
from typing import ClassVar
from isr_lang import *

SIZE = bound("size", "How many A there are.", default=2, low=1, high=3)
TOP = bound("top", "The highest N.", default=2, low=1, high=3)
GATE = switch("gate", "Whether some things exist.", default=True)

class A(Sort, size=SIZE, prefix="a", symmetric=True): "A sort."
class B(Sort, size=TOP, prefix="b", symmetric=False): "Another sort."
class N(Number, high=TOP): "A number."
class M(Number, low=1, high=3): "Another number."
class C(Choice):
    "A choice."
    RED: ClassVar["C"]
    GREEN: ClassVar["C"]
    BLUE: ClassVar["C"]

HOW = setting("how", "How.", values={"stop": C.RED, "go": C.GREEN}, default="go")
"""

SCALARS: list[Kind] = ["Bool", "N", "M", "A", "B", "C"]
ITEMS: list[Kind] = ["Bool", "N", "M", "C"]


@attrs.frozen(repr=False)
class Model:
    """A random model and constants to run it with; printed, it is its own program."""

    source: str
    design: Design
    constants: dict[str, Value]

    def instance(self) -> Instance:
        return Instance(self.design, self.constants)

    def __repr__(self) -> str:
        return f"\n{self.source}\nconstants = {self.constants}\n"

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        """Hypothesis would spell out the graph otherwise."""
        printer.text(repr(self))


def trace(source: str) -> Design:
    """The design that a text defines."""
    names: dict[str, object] = {"__name__": "random_model"}
    exec(compile(source, "<random model>", "exec", dont_inherit=True), names)
    design = names["DESIGN"]
    assert isinstance(design, Design)
    return design


def _made(between: Callable[[int, int], int], promises: int) -> Model:
    source = _Writer(between, promises).write()
    design = trace(source)
    constants: dict[str, Value] = {
        "size": between(1, 3),
        "top": between(1, 3),
        "gate": between(0, 1) == 1,
        "how": ("stop", "go")[between(0, 1)],
    }
    return Model(source, design, {c.name: constants[c.name] for c in design.constants()})


def kind_of(rng: Random) -> Kind:
    """The type of a variable; at most a few dozen values at the sizes above."""
    shape = rng.choice(["scalar", "scalar", "Maybe", "Set", "Map", "Map of Map", "Seq"])
    match shape:
        case "scalar":
            return rng.choice(SCALARS)
        case "Map":
            value = rng.choice([*SCALARS, ("Maybe", "A"), ("Maybe", "M"), ("Set", "A")])
            return ("Map", rng.choice(["A", "B", "C", "Bool", "N", "M"]), value)
        case "Map of Map":
            return ("Map", "B", ("Map", "B", rng.choice(["Bool", "N"])))
        case "Seq":
            return ("Seq", "N", rng.choice(ITEMS))
        case _:
            return (shape, rng.choice(SCALARS))


class _Writer:
    """Writes one model, declaration by declaration.

    What is in a part depends on the seed and the part's name only, and Hypothesis decides which parts there
    are; so it can leave out parts of a model that fails, and the others stay as they are.
    """

    def __init__(self, between: Callable[[int, int], int], promises: int) -> None:
        self.between = between
        self.promises = promises
        self.seed = between(0, 2**32 - 1)
        self.lines = [PRELUDE]
        self.variables = {f"v{i}": kind_of(self.at(f"v{i}")) for i in range(between(1, 4))}
        self.gated = {
            name
            for name, kind in self.variables.items()
            if name != "v0" and not sorts_in(kind) and self.at(name).random() < 0.3
        }
        self.definitions: list[Signature] = []

    def at(self, part: str) -> Random:
        return Random(f"{self.seed} {part}")

    def kept(self, of: int = 4) -> bool:
        """Whether a part stays, mostly `of - 1` times out of `of`."""
        return self.between(0, of - 1) > 0

    def expressions(self, part: str) -> Expressions:
        return Expressions(self.at(part), self.variables, self.definitions)

    def write(self) -> str:
        self.lines.append("class State(Struct):")
        for name, kind in self.variables.items():
            gate = ", when=GATE" if name in self.gated else ""
            self.lines.append(f'    {name}: {spelling(kind)} = var("A variable."{gate})')
        for name in ("d0", "d1"):
            if self.kept():
                self.definition(name)
        self.initial()
        actions = [self.action(name) for name in ("act0", "act1", "act2") if self.kept()]
        kinds = ("always", "step", "sometimes", "sometimes_step")
        properties = [
            self.property(kind, f"is_{kind}_{i}") for i in range(self.promises) for kind in kinds if self.kept()
        ]
        acts, promised = ("".join(f"{name}, " for name in names) for names in (actions, properties))
        self.lines += ["", f'DESIGN = Design("random", "A model.", State, init, ({acts}), ({promised}))']
        return "\n".join(self.lines) + "\n"

    def parameters(self, part: str, choices: list[Kind]) -> list[tuple[str, Kind]]:
        rng = self.at(f"{part} parameters")
        return [(name, rng.choice(choices)) for name in rng.sample(["x", "y", "p"], rng.choice([1, 1, 2]))]

    def definition(self, name: str) -> None:
        parameters = self.parameters(name, ["Bool", "N", "M", "A", "B", "C"])
        results: list[Kind] = ["Bool", "Bool", "N", ("Set", "A"), ("Maybe", "M"), "C"]
        kind = self.at(f"{name} result").choice(results)
        numbers = frozenset(p for p, k in parameters if k in ("N", "M"))
        body = self.expressions(name).any(kind, Scope(("s",), dict(parameters), numbers), 2)
        listed = "".join(f", {p}: {spelling(k)}" for p, k in parameters)
        self.lines += [
            "",
            "@define",
            f"def {name}(s: State{listed}) -> {spelling(kind)}:",
            f"    return {body}",
        ]
        self.definitions.append((name, parameters, kind))

    def initial(self) -> None:
        needed = {sort for kind in self.variables.values() for sort in sorts_in(kind)}
        scope = Scope((), {sort.lower(): sort for sort in sorted(needed)})
        listed = "".join(f", {p}: {spelling(k)}" for p, k in scope.locals.items())
        self.lines += ["", "@initial", f"def init(new: State{listed}) -> Step:", "    return ("]
        for name, kind in self.variables.items():
            alone = Scope((), {}) if name in self.gated else scope
            value = self.expressions(f"init {name}").stored(kind, alone, 1)
            self.lines.append(f"        new.{name} == {value},")
        self.lines.append("    )")

    def action(self, name: str) -> str:
        parameters = self.parameters(name, ["A", "B", "N", "C", "Bool", ("Set", "B")])
        scope = Scope(("old",), dict(parameters))
        conjuncts = [self.expressions(f"{name} guard {i}").any("Bool", scope, i) for i in range(2) if not self.kept(3)]
        for variable, kind in self.variables.items():
            if self.kept():
                update = self.update(f"new.{variable}", kind, scope, self.expressions(f"{name} {variable}"))
                conjuncts.append(update)
        self.at(f"{name} order").shuffle(conjuncts)
        listed = "".join(f", {p}: {spelling(k)}" for p, k in parameters)
        self.lines += ["", "@action", f"def {name}(old: State, new: State{listed}) -> Step:", "    return ("]
        self.lines += [f"        {c}," for c in conjuncts]
        self.lines.append("    )")
        return name

    def update(self, target: str, kind: Kind, scope: Scope, made: Expressions) -> str:
        if kind == "Bool" and made.rng.random() < 0.3:
            return made.pick("", "~") + target
        if isinstance(kind, tuple) and kind[0] == "Map" and made.possible(kind[1], scope) and made.maybe():
            return self.update(f"{target}[{made.any(kind[1], scope, 1)}]", kind[2], scope, made)
        value = made.moved(target.replace("new.", "old.", 1), kind, scope) if made.rng.random() < 0.85 else None
        return f"{target} == {value or made.stored(kind, scope, 2)}"

    def property(self, kind: str, name: str) -> str:
        states = ("old", "new") if kind.endswith("step") else ("s",)
        made = self.expressions(name)
        body, gate = made.any("Bool", Scope(states, {}), 3), made.pick("", "", "(when=GATE)")
        listed = ", ".join(f"{s}: State" for s in states)
        self.lines += ["", f"@{kind}{gate}", f"def {name}({listed}) -> Bool:", f"    return {body}"]
        return name


def sorts_in(kind: Kind) -> list[str]:
    """The sorts of which a value of this type needs an element to exist."""
    if isinstance(kind, str):
        return [kind] if kind in ("A", "B") else []
    return sorts_in(kind[-1]) if kind[0] in ("Map", "Maybe") else []


@st.composite
def models(draw: st.DrawFn, promises: int = 1) -> Model:
    """A random model with constants to run it with; explore it with a limit of a few hundred states.

    It has up to `promises` properties of each kind; many of them where expressions matter more than steps.
    """
    return _made(lambda low, high: draw(st.integers(low, high)), promises)


def numbered_model(number: int, promises: int = 1) -> Model:
    """The model with this number: for many different ones, where nothing has to be made smaller."""
    return _made(Random(number).randint, promises)
