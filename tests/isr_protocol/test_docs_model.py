"""docs/model.md speaks of the model as it is: every variable and every action, by its name, and nothing else."""

import re
from pathlib import Path

import pytest

from isr_model import KIP_966
from isr_protocol.by_name import DESIGNS

TOP = Path(__file__).resolve().parents[2]
PAGE = (TOP / "docs" / "model.md").read_text(encoding="utf-8")
ABSTRACTED = PAGE.partition("\n## What is abstracted")[2]
ACTIONS = {a.name for d in DESIGNS.values() for a in d.actions}
NAMES = {
    "Variables": [v.name for v in KIP_966.variables],
    "Actions": [a.name for a in KIP_966.actions],
}


def named(page: str, section: str) -> list[str]:
    """What the first column of a section's table names, in the order of the page."""
    _, found, rest = page.partition(f"\n## {section}\n")
    assert found, f"docs/model.md has no section '{section}'"
    rows = re.findall(r"^\|(.*?)\|", rest.partition("\n## ")[0], re.MULTILINE)
    assert rows[:1] == [" ours "], f"the first column of '{section}' is ours"
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


@pytest.mark.parametrize("section", NAMES)
def test_the_page_names_all_that_the_model_has_and_each_once(section: str) -> None:
    assert sorted(named(PAGE, section)) == sorted(NAMES[section])


@pytest.mark.parametrize("section", NAMES)
def test_a_name_that_is_gone_or_new_is_noticed(section: str) -> None:
    name = NAMES[section][0]
    renamed = PAGE.replace(f"| `{name}` |", "| `by_another_name` |")
    assert "by_another_name" in named(renamed, section)
    assert name not in named(renamed, section)


SHOWN = [row for row in re.findall(r"^\|.*\|$", ABSTRACTED, re.MULTILINE) if "---" not in row and "shown by" not in row]


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row.split("|")[1].strip())
def test_what_shows_that_an_abstraction_is_sound_exists(row: str) -> None:
    """A test, a file, a design, a case or an action; what is outside of the model has none, and says so."""
    *_, shown, _ = row.split("|")
    names = re.findall(r"`([^`]+)`", shown)
    assert names or "outside of the model" in shown
    assert [name for name in names if not exists(name)] == []


def exists(name: str) -> bool:
    if name.startswith("test_"):
        return any(f"def {name}(" in file.read_text(encoding="utf-8") for file in (TOP / "tests").rglob("test_*.py"))
    if "/" in name:
        return (TOP / name).exists()
    if name.startswith("isr_"):
        module = TOP.joinpath("spec", *name.split("."))
        return module.is_dir() or module.with_suffix(".py").exists() or module.parent.with_suffix(".py").exists()
    constants = {c.name for c in KIP_966.constants()}
    known = {*DESIGNS, *ACTIONS, *(p.name for p in KIP_966.properties), *constants}
    given = re.fullmatch(r"--([a-z-]+)(?: \w+)?", name)
    case = (TOP / "counterexamples" / "cases" / name).is_dir()
    return name in known or case or (given is not None and given.group(1).replace("-", "_") in constants)


def test_every_row_has_all_four_columns() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    assert rows
    assert [row for row in rows if row.count("|") != 5] == []
