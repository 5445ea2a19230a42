"""docs/model.md speaks of the model as it is: every variable and every action, by its name, and nothing else."""

import re
from pathlib import Path

import pytest

from isr_model import KIP_966

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "model.md").read_text(encoding="utf-8")
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


def test_every_row_has_all_four_columns() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    assert rows
    assert [row for row in rows if row.count("|") != 5] == []
