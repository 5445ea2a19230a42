"""What the lines of a trace have told so far: each replica, the controller, and the messages on their way.

From these come the variables of the model that a step reads; the offsets among them by rank (`stepping.Ranks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import attrs

from isr_broker.snapshot import Json
from isr_refine.stepping import Ranks, at, mask, maybe

Fields: TypeAlias = Mapping[str, Json]
Row: TypeAlias = tuple[int, ...]
"""A batch: offset, epoch, count, CRC, producer id, its epoch, first sequence."""


def fields(value: Json) -> Fields:
    """An object of a line; an empty one for what is none."""
    return value if isinstance(value, dict) else {}


def number(value: Json, otherwise: int = 0) -> int:
    """A number of a line."""
    return value if isinstance(value, int) else otherwise


def numbers(value: Json) -> list[int]:
    """A list of numbers."""
    return [v for v in value if isinstance(v, int)] if isinstance(value, list) else []


def rows(value: Json) -> list[Row]:
    """Batches of a line."""
    return [tuple(numbers(row)) for row in value] if isinstance(value, list) else []


@attrs.define
class Seen:
    """A replica as its last line left it; `log` its batches, `state` the snapshot."""

    log: list[Row] = attrs.field(factory=list[Row])
    state: Fields = attrs.field(factory=dict[str, Json])

    @property
    def end(self) -> int:
        """The log end offset."""
        return self.log[-1][0] + self.log[-1][2] if self.log else 0

    def offsets(self) -> set[int]:
        """Every offset that the replica's own variables name, and where its epochs begin."""
        ends = fields(self.state.get("follower_end")).values()
        found = {self.end, number(self.state.get("high_watermark"))} | {e for e in ends if isinstance(e, int)}
        return found | {start for _, start in self.epochs()}

    def epochs(self) -> list[tuple[int, int]]:
        """Each leader epoch in the log and where it begins."""
        found: list[tuple[int, int]] = []
        for row in self.log:
            if not found or found[-1][0] != row[1]:
                found.append((row[1], row[0]))
        return found

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of the record at an offset."""
        return next((e for e, start in reversed(self.epochs()) if start <= offset), 0)

    def variables(self, ids: Sequence[int], me: int, ranks: Ranks) -> dict[str, object]:
        """The variables that the replica alone decides, each at its own place."""
        n, i, state = len(ids), ids.index(me), self.state
        names = ranks.between(0, self.end)
        told: dict[str, object] = {
            "alive": (1 << n) - 1,
            "log": at(n, i, tuple(range(len(names))), ()),
            "written_in": tuple(self.epoch_at(o) for o in names),
        }
        for name, value in own(state, ids, me, ranks).items():
            blank: object = (0,) * n if name in ("follower_end", "follower_broker_epoch") else 0
            told[name] = at(n, i, value, blank)
        return told


def own(state: Fields, ids: Sequence[int], me: int, ranks: Ranks) -> dict[str, object]:
    """A snapshot as the model has it, without the log."""
    leader = state.get("leader")
    told: dict[str, object] = {
        "high_watermark": ranks(number(state.get("high_watermark"))),
        "leader": maybe(ids, leader if isinstance(leader, int) else None),
        "leader_epoch": max(0, number(state.get("leader_epoch"))),
        "broker_epoch": max(0, number(state.get("broker_epoch"))),
    }
    leads = "isr" in state
    ends, seen = fields(state.get("follower_end")), fields(state.get("follower_broker_epoch"))
    known = [ends.get(str(b)) for b in ids]
    told["isr"] = mask(ids, numbers(state.get("isr")))
    told["pending_isr"] = mask(ids, numbers(state.get("pending_isr")))
    told["partition_epoch"] = number(state.get("partition_epoch")) if leads else 0
    told["follower_end"] = tuple(1 + ranks(e) if isinstance(e, int) else 0 for e in known)
    told["follower_broker_epoch"] = tuple(max(0, number(seen.get(str(b)))) for b in ids)
    del told["broker_epoch"]
    return told


def ruled(state: Fields, ids: Sequence[int]) -> dict[str, object]:
    """The controller's snapshot of a partition, or the partition in a message with metadata, as the model has it."""

    def called(name: str) -> Json:
        return state.get(f"controller_{name}", state.get("leader_epoch" if name == "epoch" else name))

    leader, last = called("leader"), state.get("last_known_leader")
    told: dict[str, object] = {
        "controller_leader": maybe(ids, leader if isinstance(leader, int) else None),
        "controller_epoch": number(called("epoch")),
        "controller_partition_epoch": number(called("partition_epoch")),
        "controller_isr": mask(ids, numbers(called("isr"))),
        "controller_elr": mask(ids, numbers(called("elr"))),
        "last_known_leader": maybe(ids, last if isinstance(last, int) else None),
    }
    if "fenced" in state:
        told["fenced"] = mask(ids, numbers(state.get("fenced")))
        told["shutting_down"] = mask(ids, numbers(state.get("shutting_down")))
        epochs = fields(state.get("broker_epoch"))
        told["broker_epoch"] = tuple(max(0, number(epochs.get(str(b)))) for b in ids)
    return told


@attrs.frozen
class Mail:
    """A message that a line has sent."""

    id: str
    source: str
    kind: str
    says: Fields


def mails(source: str, sent: Json) -> list[Mail]:
    """The messages of a line."""
    found: list[Mail] = []
    for one in sent if isinstance(sent, list) else []:
        for kind, value in fields(one).items():
            if kind not in ("id", "to"):
                found.append(Mail(str(fields(one).get("id")), source, kind, fields(value)))
    return found
