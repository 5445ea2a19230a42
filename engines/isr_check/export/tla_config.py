"""Configurations for TLC, one per property, and all files of a design in one folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from isr_check.engine import TYPE_OK
from isr_check.export.names import camel
from isr_check.export.tla_module import Module
from isr_lang import Constant, Design, Instance, Property, Value
from isr_lang.types import SortType


def cfg(
    design: Design,
    constants: Mapping[str, Value] | None = None,
    property: str = TYPE_OK,
    *,
    symmetry: bool = False,
) -> str:
    """TLC's configuration for one property (or type-ok); bounds and settings that are not given have their defaults.

    With `symmetry` TLC explores one state per orbit. That is faster, but TLC's counts then differ from ours, and for a
    liveness property its verdict would be wrong.
    """
    instance, module = Instance(design, constants), _render_module(design)
    promised = property not in instance.off_properties
    stated = None if property == TYPE_OK else design.property_named(property)
    specification = module.fair[property] if stated is not None and stated.kind == "eventually" else "Spec"
    asked = [_property_line(module, stated)]
    remark = [] if promised else [r"\* Not promised under these settings: it holds for lack of a premise."]
    return _text(instance, module, remark, specification, asked, symmetry)


def _render_module(design: Design) -> Module:
    module = Module(design)
    module.text()  # which decides whether None is a constant of the module
    return module


def _property_line(module: Module, p: Property | None) -> str:
    if p is None:
        return "INVARIANT TypeOK"
    name = module.properties[p.name]
    return f"{'INVARIANT' if p.kind in ('always', 'sometimes') else 'PROPERTY'} {name}"


def _text(
    instance: Instance,
    module: Module,
    remark: list[str],
    specification: str,
    property_lines: list[str],
    symmetry: bool,
) -> str:
    lines = [*remark, f"SPECIFICATION {specification}", "", *_constants(instance, module), *property_lines, ""]
    if symmetry and module.symmetry():
        lines += ["SYMMETRY Symmetry", ""]
    return "\n".join([*lines, "CHECK_DEADLOCK FALSE", ""])


def _constants(instance: Instance, module: Module) -> list[str]:
    values = module.values
    given = [(values.type_names[t], _elements(instance, t)) for t in values.sorts]
    given += [(name, _value(instance, c)) for c, name in values.constants.items()]
    given += [("None", "None")] * values.none_used
    return ["CONSTANTS", *(f"    {name} = {value}" for name, value in given), ""] if given else []


def _elements(instance: Instance, sort: SortType) -> str:
    return f"{{{', '.join(f'{sort.prefix}{i + 1}' for i in range(instance.positions(sort)))}}}"


def _value(instance: Instance, constant: Constant) -> str:
    value = instance.constants[constant.name]
    if constant.choice is not None:
        return f'"{constant.choice.members[constant.names.index(str(value))].lower()}"'
    return ("TRUE" if value else "FALSE") if isinstance(value, bool) else str(value)


def write_tla(design: Design, constants: Mapping[str, Value] | None, folder: Path) -> list[Path]:
    """Write Name.tla, Name_Property.cfg for each property, and Name.cfg with every invariant at once."""
    instance, module = Instance(design, constants), Module(design)
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{module.name}.tla": module.text()}
    holds = [p for p in instance.properties if p.kind in ("always", "step") and p.name not in design.expected]
    asked = ["INVARIANT TypeOK", *(_property_line(module, p) for p in holds)]
    files[f"{module.name}.cfg"] = _text(instance, module, [], "Spec", asked, False)
    for name in (TYPE_OK, *(p.name for p in design.properties)):
        shown = "TypeOK" if name == TYPE_OK else camel(module.properties[name])
        files[f"{module.name}_{shown}.cfg"] = cfg(design, constants, name)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in files]
