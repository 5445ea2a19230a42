"""A stored proof is checked again from the file alone, and tampering with it is noticed.

Without these, a proof file that lacks an obligation, or argues in a circle, would be certified.
"""

import hashlib
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest
from tests.isr_check.smt.test_smt import CONJUNCTS, induction
from tests.support.models import two_phase_commit as tpc

from insync_cli import families
from insync_cli.main import main
from insync_cli.proof.proof_file import Keeper
from isr_check import opinions
from isr_check.certify import OPTIONS, read_certificate
from isr_check.certify import Query as StoredQuery
from isr_check.family import Family
from isr_check.smt import Induction, Proved, prove, solver, strategy
from isr_check.smt.induction import GOAL
from isr_check.smt.proof_file import Keeping, NotStored, file_name, store
from isr_check.smt.solver import Proof
from isr_check.smt.strategy import Strategy
from isr_check.smt.terms.logic import conjuncts, not_, term
from isr_lang import Bool, Conjunct, Design, Property, always
from isr_protocol.in_sync_replicas import IN_SYNC_REPLICAS

pytestmark = [pytest.mark.solver, pytest.mark.processes]

Json = dict[str, object]
Edit = Callable[[Json, dict[str, str]], None]


class Commits(Family):
    """Two-phase commit as a family, so that a stored proof is compared with its design."""

    state = tpc.State

    def designs(self) -> Mapping[str, Design]:
        return {tpc.DESIGN.name: tpc.DESIGN}

    def __init__(self, *more: Property) -> None:
        self.conjuncts = tuple(map(Conjunct, (*CONJUNCTS, *more)))

    def invariant(self, design: Design) -> tuple[Conjunct, ...]:
        del design
        return self.conjuncts


def known(monkeypatch: pytest.MonkeyPatch, *more: Property) -> None:
    """The command line knows two-phase commit and its invariant, and these conjuncts besides."""
    monkeypatch.setattr(families, "families", lambda: (IN_SYNC_REPLICAS, Commits(*more), families.UNKNOWN))


@pytest.fixture(autouse=True)
def commits(monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch)


def proof_of(i: Induction, folder: Path) -> Path:
    keeping = Keeping(i, Strategy(i, {}, exchange=False).decide, folder)
    decided = prove(i, list(i.obligations([tpc.consistent])), 10.0, first=keeping)
    file = folder / file_name(i, "rms")
    store(file, keeping, decided, [tpc.consistent])
    return file


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return proof_of(induction(*CONJUNCTS), tmp_path_factory.mktemp("proof"))


def changed(proof: Path, to: Path, edit: Edit, rehash: bool = True) -> Path:
    """The proof after somebody edited its manifest and its queries, who may know about hashes."""
    with zipfile.ZipFile(proof) as archive:
        files = {n: archive.read(n).decode() for n in archive.namelist()}
    manifest = cast("Json", json.loads(files.pop("manifest.json")))
    edit(manifest, files)
    for part in parts(manifest) if rehash else ():
        part["sha256"] = hashlib.sha256(files[str(part["file"])].encode()).hexdigest()
    with zipfile.ZipFile(to / "changed.zip", "w") as archive:
        for name, text in {"manifest.json": json.dumps(manifest), **files}.items():
            archive.writestr(name, text)
    return to / "changed.zip"


def obligations(manifest: Json) -> list[Json]:
    return cast("list[Json]", manifest["obligations"])


def parts(manifest: Json) -> Iterator[Json]:
    for o in obligations(manifest):
        for q in cast("list[Json]", o["queries"]):
            yield from cast("list[Json]", q["parts"])


def asserted(text: str) -> list[str]:
    """The assertions of a query, each with its comment."""
    return re.findall(r"; [^\n]*\n\(assert .*?\)\n(?=[;(])", text, re.DOTALL)


def certified(file: Path, *options: str) -> int:
    return main(["certify", str(file), "--quiet", *options])


# What is proved.


def test_both_solvers_agree_on_two_phase_commit(proof: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert proof.name == "proof-two-phase-commit-4.zip"
    assert certified(proof, "--solver", "both") == 0
    said = capsys.readouterr().out
    assert "it claims: consistent" in said
    assert re.search(r"z3 \S+: agreed; agreed on (\d+) of \1, unknown 0", said)
    assert re.search(r"cvc5 \S+: agreed; agreed on (\d+) of \1, unknown 0", said)


def test_both_solvers_agree_on_any_number_of_managers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = proof_of(Induction(tpc.DESIGN, {"rms": None}, CONJUNCTS), tmp_path)
    assert certified(stored, "--solver", "both") == 0
    said = capsys.readouterr().out
    assert "for every value of: rms" in said
    assert len(re.findall(r"agreed; agreed on (\d+) of \1, unknown 0", said)) == 2


def test_a_naming_is_only_for_any_number(proof: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def names(manifest: Json, files: dict[str, str]) -> None:
        part = next(p for p in parts(manifest) if "guard" in str(p["assertions"]))
        said = cast("list[str]", part["assertions"])
        said[next(k for k, a in enumerate(said) if a.startswith("guard"))] = "naming"

    assert certified(changed(proof, tmp_path, names), "--solver", "z3") == 65
    assert "it names an element, but every element has a name" in capsys.readouterr().out

    def counts(manifest: Json, files: dict[str, str]) -> None:
        names(manifest, files)
        manifest["any_number"] = ["RM"]

    assert read_certificate(changed(proof, tmp_path, counts)).namings == 1

    def at_the_start(manifest: Json, files: dict[str, str]) -> None:
        counts(manifest, files)
        for o in obligations(manifest):
            o["kind"] = "initial"

    assert any(
        "names an element at the start" in p for p in read_certificate(changed(proof, tmp_path, at_the_start)).problems
    )


def test_the_report_as_json(proof: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert certified(proof, "--solver", "z3", "--json", "-") == 0
    report = cast("dict[str, object]", json.loads(capsys.readouterr().out))
    assert report["problems"] == []
    assert cast("dict[str, dict[str, object]]", report["solvers"])["z3"]["verdict"] == "agreed"


def test_the_queries_are_small(proof: Path) -> None:
    stored = read_certificate(proof)
    assert all(len(q.text) < 10_000 for q in stored.queries)
    holds = cast("dict[str, list[str]]", stored.manifest["holds"])
    every = sum(map(len, holds.values()))
    assert all(len(asserted(q.text)) < every / 2 for q in stored.queries)


def test_equal_proofs_are_equal_queries(proof: Path, tmp_path: Path) -> None:
    again = read_certificate(proof_of(induction(*CONJUNCTS), tmp_path))
    assert {q.name for q in again.queries} == {q.name for q in read_certificate(proof).queries}


def test_what_is_not_proved_is_not_stored(tmp_path: Path) -> None:
    i = induction(*(c for c in CONJUNCTS if c.name != "prepared-stays"), tpc.consistent)
    keeping = Keeping(i, Strategy(i, {}, exchange=False).decide, tmp_path)
    decided = prove(i, list(i.obligations()), 10.0, first=keeping)
    with pytest.raises(NotStored, match=r"obligations are not proved, among them"):
        store(tmp_path / "no.zip", keeping, decided)
    some = [(o, r) for o, r in decided if isinstance(r, Proved)]
    with pytest.raises(NotStored, match="not of some conjuncts"):
        store(tmp_path / "no.zip", keeping, some)
    assert not (tmp_path / "no.zip").exists()


@pytest.mark.parametrize("whole", [True, False])
def test_prove_stores_what_is_proved(tmp_path: Path, whole: bool) -> None:
    i = induction(*(CONJUNCTS if whole else CONJUNCTS[:1]))
    file = tmp_path / "new" / "p.zip"
    with Keeper(file) as keeper:
        first = keeper.attempt(i, Strategy(i, {}, exchange=False).decide)
        decided = prove(i, list(i.obligations([tpc.consistent])), 10.0, first=first)
        stored, said = keeper.store(decided, [tpc.consistent])
    assert (stored, file.exists()) == (whole, whole)
    if whole:
        assert said.endswith(f"to check it again: insync certify {file}")
        assert not read_certificate(file).problems
    else:
        assert said.startswith("no proof is stored: ")


def test_where_no_proof_is_asked_for_nothing_is_kept() -> None:
    i = induction(*CONJUNCTS)
    way = Strategy(i, {}, exchange=False).decide
    with Keeper(None) as keeper:
        assert keeper.attempt(i, way) == way
        assert keeper.store([], []) == (True, "")


# A conjunct after the step.


@always
def who_commits_does_not_abort(s: tpc.State) -> Bool:
    """A part of the first conjunct, so that it follows from it after the step."""
    return (s.tm == tpc.Outcome.COMMITTED).implies(~s.abort_sent)


def with_a_primed_use(folder: Path) -> tuple[Path, str]:
    """A proof in which the last conjunct is shown after tm_commits from the first one after tm_commits."""
    i = induction(*CONJUNCTS, who_commits_does_not_abort)
    keeping = Keeping(i, Strategy(i, {}, exchange=False).decide, folder)
    decided = prove(i, list(i.obligations()), 10.0, first=keeping)
    o = next(o for o, _ in decided if (o.conjunct, o.action) == ("who-commits-does-not-abort", "tm_commits"))
    (q,) = o.queries
    (same,) = next(o for o, _ in decided if (o.conjunct, o.action) == ("tells-what-it-decided", "tm_commits")).queries
    after = [("tells-what-it-decided'", x) for x in conjuncts(same.goal)]
    keeping.keep(o, q, [Proof(q.goal, (*after, (GOAL, term(not_(q.goal)))), {}, 0.1)])
    store(folder / "primed.zip", keeping, decided)
    return folder / "primed.zip", "preserved/who-commits-does-not-abort/tm_commits"


def test_a_conjunct_after_the_step_may_be_used_if_it_comes_earlier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, who_commits_does_not_abort)
    file, name = with_a_primed_use(tmp_path)
    stored = read_certificate(file)
    assert not stored.problems
    part = next(p for p in parts(cast("Json", stored.manifest)) if str(p["file"]).startswith(name))
    assert "after tells-what-it-decided" in cast("list[str]", part["assertions"])
    assert certified(file) == 0


def test_a_circular_use_is_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, _ = with_a_primed_use(tmp_path)

    def last_first(manifest: Json, files: dict[str, str]) -> None:
        listed = cast("list[Json]", manifest["conjuncts"])
        listed.insert(1, listed.pop())

    assert certified(changed(file, tmp_path, last_first)) == 65
    assert "does not come earlier: the argument would be circular" in " ".join(capsys.readouterr().out.split())


def test_another_wording_after_the_step_is_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, name = with_a_primed_use(tmp_path)

    def stronger(manifest: Json, files: dict[str, str]) -> None:
        path = next(n for n in files if n.startswith(name))
        files[path] = re.sub(r"(?<=tells-what-it-decided\n)\(assert .*", "(assert (and false false))", files[path])

    assert certified(changed(file, tmp_path, stronger)) == 65
    assert "is not worded like what is proved of it" in " ".join(capsys.readouterr().out.split())


# Tampering.


def first_part(manifest: Json, needs: str = "holds") -> Json:
    return next(p for p in parts(manifest) if any(a.startswith(needs) for a in cast("list[str]", p["assertions"])))


def drop_an_assertion(manifest: Json, files: dict[str, str]) -> None:
    part = first_part(manifest)
    listed, name = cast("list[str]", part["assertions"]), str(part["file"])
    at = next(i for i, a in enumerate(listed) if a.startswith("holds"))
    files[name] = files[name].replace(asserted(files[name])[at], "")
    del listed[at]


def prove_nothing(manifest: Json, files: dict[str, str]) -> None:
    name = str(first_part(manifest, GOAL)["file"])
    goal = next(a for a in asserted(files[name]) if a.startswith("; goal"))
    files[name] = files[name].replace(goal, "; goal\n(assert (not true))\n")


def lose_an_obligation(manifest: Json, files: dict[str, str]) -> None:
    lost = next(o for o in obligations(manifest) if o["queries"] and o["action"])
    obligations(manifest).remove(lost)
    for p in parts({"obligations": [lost]}):
        del files[str(p["file"])]


def lose_a_choice(manifest: Json, files: dict[str, str]) -> None:
    lost = next(o for o in obligations(manifest) if o["queries"] and o["action"])
    del files[str(next(parts({"obligations": [lost]}))["file"])]
    lost["queries"] = cast("list[Json]", lost["queries"])[1:]


def list_one_twice(manifest: Json, files: dict[str, str]) -> None:
    obligations(manifest).append(obligations(manifest)[0])


def word_a_conjunct_otherwise(manifest: Json, files: dict[str, str]) -> None:
    name = str(first_part(manifest)["file"])
    found = next(a for a in asserted(files[name]) if a.startswith("; holds"))
    files[name] = files[name].replace(found, f"{found.splitlines()[0]}\n(assert (and false false))\n")


def require_more(manifest: Json, files: dict[str, str]) -> None:
    part = first_part(manifest, "goal")
    name = str(part["file"])
    files[name] = files[name].replace("(check-sat)", "(assert (< 1 0))\n(check-sat)")
    cast("list[str]", part["assertions"]).append("guard of mine")


def define_an_operator(manifest: Json, files: dict[str, str]) -> None:
    name = str(first_part(manifest)["file"])
    files[name] = files[name].replace("(check-sat)", "(define-fun extra () Bool false)\n(check-sat)")


def contradict(manifest: Json, files: dict[str, str]) -> None:
    part = first_part(manifest)
    name = str(part["file"])
    files[name] = files[name].replace("(check-sat)", "(assert (< 1 0))\n(check-sat)")
    cast("list[str]", part["assertions"]).append("definition")


def define_by_a_mark(manifest: Json, files: dict[str, str]) -> None:
    """A mark with a name in it, which gives a value to a symbol of the state, and is no declaration."""
    part = first_part(manifest)
    name, listed = str(part["file"]), cast("list[str]", part["assertions"])
    symbol = re.search(r"\(declare-fun (\S+) \(\) Int\)\n", files[name]) or re.search(
        r"\(declare-fun (\|[^|]*\|) \(\) Int\)\n", files[name]
    )
    if symbol is None:
        files[name] = files[name].replace("(check-sat)", "(assert (|in view| (! 0 :named |rm[r1]|)))\n(check-sat)")
    else:
        files[name] = (
            files[name]
            .replace(symbol[0], "")
            .replace("(check-sat)", f"(assert (|in view| (! 0 :named {symbol[1]})))\n(check-sat)")
        )
    if "(declare-fun |in view|" not in files[name]:
        files[name] = files[name].replace("(set-logic ALL)\n", "(set-logic ALL)\n(declare-fun |in view| (Int) Bool)\n")
    listed.append("mark")


def begin_with_what_is_to_be_shown(manifest: Json, files: dict[str, str]) -> None:
    start = next(o for o in obligations(manifest) if o["kind"] == "preserved" and o["queries"])
    start["kind"] = "initial"


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (prove_nothing, "its goal says nothing, or is not denied"),
        (lose_an_obligation, "is missing"),
        (lose_a_choice, "is not there exactly once for the parameters"),
        (list_one_twice, "is there 2 times"),
        (word_a_conjunct_otherwise, "is not worded as in the manifest"),
        (require_more, "the step does not require of mine in these words"),
        (define_an_operator, "it says define-fun, which no query should"),
        (contradict, "a definition is none of the model's"),
        (define_by_a_mark, "an attribute stands where none is a pattern"),
        (begin_with_what_is_to_be_shown, "is missing"),
    ],
)
def test_tampering_is_noticed(
    proof: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], edit: Edit, says: str
) -> None:
    assert certified(changed(proof, tmp_path, edit), "--solver", "z3") == 65
    assert says in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"smtlib2_log": "FILE"}, "smtlib2_log is no option of z3 that a proof has"),
        ({"timeout": 0}, "timeout is no option"),
        ({"max_memory": 4_000_000}, "max_memory is no option"),
        ({"mbqi": "FILE"}, "mbqi cannot be"),
        ({"mbqi": 1}, "mbqi cannot be 1"),
        ({"arith.solver": 99}, "arith.solver cannot be 99"),
        ({"case_split": 10**400}, "case_split cannot be 1000"),
        ({"qi.eager_threshold": float("nan")}, "qi.eager_threshold cannot be nan"),
    ],
)
def test_a_file_gives_the_solver_no_orders(
    proof: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: dict[str, bool | int | float | str],
    says: str,
) -> None:
    """z3 empties the file that smtlib2_log names."""
    precious = tmp_path / "precious"
    precious.write_text("content")
    value = {name: str(precious) if text == "FILE" else text for name, text in options.items()}

    def order(manifest: Json, files: dict[str, str]) -> None:
        first_part(manifest)["z3"] = value

    assert certified(changed(proof, tmp_path, order), "--solver", "z3", "--file-alone") == 65
    assert says in " ".join(capsys.readouterr().err.split())
    assert precious.read_text() == "content"


@pytest.mark.parametrize("damage", ["a bit of what is compressed", "half a character"])
def test_a_file_that_cannot_be_read_or_told_is_no_proof(
    proof: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    if damage == "half a character":

        def halve(manifest: Json, files: dict[str, str]) -> None:
            cast("list[Json]", manifest["wanted"])[0]["name"] = "\ud800x"

        file = changed(proof, tmp_path, halve)
    else:
        file = tmp_path / "flipped.zip"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("manifest.json", "word " * 1_000)
        content = bytearray(file.read_bytes())
        content[30 + len("manifest.json")] = 7  # a block of a kind that there is not
        file.write_bytes(content)
    assert certified(file, "--solver", "z3", "--file-alone") == 65
    assert "is not a proof" in " ".join(capsys.readouterr().err.split())


def test_a_file_may_name_every_option_that_a_proof_is_made_with() -> None:
    ways: list[Mapping[str, object]] = [*strategy.WAYS, strategy.PLAIN, *(way for _, way in solver.WAYS)]
    assert {name for way in ways for name in way} == set(OPTIONS)
    assert all(isinstance(value, OPTIONS[name][0]) for way in ways for name, value in way.items())


def test_a_contradiction_in_what_is_given_is_noticed_without_the_model(
    proof: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert certified(changed(proof, tmp_path, contradict), "--solver", "z3", "--file-alone") == 65
    assert "contradicts itself" in " ".join(capsys.readouterr().out.split())


def test_a_query_that_a_state_satisfies_is_noticed(
    proof: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert certified(changed(proof, tmp_path, drop_an_assertion)) == 22
    said = capsys.readouterr().out
    assert len(re.findall(r"DISAGREES; agreed on \d+ of \d+, unknown 0, disagrees on 1", said)) == 2
    assert "a state satisfies it" in said


def test_a_changed_query_is_noticed(proof: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert certified(changed(proof, tmp_path, prove_nothing, rehash=False)) == 65
    assert "its hash is not that of the manifest" in " ".join(capsys.readouterr().out.split())


def test_what_is_no_proof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, other = tmp_path / "text.zip", tmp_path / "other.zip"
    text.write_text("no zip", encoding="utf-8")
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("manifest.json", '{"schema": "insync/proof/1"}')
    for path, says in (
        (text, "is no zip file"),
        (other, "is not as it should be"),
        (tmp_path / "none.zip", "no such file"),
    ):
        assert certified(path, "--solver", "z3") == 65
        assert says in capsys.readouterr().err


def test_without_cvc5_it_says_how_to_get_it(
    proof: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def found(name: str) -> str | None:
        return None if name == "cvc5" else name

    monkeypatch.setattr(opinions, "find_spec", found)
    assert certified(proof) == 64
    assert "cvc5 is not installed; pip install cvc5 (or give --solver z3)" in capsys.readouterr().err


def test_certify_needs_nothing_of_what_it_checks() -> None:
    for module in ("certify", "opinions", "smt_words"):
        source = (Path(opinions.__file__).parent / f"{module}.py").read_text(encoding="utf-8")
        ours = re.findall(r"^\s*(?:from|import) (isr_\S+)", source, re.MULTILINE)
        assert set(ours) <= {"isr_check.certify", "isr_check.smt_words"}


def test_no_answer_in_time_is_no_agreement() -> None:
    hard = "(set-logic ALL)\n(declare-fun x () Int)\n(declare-fun y () Int)\n(declare-fun z () Int)\n"
    hard += "(assert (and (< 2 x) (< 2 y) (< 2 z)))\n"
    hard += "(assert (= (+ (* x x x x x) (* y y y y y)) (* z z z z z)))\n(check-sat)\n"
    for name in opinions.SOLVERS:
        (opinion,) = opinions.opinions([StoredQuery("hard", hard, ())], name, 0.3, 1)
        assert opinion.answer == "unknown"
