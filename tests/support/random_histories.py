"""Random histories of a correct log, and edits that spoil them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import cast

from tests.support.histories import Records, Story

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


def final_reads(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line["f"] == "final-read" and line["type"] == "ok" and line["records"]]


def records_of(line: Line) -> Records:
    return cast("Records", line["records"])


def acked_sends(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line["f"] == "produce" and line.get("offset") is not None]


def lose_one(lines: list[Line], random: Random) -> None:
    """The final read leaves out a record."""
    records = records_of(random.choice(final_reads(lines)))
    del records[random.randrange(len(records))]


def replace_one(lines: list[Line], random: Random) -> None:
    """The final read has another value somewhere."""
    random.choice(records_of(random.choice(final_reads(lines))))[1] = 10**6


def repeat_one(lines: list[Line], random: Random) -> None:
    """The final read ends with a record that was there before."""
    line = random.choice(final_reads(lines))
    records_of(line).append([cast("int", line["end"]), random.choice(records_of(line))[1]])
    line["end"] = cast("int", line["end"]) + 1


def swap_two(lines: list[Line], random: Random) -> None:
    """Two acknowledgements tell each other's offset."""
    one, two = random.sample(acked_sends(lines), 2)
    one["offset"], two["offset"] = two["offset"], one["offset"]


def shift_one(lines: list[Line], random: Random) -> None:
    """An acknowledgement tells an offset that is too large by one."""
    line = random.choice(acked_sends(lines))
    line["offset"] = cast("int", line["offset"]) + 1


def deny_one(lines: list[Line], random: Random) -> None:
    """A send that was done is said to have failed."""
    line = random.choice(acked_sends(lines))
    line["type"] = "fail"


def forget_the_end(lines: list[Line], random: Random) -> None:
    """The final read stops one record early."""
    line = random.choice(final_reads(lines))
    line["end"] = cast("int", line["end"]) - 1
    records_of(line).pop()


def break_one(lines: list[Line], random: Random) -> None:
    """A poll returns damaged bytes."""
    line = random.choice(final_reads(lines))
    random.choice(records_of(line))[1] = None


EDITS = [lose_one, replace_one, repeat_one, swap_two, shift_one, deny_one, forget_the_end, break_one]
