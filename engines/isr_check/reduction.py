"""One state for all that differ only in what makes no difference to anything that can follow.

Where that is so, say the rules (isr_check.reduction_rules), which are found in the model. Such states are bisimilar.
So verdicts stay, and the least of the shortest counterexamples is the same one. Not so the numbers of states and
steps, and the depth.

Whether a value is in range makes a difference, for `type-ok` reads every variable. So a value out of range stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

from isr_check.engine import Unsound, properties_to_check
from isr_check.inlining import Inliner
from isr_check.reduction_rules import JoinRule, Model, VersionRule, joined_rules, passed_rules
from isr_check.reference import State
from isr_lang import Instance
from isr_lang.types import MapType


class Reduction:
    """The rules of an instance, perhaps none; Unsound if liveness is asked about."""

    def __init__(self, instance: Instance, property_names: Sequence[str] = ()) -> None:
        self.instance = instance
        kinds = {p.name: p.kind for p in instance.properties}
        live = [name for name in property_names if kinds.get(name) == "eventually"]
        if live:
            raise Unsound(
                f"{live[0]} is a liveness property, of which a reduction keeps neither the states nor the steps"
            )
        self._places = {v.name: i for i, v in enumerate(instance.variables)}
        self._types = {v.name: v.type for v in instance.variables}
        inliner = Inliner(instance)
        actions = [inliner.action(a) for a in instance.actions]
        model = Model(
            instance, actions, [inliner.node(p.condition) for p in properties_to_check(instance, tuple(property_names))]
        )
        self.version_rules: Sequence[VersionRule] = passed_rules(model)
        self.join_rules: Sequence[JoinRule] = joined_rules(model, self.version_rules)

    def representative(self, state: State) -> State:
        """The state that stands for all that differ from it only in what makes no difference."""
        values = dict(zip(self._places, state, strict=True))
        for rule in self.version_rules:
            passed_mask = self._where_passed(rule, values)
            for name in rule.blank:
                first, old = self.first(name), cast("tuple[object, ...]", values[name])
                is_free = partial(self.instance.contains, cast("MapType", self._types[name]).value)
                values[name] = tuple(first if p and is_free(v) else v for p, v in zip(passed_mask, old, strict=True))
        for join in self.join_rules:
            members, beside, phase = (
                cast("tuple[int, ...]", values[n]) for n in (join.members, join.beside, join.phase)
            )
            passed_mask = [
                any(p) for p in zip(*(self._where_passed(r, values) for r in join.version_rules), strict=True)
            ]
            free = [p in join.phases or (p in join.waiting and passed_mask[k]) for k, p in enumerate(phase)]
            values[join.members] = tuple(b | m if f and m else m for f, b, m in zip(free, beside, members, strict=True))
        return tuple(values.values())

    def first(self, name: str) -> int:
        """The value of a blank cell of a map."""
        return cast("int", self.instance.first(cast("MapType", self._types[name]).value))

    def _where_passed(self, rule: VersionRule, values: dict[str, object]) -> list[bool]:
        """By key. Of `current` it is asked, too, that it is above the value that a passed version gets."""
        current, first = cast("int", values[rule.current]), self.first(rule.versions)
        return [first < current and version < current for version in cast("tuple[int, ...]", values[rule.versions])]
