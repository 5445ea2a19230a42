"""What the pages of PAGES say of a design beside a command is what the command says.

Without it a page would go on to call a strategy safe that a change of the model has shown to lose records.
"""

import json
import re
import shlex
from pathlib import Path

import pytest

from insync_cli.main import main
from isr_check.native import explore
from isr_lang import Design, Instance, Value
from isr_model import KIP_966
from isr_protocol.by_name import DESIGNS
from isr_protocol.designs.unclean_recovery import RECOVERIES

pytestmark = pytest.mark.explores

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROW = re.compile(r"^\| `insync (check [^`]*)` \| ([A-Z]+)(?:, (\d+) steps?)? \| ([\d,]*) ?\|", re.MULTILINE)
PAGES = ("unclean-recovery.md", "proposed.md", "trade-offs.md", "reports.md", "measurements/releases.md")
SLOW = 300_000
"""Rows of more states are among the slow tests, and of the others all but every third."""


def rows() -> list[object]:
    """Command, verdict, steps of the counterexample (empty: none) and distinct states (empty: not counted)."""
    found = [row for page in PAGES for row in ROW.findall((DOCS / page).read_text(encoding="utf-8"))]
    large = [int(row[3].replace(",", "") or 0) > SLOW for row in found]
    return [
        pytest.param(*row, id=row[0], marks=pytest.mark.slow if large[n] or n % 3 else ())
        for n, row in enumerate(found)
    ]


def test_every_row_of_a_command_is_asked() -> None:
    text = "".join((DOCS / page).read_text(encoding="utf-8") for page in PAGES)
    assert len(rows()) == len(re.findall(r"^\| `insync check ", text, re.MULTILINE)) >= 12


@pytest.mark.parametrize(("command", "verdict", "steps", "states"), rows())
def test_a_row_says_what_its_command_says(command: str, verdict: str, steps: str, states: str, tmp_path: Path) -> None:
    main([*shlex.split(command), "--quiet", "--out", str(tmp_path)])
    said = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    if "--property" not in command:
        assert said["verdict"] == verdict
        assert verdict == "HOLDS", "of all promises no steps are said"
        assert sum(line["verdict"] == verdict for line in said["properties"]) > 20
        assert said["stats"]["distinct"] == int(states.replace(",", ""))
        return
    [promise] = said["properties"]
    assert promise["verdict"] == verdict
    if steps:
        assert promise["depth"] == int(steps)
    else:
        assert said["stats"]["distinct"] == int(states.replace(",", ""))


# What the pages say in words.

FAULTS: dict[str, Value] = {"replicas": 2, "min_insync": 2, "epochs": 2, "isr_changes": 5, "sessions_lost": 0}
LAST_KNOWN_LEADER = KIP_966.promising(*RECOVERIES)


def broken(design: Design, **settings: Value) -> set[str]:
    instance = Instance(design, FAULTS | settings)
    return {f.name for f in explore(instance).findings if f.path is not None and not f.kind.startswith("sometimes")}


def test_the_last_known_leader_leaves_behind_what_another_has() -> None:
    assert "recovery-keeps-what-is-left" in broken(LAST_KNOWN_LEADER, crashes=1, lossy_crashes=1)


@pytest.mark.slow
def test_balanced_keeps_all_that_the_last_leader_has_and_waits_for_it() -> None:
    for faults in ({"crashes": 1, "lossy_crashes": 1}, {"crashes": 0, "lossy_crashes": 2}):
        for minimum in (1, 2):
            found = broken(DESIGNS["recovery-balanced"], **faults, min_insync=minimum)
            assert not found & {"recovery-keeps-last-leaders-records", "last-leader-is-remembered"}
