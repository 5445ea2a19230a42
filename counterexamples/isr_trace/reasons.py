"""Why a condition is false in a state (or true): the tree of the parts that decide it, with their values.

A bound variable is replaced by the value that decides and a definition by its body, so every part can be
evaluated on its own by whatever evaluator was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypedDict, cast

import attrs

from isr_lang import Binder, Definition, Node, Where, show, text
from isr_lang.declare import summary
from isr_lang.nodes import literal
from isr_lang.printing import first
from isr_lang.types import BOOL, BoolType, Scalar, SetType
from isr_trace.replay import Evaluator, Values

WITNESSES_SHOWN = 4
_LONG = 140
# Operators below which a comparison's operands are looked into for more values worth knowing.
_TRANSPARENT = {
    *("plus", "minus", "union", "intersection", "difference", "with", "without", "size"),
    *("or_else", "length", "take", "append", "at", "get", "prefix"),
}


@attrs.frozen
class Reason:
    """A part of a condition, whether it holds, and the parts below that decide it.

    `binding` names the witness that led here (`r = r2`); `values` are what the sides of a comparison are.
    """

    text: str
    holds: bool
    binding: str = ""
    note: str = ""
    values: tuple[tuple[str, str], ...] = ()
    doc: str = ""
    where: Where | None = None
    because: tuple[Reason, ...] = ()

    def leaves(self) -> Iterator[Reason]:
        """The parts that decide by themselves."""
        if not self.because:
            yield self
        for part in self.because:
            yield from part.leaves()


class ReasonEntry(TypedDict):
    """A reason as the JSON reports have it, without lines of the model; `says`: the rule in words, if it has a name."""

    text: str
    says: str
    holds: bool
    binding: str
    note: str
    values: dict[str, str]
    because: list[ReasonEntry]


def entry(reason: Reason) -> ReasonEntry:
    """The reason and all below it."""
    return ReasonEntry(
        text=reason.text,
        says=reason.doc,
        holds=reason.holds,
        binding=reason.binding,
        note=reason.note,
        values=dict(reason.values),
        because=[entry(part) for part in reason.because],
    )


def substitute(node: Node, values: Mapping[object, Node]) -> Node:
    """The node with binders (by object) and parameters (by name) replaced."""
    if node.op in ("bound", "parameter"):
        return values.get(node.attr, node)
    args = tuple(substitute(a, values) for a in node.args)
    return node if args == node.args else Node(node.op, args, node.attr, node.type)


class Explainer:
    """Explains conditions over one state, or over a step from `old` to `new`.

    `prefix` is what stands before the variables of `old` in the text: nothing where there is one state only.
    """

    def __init__(self, evaluator: Evaluator, old: Values, new: Values | None, prefix: str = "") -> None:
        self.evaluator, self.old, self.new, self.prefix = evaluator, old, new, prefix
        self.instance = evaluator.instance
        self.beside = 0  # definitions opened around this part that hold in a condition that does not

    def value(self, node: Node) -> object:
        return self.evaluator.evaluate(node, self.old, self.new)

    def text(self, node: Node) -> str:
        written = re.sub(r"\bold\.", self.prefix, text(node))
        return written if len(written) <= _LONG else written[: _LONG - 3] + "..."

    def why(self, node: Node, *, holds: bool, binding: str = "") -> Reason:
        """The reason for which the condition holds, or does not; the caller knows which."""
        match node.op, holds:
            case "not", _ if node.args[0].op not in ("equal", "less", "at_most", "has", "subset", "prefix"):
                return self.why(node.args[0], holds=not holds, binding=binding)
            case ("and", _) | ("or", _):
                return self._parts(node, holds, binding)
            case "implies", False:
                filter, promise = node.args
                parts = (self.why(filter, holds=True), self.why(promise, holds=False))
                return self._reason(node, holds, binding, "its condition holds, its promise does not", parts)
            case "when", _:
                chosen = bool(self.value(node.args[0]))
                parts = (
                    self.why(node.args[0], holds=chosen),
                    self.why(node.args[1 if chosen else 2], holds=holds),
                )
                return self._reason(node, holds, binding, "", parts)
            case ("forall", False) | ("exists", True):
                return self._witness(node, holds, binding)
            case ("forall", True) | ("exists", False):
                return self._all(node, holds, binding)
            case "call", _:
                return self._call(node, holds, binding)
            case _:
                return self._leaf(node, holds, binding)

    def _reason(
        self, node: Node, holds: bool, binding: str, note: str = "", because: tuple[Reason, ...] = ()
    ) -> Reason:
        return Reason(self.text(node), holds, binding, note, (), "", None, because)

    def _parts(self, node: Node, holds: bool, binding: str) -> Reason:
        """The conjuncts that fail, or all of them when they hold; for alternatives the other way round."""
        parts = list(_flat(node, node.op))
        truths = [bool(self.value(p)) for p in parts]
        deciding_parts = [p for p, true in zip(parts, truths, strict=True) if true is holds]
        if (node.op == "or") is holds:
            deciding_parts = deciding_parts[:1]
        note = ""
        if node.op == "and" and not holds:
            note = f"{len(deciding_parts)} of {len(parts)} conjuncts fail"
        elif node.op == "or" and not holds:
            note = "no alternative holds"
        if len(deciding_parts) == 1 and len(parts) > 1 and not note.startswith("no"):
            return self.why(deciding_parts[0], holds=holds, binding=binding)
        return self._reason(node, holds, binding, note, tuple(self.why(p, holds=holds) for p in deciding_parts))

    def _members(self, domain: Node) -> list[Node]:
        of = cast("SetType", domain.type).of
        mask = cast("int", self.value(domain))
        return [_element(i, of) for i in range(mask.bit_length()) if mask >> i & 1]

    def _witness(self, node: Node, holds: bool, binding: str) -> Reason:
        """Down through quantifiers of one kind to the first values that decide."""
        bound: list[str] = []
        inner, deciding_count, of = node, 0, 0
        while inner.op == node.op:
            domain, body = inner.args
            binder = cast("Binder", inner.attr)
            members = self._members(domain)
            deciding = [m for m in members if bool(self.value(substitute(body, {binder: m}))) is holds]
            if not bound:
                deciding_count, of = len(deciding), len(members)
            bound.append(f"{binder.name} = {text(deciding[0])}")
            inner = substitute(body, {binder: deciding[0]})
        more = f" (and {deciding_count - 1} more of {of})" if deciding_count > 1 else ""
        note = f"for {', '.join(bound)}{more}"
        below = self.why(inner, holds=holds, binding=", ".join(bound))
        return self._reason(node, holds, binding, note, (below,))

    def _all(self, node: Node, holds: bool, binding: str) -> Reason:
        """Nothing decides alone: every value of the bound variable answers alike, or there is none."""
        domain, body = node.args
        binder, members = cast("Binder", node.attr), self._members(domain)
        values = ((self.text(domain), show(self.value(domain), domain.type)),) if domain.op != "every" else ()
        if not members:
            return attrs.evolve(self._reason(node, holds, binding, f"there is no {binder.name}"), values=values)
        member_names = ", ".join(text(m) for m in members)
        if holds:
            note = f"for each of {binder.name} = {member_names}"
            return attrs.evolve(self._reason(node, holds, binding, note), values=values)
        shown = members[:WITNESSES_SHOWN]
        parts = tuple(
            self.why(substitute(body, {binder: m}), holds=False, binding=f"{binder.name} = {text(m)}") for m in shown
        )
        more = f", the first {len(shown)} shown" if len(members) > len(shown) else ""
        return self._reason(node, holds, binding, f"for none of {binder.name} = {member_names}{more}", parts)

    def _call(self, node: Node, holds: bool, binding: str) -> Reason:
        """The definition opened; of what merely holds beside what fails, not the definitions within it."""
        definition, is_primed = cast("tuple[Definition, bool]", node.attr)
        names = (name for name, _ in definition.parameters)
        arguments: dict[object, Node] = {n: self._closed(a) for n, a in zip(names, node.args, strict=True)}
        body = substitute(self.instance.body(definition), arguments)
        inside = self
        if is_primed and self.new is not None:
            inside = type(self)(self.evaluator, self.new, None, "new.")
            inside.beside = self.beside
        parts: tuple[Reason, ...] = ()
        if not (holds and inside.beside):
            inside.beside += holds
            parts = (inside.why(body, holds=holds),)
            inside.beside -= holds
        doc = summary(definition.doc)
        return Reason(self.text(node), holds, binding, "", (), doc, definition.where, parts)

    def _closed(self, node: Node) -> Node:
        """The argument as a literal, for a definition's body is about its value."""
        value = self.value(node)
        return literal(bool(value) if isinstance(node.type, BoolType) else value, node.type)

    def _leaf(self, node: Node, holds: bool, binding: str) -> Reason:
        values = {name: value for name, value in self._facts(node, top=True) if name != value}
        if node.op == "equal" and holds:
            values = {name: value for name, value in values.items() if value not in _sides(node)}
        return Reason(self.text(node), holds, binding, "", tuple(values.items()))

    def _facts(self, node: Node, *, top: bool) -> Iterator[tuple[str, str]]:
        """What the parts of a comparison are, the sides first."""
        if not top and node.op not in ("literal", "every"):
            yield self.text(node), show(self.value(node), node.type)
        if top or node.op in _TRANSPARENT:
            for arg in node.args[1:] if node.op == "get" else node.args:  # of a map the one entry says it all
                yield from self._facts(arg, top=top and node.op == "not")


def _sides(node: Node) -> tuple[str, ...]:
    return tuple(text(side) for side in node.args)


def _flat(node: Node, op: str) -> Iterator[Node]:
    if node.op == op:
        for arg in node.args:
            yield from _flat(arg, op)
    else:
        yield node


def _element(position: int, type: Scalar) -> Node:
    if isinstance(type, BoolType):
        return literal(bool(position), BOOL)
    return literal(position + first(type), type)
