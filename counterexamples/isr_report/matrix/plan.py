"""Which cells the guarantees matrix has: designs x settings x fault budgets, from a TOML file.

A setting or fault that a design does not have takes no part in its cells.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import attrs

from isr_lang import Design, Instance, SettingError, Value
from isr_lang.expr import nearest
from isr_lang.instance import check_constants
from isr_trace.cases import option
from isr_trace.trace import TraceError

STANDARD = Path(__file__).parent / "matrix.toml"


@attrs.frozen
class Fault:
    """How often the environment may do its worst; what is not named does not happen. Designs without the actions
    that it `needs` have no such fault. `only` says at which settings it is tried, `designs` of which designs (all if it
    names none), `asks` what alone is asked then, and `bounds` what more room it gets. `is_recommended`: its cells have
    three replicas and the settings that Kafka's documentation recommends. `fewer_states`: by symmetry and
    reduction, which liveness does not allow."""

    name: str
    says: str
    budget: Mapping[str, Value]
    needs: tuple[str, ...] = ()
    only: Mapping[str, str] = attrs.field(factory=dict[str, str])
    asks: tuple[str, ...] = ()
    bounds: Mapping[str, Value] = attrs.field(factory=dict[str, Value])
    count: int = 1
    designs: tuple[str, ...] = ()
    is_recommended: bool = False
    fewer_states: bool = False


@attrs.frozen
class Plan:
    """`client`: what a client is promised by a promise, in words; `usual`: the settings of the summary."""

    designs: tuple[str, ...]
    promises: tuple[str, ...]
    probes: tuple[str, ...]
    bounds: Mapping[str, Value]
    own_bounds: Mapping[str, Mapping[str, Value]]
    settings: Mapping[str, tuple[str, ...]]
    faults: tuple[Fault, ...]
    usual: Mapping[str, str]
    client: Mapping[str, str]


@attrs.frozen
class Cell:
    """One question: a design at a column (`settings`) under a fault budget, with every constant that is given.

    `design_file`: where the design is from, if it is somebody's own.
    """

    design: str
    settings: Mapping[str, str]
    fault: str
    constants: Mapping[str, Value]
    property_names: tuple[str, ...]
    design_file: str = ""
    fewer_states: bool = False

    @property
    def name(self) -> str:
        """The folder of its run: readable, and the same for the same cell."""
        return "-".join([self.design, *(f"{k.replace('_', '')}={v}" for k, v in self.settings.items()), self.fault])

    @property
    def command(self) -> list[str]:
        """What asks the same again."""
        options = " ".join(option(name, value) for name, value in self.constants.items()).split()
        asked = [word for name in self.property_names for word in ("--property", name)]
        own = ["--design-file", self.design_file] if self.design_file else []
        reduced = ["--symmetry", "on", "--reduction", "on"] if self.fewer_states else []
        return ["insync", "check", self.design, *own, *options, *reduced, *asked]


def load_plan(path: Path = STANDARD) -> Plan:
    """The plan in a file; TraceError with one sentence for whatever is wrong with it."""
    try:
        top = tomllib.loads(path.read_text(encoding="utf-8"))
        if not top["promises"]:
            raise TraceError(f"{path}: the plan of a matrix needs a promise")
        return Plan(
            tuple(dict.fromkeys(top["designs"])),
            tuple(dict.fromkeys(top["promises"])),
            tuple(top.get("probes", ())),
            dict(top["bounds"]),
            {d: dict(own) for d, own in top.get("own_bounds", {}).items()},
            {name: tuple(dict.fromkeys(values)) for name, values in top["settings"].items()},
            tuple(
                Fault(
                    name=f["name"],
                    says=f["says"],
                    budget=dict(f["budget"]),
                    needs=tuple(f.get("needs", ())),
                    only=dict(f.get("only", {})),
                    asks=tuple(f.get("asks", ())),
                    bounds=dict(f.get("bounds", {})),
                    count=int(f.get("count", 1)),
                    designs=tuple(f.get("designs", ())),
                    is_recommended=bool(f.get("recommended", False)),
                    fewer_states=bool(f.get("fewer_states", False)),
                )
                for f in top["fault"]
            ),
            dict(top.get("usual", {})),
            dict(top.get("client", {})),
        )
    except OSError as problem:
        raise TraceError(f"{path}: cannot be read: {problem.strerror or problem}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise TraceError(f"{path}: not TOML: {problem}") from None
    except KeyError as problem:
        raise TraceError(f"{path}: the plan of a matrix needs {problem}") from None
    except (TypeError, AttributeError, ValueError):
        raise TraceError(f"{path}: not the plan of a matrix") from None


def check_plan(plan: Plan, designs: Iterable[Design], source: Path) -> None:
    """TraceError for a name that none of the designs has, or a value that a constant of one cannot have.

    Both would be left out without a word. A setting or fault that only some of the designs have is no mistake.
    """
    designs = list(designs)
    constants = [c.name for design in designs for c in design.constants()]
    properties, actions = [p.name for d in designs for p in d.properties], [a.name for d in designs for a in d.actions]
    of_faults = [name for f in plan.faults for name in (*f.budget, *f.bounds, *f.only)]
    of_bounds = [name for own in plan.own_bounds.values() for name in own]
    for what, names, choices in (
        ("bound or setting", [*plan.bounds, *of_bounds, *plan.settings, *plan.usual, *of_faults], constants),
        ("promise", plan.promises, properties),
        ("probe", plan.probes, properties),
        ("action", [name for f in plan.faults for name in f.needs], actions),
        (
            "promise in the plan",
            [*plan.client, *(n for f in plan.faults for n in f.asks)],
            (*plan.promises, *plan.probes),
        ),
        ("setting in the plan", plan.usual, plan.settings),
    ):
        for name in names:
            if name not in choices:
                raise TraceError(f"{source}: there is no {what} '{name}'{nearest(name, list(choices))}")
    faults = [f.name for f in plan.faults]
    if len(set(faults)) < len(faults):
        twice = next(name for name in faults if faults.count(name) > 1)
        raise TraceError(f"{source}: two faults are called {twice}, and their cells would be one")
    for name, value in plan.usual.items():
        if value not in plan.settings[name]:
            raise TraceError(f"{source}: {name} = {value} is usual, and none of its settings")
    for design in designs:
        known = {c.name for c in design.constants()}
        for settings, fault, assignment in assignments(plan, design):
            try:
                check_constants(design, {name: value for name, value in assignment.items() if name in known})
            except SettingError as problem:
                where = ", ".join((f"fault {fault.name}", *(f"{k} = {v}" for k, v in settings.items())))
                raise TraceError(f"{source}: {design.name}, {where}: {problem}") from None


Assignment = tuple[Mapping[str, str], Fault, Mapping[str, Value]]
"""Settings, a fault, and the values of all constants that the plan gives there."""


def assignments(plan: Plan, design: Design) -> Iterator[Assignment]:
    """What the plan asks of one design, whether or not the settings agree with each other."""
    constants = {c.name: c for c in design.constants()}
    columns = {name: values for name, values in plan.settings.items() if name in constants}
    nothing: dict[str, Value] = {c.name: 0 for c in constants.values() if c.budget}
    world = {**plan.bounds, **plan.own_bounds.get(design.name, {}), **nothing}
    known = {a.name for a in design.actions}
    for fault in plan.faults:
        if not set(fault.budget) <= set(constants) or not set(fault.needs) <= known:
            continue
        if fault.designs and design.name not in fault.designs:
            continue
        for chosen in itertools.product(*columns.values()):
            settings = dict(zip(columns, chosen, strict=True))
            if any(settings.get(name, value) != value for name, value in fault.only.items()):
                continue
            yield (
                settings,
                fault,
                {**world, **fault.bounds, **fault.budget, **{n: _value(v) for n, v in settings.items()}},
            )


def cells(plan: Plan, design: Design) -> Iterator[tuple[Cell, Instance]]:
    """The cells of one design, in the order of the plan, each with the model that answers it.

    Settings that contradict each other have none, such as more in-sync replicas required than there are.
    """
    known = {c.name for c in design.constants()}
    for settings, fault, assignment in assignments(plan, design):
        try:
            instance = Instance(design, {n: v for n, v in assignment.items() if n in known})
        except SettingError:
            continue
        promised = {p.name for p in instance.properties}
        asked = [n for n in (*plan.promises, *plan.probes) if not fault.asks or n in fault.asks]
        wanted = tuple(n for n in asked if n in promised)
        typed = {n: v for n, v in instance.constants.items() if n in assignment}
        yield Cell(design.name, settings, fault.name, typed, wanted, design.file, fault.fewer_states), instance


def _value(text: str) -> Value:
    return int(text) if text.isdecimal() else text
