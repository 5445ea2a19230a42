"""What TLC says of a design's export, in one run: a module around the export notes what is decided at which depth.

The export is written from the graph before it is folded. Of `Instance` it uses the values of the constants and the
sizes of sorts, in TLC's configuration; so that is written here from what the test chose. The export's own ranges
take declared ranges for granted, so a state that leaves them is not expanded.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.support.checkers import tlc_jar
from tests.support.interpreter import World
from tests.support.unfolded import Answers

from isr_check.engine import DEADLOCK, TYPE_OK
from isr_check.export.tla_module import Module
from isr_lang.types import SortType

LINE = re.compile(r'^<<"decided", (\d+), (\d+)>>', re.M)
JAVA = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx1g")
"""A small model is over before anything else would pay."""


def tlc_answers(world: World, folder: Path) -> Answers:
    module = Module(world.design)
    text = module.text()
    names = [TYPE_OK, DEADLOCK]
    states, steps = ["(ENABLED Next) \\/ Decided(2)"], list[str]()
    for p in world.design.properties:
        if p.kind == "eventually":
            continue
        names.append(p.name)
        listed = steps if p.kind.endswith("step") else states
        listed.append(f"{module.properties[p.name]}{'OfStep' * p.kind.endswith('step')} \\/ Decided({len(names)})")
    futures = [p for p in world.design.properties if p.kind == "eventually"]
    recorder = "\n".join(_recorder(text, module, states, steps, len(names)))
    (folder / f"{module.name}.tla").write_text(text, encoding="utf-8")
    (folder / "Recorder.tla").write_text(recorder, encoding="utf-8")
    (folder / "Recorder.cfg").write_text(_configuration(world, module, [p.name for p in futures]), encoding="utf-8")
    output = _run(folder)
    lengths: dict[str, int] = {}
    kinds = {p.name: p.kind for p in world.design.properties}
    for place, level in LINE.findall(output):
        name = names[int(place) - 1]
        length = int(level) - (not kinds.get(name, "").endswith("step"))
        lengths[name] = min(length, lengths.get(name, length))
    return _answers(output, lengths, [p.name for p in futures])


def _recorder(text: str, module: Module, states: list[str], steps: list[str], count: int) -> list[str]:
    """A module that looks at every state and step, and prints once of each property when it is decided."""
    return [
        "---- MODULE Recorder ----",
        f"EXTENDS {module.name}, TLC",
        f"ASSUME \\A i \\in 1..{count} : TLCSet(i, FALSE)",
        'Decided(i) == TLCGet(i) \\/ (PrintT(<<"decided", i, TLCGet("level")>>) /\\ TLCSet(i, TRUE))',
        *_step_definitions(text),
        "States == IF ~TypeOK THEN Decided(1) ELSE",
        *(f"  /\\ {line}" for line in states),
        "Steps == " + ("" if steps else "TRUE"),
        *(f"  /\\ {line}" for line in steps),
        "====",
        "",
    ]


def _step_definitions(text: str) -> list[str]:
    """Each property of steps once more as a relation of two states, which TLC can ask of a step."""
    found = re.findall(r"^(\w+) ==\s*?\n?( *)\[\]\[(.*?)\]_vars$", text, re.M | re.S)
    return [f"{name}OfStep ==\n{indent}  ({body})" for name, indent, body in found]


def _configuration(world: World, module: Module, futures: list[str]) -> str:
    sizes = [f"{module.values.type_names[t]} = {{{', '.join(world.universe(t))}}}" for t in _sorts(module)]
    values = [f"{name} = {_value(world.constant(c))}" for c, name in module.values.constants.items()]
    absent = ["None = None"] * module.values.none_used
    specification = module.fair[futures[0]] if futures else "Spec"
    assert len(futures) < 2, "each future has a specification of its own"
    return "\n".join([
        f"SPECIFICATION {specification}",
        *(["CONSTANTS", *(f"    {line}" for line in (*sizes, *values, *absent))] if sizes or values or absent else []),
        "INVARIANT States",
        "CONSTRAINT TypeOK",
        "ACTION_CONSTRAINT Steps",
        *(f"PROPERTY {module.properties[name]}" for name in futures),
        "CHECK_DEADLOCK FALSE",
        "",
    ])  # fmt: skip


def _sorts(module: Module) -> list[SortType]:
    return module.values.sorts


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return f'"{value.lower()}"' if isinstance(value, str) else str(value)


def _run(folder: Path) -> str:
    options = ["-deadlock", "-nowarning", "-noGenerateSpecTE", "-workers", "1", "-lncheck", "final"]
    command = [*JAVA, "-cp", str(tlc_jar().resolve()), "tlc2.TLC", *options, "-metadir", "states", "Recorder"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def _answers(output: str, lengths: dict[str, int], futures: list[str]) -> Answers:
    counts = re.findall(r"^(\d+) states generated, (\d+) distinct states found, 0 states left", output, re.M)
    # Of 3 states, 1 of them distinct: "3 states generated, with 1 of them distinct".
    initial = re.search(r"^Finished computing initial states: (\d+) (?:distinct|states generated)", output, re.M)
    depth = re.search(r"depth of the complete state graph search is (\d+)", output)
    fails = re.search(r"^Error: Temporal propert\w+ (?:were|\w+ (?:is|was)) violated", output, re.M) is not None
    if TYPE_OK in lengths:
        return Answers(lengths, frozenset(), None, None, None)
    assert counts, output
    assert initial, output
    assert depth or fails, output
    generated, distinct = map(int, counts[-1])
    return Answers(
        lengths,
        frozenset(futures if fails else ()),
        distinct,
        generated - int(initial.group(1)),
        int(depth.group(1)) - 1 if depth else None,
    )
