"""What was reported of controllers on a quorum, and what mends it."""

from __future__ import annotations

from controller_model import KRAFT_CONTROLLERS, ONE_CRASH
from controller_protocol.promises import no_leader_is_stuck
from controller_protocol.state import State
from isr_lang import Bool, define
from isr_protocol.promises.safety import acked_survives
from isr_protocol.state import Replica
from kraft_protocol.state import Voter

# A controller loses its disk

STATIC_QUORUM = (
    KRAFT_CONTROLLERS.replacing(
        "kraft-controllers-static",
        "Controllers of a static quorum, one of which comes back with an empty disk",
        because="nothing tells the controller from the one that it was (KAFKA-14077).",
    )
    .with_defaults(**ONE_CRASH, lost_disks=1)
    .failing("a committed and answered change of the ISR is forgotten.", acked_survives)
)
DIRECTORY_IDS = KRAFT_CONTROLLERS.replacing(
    "kraft-controllers-853",
    "Controllers of a quorum with directory ids, one of which comes back with an empty disk",
    because="with kraft.version 1 a voter is its id and its directory (KIP-853).",
).with_defaults(lost_disks=1, dynamic=True)

# A controller that was deposed


@define
def never_ahead(s: State, controller: Voter, leader: Replica) -> Bool:
    """A request that does not fit is stale, whatever it knows."""
    return (s.alter_leader_epoch[leader] < 0) | (s.term[controller] < 0)


STALE_CONTROLLER = KRAFT_CONTROLLERS.replacing(
    "kafka-14154",
    "Controllers that answer FENCED_LEADER_EPOCH to a leader that knows more than they",
    because="a controller that was deposed took itself for the one that knows more (KAFKA-14154).",
    is_ahead=never_ahead,
).failing("the leader waits for metadata that nobody will write.", no_leader_is_stuck)

DESIGNS = (STATIC_QUORUM, DIRECTORY_IDS, STALE_CONTROLLER)
