"""Small histories, written by hand: lines are made by functions named as what a client does, one tick apart."""

import json
from typing import cast

from isr_anomalies import Answer, Claims, check, pair_operations, read_json

P = "t-0"
Records = list[list[object]]


class Story:
    """A history that is told line by line; `lines` is the file. A tick is a second."""

    def __init__(self, **settings: object) -> None:
        self.lines: list[str] = [json.dumps({"history": 1, "settings": settings})] if settings else []
        self.tick = 0

    def line(self, **fields: object) -> int:
        self.tick += 1
        self.lines.append(json.dumps({"time": self.tick * 1_000_000_000, **fields}))
        return len(self.lines)

    def begin(self, f: str, process: object, **fields: object) -> int:
        return self.line(type="invoke", f=f, process=process, **fields)

    def end(self, f: str, process: object, kind: str = "ok", **fields: object) -> int:
        return self.line(type=kind, f=f, process=process, **fields)

    def send(
        self,
        value: object,
        offset: int | None = None,
        *,
        by: object = "p",
        kind: str = "ok",
        p: str = P,
        **more: object,
    ) -> "Story":
        """A produce from its invocation to its end; without an offset the end says none."""
        self.begin("produce", by, partition=p, value=value, **more)
        return self.sent(offset, by=by, kind=kind)

    def sent(self, offset: int | None = None, *, by: object = "p", kind: str = "ok", **more: object) -> "Story":
        fields: dict[str, object] = {} if offset is None else {"offset": offset}
        self.line(type=kind, f="produce", process=by, **fields, **more)
        return self

    def sends(self, *pairs: tuple[object, int]) -> "Story":
        for value, offset in pairs:
            self.send(value, offset)
        return self

    def poll(self, *records: list[object], by: object = "c", kind: str = "ok", p: str = P, **more: object) -> "Story":
        """A poll of one partition; a record is [offset, value] or [offset, value, epoch]."""
        self.begin("poll", by)
        self.end("poll", by, kind, records={p: list(records)}, **more)
        return self

    def txn(self, asked: Records, got: Records, *, by: object = "x", kind: str = "ok", **more: object) -> "Story":
        self.begin("txn", by, ops=asked)
        self.line(type=kind, f="txn", process=by, ops=got, **more)
        return self

    def assign(self, *partitions: str, by: object = "c", f: str = "assign", **more: object) -> "Story":
        self.begin(f, by, partitions=list(partitions), **more)
        self.line(type="ok", f=f, process=by, partitions=list(partitions), **more)
        return self

    def final(
        self, values: dict[int, object], end: int | None = None, *, p: str = P, by: object = "f", **more: object
    ) -> "Story":
        """A complete read of offsets up to `end` (if not said: all it saw)."""
        upto = max(values, default=-1) + 1 if end is None else end
        records = [[offset, value] for offset, value in values.items()]
        self.begin("final-read", by, partition=p)
        self.line(type="ok", f="final-read", process=by, partition=p, records=records, end=upto, **more)
        return self

    def holds(self, node: str, *pairs: tuple[object, int], p: str = P) -> "Story":
        for value, offset in pairs:
            self.line(f="append", node=node, partition=p, value=value, offset=offset)
        return self

    def dump(
        self, node: str, values: dict[int, object], *, hw: int, p: str = P, epochs: object = (), **more: object
    ) -> "Story":
        records = [[offset, value, 1] for offset, value in values.items()]
        more = {"in_sync": True, **more}
        self.line(
            f="replica",
            node=node,
            partition=p,
            records=records,
            high_watermark=hw,
            epochs=list(cast("tuple[()]", epochs)),
            **more,
        )
        return self

    def fault(self, what: str = "kill leader", **more: object) -> "Story":
        self.line(f="fault", what=what, **more)
        return self

    def heal(self) -> "Story":
        self.line(f="heal", what="all healed")
        return self

    def wait(self, ticks: int) -> "Story":
        self.tick += ticks
        return self


def judged(lines: list[str], claims: Claims | None = None) -> Answer:
    return check(pair_operations(read_json(lines), claims))


def words(answer: Answer) -> dict[str, str]:
    """Anomaly -> verdict."""
    return {judgement.name: judgement.verdict.value for judgement in answer.judgements}


def with_word(answer: Answer, *wanted: str) -> set[str]:
    return {name for name, word in words(answer).items() if word in wanted}
