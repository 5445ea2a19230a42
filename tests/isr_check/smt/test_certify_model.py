"""`insync certify` beside the model: whoever rewrites a whole file, hashes included, still does not get it certified.

Without these, a file that calls what it cannot prove unchanged, or that proves triviality, would be certified.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from tests.isr_check.smt.test_certify import (
    Edit,
    Json,
    asserted,
    certified,
    changed,
    commits,
    first_part,
    known,
    obligations,
    parts,
    proof_of,
)
from tests.isr_check.smt.test_smt import CONJUNCTS, induction
from tests.support.models import two_phase_commit as tpc

from insync_cli.main import main
from isr_check.certify import read_certificate
from isr_check.smt import Induction
from isr_check.smt.certificate import compare

pytestmark = [pytest.mark.solver, pytest.mark.processes]

__all__ = ["commits"]
"""The fixture by which the command line knows two-phase commit."""


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return proof_of(induction(*CONJUNCTS), tmp_path_factory.mktemp("proof"))


def dropped(manifest: Json, files: dict[str, str], those: list[Json]) -> None:
    """Take these obligations away, and their queries."""
    for o in those:
        obligations(manifest).remove(o)
        for p in parts({"obligations": [o]}):
            del files[str(p["file"])]


def steps(manifest: Json) -> dict[str, list[Json]]:
    return cast("dict[str, list[Json]]", manifest["steps"])


def names_of_actions(manifest: Json) -> Iterator[str]:
    return (name for name in steps(manifest) if name != "initial")


# The nine, which were found by an attack: five of them were certified.


def call_it_unchanged(manifest: Json, files: dict[str, str]) -> None:
    for o in obligations(manifest):
        if o["kind"] == "preserved" and o["queries"]:
            for p in parts({"obligations": [o]}):
                del files[str(p["file"])]
            choices = [q["choice"] for q in cast("list[Json]", o["queries"])]
            before = cast("dict[str, list[str]]", o.get("unchanged", {"choices": []}))["choices"]
            o["unchanged"] = {"choices": [*before, *choices], "reason": "nothing that it speaks of changes"}
            o["queries"] = []


def prove_a_triviality(manifest: Json, files: dict[str, str]) -> None:
    for part in parts(manifest):
        name = str(part["file"])
        goal = next(a for a in asserted(files[name]) if a.startswith("; goal"))
        files[name] = files[name].replace(goal, "; goal\n(assert (not (= 0 0)))\n")


def alter_a_constant(manifest: Json, files: dict[str, str]) -> None:
    cast("Json", manifest["constants"])["rms"] = 7


def remove_an_action(manifest: Json, files: dict[str, str]) -> None:
    del steps(manifest)["tm_commits"]
    dropped(manifest, files, [o for o in obligations(manifest) if o["action"] == "tm_commits"])


def call_an_action_impossible(manifest: Json, files: dict[str, str]) -> None:
    steps(manifest)["tm_commits"] = [{"choice": c["choice"], "impossible": True} for c in steps(manifest)["tm_commits"]]
    for o in obligations(manifest):
        if o["action"] == "tm_commits":
            for p in parts({"obligations": [o]}):
                del files[str(p["file"])]
            o["queries"] = []
            o.pop("unchanged", None)


def drop_an_obligation(manifest: Json, files: dict[str, str]) -> None:
    dropped(manifest, files, [next(o for o in obligations(manifest) if o["queries"] and o["action"])])


def drop_a_conjunct(manifest: Json, files: dict[str, str]) -> None:
    """One that no query uses any more, in every place in which it stands."""
    name = "prepared-stays"
    dropped(manifest, files, [o for o in obligations(manifest) if o["conjunct"] == name])
    manifest["conjuncts"] = [c for c in cast("list[Json]", manifest["conjuncts"]) if c["name"] != name]
    del cast("Json", manifest["holds"])[name]
    for part in parts(manifest):
        listed, file = cast("list[str]", part["assertions"]), str(part["file"])
        for at in reversed([k for k, a in enumerate(listed) if a == f"holds {name}"]):
            files[file] = files[file].replace(asserted(files[file])[at], "")
            del listed[at]


def add_an_assumption(manifest: Json, files: dict[str, str]) -> None:
    """A hypothesis that contradicts the goal, listed as one of a conjunct's."""
    part = first_part(manifest)
    name, listed = str(part["file"]), cast("list[str]", part["assertions"])
    at = next(k for k, a in enumerate(listed) if a.startswith("holds"))
    conjunct, more = listed[at].split()[1], "(<= 1 0)"
    cast("dict[str, list[str]]", manifest["holds"])[conjunct].append(more)
    before = asserted(files[name])[at]
    files[name] = files[name].replace(before, f"{before}; {listed[at]}\n(assert {more})\n")
    listed.insert(at, listed[at])


def name_another_model(manifest: Json, files: dict[str, str]) -> None:
    manifest["model_hash"] = "0123456789abcdef"


NINE: dict[str, tuple[Edit, str]] = {
    "preservation called unchanged": (call_it_unchanged, "is called unchanged, and the step can change it"),
    "goals replaced by a triviality": (prove_a_triviality, "its goal is not worded like the model's"),
    "a constant altered": (alter_a_constant, "differences, first: "),
    "an action removed": (remove_an_action, "the action tm_commits is missing"),
    "an action called impossible": (call_an_action_impossible, "is called impossible, and is not"),
    "an obligation dropped": (drop_an_obligation, "is missing"),
    "a conjunct dropped": (drop_a_conjunct, "its conjuncts are not those of the model"),
    "an assumption added": (add_an_assumption, "its hypotheses are not those of the model"),
    "another model's hash": (name_another_model, "is a proof of another two-phase-commit"),
}

# More of the kind.


def rename_the_promise(manifest: Json, files: dict[str, str]) -> None:
    cast("list[Json]", manifest["wanted"])[0]["name"] = "never-aborted"
    for o in obligations(manifest):
        if o["kind"] == "implies":
            o["conjunct"] = "never-aborted"


def reword_the_promise(manifest: Json, files: dict[str, str]) -> None:
    cast("list[Json]", manifest["wanted"])[0]["text"] = "Nobody ever aborts."


def leave_a_bound_open(manifest: Json, files: dict[str, str]) -> None:
    del cast("Json", manifest["constants"])["rms"]
    manifest["free"] = ["rms"]


def invent_a_constant(manifest: Json, files: dict[str, str]) -> None:
    cast("Json", manifest["constants"])["lossy"] = 4


def drop_the_start(manifest: Json, files: dict[str, str]) -> None:
    at = next(o for o in obligations(manifest) if o["kind"] == "initial" and o["conjunct"] != "type-ok")
    dropped(manifest, files, [at])


def state_an_obligation_twice(manifest: Json, files: dict[str, str]) -> None:
    obligations(manifest).append(obligations(manifest)[-1])


def turn_the_order(manifest: Json, files: dict[str, str]) -> None:
    listed = cast("list[Json]", manifest["conjuncts"])
    listed.insert(1, listed.pop())


def require_more(manifest: Json, files: dict[str, str]) -> None:
    """A guard that no state satisfies, in the steps of an action and in every query about it."""
    for choice in steps(manifest)["tm_commits"]:
        cast("list[list[str]]", choice["guards"]).append(["(never)", "(<= 1 0)"])
    for o in obligations(manifest):
        for part in parts({"obligations": [o]}) if o["action"] == "tm_commits" else ():
            name = str(part["file"])
            files[name] = files[name].replace("(check-sat)", "; guard (never)\n(assert (<= 1 0))\n(check-sat)")
            cast("list[str]", part["assertions"]).append("guard (never)")


def lose_a_choice_everywhere(manifest: Json, files: dict[str, str]) -> None:
    action = next(n for n in names_of_actions(manifest) if steps(manifest)[n][0]["choice"])
    lost = steps(manifest)[action].pop()["choice"]
    for o in obligations(manifest):
        if o["action"] == action:
            for q in [q for q in cast("list[Json]", o["queries"]) if q["choice"] == lost]:
                cast("list[Json]", o["queries"]).remove(q)
                for p in cast("list[Json]", q["parts"]):
                    del files[str(p["file"])]
            unchanged = cast("dict[str, list[str]]", o.get("unchanged", {"choices": []}))["choices"]
            if lost in unchanged:
                unchanged.remove(str(lost))


def prove_another_part_twice(manifest: Json, files: dict[str, str]) -> None:
    """The hardest part of a goal is replaced by the query of another part."""
    q = next(
        q
        for o in obligations(manifest)
        for q in cast("list[Json]", o["queries"])
        if o["action"] and len(cast("list[Json]", q["parts"])) > 1
    )
    first, second, *_ = cast("list[Json]", q["parts"])
    files[str(first["file"])] = files[str(second["file"])]
    first["assertions"] = second["assertions"]


def declare_truths_as_numbers(manifest: Json, files: dict[str, str]) -> None:
    """A variable of other values, in every query alike."""
    symbol = re.findall(r"\(declare-fun (\S+|\|[^|]*\|) \(\) Bool\)", "\n".join(files.values()))[0]
    for name in files:
        files[name] = files[name].replace(f"(declare-fun {symbol} () Bool)", f"(declare-fun {symbol} (Int) Bool)")


def hide_by_an_escape(manifest: Json, files: dict[str, str]) -> None:
    """What one reader takes to be a symbol, and another one an assertion."""
    name = str(first_part(manifest)["file"])
    files[name] = files[name].replace(
        "(check-sat)", "(declare-fun |a\\| () Bool) (assert false) |b| () Bool)\n(check-sat)"
    )


def define_what_is_not_so(manifest: Json, files: dict[str, str]) -> None:
    part = first_part(manifest)
    name = str(part["file"])
    files[name] = files[name].replace("(check-sat)", "(declare-fun mine!1 () Int)\n(assert (<= mine!1 0))\n(check-sat)")
    cast("list[str]", part["assertions"]).append("definition")


def nest_it_deep(manifest: Json, files: dict[str, str]) -> None:
    name = str(first_part(manifest)["file"])
    goal = next(a for a in asserted(files[name]) if a.startswith("; goal"))
    deep = "(not " * 20_000 + "false" + ")" * 20_000
    files[name] = files[name].replace(goal, f"; goal\n(assert (not {deep}))\n")


MORE: dict[str, tuple[Edit, str]] = {
    "the promise renamed": (rename_the_promise, "makes no promise never-aborted"),
    "the promise reworded": (reword_the_promise, "its promises are not those of the model"),
    "a bound called open": (leave_a_bound_open, "difference"),
    "a constant that there is not": (invent_a_constant, "its constants are not those of a proof"),
    "a start dropped": (drop_the_start, "is missing"),
    "an obligation twice": (state_an_obligation_twice, "is there 2 times"),
    "another order": (turn_the_order, "its conjuncts are not those of the model"),
    "a guard added": (require_more, "has other guards"),
    "a choice dropped": (lose_a_choice_everywhere, "has other choices of parameters"),
    "a part for another": (prove_another_part_twice, "its goal is not worded like the model's"),
    "another sort": (declare_truths_as_numbers, "is declared of another sort than in the model"),
    "an escape": (hide_by_an_escape, "it has a character that no query should"),
    "a definition of nothing": (define_what_is_not_so, "a definition is none of the model's"),
    "a deep formula": (nest_it_deep, "nested too deep, or cannot be read"),
}


@pytest.mark.parametrize("what", [*NINE, *MORE])
def test_what_was_rewritten_is_refused(
    proof: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    edit, says = {**NINE, **MORE}[what]
    assert certified(changed(proof, tmp_path, edit), "--solver", "z3") == 65
    said = capsys.readouterr()
    text = " ".join((said.out + said.err).split())
    assert says in text
    assert "agreed" not in text.lower()


@pytest.mark.parametrize("what", [*NINE])
def test_a_file_alone_is_never_green(
    proof: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    edit, _ = NINE[what]
    assert certified(changed(proof, tmp_path, edit), "--solver", "z3", "--file-alone") in (20, 22, 65)
    assert "AGREED" not in capsys.readouterr().out


def test_the_last_line_says_of_what_and_what_is_taken_on_trust(proof: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", str(proof), "--solver", "z3", "--json", "-"]) == 0
    report = cast("Json", json.loads(capsys.readouterr().out))
    agreed = "insync certify two-phase-commit: AGREED - consistent with rms 4; asked of z3 alone; on trust: "
    assert report["line"] == f"{agreed}how insync makes formulas of the model"
    assert cast("int", report["compared"]) > 20
    assert cast("int", report["unchanged"]) > 20
    assert main(["certify", str(proof), "--solver", "z3", "--file-alone", "--plain"]) == 20
    said = " ".join(capsys.readouterr().out.split())
    assert "unknown - the file was checked alone, which says nothing of the model; on trust: that the formulas" in said


def test_other_blanks_are_the_same_proof(proof: Path, tmp_path: Path) -> None:
    def respaced(manifest: Json, files: dict[str, str]) -> None:
        for name in files:
            files[name] = files[name].replace("\n", "\r\n").replace("(and ", "(and\t ")
        for texts in cast("dict[str, list[str]]", manifest["holds"]).values():
            texts[:] = [text.replace("\n", "\r\n").replace("(and ", "(and\t ") for text in texts]

    assert certified(changed(proof, tmp_path, respaced, rehash=False), "--solver", "z3") == 65
    assert certified(changed(proof, tmp_path, respaced), "--solver", "z3") == 0


def test_a_design_that_is_not_listed_is_refused_in_a_sentence(
    proof: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.undo()
    assert certified(proof, "--solver", "z3") == 65
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "is a proof of a design that is not at hand: there is no design 'two-phase-commit'" in said
    assert "--design-file brings others" in said


def test_another_invariant_of_the_same_design_is_noticed(
    proof: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known(monkeypatch, tpc.consistent)
    assert certified(proof, "--solver", "z3") == 65
    assert "its conjuncts are not those of the model" in " ".join(capsys.readouterr().out.split())


def test_any_number_is_compared_too(tmp_path: Path) -> None:
    stored = read_certificate(proof_of(Induction(tpc.DESIGN, {"rms": None}, CONJUNCTS), tmp_path))
    again = Induction(tpc.DESIGN, {"rms": None}, CONJUNCTS)
    again.translation.shapes.fresh("so that what is numbered later has other numbers")
    found = compare(stored, again, [tpc.consistent])
    assert found.problems == ()
    assert found.formulas > 20
