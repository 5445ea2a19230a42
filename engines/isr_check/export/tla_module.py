"""A design as a TLA+ module for all bounds and settings: `tla(design)`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import attrs

from isr_check.export.layout import (
    COMPARE,
    NOT,
    OPEN,
    PLUS,
    RANGE,
    WIDTH,
    Break,
    Term,
    at_least,
    hang,
    junction,
    lines,
    paragraphs,
    wrapped_list,
)
from isr_check.export.names import Names, camel, small_camel
from isr_check.export.tla_blocks import argument_list, bullets, comment, declaration, head_and_body, tuple_of
from isr_check.export.tla_operators import Writer
from isr_check.export.tla_scope import Scope
from isr_check.export.tla_values import HELPERS, RESERVED_WORDS, Values, helper_definition, member
from isr_lang import Action, Constant, Definition, Design, Node, Property, Update, Variable
from isr_lang.extents import Ranges
from isr_lang.left_out import storing_in_range
from isr_lang.nodes import apply
from isr_lang.types import MapType, SeqType, Type

RULE = "-" * 80
PREFIX = {"sometimes": "Never", "sometimes-step": "Never", "eventually": ""}


class Module:
    """The names in a design's module, and a method for the lines of each part; `text` puts the parts in order."""

    def __init__(self, design: Design) -> None:
        self.design = design = storing_in_range(design)
        self.name = camel(design.name)
        self.names = Names({*RESERVED_WORDS, self.name})
        self.values = Values(design, self.names)
        claim = self.names.claim
        small = small_camel
        self.variables = {v.name: claim(small(v.name), f"{small(v.name)}Now") for v in design.variables}
        self.groups = self._groups()
        self.definitions = {d: claim(camel(d.name), f"{camel(d.name)}Of") for d in design.definitions()}
        ranges = Ranges(design.roots(), {d: d.body for d in design.definitions()})
        self.writer = Writer(self.values, ranges, self.variables, self.definitions)
        self.gates = self._gates()
        self.actions = {a.name: claim(camel(a.name), f"{camel(a.name)}Step") for a in design.actions}
        self.properties = {p.name: self._property_name(p) for p in design.properties}
        eventually = [p.name for p in design.properties if p.kind == "eventually"]
        self.fair = {name: claim(f"{self.properties[name]}Spec") for name in eventually}

    def _property_name(self, p: Property) -> str:
        name = PREFIX.get(p.kind, "") + camel(p.name)
        return self.names.claim(name, f"{name}Property")

    def _groups(self) -> dict[str, str]:
        """Variable -> name of its group: at least three variables in a row whose names begin with the same word."""
        groups: dict[str, str] = {}
        for word, run in groupby((v.name for v in self.design.variables), lambda name: name.split("_")[0]):
            members = list(run)
            if len(members) > 2:
                groups |= dict.fromkeys(members, self.names.claim(f"{word}Vars"))
        return groups

    def _gates(self) -> dict[Node, str]:
        """Condition under which variables exist -> its name, for long conditions; named after the first variable."""
        found: dict[Node, str] = {}
        for v in self.design.variables:
            if v.when is not None and v.when not in found and len(self.writer.term(v.when, Scope()).flat) > 20:
                found[v.when] = self.names.claim(f"Has{camel(v.name)}")
        return found

    def gate(self, condition: Node) -> Term:
        name = self.gates.get(condition)
        return self.writer.term(condition, Scope()) if name is None else Term((name,))

    # The parts

    def header(self) -> list[str]:
        d = self.design
        title = f" MODULE {self.name} "
        dashes = max(4, (len(RULE) - len(title)) // 2)
        said = [paragraphs(f"{d.name}: {d.summary}", 76)]
        if d.because:
            differs = f"Differs from {d.based_on.name}: " if d.based_on else ""
            said.append(paragraphs(f"{differs}{d.because}", 76))
        body = [line for i, p in enumerate(said) for line in ([""] * (i > 0) + p)]
        box = [f"(* {line:<76} *)" if line else f"(* {'':<76} *)" for line in body]
        edge = f"({'*' * 80})"
        return [f"{'-' * dashes}{title}{'-' * dashes}", edge, *box, edge]

    def constants(self) -> list[str]:
        entries = [(self.values.type_names[t], t.doc) for t in self.values.sorts]
        entries += [(name, c.doc) for c, name in self.values.constants.items()]
        if self.values.none_used:
            entries.append(("None", "the value that is not there: a model value"))
        if not entries:
            return []
        assumptions = [a for c, name in self.values.constants.items() if (a := self._assumption(c, name))]
        for t in self.values.sorts:
            size = Term((f"Cardinality({self.values.type_names[t]})",))
            if self.values.number(t.size).flat != size.flat:
                assumptions.append(Term((size, " = ", self.values.number(t.size)), COMPARE))
        assumptions += [self.writer.term(a.condition, Scope()) for a in self.design.assumptions]
        block = declaration("CONSTANTS", entries)
        if assumptions:
            block += ["", *head_and_body("ASSUME", junction("/\\", assumptions))]
        for condition, name in self.gates.items():
            there = ", ".join(self.variables[v.name] for v in self.design.variables if v.when is condition)
            meaning = f"Whether there is any use for {there}."
            block += ["", *comment(meaning), *head_and_body(f"{name} ==", self.writer.term(condition, Scope()))]
        return block

    def _assumption(self, constant: Constant, name: str) -> Term | None:
        if constant.choice is not None:
            strings = (f'"{member(constant.choice, i)}"' for i in range(len(constant.names)))
            return Term((f"{name} \\in {{{', '.join(strings)}}}",), COMPARE)
        if constant.names:
            return Term((f"{name} \\in BOOLEAN",), COMPARE)
        at_all = {0: "Nat", 1: r"Nat \ {0}"}.get(constant.low, f"Int /\\ {name} >= {constant.low}")
        return Term((f"{name} \\in {at_all}",), COMPARE)

    def types(self) -> list[str]:
        block: list[str] = []
        value_types = self.values.value_types
        for t in (t for t in self.values.numbers if t in value_types):
            assert t.high is not None
            high = at_least(self.values.number(t.high), RANGE + 1).flat
            block += [*comment(t.doc), f"{self.values.type_names[t]} == {t.low}..{high}", ""]
        for c in (c for c in self.values.choices if c in value_types):
            members = [f'"{member(c, i)}"' for i in range(len(c.members))]
            block += [
                *comment(c.doc),
                *hang(f"{self.values.type_names[c]} == {{", wrapped_list(members, WIDTH - 30)),
            ]
            block[-1:] = [block[-1] + "}", ""]
        if any(_has_sequence(v.type) for v in self.design.variables):
            block += [r"\* Sequences of members of S that are at most n long."]
            block += [r"BoundedSeq(S, n) == UNION {[1..m -> S] : m \in 0..n}", ""]
        return block[:-1]

    def state(self) -> list[str]:
        entries = [(self.variables[v.name], self._meaning(v)) for v in self.design.variables]
        block = declaration("VARIABLES", entries)
        for group in dict.fromkeys(self.groups.values()):
            members = [self.variables[v] for v, g in self.groups.items() if g == group]
            block += ["", *tuple_of(group, members)]
        every = [self.groups.get(v.name, self.variables[v.name]) for v in self.design.variables]
        block += ["", *tuple_of("vars", list(dict.fromkeys(every)))]
        typed = [
            Term((self.variables[v.name], r" \in ", self.values.domain(v.type)), COMPARE) for v in self.design.variables
        ]
        return [*block, "", *head_and_body("TypeOK ==", junction("/\\", typed))]

    def _meaning(self, v: Variable) -> str:
        doc = " ".join(v.doc.split())
        if v.ghost:
            doc += " (history: no action depends on it)"
        if v.when is not None:
            doc += f" (constant unless {self.gate(v.when).flat})"
        return doc.strip()

    def helpers(self) -> list[str]:
        block: list[str] = []
        for name in HELPERS:
            if name in self.values.helpers:
                head, body, doc = helper_definition(self.values, name)
                block += [f"\\* {doc}", *head_and_body(f"{head} ==", Term((body,))), ""]
        return block[:-1]

    def definition(self, d: Definition) -> list[str]:
        scope, formals = self._formals(((p, t) for p, t in d.parameters))
        head = f"{self.definitions[d]}{argument_list(formals)} =="
        scope = attrs.evolve(scope, doubtful=self.writer.ranges.doubtful(d))
        return [*comment(d.doc), *head_and_body(head, self._with_lets([d.body], scope))]

    def _with_lets(self, roots: Sequence[Node], scope: Scope) -> Term:
        """The term of the first root; a LET before it defines what is long and occurs twice in the roots."""
        lets, scope = self.writer.sharing(roots, scope, {})
        body = self.writer.term(roots[0], scope)
        if not lets:
            return body
        parts: list[str | Break | Term] = ["LET "]
        for i, (name, value) in enumerate(lets):
            parts += [Break(4)] * bool(i) + [f"{name} == ", value]
        return Term((*parts, Break(), "IN  ", body), OPEN)

    def _formals(self, parameters: Iterable[tuple[str, Type]]) -> tuple[Scope, list[str]]:
        scope, formals = Scope(), list[str]()
        for name, type in parameters:
            chosen, scope = self.writer.bind(scope, name, name, type)
            formals.append(chosen)
        return scope, formals

    def update(self, u: Update, scope: Scope, is_primed: bool, guards: frozenset[Node]) -> Term:
        variable = next(v for v in self.design.variables if v.name == u.variable)
        name, (path, new) = self.variables[u.variable], _deepest(variable, u)
        value = self.writer.term(new, scope)
        if path:
            keys = "".join(f"[{self.writer.term(k, scope).flat}]" for k in path)
            value = Term((f"[{name} EXCEPT", Break(4), f"!{keys} = ", value, "]"))
        if is_primed and variable.when is not None and variable.when not in guards:
            value = Term(("IF ", self.gate(variable.when), Break(), "THEN ", value, Break(), f"ELSE {name}"), OPEN)
        shown = value if value.level == OPEN else at_least(value, COMPARE + 1)
        return Term((f"{name}{chr(39) * is_primed} = ", shown), COMPARE)

    def action(self, a: Action) -> list[str]:
        scope, formals = self._formals(a.parameters)
        guards = frozenset(conjunct for g in a.guards for conjunct in _conjuncts(g.condition))
        roots = [g.condition for g in a.guards] + [n for u in a.updates for n in (*u.path, u.value)]
        lets, scope = self.writer.sharing(roots, scope, {u.value: u.variable for u in a.updates})
        items = [self.guard(g.condition, scope) for g in a.guards]
        items += [self.update(u, scope, True, guards) for u in a.updates]
        body = bullets(items) + self.unchanged({u.variable for u in a.updates})
        if lets:
            named = [hang(f"{name} == ", lines(value, WIDTH - 12 - len(name))) for name, value in lets]
            body = hang("LET ", [line for block in named for line in block]) + hang("IN  ", body)
        head = f"{self.actions[a.name]}{argument_list(formals)} =="
        return [*comment(a.doc), head, *("    " + line for line in body)]

    def guard(self, condition: Node, scope: Scope) -> Term:
        """A guard of an action; with `= TRUE` where TLC would count each way to satisfy it as a step of its own."""
        if condition.op == "and":
            return junction("/\\", [self.guard(part, scope) for part in condition.args])
        term = self.writer.term(condition, scope)
        return Term((at_least(term, PLUS), " = TRUE"), COMPARE) if _splits(condition) else term

    def unchanged(self, changed_variables: set[str]) -> list[str]:
        """The UNCHANGED conjunct of an action; a group of which no variable changes stands there by its name."""
        if not changed_variables:
            return ["/\\ UNCHANGED vars"]
        kept = [v.name for v in self.design.variables if v.name not in changed_variables]
        if not kept:
            return []
        names = dict.fromkeys(
            self.groups[v] if changed_variables.isdisjoint(self._members(v)) else self.variables[v] for v in kept
        )
        block = hang("/\\ UNCHANGED <<", wrapped_list(list(names), WIDTH - 24))
        return [*block[:-1], block[-1] + ">>"]

    def _members(self, variable: str) -> set[str]:
        """The variables in this one's group; all variables if it has none, so that its own name is listed."""
        group = self.groups.get(variable)
        return {v.name for v in self.design.variables if group is None or self.groups.get(v.name) == group}

    def initial(self) -> list[str]:
        a = self.design.initial
        scope, formals = self._formals(a.parameters)
        body = bullets([self.update(u, scope, False, frozenset()) for u in a.updates])
        where = self._ranges(a.parameters, formals)
        laid = [*comment(a.doc), "Init =="]
        if where:
            laid.append(f"    \\E {where} :")
        return laid + [("        " if where else "    ") + line for line in body]

    def _ranges(self, parameters: Sequence[tuple[str, Type]], formals: Sequence[str]) -> str:
        """`r, s \\in Node, e \\in Epoch`: the values of an action's parameters."""
        groups: list[tuple[list[str], str]] = []
        for (_, type), name in zip(parameters, formals, strict=True):
            domain = self.values.domain(type).flat
            if groups and groups[-1][1] == domain:
                groups[-1][0].append(name)
            else:
                groups.append(([name], domain))
        return ", ".join(f"{', '.join(names)} \\in {domain}" for names, domain in groups)

    def _quantified(self, a: Action, symbol: str, shape: str) -> str:
        _, formals = self._formals(a.parameters)
        call = shape.format(f"{self.actions[a.name]}{argument_list(formals)}")
        where = self._ranges(a.parameters, formals)
        return f"{symbol} {where} : {call}" if where else call

    def next(self) -> list[str]:
        steps = [f"    \\/ {self._quantified(a, chr(92) + 'E', '{}')}" for a in self.design.actions]
        return ["Next ==", *(steps or ["    FALSE"]), "", "Spec == Init /\\ [][Next]_vars"]

    def property(self, p: Property) -> list[str]:
        name = self.properties[p.name]
        condition = p.condition
        if p.kind.startswith("sometimes"):
            condition = apply("not", condition)
        if p.kind == "eventually":
            return self._eventually(p, name)
        if p.when is not None:
            condition = apply("implies", p.when, condition)
        term = self._with_lets([condition], Scope())
        if p.kind.endswith("step"):
            term = Term(("[][", term, "]_vars"))
        doc = [r"\* Violated where TLC finds a witness."] * p.kind.startswith("sometimes")
        return [*comment(p.doc), *doc, *head_and_body(f"{name} ==", term)]

    def _eventually(self, p: Property, name: str) -> list[str]:
        assert p.trigger is not None
        trigger = p.trigger if p.when is None else apply("and", p.when, p.trigger)
        left_side, right = (at_least(self.writer.term(n, Scope()), NOT) for n in (trigger, p.condition))
        demands = {**dict.fromkeys(p.fair, "WF_vars({})"), **dict.fromkeys(p.strongly_fair, "SF_vars({})")}
        present = [a for a in self.design.actions if a.name in demands]  # it may name actions of other designs
        fair = [self._quantified(a, r"\A", demands[a.name]) for a in present]
        bullets = ["    /\\ Spec", *(f"    /\\ {f}" for f in fair)]
        return [
            *comment(p.doc),
            *head_and_body(f"{name} ==", Term((left_side, Break(), "~> ", right), OPEN)),
            "",
            f"{self.fair[p.name]} ==",
            *bullets,
        ]

    def symmetry(self) -> list[str]:
        sets = [f"Permutations({self.values.type_names[t]})" for t in self.values.sorts if t.symmetric]
        return ["Symmetry == " + r" \cup ".join(sets)] if sets else []

    def text(self) -> str:
        actions = [self.action(a) for a in self.design.actions]
        definitions = [self.definition(d) for d in self.design.definitions()]
        state, initial, following = self.state(), self.initial(), self.next()
        properties = [self.property(p) for p in self.design.properties]
        types, symmetry = self.types(), self.symmetry()  # last: now it is known which types are named
        extends = "EXTENDS Integers, Sequences, FiniteSets" + ", TLC" * bool(symmetry)
        sections = [
            [[*self.header(), extends]],
            [self.constants(), types],
            [state],
            [self.helpers(), *definitions],
            [initial],
            actions,
            [following],
            properties,
            [symmetry],
        ]
        shown = ["\n\n".join("\n".join(part) for part in section if part) for section in sections]
        return f"\n\n{RULE}\n\n".join(s for s in shown if s) + f"\n\n{'=' * len(RULE)}\n"


def _has_sequence(type: Type) -> bool:
    return isinstance(type, SeqType) or (isinstance(type, MapType) and _has_sequence(type.value))


def _splits(condition: Node) -> bool:
    """Whether TLC would look for more than one way to satisfy an action's condition (Tool.getNextStatesAppl)."""
    match condition.op:
        case "or" | "exists":
            return True
        case "and":
            return any(map(_splits, condition.args))
        case "forall" | "implies" | "when":
            return any(map(_splits, condition.args[1:]))
        case "call":
            return _splits(condition.attr[0].body)
        case _:
            return False


def _conjuncts(node: Node) -> list[Node]:
    return [c for a in node.args for c in _conjuncts(a)] if node.op == "and" else [node]


def _deepest(variable: Variable, u: Update) -> tuple[tuple[Node, ...], Node]:
    """The path and value of an update, with the path as long as possible: x[i] := x[i].put(j, v) is x[i][j] := v."""
    path, value = list(u.path), u.value
    here = Node("variable", (), (u.variable, False), variable.type)
    for key in path:
        assert isinstance(here.type, MapType)
        here = Node("get", (here, key), None, here.type.value)
    while value.op == "put" and value.args[0] is here:
        path.append(value.args[1])
        here = Node("get", (here, value.args[1]), None, value.args[2].type)
        value = value.args[2]
    return tuple(path), value


def tla(design: Design) -> str:
    """The text of the design's module."""
    return Module(design).text()
