"""Metadata as they come: a broker applies a version that is not the newest any more. In the designs of `releases`.

Elsewhere a broker that learns something learns what is newest. Kafka's brokers read the metadata log in order, each at
its own pace. What one of them publishes at a time is an image: all records up to some offset (MetadataBatchLoader,
MetadataLoader.handleCommit, BrokerMetadataPublisher.onMetadataUpdate, 4.3.1). So it may lead or follow by an image of
which the leader epoch, the ISR, the replicas or min.insync.replicas are replaced by then.

One image at a time is delayed. Whoever lived then and has yet to apply something of it may do so while there are newer
ones, or skip it. The steps are those of `metadata` and of the release itself, read over the image.

A broker that starts does not: MetadataLoader.initializeNewPublishers publishes nothing before it has caught up with
the end of the log.
"""

from __future__ import annotations

import attrs

from isr_lang import (
    NONE,
    Action,
    Bool,
    Design,
    Guard,
    Maybe,
    Number,
    Set,
    Step,
    Update,
    action,
    bound,
    define,
    var,
    when,
)
from isr_lang.blank import blank
from isr_lang.quantify import rename_apart
from isr_lang.refine import Reading
from isr_protocol.designs.wider_state import Minimum, Operating
from isr_protocol.metadata import away, behind
from isr_protocol.state import OWN_VIEW, LeaderEpoch, PartitionEpoch, Replica, leads, log_end

OLD_METADATA = bound(
    "old_metadata",
    "images of the metadata that brokers apply when there are newer ones",
    default=0,
    high=2,
    budget=True,
)


class OldMetadata(Number, high=OLD_METADATA):
    """How many images were delayed."""


class WithImage(Operating):
    """The state where some brokers have yet to apply an image of the metadata; blank where none has."""

    image_readers: Set[Replica] = var("brokers that have yet to apply something of the image", when=OLD_METADATA > 0)
    image_leader: Maybe[Replica] = var("who leads by the image", when=OLD_METADATA > 0)
    image_epoch: LeaderEpoch = var("its leader epoch", when=OLD_METADATA > 0)
    image_version: PartitionEpoch = var("its partition epoch", when=OLD_METADATA > 0)
    image_isr: Set[Replica] = var("its ISR", when=OLD_METADATA > 0)
    image_replicas: Set[Replica] = var("its replicas", when=OLD_METADATA > 0)
    image_minimum: Minimum = var("its min.insync.replicas", when=OLD_METADATA > 0)
    image_away: Set[Replica] = var("whom it calls fenced or shutting down", when=(OLD_METADATA > 0) & OWN_VIEW)
    old_metadata: OldMetadata = var("images so far that were delayed", when=OLD_METADATA > 0)


def no_image(new: WithImage) -> Step:
    """Nobody is late."""
    return (
        new.image_readers == blank(new.image_readers),
        new.image_leader == NONE,
        new.image_epoch == 0,
        new.image_version == 0,
        new.image_isr == blank(new.image_isr),
        new.image_replicas == blank(new.image_replicas),
        new.image_minimum == 0,
        new.image_away == blank(new.image_away),
        new.old_metadata == 0,
    )


@define
def has_to_apply(s: WithImage, r: Replica) -> Bool:
    """The newest metadata bring the broker something: another leader, version or minimum, or an end to its replica."""
    version = s.partition_epoch[r] < s.controller_partition_epoch
    partition = behind(s, r) | (leads(s, r) & (version | s.ahead.has(r))) | (s.own_minimum[r] != s.minimum)
    replica = (s.leader[r] != NONE) | (log_end(s, r) > 0)
    return s.alive.has(r) & when(s.replicas.has(r), partition, replica)


@action
def image_is_delayed(old: WithImage, new: WithImage) -> Step:
    """Some brokers have yet to apply the newest metadata, and may do so when there are newer ones."""
    readers = Replica.all().where(lambda r: has_to_apply(old, r))
    return (
        old.old_metadata < OLD_METADATA,
        ~readers.is_empty(),
        old.image_readers.is_empty() | (old.image_version < old.controller_partition_epoch),
        new.image_readers == readers,
        new.image_leader == old.controller_leader,
        new.image_epoch == old.controller_epoch,
        new.image_version == old.controller_partition_epoch,
        new.image_isr == old.controller_isr,
        new.image_replicas == old.replicas,
        new.image_minimum == old.minimum,
        new.image_away == away(old),
        new.old_metadata == old.old_metadata + 1,
    )


def passes_image(old: WithImage, new: WithImage, r: Replica) -> Step:
    """The broker will not apply the image, or not again; it is blank once nobody will."""
    readers = old.image_readers.excluding(r)
    over = readers.is_empty()
    return (
        new.image_readers == readers,
        new.image_leader == when(over, blank(old.image_leader), old.image_leader),
        new.image_epoch == when(over, blank(old.image_epoch), old.image_epoch),
        new.image_version == when(over, blank(old.image_version), old.image_version),
        new.image_isr == when(over, blank(old.image_isr), old.image_isr),
        new.image_replicas == when(over, blank(old.image_replicas), old.image_replicas),
        new.image_minimum == when(over, blank(old.image_minimum), old.image_minimum),
        new.image_away == when(over, blank(old.image_away), old.image_away),
    )


@action
def has_passed_image(old: WithImage, new: WithImage, r: Replica) -> Step:
    """Taken where a broker applies newer metadata, or stops."""
    return passes_image(old, new, r)


@action
def leader_has_passed_image(old: WithImage, new: WithImage, leader: Replica) -> Step:
    """The same, of a leader."""
    return passes_image(old, new, leader)


@define
def is_old_to(s: WithImage, r: Replica) -> Bool:
    """The broker has yet to apply the image, and there is a newer version of the partition."""
    return s.image_readers.has(r) & (s.image_version < s.controller_partition_epoch)


@action
def applies_old_image(old: WithImage, new: WithImage, r: Replica) -> Step:
    """Taken with what a broker does by the image."""
    return (is_old_to(old, r),)


@action
def leader_applies_old_image(old: WithImage, new: WithImage, leader: Replica) -> Step:
    """The same, of a leader."""
    return (is_old_to(old, leader),)


NEWS = {
    "becomes_leader": "becomes_replaced_leader",
    "becomes_follower": "becomes_follower_of_old_image",
    "leader_learns_isr": "leader_learns_old_isr",
    "replica_is_deleted": "replica_is_deleted_by_old_image",
    "broker_learns_minimum": "broker_learns_old_minimum",
    "leader_hears_known_version": "leader_hears_known_version_of_old_image",
}
"""What a broker does with the newest metadata -> the name of the same, done with an image that is old."""


def _over_image(news: Action) -> Action:
    """The action of a broker that learns what is newest, read over the image."""
    old = WithImage()
    away_by_image = old.image_away.node
    images = {
        "controller_leader": old.image_leader.node,
        "controller_epoch": old.image_epoch.node,
        "controller_partition_epoch": old.image_version.node,
        "controller_isr": old.image_isr.node,
        "replicas": old.image_replicas.node,
        "minimum": old.image_minimum.node,
        "fenced": away_by_image,
        "shutting_down": away_by_image,
    }
    reading = Reading({(name, False): image for name, image in images.items()})
    guards = tuple(Guard(reading.node(g.condition), g.where) for g in news.guards)
    updates = tuple(Update(u.variable, tuple(map(reading.node, u.path)), reading.node(u.value)) for u in news.updates)
    parameters = frozenset(name for name, _ in news.parameters)
    for node in (*(g.condition for g in guards), *(n for u in updates for n in (*u.path, u.value))):
        rename_apart(node, parameters)
    doc = f"By metadata that are not the newest any more: {news.doc[0].lower()}{news.doc[1:]}"
    return attrs.evolve(news, name=NEWS[news.name], doc=doc, guards=guards, updates=updates)


def with_old_metadata(design: Design) -> Design:
    """The design where brokers may apply an image that is old; it is called last, for it reads the design's actions.

    What was made of them before is made anew.
    """
    rest = tuple(a for a in design.actions if a.name not in NEWS.values())
    late = tuple(_over_image(a) for a in rest if a.name in NEWS)
    more = {a.name: leader_applies_old_image if dict(a.parameters).get("leader") else applies_old_image for a in late}
    return attrs.evolve(design, actions=(*rest, *late)).extending(**more)
