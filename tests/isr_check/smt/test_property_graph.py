"""Which property implies which: decided by the solver, reduced, and drawn."""

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest
from tests.support.models import two_phase_commit as tpc

from insync_cli.exits import Exit
from insync_cli.main import main
from isr_check.smt import property_drawing as drawing
from isr_check.smt import property_graph as proofs
from isr_check.smt.obligations import Unknown
from isr_check.smt.property_drawing import NotDrawn, dot, draw
from isr_check.smt.property_graph import Edge, PropertyGraph, property_graph, reduced
from isr_lang import Bool, Design, Number, Property, Step, Struct, action, always, bound, forall, initial, var


@always
def commits_when_told(s: tpc.State) -> Bool:
    """Nobody commits alone."""
    return forall((s.rm[r] == tpc.Managed.COMMITTED).implies(s.commit_sent) for r in tpc.RM.all())


@always
def told_once(s: tpc.State) -> Bool:
    """Nobody is told "both"."""
    return ~(s.commit_sent & s.abort_sent)


@always
def aborts_before_commit(s: tpc.State) -> Bool:
    """Once 'commit' was sent, nobody aborts."""
    return forall(s.commit_sent.implies(s.rm[r] != tpc.Managed.ABORTED) for r in tpc.RM.all())


@always
def nobody_commits(s: tpc.State) -> Bool:
    """Stronger than two others."""
    return forall(s.rm[r] != tpc.Managed.COMMITTED for r in tpc.RM.all())


@always
def nothing_happens(s: tpc.State) -> Bool:
    """Stronger still."""
    return forall(s.rm[r] == tpc.Managed.WORKING for r in tpc.RM.all()) & ~s.commit_sent


@always
def commits_only_when_told(s: tpc.State) -> Bool:
    """The first in other words."""
    return forall(s.commit_sent | (s.rm[r] != tpc.Managed.COMMITTED) for r in tpc.RM.all())


@always
def small_enough(s: tpc.State) -> Bool:
    """What types say already."""
    return s.tm_prepared <= tpc.RM.all()


def graph(*conjuncts: Property, rms: int = 3) -> PropertyGraph:
    return property_graph(tpc.DESIGN, {"rms": rms}, conjuncts, [tpc.consistent])


def test_a_promise_follows_from_what_it_takes_and_no_less() -> None:
    found = graph(commits_when_told, told_once, aborts_before_commit)
    assert found.together == (Edge(("commits-when-told", "aborts-before-commit"), "consistent"),)
    assert found.alone == ()
    assert set(found.independent) == set(found.conjuncts)


def test_an_edge_that_does_not_hold_is_refused() -> None:
    found = graph(commits_when_told, told_once)
    assert found.edges() == []
    assert "consistent" in found.independent
    assert "->" not in dot(found)


def test_edges_are_reduced_and_equals_are_one_node() -> None:
    found = graph(commits_when_told, nobody_commits, nothing_happens, commits_only_when_told)
    assert set(found.alone) == {
        Edge(("nothing-happens",), "nobody-commits"),
        Edge(("nobody-commits",), "commits-when-told"),
        Edge(("nobody-commits",), "consistent"),
    }
    assert found.alike == {"commits-when-told": ("commits-when-told", "commits-only-when-told")}
    assert dot(found).count("commits-only-when-told") == 1


def test_what_the_types_say_implies_nothing_and_follows_from_nothing() -> None:
    found = graph(commits_when_told, small_enough)
    assert found.trivial == ("small-enough",)
    assert found.edges() == []


TOP = bound("top", "How far it goes.", default=3, low=1, high=20)


class Level(Number, high=TOP):
    """A number that grows."""


class Gauge(Struct):
    level: Level = var("Where it is.")


@initial
def empty(new: Gauge) -> Step:
    return (new.level == 0,)


@action
def rises(old: Gauge, new: Gauge) -> Step:
    return (old.level < TOP, new.level == old.level + 1)


def at_most(n: int) -> Property:
    def condition(s: Gauge) -> Bool:
        return s.level <= n

    condition.__name__ = f"at_most_{n}"
    return always(condition)


GAUGE = Design("gauge", "A number.", Gauge, empty, (rises,), ())


def test_what_holds_only_where_bounds_are_small_is_refused() -> None:
    asked = [at_most(2), at_most(3), at_most(5)]
    small = property_graph(GAUGE, {"top": 3}, asked)
    assert small.trivial == ("at-most-3", "at-most-5")
    found = property_graph(GAUGE, {"top": None}, asked)
    assert found.trivial == ()
    assert found.undecided_edges == ()
    assert found.alone == (Edge(("at-most-2",), "at-most-3"), Edge(("at-most-3",), "at-most-5"))


def test_what_is_undecided_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_answer(*_: object, **__: object) -> Unknown:
        return Unknown("no time", 0.0)

    monkeypatch.setattr(proofs, "decide", no_answer)
    found = property_graph(GAUGE, {"top": None}, [at_most(2), at_most(4)])
    assert found.edges() == []
    assert Edge(("at-most-2",), "at-most-4") in found.undecided_edges


def test_transitive_reduction() -> None:
    names = ["a", "b", "c", "d"]
    every = {(x, y) for x, y in permutations(names, 2) if x < y}
    assert reduced(names, every) == [("a", "b"), ("b", "c"), ("c", "d")]


@pytest.mark.processes
def test_graphviz_draws_it(tmp_path: Path, needs_package: Callable[[str], None]) -> None:
    needs_package("graphviz")
    drawn = draw(graph(commits_when_told, aborts_before_commit), tmp_path / "g.svg")
    assert "<svg" in drawn.read_text(encoding="utf-8")


@pytest.mark.processes
def test_where_it_is_not_drawn_it_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = graph(commits_when_told, aborts_before_commit)
    assert draw(found, tmp_path / "g.dot").read_text(encoding="utf-8") == dot(found)
    assert '"and0" -> "consistent" [style=dashed];' in dot(found)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotDrawn, match=r"h\.dot is written, but not drawn: there is no program dot"):
        draw(found, tmp_path / "h.svg")
    assert (tmp_path / "h.dot").read_text(encoding="utf-8") == dot(found)
    with pytest.raises(NotDrawn, match=r"ends in \.svg"):
        draw(found, tmp_path / "h.txt")


def test_without_the_package_the_description_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(drawing, "import_module", missing)
    with pytest.raises(NotDrawn, match="graphviz from PyPI is not installed"):
        draw(graph(commits_when_told), tmp_path / "g.svg")
    assert (tmp_path / "g.dot").exists()


def test_a_picture_has_one_of_four_endings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "kip-966", "--graph", "g.txt"]) == Exit.USAGE
    assert "a file that ends in .svg, .pdf, .png, .dot, not 'g.txt'" in capsys.readouterr().err
