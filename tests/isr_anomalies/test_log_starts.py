"""Complete reads that begin above 0: of what is below them, which retention may have deleted, there is no verdict.

Without this file a consumer that went back to the beginning could be taken for one that read from offset 0, and what
retention had deleted for lost.
"""

import json
from collections.abc import Iterator
from random import Random
from typing import cast

import pytest
from tests.support.histories import Story, judged, words
from tests.support.planted_anomalies import BELOW
from tests.support.random_histories import Line, Log

ABOUT_LOSS = ("lost-write", "unseen", "read-then-lost")


@pytest.mark.parametrize(("story", "expected"), BELOW)
def test_what_no_complete_read_looked_at_is_neither_lost_nor_there(story: Story, expected: tuple[str, ...]) -> None:
    answer = words(judged(story.lines))
    assert tuple(answer[name] for name in ABOUT_LOSS) == expected


def final_reads(lines: list[Line]) -> Iterator[Line]:
    return (line for line in lines if line["f"] == "final-read" and line["type"] == "ok")


def begun_later(lines: list[Line], start: int) -> list[str]:
    """The same history whose final reads begin at an offset, and so say nothing of what is below."""
    copy = [cast("Line", json.loads(json.dumps(line))) for line in lines]
    for read in final_reads(copy):
        begin = min(start, cast("int", read["end"]))
        read["start"] = begin
        read["records"] = [one for one in cast("list[list[int]]", read["records"]) if one[0] >= begin]
    return [json.dumps(line) for line in copy]


Verdicts = dict[str, str]


def pairs(seed: int) -> Iterator[tuple[Verdicts, Verdicts]]:
    """The verdicts on a random history, with records lost or without, and with final reads that begin higher up."""
    random = Random(seed)
    lines = [cast("Line", json.loads(line)) for line in Log(random).run(80)]
    for share_of_losses in (0.0, 0.1, 1.0):
        for read in final_reads(lines):
            read["records"] = [r for r in cast("list[object]", read["records"]) if random.random() >= share_of_losses]
        before = words(judged([json.dumps(line) for line in lines]))
        for start in (1, 3, 10, 1 << 30):
            yield before, words(judged(begun_later(lines, start)))


@pytest.mark.parametrize("seed", range(12))
def test_a_final_read_from_higher_up_never_makes_a_verdict_surer(seed: int) -> None:
    """Neither red: what it no longer covers is not VIOLATED. Nor green: what was violated or unknown does not hold."""
    for before, after in pairs(seed):
        for name in ABOUT_LOSS:
            assert before[name] == "VIOLATED" or after[name] != "VIOLATED", name
            assert before[name] not in ("VIOLATED", "UNKNOWN") or after[name] not in ("HOLDS", "VACUOUS"), name


def test_the_random_histories_have_losses_above_and_below_the_start() -> None:
    met = {
        (name, before[name], after[name]) for seed in range(12) for before, after in pairs(seed) for name in ABOUT_LOSS
    }
    assert {(name, "VIOLATED", word) for name in ABOUT_LOSS for word in ("VIOLATED", "UNKNOWN")} <= met
    assert {("lost-write", "HOLDS", "UNKNOWN"), ("read-then-lost", "HOLDS", "UNKNOWN")} <= met


def gone_back(*records: list[object], story: Story | None = None, **settings: object) -> Story:
    """Three values are acknowledged; then a consumer goes back to the beginning, and gets these records."""
    begun = (story or Story(**settings)).sends((1, 0), (2, 1), (3, 2))
    return begun.assign("t-0", by="c", seek="beginning").poll(*records, by="c")


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        (gone_back([0, 1], [1, 2], [2, 3]), ("HOLDS", "HOLDS", "VACUOUS")),
        (gone_back([0, 1], [2, 3]), ("VIOLATED", "VIOLATED", "VACUOUS")),
        (gone_back([1, 2], [2, 3]), ("UNKNOWN", "UNKNOWN", "VACUOUS")),
        (gone_back([1, 2], [2, 3], retention=False), ("VIOLATED", "VIOLATED", "VACUOUS")),
        (gone_back([1, 2], [2, 3]).poll([0, 1], by="d"), ("HOLDS", "HOLDS", "VACUOUS")),  # it is there
        (gone_back([1, 2], [2, 3]).final({0: 1, 1: 2, 2: 3}), ("HOLDS", "HOLDS", "HOLDS")),
        (gone_back([1, 2], [2, 3]).final({1: 2, 2: 3}), ("VIOLATED", "VIOLATED", "HOLDS")),
        # nobody was told where value 9 is: it may be beyond the end of the read
        (gone_back([0, 1], [1, 2], [2, 3], story=Story().send(9)), ("UNKNOWN", "UNKNOWN", "VACUOUS")),
        (
            gone_back([0, 1], [1, 2], [2, 3], story=Story().send(9)).final({0: 1, 1: 2, 2: 3}),
            ("VIOLATED",) * 2 + ("HOLDS",),
        ),
    ],
)
def test_who_goes_back_to_the_beginning_starts_where_the_log_does(story: Story, expected: tuple[str, ...]) -> None:
    """The beginning was taken for offset 0, so that what retention had deleted was lost, and a gap."""
    answer = words(judged(story.lines))
    assert tuple(answer[name] for name in ABOUT_LOSS) == expected


@pytest.mark.parametrize("seed", range(30))
def test_a_log_that_retention_cut_is_not_accused_by_who_goes_back(seed: int) -> None:
    """A record that is missing in the midst is lost all the same, and a claim that nothing is deleted decides."""
    random = Random(seed)
    count = random.randint(2, 9)
    cut, lost = random.randrange(count), random.choice((None, *range(count)))
    seen = [(value, value) for value in range(cut, count) if value != lost or value in (cut, count - 1)]
    for retention in (True, False):
        story = Story(retention=retention)
        for value in range(count):
            story.send(value, value)
            if random.random() < 0.3:
                story.poll([value, value], by=f"c{value}")
        story.assign("t-0", by="last", seek="beginning")
        size = random.randint(1, count)
        for at in range(0, len(seen), size):
            records: list[list[object]] = [[offset, value] for offset, value in seen[at : at + size]]
            story.poll(*records, by="last")
        answer = words(judged(story.lines))
        is_lost = len(seen) < count - cut
        if is_lost or (cut and not retention):
            assert answer["lost-write"] == "VIOLATED", story.lines
        else:
            assert "VIOLATED" not in answer.values(), story.lines
            assert answer["lost-write"] == ("UNKNOWN" if cut else "HOLDS"), story.lines


def test_a_final_read_that_ends_below_its_start_is_refused() -> None:
    with pytest.raises(Exception, match="line 2: start 3 is above end 2"):
        judged(Story().final({}, 2, start=3).lines)
