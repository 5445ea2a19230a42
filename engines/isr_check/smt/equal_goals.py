"""Goals that differ in the names of elements only: one of them is proved, for all.

If a design cannot tell the elements of a sort apart, all elements that an action's parameters do not name can be
exchanged: hypotheses and guards stay the same. A goal that becomes another one by such an exchange needs no proof of
its own. Two goals count as the same only if renaming elements makes their formulas equal, up to the order of operands
and the names of defined symbols.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, cast

from isr_check.smt.terms.logic import Term, z3

ANY_ORDER = {z3.Z3_OP_AND, z3.Z3_OP_OR, z3.Z3_OP_EQ, z3.Z3_OP_IFF, z3.Z3_OP_ADD, z3.Z3_OP_DISTINCT}
Renaming = Mapping[str, str]


class Sameness:
    """Gives a key to each goal; goals with equal keys differ by an exchange of elements only."""

    def __init__(self, elements: Sequence[str], axioms: Iterable[tuple[Term, Term]]) -> None:
        """`elements`: texts in the names of symbols, which may be exchanged; `axioms`: (defined symbol, its axiom)."""
        self.elements = elements
        self._pattern = re.compile(r"(?<!\w)(" + "|".join(map(re.escape, elements)) + r")(?!\w)")
        self._defining: dict[str, list[Any]] = {}
        for symbol, axiom in axioms:
            self._defining.setdefault(str(cast("Any", symbol).decl().name()), []).append(axiom)

    def key(self, goal: Term) -> bytes:
        """The key: elements are sorted by how the goal uses them, then named by their places in this order."""
        used = {e: _Hash(self, dict.fromkeys(self.elements, "*") | {e: "!"}).of(goal) for e in self.elements}
        order = sorted(self.elements, key=lambda e: used[e])
        return _Hash(self, {e: f"#{i}" for i, e in enumerate(order)}).of(goal)

    def defining(self, name: str) -> list[Any]:
        return self._defining.get(name, [])

    def rename_elements(self, name: str, renaming: Renaming) -> str:
        return self._pattern.sub(lambda m: renaming[m.group(1)], name)


class _Hash:
    """Hashes of terms under one renaming; in an axiom, `defines` is the symbol that it defines."""

    def __init__(
        self, sameness: Sameness, renaming: Renaming, definition_hashes: dict[str, str] | None = None, defines: str = ""
    ) -> None:
        self.sameness, self.renaming, self.defines = sameness, renaming, defines
        self._definition_hashes: dict[str, str] = {} if definition_hashes is None else definition_hashes
        self._hashes: dict[int, bytes] = {}

    def of(self, t: Any) -> bytes:
        number = t.get_id()
        if number not in self._hashes:
            self._hashes[number] = self._compute(t)
        return self._hashes[number]

    def _compute(self, t: Any) -> bytes:
        if z3.is_var(t):
            return _digest("var", str(z3.get_var_index(t)).encode())
        if z3.is_quantifier(t):
            sorts = ",".join(str(t.var_sort(i)) for i in range(t.num_vars()))
            return _digest(f"{t.is_forall()}{sorts}", self.of(t.body()))
        name, kind = str(t.decl().name()), t.decl().kind()
        parts = [self.of(c) for c in t.children()]
        if kind != z3.Z3_OP_UNINTERPRETED:
            label = t.sexpr() if z3.is_int_value(t) else name
            return _digest(label, *(sorted(parts) if kind in ANY_ORDER else parts))
        return _digest(self._symbol(name), *parts)

    def _symbol(self, name: str) -> str:
        if name == self.defines:
            return "self"
        axioms = self.sameness.defining(name)
        if not axioms:
            renamed = self.sameness.rename_elements(name, self.renaming)
            return re.sub(r"!\d+$", "", renamed) if self.defines else renamed  # a witness's number says nothing
        if name not in self._definition_hashes:
            inner = _Hash(self.sameness, self.renaming, self._definition_hashes, name)
            self._definition_hashes[name] = b"".join(sorted(map(inner.of, axioms))).hex()
        return self._definition_hashes[name]


def _digest(label: str, *parts: bytes) -> bytes:
    h = blake2b(label.encode(), digest_size=16)
    for p in parts:
        h.update(p)
    return h.digest()
