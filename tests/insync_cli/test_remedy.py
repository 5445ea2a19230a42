"""What to do now: a broken promise comes with what keeps it and the command to ask; one that holds with what works.

Without these a finding would end where its reader's question begins.
"""

import re
import shlex
from pathlib import Path

import pytest
from tests.support.sample import sample

from insync_cli import registry, tracefiles
from insync_cli.main import main
from insync_cli.view import pages
from insync_cli.view.remedy import NOTHING, Remedy
from isr_protocol.in_sync_replicas import InSyncReplicas
from isr_trace.itf import read_itf

CORPUS = Path(__file__).resolve().parents[2] / "counterexamples" / "cases"
POWER = "kip-966 --replicas 2 --crashes 0 --lossy-crashes 1 --min-insync 1 --property acked-survives"


def run(command: str) -> int:
    return main(shlex.split(command))


def told(said: str) -> list[tuple[str, str]]:
    """The lines below the heading, as what each is for and how it is typed."""
    lines = said.split("What to do now\n")[1].split("\n\n")[0].splitlines()
    return [(what.strip(), typed) for what, _, typed in (line.partition(": ") for line in lines[1:])]


def what_to_do(path: Path) -> Remedy | None:
    return pages.what_to_do(path, *tracefiles.replayable(path))


def of_case(name: str) -> Remedy:
    found = what_to_do(CORPUS / name / "trace.itf.json")
    assert found is not None
    return found


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The trace of a record that is lost because the minimum is one."""
    monkeypatch.chdir(tmp_path)
    assert run(f"check {POWER} --quiet --out run") == 12
    return Path("run/acked-survives.itf.json")


@pytest.mark.long
def test_a_violation_comes_with_the_setting_that_keeps_the_promise_and_how_to_set_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(f"check {POWER} --out run") == 12
    said = capsys.readouterr().out
    assert "  kip-966 --min-insync 2 keeps the promise. There T6 is refused (the controller fenced r1).\n" in said
    assert told(said) == [
        (
            "set it",
            "kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type topics --entity-name TOPIC "
            "--add-config min.insync.replicas=2",
        ),
        (
            "ask whether that is always so",
            "insync check kip-966 --replicas 2 --crashes 0 --lossy-crashes 1 --property acked-survives",
        ),
        ("see it on a page", "insync show run/acked-survives.itf.json --html page.html"),
    ]


@pytest.mark.explores
@pytest.mark.parametrize("verb", ["show", "explain"])
def test_show_and_explain_say_it_too_and_its_commands_run(
    lost: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(f"{verb} {lost}") == 0
    ways = dict(told(capsys.readouterr().out))
    assert run(ways["see it on a page"].removeprefix("insync ")) == 0
    assert Path("page.html").exists()
    assert run(ways["ask whether that is always so"].removeprefix("insync ") + " --quiet --out always") == 0


@pytest.mark.explores
def test_a_mend_that_is_another_design_says_who_has_it() -> None:
    later, proposed = of_case("hw-truncation-loss"), of_case("overtaken-request")
    assert later.says.startswith("kip-101 keeps the promise: Truncation by the leader epoch")
    assert later.commands[0] == ("which Kafka", "docs/versions.md says which releases of Kafka have this design")
    assert proposed.says.startswith("refusal-in-new-version keeps the promise")
    assert proposed.commands[0] == ("which Kafka", "no release of Kafka has this design")


def test_what_producers_are_to_set_is_told_of_producers() -> None:
    found = of_case("acks-one-lost")
    assert found.says.startswith("kip-966 --acks all keeps the promise.")
    assert found.commands[0] == ("set it", "acks=all in the configuration of every producer")


@pytest.mark.long
@pytest.mark.parametrize("case", sample(sorted(path.parent.name for path in CORPUS.glob("*/trace.itf.json")), 3))
def test_every_case_of_the_corpus_has_something_to_do_that_is_asked_of_a_design_that_promises_it(case: str) -> None:
    trace = tracefiles.load(CORPUS / case / "trace.itf.json")
    found = what_to_do(CORPUS / case / "trace.itf.json")
    if trace.kind not in ("always", "step"):
        assert found is None
        return
    assert found is not None
    assert found.says != NOTHING
    asked = dict(found.commands)["ask whether that is always so"].split()
    assert asked[:2] == ["insync", "check"]
    assert trace.property_name in registry.property_names(registry.design_named(asked[2]))


def test_where_nothing_helps_it_says_so(monkeypatch: pytest.MonkeyPatch, lost: Path) -> None:

    def no_mender(*_: object) -> None:
        return None

    monkeypatch.setattr(pages, "mender", no_mender)
    found = what_to_do(lost)
    assert found == Remedy(NOTHING, ())


@pytest.mark.explores
def test_a_design_that_does_not_make_the_promise_is_no_mend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without this, today's design would be said to keep a promise of somebody's own, of which it knows nothing."""
    monkeypatch.chdir(tmp_path)
    own = Path(__file__).resolve().parents[2] / "docs" / "examples" / "joins_one_behind.py"
    design = f"joins-one-behind --design-file {own}"
    assert run(f"check {design} --property members-have-acked --quiet --out run") == 12
    with monkeypatch.context() as patched:
        patched.setattr(InSyncReplicas, "safer", {})
        patched.setattr(InSyncReplicas, "dearer", {})
        assert what_to_do(Path("run/members-have-acked.itf.json")) == Remedy(NOTHING, ())
    assert run(f"check {design} --property acked-survives --quiet --out run") == 12
    found = what_to_do(Path("run/acked-survives.itf.json"))
    assert found is not None
    assert found.says.startswith("joins-one-behind --min-insync 2 keeps the promise.")
    assert found.commands[-1][1].endswith(f"--design-file {own}")


def test_what_breaks_no_promise_has_nothing_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("sample kip-966 --replicas 2 --count 1 --quiet --out s") == 0
    capsys.readouterr()
    assert run("show s/sample-1.itf.json") == 0
    assert "What to do now" not in capsys.readouterr().out


def test_a_trace_of_another_version_is_shown_without_it(lost: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = read_itf(lost)
    text = lost.read_text(encoding="utf-8").replace(trace.model_hash, "0" * 16)
    lost.write_text(text, encoding="utf-8")
    capsys.readouterr()
    assert run(f"show {lost}") == 65
    assert "What to do now" not in capsys.readouterr().out


# When everything holds


@pytest.mark.explores
def test_what_holds_offers_what_it_looks_like_when_it_works(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = "kip-966 --replicas 2 --isr-changes 3 --property acked-survives --without controller_moves_leadership"
    assert run(f"check {asked} --out run") == 0
    (offered,) = re.findall(r"^what it looks like when it works: insync (.+)$", capsys.readouterr().out, re.MULTILINE)
    assert offered.startswith("sample kip-966 --replicas 2 ")
    assert "--without controller_moves_leadership --count 5 --html works.html" in offered
    assert run(offered) == 0
    assert "5 behaviours of 5 asked for" in capsys.readouterr().out
    assert Path("works.html").stat().st_size > 100_000


@pytest.mark.explores
@pytest.mark.parametrize("asked", [POWER, "kip-966 --replicas 2 --isr-changes 2 --property acked-survives"])
def test_what_does_not_hold_offers_no_such_thing(
    asked: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(f"check {asked} --out run") in (12, 23)
    assert "when it works" not in capsys.readouterr().out
