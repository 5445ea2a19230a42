"""A design as a TLA+ module for all bounds and settings: `tla(design)`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

import attrs

from isr_check.export.layout import (
    COMPARE,
    NOT,
    OPEN,
    RANGE,
    WIDTH,
    Break,
    Term,
    at_least,
    hung,
    junction,
    lines,
    listed,
    paragraphs,
)
from isr_check.export.names import Names, camel, small_camel
from isr_check.export.ranges import Ranges
from isr_check.export.tla_operators import Scope, Writer
from isr_check.export.tla_values import HELPERS, RESERVED, Values, helper_definition, member
from isr_lang import Action, Constant, Definition, Design, Node, Property, Update, Variable
from isr_lang.nodes import apply
from isr_lang.types import MapType, SeqType, Type

RULE = "-" * 80
PREFIX = {"sometimes": "Never", "sometimes-step": "Never", "eventually": ""}


class Module:
    """The names of a design's module and its parts, each as lines; `text` puts them in the usual order."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.name = camel(design.name)
        self.names = Names({*RESERVED, self.name})
        self.values = Values(design, self.names)
        claim = self.names.claim
        small = small_camel
        self.variables = {v.name: claim(small(v.name), f"{small(v.name)}Now") for v in design.variables}
        self.definitions = {d: claim(camel(d.name), f"{camel(d.name)}Of") for d in design.definitions()}
        self.actions = {a.name: claim(camel(a.name), f"{camel(a.name)}Step") for a in design.actions}
        self.properties = {p.name: self._property_name(p) for p in design.properties}
        eventually = [p.name for p in design.properties if p.kind == "eventually"]
        self.fair = {name: claim(f"{self.properties[name]}Spec") for name in eventually}
        ranges = Ranges(design.roots(), {d: d.body for d in design.definitions()})
        self.writer = Writer(self.values, ranges, self.variables, self.definitions)

    def _property_name(self, p: Property) -> str:
        name = PREFIX.get(p.kind, "") + camel(p.name)
        return self.names.claim(name, f"{name}Property")

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
        assumed = [a for c, name in self.values.constants.items() if (a := self._assumption(c, name))]
        for t in self.values.sorts:
            size = Term((f"Cardinality({self.values.type_names[t]})",))
            if self.values.number(t.size).flat != size.flat:
                assumed.append(Term((size, " = ", self.values.number(t.size)), COMPARE))
        assumed += [self.writer.term(a.condition, Scope()) for a in self.design.assumptions]
        laid = _declared("CONSTANTS", entries)
        if assumed:
            laid += ["", *_stacked("ASSUME", junction("/\\", assumed))]
        return laid

    def _assumption(self, constant: Constant, name: str) -> Term | None:
        if constant.choice is not None:
            strings = (f'"{member(constant.choice, i)}"' for i in range(len(constant.names)))
            return Term((f"{name} \\in {{{', '.join(strings)}}}",), COMPARE)
        if constant.names:
            return Term((f"{name} \\in BOOLEAN",), COMPARE)
        at_all = {0: "Nat", 1: r"Nat \ {0}"}.get(constant.low, f"Int /\\ {name} >= {constant.low}")
        return Term((f"{name} \\in {at_all}",), COMPARE)

    def types(self) -> list[str]:
        laid: list[str] = []
        for t in self.values.numbers:
            assert t.high is not None
            high = at_least(self.values.number(t.high), RANGE + 1).flat
            laid += [*_comment(t.doc), f"{self.values.type_names[t]} == {t.low}..{high}", ""]
        for c in self.values.choices:
            members = [f'"{member(c, i)}"' for i in range(len(c.members))]
            laid += [
                *_comment(c.doc),
                *hung(f"{self.values.type_names[c]} == {{", listed(members, WIDTH - 30)),
            ]
            laid[-1:] = [laid[-1] + "}", ""]
        if any(_has_sequence(v.type) for v in self.design.variables):
            laid += [r"\* Sequences of members of S that are at most n long."]
            laid += [r"BoundedSeq(S, n) == UNION {[1..m -> S] : m \in 0..n}", ""]
        return laid[:-1]

    def state(self) -> list[str]:
        entries = [(self.variables[v.name], self._meaning(v)) for v in self.design.variables]
        laid = _declared("VARIABLES", entries)
        every = listed([self.variables[v.name] for v in self.design.variables], WIDTH - 10)
        laid += ["", *hung("vars == <<", every)]
        laid[-1] += ">>"
        typed = [
            Term((self.variables[v.name], r" \in ", self.values.domain(v.type)), COMPARE)
            for v in self.design.variables
        ]
        return [*laid, "", *_stacked("TypeOK ==", junction("/\\", typed))]

    def _meaning(self, v: Variable) -> str:
        doc = " ".join(v.doc.split())
        if v.ghost:
            doc += " (history: no action depends on it)"
        if v.when is not None:
            doc += f" (constant unless {self.writer.term(v.when, Scope()).flat})"
        return doc.strip()

    def helpers(self) -> list[str]:
        laid: list[str] = []
        for name in HELPERS:
            if name in self.values.helpers:
                head, body, doc = helper_definition(self.values, name)
                laid += [f"\\* {doc}", f"{head} ==", f"    {body}", ""]
        return laid[:-1]

    def definition(self, d: Definition) -> list[str]:
        scope, formals = self._formals(((p, t) for p, t in d.parameters))
        head = f"{self.definitions[d]}{_parenthesised(formals)} =="
        scope = attrs.evolve(scope, doubtful=self.writer.ranges.doubtful(d))
        return [*_comment(d.doc), *_stacked(head, self.writer.term(d.body, scope))]

    def _formals(self, parameters: Iterable[tuple[str, Type]]) -> tuple[Scope, list[str]]:
        scope, formals = Scope(), list[str]()
        for name, _ in parameters:
            chosen, scope = self.writer.bind(scope, name, name)
            formals.append(chosen)
        return scope, formals

    def update(self, u: Update, scope: Scope, primed: bool, guards: frozenset[Node]) -> Term:
        variable = next(v for v in self.design.variables if v.name == u.variable)
        name, value = self.variables[u.variable], self.writer.term(u.value, scope)
        if u.path:
            keys = "".join(f"[{self.writer.term(k, scope).flat}]" for k in u.path)
            value = Term((f"[{name} EXCEPT !{keys} = ", value, "]"))
        if primed and variable.when is not None and variable.when not in guards:
            exists = self.writer.term(variable.when, Scope())
            value = Term(("IF ", exists, Break(), "THEN ", value, Break(), f"ELSE {name}"), OPEN)
        shown = value if value.level == OPEN else at_least(value, COMPARE + 1)
        return Term((f"{name}{chr(39) * primed} = ", shown), COMPARE)

    def action(self, a: Action) -> list[str]:
        scope, formals = self._formals(a.parameters)
        guards = frozenset(conjunct for g in a.guards for conjunct in _conjuncts(g.condition))
        items = [self.writer.term(g.condition, scope) for g in a.guards]
        items += [self.update(u, scope, True, guards) for u in a.updates]
        changed = {u.variable for u in a.updates}
        kept = [self.variables[v.name] for v in self.design.variables if v.name not in changed]
        laid = [*_comment(a.doc), f"{self.actions[a.name]}{_parenthesised(formals)} =="]
        body = _bullets(items)
        if kept:
            unchanged = ["UNCHANGED vars"] if not changed else hung("UNCHANGED <<", listed(kept, WIDTH - 24))
            unchanged[-1] += ">>" * bool(changed)
            body += hung("/\\ ", unchanged)
        return laid + ["    " + line for line in body]

    def initial(self) -> list[str]:
        a = self.design.initial
        scope, formals = self._formals(a.parameters)
        body = _bullets([self.update(u, scope, False, frozenset()) for u in a.updates])
        where = self._ranges(a.parameters, formals)
        laid = [*_comment(a.doc), "Init =="]
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
        call = shape.format(f"{self.actions[a.name]}{_parenthesised(formals)}")
        where = self._ranges(a.parameters, formals)
        return f"{symbol} {where} : {call}" if where else call

    def next(self) -> list[str]:
        steps = [f"    \\/ {self._quantified(a, chr(92) + 'E', '{}')}" for a in self.design.actions]
        return ["Next ==", *steps, "", "Spec == Init /\\ [][Next]_vars"]

    def property(self, p: Property) -> list[str]:
        name = self.properties[p.name]
        condition = p.condition
        if p.kind.startswith("sometimes"):
            condition = apply("not", condition)
        if p.kind == "eventually":
            return self._eventually(p, name)
        if p.when is not None:
            condition = apply("implies", p.when, condition)
        term = self.writer.term(condition, Scope())
        if p.kind.endswith("step"):
            term = Term(("[][", term, "]_vars"))
        doc = [r"\* Violated where TLC finds a witness."] * p.kind.startswith("sometimes")
        return [*_comment(p.doc), *doc, *_stacked(f"{name} ==", term)]

    def _eventually(self, p: Property, name: str) -> list[str]:
        assert p.trigger is not None
        trigger = p.trigger if p.when is None else apply("and", p.when, p.trigger)
        left, right = (at_least(self.writer.term(n, Scope()), NOT) for n in (trigger, p.condition))
        fair = [self._quantified(self.design.action_named(f), r"\A", "WF_vars({})") for f in p.fair]
        bullets = ["    /\\ Spec", *(f"    /\\ {f}" for f in fair)]
        return [
            *_comment(p.doc),
            *_stacked(f"{name} ==", Term((left, Break(), "~> ", right), OPEN)),
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
        state, types, initial, following = self.state(), self.types(), self.initial(), self.next()
        properties = [self.property(p) for p in self.design.properties]
        symmetry = self.symmetry()
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


def _conjuncts(node: Node) -> list[Node]:
    return [c for a in node.args for c in _conjuncts(a)] if node.op == "and" else [node]


def _parenthesised(names: Sequence[str]) -> str:
    return f"({', '.join(names)})" if names else ""


def _comment(doc: str) -> list[str]:
    return [f"\\* {line}".rstrip() for line in paragraphs(doc, WIDTH - 20)] if doc.strip() else []


def _bullets(items: Sequence[Term]) -> list[str]:
    """A bulleted conjunction, also of one item."""
    laid: list[str] = []
    for item in items:
        for conjunct in item.parts if item.bullet == "/\\" else (item,):
            if isinstance(conjunct, Term):
                laid += hung("/\\ ", lines(conjunct, WIDTH - 7, force=True))
    return laid


def _stacked(head: str, body: Term) -> list[str]:
    """`head body` on one line where it fits, else the body below."""
    if len(head) + 1 + len(body.flat) <= WIDTH and not body.bullet:
        return [f"{head} {body.flat}"]
    return [head, *("    " + line for line in lines(body, WIDTH - 4, force=True))]


def _declared(keyword: str, entries: Sequence[tuple[str, str]]) -> list[str]:
    """CONSTANTS or VARIABLES, each with its meaning beside it."""
    column = max(len(name) for name, _ in entries) + 1
    laid = [keyword]
    for i, (name, doc) in enumerate(entries):
        comma = "," if i < len(entries) - 1 else ""
        said = textwrap.wrap(" ".join(doc.split()), WIDTH - 9 - column)
        laid += [f"    {name + comma:<{column}}  \\* {said[0]}" if said else f"    {name}{comma}"]
        laid += [f"    {'':<{column}}  \\* {more}" for more in said[1:]]
    return laid


def tla(design: Design) -> str:
    """The text of the design's module."""
    return Module(design).text()
