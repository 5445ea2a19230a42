"""Samples of states, on which conditions about elements are decided for many states at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import cast

import attrs
import numpy as np
from numpy.typing import NDArray

from isr_check.reference import Evaluator, State
from isr_check.smt.strengthening.vocabulary import Context, substituted
from isr_lang import Design, Instance, Node, Property, Where
from isr_lang import Value as Setting
from isr_lang.nodes import literal
from isr_lang.types import NumberType, SetType

Column = NDArray[np.int64]
Truths = NDArray[np.bool_]

NOWHERE = Where("suggested", 0)


class Sample:
    """A table: a row per state and choice of elements, a column per expression, made by the reference evaluator."""

    def __init__(
        self,
        design: Design,
        constants: Mapping[str, Setting],
        context: Context,
        terms: Sequence[Node],
        states: Sequence[State],
    ) -> None:
        self.instance = Instance(design, constants)
        self.choices = list(product(*(range(self.instance.positions(e.type)) for e in context)))
        self.rows = len(states) * len(self.choices)
        self._texts: dict[tuple[object, ...], int] = {}
        self._columns: dict[Node, Column] = {}
        self._prefixes: NDArray[np.bool_] | None = None
        spread = np.array(self.choices, dtype=np.int64).reshape(len(self.choices), len(context))
        for i, e in enumerate(context):
            self._columns[e.node] = np.tile(spread[:, i], len(states))
        chosen = [{e.name: literal(k, e.type) for e, k in zip(context, c, strict=True)} for c in self.choices]
        conditions = [substituted(t, meaning) for t in terms for meaning in chosen]
        properties = tuple(Property(f"t{i}", "always", c, "", NOWHERE) for i, c in enumerate(conditions))
        evaluator = Evaluator(Instance(attrs.evolve(design, properties=properties), constants))
        values = np.zeros((len(states), len(conditions)), dtype=np.int64)
        for j, function in enumerate(evaluator.properties):
            values[:, j] = [self._number(function(s)) for s in states]
        for i, t in enumerate(terms):
            self._columns[t] = values[:, i * len(chosen) : (i + 1) * len(chosen)].reshape(-1)

    def _number(self, value: object) -> int:
        if isinstance(value, tuple):
            return self._texts.setdefault(cast("tuple[object, ...]", value), len(self._texts))
        return int(cast("int", value))

    def truth(self, condition: Node) -> Truths:
        """The rows in which a condition holds, as an array of booleans."""
        if condition not in self._columns:
            a = [self._value(x) for x in condition.args]
            match condition.op:
                case "not":
                    return ~self.truth(condition.args[0])
                case "equal":
                    return _truths(np.equal(a[0], a[1]))
                case "less":
                    return _truths(np.less(a[0], a[1]))
                case "at_most":
                    return _truths(np.less_equal(a[0], a[1]))
                case "has":
                    return _truths(a[0] >> a[1] & 1)
                case "subset":
                    return ~_truths(a[0] & ~a[1])
                case "prefix":
                    return _truths(self._begins()[a[0], a[1]])
                case _:
                    raise ValueError(f"the templates have no '{condition.op}'")
        return _truths(self._columns[condition])

    def _value(self, node: Node) -> Column:
        if node in self._columns:
            return self._columns[node]
        if node.op == "some":
            return self._value(node.args[0]) + 1
        if node.op == "every":
            of = cast("SetType", node.type).of
            return np.full(self.rows, (1 << self.instance.positions(of)) - 1, dtype=np.int64)
        if node.op == "or_else":
            of = cast("NumberType", node.type)
            held = self._value(node.args[0])
            return np.where(held > 0, held - 1 + of.low, of.low)
        if node.op == "literal":
            return np.full(self.rows, self._number(node.attr), dtype=np.int64)
        return self.truth(node).astype(np.int64)

    def _begins(self) -> NDArray[np.bool_]:
        """A matrix for sequences, which have numbers: [i, j] says whether sequence j begins with sequence i."""
        if self._prefixes is None or len(self._prefixes) != len(self._texts):
            texts = list(self._texts)
            self._prefixes = np.array([[t[: len(s)] == s for t in texts] for s in texts], dtype=np.bool_)
        return self._prefixes


def _truths(column: NDArray[np.generic]) -> Truths:
    return column.astype(np.bool_)
