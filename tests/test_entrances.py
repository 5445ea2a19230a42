"""Entrances: the docstring of a package is where a reader begins, so its examples run and its reading order is true.

An indented block of such a docstring is an example; those of one docstring are one program. A reading order begins with
these two words and ends at a blank line that no list item follows. Outside of its parentheses every back-quoted word is
a module, or a package with `/` behind it, and each of the package's own stands there once. Without this file a module
that moves or changes its name leaves its old name at the entrance.
"""

from __future__ import annotations

import ast
import re
import runpy
import textwrap
from pathlib import Path

import pytest
from tests.support.sparks import spark

TOP = Path(__file__).resolve().parents[1]
ROOTS = ("spec", "engines", "impl", "clusters", "refinement", "counterexamples", "pipeline", "insync")
PACKAGES = {
    ".".join(init.parent.relative_to(TOP / root).parts): init.parent
    for root in ROOTS
    for init in sorted((TOP / root).rglob("__init__.py"))
}
FEW = 3
"""So many modules need no reading order."""

NEEDS = {
    "isr_check.smt": [pytest.mark.solver, pytest.mark.processes],
    "isr_found": [pytest.mark.kafka, pytest.mark.processes],
    "isr_kafka": [pytest.mark.kafka, pytest.mark.processes],
    "isr_pipeline.histories": [pytest.mark.spark],
}
"""What examples need. Where a machine has no Kafka, its examples end before that."""


def docstring(folder: Path) -> str:
    return ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""


def modules_of(folder: Path) -> list[str]:
    """The names of a package's own modules, and of the packages in it with `/` behind them."""
    files = [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]
    return sorted(files + [f"{path.parent.name}/" for path in folder.glob("*/__init__.py")])


def example(text: str) -> str:
    """The indented blocks of a docstring, as one program."""
    blocks: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.splitlines()
        if lines and all(line.startswith("    ") for line in lines):
            blocks.append(paragraph)
    return textwrap.dedent("\n\n".join(blocks))


def reading_order(text: str) -> list[str]:
    """The back-quoted words of the reading order, what stands in parentheses left out; none if there is no such order.

    >>> reading_order("What. Reading order: `a` (as in `b`), then `c/`.")
    ['a', 'c/']
    """
    _, begins, rest = text.partition("Reading order")
    if not begins:
        return []
    paragraphs = re.split(r"\n\s*\n", rest)
    parts = [paragraphs[0]]
    for paragraph in paragraphs[1:]:
        if not paragraph.startswith("- "):
            break
        parts.append(paragraph)
    order, nested = "\n".join(parts), 1
    while nested:
        order, nested = re.subn(r"\([^()]*\)", "", order)
    return re.findall(r"`([^`]+)`", order)


def untrue(text: str, modules: list[str]) -> list[str]:
    """What is wrong with the reading order of a docstring whose package has these modules."""
    order = reading_order(text)
    if not order:
        return ["there is no reading order"] if len(modules) > FEW else []
    strangers = [f"{word} is no module" for word in order if word not in modules]
    missing = [f"{module} is missing" for module in modules if module not in order]
    return strangers + missing + [f"{word} stands twice" for word in modules if order.count(word) > 1]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_reading_order_has_every_module_and_no_other_word(package: str) -> None:
    folder = PACKAGES[package]
    assert not untrue(docstring(folder), modules_of(folder))


@pytest.mark.parametrize(
    "package",
    [
        pytest.param(package, marks=NEEDS.get(package, []))
        for package, folder in PACKAGES.items()
        if example(docstring(folder))
    ],
)
def test_an_example_runs(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if pytest.mark.spark in NEEDS.get(package, []):
        spark()  # a session of tests, which the example finds running: its tasks are few
    program = tmp_path / "example.py"
    program.write_text(example(docstring(PACKAGES[package])), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(program), run_name="example")


def test_every_need_is_one_of_an_example() -> None:
    assert not [package for package in NEEDS if not example(docstring(PACKAGES[package]))]


RULE = re.compile(r"\(([1-9]|1[0-9])\) ")


def rules_in(text: str) -> list[str]:
    return RULE.findall(ast.get_docstring(ast.parse(text)) or "")


def test_the_rules_of_the_model_have_their_numbers_in_the_broker_and_are_marked_where_they_act() -> None:
    model = rules_in((TOP / "spec" / "isr_model.py").read_text(encoding="utf-8"))
    files = [path for path in (TOP / "impl" / "isr_broker" / "core").glob("*.py") if not path.name.startswith("voter")]
    core = [path.read_text(encoding="utf-8") for path in files]
    leader = (TOP / "impl" / "isr_broker" / "core" / "leader.py").read_text(encoding="utf-8")
    assert model == rules_in(leader) == [str(number) for number in range(1, 8)]
    marks = "".join(text.replace(ast.get_docstring(ast.parse(text), clean=False) or "", "") for text in core)
    assert set(model) == set(RULE.findall(marks))


def test_the_rules_of_the_quorum_are_marked_in_the_voter() -> None:
    model = rules_in((TOP / "spec" / "kraft_model.py").read_text(encoding="utf-8"))
    core = TOP / "impl" / "isr_broker" / "core"
    marks = "".join((core / name).read_text(encoding="utf-8") for name in ("voter.py", "voter_state.py"))
    assert model == [str(number) for number in range(1, 14)]
    assert set(RULE.findall(marks)) == set(model)


# The checks can fail

MODULES = ["a", "b", "c", "d/"]
TRUE = "What it is. Reading order: `a` (one, not `x` (or `y`)), then `b`.\n\n- Rooms: `c`, `d/` (more).\n\nOf `z`, too."


def test_a_true_reading_order_is_read_to_its_end() -> None:
    assert reading_order(TRUE) == MODULES
    assert not untrue(TRUE, MODULES)


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("`b`", "`judging`", ["judging is no module", "b is missing"]),
        (", `d/` (more)", "", ["d/ is missing"]),
        ("`d/`", "`d`", ["d is no module", "d/ is missing"]),
        ("then `b`", "`b`, then `b`", ["b stands twice"]),
        ("Reading order", "Rooms", ["there is no reading order"]),
        ("\n\n- Rooms", "\n\nRooms", ["c is missing", "d/ is missing"]),
    ],
)
def test_an_untrue_reading_order_is_seen(before: str, after: str, problem: list[str]) -> None:
    assert before in TRUE
    assert untrue(TRUE.replace(before, after), MODULES) == problem


def test_a_package_of_few_modules_needs_no_order() -> None:
    assert not untrue("What it is.", MODULES[:FEW])


def test_an_example_is_all_indented_blocks_and_no_list() -> None:
    text = "What.\n\n    x = 1\n    if x:\n        y = 2\n\nThen:\n\n    assert y == 2\n\n- `a`: one\n    thing\n"
    assert example(text) == "x = 1\nif x:\n    y = 2\n\nassert y == 2"
