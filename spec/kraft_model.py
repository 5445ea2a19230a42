"""Kafka's own Raft as it is today: the design `kraft`, with a fixed set of voters, on which others are variations.

Below the controller is a replicated log (KRaft, KIP-595 with the pre-votes of KIP-996): followers pull, and there is no
AppendEntries. This is that protocol at message grain, read from KafkaRaftClient, QuorumState and LeaderState of Apache
Kafka 4.3.1. Its parts are in `kraft_protocol`, each file a page, in reading order: `state` (what there is), `voter`
(what becomes of a voter), `messages`, `elections` (pre-vote and vote), `leadership` (begin, resign, end),
`replication` (append, fetch, truncate, commit), `reconfiguration` (voters change), `snapshots`, `faults`. What is
promised is in `promises`. Voters change where the setting `dynamic` is on, as in `designs.voter_changes` (KIP-853).

One action is one input of one voter: a message arrives, a timer fires, a client asks, a process ends or starts.

A fetch waits at the leader for news, and a request arrives after its sender gave it up, in designs of their own
(`designs.waiting_fetches`, `designs.late_requests`). So is the upgrade of kraft.version (`designs.version_upgrade`).

Not modelled: observers that never become voters, time, and lies. So whom a leader that resigns would have stand first
is not seen: any timer may fire at any moment.

Rules that re-implementations often miss, marked by their number where they act:
  (1) a leader commits nothing until it has committed a record of its own epoch, however many voters have the others;
  (2) one vote an epoch, none in an epoch whose leader is known, and the vote is on disk before it is answered;
  (3) whose log is behind is said by the epoch of the last record first, and by the length only after that;
  (4) a fetch acknowledges all before its offset, but only in the leader's own epoch and if the follower's last epoch
      and its end are in the leader's log, too;
  (5) a follower truncates to where both logs part, to the smaller of two ends, and never below its high watermark;
  (6) a pre-vote leaves nothing behind but a later epoch, and neither a leader grants it nor a follower that has fetched
      from its leader;
  (7) whoever led an epoch stays its leader, having resigned or started again: it neither votes nor leads in it, and
      leaves it for the next one;
  (8) a new leader forgets the high watermark that it knew as a follower;
  (9) a voter that enters another role drops its requests, so that no answer to an earlier one counts;
  (10) a voter is its id and its directory: another disk of the same node votes for nobody who asks the former one, and
      its fetches acknowledge nothing for that;
  (11) a voter set counts as soon as its record is in the log, and whoever truncates that has the one before again;
  (12) voters change one at a time: a leader first has committed a record of its own epoch, and the last voter set;
  (13) a leader that is not in its voter set does not count itself, and resigns when that set is committed.
"""

from __future__ import annotations

from isr_lang import Design
from kraft_protocol.elections import (
    candidate_counts,
    prospective_counts,
    prospective_gives_up,
    voter_answers_pre_vote,
    voter_answers_vote,
    voter_stands,
)
from kraft_protocol.faults import (
    voter_crashes,
    voter_fails_at_answer,
    voter_fails_at_request,
    voter_loses_disk,
    voter_starts,
)
from kraft_protocol.leadership import (
    leader_hears_error,
    leader_resigns,
    resigned_stands,
    voter_answers_begin,
    voter_answers_end,
)
from kraft_protocol.liveness import LIVENESS
from kraft_protocol.promises import REACHABLE, SAFETY
from kraft_protocol.reconfiguration import (
    leader_adds_voter,
    leader_removes_voter,
    leader_updates_voter,
    node_is_formatted_without_voters,
    observer_finds_leader,
)
from kraft_protocol.replication import follower_takes_fetch, leader_answers_fetch, leader_appends
from kraft_protocol.snapshots import follower_takes_snapshot, leader_answers_fetch_snapshot, voter_takes_snapshot
from kraft_protocol.state import State, empty

KRAFT = Design(
    "kraft",
    "Today's KRaft: Kafka's own Raft with pre-votes, and a fixed set of voters",
    State,
    empty,
    (
        voter_stands,
        prospective_gives_up,
        leader_resigns,
        resigned_stands,
        leader_appends,
        voter_answers_pre_vote,
        voter_answers_vote,
        prospective_counts,
        candidate_counts,
        voter_answers_begin,
        voter_answers_end,
        leader_hears_error,
        leader_answers_fetch,
        follower_takes_fetch,
        voter_crashes,
        voter_loses_disk,
        voter_fails_at_answer,
        voter_fails_at_request,
        voter_starts,
        node_is_formatted_without_voters,
        leader_adds_voter,
        leader_removes_voter,
        leader_updates_voter,
        observer_finds_leader,
        voter_takes_snapshot,
        leader_answers_fetch_snapshot,
        follower_takes_snapshot,
    ),
    (*SAFETY, *REACHABLE, *LIVENESS),
    defaults={"epochs": 2},
)

DESIGNS = (KRAFT,)
