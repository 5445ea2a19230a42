"""The states that a search goes through: of a replica, and of the controller as far as one partition is concerned.

Offsets here are those of the log. `variables` translates a state into variables of the model, with ranks for offsets
(`model_step.OffsetRanks`); `after_step` and `from_model` translate the variables after a step back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import attrs

from isr_broker.snapshot import Json
from isr_validate.model_step import OffsetRanks, map_with, maybe_replica, replica_set
from isr_validate.trace_values import Fields, Row, fields, number, numbers

Epochs = tuple[tuple[int, int], ...]
"""The leader epochs of a log, each with the offset at which it begins."""


@attrs.frozen
class ReplicaState:
    """A replica: the end and the epochs of its log, and its variables in the model."""

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
        """All offsets in this state."""
        ends = {e for e in self.follower_end if e is not None}
        return {self.end, self.high_watermark, *(start for _, start in self.epochs)} | ends

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of the record at an offset."""
        return next((e for e, start in reversed(self.epochs) if start <= offset), 0)

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last record, -1 for an empty log, as in a fetch request."""
        return self.epochs[-1][0] if self.epochs else -1

    def with_batches(self, new: Sequence[Row]) -> ReplicaState:
        """This state with these batches appended to the log."""
        epochs, end = list(self.epochs), self.end
        for row in new:
            if not epochs or epochs[-1][0] != row[1]:
                epochs.append((row[1], row[0]))
            end = row[0] + row[2]
        return attrs.evolve(self, end=end, epochs=tuple(epochs))

    def truncated_to(self, end: int) -> ReplicaState:
        """This state with the log truncated to an offset."""
        return attrs.evolve(self, end=end, epochs=tuple(e for e in self.epochs if e[1] < end))

    def after_restart(self) -> ReplicaState:
        """This state after the process has restarted: the log is left, and nothing that was in memory."""
        return ReplicaState(self.end, self.epochs)

    def variables(self, ids: Sequence[int], me: int, ranks: OffsetRanks) -> dict[str, object]:
        """The variables of the model that this replica decides; other replicas have blanks in them."""
        n, i = len(ids), ids.index(me)
        names = ranks.between(0, self.end)
        ends: Sequence[int | None] = self.follower_end or (None,) * n
        own: dict[str, object] = {
            "high_watermark": ranks(self.high_watermark),
            "leader": maybe_replica(ids, self.leader),
            "leader_epoch": self.leader_epoch,
            "isr": replica_set(ids, self.isr),
            "pending_isr": replica_set(ids, self.pending_isr),
            "partition_epoch": self.partition_epoch,
        }
        none = (0,) * n
        return {
            "alive": (1 << n) - 1,
            "log": map_with(n, i, tuple(range(len(names))), ()),
            "written_in": tuple(self.epoch_at(o) for o in names),
            **{name: map_with(n, i, value, 0) for name, value in own.items()},
            "follower_end": map_with(n, i, tuple(0 if e is None else 1 + ranks(e) for e in ends), none),
            "follower_broker_epoch": map_with(n, i, self.follower_broker_epoch or none, none),
            "truncating": self.truncating << i,
        }

    def after_step(self, state: Mapping[str, object], ids: Sequence[int], me: int, ranks: OffsetRanks) -> ReplicaState:
        """This state, whose log is already that after a step, with the other variables after it."""
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
            isr=brokers_in(ids, mine("isr")),
            pending_isr=brokers_in(ids, mine("pending_isr")),
            partition_epoch=mine("partition_epoch"),
            follower_end=tuple(ranks.points[e - 1] if e else None for e in ends),
            follower_broker_epoch=cast("tuple[tuple[int, ...], ...]", state["follower_broker_epoch"])[i],
            truncating=leader != i + 1 and bool(cast("int", state["truncating"]) >> i & 1),
        )

    @classmethod
    def from_snapshot(cls, state: Fields, ids: Sequence[int], epochs: Epochs) -> ReplicaState:
        """The state in a snapshot, for a log with these epochs."""
        leader, leads = state.get("leader"), "isr" in state
        ends, broker_epochs = fields(state.get("follower_end")), fields(state.get("follower_broker_epoch"))
        follower_ends = [ends.get(str(b)) for b in ids]
        return cls(
            end=number(state.get("log_end"), -1),
            epochs=epochs,
            high_watermark=number(state.get("high_watermark"), -1),
            leader=leader if isinstance(leader, int) else None,
            leader_epoch=max(0, number(state.get("leader_epoch"), 1 << 29)),
            isr=_set(state.get("isr")),
            pending_isr=_set(state.get("pending_isr")),
            partition_epoch=number(state.get("partition_epoch"), -1) if leads else 0,
            follower_end=tuple(e if isinstance(e, int) else None for e in follower_ends),
            follower_broker_epoch=tuple(_epoch(broker_epochs.get(str(b), -1)) for b in ids),
            truncating=state.get("truncating") is True,
        )


@attrs.frozen
class ControllerState:
    """The controller's state of one partition and of its brokers: their sessions, shutdowns and broker epochs."""

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
        """The variables of the model."""
        return {
            "controller_leader": maybe_replica(ids, self.controller_leader),
            "controller_epoch": self.controller_epoch,
            "controller_partition_epoch": self.controller_partition_epoch,
            "controller_isr": replica_set(ids, self.controller_isr),
            "controller_elr": replica_set(ids, self.controller_elr),
            "last_known_leader": maybe_replica(ids, self.last_known_leader),
            "fenced": replica_set(ids, self.fenced),
            "shutting_down": replica_set(ids, self.shutting_down),
            "broker_epoch": self.broker_epoch,
        }

    @classmethod
    def from_model(cls, state: Mapping[str, object], ids: Sequence[int]) -> ControllerState:
        """The controller's part of a state of the model."""

        def one(name: str) -> int:
            return cast("int", state[name])

        return cls(
            controller_leader=ids[one("controller_leader") - 1] if one("controller_leader") else None,
            controller_epoch=one("controller_epoch"),
            controller_partition_epoch=one("controller_partition_epoch"),
            controller_isr=brokers_in(ids, one("controller_isr")),
            controller_elr=brokers_in(ids, one("controller_elr")),
            last_known_leader=ids[one("last_known_leader") - 1] if one("last_known_leader") else None,
            fenced=brokers_in(ids, one("fenced")),
            shutting_down=brokers_in(ids, one("shutting_down")),
            broker_epoch=cast("tuple[int, ...]", state["broker_epoch"]),
        )

    @classmethod
    def from_snapshot(cls, state: Fields, ids: Sequence[int]) -> ControllerState:
        """The state in a snapshot of the controller.

        Brokers that are no replicas are left out of the sets of brokers.
        """
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


def _epoch(value: Json) -> int:
    """A broker epoch; 0 for none, which a line has as -1."""
    return value if isinstance(value, int) and value > 0 else 0 if value == -1 else -1


def _set(value: Json) -> tuple[int, ...]:
    """A set of brokers in order; a value that is no list, and not null, equals no set."""
    return tuple(sorted(numbers(value))) if isinstance(value, list) else () if value is None else (-1,)


def controller_names(partition: Fields) -> Fields:
    """A partition in a Metadata message, under the names of the controller's variables."""
    named = {f"controller_{n}": partition.get(n) for n in ("leader", "partition_epoch", "isr", "elr")}
    return {
        **named,
        "controller_epoch": partition.get("leader_epoch"),
        "last_known_leader": partition.get("last_known_leader"),
    }


def found_on_disk(log: Sequence[Row], high_watermark: int, start: int = 0) -> ReplicaState:
    """A replica that has just opened this log, which begins at `start`."""
    return attrs.evolve(ReplicaState(end=start).with_batches(log), high_watermark=high_watermark)


def brokers_in(ids: Sequence[int], members: int) -> tuple[int, ...]:
    """The brokers in a set of the model."""
    return tuple(b for i, b in enumerate(ids) if members >> i & 1)


def differences_between(
    model: ReplicaState | ControllerState, line: ReplicaState | ControllerState
) -> dict[str, tuple[str, str]]:
    """The variables in which two states differ, each with the model's value and the line's."""
    differences: dict[str, tuple[str, str]] = {}
    for name in (f.name for f in attrs.fields(type(model))):
        one, other = getattr(model, name), getattr(line, name)
        if one != other:
            differences[name] = (str(one), str(other))
    return differences
