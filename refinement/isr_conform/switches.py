"""Which actions a setting switches on: a run that never takes one of them says nothing of the setting."""

from __future__ import annotations

from isr_lang import Instance
from isr_lang.constants import Constant
from isr_lang.instance import SettingError


def switched_actions(instance: Instance) -> dict[str, str]:
    """The actions that are possible only because a setting is on or a budget is not zero, each with that constant."""
    names = {action.name for action in instance.actions}
    settings: dict[str, str] = {}
    for constant in instance.design.constants():
        if _is_off_by_default(constant) and instance.constants[constant.name]:
            for name in sorted(names - _names_without(instance, constant)):
                settings[name] = constant.name
    return settings


def _is_off_by_default(constant: Constant) -> bool:
    return constant.choice is None and constant.low == 0 and constant.default in (False, 0)


def _names_without(instance: Instance, constant: Constant) -> set[str]:
    try:
        off = Instance(instance.design, {**instance.constants, constant.name: constant.default})
    except SettingError:  # the design needs it
        return {action.name for action in instance.actions}
    return {action.name for action in off.actions}
