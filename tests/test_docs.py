"""The documents lead somewhere: links have targets, verbs are listed, and five things are where they are said to be.

Without it a module that moves leaves readers at a dead end.
"""

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from insync_cli.main import VERBS

TOP = Path(__file__).resolve().parents[1]
PAGES = sorted(
    page
    for page in (*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md"), *(TOP / "found").rglob("*.md"))
    if not any(part.startswith(".") for part in page.relative_to(TOP).parts)
)


def dead_links(text: str, folder: Path) -> list[str]:
    """Relative links to files and folders that are not there."""
    targets = (target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text))
    return [t for t in targets if t and "://" not in t and not (folder / t).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(TOP).as_posix())
def test_every_link_has_a_target(page: Path) -> None:
    assert not dead_links(page.read_text(encoding="utf-8"), page.parent)


def test_a_dead_link_is_seen() -> None:
    assert dead_links("[x](no-such-page.md#part)", TOP) == ["no-such-page.md"]
    assert not dead_links("[x](README.md#part) [y](#here) [z](https://example.org)", TOP)


def test_every_verb_is_listed_once_by_name() -> None:
    listed = (TOP / "docs" / "commands.md").read_text(encoding="utf-8")
    assert not [verb for verb in VERBS if f"`insync {verb}" not in listed]
    assert not [verb for verb in re.findall(r"`insync ([a-z]+)", listed) if verb not in {*VERBS, "VERB"}]


def test_what_people_look_for_is_two_hops_away() -> None:
    """Each file that the table of ARCHITECTURE.md names exists, and each function is in one of its row's files."""
    text = (TOP / "ARCHITECTURE.md").read_text(encoding="utf-8")
    part = text.split("## Five things that people look for")[1].split("\n## ")[0]
    rows = [line.split("|")[2:4] for line in part.splitlines() if line.startswith("| W") or line.startswith("| H")]
    assert len(rows) == 5
    for first, then in rows:
        named = re.findall(r"`([^`]+)`", first + then)
        files = [n for n in named if "/" in n or n.endswith(".py")]
        base = (TOP / files[0]) if (TOP / files[0]).is_dir() else (TOP / files[0]).parent
        places = [next((p for p in (TOP / f, base / f, base.parent / f) if p.exists()), None) for f in files]
        assert None not in places, files
        sources = [p.read_text(encoding="utf-8") for p in places if p is not None and p.is_file()]
        for name in (n for n in named if n not in files):
            assert any(re.search(rf"^(def )?{name}\b", source, re.MULTILINE) for source in sources), name


def rows_of(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    part = page.split(f"## {heading}")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_story_of_a_record_names_a_function_in_each_file_and_what_the_model_page_says_of_kafka() -> None:
    model_page = (TOP / "docs" / "model.md").read_text(encoding="utf-8")
    kafka_of = {row[0].strip("`"): row[1] for row in rows_of(model_page, "Actions")}
    story = rows_of((TOP / "ARCHITECTURE.md").read_text(encoding="utf-8"), "The story of one record")
    assert len(story) == 10
    for _, step, model, broker, replay, kafka in story:
        name = step.strip("`")
        assert defines(TOP / "spec" / "isr_protocol" / model.strip("`"), name), (name, model)
        core = TOP / "impl" / "isr_broker" / "core" / broker.strip("`")
        assert not broker.startswith("`") or name in core.read_text(encoding="utf-8"), (name, broker)
        assert defines(TOP / "refinement" / "isr_replay" / "inputs.py", replay.strip("`")), (name, replay)
        assert kafka in kafka_of.get(name, kafka_of["leader_answers_fetch"]), (name, kafka)


def defines(file: Path, name: str) -> bool:
    """Whether the file has a function of this name at its top."""
    return re.search(rf"^def {name}\(", file.read_text(encoding="utf-8"), re.MULTILINE) is not None


def test_the_readme_shows_what_make_demo_prints() -> None:
    recipe = (TOP / "Makefile").read_text(encoding="utf-8").split("\ndemo:")[1].split("\n\n")[0]
    echoes = re.findall(r"""^\t@echo (['"])(.*)\1$""", recipe, re.MULTILINE)
    lines = [text.replace("$$", "$").replace("$(BIN)", ".venv/bin") for _, text in echoes]
    readme = (TOP / "README.md").read_text(encoding="utf-8")
    assert len(lines) == 4
    assert [line for line in lines if f"    {line}\n" not in readme] == []


def docstring_of(file: str) -> str:
    return ast.get_docstring(ast.parse((TOP / file).read_text(encoding="utf-8"))) or ""


def unexplained(table: str, docstring: Callable[[str], str]) -> list[str]:
    """The files of tests of over ten seconds whose docstring does not say what would go unnoticed without them."""
    rows = re.findall(r"^\| `([^`]+)` \| \d+ \| ([\d.]+) \| ([\d.]+) \|", table, re.MULTILINE)
    costly = [file for file, processor, clock in rows if file != "all" and max(float(processor), float(clock)) > 10]
    return [file for file in costly if "Without " not in docstring(file)]


def test_each_costly_file_of_tests_says_what_would_go_unnoticed_without_it() -> None:
    table = (TOP / "docs" / "measurements" / "tests.md").read_text(encoding="utf-8")
    assert not unexplained(table, docstring_of)
    row = "| `tests/a.py` | 1 | {} | {} | `test_a` | 1.0 |"
    assert unexplained(row.format("10.1", "1.0"), lambda _: "Some tests.") == ["tests/a.py"]
    assert unexplained(row.format("1.0", "10.1"), lambda _: "Some tests.") == ["tests/a.py"]
    assert not unexplained(row.format("10.0", "10.0"), lambda _: "Some tests.")
    assert not unexplained(row.format("99.0", "99.0"), lambda _: "Some tests. Without these, nothing.")
