"""Which replica a consumer should read from (KIP-392): one in its own rack, if the setting says so.

RackAwareReplicaSelector, and ReplicaManager.findPreferredReadReplica, which asks it on the leader only.
"""

from __future__ import annotations

from isr_broker.core.messages import BrokerId, Offset
from isr_broker.core.node_state import Node
from isr_broker.core.replica_state import Leading, Replica
from isr_broker.settings import RACK_AWARE


def preferred_read_replica(node: Node, replica: Replica, rack: str, offset: Offset) -> BrokerId | None:
    """The follower that a consumer of this rack is sent to; None to stay, at a follower or at its own rack's leader.

    In sync, with a session, and with the offset: of several the one whose log is longest.
    """
    state = replica.role
    if not isinstance(state, Leading) or not rack or node.settings.replica_selector_class != RACK_AWARE:
        return None
    here = {b for b, broker in node.brokers.items() if broker.rack == rack and not broker.fenced}
    if replica.me in here:
        return None
    ends = {b: f.end for b, f in state.followers.items() if b in here & state.isr and f.end is not None}
    able = sorted((end, b) for b, end in ends.items() if replica.log.start <= offset <= end)
    return able[-1][1] if able else None
