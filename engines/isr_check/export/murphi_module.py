"""An instance as a Murphi model, for checkers such as rumur: `murphi(instance)`.

Bounds and settings are fixed. Promises about single states become checks: `always` an invariant, `sometimes` a cover.
A variable that leaves its range is an error in Murphi anyway. Promises about steps and liveness are left out, each with
a comment. Rumur counts states and rules fired; these equal our distinct and generated states at every bound.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import cast

from isr_check.export.murphi_code import Code, Shared, guarded
from isr_check.export.murphi_operators import MURPHI
from isr_check.export.murphi_values import KEYWORDS, TOO_LONG, Types, has_sequence, is_scalar, spare_room
from isr_check.export.names import Names, snake
from isr_lang import Definition, FoldedAction, Instance, Node, Property, Update, reads, walk
from isr_lang.declare import summary
from isr_lang.extents import Ranges
from isr_lang.types import MapType, Scalar, SeqType, SetType, Type


class Model:
    """The names of an instance's Murphi text, and its parts as lines."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.names = Names((), KEYWORDS)
        self.types = Types(instance, self.names, _spare(instance))
        variables = {v.name: self.names.claim(snake(v.name), f"{snake(v.name)}_") for v in instance.variables}
        self.definitions = _definitions(instance)
        scalar = [d for d in self.definitions if is_scalar(d.body.type)]
        functions = {d: self.names.claim(snake(d.name), f"{snake(d.name)}_of") for d in scalar}
        bodies = {d: instance.body(d) for d in self.definitions}
        ranges = Ranges(_roots(instance), bodies, lambda n: instance.fold(n).attr)
        self.shared = Shared(instance, self.types, self.names, ranges, variables, functions, MURPHI)
        self.extra_functions: list[str] = []

    # Functions

    def function(self, name: str, formals: Sequence[tuple[str, str]], result: str, code: Code, value: str) -> list[str]:
        parameters = "; ".join(f"{n}: {t}" for n, t in formals)
        local = [f"  {n}: {t};" for n, t in code.local_types.items()]
        return [
            f"function {name}({parameters}): {result};",
            *(["var", *local] if local else []),
            "begin",
            *code.lines,
            f"  return {value};",
            "end;",
            "",
        ]

    def definition(self, d: Definition) -> list[str]:
        formals = [(p, self.names.free(snake(p), f"{snake(p)}_")) for p, _ in d.parameters]
        code = Code(self.shared, dict(formals), d)
        value = code.expression(self.instance.body(d))
        types = [self.types.intermediate(t) for _, t in d.parameters]
        typed = [(n, t) for (_, n), t in zip(formals, types, strict=True)]
        result = self.types.intermediate(d.body.type)
        return _comment(d.doc) + self.function(self.shared.functions[d], typed, result, code, value)

    def condition(self, preferred_name: str, nodes: Sequence[Node], formals: Formals) -> str:
        """An expression that is true if all nodes hold; it calls a new function if that takes statements."""
        code = Code(self.shared, formals.local)
        formals.prepare(code)
        values: list[str] = []
        for n in nodes:
            start = len(code.lines)
            value = code.expression(n)
            if len(code.lines) > start and values:  # what was cheaper is asked first
                all_so_far = values[0] if len(values) == 1 else f"({' & '.join(values)})"
                code.lines.insert(start, f"  if !{all_so_far} then return false; end;")
                values = []
            values.append(value)
        joined = " & ".join(values) or "true"
        if not code.lines:
            return joined
        name = self.names.claim(snake(preferred_name), f"{snake(preferred_name)}_holds")
        self.extra_functions += self.function(name, formals.typed, "boolean", code, joined)
        return f"{name}({', '.join(n for n, _ in formals.typed)})"

    # Rules

    def rule(self, action: FoldedAction) -> list[str]:
        formals = Formals(self, action.parameters)
        if formals.impossible:
            return [f"-- {action.name}: one of its parameters has no value at these bounds", ""]
        guard = self.condition(f"can_{action.name}", [g.condition for g in action.guards], formals)
        body = self.updates(action, formals)
        rule = [f'rule "{action.name}"', f"  {guard}", "==>", *body, "end;"]
        return [*_comment(action.action.doc), *formals.around(rule), ""]

    def start(self) -> list[str]:
        formals = Formals(self, self.instance.initial.parameters)
        rule = ['startstate "initial"', *self.updates(self.instance.initial, formals), "end;"]
        return [*_comment(self.instance.initial.action.doc), *formals.around(rule), ""]

    def updates(self, action: FoldedAction, formals: Formals) -> list[str]:
        """The body of a rule: it computes all values from the old state first, then assigns them."""
        code = Code(self.shared, formals.local)
        formals.prepare(code)
        assignments: list[tuple[str, str]] = []
        changed_variables = {u.variable for u in action.updates}
        for u in action.updates:
            others = changed_variables - {u.variable}
            test, place = self.target(code, u, others)
            assignments.append((test, f"{place} := {self.stable_value(code, u.value, others)};"))
        for test, statement in assignments:
            guarded(code, test, statement)
        if self.types.spare:
            for v in (v for v in self.instance.variables if v.name in changed_variables):
                self.bounded(code, self.shared.variables[v.name], v.type)
        local = [f"  {n}: {t};" for n, t in code.local_types.items()]
        return [*(["var", *local] if local else []), "begin", *code.lines]

    def bounded(self, code: Code, place: str, type: Type) -> None:
        """Emit an error for a stored sequence that is too long."""
        if isinstance(type, SeqType):
            code.emit(f"if {place}.length > {self.types.longest(type)} then {TOO_LONG} end;")
        elif isinstance(type, MapType) and has_sequence(type):
            x = code.fresh("i")
            with code.block(f"for {x}: {self.types.name(type.key)} do"):
                self.bounded(code, f"{place}[{x}]", type.value)

    def target(self, code: Code, update: Update, others: set[str]) -> tuple[str, str]:
        """The test that the keys of an update are in range, and the place that it assigns to."""
        variable = next(v for v in self.instance.variables if v.name == update.variable)
        place, tests, type = self.shared.variables[update.variable], list[str](), variable.type
        for key in update.path:
            assert isinstance(type, MapType)
            index = self.stable_value(code, key, others | {update.variable})
            tests += [t for t in (code.inside(key, type.key, index),) if t]
            place, type = f"{place}[{index}]", type.value
        return " & ".join(tests), place

    def stable_value(self, code: Code, node: Node, changing: set[str]) -> str:
        """The value; saved in a local if an assignment to a variable in `changing` could change what it reads."""
        value = code.expression(node)
        if value in code.local_types or not reads(node, self.instance) & changing:
            return value
        place = code.temporary(self.types.intermediate(node.type))
        code.emit(f"{place} := {value};")
        return place

    # Properties

    def property(self, p: Property) -> list[str]:
        keyword = {"always": "invariant", "sometimes": "cover"}.get(p.kind)
        if keyword is None:
            return [f"-- {p.name}: not checked here, it is about more than one state", ""]
        condition = self.condition(p.name, [p.condition], Formals(self, ()))
        return [*_comment(p.doc), f'{keyword} "{p.name}"', f"  {condition};", ""]

    def text(self, property_names: Sequence[str] | None) -> str:
        properties_to_check = [
            p for p in self.instance.properties if property_names is None or p.name in property_names
        ]
        state: list[str] = []
        for v in self.instance.variables:
            state += _comment(v.doc, "  ")
            state.append(f"  {self.shared.variables[v.name]}: {self.types.name(v.type)};")
        functions = [line for d in self.shared.functions for line in self.definition(d)]
        start = self.start()
        rules = [line for a in self.instance.actions for line in self.rule(a)]
        properties = [line for p in properties_to_check for line in self.property(p)]
        constants = [f"  {c}" for c in self.types.constants]
        lines = [
            *_comment(f"{self.instance.design.name}: {self.instance.design.summary}"),
            *(f"-- {name} = {value}" for name, value in self.instance.constants.items()),
            "",
            *(["const", *constants, ""] if constants else []),
            "type",
            *(f"  {d}" for d in self.types.declarations),
            "",
            "var",
            *state,
            "",
            *functions,
            *self.extra_functions,
            *start,
            *rules,
            *properties,
        ]
        return "\n".join(lines).rstrip() + "\n"


class Formals:
    """The parameters of an action as Murphi has them: a set is one boolean per element."""

    def __init__(self, model: Model, parameters: Sequence[tuple[str, Type]]) -> None:
        self.types = model.types
        self.sets: dict[str, tuple[SetType, list[str]]] = {}
        self.local: dict[str, str] = {}
        self.typed: list[tuple[str, str]] = []
        self.impossible = False
        for parameter, type in parameters:
            name = model.names.free(snake(parameter), f"{snake(parameter)}_")
            if isinstance(type, SetType):
                members = [f"{name}_{i + 1}" for i in range(model.instance.positions(type.of))]
                self.sets[parameter] = type, members
                self.typed += [(m, "boolean") for m in members]
            else:
                self.impossible |= not is_scalar(type) or self.types.empty(cast("Scalar", type))
                self.typed.append((name, self.types.name(type)))
            self.local[parameter] = name

    def prepare(self, code: Code) -> None:
        """Emit a local for each set parameter, made from its booleans."""
        for parameter, (type, members) in self.sets.items():
            place = code.local[parameter] = code.temporary(self.types.name(type))
            low = self.types.low(type.of)
            code.emit(f"clear {place};")
            for i, member in enumerate(members):
                code.emit(f"{place}[{i + low}] := {member};")

    def around(self, rule: list[str]) -> list[str]:
        if not self.typed:
            return rule
        quantified = "; ".join(f"{n}: {t}" for n, t in self.typed)
        return [f"ruleset {quantified} do", *(f"  {line}" for line in rule), "end;"]


def _definitions(instance: Instance) -> list[Definition]:
    """The definitions that the folded design uses; each stands after those that it uses itself."""
    definitions: dict[Definition, None] = {}

    def visit(node: Node) -> None:
        for n in walk(node):
            if n.op == "call" and n.attr[0] not in definitions:
                visit(instance.body(n.attr[0]))
                definitions.setdefault(n.attr[0])

    for root in _roots(instance):
        visit(root)
    return list(definitions)


def _spare(instance: Instance) -> int:
    stored = [u.value for a in (instance.initial, *instance.actions) for u in a.updates]
    bodies = [instance.body(d) for d in _definitions(instance)]
    return spare_room(stored, [n for n in (*_roots(instance), *bodies) if n not in stored])


def _roots(instance: Instance) -> list[Node]:
    roots = [p.condition for p in instance.properties]
    for a in (instance.initial, *instance.actions):
        roots += [g.condition for g in a.guards]
        roots += [n for u in a.updates for n in (*u.path, u.value)]
    return roots


def _comment(doc: str, indent: str = "") -> list[str]:
    return [f"{indent}-- {line}" for line in textwrap.wrap(summary(doc), 100)] if doc.strip() else []


def murphi(instance: Instance, properties: Sequence[str] | None = None) -> str:
    """The text of the model; it checks the named properties, or all if None."""
    return Model(instance).text(properties)
