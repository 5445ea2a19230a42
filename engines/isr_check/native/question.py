"""The question to an exploration by kernels: one bit for each check, and the answer in the engines' common form."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from isr_check.engine import (
    DEADLOCK,
    TYPE_OK,
    Finding,
    GuardCount,
    Path,
    is_decided,
    liveness_properties,
    names_to_check,
    properties_to_check,
    verdict,
)
from isr_check.native.actions import Check
from isr_check.native.kernels import Marks
from isr_check.reduction import Reduction
from isr_check.reference import parameter_values
from isr_check.symmetry import Symmetry
from isr_lang import Instance


class Question:
    """The properties that are asked for. Each has a bit, so that an integer (a mask) is a set of properties."""

    def __init__(
        self,
        instance: Instance,
        property_names: tuple[str, ...],
        symmetry: Symmetry | None,
        reduction: Reduction | None = None,
    ) -> None:
        self.instance, self.symmetry, self.reduction = instance, symmetry, reduction
        self.properties = properties_to_check(instance, property_names)
        self.liveness_properties = liveness_properties(instance, property_names)
        self.names, self.requested_names = names_to_check(self.properties, property_names)
        bits = {name: bit for bit, (name, _) in enumerate(self.names)}
        assert len(bits) < 63, "more properties than bits in a mask"
        self.on_states = self._checks("always", "sometimes")
        self.on_steps = self._checks("step", "sometimes-step")
        self.type_ok = bits[TYPE_OK]
        self.marks = Marks(self.type_ok, bits.get(DEADLOCK))

    def _checks(self, *kinds: str) -> list[Check]:
        return [
            Check(p, p.kind.startswith("sometimes"), bit) for bit, p in enumerate(self.properties) if p.kind in kinds
        ]

    def about(self) -> dict[str, object]:
        """The question in words and numbers, for error messages."""
        names = ", ".join(name for name, _ in self.names if name in self.requested_names)
        symmetry = "on" if self.symmetry else "off"
        return {
            "design": self.instance.design.name,
            **self.instance.constants,
            "symmetry": symmetry,
            "reduction": "on" if self.reduction else "off",
            "properties": names,
        }

    def masks(self, bits: Sequence[int]) -> tuple[int, int]:
        """Two masks of these bits: the checks of states, and the checks of steps."""
        on_states = sum(1 << c.bit for c in self.on_states if c.bit in bits)
        if self.type_ok in bits:
            on_states |= 1 << self.type_ok
        return on_states, sum(1 << b for b in bits) & ~on_states

    def findings(
        self, levels_by_check: Mapping[int, int], paths: Mapping[int, Path], *, complete: bool
    ) -> tuple[Finding, ...]:
        """The verdicts. `levels_by_check` has the decided checks, by bit, `paths` what shows it."""
        findings: list[Finding] = []
        typed = self.type_ok not in levels_by_check
        for bit, (name, kind) in enumerate(self.names):
            if bit in levels_by_check or name in self.requested_names:
                worth = verdict(kind, has_evidence=bit in levels_by_check, complete=complete, typed=typed)
                findings.append(Finding(name, kind, worth, paths.get(bit)))
        return tuple(findings)

    def is_decided(self, bits: Collection[int]) -> bool:
        """Whether an exploration may end where the checks of these bits are decided."""
        if self.liveness_properties and self.type_ok not in bits:
            return False
        return is_decided(self.requested_names, {self.names[bit][0] for bit in bits})

    def guards(self, base: Sequence[int], refusals: Sequence[int], expansions: int) -> tuple[GuardCount, ...]:
        """The guards' counts after `expansions` states; those of action a begin at `base[a]` in `refusals`."""
        counts = list[GuardCount]()
        for first, action in zip(base, self.instance.actions, strict=True):
            reached = expansions * sum(1 for _ in parameter_values(self.instance, action))
            for i, guard in enumerate(action.guards):
                reached -= refusals[first + i]
                counts.append(GuardCount(action.name, guard.index, guard.name, reached, refusals[first + i]))
        return tuple(counts)


def difference(content: Mapping[str, object], question: Mapping[str, object]) -> str:
    """The first difference between the question of a checkpoint and the one asked, for an error message."""
    about = cast("Mapping[str, object]", content["about"])
    for name, value in question.items():
        if about.get(name) != value:
            return f"{name} {about.get(name)}, not {value}"
    return "another version of the model"
