"""What a controller decides: the controller's actions of a partition's model, each by some active controller.

`isr_protocol` states them for one controller. Here whoever is active takes them on what it has replayed, committed or
not, and appends what comes of it to its log. So each rule has one statement. What is not of the metadata, such as a
budget, changes at once.

Requests of leaders are accepted at once and answered at commit. What writes nothing is answered at once, and only where
nothing is pending. Kafka answers it when all is committed that was replayed before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import attrs

from controller_protocol.metadata import VARIABLES, Metadata, records, replayed_metadata, with_parts
from controller_protocol.state import State, has_nothing_pending, is_active
from isr_lang import NONE, Action, Bool, Guard, Node, Step, Update, action, define, when
from isr_lang.declare import as_update
from isr_lang.expr import wrap
from isr_lang.refine import Reading, put
from isr_protocol import elections, membership
from isr_protocol.membership import no_alter
from isr_protocol.state import ISR_CHANGES, Replica
from kraft_protocol.abstract_quorum import appends, end
from kraft_protocol.state import Voter

More = Callable[[State, State, Voter], Step]


def writes(old: State, new: State, c: Voter, m: Metadata) -> Step:
    """The controller is active, and appends a record after which the metadata are these."""
    return (is_active(old, c), *appends(old, new, c), *records(new, c, end(old, c), m))


def by_any_active(decision: Action, more: More | None = None, *, only_metadata: bool = False) -> Action:
    """The decision of one controller, taken by any active one on what it has replayed.

    `more`: what else its step has. `only_metadata`: of its updates those of the metadata alone.
    """
    old, new = State(), State(primed=True)
    c = cast("Voter", wrap(Node("parameter", (), "controller", Voter.type)))
    knowledge = replayed_metadata(old, c)
    images = {(variable, False): getattr(knowledge, part).node for variable, part in VARIABLES.items()}
    reading = Reading(images)
    parts: dict[str, Node] = {}
    updates: list[Update] = []
    for u in decision.updates:
        path, value = [reading.node(n) for n in u.path], reading.node(u.value)
        if u.variable in VARIABLES:
            parts[VARIABLES[u.variable]] = put(images[u.variable, False], path, value)
        elif not only_metadata:
            updates.append(Update(u.variable, tuple(path), value))
    step = writes(old, new, c, with_parts(knowledge, parts)) if parts else (is_active(old, c),)
    guards = [Guard(reading.node(g.condition), g.where) for g in decision.guards]
    for conjunct in (*step, *(more(old, new, c) if more is not None else ())):
        update = as_update(conjunct.node)
        if update is None:
            guards.append(Guard(conjunct.node, decision.where))
        else:
            updates.append(update)
    return attrs.evolve(
        decision,
        parameters=(("controller", Voter.type), *decision.parameters),
        guards=tuple(guards),
        updates=tuple(updates),
    )


# Requests of leaders

LEADER = cast("Replica", wrap(Node("parameter", (), "leader", Replica.type)))
"""The parameter of the decisions on an AlterPartition: whose it is."""


@define
def is_ahead(s: State, controller: Voter, leader: Replica) -> Bool:
    """The request knows a later epoch than the controller: that one is not active any more, and has not heard of it.

    NOT_CONTROLLER, upon which the broker asks another (ReplicationControlManager.validateAlterPartitionData,
    KAFKA-14154).
    """
    m = replayed_metadata(s, controller)
    return (s.alter_leader_epoch[leader] > m.epoch) | (s.alter_partition_epoch[leader] > m.partition_epoch)


@define
def may_be_asked(s: State, controller: Voter, leader: Replica) -> Bool:
    """No controller of a later epoch had the request.

    Otherwise a deposed one might refuse what the later one has accepted, and the leader would take it back. A broker
    finds its controller by the epoch of its Raft client, which only grows (RaftControllerNodeProvider).
    Partition.handleAlterPartitionError relies on that.
    """
    return s.alter_term[leader] <= s.term[controller]


def holds_request(old: State, new: State, c: Voter) -> Step:
    """Nobody has the request yet. This controller has it from now on, until its record is committed."""
    return (
        old.alter_holder[LEADER] == NONE,
        may_be_asked(old, c, LEADER),
        new.alter_holder[LEADER] == c,
        new.alter_end[LEADER] == end(old, c) + 1,
        new.alter_term[LEADER] == old.term[c],
    )


def answers_at_once(old: State, new: State, c: Voter) -> Step:
    """Nobody has the request, and this controller has nothing pending."""
    return (
        old.alter_holder[LEADER] == NONE,
        may_be_asked(old, c, LEADER),
        has_nothing_pending(old, c),
        new.alter_term[LEADER] == 0,
    )


def is_not_ahead(old: State, new: State, c: Voter) -> Step:
    return (*answers_at_once(old, new, c), ~is_ahead(old, c, LEADER))


@action
def leader_asks_again(old: State, new: State, leader: Replica) -> Step:
    """A leader's connection to a controller ends before it was answered, and it sends the same request again."""
    return (
        old.alter_holder[leader] != NONE,
        new.alter_holder[leader] == NONE,
        new.alter_end[leader] == 0,
    )


# Registration


@action
def controller_registers(old: State, new: State, controller: Voter, r: Replica) -> Step:
    """A stopped broker starts, and registers as a new incarnation with an active controller, which strikes it.

    ClusterControlManager.registerBroker, ReplicationControlManager.handleBrokerShutdown.
    """
    m = replayed_metadata(old, controller)
    strikes = (m.isr | m.elr).has(r) & ~old.clean_shutdown.has(r)
    next_epoch = when(strikes, m.partition_epoch + 1, m.partition_epoch)
    return (
        ~old.alive.has(r),
        m.fenced.has(r),
        m.registration[r] == old.broker_epoch[r],
        ~strikes | (m.partition_epoch < ISR_CHANGES),
        *writes(
            old,
            new,
            controller,
            attrs.evolve(
                m,
                isr=when(strikes, m.isr.excluding(r), m.isr),
                elr=when(strikes, m.elr.excluding(r), m.elr),
                partition_epoch=next_epoch,
                registration=m.registration.put(r, m.registration[r] + 1),
            ),
        ),
    )


@action
def broker_starts(old: State, new: State, r: Replica) -> Step:
    """A broker whose registration is committed is up, with the log that it finds on its disk.

    BrokerLifecycleManager, initialCatchUpFuture.
    """
    return (
        ~old.alive.has(r),
        old.registration[r] == old.broker_epoch[r] + 1,
        new.alive == old.alive.including(r),
        new.broker_epoch[r] == old.broker_epoch[r] + 1,
        new.clean_shutdown == old.clean_shutdown.excluding(r),
        *no_alter(new, r),
        new.alter_holder[r] == NONE,
        new.alter_end[r] == 0,
        new.alter_term[r] == 0,
    )


REQUESTS: Mapping[str, tuple[More, bool]] = {
    "controller_accepts_alter_partition": (holds_request, True),
    "controller_refuses_alter_partition": (answers_at_once, False),
    "controller_rejects_stale_alter_partition": (is_not_ahead, False),
}
"""The decisions on an AlterPartition by name: what else their step has, and whether it has of their updates only those
of the metadata."""


def decision_of_quorum(decision: Action) -> Action:
    """The decision of one controller, as a quorum of controllers takes it."""
    more, only_metadata = REQUESTS.get(decision.name, (None, False))
    return by_any_active(decision, more, only_metadata=only_metadata)


DECISIONS = tuple(
    map(
        decision_of_quorum,
        (
            membership.controller_accepts_alter_partition,
            membership.controller_refuses_alter_partition,
            membership.controller_rejects_stale_alter_partition,
            elections.controller_fences_outsider,
            elections.controller_fences_follower,
            elections.controller_fences_leader,
            elections.controller_fences_last_leader,
            elections.controller_unfences,
            elections.controller_elects_returned,
            elections.controller_elects_last_known_leader,
            elections.controller_moves_leadership,
        ),
    )
)
