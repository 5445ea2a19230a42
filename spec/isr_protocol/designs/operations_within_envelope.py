"""What people do to a cluster while unclean stops lose records and brokers get empty disks, in KIP-966's envelope.

In no list: `--design-file` names it (docs/proof.md). `unclean_stops` has the envelope for a cluster at rest. Here a
reassignment may leave fewer replicas than min.insync.replicas, and the minimum changes. So at any time fewer brokers
are down than an acknowledgement has taken logs. Whoever removes replicas, or sets the minimum, keeps to that, too, and
leaves a member that is up. An empty disk is put into a broker that is down, or makes it one.
"""

from __future__ import annotations

from collections.abc import Mapping

from isr_lang import Action, Bool, Set, Step, action, define, exists
from isr_protocol.designs.releases import KAFKA_4_4_MENDED, Operations, smaller_minimum, target_of
from isr_protocol.designs.unclean_stops import down, keeps_to_envelope
from isr_protocol.designs.wider_state import Minimum
from isr_protocol.state import Replica


@define
def few_down_of_least(s: Operations, r: Replica) -> Bool:
    """With this one, fewer brokers are down than an acknowledgement has ever taken logs."""
    return down(s).including(r).size() < s.least


def leaves_envelope(old: Operations, isr: Set[Replica], replicas: Set[Replica]) -> Step:
    """With this ISR and this assignment a member is up, and fewer brokers are down than there will be logs."""
    return (
        exists((isr - down(old)).has(q) for q in Replica.all()),
        down(old).size() < smaller_minimum(old.minimum, replicas),
    )


@action
def reassigns_within_envelope(old: Operations, new: Operations, target: Set[Replica]) -> Step:
    """Taken where a reassignment is complete at once."""
    replicas, _, removing = target_of(old, target)
    return leaves_envelope(old, old.controller_isr - removing, replicas - removing)


@action
def cancels_within_envelope(old: Operations, new: Operations) -> Step:
    """Taken where a reassignment is cancelled."""
    return leaves_envelope(old, old.controller_isr - old.adding, old.replicas - old.adding)


@action
def completes_within_envelope(old: Operations, new: Operations, leader: Replica) -> Step:
    """Taken where a proposal completes a reassignment."""
    return leaves_envelope(old, old.alter_isr[leader] - old.removing, old.replicas - old.removing)


@action
def minimum_within_envelope(old: Operations, new: Operations, value: Minimum) -> Step:
    """Taken where min.insync.replicas is set."""
    return (down(old).size() < smaller_minimum(value, old.replicas),)


CONDITIONS: Mapping[str, Action] = {
    "broker_crashes": keeps_to_envelope,
    "broker_loses_power": keeps_to_envelope,
    "disk_is_replaced": keeps_to_envelope,
    "directory_is_removed": keeps_to_envelope,
    "controller_reassigns_at_once": reassigns_within_envelope,
    "controller_cancels_reassignment": cancels_within_envelope,
    "controller_accepts_and_completes": completes_within_envelope,
    "controller_sets_minimum": minimum_within_envelope,
}
"""What is asked of each of these actions."""

KAFKA_4_4_MENDED_WITHIN_ENVELOPE = (
    KAFKA_4_4_MENDED.extending(**CONDITIONS)
    .replacing(
        "kafka-4.4-mended-within-envelope",
        "kafka-4.4-mended where an unclean stop leaves a member of ISR or ELR, and few are down at once",
        because="these are the unclean stops and empty disks by which it loses nothing.",
        few_down=few_down_of_least,
    )
    .with_defaults(reassignments=1, lossy_crashes=1, disks_replaced=1, isr_changes=6, log=1, records=1)
)
