"""Histories of a correct log are never accused, whatever clients do and however they crash; spoilt ones are."""

import json
import pickle
from collections.abc import Callable
from random import Random
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.histories import Records, Story, judged, with_word
from tests.support.random_histories import (
    EDITS,
    Line,
    Log,
    acked_sends,
    final_reads,
    forget_the_end,
    records_of,
    swap_two,
)

from isr_anomalies import ANOMALIES, Partition, check, check_partition, merge, pair_operations, read_json


@pytest.mark.long
@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 120))
def test_a_correct_log_is_never_accused(seed: int, steps: int) -> None:
    answer = judged(Log(Random(seed)).run(steps))
    assert not with_word(answer, "VIOLATED", "UNKNOWN")
    assert not with_word(answer, "PERMITTED")


def test_the_random_histories_have_everything_that_can_happen() -> None:
    together = [judged(Log(Random(seed)).run(120)).counts for seed in range(5)]
    for name in ("acked", "failed", "unknown", "recovered", "read"):
        assert all(getattr(counts, name) > 0 for counts in together), name


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_partitions_may_be_judged_anywhere_and_merged_in_any_order(seed: int) -> None:
    lines = Log(Random(seed)).run(80)
    lines += Story().send(1, 0, p="t-2").final({0: 2}, p="t-2").lines
    history = pair_operations(read_json(lines))
    sent = [cast("Partition", pickle.loads(pickle.dumps(part))) for part in history.partitions.values()]
    Random(seed).shuffle(sent)
    results = [check_partition(part, history.claims) for part in sent]
    for judgement, anomaly in zip(check(history).judgements, ANOMALIES, strict=True):
        if anomaly.find is not None:
            merged = merge(anomaly, [result.parts[anomaly.name] for result in results])
            assert (merged.tally.finding_count, merged.tally.forbidden) == (
                judgement.finding_count,
                judgement.forbidden,
            )
            assert tuple(merged.tally.least) == judgement.witnesses


# One edit of a correct history each: how, and which anomalies may show it.


def equivalent(edit: Callable[[list[Line], Random], None], before: list[Line], after: list[Line]) -> bool:
    """Edits after which the history is one of a correct log again.

    Two acknowledgements of different partitions with one offset tell nothing new when swapped; a last record that
    nobody else knows of may as well never have been written.
    """
    if edit is swap_two:
        return before == after
    if edit is not forget_the_end:
        return False
    [line] = [one for one, two in zip(before, after, strict=True) if one != two]
    gone, partition = records_of(line)[-1], str(line["partition"])
    polls = [cast("dict[str, Records]", x["records"]) for x in before if x["f"] == "poll" and "records" in x]
    [sent] = [n for n, x in enumerate(before) if x["f"] == "produce" and x.get("value") == gone[1]]
    ends = [x for x in before[sent + 1 :] if x["process"] == before[sent]["process"]]
    acked = bool(ends) and ends[0].get("offset") is not None
    return not acked and not any(gone in poll.get(partition, []) for poll in polls)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), edit=st.sampled_from(EDITS))
def test_a_spoilt_history_is_accused_or_equivalent(seed: int, edit: Callable[[list[Line], Random], None]) -> None:
    random = Random(seed)
    lines = [cast("Line", json.loads(line)) for line in Log(random).run(100)]
    before = cast("list[Line]", json.loads(json.dumps(lines)))
    if not final_reads(lines) or len(acked_sends(lines)) < 2:
        return
    edit(lines, random)
    answer = judged([json.dumps(line) for line in lines])
    assert with_word(answer, "VIOLATED") or equivalent(edit, before, lines)


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), others=st.integers(0, 3))
def test_what_is_lost_is_what_was_acknowledged_or_read_and_is_not_there(seed: int, others: int) -> None:
    """Against a second definition, of few words: the log of one partition is cut, and goes on with other records."""
    random = Random(seed)
    lines = [cast("Line", json.loads(line)) for line in Log(random).run(100)]
    ends = [line for line in lines if line["f"] == "final-read" and line["type"] == "ok"]
    cut = random.choice(ends)
    kept = records_of(cut)[: random.randint(0, len(records_of(cut)))]
    cut["records"] = [*kept, *([len(kept) + n, 10**6 + n] for n in range(others))]
    cut["end"] = len(kept) + others
    acked, read = acked_and_read(lines)
    gone = {
        (p, v)
        for p, v in acked | read
        if v not in {v for end in ends if end["partition"] == p for _, v in records_of(end)}
    }
    answer = judged([json.dumps(line) for line in lines])
    assert (answer.counts.lost, answer.counts.lost_unacknowledged) == (len(gone & acked), len(gone - acked))
    assert answer.fates["lost-write"] == len(gone)


Values = set[tuple[object, object]]


def acked_and_read(lines: list[Line]) -> tuple[Values, Values]:
    """The values that were acknowledged, and those that a poll returned, with their partitions."""
    acked: Values = set()
    read: Values = set()
    begun: dict[object, Line] = {}
    for line in lines:
        if line["type"] == "invoke":
            begun[line["process"]] = line
        elif line["f"] == "produce" and line["type"] == "ok":
            sent = begun[line["process"]]
            acked.add((sent["partition"], sent["value"]))
        elif line["f"] == "poll" and line["type"] == "ok":
            polled = cast("dict[str, Records]", line["records"])
            read |= {(partition, value) for partition, records in polled.items() for _, value in records}
    return acked, read


def test_the_cut_histories_lose_values_of_both_kinds() -> None:
    """The test above compares more than zeros: a read value whose producer got no answer is among those that go."""
    found: set[bool] = set()
    for seed in range(20):
        lines = [cast("Line", json.loads(line)) for line in Log(Random(seed)).run(100)]
        for line in lines:
            if line["f"] == "final-read" and line["type"] == "ok":
                line["records"], line["end"] = [], 0
        counts = judged([json.dumps(line) for line in lines]).counts
        found |= {True} if counts.lost else set()
        found |= {False} if counts.lost_unacknowledged else set()
    assert found == {True, False}
