"""Exported models mean what the models mean: other people's checkers find the same states and verdicts.

Without these, TLC and rumur would be asked about another model than ours, and their agreement would confirm nothing.
"""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from tests.support import checkers, strategies
from tests.support.models import copied_log, copies, every_operator, ticket_desk, two_phase_commit

from isr_check.engine import CHECKED_KINDS, Exploration, Limits, Verdict
from isr_check.explorer import explore
from isr_check.export import cfg, murphi, tla, write_tla
from isr_check.export.murphi_operators import MURPHI
from isr_check.export.tla_module import Module
from isr_check.export.tla_operators import TLA
from isr_lang import OPERATORS, Design, Instance, Value, walk

Constants = dict[str, Value]

CASES: dict[str, tuple[Design, Constants]] = {
    "two-phase-commit-3": (two_phase_commit.DESIGN, {"rms": 3}),
    "clean-2": (copied_log.CLEAN, {"replicas": 2, "records": 2}),
    "unclean-2": (copied_log.UNCLEAN, {"replicas": 2, "records": 2}),
    "unclean-3": (copied_log.UNCLEAN, {"replicas": 3, "records": 1}),
    "every-operator": (every_operator.EVERYTHING, {"nodes": 2, "depth": 1}),
    "every-operator-off": (every_operator.EVERYTHING, {"nodes": 2, "depth": 1, "extra": False}),
    "every-operator-deep": (every_operator.EVERYTHING, {"nodes": 1, "depth": 3, "policy": "early"}),
    "copies": (copies.DESIGN, {"nodes": 2, "length": 1, "terms": 2}),
    "copies-empty": (copies.DESIGN, {"nodes": 2, "length": 0, "terms": 2}),
    "copies-gossip": (copies.DESIGN, {"nodes": 2, "length": 1, "terms": 1, "gossip": True}),
    "desk": (ticket_desk.CAREFUL, {}),
    "desk-hasty": (ticket_desk.HASTY, {}),
}
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much]

cases = pytest.mark.parametrize(("design", "constants"), CASES.values(), ids=CASES)
ASKED_ALWAYS = {"two-phase-commit-3", "unclean-2", "every-operator", "copies-gossip", "desk-hasty"}
cases_for_rumur = pytest.mark.parametrize(
    ("design", "constants"),
    [pytest.param(*c, id=name, marks=() if name in ASKED_ALWAYS else pytest.mark.slow) for name, c in CASES.items()],
)


def found(design: Design, constants: Constants) -> tuple[Instance, Exploration]:
    instance = Instance(design, constants)
    return instance, explore(instance)


@pytest.mark.parametrize("table", [TLA, MURPHI], ids=["tla", "murphi"])
def test_an_exporter_knows_every_operator_and_no_other(table: dict[str, object]) -> None:
    assert set(table) == set(OPERATORS)


def test_the_models_compared_use_every_operator() -> None:
    design = every_operator.EVERYTHING
    bodies = [d.body for d in design.definitions()]
    assert {n.op for root in (*design.roots(), *bodies) for n in walk(root)} == set(OPERATORS)


def test_initial_states_that_are_alike_are_counted_as_often_as_tlc_made_them() -> None:
    said = """\
Finished computing initial states: 3 states generated, with 1 of them distinct at 2026-11-22 21:44:14.
50 states generated, 4 distinct states found, 0 states left on queue.
The depth of the complete state graph search is 2."""
    read = checkers.read_tlc(said)
    assert (read.initial, read.generated, read.distinct, read.depth, read.complete) == (3, 50, 4, 2, True)


@pytest.mark.tlc
@cases
def test_tlc_finds_our_states(design: Design, constants: Constants, tmp_path: Path) -> None:
    _, ours = found(design, constants)
    theirs = checkers.tlc(design, constants, tmp_path)
    assert (theirs.complete, theirs.distinct, theirs.depth) == (True, ours.distinct, ours.depth + 1)
    assert theirs.generated - theirs.initial == ours.generated


@pytest.mark.tlc
@pytest.mark.parametrize("case", ["every-operator", "every-operator-off", "unclean-2", "copies", "desk-hasty"])
def test_tlc_gives_our_verdicts(case: str, tmp_path: Path) -> None:
    design, constants = CASES[case]
    instance, ours = found(design, constants)
    names = Module(design).properties
    theirs = {
        p.name: checkers.tlc(design, constants, tmp_path, names[p.name]).violated
        for p in instance.properties
        if p.kind in CHECKED_KINDS
    }
    # TLC violates Never... where we have a witness.
    witnessed = {f.name: Verdict.HOLDS if f.kind.startswith("sometimes") else Verdict.VIOLATED for f in ours.findings}
    violated = {f.name: names[f.name] for f in ours.findings if f.verdict == witnessed[f.name] and f.name in names}
    assert theirs == {name: violated.get(name) for name in theirs}


@pytest.mark.tlc
def test_tlc_checks_what_happens_eventually(tmp_path: Path) -> None:
    report = checkers.tlc(every_operator.EVERYTHING, {"nodes": 2, "depth": 1}, tmp_path, "TokenReturns")
    assert report.complete


@pytest.mark.tlc
def test_tlc_counts_orbits_with_the_symmetry_set(tmp_path: Path) -> None:
    design, constants = two_phase_commit.DESIGN, {"rms": 3}
    module = write_tla(design, constants, tmp_path)[0]
    configuration = tmp_path / "Symmetric.cfg"
    configuration.write_text(cfg(design, constants, symmetry=True), encoding="utf-8")
    assert checkers.run_tlc(module, configuration).distinct < two_phase_commit.PUBLISHED[3]


@pytest.mark.rumur
@cases_for_rumur
def test_rumur_finds_our_states_and_rules_fired(
    design: Design, constants: Constants, tmp_path: Path, needs_package: Callable[[str], None]
) -> None:
    needs_package("rumur")
    instance, ours = found(design, constants)
    theirs = checkers.rumur(instance, tmp_path, ())
    assert (theirs.distinct, theirs.fired) == (ours.distinct, ours.generated)


@pytest.mark.rumur
@cases_for_rumur
def test_rumur_gives_our_verdicts(
    design: Design, constants: Constants, tmp_path: Path, needs_package: Callable[[str], None]
) -> None:
    needs_package("rumur")
    instance, ours = found(design, constants)
    broken = [f.name for f in ours.findings if f.verdict == Verdict.VIOLATED]
    for name in broken:
        if ours.finding(name).kind == "always":
            assert checkers.rumur(instance, tmp_path, (name,)).failed == name
    kept = tuple(p.name for p in instance.properties if p.name not in broken)
    theirs = checkers.rumur(instance, tmp_path, kept)
    assert theirs.failed is None
    witnessed = {f.name: f.verdict == Verdict.HOLDS for f in ours.findings if f.kind == "sometimes"}
    assert {name: n > 0 for name, n in theirs.covered.items()} == witnessed


def test_a_module_is_written_with_a_configuration_per_property(tmp_path: Path) -> None:
    files = write_tla(copied_log.CLEAN, {"records": 2}, tmp_path / "new")
    assert [f.name for f in files] == [
        "Clean.tla",
        "Clean.cfg",
        "Clean_TypeOK.cfg",
        "Clean_AckedSurvives.cfg",
        "Clean_LogsOnlyGrow.cfg",
        "Clean_NeverAllHoldEverything.cfg",
    ]
    assert "Records = 2" in files[1].read_text(encoding="utf-8")


def test_every_definition_and_docstring_is_in_the_module() -> None:
    design = copied_log.CLEAN
    module = " ".join(line.removeprefix("\\* ") for line in tla(design).splitlines())
    docs = [d.doc for d in design.definitions()] + [a.doc for a in design.actions]
    for doc in (*docs, *(p.doc for p in design.properties)):
        assert " ".join(doc.split()) in module


def test_an_expectation_to_fail_is_not_among_the_invariants_checked_at_once(tmp_path: Path) -> None:
    design = attrs.evolve(copied_log.UNCLEAN, expected={"acked-survives": "no fencing"})
    assert "AckedSurvives" not in write_tla(design, {}, tmp_path)[1].read_text(encoding="utf-8")


def test_murphi_leaves_out_steps_with_a_word() -> None:
    text = murphi(Instance(copied_log.CLEAN))
    assert "-- logs-only-grow: not checked here, it is about more than one state" in text


@pytest.mark.rumur
@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=SLOW, phases=[Phase.generate])
@given(model=strategies.models())
def test_rumur_agrees_on_random_models(model: strategies.Model, needs_package: Callable[[str], None]) -> None:
    needs_package("rumur")
    instance = model.instance()
    ours = explore(instance, limits=Limits(max_states=3000))
    assume(ours.complete)
    with TemporaryDirectory() as folder:
        theirs = checkers.rumur(instance, Path(folder), ())
    assert (theirs.distinct, theirs.fired) == (ours.distinct, ours.generated)


@pytest.mark.tlc
@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=SLOW, phases=[Phase.generate])
@given(model=strategies.models())
def test_tlc_agrees_on_random_models(model: strategies.Model) -> None:
    ours = explore(model.instance(), limits=Limits(max_states=3000))
    assume(ours.complete)
    with TemporaryDirectory() as folder:
        theirs = checkers.tlc(model.design, model.constants, Path(folder))
    assert (theirs.complete, theirs.distinct) == (True, ours.distinct)
