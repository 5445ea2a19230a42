"""What settings allow that the design's own settings do not: an action that they switch on, or an earlier answer.

A checker that is asked about unclean elections, and says that nothing was lost, is right when its bounds let no unclean
election happen. So each allowance is to come about in some behaviour that has room for the rest, too (`room`).
What a switch or a choice switches on is read off the graph: the actions that an instance has at this value and lacks
at the design's own. Two settings switch nothing on and loosen a guard: `min_insync` and `acks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

import attrs

from isr_lang import Design, Instance, SettingError, Value
from isr_lang.instance import check_constants


@attrs.frozen
class Allowance:
    """What one setting allows, one of three: `action` is switched on, an acknowledgement is early (before the record
    is committed), or it needs fewer logs than `minimum`, which is the design's own min.insync.replicas.
    """

    setting: str
    action: str = ""
    minimum: int = 0

    @property
    def is_early(self) -> bool:
        """An acknowledgement may come before the record is committed."""
        return not self.action and not self.minimum


def allowances(design: Design, constants: Mapping[str, Value]) -> tuple[Allowance, ...]:
    """What the settings among these constants allow; nothing where they are the design's own. SettingError."""
    complete, own = check_constants(design, constants), check_constants(design, {})
    differing = [c for c in design.constants() if c.names and complete[c.name] != own[c.name]]
    switched = [Allowance(c.name, action) for c in differing for action in _switched_on(design, complete, c.name)]
    writes = any(u.variable == "written_in" for a in design.actions for u in a.updates)
    others = complete.get("replicas") != 1  # one replica waits for nobody, whatever the setting
    return (*switched, *(_of_guards(complete, own) if writes and others else ()))


def _switched_on(design: Design, constants: Mapping[str, Value], setting: str) -> list[str]:
    """The actions that the setting switches on: those that there would not be at the design's own value of it.

    Bounds of none, which switch actions off by themselves, count as one here.
    """
    least = {n: max(1, v) for n, v in constants.items() if isinstance(v, int) and not isinstance(v, bool)}
    wide = {**constants, **least}
    own = {name: value for name, value in wide.items() if name != setting}
    try:
        before = _actions(design, tuple(own.items()))
    except SettingError:  # the other settings mean nothing without this one
        return []
    return [name for name in _actions(design, tuple(wide.items())) if name not in before]


@cache
def _actions(design: Design, constants: tuple[tuple[str, Value], ...]) -> tuple[str, ...]:
    """The names of the actions at these constants: each question about bounds asks for the same ones."""
    return tuple(action.name for action in Instance(design, dict(constants)).actions)


def _of_guards(constants: Mapping[str, Value], own: Mapping[str, Value]) -> Iterator[Allowance]:
    """The allowances of settings that switch nothing on."""
    minimum, usual = constants.get("min_insync"), own.get("min_insync")
    if isinstance(minimum, int) and isinstance(usual, int) and minimum < usual:
        yield Allowance("min_insync", minimum=usual)
    if constants.get("acks") == "1" and own.get("acks") == "all":
        yield Allowance("acks")
