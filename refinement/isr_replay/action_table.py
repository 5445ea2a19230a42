"""The tables of the replay: which input is which action, which inputs are none, and where each variable is in a core.

`inputs` and `environment` do what the tables say, and `abstraction` reads the variables. `tables()` is printed into
docs/replay.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs


@attrs.frozen
class Step:
    """An action of the model: the core, its input, the other inputs of the same step, and the environment's choice."""

    core: str
    core_input: str
    composite: str = ""
    choice: str = ""


NEWS: Final = "`Tick` (asks for metadata), the controller's answer, `Metadata`"
ORDER: Final = "the order of assignment"

STEPS: Final[Mapping[str, Step]] = {
    "leader_appends": Step("broker", "`Produce`", "`Appended`", "when a record comes, within the bounds"),
    "follower_sends_fetch": Step("broker", "`Tick`", "", "that a fetch or its answer is lost; the clock"),
    "leader_answers_fetch": Step("broker", "`FetchRequest`"),
    "leader_answers_diverging": Step("broker", "`FetchRequest`"),
    "follower_appends": Step("broker", "`FetchResponse`", "`Appended`, if it has a record"),
    "follower_truncates": Step("broker", "`FetchResponse`", "`Truncated`"),
    "leader_proposes_shrink": Step("broker", "`Tick`", "", "the clock: which members were caught up too long ago"),
    "leader_proposes_expansion": Step("broker", "`Tick`", "before it, the follower's last fetch a second time"),
    "controller_accepts_alter_partition": Step("controller", "`AlterPartitionRequest`", "`Written`"),
    "controller_refuses_alter_partition": Step("controller", "`AlterPartitionRequest`"),
    "controller_rejects_stale_alter_partition": Step(
        "controller", "`AlterPartitionRequest`", "`AlterPartitionResponse` to the leader, if it runs"
    ),
    "leader_adopts_isr": Step("broker", "`AlterPartitionResponse`"),
    "leader_rolls_back": Step("broker", "`AlterPartitionResponse`"),
    "becomes_leader": Step("broker", NEWS, "`LogOpened` before it, if its log is not open; `EpochAssigned`"),
    "becomes_follower": Step("broker", NEWS, "`LogOpened` before it, if its log is not open"),
    "leader_learns_isr": Step("broker", NEWS),
    "controller_fences_outsider": Step("controller", "`Tick`", "`Written`", "the clock: whose session ended"),
    "controller_fences_follower": Step("controller", "`Tick`", "`Written`", "the clock"),
    "controller_fences_leader": Step("controller", "`Tick`", "`Written`", f"the clock; {ORDER}"),
    "controller_fences_last_leader": Step("controller", "`Tick`", "`Written`", "the clock"),
    "controller_unfences": Step("controller", "`Heartbeat`", "the broker asks for metadata first; `Written`"),
    "controller_elects_returned": Step("controller", "`Heartbeat` or `Tick`", "`Written`", ORDER),
    "controller_elects_last_known_leader": Step("controller", "`Heartbeat` or `Tick`", "`Written`", ORDER),
    "controller_moves_leadership": Step("controller", "`ElectPreferredLeader`", "`Written`", ORDER),
    "controller_elects_unclean": Step("controller", "`Tick`", "`Written`", ORDER),
    "broker_crashes": Step("none", "the process is gone", "", "when; which watermark was checkpointed"),
    "broker_loses_power": Step("none", "the process is gone", "", "when; what of log and checkpoint survives"),
    "broker_asks_to_shut_down": Step("both", "`ShutDown`", "`Heartbeat`, `Written`, `HeartbeatAnswer`", "when"),
    "broker_shuts_down": Step("both", "`Tick`", "`Heartbeat`, `Written` (it is fenced), `HeartbeatAnswer`"),
    "broker_restarts": Step("both", "`Start`", "`RegisterBroker`, `Written`, `BrokerRegistered`", "when"),
    "consumer_reads": Step("broker", "`Consume`", "", "when"),
}
"""Every action of the model."""

OPERATION_STEPS: Final[Mapping[str, Step]] = {
    "controller_starts_reassignment": Step("controller", "`ReassignPartition`", "`Written`", f"the target; {ORDER}"),
    "controller_reassigns_at_once": Step("controller", "`ReassignPartition`", "`Written`", f"the target; {ORDER}"),
    "controller_cancels_reassignment": Step("controller", "`ReassignPartition`", "`Written`", f"when; {ORDER}"),
    "controller_accepts_and_completes": Step(
        "controller",
        "`AlterPartitionRequest`",
        "`Written`; `AlterPartitionResponse` to the leader, if its epoch is over",
        ORDER,
    ),
    "replica_is_deleted": Step("broker", NEWS, "`LogOpened` after it, if its log is not open"),
    "controller_sets_minimum": Step("controller", "`AlterTopicConfigs`", "`Written`", "the value"),
    "broker_learns_minimum": Step("broker", NEWS),
    "controller_switches_unclean_election": Step("controller", "`AlterTopicConfigs`", "`Written`", "when"),
    "controller_elects_unclean_since_switched": Step("controller", "`Tick`", "`Written`", ORDER),
    "disk_is_replaced": Step("none", "the log and the mark of a clean shutdown are gone", "", "when"),
    "directory_is_removed": Step("none", "the log and the mark of a clean shutdown are gone", "", "when"),
}
"""Every action that `kafka-4.4-mended` has beyond those, where no message is late or comes twice."""

STUTTERS: Final[Mapping[str, str]] = {
    "`Produce` at a broker that does not lead, or under the minimum": "refused; checked in every state",
    "`FetchRequest` for another epoch, or at a broker that does not lead": "refused; checked wherever one is in flight",
    "`FetchResponse`, `AlterPartitionResponse` that nobody waits for": "ignored, and then no longer in flight; checked",
    "`Metadata` that is not news to the replica": "checked in every state",
    "`Tick` with nothing due; a check for lag that finds no member": "checked in every state of a leader",
    "`Consume` at or past the watermark, or at a broker that may not serve it": "refused; checked with consumers",
    "`RegisterBroker` while the controller still has the session": "refused; checked for every dead broker",
    "`Tick` of the controller with nothing due": "checked",
    "`Heartbeat` of a broker that must wait to shut down": "checked",
    "`DeleteRecords`; `Retained`: records deleted, producers forgotten": "not given: the model's logs have no start",
    "`AppendLog`, `TruncateLog`, `AssignEpoch` asked for and not yet done": "the disk answers at once (see above)",
}
"""Inputs that are no action, by which the abstraction must not change."""

VARIABLES: Final[Mapping[str, str]] = {
    "alive": "there is a `Node`",
    "log": "the batches on disk, one record each, by payload",
    "high_watermark": "`Replica.high_watermark`; the checkpoint while no log is open",
    "leader": "`Replica.metadata.leader`",
    "leader_epoch": "`Replica.metadata.leader_epoch`, 0 for none",
    "truncating": "empty: no compared design has it",
    "broker_epoch": "`Node.broker_epoch`; the last one of a broker that does not run",
    "isr": "`Leading.isr`",
    "pending_isr": "`Leading.pending.isr`",
    "partition_epoch": "`Replica.partition_epoch` of a leader",
    "follower_end": "`Follower.end`",
    "follower_broker_epoch": "`Follower.broker_epoch`, 0 for none",
    "leading_since": "not compared: only with `producers_wait`",
    "known_away": "not compared: only with `own_view`",
    "fetch": "the message in flight: `FetchRequest`, `FetchResponse` with or without a divergence",
    "fetch_to": "the leader to which the request in flight goes",
    "fetch_epoch": "`leader_epoch` of the message",
    "fetch_offset": "`FetchRequest.offset`; `FetchResponse.diverging.end`",
    "fetch_last_epoch": "`FetchRequest.last_epoch`; `FetchResponse.diverging.epoch`, 0 where nothing is left",
    "fetch_record": "the record in `FetchResponse.records`",
    "fetch_watermark": "`FetchResponse.high_watermark`",
    "alter": "the message in flight: `AlterPartitionRequest`, `AlterPartitionResponse` without or with an error",
    "alter_isr": "`AlterPartitionRequest.members`",
    "alter_leader_epoch": "`AlterPartitionRequest.leader_epoch`",
    "alter_partition_epoch": "`AlterPartitionRequest.partition_epoch`",
    "alter_broker_epoch": "the broker epoch of the joining member in `AlterPartitionRequest.isr`",
    "controller_leader": "`PartitionMetadata.leader`",
    "controller_epoch": "`PartitionMetadata.leader_epoch`",
    "controller_partition_epoch": "`PartitionMetadata.partition_epoch`",
    "controller_isr": "`PartitionMetadata.isr`",
    "controller_elr": "`PartitionMetadata.elr`",
    "last_known_leader": "`PartitionMetadata.last_known_leader`",
    "fenced": "`BrokerMetadata.fenced`",
    "shutting_down": "`BrokerMetadata.shutting_down`, unless the mark of a clean shutdown is on its disk",
    "clean_shutdown": "the mark on the disk of a broker that does not run",
    "written_in": "history: the leader epoch at each `Appended` of a leader",
    "acked": "history: `AnswerProduce` without an error",
    "committed": "history: the log of a leader up to its high watermark, whenever that is higher than any before",
    "position": "history: the offset that the consumer reads next",
    "consumed": "history: the records that it got, from the disk of a leader or follower",
    "crashes": "history",
    "lossy_crashes": "history",
    "sessions_lost": "history",
    "unnoticed": "history: always 0, for no compared design has such restarts",
    "shutdowns": "history",
}
"""For every variable of the model, where its value is in a system of cores."""

OPERATION_VARIABLES: Final[Mapping[str, str]] = {
    "replicas": "`PartitionMetadata.replicas`",
    "own_replicas": "a leader: itself and `Leading.followers`",
    "adding": "`PartitionMetadata.adding_replicas`",
    "removing": "`PartitionMetadata.removing_replicas`",
    "minimum": "`PartitionMetadata.min_insync_replicas`",
    "own_minimum": "a leader: `Replica.metadata.min_insync_replicas`; else history: by the metadata that it read last",
    "ahead": "empty: only with `late_news`",
    "heard_of": "a leader: those of `Leading.followers` with an `end`",
    "unclean_enabled": "`PartitionMetadata.unclean_leader_election`",
    "least": "history",
    **dict.fromkeys(
        ("reassignments", "minimum_changes", "disks_replaced", "directories_removed", "unclean_switches"), "history"
    ),
    **dict.fromkeys(("copies", "late_news"), "not compared: always 0"),
}
"""For every variable that `kafka-4.4-mended` has beyond those, where its value is.

`leader_epoch` of a broker that has deleted its replica is history: the epoch of the metadata by which it did.
"""


def tables() -> str:
    """The step table, the inputs that are no action, and the abstraction function, as Markdown."""
    steps, operations = (
        [(f"`{action}`", s.core, s.core_input, s.composite, s.choice) for action, s in table.items()]
        for table in (STEPS, OPERATION_STEPS)
    )
    parts = [
        "## Which input is which action",
        _table(("action", "core", "input", "other inputs of the same step", "what the environment chooses"), steps),
        "## Inputs that are no action",
        _table(("input", "what is checked"), STUTTERS.items()),
        "## Where each variable is",
        _table(("variable", "in the cores"), ((f"`{name}`", where) for name, where in VARIABLES.items())),
        "## While people work",
        "What `kafka-4.4-mended` has beyond all that.",
        _table(
            ("action", "core", "input", "other inputs of the same step", "what the environment chooses"), operations
        ),
        _table(("variable", "in the cores"), ((f"`{name}`", where) for name, where in OPERATION_VARIABLES.items())),
    ]
    return "\n\n".join(parts) + "\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [" | ".join(header), " | ".join("---" for _ in header)]
    lines += [" | ".join(cell or "-" for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)
