"""One design, asked of everything: what the graph as written says, and every way in which our engines explore.

`INSYNC_SEED` gives other designs than those of the seed 0. A design that fails is made smaller and printed.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache
from pathlib import Path
from typing import cast

import attrs
from tests.support.engines import WAYS, Way, differences
from tests.support.interpreter import World
from tests.support.random_designs import random_design
from tests.support.shrinking import smaller
from tests.support.strategies import Model, trace
from tests.support.unfolded import Answers, TooLarge, Unfolded

from isr_lang import Design, Instance, ModelError, SettingError, Value

SEED = os.environ.get("INSYNC_SEED", "0")
CASES = sorted((Path(__file__).parents[1] / "isr_check" / "cases").glob("*.py"))
MOST = 1200
"""States of a design; one with more is not compared."""
PATIENCE = 60.0
"""Seconds to make a failing design smaller."""


@attrs.frozen
class Question:
    """A design with its constants, and what is so in it."""

    model: Model
    world: World
    answers: Answers


@lru_cache(maxsize=2000)
def question(seed: str, number: int, most: int = MOST) -> Question | None:
    """The design with this number; None if the language refuses it, or if it has more states than `most`."""
    try:
        return question_about(random_design(seed, number), most)
    except (ModelError, SettingError, TooLarge):
        return None


def question_about(model: Model, most: int = MOST) -> Question:
    world = World(model.design, model.constants)
    return Question(model, world, Unfolded(world, most).answers())


def question_of_case(stem: str) -> Question:
    """What was found once: a module with a design and its constants; ModelError if the language refuses it."""
    file = next(f for f in CASES if f.stem == stem)
    source = file.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": stem}
    exec(compile(source, file.name, "exec", dont_inherit=True), names)
    constants = cast("dict[str, Value]", names["CONSTANTS"])
    return question_about(Model(source, cast("Design", names["DESIGN"]), constants))


def problems(subject: Question, ways: tuple[Way, ...] = WAYS) -> dict[str, list[str]]:
    """By way, how its answers differ; nothing where the instance is refused with a sentence."""
    try:
        instance = subject.model.instance()
    except (ModelError, SettingError):
        return {}
    return {way.name: said for way in ways if (said := _differences(instance, way, subject))}


def _differences(instance: Instance, way: Way, subject: Question) -> list[str]:
    try:
        return differences(instance, way, subject.world, subject.answers, 2 * MOST)
    except (ModelError, SettingError):
        raise
    except Exception as crash:  # an engine that crashes differs, too
        return [f"{type(crash).__name__}: {crash}"]


def report(subject: Question, by_way: dict[str, list[str]], patience: float = PATIENCE) -> str:
    """The smallest design that fails in one of these ways, as a program, and what is wrong."""
    way = next(w for w in WAYS if w.name in by_way)
    end = time.monotonic() + patience

    def fails(source: str) -> bool:
        return time.monotonic() < end and bool(failure(source, subject.model.constants, way))

    source = smaller(subject.model.source, fails)
    said = failure(source, subject.model.constants, way) or by_way[way.name]
    return (
        f"\n{source}\nconstants = {subject.model.constants}\n\n{way.name}: " + "\n    ".join(said) + f"\nall: {by_way}"
    )


def failure(source: str, constants: dict[str, Value], way: Way) -> list[str]:
    """How a way differs about this program; nothing where it is no design."""
    try:
        design = trace(source)
        names = {c.name for c in design.constants()}
        model = Model(source, design, {n: v for n, v in constants.items() if n in names})
        return problems(question_about(model), (way,)).get(way.name, [])
    except Exception:  # whatever is wrong with a program that was cut, it is not what is looked for
        return []
