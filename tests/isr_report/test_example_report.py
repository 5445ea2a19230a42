"""docs/example-report, which the README opens: whole, small, and of nobody's machine."""

import json
import re
from pathlib import Path
from urllib.parse import unquote

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "example-report"
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
