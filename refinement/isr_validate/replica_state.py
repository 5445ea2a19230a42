"""A replica, and the controller's ruling of a partition, as the lines so far leave them: what a search remembers.

Offsets are those of the log. `variables` gives what a step of the model reads, offsets by rank (`stepping.Ranks`);
`followed_by` takes back what it has become.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import attrs

from isr_broker.snapshot import Json
from isr_validate.line_values import Fields, Row, fields, number, numbers, rows
from isr_validate.model_step import Ranks, at, mask, maybe

Epochs = tuple[tuple[int, int], ...]
"""Each leader epoch in a log, and the offset at which it begins."""


@attrs.frozen
class Held:
    """A replica: where its log ends, which epochs begin where, and the model's variables of it."""

    end: int = 0
    epochs: Epochs = ()
    high_watermark: int = 0
    leader: int | None = None
    leader_epoch: int = 0
    isr: tuple[int, ...] = ()
    pending_isr: tuple[int, ...] = ()
    partition_epoch: int = 0
    follower_end: tuple[int | None, ...] = ()
    follower_broker_epoch: tuple[int, ...] = ()
    truncating: bool = False

    def offsets(self) -> set[int]:
        """Every offset that the replica's own variables name, and where its epochs begin."""
        ends = {e for e in self.follower_end if e is not None}
        return {self.end, self.high_watermark, *(start for _, start in self.epochs)} | ends

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of the record at an offset."""
        return next((e for e, start in reversed(self.epochs) if start <= offset), 0)

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last record, -1 for an empty log, as a fetch says it."""
        return self.epochs[-1][0] if self.epochs else -1

    def with_rows(self, new: Sequence[Row]) -> Held:
        """The log with these batches at its end."""
        epochs, end = list(self.epochs), self.end
        for row in new:
            if not epochs or epochs[-1][0] != row[1]:
                epochs.append((row[1], row[0]))
            end = row[0] + row[2]
        return attrs.evolve(self, end=end, epochs=tuple(epochs))

    def cut(self, end: int) -> Held:
        """The log up to an offset."""
        return attrs.evolve(self, end=end, epochs=tuple(e for e in self.epochs if e[1] < end))

    def reborn(self) -> Held:
        """What is on the disk, and nothing of what was in memory."""
        return Held(self.end, self.epochs)

    def variables(self, ids: Sequence[int], me: int, ranks: Ranks) -> dict[str, object]:
        """The variables that the replica alone decides, each at its own place."""
        n, i = len(ids), ids.index(me)
        names = ranks.between(0, self.end)
        ends: Sequence[int | None] = self.follower_end or (None,) * n
        own: dict[str, object] = {
            "high_watermark": ranks(self.high_watermark),
            "leader": maybe(ids, self.leader),
            "leader_epoch": self.leader_epoch,
            "isr": mask(ids, self.isr),
            "pending_isr": mask(ids, self.pending_isr),
            "partition_epoch": self.partition_epoch,
        }
        none = (0,) * n
        return {
            "alive": (1 << n) - 1,
            "log": at(n, i, tuple(range(len(names))), ()),
            "written_in": tuple(self.epoch_at(o) for o in names),
            **{name: at(n, i, value, 0) for name, value in own.items()},
            "follower_end": at(n, i, tuple(0 if e is None else 1 + ranks(e) for e in ends), none),
            "follower_broker_epoch": at(n, i, self.follower_broker_epoch or none, none),
            "truncating": self.truncating << i,
        }

    def followed_by(self, state: Mapping[str, object], ids: Sequence[int], me: int, ranks: Ranks) -> Held:
        """After a step of the model; the log is already that after the step."""
        i = ids.index(me)

        def mine(name: str) -> int:
            return cast("tuple[int, ...]", state[name])[i]

        ends = cast("tuple[tuple[int, ...], ...]", state["follower_end"])[i]
        leader = mine("leader")
        return attrs.evolve(
            self,
            high_watermark=ranks.points[mine("high_watermark")],
            leader=ids[leader - 1] if leader else None,
            leader_epoch=mine("leader_epoch"),
            isr=unmasked(ids, mine("isr")),
            pending_isr=unmasked(ids, mine("pending_isr")),
            partition_epoch=mine("partition_epoch"),
            follower_end=tuple(ranks.points[e - 1] if e else None for e in ends),
            follower_broker_epoch=cast("tuple[tuple[int, ...], ...]", state["follower_broker_epoch"])[i],
            truncating=leader != i + 1 and bool(cast("int", state["truncating"]) >> i & 1),
        )

    @classmethod
    def told(cls, state: Fields, ids: Sequence[int], epochs: Epochs) -> Held:
        """A snapshot."""
        leader, leads = state.get("leader"), "isr" in state
        ends, seen = fields(state.get("follower_end")), fields(state.get("follower_broker_epoch"))
        known = [ends.get(str(b)) for b in ids]
        return cls(
            end=number(state.get("log_end"), -1),
            epochs=epochs,
            high_watermark=number(state.get("high_watermark"), -1),
            leader=leader if isinstance(leader, int) else None,
            leader_epoch=max(0, number(state.get("leader_epoch"), 1 << 29)),
            isr=_set(state.get("isr")),
            pending_isr=_set(state.get("pending_isr")),
            partition_epoch=number(state.get("partition_epoch"), -1) if leads else 0,
            follower_end=tuple(e if isinstance(e, int) else None for e in known),
            follower_broker_epoch=tuple(_epoch(seen.get(str(b), -1)) for b in ids),
            truncating=state.get("truncating") is True,
        )


@attrs.frozen
class Ruling:
    """The controller's metadata of a partition, and of its brokers who has a session, who leaves, and which life."""

    controller_leader: int | None = None
    controller_epoch: int = 0
    controller_partition_epoch: int = 0
    controller_isr: tuple[int, ...] = ()
    controller_elr: tuple[int, ...] = ()
    last_known_leader: int | None = None
    fenced: tuple[int, ...] = ()
    shutting_down: tuple[int, ...] = ()
    broker_epoch: tuple[int, ...] = ()

    def variables(self, ids: Sequence[int]) -> dict[str, object]:
        """As the model has it."""
        return {
            "controller_leader": maybe(ids, self.controller_leader),
            "controller_epoch": self.controller_epoch,
            "controller_partition_epoch": self.controller_partition_epoch,
            "controller_isr": mask(ids, self.controller_isr),
            "controller_elr": mask(ids, self.controller_elr),
            "last_known_leader": maybe(ids, self.last_known_leader),
            "fenced": mask(ids, self.fenced),
            "shutting_down": mask(ids, self.shutting_down),
            "broker_epoch": self.broker_epoch,
        }

    @classmethod
    def of(cls, state: Mapping[str, object], ids: Sequence[int]) -> Ruling:
        """A state of the model."""

        def one(name: str) -> int:
            return cast("int", state[name])

        return cls(
            controller_leader=ids[one("controller_leader") - 1] if one("controller_leader") else None,
            controller_epoch=one("controller_epoch"),
            controller_partition_epoch=one("controller_partition_epoch"),
            controller_isr=unmasked(ids, one("controller_isr")),
            controller_elr=unmasked(ids, one("controller_elr")),
            last_known_leader=ids[one("last_known_leader") - 1] if one("last_known_leader") else None,
            fenced=unmasked(ids, one("fenced")),
            shutting_down=unmasked(ids, one("shutting_down")),
            broker_epoch=cast("tuple[int, ...]", state["broker_epoch"]),
        )

    @classmethod
    def told(cls, state: Fields, ids: Sequence[int]) -> Ruling:
        """A snapshot of the controller; who is no replica is nobody."""
        leader, last = state.get("controller_leader"), state.get("last_known_leader")
        epochs = fields(state.get("broker_epoch"))

        def among(name: str) -> tuple[int, ...]:
            return tuple(b for b in ids if b in numbers(state.get(name)))

        strangers = [b for name in ("controller_isr", "controller_elr") for b in numbers(state.get(name))]
        return cls(
            controller_leader=leader if isinstance(leader, int) else None,
            controller_epoch=number(state.get("controller_epoch"), -1),
            controller_partition_epoch=number(state.get("controller_partition_epoch"), -1),
            controller_isr=tuple(sorted(numbers(state.get("controller_isr")))),
            controller_elr=tuple(sorted(numbers(state.get("controller_elr")))),
            last_known_leader=last if isinstance(last, int) else None,
            fenced=among("fenced"),
            shutting_down=among("shutting_down"),
            broker_epoch=tuple(max(0, number(epochs.get(str(b)))) for b in ids) if set(strangers) <= set(ids) else (),
        )


def _epoch(told: Json) -> int:
    """A broker epoch; 0 for none, which a line tells as -1."""
    return told if isinstance(told, int) and told > 0 else 0 if told == -1 else -1


def _set(told: Json) -> tuple[int, ...]:
    """Replicas in order; what is neither a list nor nothing is no set of them."""
    return tuple(sorted(numbers(told))) if isinstance(told, list) else () if told is None else (-1,)


def announced(partition: Fields) -> Fields:
    """A partition in a message with metadata, under the names of the controller's variables."""
    named = {f"controller_{n}": partition.get(n) for n in ("leader", "partition_epoch", "isr", "elr")}
    return {
        **named,
        "controller_epoch": partition.get("leader_epoch"),
        "last_known_leader": partition.get("last_known_leader"),
    }


def found(log: Sequence[Row], high_watermark: int) -> Held:
    """What a start finds on the disk."""
    return attrs.evolve(Held().with_rows(log), high_watermark=high_watermark)


def unmasked(ids: Sequence[int], members: int) -> tuple[int, ...]:
    """A set of the model."""
    return tuple(b for i, b in enumerate(ids) if members >> i & 1)


def different(model: Held | Ruling, line: Held | Ruling) -> dict[str, tuple[str, str]]:
    """The variables in which they differ, each as the model has it and as the line says."""
    found: dict[str, tuple[str, str]] = {}
    for name in (f.name for f in attrs.fields(type(model))):
        one, other = getattr(model, name), getattr(line, name)
        if one != other:
            found[name] = (str(one), str(other))
    return found


__all__ = ["Held", "Ruling", "announced", "different", "found", "rows", "unmasked"]
