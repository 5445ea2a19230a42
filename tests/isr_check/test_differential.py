"""Random designs: our engines say what the graph as written says, and what TLC says of its export.

All our engines share `Instance`, and none sees what folding does wrong. Without this file it would go unnoticed, with
all that hides states: symmetry, reduction, memory that is short.

    INSYNC_SEED=7 make slow ARGS="-k differential"

asks about other designs.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.support import differential
from tests.support.differential import SEED, question
from tests.support.random_designs import Writer, random_design
from tests.support.sample import sample
from tests.support.shrinking import smaller
from tests.support.strategies import trace
from tests.support.tlc_answers import tlc_answers

from isr_lang import OPERATORS, ModelError, walk

pytestmark = pytest.mark.explores

GROUPS, SIZE = 30, 10


def numbers(group: int) -> range:
    return range(group * SIZE, group * SIZE + SIZE)


def name(group: int) -> str:
    return f"seed-{SEED}-designs-{group * SIZE}-to-{group * SIZE + SIZE - 1}"


@pytest.mark.parametrize("group", sample(range(GROUPS), 15), ids=[name(g) for g in range(GROUPS)])
def test_every_way_to_explore_says_what_the_design_says(group: int) -> None:
    compared = 0
    for number in numbers(group):
        subject = question(SEED, number)
        if subject is not None:
            compared += 1
            found = differential.problems(subject)
            if found:
                pytest.fail(f"design {number} of seed {SEED}:{differential.report(subject, found)}", pytrace=False)
    assert compared >= SIZE / 3


@pytest.mark.tlc
@pytest.mark.parametrize("group", sample(range(GROUPS), GROUPS), ids=[name(g) for g in range(GROUPS)])
def test_tlc_says_of_the_export_what_the_design_says(group: int) -> None:
    for number in numbers(group):
        subject = question(SEED, number)
        if subject is not None:
            with TemporaryDirectory() as folder:
                assert tlc_answers(subject.world, Path(folder)) == subject.answers, f"design {number}{subject.model!r}"


# What the designs are like: otherwise the tests above would say little.


def test_every_operator_is_in_the_designs() -> None:
    used = set[str]()
    for number in range(100):
        try:
            design = random_design("0", number).design
        except ModelError:
            continue
        used |= {n.op for root in (*design.roots(), *(d.body for d in design.definitions())) for n in walk(root)}
    assert used == set(OPERATORS)


def test_every_kind_of_design_is_there() -> None:
    writers = [Writer(f"0 {n}") for n in range(100)]
    sources = [w.write() for w in writers]
    counts = {
        "values out of range": sum(w.is_wild for w in writers),
        "variables that may be off": sum("when=" in s.split("@")[0] for s in sources),
        "requests": sum(w.has_requests for w in writers),
        "phases": sum(w.has_phases for w in writers),
        "a future": sum("leads_to(" in s for s in sources),
        "strong fairness": sum("strong=(act" in s for s in sources),
        "a quantifier in another": sum(any(line.count(" for ") > 1 for line in s.splitlines()) for s in sources),
        "a question whether an action is possible": sum("enabled(" in s for s in sources),
    }
    assert {kind: n for kind, n in counts.items() if n < 10} == {}
    assert all("symmetric=True" in s for s in sources)


def test_the_designs_are_large_enough_and_much_is_decided_late() -> None:
    there = [q.answers for n in range(100) if (q := question("0", n)) is not None]
    assert len(there) > 60
    sizes = [a.states for a in there if a.states is not None]
    assert sum(size >= 100 for size in sizes) > 12
    assert sum(a.type_ok is not None for a in there) > 4
    lengths = [length for a in there for length in a.lengths.values()]
    assert sum(length >= 2 for length in lengths) > 20
    assert sum(bool(a.failing_futures) for a in there) > 2


def test_a_failing_design_is_made_smaller() -> None:
    """Here every design fails that has the action `takes`."""
    number = next(n for n in range(100) if Writer(f"0 {n}").has_requests)
    source = random_design("0", number).source

    def fails(candidate: str) -> bool:
        try:
            return any(a.name == "takes" and a.updates for a in trace(candidate).actions)
        except Exception:  # no design
            return False

    cut = smaller(source, fails)
    assert fails(cut)
    assert [a.name for a in trace(cut).actions] == ["takes"]
    assert trace(cut).properties == ()
    assert len(cut) < len(source) / 2


# What was ever found.

REFUSED = {"off_variable_in_a_promise", "off_variable_of_a_parameter"}
"""Those that are no designs any more."""
cases = pytest.mark.parametrize(
    "file", [pytest.param(f, id=f.stem) for f in differential.CASES if f.stem not in REFUSED]
)


@cases
def test_what_was_found_once_stays_mended(file: Path) -> None:
    assert differential.problems(differential.question_of_case(file.stem)) == {}


@pytest.mark.parametrize("stem", sorted(REFUSED))
def test_an_off_variable_that_begins_with_a_parameter_is_refused(stem: str) -> None:
    with pytest.raises(ModelError, match="exists under a setting only"):
        differential.question_of_case(stem)


@pytest.mark.tlc
@cases
def test_tlc_says_what_is_so_in_what_was_found(file: Path, tmp_path: Path) -> None:
    subject = differential.question_of_case(file.stem)
    assert tlc_answers(subject.world, tmp_path) == subject.answers
