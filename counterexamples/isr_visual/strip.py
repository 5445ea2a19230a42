"""The property strip: what every promise says of every state or step, and why."""

from __future__ import annotations

from typing import TypedDict

from isr_lang import Property
from isr_trace.reasons import Explainer, ReasonEntry, entry
from isr_trace.replay import Evaluator, Values
from isr_visual.sources import Source, source

REASONS_KEPT = 5000


class Promise(TypedDict):
    """`holds` has an entry per state: of a promise about steps, that of the step into the state, so the first is
    None; of a promise about what happens some time, whether this is it. `reasons` are positions in the table."""

    name: str
    kind: str
    about: str
    source: Source
    holds: list[bool | None]
    reasons: list[int | None]


class Strip:
    """Promises over a row of states; equal reasons are kept once."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.promises = [p for p in evaluator.instance.properties if p.kind != "eventually"]
        self.table: list[ReasonEntry] = []
        self._reason_positions: dict[str, int] = {}

    def over(self, states: tuple[Values, ...]) -> list[Promise]:
        return [self._promise(p, states) for p in self.promises]

    def broken_promises(self, before: Values | None, state: Values) -> list[str]:
        """The promises that this state, or the step into it, breaks."""
        kept = (p for p in self.promises if not p.kind.startswith("sometimes"))
        return [p.name for p in kept if self._holds(p, before, state) is False]

    def _holds(self, p: Property, before: Values | None, state: Values) -> bool | None:
        if not p.kind.endswith("step"):
            return self.evaluator.holds(p, state)
        return None if before is None else self.evaluator.holds(p, before, state)

    def _promise(self, p: Property, states: tuple[Values, ...]) -> Promise:
        holds: list[bool | None] = []
        reasons: list[int | None] = []
        for i, state in enumerate(states):
            before = states[i - 1] if i else None
            truth = self._holds(p, before, state)
            holds.append(truth)
            wanted = truth is not None and (len(self.table) < REASONS_KEPT or truth == p.kind.startswith("sometimes"))
            reasons.append(self._reason(p, before, state) if wanted else None)
        return Promise(name=p.name, kind=p.kind, about=p.doc, source=source(p.where), holds=holds, reasons=reasons)

    def _reason(self, p: Property, before: Values | None, state: Values) -> int:
        if p.kind.endswith("step") and before is not None:
            explainer, holds = Explainer(self.evaluator, before, state, "old."), self.evaluator.holds(p, before, state)
        else:
            explainer, holds = Explainer(self.evaluator, state, None), self.evaluator.holds(p, state)
        return self.interned(entry(explainer.why(p.condition, holds=holds)))

    def interned(self, reason: ReasonEntry) -> int:
        """The position of a reason in the table."""
        key = repr(reason)
        if key not in self._reason_positions:
            self._reason_positions[key] = len(self.table)
            self.table.append(reason)
        return self._reason_positions[key]
