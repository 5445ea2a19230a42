"""The table of all designs: each is listed where it is made, and nothing is imported that comes later in the table."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from isr_lang import Design
from isr_protocol.by_name import DESIGNS

SPEC = Path(__file__).parents[2] / "spec"
PARTS = {
    "late_metadata",
    "new_directory",
    "old_metadata",
    "operations_within_envelope",
    "quorum",
    "replica_directory",
    "wider_state",
    "zookeeper",
    "__init__",
}
"""Modules of `designs/` with no design of the table: parts, states, and designs that are given as files."""


def modules() -> list[str]:
    """The modules of designs, by their import names."""
    rooms = sorted(f.stem for f in (SPEC / "isr_protocol" / "designs").glob("*.py") if f.stem not in PARTS)
    return ["isr_model", *(f"isr_protocol.designs.{room}" for room in rooms)]


def designs_of(module: str) -> tuple[Design, ...]:
    listed: tuple[Design, ...] = vars(import_module(module))["DESIGNS"]
    return listed


def made_in(module: str) -> set[str]:
    """The names of the designs that a module gives a public name of its own, those apart that it imports."""
    source = (SPEC / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    targets = [t for n in ast.parse(source).body if isinstance(n, ast.Assign) for t in n.targets]
    variables = [t.id for t in targets if isinstance(t, ast.Name)]
    values = [vars(import_module(module))[v] for v in variables if not v.startswith("_")]
    return {value.name for value in values if isinstance(value, Design)}


@pytest.mark.parametrize("module", modules())
def test_a_module_lists_every_design_that_it_makes(module: str) -> None:
    assert {design.name for design in designs_of(module)} == made_in(module) != set()


def test_the_table_has_the_designs_of_every_module() -> None:
    listed = [design.name for module in modules() for design in designs_of(module)]
    assert sorted(DESIGNS) == sorted(listed)
    assert len(DESIGNS) == len(listed) == 67
    assert [DESIGNS[name].name for name in DESIGNS] == list(DESIGNS)


def test_a_name_stands_once() -> None:
    words = Counter(
        node.value
        for file in SPEC.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    assert {name: words[name] for name in DESIGNS if words[name] != 1} == {}


def test_a_design_is_made_once() -> None:
    assert DESIGNS["kip-320"] is DESIGNS["kip-320"]
    assert "kip-321" not in DESIGNS
    with pytest.raises(KeyError):
        DESIGNS["kip-321"]


@pytest.mark.processes
@pytest.mark.parametrize(("name", "later"), [("kip-966", "history"), ("kafka-0.8", "dropped_rules")])
def test_whoever_asks_for_a_design_does_not_wait_for_those_after_it(name: str, later: str) -> None:
    asked = f"import sys; from isr_protocol.by_name import DESIGNS; DESIGNS[{name!r}]; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert "isr_model" in ran.stdout.split()
    assert f"isr_protocol.designs.{later}" not in ran.stdout.split()
