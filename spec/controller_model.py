"""The controller on top of its quorum: the design `kraft-controllers`, a partition whose controller is no single node.

Several controllers have a replicated log (`kraft_protocol.abstract_quorum`, the quorum without its messages). Whoever
leads, and has committed a record of its epoch, is active: it decides as the one controller of `isr_model` does, on what
it has replayed, and appends. Brokers hear of what is committed, and a leader's AlterPartition is answered then. Who is
deposed reverts what was not committed. The brokers' side is that of `isr_model`, action for action.

Its parts are in `controller_protocol`: `state` (what there is), `metadata` (what a record says), `logs` (the quorum),
`decisions` (what a controller decides).

Not modelled: what `isr_model` and `abstract_quorum` leave out, controlled shutdown, observers (a broker that has
applied what the quorum then forgot), and a copy of a request that arrives beside another copy.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from controller_protocol.decisions import DECISIONS, broker_starts, controller_registers, leader_asks_again
from controller_protocol.logs import (
    controller_commits,
    controller_forgets,
    controller_is_elected,
    follower_copies_log,
    leader_begins_term,
)
from controller_protocol.promises import PROMISES, REACHABLE
from controller_protocol.state import State, controllers_agree
from isr_lang import Design, assume
from isr_protocol.faults import broker_crashes, broker_loses_power
from isr_protocol.membership import (
    leader_adopts_isr,
    leader_proposes_expansion,
    leader_proposes_shrink,
    leader_rolls_back,
)
from isr_protocol.metadata import becomes_follower, becomes_leader, leader_learns_isr
from isr_protocol.replication import (
    follower_appends,
    follower_sends_fetch,
    follower_truncates,
    leader_answers_diverging,
    leader_answers_fetch,
    leader_appends,
)
from isr_protocol.state import MIN_INSYNC, REPLICAS, SHUTDOWNS, healthy

KRAFT_CONTROLLERS = Design(
    "kraft-controllers",
    "A partition whose controllers are a quorum",
    State,
    attrs.evolve(controllers_agree, updates=(*healthy.updates, *controllers_agree.updates)),
    (
        leader_appends,
        follower_sends_fetch,
        leader_answers_fetch,
        leader_answers_diverging,
        follower_appends,
        follower_truncates,
        leader_proposes_shrink,
        leader_proposes_expansion,
        leader_asks_again,
        leader_adopts_isr,
        leader_rolls_back,
        becomes_leader,
        becomes_follower,
        leader_learns_isr,
        *DECISIONS,
        controller_registers,
        controller_is_elected,
        leader_begins_term,
        follower_copies_log,
        controller_commits,
        controller_forgets,
        broker_crashes,
        broker_loses_power,
        broker_starts,
    ),
    (*PROMISES, *REACHABLE),
    defaults={
        "voters": 3,
        "replicas": 2,
        "min_insync": 1,
        "crashes": 0,
        "epochs": 2,
        "log": 2,
        "records": 2,
        "metadata_log": 4,
        "isr_changes": 3,
    },
    assumptions=(
        assume(MIN_INSYNC <= REPLICAS, otherwise="--min-insync is above --replicas: no write could succeed"),
        assume(SHUTDOWNS == 0, otherwise="--shutdowns: controlled shutdown is not in this model"),
    ),
)

ONE_CRASH: Mapping[str, int] = {"crashes": 1, "epochs": 1, "log": 1, "records": 1, "metadata_log": 4, "isr_changes": 2}
"""Bounds for designs that are about a broker which crashes and returns: one record, and one change of the leader."""

DESIGNS = (KRAFT_CONTROLLERS,)
