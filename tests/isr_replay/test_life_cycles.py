"""The life cycles that docs/life-cycles.md shows are those of the model: every move, and no other.

Without it the page would show how a fetch went before the last change of the protocol. After a change, make it again:

    INSYNC_REWRITE=1 .venv/bin/python -m pytest tests/isr_replay/test_life_cycles.py
"""

import re
import subprocess
from pathlib import Path

import pytest
from tests.conftest import require_package
from tests.support.expected import rewriting
from tests.support.life_cycles import Move, dot, moves, table

pytestmark = pytest.mark.explores

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "life-cycles.md"


@pytest.fixture(scope="module")
def cycles() -> dict[str, list[Move]]:
    fetch, alter = moves()
    return {"fetch": fetch, "alter-partition": alter}


def between(text: str, name: str) -> tuple[str, str, str]:
    """What is before a marked part of the page, the part, and what is after it."""
    mark = f"<!-- {name} -->\n"
    before, part, after = text.split(mark)
    return before + mark + "\n", part.strip() + "\n", "\n" + mark + after


@pytest.mark.parametrize("name", ["fetch", "alter-partition"])
def test_the_page_has_every_move_and_no_other(cycles: dict[str, list[Move]], name: str) -> None:
    before, part, after = between(PAGE.read_text(encoding="utf-8"), name)
    if rewriting():
        part = table(cycles[name])
        PAGE.write_text(before + part + after, encoding="utf-8")
    assert part == table(cycles[name])


@pytest.mark.processes  # dot, where the picture is drawn anew
@pytest.mark.parametrize("name", ["fetch", "alter-partition"])
def test_the_picture_is_drawn_from_the_moves(cycles: dict[str, list[Move]], name: str) -> None:
    graph, picture = DOCS / f"life-cycle-{name}.dot", DOCS / f"life-cycle-{name}.svg"
    if rewriting():
        require_package("graphviz")
        graph.write_text(dot(name.replace("-", "_"), cycles[name]), encoding="utf-8")
        subprocess.run(["dot", "-Tsvg", str(graph), "-o", str(picture)], check=True)
    assert graph.read_text(encoding="utf-8") == dot(name.replace("-", "_"), cycles[name])
    drawn = set(re.findall(r"<text[^>]*>([a-z_]+)</text>", picture.read_text(encoding="utf-8")))
    assert {action for _, action, _ in cycles[name]} <= drawn
