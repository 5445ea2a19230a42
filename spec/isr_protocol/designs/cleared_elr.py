"""min.insync.replicas of one broker alone, and an ELR that is cleared when the number is set: two reports, and mends.

Beside isr_protocol.designs.raised_minimum, where the number is the same for all and each learns it at its own pace.
"""

from __future__ import annotations

import attrs

from isr_lang import NONE, Bool, Design, Set, Step, action, always, define
from isr_lang.blank import blank
from isr_model import KIP_966
from isr_protocol.designs.raised_minimum import (
    MINIMUM_IN_NEW_VERSION,
    enough_by_own,
    keeps_elr_below_minimum,
    may_advance_by_own,
    set_everywhere,
)
from isr_protocol.designs.wider_state import Adjusted, Minimum
from isr_protocol.promises.safety import (
    acked_survives,
    acks_meet_minimum,
    committed_on_new_leader,
    leaders_complete,
    maximal_isr_covers,
    strong_isr,
)
from isr_protocol.state import ISR_CHANGES, Replica, State

# A broker with a number of its own.


@action
def broker_overrides_minimum(old: Adjusted, new: Adjusted, r: Replica, value: Minimum) -> Step:
    """Somebody sets min.insync.replicas of one broker: its logs go by it, and the controller does not."""
    return (old.alive.has(r), value > 0, value != old.own_minimum[r], new.own_minimum[r] == value)


@define
def enough_by_own_on_news(s: Adjusted, leader: Replica, members: Set[Replica]) -> Bool:
    """The same number in the step in which a leader learns newer metadata."""
    return enough_by_own(s, leader, members)


@define
def may_advance_by_own_on_news(s: Adjusted, leader: Replica, isr: Set[Replica]) -> Bool:
    """(2) The watermark is held by that number, too."""
    return enough_by_own(s, leader, isr)


def _with_own_settings() -> Design:
    wider = KIP_966.in_state(Adjusted, set_everywhere)
    # It speaks of one number, and the producer is promised the leader's.
    return attrs.evolve(wider, properties=tuple(p for p in wider.properties if p.name != acks_meet_minimum.name))


KAFKA_16540 = (
    _with_own_settings()
    .replacing(
        "kafka-16540",
        "KIP-966 where a broker may have a min.insync.replicas of its own",
        because="before Kafka 4.0 ELR and a broker's own min.insync.replicas did not exclude each other.",
        enough=enough_by_own,
        may_advance=may_advance_by_own,
        enough_on_news=enough_by_own_on_news,
        may_advance_on_news=may_advance_by_own_on_news,
    )
    .adding(broker_overrides_minimum)
    .with_defaults(replicas=2, crashes=0, sessions_lost=2, epochs=1, isr_changes=3)
    .failing(
        "a leader commits alone by its own number, while the controller keeps an ELR by another",
        acked_survives,
        committed_on_new_leader,
        leaders_complete,
        maximal_isr_covers,
        strong_isr,
    )
)

# The ELR, when the number is set.


@always
def somebody_is_awaited(s: State) -> Bool:
    """A partition without a leader waits for somebody: of the ISR, of the ELR, or who led last.

    Else no return of any broker ends it, whatever is on the disks; only an unclean election does.
    PartitionChangeBuilder.electAnyLeader.
    """
    waits = ~(s.controller_isr | s.controller_elr).is_empty() | (s.last_known_leader != NONE)
    return (s.controller_leader == NONE).implies(waits)


@action
def controller_sets_minimum_and_clears(old: Adjusted, new: Adjusted, value: Minimum) -> Step:
    """Somebody sets min.insync.replicas, if only to what it is: no ELR is left, and no last leader.

    Whatever the ISR is: ConfigurationControlManager.createClearElrRecordsAsNeeded and incrementalAlterConfigResource,
    by which the cluster's value need not be another one, ReplicationControlManager.removeTopicElrs (4.3.1, read).
    """
    return (
        value > 0,
        old.controller_partition_epoch < ISR_CHANGES,
        (value != old.minimum) | ~old.controller_elr.is_empty(),
        new.minimum == value,
        new.controller_elr == blank(old.controller_elr),
        new.last_known_leader == NONE,
        new.controller_partition_epoch == old.controller_partition_epoch + 1,
    )


_AWAITING = MINIMUM_IN_NEW_VERSION.promising(somebody_is_awaited)

KAFKA_CLEARED_ELR = (
    _AWAITING.replacing(
        "kafka-cleared-elr",
        "minimum-in-new-version where an ELR is cleared beside an empty ISR, as Kafka's code does",
        because="whoever sets min.insync.replicas leaves nobody for whom the partition could wait.",
        controller_sets_minimum=controller_sets_minimum_and_clears,
    )
    .with_defaults(isr_changes=3)
    .failing("a partition without a leader waits for nobody", somebody_is_awaited)
)

ELR_KEPT_BELOW_MINIMUM = _AWAITING.replacing(
    "elr-kept-below-minimum",
    "minimum-in-new-version where the ELR stays while the ISR is under the new min.insync.replicas: proposed here",
    because="below the minimum nothing commits, so who was complete stays complete.",
    keeps_elr=keeps_elr_below_minimum,
).with_defaults(isr_changes=4)

DESIGNS = (KAFKA_16540, KAFKA_CLEARED_ELR, ELR_KEPT_BELOW_MINIMUM)
