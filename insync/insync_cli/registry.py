"""What the command line finds by name: designs, instances, properties, engines."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from insync_cli.exits import UsageError, did_you_mean

if TYPE_CHECKING:
    from isr_check.engine import Engine, Exploration, Limits, Progress
    from isr_lang import Conjunct, Design, Instance, Property, Value

ENGINES = {"native": "isr_check.native", "reference": "isr_check.explorer", "spark": "isr_pipeline.explore"}
WALKERS = {"native": "isr_check.native.simulation", "reference": "isr_check.simulation"}
"""The engines that also walk at random."""


_own: dict[str, Design] = {}
"""The designs of the files that this command was given, by name."""


def take_own(files: Iterable[Path], texts: Mapping[Path, str] | None = None) -> None:
    """From now on the designs of these files are known, too, and no others of somebody's own.

    `texts` has what is in the files, where they are not on this machine.
    """
    _own.clear()
    for file in files:
        from insync_cli.families import planted_bugs_of_all
        from insync_cli.own_designs import load

        _own.update(load(file, {**planted_bugs_of_all(), **designs()}, (texts or {}).get(file)))


def own_files() -> tuple[tuple[Path, str], ...]:
    """The files of designs that were given, each once, with what is in them: other machines do not have them."""
    files = dict.fromkeys(Path(own.file).absolute() for own in _own.values())
    return tuple((file, file.read_text(encoding="utf-8")) for file in files)


def own_option(design: Design) -> str:
    """What a command needs besides to know this design, with a space before it; nothing for a design of insync's."""
    return f" --design-file {shlex.quote(design.file)}" if design.file else ""


def designs() -> Mapping[str, Design]:
    """Every design by name, each imported when a verb needs it."""
    from insync_cli.families import designs_of_all

    return {**designs_of_all(), **_own} if _own else designs_of_all()


def design_named(name: str) -> Design:
    """A design, or one with a bug that was planted on purpose."""
    if name in designs():
        return designs()[name]
    from insync_cli.families import planted_bugs_of_all

    bugs = planted_bugs_of_all()
    if name not in bugs:
        raise UsageError(unknown_design(name))
    return bugs[name]


def unknown_design(name: str) -> str:
    if name.endswith(".json"):
        return f"'{name}' is no design but a file: insync show and insync explain read traces"
    hint = did_you_mean(name, designs()) or f"; the designs are {', '.join(designs())}"
    return f"there is no design '{name}'{hint} (--design-file brings others)"


def design_less(name: str, left_out: Sequence[str]) -> Design:
    """The design of this name less some of its actions: what `--without` asks for."""
    design = design_named(name)
    actions = [a.name for a in design.actions]
    for action in left_out:
        if action not in actions:
            hint = did_you_mean(action, actions) or f"; its actions are {', '.join(actions)}"
            raise UsageError(f"{name} has no action '{action}'{hint}")
    return design.without(*left_out) if left_out else design


def design_fair(design: Design, unfair: Sequence[str], strong: Sequence[str]) -> Design:
    """The design with other assumptions of fairness: what `--unfair` and `--strong` ask for."""
    actions = [a.name for a in design.actions]
    fair = [a for a in actions if any(a in (*p.fair, *p.strongly_fair) for p in design.properties)]
    for action, among in (*((a, fair) for a in unfair), *((a, actions) for a in strong)):
        if action not in among:
            hint = did_you_mean(action, among) or f"; those are {', '.join(among)}"
            what = "action that is taken to be fair" if among is fair else "action"
            raise UsageError(f"{design.name} has no {what} '{action}'{hint}")
    return design.with_fairness(unfair=unfair, strong=strong) if unfair or strong else design


def design_of(name: str, without: Sequence[str], unfair: Sequence[str], strong: Sequence[str]) -> Design:
    """The design with the changes that --without, --unfair and --strong ask for."""
    return design_fair(design_less(name, without), unfair, strong)


def fairness_changed(design: Design) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which actions are not fair here, and which are strongly fair, other than in the design of its name."""
    whole = designs().get(design.name, design)
    before = {p.name: p for p in whole.properties}
    unfair, strong = dict[str, None](), dict[str, None]()
    for p in design.properties:
        once = before.get(p.name, p)
        now = (*p.fair, *p.strongly_fair)
        unfair |= dict.fromkeys(a for a in (*once.fair, *once.strongly_fair) if a not in now)
        strong |= dict.fromkeys(a for a in p.strongly_fair if a not in once.strongly_fair)
    return tuple(unfair), tuple(strong)


def left_out(design: Design) -> tuple[str, ...]:
    """The actions that the design lacks of those that the design of its name has, in the order of the model."""
    whole = designs().get(design.name, design)
    kept = {a.name for a in design.actions}
    return tuple(a.name for a in whole.actions if a.name not in kept)


def bounds_of(instance: Instance) -> dict[str, Value]:
    """What a report says of the explored world: the constants and, only where given, what else was changed."""
    unfair, strong = fairness_changed(instance.design)
    return world(instance.constants, left_out(instance.design), unfair, strong)


def world(
    constants: Mapping[str, Value], without: Iterable[str], unfair: Iterable[str] = (), strong: Iterable[str] = ()
) -> dict[str, Value]:
    """The constants, and as more of them the actions that are left out, or fair otherwise than by design."""
    named = {"without": " ".join(without), "unfair": " ".join(unfair), "strong": " ".join(strong)}
    return {**constants, **{name: words for name, words in named.items() if words}}


def instance_of(design: Design, constants: Mapping[str, Value]) -> Instance:
    """The design with its constants; UsageError when one is out of range or they contradict each other."""
    from isr_lang import Instance, SettingError

    try:
        return Instance(design, constants)
    except SettingError as problem:
        raise UsageError(str(problem)) from None


def check_effects(design: Design, constants: Mapping[str, Value]) -> None:
    """UsageError for a budget that was raised and has no effect: its settings switch off what it is for."""
    from isr_lang import SettingError
    from isr_lang.effects import switches_for, without_effect

    try:
        budgets = without_effect(design, constants)
    except SettingError:
        return  # whoever makes the instance says why it is none
    for budget in budgets:
        switches = switches_for(design, constants, budget)
        advice = f"it takes {' or '.join(switches)}" if switches else f"it bounds {budget.doc}, which are not there"
        raise UsageError(
            f"{budget.option} {constants[budget.name]} has no effect in {design.name} with these settings; {advice}"
        )


def instance_with_room(design: Design, constants: Mapping[str, Value]) -> Instance:
    """The same where bounds that are not given follow the faults and settings that are."""
    from insync_cli.families import family_of
    from isr_lang import SettingError

    try:
        return instance_of(design, family_of(design).constants_with_room(design, constants))
    except SettingError as problem:
        raise UsageError(str(problem)) from None


def instance_that_notices(
    design: Design, constants: Mapping[str, Value], promises: Sequence[str]
) -> tuple[Instance, tuple[str, ...]]:
    """The same where bounds that are not given notice known mistakes of these promises, too; and which of them grew."""
    from insync_cli.families import family_of
    from isr_lang import SettingError
    from isr_lang.instance import check_constants

    try:
        small = check_constants(design, family_of(design).constants_with_room(design, constants))
    except SettingError as problem:
        raise UsageError(str(problem)) from None
    large = constants_that_notice(design, constants, promises)
    return instance_of(design, large), tuple(name for name, value in large.items() if value != small[name])


def constants_that_notice(
    design: Design, constants: Mapping[str, Value], promises: Sequence[str]
) -> Mapping[str, Value]:
    """All constants; bounds that are not given are those that notice known mistakes of these promises.

    Of a design of somebody's own nobody knows what may be wrong with it, so there it may take more than seconds.
    """
    from insync_cli.families import family_of
    from isr_lang import SettingError
    from isr_lang.instance import check_constants

    if design.file:
        promises = property_names(design)
    try:
        noticing = family_of(design).noticing_constants(
            design, constants, promises, whatever_it_takes=bool(design.file)
        )
        return check_constants(design, noticing)
    except SettingError as problem:
        raise UsageError(str(problem)) from None


def invariant_of(design: Design, promises: Iterable[str] = ()) -> list[Conjunct]:
    """The conjuncts of the inductive invariant that speak of this design's variables, with its definitions.

    Of `promises` alone those that these take, where the family says which.
    """
    import attrs

    from insync_cli.families import family_of
    from isr_lang import variables_in

    known = {v.name for v in design.variables}
    conjuncts = family_of(design).invariant(design)
    restated = [attrs.evolve(c, promise=design.restated_property(c.promise)) for c in conjuncts]
    spoken = [c for c in restated if variables_in(c.promise.condition) <= known]
    return family_of(design).proof_plan().conjuncts_for(promises, spoken)


def promising(design: Design, conjuncts: Iterable[Property]) -> Design:
    """The design that promises these, too: then they are explored, and explained, like any other property."""
    import attrs

    known = {p.name for p in design.properties}
    more = (p for p in conjuncts if p.name not in known)
    return attrs.evolve(design, properties=(*design.properties, *more))


def property_names(design: Design) -> list[str]:
    """Every name that --property and --expect take."""
    from isr_check.engine import DEADLOCK, TYPE_OK

    return [*(p.name for p in design.properties), TYPE_OK, DEADLOCK]


def check_property(design: Design, name: str) -> str:
    names = property_names(design)
    if name not in names:
        hint = did_you_mean(name, names) or f"; its properties are {', '.join(names)}"
        raise UsageError(f"{design.name} has no property '{name}'{hint}")
    return name


def available(engine: str) -> bool:
    spec = importlib.util.find_spec(ENGINES[engine])
    return spec is not None and spec.origin is not None


def default_engine() -> str:
    return next(name for name in ENGINES if available(name))


def engine_named(name: str, workers: int | None = None) -> tuple[Engine, int]:
    """The engine and how many workers it really uses: all cores unless told otherwise."""
    explore = _of_engine(name, ENGINES[name], "explore")
    if "workers" not in inspect.signature(explore).parameters:
        return explore, 1
    used = workers or os.cpu_count() or 1
    return partial(explore, workers=used), used


def by_symmetry(explore: Engine) -> Engine | None:
    """The engine as it sees one state of each orbit; None if it cannot. It raises Unsound where symmetry is."""
    if "symmetry" not in inspect.signature(explore).parameters:
        return None
    return partial(cast("Callable[..., Exploration]", explore), symmetry=True)


def walker_named(name: str, walks: int, seed: int, workers: int | None = None) -> tuple[Engine, int]:
    """The engine that makes random walks in place of an exploration, and how many workers it really uses."""
    if name not in WALKERS:
        raise UsageError(f"the engine '{name}' does not walk at random; --simulate is for {' and '.join(WALKERS)}")
    simulate = _of_engine(name, WALKERS[name], "simulate")
    threads = {"workers": workers or os.cpu_count() or 1} if "workers" in inspect.signature(simulate).parameters else {}

    def walk(
        instance: Instance, wanted_names: tuple[str, ...], limits: Limits, progress: Callable[[Progress], None]
    ) -> Exploration:
        return simulate(instance, wanted_names, walks, seed, limits, progress, **threads)

    return walk, threads.get("workers", 1)


def _of_engine(name: str, module: str, function: str) -> Callable[..., Exploration]:
    if not available(name):
        raise UsageError(f"the engine '{name}' is not part of this installation; use --engine reference")
    return cast("Callable[..., Exploration]", vars(importlib.import_module(module))[function])
