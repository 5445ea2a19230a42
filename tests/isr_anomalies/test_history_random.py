"""Histories of a correct log are never accused, whatever clients do and however they crash; spoilt ones are."""

import json
import pickle
from collections.abc import Callable
from random import Random
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.histories import Records, Story, judged, with_word

from isr_anomalies import ANOMALIES, Partition, check, check_partition, merge, paired, read_json

Line = dict[str, object]


class Log:
    """Correct partitions under random clients: an append happens somewhere between invocation and completion.

    A client that gets no answer is followed by another one under a new name; its append may still come, or never.
    Some sends are refused, and do nothing. Consumers assign, go back to the beginning, and crash.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.story = Story()
        self.logs: dict[str, list[int]] = {"t-0": [], "t-1": []}
        self.values = 0
        self.names = 0
        self.late: list[tuple[str, int]] = []

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def run(self, steps: int) -> list[str]:
        actors: list[Callable[[], Callable[[], None] | None]] = [self.producer(self.name("p")) for _ in range(3)]
        actors += [self.consumer(self.name("c")) for _ in range(2)]
        pending: list[Callable[[], None] | None] = [None] * len(actors)
        for _ in range(steps):
            if self.late and self.random.random() < 0.3:
                self.append(*self.late.pop(self.random.randrange(len(self.late))))
            at = self.random.randrange(len(actors))
            finish = pending[at]
            pending[at] = actors[at]() if finish is None else None
            if finish is not None:
                finish()
        for finish in pending:
            if finish is not None:
                finish()
        for partition, log in self.logs.items():
            self.story.final(dict(enumerate(log)), len(log), p=partition)
        return self.story.lines

    def append(self, partition: str, value: int) -> int:
        self.logs[partition].append(value)
        return len(self.logs[partition]) - 1

    def producer(self, first: str) -> Callable[[], Callable[[], None]]:
        who = [first]

        def act() -> Callable[[], None]:
            self.values += 1
            partition, value, me = self.random.choice(sorted(self.logs)), self.values, who[0]
            fate = self.random.choice(("ok", "ok", "ok", "fail", "early", "late", "never"))
            self.story.begin("produce", me, partition=partition, value=value)
            early = self.random.random() < 0.5
            offset = self.append(partition, value) if (fate == "ok" and early) or fate == "early" else None

            def finish() -> None:
                nonlocal offset
                if fate == "ok":
                    offset = self.append(partition, value) if offset is None else offset
                    self.story.sent(offset, by=me)
                elif fate == "fail":
                    self.story.end("produce", me, "error", error="NOT_ENOUGH_REPLICAS")
                else:
                    if fate == "late":
                        self.late.append((partition, value))
                    if self.random.random() < 0.5:
                        self.story.end("produce", me, "error", error="REQUEST_TIMED_OUT")
                    who[0] = self.name("p")

            return finish

        return act

    def consumer(self, first: str) -> Callable[[], Callable[[], None]]:
        who, position = [first], {"t-0": 0, "t-1": 0}

        def assign() -> None:
            me, seek = who[0], self.random.choice(("beginning", "end"))
            self.story.begin("assign", me, partitions=sorted(self.logs), seek=seek)
            for partition, log in self.logs.items():
                position[partition] = 0 if seek == "beginning" else len(log)
            self.story.end("assign", me, partitions=sorted(self.logs), seek=seek)

        def act() -> Callable[[], None]:
            if self.random.random() < 0.15:
                assign()
            me, partition = who[0], self.random.choice(sorted(self.logs))
            self.story.begin("poll", me)
            begin = position[partition]
            got = [[o, v] for o, v in enumerate(self.logs[partition])][begin : begin + self.random.randint(1, 4)]
            crashes = self.random.random() < 0.1

            def finish() -> None:
                if crashes:
                    who[0] = self.name("c")
                    assign()
                    return
                self.story.end("poll", me, records={partition: got})
                position[partition] += len(got)

            return finish

        return act


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
    history = paired(read_json(lines))
    sent = [cast("Partition", pickle.loads(pickle.dumps(part))) for part in history.partitions.values()]
    Random(seed).shuffle(sent)
    results = [check_partition(part, history.claims) for part in sent]
    for judgement, anomaly in zip(check(history).judgements, ANOMALIES, strict=True):
        if anomaly.find is not None:
            merged = merge(anomaly, [result.parts[anomaly.name] for result in results])
            assert (merged.tally.found, merged.tally.forbidden) == (judgement.found, judgement.forbidden)
            assert tuple(merged.tally.least) == judgement.witnesses


# One edit of a correct history each: how, and which anomalies may show it.


def _finals(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line["f"] == "final-read" and line["type"] == "ok" and line["records"]]


def _records(line: Line) -> Records:
    return cast("Records", line["records"])


def _acked(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line["f"] == "produce" and line.get("offset") is not None]


def lose_one(lines: list[Line], random: Random) -> None:
    """The final read leaves out a record."""
    records = _records(random.choice(_finals(lines)))
    del records[random.randrange(len(records))]


def replace_one(lines: list[Line], random: Random) -> None:
    """The final read has another value somewhere."""
    random.choice(_records(random.choice(_finals(lines))))[1] = 10**6


def repeat_one(lines: list[Line], random: Random) -> None:
    """The final read ends with a record that was there before."""
    line = random.choice(_finals(lines))
    _records(line).append([cast("int", line["end"]), random.choice(_records(line))[1]])
    line["end"] = cast("int", line["end"]) + 1


def swap_two(lines: list[Line], random: Random) -> None:
    """Two acknowledgements tell each other's offset."""
    one, two = random.sample(_acked(lines), 2)
    one["offset"], two["offset"] = two["offset"], one["offset"]


def shift_one(lines: list[Line], random: Random) -> None:
    """An acknowledgement tells an offset that is too large by one."""
    line = random.choice(_acked(lines))
    line["offset"] = cast("int", line["offset"]) + 1


def deny_one(lines: list[Line], random: Random) -> None:
    """A send that was done is said to have failed."""
    line = random.choice(_acked(lines))
    line["type"] = "fail"


def forget_the_end(lines: list[Line], random: Random) -> None:
    """The final read stops one record early."""
    line = random.choice(_finals(lines))
    line["end"] = cast("int", line["end"]) - 1
    _records(line).pop()


def break_one(lines: list[Line], random: Random) -> None:
    """A poll returns damaged bytes."""
    line = random.choice(_finals(lines))
    random.choice(_records(line))[1] = None


EDITS = [lose_one, replace_one, repeat_one, swap_two, shift_one, deny_one, forget_the_end, break_one]


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
    gone, partition = _records(line)[-1], str(line["partition"])
    polls = [cast("dict[str, Records]", x["records"]) for x in before if x["f"] == "poll" and "records" in x]
    [sent] = [n for n, x in enumerate(before) if x["f"] == "produce" and x.get("value") == gone[1]]
    ends = [x for x in before[sent + 1 :] if x["process"] == before[sent]["process"]]
    acked = bool(ends) and ends[0].get("offset") is not None
    return not acked and not any(gone in poll.get(partition, []) for poll in polls)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), edit=st.sampled_from(EDITS))
def test_a_spoilt_history_is_accused_or_equivalent(seed: int, edit: Callable[[list[Line], Random], None]) -> None:
    random = Random(seed)
    lines = [cast("Line", json.loads(line)) for line in Log(random).run(100)]
    before = cast("list[Line]", json.loads(json.dumps(lines)))
    if not _finals(lines) or len(_acked(lines)) < 2:
        return
    edit(lines, random)
    answer = judged([json.dumps(line) for line in lines])
    assert with_word(answer, "VIOLATED") or equivalent(edit, before, lines)
