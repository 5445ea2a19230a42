"""A history that shows nothing is VACUOUS: none of its anomalies is judged on the strength of what cannot fail."""

import json
from pathlib import Path
from random import Random

import pytest
from tests.support.histories import Story, judged, words
from tests.support.planted_anomalies import NOTHING_SHOWN

from insync_cli.main import main
from isr_anomalies import Verdict


@pytest.mark.parametrize("story", NOTHING_SHOWN)
def test_a_history_that_shows_nothing_is_vacuous(tmp_path: Path, story: Story) -> None:
    answer = judged(story.lines)
    assert answer.verdict is Verdict.VACUOUS, words(answer)
    assert {one.name for one in answer.judgements if one.can_fail and one.verdict is not Verdict.VACUOUS} == set()
    path = tmp_path / "history.jsonl"
    path.write_text("\n".join(story.lines) + "\n", encoding="utf-8")
    assert main(["history", str(path), "--quiet"]) == 21


def empty_lines(random: Random) -> list[str]:
    """Up to ten operations of any sort that no node acknowledges, and that read nothing."""
    story = Story()
    for _ in range(random.randint(1, 10)):
        bad = random.choice(("fail", "info"))
        match random.randrange(7):
            case 0:
                story.send(random.randrange(99), random.choice((None, 3)) if bad == "info" else None, kind=bad)
            case 1:
                story.poll(kind=random.choice(("ok", bad)))
            case 2:
                story.final({}, at := random.randrange(3), start=at)
            case 3:
                story.assign("t-0", f=random.choice(("assign", "subscribe")))
            case 4:
                sends: list[list[object]] = [["send", "t-0", random.randrange(99)], ["send", "t-1", 7], ["poll"]]
                story.txn(sends, sends, kind=bad)
            case 5:
                story.txn([["poll"], ["poll"]], [["poll", {}], ["poll", {"t-0": []}]])
            case _:
                story.begin("crash", story.tick)
    return story.lines


@pytest.mark.parametrize("seed", range(40))
def test_whatever_shows_nothing_is_vacuous(seed: int) -> None:
    lines = empty_lines(Random(seed))
    answer = judged(lines)
    assert answer.verdict is Verdict.VACUOUS, (words(answer), lines)


def test_what_cannot_fail_makes_no_verdict_good() -> None:
    """One operation is enough for ordered-cycle, which the catalogue always permits."""
    answer = judged(Story().poll().lines)
    assert words(answer)["ordered-cycle"] == "HOLDS"
    assert {one.name for one in answer.judgements if not one.can_fail} == {
        "int-send-skip",
        "write-cycle",
        "ordered-cycle",
        "realtime-lag",
        "unavailability",
    }
    limits = judged(Story(max_lag=1, max_unavailable=1).poll().lines)
    assert {one.name for one in limits.judgements if not one.can_fail} == {
        "int-send-skip",
        "write-cycle",
        "ordered-cycle",
    }


@pytest.mark.parametrize("value", ["", ":value nil", ":value []", ":value [[:poll]]"])
@pytest.mark.parametrize("kind", ["ok", "fail", "info", "invoke"])
def test_a_send_of_nothing_is_refused_in_edn_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, value: str
) -> None:
    path = tmp_path / "history.edn"
    begin = "" if kind == "invoke" else "{:type :invoke :process 0 :f :send :value [[:send 5 1]]}"
    path.write_text(f"{begin}\n{{:type :{kind} :process 0 :f :send {value}}}\n", encoding="utf-8")
    assert main(["history", str(path), "--json", str(tmp_path / "out.json")]) == 65
    assert capsys.readouterr().err == f"insync: {path}, line 2: a :send needs a value: [[:send k v]]\n"
    lines = [json.dumps({"type": "invoke", "f": "produce", "process": 0, "time": 1, "partition": "t"})]
    (tmp_path / "same.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main(["history", str(tmp_path / "same.jsonl")]) == 65
    assert "a produce needs a value" in capsys.readouterr().err
