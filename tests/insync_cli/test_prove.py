"""`insync prove`: what it says of a proof that succeeds, fails, or was not found, and the traces that come of it."""

import json
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path
from unittest.mock import Mock

import attrs
import pytest
from tests.support.models import ticket_desk

from insync_cli import families
from insync_cli.main import main
from insync_cli.proof import premises
from isr_check.family import Family, ProofPlan
from isr_check.smt import Counterexample, Induction, Obligation, Proved, Result, Unknown
from isr_lang import Action, Bool, Conjunct, Design, Property, Value, always, sometimes
from isr_protocol.in_sync_replicas import IN_SYNC_REPLICAS
from isr_trace.itf import read_itf
from isr_trace.show import heading, plain_text

pytestmark = [pytest.mark.processes, pytest.mark.solver]


@always
def never(s: ticket_desk.Desk) -> Bool:
    """Holds of no state."""
    return s.drawn != s.drawn


SAFE = (Conjunct(ticket_desk.never_ahead), Conjunct(ticket_desk.closed_is_done))
TOO_WEAK = (Conjunct(ticket_desk.closed_is_done),)


@sometimes
def somebody_is_served(s: ticket_desk.Desk) -> Bool:
    """Somebody is served."""
    return s.served > 0


def with_invariant(patch: pytest.MonkeyPatch, conjuncts: tuple[Conjunct, ...]) -> None:
    """What there is to prove of the desk, from what, and what one of the promises speaks about."""

    class Desks(Family):
        state = ticket_desk.Desk

        def proof_plan(self) -> ProofPlan:
            return ProofPlan(("never-ahead", "never-back", "closed-is-done"), ("tickets", "paper_jams"), {"rush": 1})

        def invariant(self, design: Design) -> tuple[Conjunct, ...]:
            return conjuncts

        def premises(self, names: Iterable[str]) -> tuple[Property, ...]:
            return tuple(somebody_is_served for name in names if name == "never-back")

    patch.setattr(families, "families", lambda: (IN_SYNC_REPLICAS, Desks(), families.UNKNOWN))


@pytest.fixture
def safe(desk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with_invariant(monkeypatch, SAFE)
    return desk


def answering(patch: pytest.MonkeyPatch, result: Result) -> None:
    """A solver that says the same of every obligation."""

    def prove(_: Induction, obligations: Sequence[Obligation], *__: object) -> list[tuple[Obligation, Result]]:
        return [(o, result) for o in obligations]

    patch.setattr("isr_check.smt.prove", prove)


def test_a_proof_says_for_which_bounds_it_holds(safe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "careful", "--out", "here"]) == 0
    said = capsys.readouterr().out
    assert "tickets any, rush 1" in said
    assert "PROVED   never-ahead" in said
    line = said.splitlines()[-1]
    assert line.startswith("insync prove careful: PROVED - never-ahead, never-back and closed-is-done hold for every ")
    assert "with calls 1, rush 1, reopen off; not judged: 1 other promise (29 obligations, " in line
    row = next(x for x in said.splitlines() if x.startswith("never-ahead "))
    assert set(row.split()[1:-2]) <= {"+", "."}
    written = json.loads((safe / "here" / "prove.json").read_text())
    assert written["schema"] == "insync/prove/1"
    assert written["line"] == line
    assert written["bounds"]["tickets"] is None
    assert {o["verdict"] for o in written["obligations"]} == {"proved"}
    assert written["stats"]["obligations"] == len(written["obligations"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_proof_can_be_stopped_while_it_is_stated(
    safe: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    """Of a large design that takes minutes, in which one stop was not heard."""
    steps, names = Induction.steps, list[str]()

    def interrupt(self: Induction, action: Action) -> object:
        names.append(action.name)
        signal.raise_signal(number)
        return steps(self, action)

    monkeypatch.setattr(Induction, "steps", interrupt)
    assert main(["prove", "careful", "--out", "here"]) == 20
    assert "interrupted" in capsys.readouterr().err
    assert len(names) == 1


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "",
            "for every tickets and paper-jams, with calls 1, rush 1, reopen off (",
        ),
        (
            "--paper-jams 0",
            "for every tickets, with calls 1, rush 1, reopen off, not covered: paper-jams (",
        ),
        (
            "--without jams --reopen on",
            "for every tickets, with calls 1, rush 1, reopen on, without jams, not covered: paper-jams (",
        ),
        (
            "--tickets 3 --paper-jams 2",
            "with tickets 3, paper-jams 2, calls 1, rush 1, reopen off (",
        ),
    ],
)
def test_the_last_line_names_every_setting_and_what_is_not_covered(
    safe: Path, capsys: pytest.CaptureFixture[str], words: str, says: str
) -> None:
    assert main(f"prove careful --property never-back --out here {words}".split()) == 0
    assert f"never-back holds {says.removesuffix(' (')}; not judged: 3 other promises (" in last_line(capsys)
    written = json.loads((safe / "here" / "prove.json").read_text())
    assert says.removesuffix(" (") == written["extent"]
    assert written["not_covered"] == (["paper-jams"] if "not covered" in says else [])


@pytest.mark.parametrize("without", ["serves hurries", "draws"])
def test_a_promise_of_what_never_happens_is_not_proved(
    safe: Path, capsys: pytest.CaptureFixture[str], without: str
) -> None:
    left_out = [word for action in without.split() for word in ("--without", action)]
    assert main(["prove", "careful", "--property", "never-back", "--out", "here", *left_out]) == 21
    assert "VACUOUS - never-back vacuous (never, in all " in last_line(capsys)
    written = json.loads((safe / "here" / "prove.json").read_text())
    assert [p["verdict"] for p in written["premises"]] == ["VACUOUS"]
    assert written["obligations"] == [], "nothing is worth a proof"
    assert main(["prove", "careful", "--quiet", *left_out]) == 21
    assert "VACUOUS - never-back vacuous" in last_line(capsys)


def test_a_premise_that_was_not_seen_in_time_is_no_proof(
    safe: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("insync_cli.proof.premises.SECONDS", 0.0)
    assert main(["prove", "careful", "--property", "never-back", "--tickets", "50", "--out", "here"]) == 20
    line = last_line(capsys)
    assert "UNKNOWN - not seen in time: Somebody is served" in line
    assert "promise" not in line.split(";")[0]


def test_a_premise_is_looked_for_at_larger_bounds(
    safe: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def one_ticket(*_: object) -> dict[str, int]:
        return {"tickets": 1}

    monkeypatch.setattr(Family, "constants_with_room", one_ticket)
    words = ["prove", "careful", "--property", "never-back", "--json", "-", "--without", "serves"]
    assert main(words) == 0
    (premise,) = json.loads(capsys.readouterr().out)["premises"]
    assert premise["verdict"] == "HOLDS"
    assert premise["depth"] == 3, "two draw, and the desk hurries, which it never does with one ticket"
    assert premise["bounds"]["tickets"] == 2
    assert main([*words, "--tickets", "1"]) == 21


VACUOUS_ONE = (
    "prove careful --property never-back --property never-ahead --without serves --without hurries --tickets 2"
)
"""Nobody is ever served, so never-back says nothing; never-ahead does."""


def test_a_vacuous_promise_is_no_claim_of_a_stored_proof(safe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*VACUOUS_ONE.split(), "--proof", "p.zip"]) == 21
    capsys.readouterr()
    assert main(["certify", "p.zip", "--solver", "z3"]) == 0
    said = capsys.readouterr().out
    assert "it claims: never-ahead\n" in said
    line = " ".join(said[said.rindex("insync certify") :].split())
    assert line.startswith("insync certify careful: AGREED - never-ahead for every paper-jams, with tickets 2, ")
    assert "without serves, hurries; not judged: 3 other promises; asked of z3 alone; on trust: " in line
    assert main(["certify", "p.zip"]) == 0
    assert "alone" not in capsys.readouterr().out


def test_certify_asks_the_premises_of_what_a_file_claims(
    safe: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of whoever did not ask them: every query is refuted, and the promise says nothing."""
    with monkeypatch.context() as patch:
        patch.setattr("insync_cli.proof.premises.look", Mock(return_value=premises.Premises({})))
        assert main([*VACUOUS_ONE.split(), "--proof", "p.zip"]) == 0
    capsys.readouterr()
    assert main(["certify", "p.zip", "--solver", "z3", "--json", "report.json"]) == 21
    said = " ".join(capsys.readouterr().out.split())
    assert "it claims: never-back, never-ahead" in said
    assert "insync certify careful: VACUOUS - never-back: never, in all " in said
    assert json.loads((safe / "report.json").read_text())["doubts"].keys() == {"never-back"}
    monkeypatch.setattr("insync_cli.proof.premises.SECONDS", 0.0)
    monkeypatch.setattr("insync_cli.proof.certify.Brake", Mock(return_value=lambda: True))
    assert main(["certify", "p.zip", "--solver", "z3"]) == 20
    assert "unknown - never-back and never-ahead for every " in (said := " ".join(capsys.readouterr().out.split()))
    assert "; never-back: not seen, in " in said


def test_a_proof_of_type_ok_alone_claims_no_promise(safe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "careful", "--property", "type-ok", "--tickets", "2", "--proof", "p.zip"]) == 0
    capsys.readouterr()
    assert main(["certify", "p.zip"]) == 0
    assert "AGREED - no promise, its conjuncts alone, for every paper-jams" in " ".join(capsys.readouterr().out.split())


def test_a_bound_that_is_given_is_fixed(safe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "careful", "--tickets", "2", "--json", "-"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["bounds"]["tickets"] == 2
    assert said["bounds"]["paper_jams"] is None


def test_a_counterexample_that_can_be_reached_refutes_the_promise(
    safe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prove", "hasty", "--out", "here"]) == 12
    said = capsys.readouterr().out
    assert "COUNTEREXAMPLE TO INDUCTION  never-ahead / serves" in said
    assert "this state is reachable, so what fails is wrong" in said
    assert "never-ahead, closed-is-done violated" in said.splitlines()[-1]
    assert " refuted, first never-ahead / " in said.splitlines()[-1]
    assert "may be too weak" not in said.splitlines()[-1]
    assert main(["explain", "here/never-ahead--serves--reached.itf.json"]) == 0
    assert main(["check", "hasty", "--property", "never-ahead", "--quiet"]) == 12


def test_a_counterexample_that_cannot_be_reached_asks_for_a_stronger_invariant(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_invariant(monkeypatch, TOO_WEAK)
    assert main(["prove", "careful", "--property", "never-ahead", "--out", "here"]) == 14
    said = capsys.readouterr().out
    assert "this state is not reachable at its bounds, so the invariant has to be strengthened" in said
    assert "UNKNOWN  never-ahead" in said
    assert "not inductive, first never-ahead / implies; the invariant may be too weak" in said.splitlines()[-1]
    assert "refuted, first" not in said.splitlines()[-1], "the design is not at fault"
    trace = read_itf(desk / "here" / "never-ahead--implies.itf.json")
    assert trace.anywhere
    assert len(trace.states) == 1


def test_its_trace_is_shown_and_explained_and_not_minimised(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_invariant(monkeypatch, SAFE)
    main(["prove", "hasty", "--out", "here", "--look", "0", "--quiet", "--tickets", "2"])
    path = desk / "here" / "never-ahead--serves.itf.json"
    trace = read_itf(path)
    assert "perhaps nothing leads to" in plain_text(heading(trace))
    capsys.readouterr()
    assert main(["show", str(path)]) == 0
    assert "T1  serves()" in capsys.readouterr().out
    assert main(["explain", str(path)]) == 0
    assert "never-ahead fails after T1" in capsys.readouterr().out
    assert main(["minimise", str(path)]) == 65
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"drawn": 0', '"drawn": 9').replace('"drawn": 1', '"drawn": 9'), encoding="utf-8")
    capsys.readouterr()
    assert main(["explain", str(path)]) == 65
    assert "its first state has values that hasty does not have" in capsys.readouterr().err


def test_a_conjunct_that_no_design_promises_is_explained_too(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lemma = attrs.evolve(ticket_desk.never_ahead, name="a-lemma")
    with_invariant(monkeypatch, (Conjunct(lemma),))
    assert main(["prove", "hasty", "--only", "a-lemma", "--out", "here"]) == 14
    assert "a-lemma fails after T1" in capsys.readouterr().out
    assert main(["explain", "here/a-lemma--serves.itf.json"]) == 0


@pytest.mark.parametrize(
    ("words", "extent"),
    [
        ("", "for every tickets and paper-jams, with calls 1, rush 1, reopen off ("),
        (
            "--without jams",
            "for every tickets, with calls 1, rush 1, reopen off, without jams, not covered: paper-jams (",
        ),
    ],
)
def test_a_part_of_the_obligations_proves_no_promise(
    safe: Path, capsys: pytest.CaptureFixture[str], words: str, extent: str
) -> None:
    part = ["--only", "never-ahead", "--action", "draws", "--out", "here", *words.split()]
    assert main(["prove", "hasty", *part]) == 20
    line = last_line(capsys)
    assert line.startswith("insync prove hasty: PARTIAL - every obligation that was asked is proved, ")
    assert f"a part of a proof and no promise, {extent}1 obligation, " in line
    written = json.loads((safe / "here" / "prove.json").read_text())
    assert (written["promises"], written["verdict"], written["partial"]) == ([], "PARTIAL", True)


def test_a_part_does_not_prove_what_is_vacuous(safe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--only", "never-back", "--without", "serves", "--without", "hurries", "--quiet"]
    assert main(["prove", "careful", *words]) == 20
    line = last_line(capsys)
    assert "PARTIAL" in line
    assert "without serves, hurries" in line


def test_a_proof_of_no_promise_is_a_part_of_a_proof(
    safe: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_promise(_: Family) -> ProofPlan:
        return ProofPlan(("another-design-s",), ("tickets", "paper_jams"), {"rush": 1})

    family = next(f for f in families.families() if f.state is ticket_desk.Desk)
    monkeypatch.setattr(type(family), "proof_plan", no_promise)
    assert main(["prove", "careful", "--quiet"]) == 20
    assert "PARTIAL" in last_line(capsys)


def test_unknown_is_never_a_success(
    safe: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answering(monkeypatch, Unknown("timeout", 1.0))
    assert main(["prove", "careful"]) == 20
    said = capsys.readouterr().out
    assert "UNKNOWN  never-ahead" in said
    assert said.splitlines()[-1].startswith("insync prove careful: UNKNOWN - ")
    assert main(["prove", "careful", "--only", "never-ahead", "--quiet"]) == 20


def test_an_invariant_that_holds_of_nothing_proves_nothing(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_invariant(monkeypatch, (*SAFE, Conjunct(never)))
    assert main(["prove", "careful", "--quiet"]) == 21
    assert "no state satisfies all of the conjuncts together" in capsys.readouterr().err


def test_engines_that_disagree_are_an_error_that_keeps_both_artifacts(
    safe: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answering(monkeypatch, Proved(0.1))
    assert main(["prove", "hasty", "--cross-check", "--out", "here"]) == 70
    said = capsys.readouterr().out
    assert "the engines disagree: never-ahead is proved, and violated after 1 steps" in said
    assert said.splitlines()[-1].startswith("insync prove hasty: ERROR - ")
    proof = json.loads((safe / "here" / "prove.json").read_text())
    explored = json.loads(Path(proof["explored"]["run"]).read_text())
    assert {o["verdict"] for o in proof["obligations"]} == {"proved"}
    assert next(x["verdict"] for x in explored["properties"] if x["name"] == "never-ahead") == "VIOLATED"
    assert main(["explain", "here/explored/never-ahead.itf.json"]) == 0


def test_engines_that_agree_say_so(safe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "careful", "--cross-check"]) == 0
    assert "states explored, every reachable state" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("state", "parameters", "says"),
    [
        ({"drawn": 0, "served": 1, "jams": 0, "open": True}, (), "does not satisfy never-ahead"),
        ({"drawn": 1, "served": 1, "jams": 0, "open": True}, (3,), "is not possible in the state"),
    ],
)
def test_a_counterexample_that_the_model_does_not_have_is_an_error(
    safe: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    state: dict[str, object],
    parameters: tuple[int, ...],
    says: str,
) -> None:
    constants: dict[str, Value] = {"tickets": 2, "rush": 1, "paper_jams": 0, "calls": "1", "reopen": False}
    answering(monkeypatch, Counterexample(0.1, constants, state, parameters, state))
    words = ["--only", "never-ahead", "--action", "draws", "--out", "here", "--look", "0"]
    assert main(["prove", "careful", *words]) == 70
    assert says in json.loads((safe / "here" / "prove.json").read_text())["obligations"][0]["reason"]


def test_core_names_the_conjuncts_that_a_proof_uses(safe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "careful", "--core", "--json", "-"]) == 0
    cores = {(o["conjunct"], o["action"]): o["core"] for o in json.loads(capsys.readouterr().out)["obligations"]}
    assert "closed-is-done" in cores["closed-is-done", "jams"]


def test_a_proof_learns_for_the_next_one(safe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["prove", "careful", "--quiet", "--learn", "here/cores.json"]
    assert main(words) == 0
    assert "questions learnt: here/cores.json" in capsys.readouterr().err
    learnt = (safe / "here" / "cores.json").read_text()
    assert "closed-is-done" in learnt
    assert main(words) == 0
    assert "0 questions learnt" in capsys.readouterr().err
    assert (safe / "here" / "cores.json").read_text() == learnt
    (safe / "here" / "cores.json").write_text(learnt[:-9])
    assert main(words) == 65
    assert "cores.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("careful --only never-ahed", "no conjunct or promise 'never-ahed'; did you mean 'never-ahead'?"),
        ("careful --action drawz", "no action 'drawz'; did you mean 'draws'?"),
        ("careful --property never-bak", "no property 'never-bak'; did you mean 'never-back'?"),
        ("careful --property everybody-served", "induction cannot prove it"),
        ("careful --property crowd", "induction cannot prove it"),
        ("careful --cross-check --only never-ahead", "leave out --only and --action"),
        ("empty", "no invariant is known that speaks of empty"),
        ("careful --tickets 0", "--tickets is a whole number from 1 to 200, not 0"),
        ("careful --seconds 0", "a number of seconds above 0"),
        ("no-such-design", "there is no design 'no-such-design'"),
    ],
)
def test_a_mistake_is_one_clear_sentence(
    safe: Path, capsys: pytest.CaptureFixture[str], command: str, says: str
) -> None:
    assert main(["prove", *command.split()]) == 64
    said = capsys.readouterr()
    assert says in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_a_budget_that_is_counted_with_cannot_be_left_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "--replicas 2 --disks-replaced any --action disk_is_replaced --look 0 --quiet --out"
    assert main(["prove", "kafka-4.4-mended", *words.split(), str(tmp_path)]) == 64
    assert "how many DisksReplaced there are in a set cannot be counted without a bound" in capsys.readouterr().err
