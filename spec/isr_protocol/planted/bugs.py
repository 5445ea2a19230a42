"""Bugs that a broker may have, one at a time, in today's design: each is a variation of the model under its name.

The broker's cores have the same bugs under the same names (`isr_broker.designs.PLANTED`), so that one can see which
checks find which bug (docs/kills.md). What has no place in the model says why.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from isr_lang import Action, Design, Value
from isr_lang.override import DefinitionFunction
from isr_model import KIP_966
from isr_protocol.designs.dropped_rules import committed_isr_only, current_by_leader_epoch
from isr_protocol.designs.early_watermark import (
    follower_raises_watermark_first,
    leader_answers_diverging_with_watermark,
)
from isr_protocol.designs.history import eligible_if_available, joins_at_watermark, may_always_commit
from isr_protocol.designs.leader_bugs import hears_what_it_waits_for
from isr_protocol.designs.zookeeper import (
    becomes_follower_at_watermark,
    follower_truncates_to_watermark,
    in_range,
    leader_answers_out_of_range,
    takes_any_epoch,
    waits_for_leader,
)
from isr_protocol.planted import actions as acts


@attrs.frozen
class Planted:
    """A bug: what it is; the design that has it, its defaults the bounds at which it shows, or why there is none.

    `parts` replace parts of a design by name, and the actions `more` join it: so the bug is planted in any other.
    """

    name: str
    what: str
    design: Design | None = None
    without: str = ""
    parts: Mapping[str, Action | DefinitionFunction] = attrs.field(factory=dict[str, Action | DefinitionFunction])
    more: tuple[Action, ...] = ()


def _bug(
    name: str,
    what: str,
    parts: Mapping[str, Action | DefinitionFunction],
    more: tuple[Action, ...] = (),
    *,
    bounds: Mapping[str, Value],
) -> Planted:
    design = KIP_966.replacing(name, f"KIP-966, but {what}", because="a bug planted on purpose.", **parts)
    return Planted(name, what, design.adding(*more).with_defaults(**bounds), parts=parts, more=more)


_TWO: dict[str, Value] = {"replicas": 2, "crashes": 0, "sessions_lost": 1, "epochs": 2, "isr_changes": 3}
_ONE: dict[str, Value] = {**_TWO, "min_insync": 1}
_POWER: dict[str, Value] = {"replicas": 2, "crashes": 0, "lossy_crashes": 1, "epochs": 2, "isr_changes": 4}

BUGS: tuple[Planted, ...] = (
    _bug(
        "truncate-to-watermark",
        "a new follower cuts its log at its own watermark (before KIP-101)",
        {
            "continues": in_range,
            "leader_answers_diverging": leader_answers_out_of_range,
            "becomes_follower": becomes_follower_at_watermark,
        },
        bounds=_ONE,
    ),
    _bug(
        "next-epoch-start",
        "a leader tells where the next epoch starts, not which one it has (before KIP-279)",
        {"continues": acts.nothing_later_before, "leader_answers_diverging": acts.leader_answers_next_start},
        bounds={**_ONE, "records": 3, "log": 2},
    ),
    _bug(
        "unfenced-fetch",
        "fetches and their answers are taken in whatever leader epoch (before KIP-320)",
        {"takes": takes_any_epoch, "waits": waits_for_leader},
        bounds={"crashes": 0, "epochs": 2, "isr_changes": 3, "min_insync": 1},
    ),
    _bug(
        "committed-isr-only",
        "the watermark counts the committed ISR, not the maximal one",
        {"maximal_isr": committed_isr_only},
        bounds=_ONE,
    ),
    _bug(
        "roll-back-on-unknown-outcome",
        "a leader stops counting whom it proposed although the request may yet be accepted",
        {
            "hears": hears_what_it_waits_for,
            "controller_rejects_stale_alter_partition": acts.controller_rejects_and_leader_forgets,
        },
        (acts.leader_forgets_request,),
        bounds=_ONE,
    ),
    _bug(
        "commit-under-minimum",
        "the watermark moves while the ISR is under the minimum (KAFKA-15583)",
        {"may_commit": may_always_commit},
        bounds={"replicas": 2, "crashes": 0},
    ),
    _bug(
        "no-broker-epoch-check",
        "a replica joins whatever its incarnation (before KIP-903)",
        {"eligible": eligible_if_available},
        bounds={**_POWER, "epochs": 1, "min_insync": 1},
    ),
    _bug(
        "join-at-watermark",
        "a follower joins the ISR at the watermark, below the start of the leader's epoch (KAFKA-7128)",
        {"past_epoch_start": joins_at_watermark},
        bounds={"crashes": 0, "epochs": 2, "isr_changes": 4, "min_insync": 1},
    ),
    _bug(
        "no-epoch-start",
        "a new leader does not note the start of its epoch, and followers fall back to their watermark (KAFKA-7415)",
        {"leader_answers_diverging": acts.leader_answers_known_epoch},
        (acts.leader_knows_no_epoch, follower_truncates_to_watermark),
        bounds={**_ONE, "records": 2, "log": 2, "epochs": 3},
    ),
    _bug(
        "refused-fetch-counts",
        "a fetch from another leader epoch is refused, but counts as an acknowledgement",
        {},
        (acts.leader_counts_refused_fetch,),
        bounds={**_ONE, "records": 2},
    ),
    _bug(
        "watermark-of-diverging",
        "a follower takes the watermark of a diverging answer before it cuts (KAFKA-14704)",
        {"leader_answers_diverging": leader_answers_diverging_with_watermark},
        (follower_raises_watermark_first,),
        bounds={**_ONE, "records": 2},
    ),
    _bug(
        "keep-clean-mark",
        "the mark of a clean shutdown is not removed when the logs are loaded",
        {"broker_restarts": acts.broker_restarts_keeping_mark},
        bounds={**_POWER, "shutdowns": 1},
    ),
    Planted(
        "epoch-file-behind",
        "leader epochs are read from a file that appends do not write",
        without="the model has each epoch with its records, and no file that could be behind",
    ),
    Planted(
        "checkpoint-in-place",
        "a checkpoint is written over the old one",
        without="to the model some older watermark survives a crash, 0 included, and no other checkpoint exists",
    ),
    _bug(
        "ack-before-flush",
        "what is to be flushed before it counts is acknowledged unflushed",
        {"broker_loses_power": acts.broker_loses_power_unflushed},
        bounds={**_POWER, "min_insync": 1, "flush": "always"},
    ),
    _bug(
        "read-above-watermark",
        "consumers read up to the log end",
        {"consumer_reads": acts.consumer_reads_anything},
        bounds={"replicas": 2, "crashes": 0, "consumers": 1},
    ),
    _bug(
        "no-partition-epoch-check",
        "the controller takes an AlterPartition about metadata that has moved on",
        {"current": current_by_leader_epoch},
        bounds={"crashes": 0, "sessions_lost": 1, "epochs": 0, "isr_changes": 3},
    ),
    _bug(
        "elect-outside-isr",
        "the controller elects any available replica when it loses the leader",
        {
            "controller_fences_leader": acts.controller_replaces_leader_by_anybody,
            "controller_fences_last_leader": acts.controller_fences_very_last_leader,
        },
        bounds=_ONE,
    ),
    _bug(
        "keep-elr",
        "a replica that comes back after an unclean shutdown stays in the ELR",
        {"broker_restarts": acts.broker_restarts_in_elr},
        bounds={**_POWER, "sessions_lost": 1},
    ),
    _bug(
        "ungated-last-leader",
        "the last known leader is elected although there is an ELR",
        {"last_hope": acts.led_last},
        bounds={**_POWER, "sessions_lost": 1},
    ),
    Planted(
        "append-retries",
        "a batch that an idempotent producer sends again is appended again",
        without="a producer of the model sends each record once",
    ),
    Planted(
        "acknowledges-past-end",
        "a fetch past the leader's log end counts as an acknowledgement",
        without="the model's logs have no start, so a log that is empty ends at 0",
    ),
    Planted(
        "cut-keeps-start",
        "a cut below the start of a log leaves it empty at its old start",
        without="the model's logs have no start",
    ),
    Planted(
        "cuts-damaged-metadata",
        "a damaged record of the metadata log is cut off with all that comes after it",
        without="the model's controller never forgets",
    ),
    Planted(
        "trusts-clean-mark",
        "the mark of a clean shutdown counts although a log is shorter than it was then",
        without="no disk of the model loses what was flushed",
    ),
    Planted(
        "refusals-outlive-topics",
        "a refused AlterPartition is remembered after its topic was deleted",
        without="the model has one partition, which is never deleted",
    ),
    Planted(
        "goes-on-without-timers",
        "where a checkpoint cannot be written the timers of a broker end, and the broker does not",
        without="no broker of the model has to do anything: what a timer may do, may happen",
    ),
    Planted(
        "keeps-elr-at-new-minimum",
        "the ELR stays when min.insync.replicas is set",
        without="in today's model nobody sets it; in `minimum-in-new-version` somebody does",
    ),
    Planted(
        "starts-without-metadata",
        "a controller whose log lacks what was durable begins a new cluster",
        without="the model's controller never forgets",
    ),
    Planted(
        "trusts-log-start",
        "the checkpoint of log starts counts whatever its CRC is",
        without="the model's logs have no start",
    ),
    Planted(
        "sends-damaged-batches",
        "what is read from a log is sent on as it is",
        without="no record of the model changes on a disk",
    ),
    Planted(
        "no-cluster-id-check",
        "brokers of another cluster are taken for this one's",
        without="the model has one cluster",
    ),
)
PLANTED: dict[str, Planted] = {bug.name: bug for bug in BUGS}
"""The 32 bugs by name, in the order of `isr_broker.designs.PLANTED`."""
