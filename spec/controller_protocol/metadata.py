"""Metadata as values: what a record says, what is committed, and how an action writes either."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, cast

import attrs

from controller_protocol.state import State, last
from isr_lang import Map, Maybe, Node, Set, Step
from isr_lang.blank import blank
from isr_lang.expr import Expr, wrap
from isr_protocol.state import BrokerEpoch, LeaderEpoch, PartitionEpoch, Replica
from kraft_protocol.abstract_quorum import Position
from kraft_protocol.state import Voter

V = TypeVar("V", bound=Expr)


@attrs.frozen
class Metadata:
    """The partition and the registrations of its brokers, as the controllers have them."""

    leader: Maybe[Replica]
    epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    isr: Set[Replica]
    elr: Set[Replica]
    last_leader: Maybe[Replica]
    fenced: Set[Replica]
    registration: Map[Replica, BrokerEpoch]


VARIABLES = {
    "controller_leader": "leader",
    "controller_epoch": "epoch",
    "controller_partition_epoch": "partition_epoch",
    "controller_isr": "isr",
    "controller_elr": "elr",
    "last_known_leader": "last_leader",
    "fenced": "fenced",
    "broker_epoch": "registration",
}
"""The variables with which a partition's model says what its one controller knows -> the part of the metadata."""


def record_of(s: State, c: Voter, o: Position) -> Metadata:
    """What the record at this position of a voter's log says."""
    return Metadata(
        s.record_leader[c][o],
        s.record_epoch[c][o],
        s.record_partition_epoch[c][o],
        s.record_isr[c][o],
        s.record_elr[c][o],
        s.record_last_leader[c][o],
        s.record_fenced[c][o],
        s.record_registration[c][o],
    )


def with_parts(m: Metadata, parts: Mapping[str, Node]) -> Metadata:
    """The metadata with other values of these parts, by name."""

    def part(name: str, value: V) -> V:
        return cast("V", wrap(parts[name])) if name in parts else value

    return Metadata(
        part("leader", m.leader),
        part("epoch", m.epoch),
        part("partition_epoch", m.partition_epoch),
        part("isr", m.isr),
        part("elr", m.elr),
        part("last_leader", m.last_leader),
        part("fenced", m.fenced),
        part("registration", m.registration),
    )


def replayed_metadata(s: State, c: Voter) -> Metadata:
    """What a controller that has replayed its whole log knows."""
    return record_of(s, c, last(s, c))


def records(new: State, c: Voter, o: Position, m: Metadata) -> Step:
    """The record at this position of a voter's log says this."""
    return (
        new.record_leader[c][o] == m.leader,
        new.record_epoch[c][o] == m.epoch,
        new.record_partition_epoch[c][o] == m.partition_epoch,
        new.record_isr[c][o] == m.isr,
        new.record_elr[c][o] == m.elr,
        new.record_last_leader[c][o] == m.last_leader,
        new.record_fenced[c][o] == m.fenced,
        new.record_registration[c][o] == m.registration,
    )


def is_published(new: State, m: Metadata) -> Step:
    """This is what brokers hear from now on."""
    return (
        new.controller_leader == m.leader,
        new.controller_epoch == m.epoch,
        new.controller_partition_epoch == m.partition_epoch,
        new.controller_isr == m.isr,
        new.controller_elr == m.elr,
        new.last_known_leader == m.last_leader,
        new.fenced == m.fenced,
        new.registration == m.registration,
    )


def copies_records(old: State, new: State, f: Voter, v: Voter) -> Step:
    """The voter f has the records of v."""
    return (
        new.record_leader[f] == old.record_leader[v],
        new.record_epoch[f] == old.record_epoch[v],
        new.record_partition_epoch[f] == old.record_partition_epoch[v],
        new.record_isr[f] == old.record_isr[v],
        new.record_elr[f] == old.record_elr[v],
        new.record_last_leader[f] == old.record_last_leader[v],
        new.record_fenced[f] == old.record_fenced[v],
        new.record_registration[f] == old.record_registration[v],
    )


def has_no_records(old: State, new: State, r: Voter) -> Step:
    """The voter has none."""
    return (
        new.record_leader[r] == blank(old.record_leader[r]),
        new.record_epoch[r] == blank(old.record_epoch[r]),
        new.record_partition_epoch[r] == blank(old.record_partition_epoch[r]),
        new.record_isr[r] == blank(old.record_isr[r]),
        new.record_elr[r] == blank(old.record_elr[r]),
        new.record_last_leader[r] == blank(old.record_last_leader[r]),
        new.record_fenced[r] == blank(old.record_fenced[r]),
        new.record_registration[r] == blank(old.record_registration[r]),
    )
