"""The designs of Kafka's history as values: every place where they differ is a field, read by the cores.

`insync.design=kraft-3.5` in the settings chooses one, so that an old bug can be shown on a running broker. A core never
asks for a design's name, only for one of these fields, so the fields are all that there is to know.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import attrs


class Truncation(Enum):
    """How a follower finds out what of its log the leader does not have."""

    ON_FETCH = "the fetch names the epoch of the last record, and the leader answers with a divergence (KIP-595)"
    TO_WATERMARK = "the follower cuts at its own high watermark before it fetches (before KIP-101)"


@attrs.frozen(kw_only=True, cache_hash=True)
class Design:
    """One version of the protocol.

    - `truncation`: how a follower finds its truncation point.
    - `fences_fetches`: a leader takes a fetch only in its own leader epoch (KIP-320).
    - `joins_past_epoch_start`: a follower joins the ISR only past the start of the leader's epoch, not merely at the
      watermark (KAFKA-7128).
    - `counts_maximal_isr`: a replica that the leader has asked to add counts for the watermark at once (KIP-497).
    - `keeps_out_fenced`: fenced and shutting-down replicas are kept out of the ISR (KIP-841).
    - `compares_broker_epochs`: a replica joins only as the incarnation that was seen to fetch (KIP-903).
    - `eligible_leader_replicas`: the ISR may become empty, the ELR remembers whom to elect, and a replica that comes
      back without the mark of a clean shutdown is in neither (KIP-966).
    - `watermark_needs_minimum`: the watermark is held while the committed ISR is under the minimum (KAFKA-15583).
    - `drops_overtaken`: a controller that has refused an AlterPartition takes no earlier copy of it. Not Kafka's:
      where copies overtake each other its leader may roll back what is then accepted (docs/adr/0007).
    - `sessions_outlive_restarts`: a broker that is back before its session ended was never away (ZooKeeper).
    """

    name: str
    truncation: Truncation = Truncation.ON_FETCH
    fences_fetches: bool = True
    joins_past_epoch_start: bool = True
    counts_maximal_isr: bool = True
    keeps_out_fenced: bool = True
    compares_broker_epochs: bool = True
    eligible_leader_replicas: bool = True
    watermark_needs_minimum: bool = True
    drops_overtaken: bool = True
    sessions_outlive_restarts: bool = False


KIP_966: Final = Design(name="kip-966")
KRAFT_3_5: Final = attrs.evolve(
    KIP_966, name="kraft-3.5", eligible_leader_replicas=False, watermark_needs_minimum=False
)
KIP_903: Final = attrs.evolve(KRAFT_3_5, name="kip-903")
KIP_841: Final = attrs.evolve(KIP_903, name="kip-841", compares_broker_epochs=False)
KIP_497: Final = attrs.evolve(KIP_841, name="kip-497", keeps_out_fenced=False, sessions_outlive_restarts=True)

# Before KIP-497 the leader itself wrote the ISR to ZooKeeper, conditionally and blocking, and nobody could refuse. Here
# the write goes to the controller as it does today, which at these settings accepts whatever comes from the leader
# about the metadata as it is; that the leader counts a new member while it waits stands for the write being one step.
ZOOKEEPER: Final = attrs.evolve(
    KIP_497,
    name="zookeeper",
    truncation=Truncation.TO_WATERMARK,
    fences_fetches=False,
    joins_past_epoch_start=False,
)
KAFKA_0_8: Final = attrs.evolve(ZOOKEEPER, name="kafka-0.8")

DESIGNS: Final[dict[str, Design]] = {
    d.name: d for d in (KIP_966, KRAFT_3_5, KIP_903, KIP_841, KIP_497, ZOOKEEPER, KAFKA_0_8)
}
"""Every design by the name that `insync.design` takes, today's first."""
