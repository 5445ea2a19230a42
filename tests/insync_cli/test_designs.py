"""insync designs: what each changes and because, what is expected of it, and what can be set."""

import json
from pathlib import Path

import pytest

from insync_cli.main import main


def test_the_list_says_what_changed_and_because(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["designs"]) == 0
    said = capsys.readouterr().out
    assert "careful: Serves in order." in said
    assert "careful, but serves is serves_anyone; --tickets 2" in said
    assert "because looking at the roll takes time" in said
    assert "expected to fail at the defaults: never-ahead (a ticket may be served before it is drawn)" in said
    words = " ".join(said.split())
    assert "--tickets 3 2 for hasty Tickets on the roll." in words
    assert "--calls 1 How often a ticket is called." in words


def test_the_details_have_every_action_and_property_with_its_sentence(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["designs", "hasty"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "serves = serves_anyone The desk serves whether a ticket was drawn or not." in said
    assert "never-ahead always Expected to fail: a ticket may be served before it is drawn." in said
    assert "everybody-served eventually Whoever waits is served." in said
    assert "--paper-jams 1 0..3 Tickets torn by the machine." in said
    assert "--calls 1 0|1|all How often a ticket is called." in said


def test_json_has_the_guards_too(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["designs", "hasty", "--json", "-"]) == 0
    (design,) = json.loads(capsys.readouterr().out)["designs"]
    assert design["based_on"] == "careful"
    assert design["changes"] == ["serves is serves_anyone", "--tickets 2"]
    kinds = {c["name"]: c["kind"] for c in design["constants"]}
    assert kinds == {
        "tickets": "bound",
        "paper_jams": "budget",
        "calls": "setting",
        "rush": "bound",
        "reopen": "setting",
    }
    assert {a["name"]: a["guards"] for a in design["actions"]}["closes"] == [
        "old.open",
        "old.served == old.drawn",
    ]
