"""The protocol as Kafka has it today: the design `kip-966`, on which every other design is a variation.

Its parts are in `isr_protocol`, each file a page, in reading order: `state` (what there is), `replication` (append,
fetch, commit), `membership` (AlterPartition), `metadata` (what brokers learn), `elections` (sessions, leaders),
`faults` (crashes, returns, readers). What is promised is in `isr_protocol/promises/`; what today's design replaced,
what was found in it, and what is proposed instead is in `isr_protocol/designs/`.

One action is one input of one core: a message delivered, a timer fired, a request of a client, a step of the
controller, a fault (the one exception is a restart, which is also its registration). Not modelled: reassignment (but
see `designs.removed_replica`), transactions, log compaction and retention, KRaft's own consensus (the controller is one
reliable node), time (what a timer may do happens at any moment at which its condition holds), and lies.

Rules that re-implementations often miss, marked by their number where they act:
  (1) the high watermark is the smallest log end over the *maximal* in-sync set, not the committed one;
  (2) it is held while the committed in-sync set is under min.insync.replicas;
  (3) a fetch counts as an acknowledgement only in the leader's own epoch, and only if it does not diverge;
  (4) a follower joins only past the start of the leader's epoch, not merely at its watermark;
  (5) only INELIGIBLE_REPLICA (to older brokers OPERATION_NOT_ATTEMPTED) rolls a pending in-sync set back, for it alone
      says that the request was not and will not be applied; any other fate keeps the larger set until metadata comes
      (and it says so only of a request that was sent once: kafka-overtaken-request in `designs.leader_bugs`);
  (6) a returning replica without the mark of a clean shutdown is in no set from which a leader is chosen;
  (7) min.insync.replicas is asked before the append (of the committed set) and after it (of the maximal set).
"""

from __future__ import annotations

from isr_lang import Design, assume
from isr_protocol.elections import (
    controller_elects_last_known_leader,
    controller_elects_returned,
    controller_elects_unclean,
    controller_fences_follower,
    controller_fences_last_leader,
    controller_fences_leader,
    controller_fences_outsider,
    controller_moves_leadership,
    controller_unfences,
)
from isr_protocol.faults import (
    broker_asks_to_shut_down,
    broker_crashes,
    broker_loses_power,
    broker_restarts,
    broker_shuts_down,
    consumer_reads,
)
from isr_protocol.membership import (
    controller_accepts_alter_partition,
    controller_refuses_alter_partition,
    controller_rejects_stale_alter_partition,
    leader_adopts_isr,
    leader_proposes_expansion,
    leader_proposes_shrink,
    leader_rolls_back,
)
from isr_protocol.metadata import becomes_follower, becomes_leader, leader_learns_isr
from isr_protocol.promises.committed_log import implements_committed_log
from isr_protocol.promises.liveness import LIVENESS
from isr_protocol.promises.safety import REACHABLE, SAFETY
from isr_protocol.replication import (
    follower_appends,
    follower_sends_fetch,
    follower_truncates,
    leader_answers_diverging,
    leader_answers_fetch,
    leader_appends,
)
from isr_protocol.state import MIN_INSYNC, OWN_VIEW, REPLICAS, State, healthy

KIP_966 = Design(
    "kip-966",
    "Today's Kafka: KRaft with eligible leader replicas",
    State,
    healthy,
    (
        leader_appends,
        follower_sends_fetch,
        leader_answers_fetch,
        leader_answers_diverging,
        follower_appends,
        follower_truncates,
        leader_proposes_shrink,
        leader_proposes_expansion,
        controller_accepts_alter_partition,
        controller_refuses_alter_partition,
        controller_rejects_stale_alter_partition,
        leader_adopts_isr,
        leader_rolls_back,
        becomes_leader,
        becomes_follower,
        leader_learns_isr,
        controller_fences_outsider,
        controller_fences_follower,
        controller_fences_leader,
        controller_fences_last_leader,
        controller_unfences,
        controller_elects_returned,
        controller_elects_last_known_leader,
        controller_moves_leadership,
        controller_elects_unclean,
        broker_crashes,
        broker_loses_power,
        broker_asks_to_shut_down,
        broker_shuts_down,
        broker_restarts,
        consumer_reads,
    ),
    (*SAFETY, implements_committed_log, *REACHABLE, *LIVENESS),
    defaults={"min_insync": 2, "crashes": 1},
    assumptions=(
        assume(MIN_INSYNC <= REPLICAS, otherwise="--min-insync is above --replicas: no write could succeed"),
        assume(~OWN_VIEW, otherwise="--own-view on is for kafka-overtaken-request and what mends it"),
    ),
)

DESIGNS = (KIP_966,)
