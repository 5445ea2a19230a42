"""Slow followers, simulated and by rule; and docs/trade-offs.md says what is computed, and quotes what it answers."""

import re
from math import inf, log
from pathlib import Path

import attrs
import pytest

from isr_report.lagging import LAG_MS, OLD_LAG_MS, Rule, put_out, run, verdicts
from isr_report.latency import World, delay, percentile, simulate, summary
from isr_report.latency import put_out as put_out_at
from isr_report.sections import tradeoffs

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "trade-offs.md"
CALM = World(until_ms=20_000.0, from_ms=inf)


# Latency


def test_a_majority_waits_for_the_faster_follower_and_the_in_sync_set_for_the_slower() -> None:
    found = simulate(CALM)
    assert all(a >= b for a, b in zip(found.in_sync, found.majority, strict=True))
    assert found.put_out_at is None
    slow = simulate(attrs.evolve(CALM, from_ms=5_000.0, late_ms=300.0))
    assert summary(slow)["in-sync set"][0] > 300
    assert summary(slow)["majority"][1] < 30


@pytest.mark.parametrize("lag", [1_000.0, 2_000.0, 4_000.0])
@pytest.mark.parametrize("look", [0.0, 0.2, 0.4])
def test_who_stops_is_waited_for_until_it_has_lagged_and_the_leader_looks(lag: float, look: float) -> None:
    world = World(until_ms=20_000.0, from_ms=5_000.0, lag_ms=lag, look_ms=look * lag)
    found = simulate(world)
    assert found.put_out_at is not None
    assert lag < found.put_out_at - world.from_ms <= 1.5 * lag + world.every_ms
    after = [wait for n, wait in enumerate(found.in_sync) if n * world.every_ms > found.put_out_at]
    assert max(after) < 50
    assert max(found.in_sync) == pytest.approx(found.put_out_at - world.from_ms, abs=5)
    assert max(found.majority) < 50


def test_who_is_late_and_never_too_late_is_waited_for_by_every_write() -> None:
    world = World(until_ms=20_000.0, from_ms=5_000.0, late_ms=900.0, lag_ms=1_000.0)
    found = simulate(world)
    assert found.put_out_at is None
    assert min(found.in_sync[600:]) > 900
    assert simulate(attrs.evolve(world, late_ms=1_100.0)).put_out_at is not None


def test_delays_are_spread_as_an_exponential_distribution_is() -> None:
    delays = [delay(n, follower, 2.0) for n in range(10_000) for follower in range(2)]
    assert sum(delays) / len(delays) == pytest.approx(2.0, rel=0.01)
    assert percentile(delays, 50) == pytest.approx(2.0 * log(2), rel=0.01)
    assert simulate(CALM) == simulate(CALM)
    assert put_out_at([], CALM) is None
    assert [percentile([3, 1, 2], p) for p in (1, 50, 99)] == [1, 2, 3]


# What lagging means


def test_each_rule_errs_where_the_others_do_not() -> None:
    found = list(verdicts().values())
    burst, slow, stopped = ({rule: by[rule] is not None for rule in Rule} for by in found)
    assert burst == {Rule.MESSAGES: True, Rule.LAST_FETCH: False, Rule.CAUGHT_UP: False}
    assert slow == {Rule.MESSAGES: False, Rule.LAST_FETCH: False, Rule.CAUGHT_UP: True}
    assert all(stopped.values())
    assert all(by[Rule.CAUGHT_UP] is None for by in list(verdicts(LAG_MS * 10).values()))


def test_who_has_everything_never_lags_by_todays_rule_however_silent_it_is() -> None:
    moments = run(60, a_second=0, fetches={})
    assert put_out(moments, Rule.CAUGHT_UP, lag_ms=OLD_LAG_MS) is None
    assert put_out(moments, Rule.LAST_FETCH, lag_ms=OLD_LAG_MS) == OLD_LAG_MS + 1_000


# The page


def rows(text: str) -> set[tuple[str, ...]]:
    """The rows of all tables of a page, their cells without markup."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return {tuple(cell.strip().strip("`*") for cell in line.strip("|").split("|")) for line in lines}


def computed(html: str) -> list[tuple[str, ...]]:
    found = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)]
    return [tuple(cells) for cells in found if cells]


@pytest.mark.processes  # matplotlib asks fc-list which fonts there are, once on each machine
@pytest.mark.parametrize("section", [tradeoffs.waits, tradeoffs.lagging, tradeoffs.chances])
def test_every_figure_of_the_page_is_what_is_computed(section: object) -> None:
    there = rows(PAGE.read_text(encoding="utf-8"))
    missing = [row for row in computed(section()) if row not in there]  # type: ignore[operator]
    assert not missing


def test_each_section_quotes_what_it_answers_and_names_command_scene_or_test() -> None:
    text = PAGE.read_text(encoding="utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    numbered = [s for s in sections if re.match(r"\d\. ", s)]
    assert [s[0] for s in numbered] == list("123456")
    for s in numbered:
        assert re.search(r"^> ", s, re.MULTILINE), s.splitlines()[0]
        assert "insync " in s
        named = re.findall(r"`(tests/[\w/]+\.py)`", s)
        assert named, s.splitlines()[0]
        assert all((DOCS.parent / name).is_file() for name in named)
