"""Cores: a proof that begins with what an earlier one has learnt, and stays a proof whatever it is told.

Without these, a line that is stale, wrong or malicious in the file of cores could make `insync prove` say PROVED.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import pytest
from tests.isr_check.smt.test_smt import CONJUNCTS, prepared_stays
from tests.support.models import two_phase_commit as tpc

from isr_check.smt import Induction, Obligation, Proved, prove
from isr_check.smt.cores import GUARDS, MOST_CORES, BadCores, Core, Cores
from isr_check.smt.induction import Query
from isr_check.smt.learning import Learning
from isr_check.smt.obligations import Failure, Unknown
from isr_check.smt.solver import Answer, Proof
from isr_check.smt.strategy import Strategy
from isr_check.smt.terms.logic import Term, conjuncts, z3
from isr_lang import Instance, Property
from isr_model import KIP_966
from isr_protocol.proof.questions import CORES, FIXED_CONSTANTS, OPEN, invariant

pytestmark = pytest.mark.solver

SECONDS = 5.0
WRONG = (
    Core(()),
    Core((("no-such-conjunct", (0,)),)),
    Core(((GUARDS, (99,)),)),
    Core((("typed", (0,)),), way=1),
    Core((), some=(("no-such-conjunct",), 0)),
    Core((), some=(("prepared-is-prepared'",), 7)),
)


@pytest.mark.parametrize(
    "core",
    [
        Core(()),
        Core((("a-lemma", (0, 12)), ("a-lemma'", (3,)), (GUARDS, (1,)))),
        Core(((GUARDS, (0,)),), some=(("one", "other'"), 5), sizes=True, view=True, way=1),
    ],
)
def test_a_core_is_read_as_it_was_written(core: Core) -> None:
    assert Core.read(core.text()) == core


def test_the_cores_learnt_last_come_first_and_few_are_kept(tmp_path: Path) -> None:
    cores = Cores()
    for place in range(5):
        cores.learn([("a question", part, Core(((GUARDS, (place,)),))) for part in (0, 2)])
    cores.write(tmp_path / "cores.json")
    read = Cores.read(tmp_path / "cores.json")
    assert [c.uses[0][1] for c in read.of("a question", 2)] == [(4,), (3,), (2,), (1,)][:MOST_CORES]
    assert read.missing("a question", 3) == 1
    assert read.missing("another", 3) == 3


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema": "else"}', '{"schema": "insync/cores/1", "cores": {"q": [["a lemma", [0]]]}}'],
)
def test_what_is_no_file_of_cores_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "cores.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadCores, match=r"cores\.json"):
        Cores.read(tmp_path / "cores.json")


# Proofs.


def of_managers(conjuncts: Sequence[Property] = CONJUNCTS) -> tuple[Induction, list[Obligation]]:
    """Two-phase commit with any number of resource managers."""
    asked = Induction(tpc.DESIGN, {"rms": None}, conjuncts)
    return asked, [o for o in asked.obligations([tpc.consistent]) if o.queries]


def each(some: list[Obligation]) -> Iterator[tuple[Obligation, Query]]:
    return ((o, q) for o in some for q in o.queries)


def learnt(asked: Induction, some: list[Obligation]) -> Cores:
    cores = Cores()
    learning = Learning(Strategy(asked, {}))
    for o, q in each(some):
        answer = learning(o, q, SECONDS, False)
        assert answer.status == "unsat", o.name
        cores.learn(answer.learnt)
    return cores


def gives_up(*_: object) -> Answer:
    return Answer("unknown", 0.0, reason="only cores are tried")


def test_a_proof_begins_with_what_the_last_one_has_learnt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked, some = of_managers()
    learnt(asked, some).write(tmp_path / "cores.json")
    monkeypatch.setattr(Strategy, "_goal", gives_up)
    again = Strategy(asked, {}, cores=Cores.read(tmp_path / "cores.json"))
    for o, q in each(some):
        answer = again.decide(o, q, SECONDS)
        assert answer.status == "unsat", o.name
        assert all(p.core is not None for p in answer.proofs)
        assert not Learning(again)(o, q, SECONDS, False).learnt
    assert {again.count_unlearnt(o)[0] for o in some} == {0}


def proved_without_guards(asked: Induction, some: list[Obligation], cores: Cores) -> list[bool]:
    """Of each part whose core takes guards, whether the core still proves it when it has lost them."""
    found: list[bool] = []
    for o, q in each(some):
        for number, goal in enumerate(conjuncts(q.goal)):
            alone = Strategy(asked, {}, cores=Cores())
            for core in cores.of(alone.question(o, q), number):
                kept = tuple((name, places) for name, places in core.uses if name != GUARDS)
                alone.cores.learn([(alone.question(o, q), 0, attrs.evolve(core, uses=kept))])
                if kept != core.uses:
                    found.append(alone.decide(o, attrs.evolve(q, goal=goal), SECONDS).status == "unsat")
    return found


def core_as_it_is(_: Strategy, core: Core, __: Obligation, ___: Query) -> Core:
    return core


def test_a_core_whose_guards_have_moved_is_tried_with_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, some = of_managers()
    cores = learnt(asked, some)
    monkeypatch.setattr(Strategy, "_goal", gives_up)
    found = proved_without_guards(asked, some, cores)
    assert found
    assert all(found)
    monkeypatch.setattr(Strategy, "_with_all_guards", core_as_it_is)
    assert not any(proved_without_guards(asked, some, cores))


def as_it_is(proof: Proof) -> tuple[Proof, bool]:
    return proof, True


def all_of_it(_: Learning, __: Obligation, ___: Query, core: Core, ____: float) -> Core:
    return core


def test_a_conjunct_after_the_step_is_learnt_under_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, some = of_managers()
    later = f"{CONJUNCTS[0].name}'"
    learning = Learning(Strategy(asked, {CONJUNCTS[1].name: {"*": (later,)}}))
    monkeypatch.setattr("isr_check.smt.learning.smaller", as_it_is)
    monkeypatch.setattr(Learning, "fewer", all_of_it)
    found = [
        core
        for o, q in each(some)
        if o.conjunct == CONJUNCTS[1].name and o.kind == "preserved"
        for _, _, core in learning(o, q, SECONDS, False).learnt
    ]
    assert found
    assert any(name == later for core in found for name, _ in core.uses)


def with_wrong_ones(asked: Induction, some: list[Obligation]) -> Strategy:
    """A strategy that begins each of the first parts with wrong cores."""
    strategy = Strategy(asked, {}, cores=Cores())
    for o, q in each(some):
        for number, wrong in enumerate(WRONG):
            strategy.cores.learn([(strategy.question(o, q), number // MOST_CORES, wrong)])
    return strategy


def test_a_wrong_core_costs_a_question_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, some = of_managers()
    strategy = with_wrong_ones(asked, some)
    assert [o.name for o, q in each(some) if strategy.decide(o, q, SECONDS).status != "unsat"] == []
    monkeypatch.setattr(Strategy, "_goal", gives_up)
    alone = with_wrong_ones(asked, some)
    assert [o.name for o, q in each(some) if alone.decide(o, q, SECONDS).status != "unsat"] != []


def test_who_names_an_element_is_told_of_a_core_that_had_to_be_widened_too(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, some = of_managers()
    strategy, (o, q) = Strategy(asked, {}), next(each(some))
    core = Core((), some=(("a-conjunct",), 0))
    strategy.cores.learn([(strategy.question(o, q), part, core) for part in range(9)])

    def named(*given: object) -> list[tuple[str, Term]] | None:
        return [("nothing is so", z3.BoolVal(False))] if given[-1] is True else None

    monkeypatch.setattr(Strategy, "core_assertions", named)
    assert {p.named_by for p in strategy.decide(o, q, SECONDS).proofs} == {("a-conjunct",)}


def a_false_one() -> tuple[Strategy, Obligation, str]:
    """An obligation that fails, as a conjunct that it takes is missing, and its own conjunct."""
    asked, some = of_managers([*(c for c in CONJUNCTS if c is not prepared_stays), tpc.consistent])
    strategy = Strategy(asked, {})
    failing = [o for o, q in each(some) if strategy.decide(o, q, 1.0).status != "unsat" and o.kind == "preserved"]
    return strategy, failing[0], failing[0].conjunct


def everything(strategy: Strategy, obligation: Obligation, query: Query, *names: str) -> Core:
    """A core of all that there is under these names."""
    found = ((n, tuple(range(len(strategy.formulas(obligation, query, n))))) for n in names)
    return Core(tuple(found), sizes=True, view=True)


def test_no_core_proves_what_is_false() -> None:
    strategy, false, conjunct = a_false_one()
    query = false.queries[0]
    core = everything(strategy, false, query, "typed", conjunct, GUARDS)
    assert strategy.core_assertions(false, query, core) is not None
    strategy.cores.learn([(strategy.question(false, query), part, core) for part in range(9)])
    assert Strategy(strategy.induction, {}, cores=strategy.cores).decide(false, query, 1.0).status != "unsat"


def proves_in_a_circle() -> bool:
    """Whether a core may assume after the step what is to be proved of it."""
    strategy, false, conjunct = a_false_one()
    query = false.queries[0]
    circular = Core(((f"{conjunct}'", (0,)),))
    named = Core((), some=((f"{conjunct}'",), 0))
    assert strategy.core_assertions(false, query, named) is None
    strategy.cores.learn([(strategy.question(false, query), part, circular) for part in range(9)])
    return Strategy(strategy.induction, {}, cores=strategy.cores).decide(false, query, 1.0).status == "unsat"


def test_no_core_makes_the_argument_circular(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not proves_in_a_circle()
    later = Strategy._later  # pyright: ignore[reportPrivateUsage]

    def in_any_order(self: Strategy, name: str, obligation: Obligation, query: Query) -> object:
        return later(self, name, attrs.evolve(obligation, conjunct="a-promise"), query)

    monkeypatch.setattr(Strategy, "_later", in_any_order)
    assert proves_in_a_circle()


@pytest.mark.processes
def test_what_takes_longest_is_begun_first() -> None:
    asked, some = of_managers()
    order: list[str] = []
    efforts = {o.name: (k % 5, k) for k, o in enumerate(some)}
    decided = prove(
        asked,
        some,
        SECONDS,
        1,
        lambda o, _: order.append(o.name),
        first=Strategy(asked, {}).decide,
        effort=lambda o: efforts[o.name],
    )
    assert order == sorted(order, key=lambda name: efforts[name], reverse=True)
    assert [o.name for o, _ in decided] == [o.name for o in some]
    assert all(isinstance(r, Proved) for _, r in decided)


@pytest.mark.slow
def test_what_is_stored_still_proves_todays_design_for_any_number(monkeypatch: pytest.MonkeyPatch) -> None:
    constants = Instance(KIP_966, FIXED_CONSTANTS).constants | dict.fromkeys(["replicas", *OPEN])
    asked = Induction(KIP_966, constants, [KIP_966.restated_property(c.promise) for c in invariant(KIP_966)])
    monkeypatch.setattr(Strategy, "_goal", gives_up)
    strategy = Strategy(asked, {}, cores=Cores.read(CORES))
    some = [o for o in asked.obligations((), (), ["leader_appends"]) if o.queries]
    assert [o.name for o, q in each(some) if strategy.decide(o, q, SECONDS).status != "unsat"] == []
    assert len(some) > 15


@pytest.mark.processes
def test_a_mistake_in_a_process_is_no_answer_of_the_solver() -> None:
    asked, some = of_managers()

    def mistaken(*_: object) -> Answer:
        raise LookupError("a witness is gone")

    with pytest.raises(Failure, match="a witness is gone"):
        prove(asked, some, SECONDS, 1, first=mistaken)


@pytest.mark.processes
def test_what_is_too_large_for_the_solver_is_unknown() -> None:
    asked, some = of_managers()

    def large(*_: object) -> Answer:
        raise z3.Z3Exception("out of memory")

    decided = prove(asked, some[:2], SECONDS, 1, first=large)
    assert [r.reason for _, r in decided if isinstance(r, Unknown)] == ["z3: out of memory"] * 2
