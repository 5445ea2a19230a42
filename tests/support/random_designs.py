"""Random designs for the differential test: hundreds of states, and what goes wrong where layers are shared.

`random_design(seed, number)` is always the same design. Unlike the models of `strategies`, these store values out of
range on purpose, have variables that are off and whose first value is a parameter's, requests of the kind that a
reduction is for, and promises about the future. A design is its own program, in Python.
"""

from __future__ import annotations

from random import Random

from tests.support.expressions import HIGH, LOW, Expressions, Kind, Scope, Signature, spelling
from tests.support.strategies import PRELUDE, Model, kind_of, sorts_in, trace

from isr_lang import Design, Value

CONDITIONS = ("GATE", "GATE", "~GATE", "HOW == C.RED")
"""Under which a variable exists or a promise is made."""
BY_SORT: list[Kind] = [
    ("Map", "A", "Bool"),
    ("Map", "A", "N"),
    ("Map", "A", "C"),
    ("Map", "A", ("Maybe", "A")),
    ("Map", "A", ("Set", "A")),
    ("Set", "A"),
    ("Maybe", "A"),
]
WILD: list[Kind] = ["N", "M", ("Maybe", "N"), ("Maybe", "M"), ("Set", "N"), ("Seq", "N", "N"), ("Map", "A", "N")]
PRIVATE = ("version", "wish", "phase", "joined", "joining", "copy", "served")
PHASES = ("C.RED", "C.GREEN", "C.BLUE")


class Writer:
    """Writes one design, part by part; what is in a part depends on the seed and the part's name only."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        rng = self.at("plan")
        self.rng = rng
        self.is_wild = rng.random() < 0.25
        """Whether numbers are stored that may be out of range."""
        self.lines = [PRELUDE]
        self.variables: dict[str, Kind] = {f"v{i}": self.kind(f"v{i}") for i in range(rng.choice([2, 2, 3, 3]))}
        self.definitions: list[Signature] = []
        self.signatures: dict[str, list[tuple[str, Kind]]] = {}
        self.has_requests = rng.random() < 0.3
        self.has_phases = not self.has_requests and rng.random() < 0.2
        if self.has_requests or self.has_phases:
            self.variables = {"v0": self.variables["v0"]}
        self.has_names = not self.has_requests and not self.has_phases and rng.random() < 0.2
        self.gates = {
            name: self.at(f"{name} gate").choice(CONDITIONS)
            for name in self.variables
            if name != "v0" and self.at(f"{name} gated").random() < 0.3
        }

    def at(self, part: str) -> Random:
        return Random(f"{self.seed} {part}")

    def kind(self, part: str) -> Kind:
        rng = self.at(f"{part} kind")
        if self.is_wild and part == "v0":
            return rng.choice(WILD)
        return rng.choice(BY_SORT) if rng.random() < 0.4 else kind_of(rng)

    def open_variables(self, part: str) -> dict[str, Kind]:
        """Those of which a part may speak: mostly not what belongs to requests and phases, or no rule would be one."""
        everything = self.at(f"{part} sees").random() < 0.04
        return {v: k for v, k in self.variables.items() if everything or v not in PRIVATE}

    def expressions(self, part: str) -> Expressions:
        return Expressions(self.at(part), self.open_variables(part), self.definitions)

    def write(self) -> str:
        if self.has_requests:
            self.variables |= {
                "now": "N",
                "version": ("Map", "A", "N"),
                "wish": ("Map", "A", "N"),
                "taken": "N",
                "copy": ("Map", "A", "N"),
                "served": ("Maybe", "A"),
            }
        if self.has_phases:
            self.variables |= {
                "phase": ("Map", "A", "C"),
                "joined": ("Map", "A", ("Set", "A")),
                "joining": ("Map", "A", ("Set", "A")),
                "copy": ("Map", "A", ("Set", "A")),
                "landed": ("Set", "A"),
                "served": ("Maybe", "A"),
            }
        if self.has_names:
            self.variables |= {"now": "N", "owner": ("Map", "N", "A"), "who": "A"}
        self.lines.append("class State(Struct):")
        for name, kind in self.variables.items():
            gate = f", when={self.gates[name]}" if name in self.gates else ""
            self.lines.append(f'    {name}: {spelling(kind)} = var("A variable."{gate})')
        for name in ("d0", "d1")[: self.rng.choice([0, 1, 2])]:
            self.definition(name)
        self.initial()
        special = self.has_requests or self.has_phases
        actions = [self.action(f"act{i}") for i in range(1 if special else self.rng.choice([2, 3, 3, 4]))]
        actions += self.requests() if self.has_requests else []
        actions += self.phases() if self.has_phases else []
        actions += self.owners() if self.has_names else []
        kinds = ("always", "always", "always", "step", "step", "sometimes", "sometimes", "sometimes_step")
        properties = [self.property(kind, f"is_{kind}_{i}") for i, kind in enumerate(kinds)]
        properties += [self.served()] if self.has_requests or self.has_phases else []
        properties += [self.future(actions)] if self.at("future").random() < 0.6 else []
        acts, promised = ("".join(f"{name}, " for name in names) for names in (actions, properties))
        self.lines += ["", f'DESIGN = Design("random", "A design.", State, init, ({acts}), ({promised}))']
        return "\n".join(self.lines) + "\n"

    def parameters(self, part: str, choices: list[Kind]) -> list[tuple[str, Kind]]:
        rng = self.at(f"{part} parameters")
        return [(name, rng.choice(choices)) for name in rng.sample(["x", "y", "p"], rng.choice([0, 1, 1, 2]))]

    def function(self, decorator: str, head: str, conjuncts: list[str]) -> None:
        self.lines += ["", decorator, f"def {head} -> Step:", "    return ("]
        self.lines += [*(f"        {c}," for c in conjuncts), "    )"]

    def definition(self, name: str) -> None:
        parameters = self.parameters(name, ["Bool", "N", "M", "A", "B", "C"])
        results: list[Kind] = ["Bool", "Bool", "N", ("Set", "A"), ("Maybe", "M"), "C"]
        kind = self.at(f"{name} result").choice(results)
        numbers = frozenset(p for p, k in parameters if k in ("N", "M"))
        made, scope = self.expressions(name), Scope(("s",), dict(parameters), numbers)
        body = made.any(kind, scope, 2)
        if kind == "Bool" and numbers and made.maybe():
            tests = [f"({p} <= {HIGH[spelling(dict(parameters)[p])]})" for p in sorted(numbers)]
            body = f"({body} {made.pick('|', '&')} {made.pick(*tests)})"
        listed = "".join(f", {p}: {spelling(k)}" for p, k in parameters)
        self.lines += ["", "@define", f"def {name}(s: State{listed}) -> {spelling(kind)}:", f"    return {body}"]
        self.definitions.append((name, parameters, kind))

    def initial(self) -> None:
        """Its parameters have names that those of actions have, too."""
        needed = {sort for kind in self.variables.values() for sort in sorts_in(kind)}
        names = self.at("init names").sample(["x", "y", "p", "first"], len(needed))
        scope = Scope((), dict(zip(names, sorted(needed), strict=True)))
        conjuncts = [
            f"new.{name} == {self.expressions(f'init {name}').stored(kind, scope, 1)}"
            for name, kind in self.variables.items()
        ]
        listed = "".join(f", {p}: {spelling(k)}" for p, k in scope.locals.items())
        self.function("@initial", f"init(new: State{listed})", conjuncts)

    def action(self, name: str) -> str:
        rng = self.at(f"{name} plan")
        variables = [v for v in self.open_variables(name) if v != "now" or rng.random() < 0.1]
        changed = rng.sample(variables, min(rng.choice([1, 1, 2]), len(variables)))
        parameters = self.parameters_for(name, [self.variables[v] for v in changed])
        self.signatures[name] = parameters
        scope = Scope(("old",), dict(parameters))
        conjuncts = [self.guard(f"{name} guard {i}", scope) for i in range(rng.choice([0, 0, 1, 1]))]
        for variable in changed:
            part = self.expressions(f"{name} {variable}")
            conjuncts.append(self.update(f"new.{variable}", self.variables[variable], scope, part))
        rng.shuffle(conjuncts)
        listed = "".join(f", {p}: {spelling(k)}" for p, k in parameters)
        self.function("@action", f"{name}(old: State, new: State{listed})", conjuncts)
        return name

    def parameters_for(self, name: str, changed: list[Kind]) -> list[tuple[str, Kind]]:
        """A key of each map that is changed, an element of each set, and perhaps one more: of at most three kinds."""
        rng = self.at(f"{name} parameters")
        wishes: list[Kind] = [rng.choice(["A", "B", "N", "C", "Bool", ("Set", "B")])] * (rng.random() < 0.3)
        for kind in changed:
            while isinstance(kind, tuple):
                wishes += [k for k in kind[1:] if isinstance(k, str) and k in ("A", "B", "C")]
                kind = kind[-1]
        kinds = list(dict.fromkeys(wishes))[-3:]
        return list(zip(rng.sample(["x", "y", "p"], len(kinds)), kinds, strict=True))

    def guard(self, part: str, scope: Scope) -> str:
        made = self.expressions(part)
        facts = [*made.facts(scope), *self.facts_of_maps(made, scope)]
        fact = made.pick(*facts)
        return f"({fact} | {made.any('Bool', scope, 2)})" if made.maybe() else f"{made.pick('', '~')}{fact}"

    def update(self, target: str, kind: Kind, scope: Scope, made: Expressions) -> str:
        if kind == "Bool" and made.rng.random() < 0.3:
            return made.pick("", "~") + target
        if isinstance(kind, tuple) and kind[0] == "Map" and made.possible(kind[1], scope) and made.rng.random() < 0.85:
            keys = [x for x, k in scope.locals.items() if k == kind[1]]
            key = made.pick(*keys) if keys and made.rng.random() < 0.8 else made.key(kind[1], scope, 1)
            return self.update(f"{target}[{key}]", kind[2], scope, made)
        old = target.replace("new.", "old.", 1)
        wild = self.wild(old, kind, scope, made) if self.is_wild and made.rng.random() < 0.6 else None
        value = wild or (self.moved(old, kind, scope, made) if made.rng.random() < 0.8 else None)
        return f"{target} == {value or made.stored(kind, scope, 2)}"

    def moved(self, old: str, kind: Kind, scope: Scope, made: Expressions) -> str | None:
        """The value of a variable, a little changed, by what is at hand."""
        match kind:
            case ("Maybe", of):
                near = [x for x, k in scope.locals.items() if k == of] or made.leaves(of, scope)
                full = f"Maybe.of({made.pick(*near)})" if near else old
                return made.pick(f"when({old} == NONE, {full}, NONE)", full)
            case ("Set", of) if keys := [x for x, k in scope.locals.items() if k == of]:
                key = made.pick(*keys)
                turned = f"when({old}.has({key}), {old}.excluding({key}), {old}.including({key}))"
                return made.pick(turned, f"{old}.including({key})")
            case _:
                return made.moved(old, kind, scope)

    def wild(self, old: str, kind: Kind, scope: Scope, made: Expressions) -> str | None:
        """A value that may be out of range."""
        match kind:
            case "N" | "M":
                return made.pick(f"{old} + 1", f"{old} - 1", made.any(kind, scope, 1))
            case ("Maybe", "N" | "M" as of):
                return f"Maybe.of({made.key(of, scope, 1)})"
            case ("Set", "N" | "M" as of):
                return f"{old}.including({made.key(of, scope, 1)})"
            case ("Seq", "N", "N" | "M" as of):
                return made.pick(f"{old}.append({made.key(of, scope, 1)})", f"{old}.append({LOW[of]})")
            case ("Seq", "N", of) if made.leaves(of, scope):
                return f"{old}.append({made.any(of, scope, 0)})"
            case ("Map", key, "N" | "M" as of):
                return f"Map.build({key}, lambda k: {made.any(of, scope.binding('k', key), 1)})"
            case _:
                return None

    # what reductions are for

    def requests(self) -> list[str]:
        """Requests that name a version, of which some are passed; in some designs a rule about them would be wrong.

        `copy` has what was wished, for a promise only: a reduction must not change what is taken.
        """
        rng = self.at("requests")
        grows = f"when(old.now < {HIGH['N']}, old.now + 1, {rng.choice(['old.now', 'old.now', 'old.now', 'N.of(0)'])})"
        accepts = rng.choice(["old.version[x] == old.now"] * 4 + ["old.version[x] <= old.now", "old.wish[x] <= TOP"])
        asked = rng.choice(["old.now", "y", "old.now"])
        wishes = [f"new.version[x] == {asked}", "new.wish[x] == y", "new.copy[x] == y", "new.served == NONE"]
        self.signatures |= {"bumps": [], "asks": [("x", "A"), ("y", "N")], "takes": [("x", "A")]}
        self.function("@action", "bumps(old: State, new: State)", [f"new.now == {grows}"])
        self.function("@action", "asks(old: State, new: State, x: A, y: N)", wishes)
        takes = [accepts, "new.taken == old.wish[x]", "new.served == Maybe.of(x)"]
        self.function("@action", "takes(old: State, new: State, x: A)", takes)
        return ["bumps", "asks", "takes"]

    def phases(self) -> list[str]:
        """Members that count only beside those who are in already; in some designs they count otherwise, too."""
        rng = self.at("phases")
        red, green, blue = rng.sample(PHASES, 3)
        wish = rng.choice(["Set.of(y)", "old.joined[x] | Set.of(y)"])
        end, none = rng.choice([red, blue, blue]), rng.random() < 0.75
        self.signatures |= {"joins": [("x", "A"), ("y", "A")], "lands": [("x", "A")], "rests": [("x", "A")]}
        joins = [f"old.phase[x] == {red}", f"new.phase[x] == {green}", f"new.joining[x] == {wish}"]
        joins += [f"new.copy[x] == {wish}", "new.served == NONE"]
        self.function("@action", "joins(old: State, new: State, x: A, y: A)", joins)
        lands = [
            f"old.phase[x] == {green}",
            "new.joined[x] == old.joined[x] | old.joining[x]",
            f"new.phase[x] == {end}",
        ]
        cleared = ["new.joining[x] == Set.empty(A)", "new.copy[x] == Set.empty(A)"] * none
        self.function("@action", "lands(old: State, new: State, x: A)", [*lands, *cleared, "new.served == NONE"])
        rests = [f"old.phase[x] == {rng.choice([green, blue, blue])}", f"new.phase[x] == {red}"]
        reads = ["new.landed == old.joining[x]", "new.served == Maybe.of(x)"]
        rests += rng.choice([["(old.joined[x] | old.joining[x]).has(x)"], ["old.joining[x].is_empty()"], *[reads] * 4])
        self.function("@action", "rests(old: State, new: State, x: A)", rests)
        return ["joins", "lands", "rests"]

    def served(self) -> str:
        """Who was served has what it asked for."""
        what = "taken" if self.has_requests else "landed"
        body = f"forall((s.served == e).implies(s.{what} == s.copy[e]) for e in A.all())"
        self.lines += ["", "@always", "def served_as_asked(s: State) -> Bool:", f"    return {body}"]
        return "served_as_asked"

    # what symmetry must refuse, in some designs

    def owners(self) -> list[str]:
        """Elements by number, looked up at numbers that need not be in range."""
        rng = self.at("owners")
        self.signatures |= {"moves": [], "hands": [("x", "A")], "looks": []}
        up = f"when(old.now < {HIGH['N']}, old.now + 1, N.of(0))"
        self.function("@action", "moves(old: State, new: State)", [f"new.now == {up}"])
        self.function("@action", "hands(old: State, new: State, x: A)", ["new.owner[old.now] == x"])
        key = rng.choice(["old.now", "old.now + 1", "old.now - 1"])
        guard = rng.choice([[], [f"old.now < {HIGH['N']}"]])
        self.function("@action", "looks(old: State, new: State)", [*guard, f"new.who == old.owner[{key}]"])
        return ["moves", *["hands"] * (rng.random() < 0.4), "looks"]

    # promises

    def property(self, kind: str, name: str) -> str:
        states = ("old", "new") if kind.endswith("step") else ("s",)
        made, scope = self.expressions(name), Scope(states, {})
        gate = f"(when={made.pick(*CONDITIONS)})" if made.rng.random() < 0.15 else ""
        body = self.condition(made, scope, kind)
        listed = ", ".join(f"{s}: State" for s in states)
        self.lines += ["", f"@{kind}{gate}", f"def {name}({listed}) -> Bool:", f"    return {body}"]
        return name

    def condition(self, made: Expressions, scope: Scope, kind: str) -> str:
        """Mostly one that is decided after some steps, if at all."""
        if made.rng.random() < 0.2:
            return made.any("Bool", scope, 3)
        if self.signatures and not kind.endswith("step") and made.rng.random() < 0.1:
            return self.enabled(made, scope)
        facts = [self.fact(made, scope) for _ in range(made.rng.choice([1, 2, 2, 3]))]
        facts += [made.any("Bool", scope, 1)] * (made.rng.random() < 0.3)
        both = " & ".join(facts)
        return f"({both})" if kind.startswith("sometimes") else f"~({both})"

    def fact(self, made: Expressions, scope: Scope) -> str:
        """A condition about variables, perhaps about some or all elements of a sort."""
        if made.rng.random() < 0.5:
            sort = made.pick("A", "A", "B", "N")
            inner = scope.binding("e", sort)
            facts = [*made.facts(inner), *self.facts_of_maps(made, inner)]
            chosen = [f for f in facts if "e]" in f or "(e)" in f or " e)" in f] or facts
            return f"{made.pick('exists', 'forall')}({made.pick(*chosen)} for e in {sort}.all())"
        facts = [f for f in made.facts(scope) if "[" not in f]
        return made.pick(*facts) if facts else made.any("Bool", scope, 2)

    def facts_of_maps(self, made: Expressions, scope: Scope) -> list[str]:
        """A condition about each map at a key that is at hand, of which there is at least one."""
        found = [made.any("Bool", scope, 1)]
        for variable, kind in ((f"{s}.{v}", k) for s in scope.states for v, k in made.variables.items()):
            keys = [x for x, k in scope.locals.items() if isinstance(kind, tuple) and kind[0] == "Map" and kind[1] == k]
            for x in keys:
                match kind[2]:
                    case "N" | "M":
                        found += [f"({variable}[{x}] > 1)", f"({variable}[{x}] == {made.pick('0', '1', '2')})"]
                    case "C":
                        found.append(f"({variable}[{x}] == {made.pick(*PHASES)})")
                    case ("Maybe", _):
                        found.append(f"({variable}[{x}] == NONE)")
                    case ("Set", _):
                        found.append(f"{variable}[{x}].is_empty()")
                    case _:
                        pass
        return found

    def enabled(self, made: Expressions, scope: Scope) -> str:
        name = made.pick(*self.signatures)
        parameters = self.signatures[name]
        if any(isinstance(k, tuple) for _, k in parameters):
            return made.any("Bool", scope, 2)
        fixed = {"Bool": "Bool.true", "C": "C.GREEN"}
        loops = "".join(f" for {p} in {k}.all()" for p, k in parameters if k not in fixed)
        arguments = "".join(f", {fixed.get(spelling(k), p)}" for p, k in parameters)
        return f"exists(enabled({name}{arguments}){loops})" if loops else f"enabled({name}{arguments})"

    def future(self, actions: list[str]) -> str:
        made, rng = self.expressions("leads"), self.at("fairness")
        trigger, goal = (self.fact(made, Scope(("s",), {})) for _ in range(2))
        fair = [a for a in actions if rng.random() < 0.6]
        strong = [a for a in fair if rng.random() < 0.3]
        listed, strongly = ("".join(f"{a}, " for a in names) for names in (fair, strong))
        self.lines += ["", f'LEADS = leads_to("leads", "A future.", lambda s: {trigger}, lambda s: {goal},']
        self.lines.append(f"    state=State, fair=({listed}), strong=({strongly}))")
        return "LEADS"


def constants_for(design: Design, rng: Random, largest: int) -> dict[str, Value]:
    """Sizes up to the largest, so that what has many parts stays small."""
    values: dict[str, Value] = {
        "size": min(largest, rng.choice([1, 2, 2, 2, 3])),
        "top": min(largest, rng.choice([1, 2, 2, 2, 3])),
        "gate": rng.random() < 0.6,
        "how": rng.choice(["stop", "go"]),
    }
    return {c.name: values[c.name] for c in design.constants()}


def random_design(seed: str, number: int) -> Model:
    """The design with this number of a seed; ModelError if the language refuses it."""
    name = f"{seed} {number}"
    writer = Writer(name)
    source = writer.write()
    design = trace(source)
    largest = 2 if writer.has_requests or writer.has_phases else 3
    return Model(source, design, constants_for(design, Random(f"{name} constants"), largest))
