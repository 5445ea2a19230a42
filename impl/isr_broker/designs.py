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
    BEFORE_FETCH = "the follower asks where its last epoch ends, and cuts, before it fetches (KIP-101)"
    TO_WATERMARK = "the follower cuts at its own high watermark before it fetches (before KIP-101)"


@attrs.frozen(kw_only=True, cache_hash=True)
class Design:
    """One version of the protocol.

    - `truncation`: how a follower finds its truncation point.
    - `largest_smaller_epoch`: asked where an epoch ends, a leader names the largest one that it has and that is not
      above it, so that a follower notices an epoch that the leader never had (KIP-279).
    - `notes_epoch_start`: a new leader notes the start of its epoch before its first append; without, it does not know
      where a later epoch than its last record's ends, and the follower cuts at its own watermark (KAFKA-7415).
    - `fences_fetches`: a leader takes a fetch only in its own leader epoch, and a follower an answer only in the epoch
      of its fetch (KIP-320).
    - `joins_past_epoch_start`: a follower joins the ISR only past the start of the leader's epoch, not merely at the
      watermark (KAFKA-7128).
    - `watermark_past_epoch_start`: instead the leader's watermark must be past it (the first attempt at KIP-320).
    - `counts_maximal_isr`: a replica that the leader has asked to add counts for the watermark at once (KIP-497).
    - `keeps_out_fenced`: fenced and shutting-down replicas are kept out of the ISR (KIP-841).
    - `compares_broker_epochs`: a replica joins only as the incarnation that was seen to fetch (KIP-903).
    - `eligible_leader_replicas`: the ISR may become empty, the ELR remembers whom to elect, and a replica that comes
      back without the mark of a clean shutdown is in neither (KIP-966).
    - `watermark_needs_minimum`: the watermark is held while the committed ISR is under the minimum (KAFKA-15583).
    - `drops_overtaken`: a controller that has refused an AlterPartition takes no earlier copy of it. Not Kafka's:
      where copies overtake each other its leader may roll back what is then accepted (docs/adr/0007).
    - `sessions_outlive_restarts`: a broker that is back before its session ended was never away (ZooKeeper).

    The rest is in no design that anybody proposed, but in `PLANTED`: bugs that a broker may have, to see who finds
    them.

    - `roll_back_on_unknown_outcome`: a leader stops counting a proposed member on any error, or when no answer comes.
    - `refused_fetch_counts`: a fetch from another leader epoch is refused, and counted as an acknowledgement.
    - `watermark_of_diverging`: a diverging answer has the watermark, and the follower takes it before it cuts.
    - `keep_clean_mark`: the mark of a clean shutdown is not removed when the logs are loaded.
    - `epoch_file_behind`: leader epochs are read from their file, which an append does not write.
    - `checkpoint_in_place`: a checkpoint is written over the old one.
    - `ack_before_flush`: what is to be flushed before it counts is not.
    - `read_above_watermark`: consumers read up to the log end.
    - `no_partition_epoch_check`: the controller takes an AlterPartition about whatever metadata.
    - `elect_outside_isr`: the leader's successor may be any available replica.
    - `keep_elr`: a replica that comes back without the mark of a clean shutdown stays in the ELR.
    - `ungated_last_leader`: who led last is elected although there is an ELR.
    - `append_retries`: a batch that the producer sends again is appended again.
    - `acknowledges_past_end`: a fetch past the leader's log end counts as an acknowledgement.
    - `cut_keeps_start`: a cut below the start of a log leaves it empty at its old start.
    - `trusts_clean_mark`: the mark of a clean shutdown counts although a log is shorter than it was then.
    - `cuts_damaged_metadata`: a damaged record of the metadata log is cut off with all that comes after it.
    - `refusals_outlive_topics`: a refused AlterPartition is remembered after its topic was deleted.
    - `keeps_elr_at_new_minimum`: the ELR stays when min.insync.replicas is set.
    - `starts_without_metadata`: a controller whose log lacks what was durable begins a new cluster.
    - `trusts_log_start`: the checkpoint of log starts counts whatever its CRC is.
    - `sends_damaged_batches`: what is read from a log is sent on as it is.
    - `no_cluster_id_check`: brokers of another cluster are taken for this one's.
    - `keeps_removed_in_elr`: who a reassignment removes stays in the ELR, as in Kafka (found/removed-replica).
    - `completes_below_minimum`: a reassignment is complete though it leaves too few in sync, as in Kafka since 4.3.0.
    - `goes_on_without_timers`: where a checkpoint cannot be written the broker's timers end, and it does not.
    """

    name: str
    truncation: Truncation = Truncation.ON_FETCH
    largest_smaller_epoch: bool = True
    notes_epoch_start: bool = True
    fences_fetches: bool = True
    joins_past_epoch_start: bool = True
    watermark_past_epoch_start: bool = False
    counts_maximal_isr: bool = True
    keeps_out_fenced: bool = True
    compares_broker_epochs: bool = True
    eligible_leader_replicas: bool = True
    watermark_needs_minimum: bool = True
    drops_overtaken: bool = True
    sessions_outlive_restarts: bool = False

    roll_back_on_unknown_outcome: bool = False
    refused_fetch_counts: bool = False
    watermark_of_diverging: bool = False
    keep_clean_mark: bool = False
    epoch_file_behind: bool = False
    checkpoint_in_place: bool = False
    ack_before_flush: bool = False
    read_above_watermark: bool = False
    no_partition_epoch_check: bool = False
    elect_outside_isr: bool = False
    keep_elr: bool = False
    ungated_last_leader: bool = False
    append_retries: bool = False
    acknowledges_past_end: bool = False
    cut_keeps_start: bool = False
    trusts_clean_mark: bool = False
    cuts_damaged_metadata: bool = False
    refusals_outlive_topics: bool = False
    goes_on_without_timers: bool = False
    keeps_elr_at_new_minimum: bool = False
    starts_without_metadata: bool = False
    trusts_log_start: bool = False
    sends_damaged_batches: bool = False
    no_cluster_id_check: bool = False
    keeps_removed_in_elr: bool = False
    completes_below_minimum: bool = False


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
KIP_320: Final = attrs.evolve(KIP_497, name="kip-320", truncation=Truncation.BEFORE_FETCH)
KIP_320_FIRST_TRY: Final = attrs.evolve(
    KIP_497,
    name="kip-320-first-try",
    fences_fetches=False,
    joins_past_epoch_start=False,
    watermark_past_epoch_start=True,
)
KIP_279: Final = attrs.evolve(KIP_320, name="kip-279", fences_fetches=False, joins_past_epoch_start=False)
KIP_101: Final = attrs.evolve(KIP_279, name="kip-101", largest_smaller_epoch=False, notes_epoch_start=False)
ZOOKEEPER: Final = attrs.evolve(KIP_101, name="zookeeper", truncation=Truncation.TO_WATERMARK)
KAFKA_0_8: Final = attrs.evolve(ZOOKEEPER, name="kafka-0.8")

DESIGNS: Final[dict[str, Design]] = {
    d.name: d
    for d in (
        KIP_966,
        KRAFT_3_5,
        KIP_903,
        KIP_841,
        KIP_497,
        KIP_320,
        KIP_320_FIRST_TRY,
        KIP_279,
        KIP_101,
        ZOOKEEPER,
        KAFKA_0_8,
    )
}
"""Every design by the name that `insync.design` takes, today's first."""

PLANTED: Final[dict[str, Design]] = {
    d.name: d
    for d in (
        attrs.evolve(KIP_966, name="truncate-to-watermark", truncation=Truncation.TO_WATERMARK),
        attrs.evolve(KIP_966, name="next-epoch-start", largest_smaller_epoch=False),
        attrs.evolve(KIP_966, name="unfenced-fetch", fences_fetches=False),
        attrs.evolve(KIP_966, name="committed-isr-only", counts_maximal_isr=False),
        attrs.evolve(KIP_966, name="roll-back-on-unknown-outcome", roll_back_on_unknown_outcome=True),
        attrs.evolve(KIP_966, name="commit-under-minimum", watermark_needs_minimum=False),
        attrs.evolve(KIP_966, name="no-broker-epoch-check", compares_broker_epochs=False),
        attrs.evolve(KIP_966, name="join-at-watermark", joins_past_epoch_start=False),
        attrs.evolve(KIP_966, name="no-epoch-start", notes_epoch_start=False),
        attrs.evolve(KIP_966, name="refused-fetch-counts", refused_fetch_counts=True),
        attrs.evolve(KIP_966, name="watermark-of-diverging", watermark_of_diverging=True),
        attrs.evolve(KIP_966, name="keep-clean-mark", keep_clean_mark=True),
        attrs.evolve(KIP_966, name="epoch-file-behind", epoch_file_behind=True),
        attrs.evolve(KIP_966, name="checkpoint-in-place", checkpoint_in_place=True),
        attrs.evolve(KIP_966, name="ack-before-flush", ack_before_flush=True),
        attrs.evolve(KIP_966, name="read-above-watermark", read_above_watermark=True),
        attrs.evolve(KIP_966, name="no-partition-epoch-check", no_partition_epoch_check=True),
        attrs.evolve(KIP_966, name="elect-outside-isr", elect_outside_isr=True),
        attrs.evolve(KIP_966, name="keep-elr", keep_elr=True),
        attrs.evolve(KIP_966, name="ungated-last-leader", ungated_last_leader=True),
        attrs.evolve(KIP_966, name="append-retries", append_retries=True),
        attrs.evolve(KIP_966, name="acknowledges-past-end", acknowledges_past_end=True),
        attrs.evolve(KIP_966, name="cut-keeps-start", cut_keeps_start=True),
        attrs.evolve(KIP_966, name="cuts-damaged-metadata", cuts_damaged_metadata=True),
        attrs.evolve(KIP_966, name="trusts-clean-mark", trusts_clean_mark=True),
        attrs.evolve(KIP_966, name="refusals-outlive-topics", refusals_outlive_topics=True),
        attrs.evolve(KIP_966, name="goes-on-without-timers", goes_on_without_timers=True),
        attrs.evolve(KIP_966, name="keeps-elr-at-new-minimum", keeps_elr_at_new_minimum=True),
        attrs.evolve(KIP_966, name="starts-without-metadata", starts_without_metadata=True),
        attrs.evolve(KIP_966, name="trusts-log-start", trusts_log_start=True),
        attrs.evolve(KIP_966, name="sends-damaged-batches", sends_damaged_batches=True),
        attrs.evolve(KIP_966, name="no-cluster-id-check", no_cluster_id_check=True),
    )
}
"""Today's design with one bug each, which `insync.design` takes as well; the model's are in planted.bugs."""
