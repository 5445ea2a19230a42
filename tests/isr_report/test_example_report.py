"""docs/example-report, which the README opens: whole, small, and of nobody's machine."""

import json
import re
from html import escape
from pathlib import Path
from urllib.parse import unquote

from insync_cli.review import matrix
from insync_cli.review.report import quick
from isr_protocol.by_name import DESIGNS
from isr_report.material import questions
from isr_report.scenes import load_scenes

TOP = Path(__file__).resolve().parents[2]
EXAMPLE = TOP / "docs" / "example-report"
MAKE = "make it again: insync report --quick --no-pages --gallery --out docs/example-report"
LARGEST = 8_000_000
"""Bytes of all its files together."""


def test_every_link_of_the_example_leads_to_a_file_beside_it() -> None:
    text = (EXAMPLE / "index.html").read_text(encoding="utf-8")
    found = [unquote(h.partition("#")[0]) for h in re.findall(r'href="([^"#][^"]*)"', text)]
    assert len(found) > 50
    assert not [path for path in found if not (EXAMPLE / path).is_file()]
    assert any(path.startswith("gallery.html") for path in found)


def test_the_example_stays_small_and_names_no_machine() -> None:
    files = [path for path in EXAMPLE.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < LARGEST
    assert not [path.name for path in files if re.search(r"/(home|root|tmp|work)/", path.read_text(encoding="utf-8"))]


def test_the_example_has_cells_with_three_replicas_and_its_claims_have_commands() -> None:
    claims = json.loads((EXAMPLE / "claims.json").read_text(encoding="utf-8"))["claims"]
    assert all(str(claim["command"]).startswith("insync check ") for claim in claims)
    assert any("--replicas 3" in claim["command"] and "kip-966" in claim["command"] for claim in claims)


def test_the_example_is_of_the_model_the_stories_and_the_questions_of_today() -> None:
    """Else the README opens a report that insync does not make any more."""
    made = json.loads((EXAMPLE / "matrix" / "matrix.json").read_text(encoding="utf-8"))
    hashes = {cell["design"]: cell["model_hash"] for cell in made["cells"]}
    assert hashes == {name: DESIGNS[name].model_hash() for name in hashes}, MAKE
    asked = {cell.name: cell.wanted for cell, _ in matrix.questions(quick(matrix.plan_of()))}
    assert {c["name"]: {p["name"] for p in c["promises"]} for c in made["cells"]} == {
        name: set(wanted) for name, wanted in asked.items()
    }, MAKE
    traces = [path for path in (EXAMPLE / "cases").glob("*.itf.json")]
    corpus = {
        path: TOP / "counterexamples" / "cases" / path.name.removesuffix(".itf.json") / "trace.itf.json"
        for path in traces
    }
    assert not [path.name for path, source in corpus.items() if path.read_bytes() != source.read_bytes()], MAKE
    text = (EXAMPLE / "index.html").read_text(encoding="utf-8")
    titles = [*(q.asks for q in questions()), *(scene.title for scene in load_scenes())]
    assert not [title for title in titles if escape(title) not in text], MAKE
    assert "Made outside of a checkout" not in text, MAKE
