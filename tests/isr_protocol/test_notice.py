"""Which bounds notice which known mistake: the table is of today's model, and larger bounds notice no less.

Without these, HOLDS could stand where no log has room for two that differ, and nobody would have to look.
"""

import os
from pathlib import Path

import attrs
import pytest
from tests.support.notice_table import instance_at, mistakes_of_page, summary_of_page

from isr_check.engine import TYPE_OK, Limits, Verdict, silent
from isr_check.native import explore
from isr_lang import Design, Instance, Value
from isr_lang.instance import check_constants
from isr_protocol.by_name import DESIGNS
from isr_protocol.planted import notice as planted_notice
from isr_protocol.planted.bugs import PLANTED
from isr_protocol.planted.mistakes import MISTAKES, mistakes_by_name, planted_in
from isr_protocol.planted.notice import SIZES, Row, hashes, notice, noticing_constants, table_text, tables
from isr_protocol.promises.room import following

KIP_966 = DESIGNS["kip-966"]
ROWS = [(table.design, row) for table in tables().values() for row in table.rows]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "bounds.md"
UNSEEN_WITH_ONE = (
    "matched-by-offset",
    "matched-by-end",
    "matched-by-epoch",
    "epoch-ends-later",
)
"""At two replicas these passed as 20 promises that hold, while one record could be written."""
PROMISES = tuple(p.name for p in KIP_966.properties if p.kind in ("always", "step"))


def label(row: tuple[str, Row]) -> str:
    return f"{row[0]}-{row[1].mistake}-{row[1].by[0]}"


def violated(design: Design, constants: dict[str, Value], promise: str) -> bool:
    instance = instance_at(design, constants)
    found = explore(instance, (promise,), Limits(), silent, symmetry=True, reduction=promise != TYPE_OK)
    return found.finding(promise).verdict is Verdict.VIOLATED


def mistaken(design: str, mistake: str) -> Design:
    planted = planted_in(mistakes_by_name()[mistake], DESIGNS[design])
    assert planted is not None
    return planted


@pytest.mark.parametrize("name", tables())
def test_the_table_is_of_the_model_and_of_the_mistakes_as_they_are(name: str) -> None:
    """If not: python -m tests.support.notice_table."""
    assert tables()[name].hashes == hashes(DESIGNS[name])


def test_a_table_is_written_as_it_is_read() -> None:
    from isr_protocol.planted.notice import FILE

    assert table_text(tables().values()) == FILE.read_text(encoding="utf-8")


def test_the_page_has_the_mistakes_and_what_bounds_notice() -> None:
    """INSYNC_REWRITE=1 writes them."""
    text = PAGE.read_text(encoding="utf-8")
    tables_by_head = {made.splitlines()[0]: made for made in (mistakes_of_page(), summary_of_page())}
    parts = [tables_by_head.get(part.splitlines()[0], part) for part in text.split("\n\n")]
    assert set(tables_by_head.values()) <= set(parts)
    if os.environ.get("INSYNC_REWRITE", "") not in ("", "0"):
        PAGE.write_text("\n\n".join(parts), encoding="utf-8")
    assert "\n\n".join(parts) == text


def test_a_mistake_has_a_name_of_its_own_and_is_noticed_somewhere() -> None:
    assert len(mistakes_by_name()) == len(MISTAKES)
    assert {m.name for m in MISTAKES} == {row.mistake for _, row in ROWS}


def test_every_planted_bug_of_the_model_is_a_known_mistake() -> None:
    assert {name for name, bug in PLANTED.items() if bug.design is not None} <= set(mistakes_by_name())


def test_a_mistake_leaves_the_promises_alone() -> None:
    for mistake in MISTAKES:
        planted = planted_in(mistake, KIP_966)
        if planted is not None:
            assert planted.properties == KIP_966.properties
            assert mistake.is_setting or planted.model_hash() != KIP_966.model_hash()


@pytest.mark.explores
@pytest.mark.parametrize("row", ROWS[:: len(ROWS) // 8 or 1], ids=label)
def test_what_a_row_says_is_broken_there(row: tuple[str, Row]) -> None:
    design, said = row
    assert violated(mistaken(design, said.mistake), dict(said.at), said.by[0])


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS[:: len(ROWS) // 40 or 1], ids=label)
def test_larger_bounds_and_one_replica_more_notice_it_too(row: tuple[str, Row]) -> None:
    design, said = row
    planted = mistaken(design, said.mistake)
    sizes: dict[str, Value] = {n: int(said.at[n]) + 1 for n in SIZES}
    assert violated(planted, {**said.at, **sizes}, said.by[0])
    if said.at["replicas"] == 2:
        assert violated(planted, {**said.at, "replicas": 3}, said.by[0])


# With one record and with two


@pytest.mark.parametrize("mistake", UNSEEN_WITH_ONE)
def test_two_records_notice_what_one_does_not(mistake: str) -> None:
    one = Instance(KIP_966, following(KIP_966, {"replicas": 2})).constants
    two = Instance(KIP_966, noticing_constants(KIP_966, {"replicas": 2}, PROMISES, whatever_it_takes=False)).constants
    assert (one["records"], two["records"]) == (1, 2)
    assert mistake not in notice(KIP_966, one, PROMISES).noticed_mistakes
    assert mistake in notice(KIP_966, two, PROMISES).noticed_mistakes


@pytest.mark.slow
@pytest.mark.parametrize("mistake", UNSEEN_WITH_ONE)
def test_what_one_record_is_said_not_to_notice_it_does_not(mistake: str) -> None:
    planted, constants = mistaken("kip-966", mistake), following(KIP_966, {"replicas": 2})
    found = explore(Instance(planted, constants), (*PROMISES, TYPE_OK), Limits(), silent)
    assert [f.name for f in found.findings if f.verdict is Verdict.VIOLATED] == []


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize("name", tables())
def test_chosen_bounds_notice_all_and_smaller_ones_do_not(name: str, replicas: int) -> None:
    design = DESIGNS[name]
    names = [p.name for p in design.properties if p.kind in ("always", "step")]
    chosen = noticing_constants(design, {"replicas": replicas}, names, whatever_it_takes=True)
    constants = Instance(design, chosen).constants
    assert notice(design, constants, names).unnoticed_by_promise == {}
    for size in ("log", "records"):
        if constants[size] == 2:
            assert notice(design, {**constants, size: 1}, names).unnoticed_by_promise


ELECTIONS = ("matched-by-end", "next-epoch-start", "refused-fetch-counts", "accepts-old-set")
"""Mistakes of kip-966 that take two elections: three replicas have room for one by default."""


def test_a_mistake_that_takes_more_elections_is_counted_as_missed() -> None:
    """At two replicas these are noticed, so at three nobody says that all are."""
    constants = Instance(
        KIP_966, noticing_constants(KIP_966, {"replicas": 3}, PROMISES, whatever_it_takes=True)
    ).constants
    answer = notice(KIP_966, constants, PROMISES)
    assert set(ELECTIONS) <= set(answer.mistakes)
    assert not set(ELECTIONS) & set(answer.noticed_mistakes)
    assert set(ELECTIONS) <= {m for missed in answer.beyond_by_promise.values() for m in missed}
    assert answer.enough["epochs"] == 2
    own = attrs.evolve(mistaken("kip-966", "matched-by-end"), file="own.py")
    assert notice(own, constants, ["no-divergence"]).short_of_base == ("no-divergence",)


def test_promises_that_no_known_mistake_breaks_are_named() -> None:
    constants = Instance(KIP_966, {"replicas": 2}).constants
    answer = notice(KIP_966, constants, ["no-divergence", "committed-only-grows"])
    assert answer.without_mistake == ("committed-only-grows",)
    set_by_people = {m.name for m in MISTAKES if m.is_setting}
    assert {row.mistake for _, row in ROWS if "committed-only-grows" in row.by} <= set_by_people


def test_what_a_setting_breaks_with_more_room_does_not_hold_with_less() -> None:
    """Where unclean election is on, it takes three records to replace a committed one."""
    design = DESIGNS["kraft-3.5"]
    constants = Instance(design, following(design, {"replicas": 2, "unclean": True, "records": 2})).constants
    answer = notice(design, constants, ["committed-only-grows"])
    assert answer.unnoticed_by_promise == {"committed-only-grows": ("unclean-election-on",)}
    assert answer.enough == {"log": 2, "records": 3}
    assert not notice(design, {**constants, "unclean": False}, ["committed-only-grows"]).mistakes


def test_bounds_that_are_given_stay() -> None:
    given: dict[str, Value] = {"replicas": 2, "records": 1}
    assert noticing_constants(KIP_966, given, PROMISES, whatever_it_takes=True)["records"] == 1


def test_where_it_was_not_measured_to_take_seconds_bounds_stay_unless_it_may_take_what_it_takes() -> None:
    given: dict[str, Value] = {"crashes": 1, "lossy_crashes": 1}
    assert noticing_constants(KIP_966, given, PROMISES, whatever_it_takes=False) == following(KIP_966, given)
    assert noticing_constants(KIP_966, given, PROMISES, whatever_it_takes=True)["records"] == 2


def test_a_mistake_without_a_place_does_not_count() -> None:
    kraft = DESIGNS["kip-903"]
    mistakes = notice(kraft, Instance(kraft, {}).constants, PROMISES).mistakes
    assert mistakes
    assert "elr-kept-at-minimum" not in mistakes


def test_an_action_left_out_takes_its_mistakes_away() -> None:
    less = KIP_966.without("controller_moves_leadership")
    constants = Instance(KIP_966, {"replicas": 2}).constants
    assert "moves-to-anybody" in notice(KIP_966, constants, PROMISES).mistakes
    assert "moves-to-anybody" not in notice(less, constants, PROMISES).mistakes
    assert (notice(KIP_966, constants, PROMISES).base, notice(less, constants, PROMISES).base) == ("", "kip-966")


def no_place(_name: str, _design: Design) -> bool:
    return False


def test_of_a_design_of_ones_own_every_mistake_of_the_table_counts_and_two_records_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever it removes, promises, or is made from: else its bounds would be smallest where the change is."""
    asked: dict[str, Value] = {"replicas": 2, "crashes": 0}
    less = KIP_966.without("leader_answers_diverging", "follower_truncates")
    whole = noticing_constants(KIP_966, asked, PROMISES, whatever_it_takes=True)
    monkeypatch.setattr(planted_notice, "_has_place", no_place)
    for design in (less, attrs.evolve(less, properties=()), attrs.evolve(less, based_on=None, name="from-scratch")):
        own = attrs.evolve(design, file="own.py")
        bounds = noticing_constants(own, asked, (), whatever_it_takes=True)
        assert {n: bounds[n] for n in SIZES} == {n: whole[n] for n in SIZES}
        few = check_constants(own, {**bounds, "epochs": 1})
        assert notice(own, few, ["acked-survives"]).short_of_base == ("acked-survives",)
        alone = noticing_constants(own, {"replicas": 1, "min_insync": 1}, (), whatever_it_takes=True)
        assert (alone["log"], alone["records"]) == (2, 2)


def test_a_promise_of_ones_own_says_enough_where_all_mistakes_are_noticed_and_nowhere_else() -> None:
    own, names = attrs.evolve(KIP_966, file="own.py", name="own"), ("my-own", "leader-in-isr")
    constants = check_constants(own, noticing_constants(own, {"replicas": 2}, (), whatever_it_takes=True))
    assert notice(own, constants, names).short_of_base == ()
    for size in ("log", "records"):
        assert notice(own, {**constants, size: 1}, names).short_of_base == names
    fewer = notice(own, {**constants, "epochs": 1}, names)
    assert (fewer.short_of_base, fewer.enough) == (("my-own",), {"epochs": 2})
    assert notice(KIP_966, {**constants, "log": 1, "epochs": 1}, names).short_of_base == ()


BOTH = ("no-divergence", "implements-committed-log")
FLIPPED = {
    "zookeeper": BOTH,
    "kafka-0.8": BOTH,
    "leader-evicts-alone": BOTH,
    "recovery-aggressive": BOTH,
    "kafka-overtaken-request": BOTH,
    "kafka-forgotten-proposal": ("implements-committed-log",),
    "kafka-16540": BOTH,
    "kafka-16234": BOTH,
}
"""Listed designs that break these with two records in a log, and keep them with the one of their defaults."""
LONG = ("recovery-aggressive", "kafka-16540", "kafka-16234")


@pytest.mark.explores
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in LONG else ()) for n in FLIPPED])
def test_two_records_break_what_one_cannot(name: str) -> None:
    design = DESIGNS[name]
    one = explore(Instance(design, {}), FLIPPED[name], Limits(), silent)
    assert {f.verdict for f in one.findings} == {Verdict.HOLDS}
    for promise in FLIPPED[name]:
        assert violated(design, {"log": 2, "records": 2}, promise)


@pytest.mark.parametrize("name", FLIPPED)
def test_a_design_that_two_records_break_is_not_asked_with_one(name: str) -> None:
    design = DESIGNS[name]
    promises = [p.name for p in design.properties]
    assert notice(design, Instance(design, following(design, {})).constants, promises).unnoticed_by_promise
    chosen = noticing_constants(design, {}, promises, whatever_it_takes=False)
    assert Instance(design, chosen).constants["records"] == 2
