"""Registrations: what Kafka's controller made of a broker that registers, again or anew, and what mended it.

Four reports of ClusterControlManager.registerBroker and of what the controller does with a new incarnation. Each is a
small variation on the design of its time; which lines were read is said at each.
"""

from __future__ import annotations

import attrs

from isr_lang import NONE, Bool, Design, Set, Step, action, define, forall, initial, step
from isr_lang.blank import blank
from isr_model import KIP_966
from isr_protocol.designs.history import KRAFT_3_5
from isr_protocol.designs.wider_state import Amended
from isr_protocol.elections import available, last_hope
from isr_protocol.membership import elects, no_alter
from isr_protocol.promises.committed_log import implements_committed_log
from isr_protocol.promises.safety import (
    acked_survives,
    committed_on_new_leader,
    elected_is_available,
    fenced_out_of_isr,
    leaders_complete,
    no_divergence,
    strong_isr,
)
from isr_protocol.state import RESTARTS, Replica, State

# The same incarnation registers again: its registration lacks the log directories that the controller wants to know
# since metadata version 3.7-IV2 (KIP-858).


@initial
def none_amended(new: Amended) -> Step:
    """No registration names directories."""
    return (new.amended == blank(new.amended),)


def registers_again(old: Amended, new: Amended, r: Replica) -> Step:
    """A broker that runs, and has a session, sends its registration again, once."""
    return (old.alive.has(r), ~(old.fenced | old.amended).has(r), new.amended == old.amended.including(r))


@action
def broker_registers_again_fenced(old: Amended, new: Amended, r: Replica) -> Step:
    """The registration is taken for a new one: the broker is fenced, and no partition hears of it.

    ClusterControlManager.registerBroker (3.7.0, read): the record's `fenced` keeps its default, true, and no
    PartitionChangeRecord goes with it.
    """
    return (*registers_again(old, new, r), new.fenced == old.fenced.including(r))


@action
def broker_registers_again_in_new_epoch(old: Amended, new: Amended, r: Replica) -> Step:
    """The broker keeps its session, and gets a new broker epoch, as if its process had started again.

    ClusterControlManager.registerBroker (3.7.1 and 3.8.0, read): `setBrokerEpoch(brokerEpoch)` whoever registers.
    """
    return (
        *registers_again(old, new, r),
        old.broker_epoch[r] < RESTARTS,
        new.broker_epoch[r] == old.broker_epoch[r] + 1,
    )


@action
def broker_registers_again_unchanged(old: Amended, new: Amended, r: Replica) -> Step:
    """The broker keeps session and broker epoch: the controller amends the registration that it has.

    ClusterControlManager.registerBroker (3.9.0, read): "Amending registration of broker".
    """
    return registers_again(old, new, r)


@action
def epochs_suffice(old: Amended, new: Amended, r: Replica) -> Step:
    """Taken where a broker restarts: the bound leaves one more broker epoch."""
    return (old.broker_epoch[r] < RESTARTS,)


@step
def incarnation_keeps_epoch(old: State, new: State) -> Bool:
    """The broker epoch of a process that goes on does not change: it numbers incarnations (KIP-380, KIP-903)."""
    return forall(
        (old.alive & new.alive).has(r).implies(old.broker_epoch[r] == new.broker_epoch[r]) for r in Replica.all()
    )


def _registers_again() -> Design:
    wider = KRAFT_3_5.in_state(Amended, none_amended).extending(broker_restarts=epochs_suffice)
    return wider.promising(incarnation_keeps_epoch).with_defaults(replicas=2, epochs=2, isr_changes=4)


KAFKA_16757 = (
    _registers_again()
    .replacing(
        "kafka-16757",
        "kraft-3.5 where a broker that registers again is fenced, and its partitions are left as they are",
        because="Kafka 3.7.0 took a registration that was sent again for that of a new process.",
    )
    .adding(broker_registers_again_fenced)
    .failing("a fenced broker leads, and stays in the ISR beside others", fenced_out_of_isr)
)

KAFKA_16952 = (
    _registers_again()
    .replacing(
        "kafka-16952",
        "kraft-3.5 where a broker that registers again gets a new broker epoch",
        because="Kafka 3.7.1 and 3.8 kept its session, and still counted it as another incarnation.",
    )
    .adding(broker_registers_again_in_new_epoch)
    .failing("the broker epoch changes while the process goes on", incarnation_keeps_epoch)
)

REGISTRATION_AMENDED = (
    _registers_again()
    .replacing(
        "registration-amended",
        "kraft-3.5 where a broker that registers again keeps its session and its broker epoch",
        because="Kafka does so since 3.9 (KAFKA-16757, KAFKA-16952): the same incarnation is the same process.",
    )
    .adding(broker_registers_again_unchanged)
)


# A new incarnation registers.


@action
def broker_replaces_registration(old: State, new: State, r: Replica) -> Step:
    """A broker is back after its session has run out, and before the controller has fenced it.

    The new registration is fenced, and so nothing is left to be fenced: the partition keeps leader, ISR and epochs.
    ClusterControlManager.registerBroker refuses another incarnation only while heartbeatManager.hasValidSession;
    ReplicationControlManager.handleBrokerUncleanShutdown returns at once without ELR (3.9.0, both read).
    """
    return (
        ~old.alive.has(r),
        ~old.fenced.has(r),
        new.alive == old.alive.including(r),
        new.fenced == old.fenced.including(r),
        new.broker_epoch[r] == old.broker_epoch[r] + 1,
        *no_alter(new, r),
    )


KAFKA_18106 = (
    KRAFT_3_5.replacing(
        "kafka-18106",
        "kraft-3.5 where a broker that is back before it was fenced keeps leadership and membership, in the same epoch",
        because="Kafka before 4.0 fenced the new registration, and left the partitions as they were.",
    )
    .adding(broker_replaces_registration)
    .with_defaults(replicas=2, records=2, crashes=0, lossy_crashes=1, epochs=2, isr_changes=3)
    .failing(
        "who lost unflushed records leads on in its old epoch",
        acked_survives,
        committed_on_new_leader,
        fenced_out_of_isr,
        implements_committed_log,
        leaders_complete,
        no_divergence,
        strong_isr,
    )
)


@define
def always_struck(s: State, r: Replica) -> Bool:
    """(6) The controller strikes every returning replica, whatever mark it left."""
    return (s.controller_isr | s.controller_elr).has(r)


@step
def clean_shutdown_keeps_membership(old: State, new: State) -> Bool:
    """Who comes back with the mark of a clean shutdown stays in the ISR or ELR in which it was (KIP-966)."""
    return forall(
        (
            (old.clean_shutdown & (old.controller_isr | old.controller_elr) & new.alive).has(r) & ~old.alive.has(r)
        ).implies((new.controller_isr | new.controller_elr).has(r))
        for r in Replica.all()
    )


CLEAN_SHUTDOWN_KEPT = (
    attrs.evolve(
        KIP_966,
        name="clean-shutdown-kept",
        summary="KIP-966, with what it promises to a broker that shuts down in order",
        because="the same protocol as kip-966, as Kafka has it since KAFKA-18635.",
        based_on=KIP_966,
    )
    .promising(clean_shutdown_keeps_membership)
    .with_defaults(replicas=2, crashes=0, lossy_crashes=1, shutdowns=1, epochs=2, isr_changes=5)
)

KAFKA_18635 = CLEAN_SHUTDOWN_KEPT.replacing(
    "kafka-18635",
    "clean-shutdown-kept where every new incarnation counts as an unclean shutdown",
    because="before KAFKA-18635 the controller did not look at the broker epoch of the clean shutdown file.",
    struck=always_struck,
).failing(
    "a member that shut down in order is struck, and who led last and lost its disk's tail leads again",
    acked_survives,
    committed_on_new_leader,
    leaders_complete,
    clean_shutdown_keeps_membership,
)


@action
def controller_elects_absent_last_leader(old: State, new: State, r: Replica) -> Step:
    """Nobody is eligible, so the replica that led last leads again, while it is fenced or shutting down.

    PartitionChangeBuilder.canElectLastKnownLeader asked isAcceptableLeader the wrong way round, and only to log it
    (3.9.0, read; 4.0.0 and 4.0.1, byte code). Kafka does it in the record that empties the ELR, or in the next one.
    """
    return (
        ~available(old, r),
        old.controller_leader == NONE,
        last_hope(old, r),
        *elects(old, new, r, Set.of(r), blank(old.controller_elr)),
    )


KAFKA_19522 = (
    KIP_966.replacing(
        "kafka-19522",
        "KIP-966 where who led last is elected, be it there or not",
        because="before 4.1 Kafka did not ask whether the last known leader is acceptable.",
    )
    .adding(controller_elects_absent_last_leader)
    .with_defaults(replicas=2, min_insync=1, sessions_lost=1, epochs=2, isr_changes=4)
    .failing("a fenced broker is elected", elected_is_available)
)

DESIGNS = (KAFKA_16757, KAFKA_16952, REGISTRATION_AMENDED, KAFKA_18106, KAFKA_18635, CLEAN_SHUTDOWN_KEPT, KAFKA_19522)
