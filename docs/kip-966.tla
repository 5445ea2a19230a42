-------------------------------- MODULE Kip966 --------------------------------
(********************************************************************************)
(* kip-966: Today's Kafka: KRaft with eligible leader replicas                  *)
(********************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

--------------------------------------------------------------------------------

CONSTANTS
    Replica,          \* A broker that hosts a replica of the partition.
    Acks,             \* acks of the producer
    OwnView,          \* a leader asks its own metadata whom to propose, and whom to wait for before
                      \* it joins
    ProducersWait,    \* producers wait for as long as their leader does not step down, also across
                      \* its epochs
    Unclean,          \* unclean.leader.election.enable
    Flush,            \* flush.messages=1, or never
    FollowerReads,    \* consumers may fetch from followers (KIP-392)
    Log,              \* records that fit into a log
    Records,          \* records that are produced
    Epochs,           \* changes of the leader epoch after the first leader
    MaxCrashes,       \* crashes that keep the disk
    MaxLossyCrashes,  \* crashes that lose what was not flushed
    MaxShutdowns,     \* controlled shutdowns
    IsrChanges,       \* changes of the partition's metadata, elections included
    MaxSessionsLost,  \* sessions lost by brokers that are alive
    MaxUnnoticed,     \* restarts that nobody noticed (ZooKeeper era)
    Consumers,        \* consumers
    MinInsync,        \* min.insync.replicas
    None              \* the value that is not there: a model value

ASSUME
    /\ Acks \in {"none", "leader", "all"}
    /\ OwnView \in BOOLEAN
    /\ ProducersWait \in BOOLEAN
    /\ Unclean \in BOOLEAN
    /\ Flush \in {"always", "never"}
    /\ FollowerReads \in BOOLEAN
    /\ Log \in Nat \ {0}
    /\ Records \in Nat \ {0}
    /\ Epochs \in Nat
    /\ MaxCrashes \in Nat
    /\ MaxLossyCrashes \in Nat
    /\ MaxShutdowns \in Nat
    /\ IsrChanges \in Nat
    /\ MaxSessionsLost \in Nat
    /\ MaxUnnoticed \in Nat
    /\ Consumers \in Nat
    /\ MinInsync \in Nat \ {0}
    /\ MinInsync <= Cardinality(Replica)
    /\ ~OwnView

\* Whether there is any use for brokerEpoch, followerBrokerEpoch, alterBrokerEpoch.
HasBrokerEpoch == MaxCrashes + MaxLossyCrashes + MaxShutdowns > 0

\* A position in a log; as a log end offset or watermark, the position after the last record.
Offset == 0..Log

\* The name of a record: how many were produced before it.
Record == 0..Records

\* Grows with every change of the leader.
LeaderEpoch == 0..Epochs

\* The incarnation of a broker: grows each time it registers with the controller.
BrokerEpoch == 0..MaxCrashes + MaxLossyCrashes + MaxShutdowns

\* Grows with every change of the partition's metadata (before KIP-497: ZooKeeper's version of it).
PartitionEpoch == 0..IsrChanges

\* How many crashes that kept the disk.
Crashes == 0..MaxCrashes

\* How many crashes that lost a suffix of the log.
LossyCrashes == 0..MaxLossyCrashes

\* How many living brokers lost their session.
SessionsLost == 0..MaxSessionsLost

\* How many restarts that nobody noticed.
Unnoticed == 0..MaxUnnoticed

\* How many controlled shutdowns.
Shutdowns == 0..MaxShutdowns

\* The one fetch of a follower: none in flight, the request, or one of two kinds of answer.
\*
\* ASKED is the older question, OffsetsForLeaderEpoch, which designs before truncation-on-fetch send
\* first, and UNDEFINED the answer to it that no such epoch is known.
Fetch == {"none", "requested", "answered", "diverged", "asked", "undefined"}

\* The one AlterPartition of a leader: none in flight, the request, or one of two answers.
Alter == {"none", "requested", "accepted", "refused"}

\* Sequences of members of S that are at most n long.
BoundedSeq(S, n) == UNION {[1..m -> S] : m \in 0..n}

--------------------------------------------------------------------------------

VARIABLES
    alive,                     \* brokers whose process runs
    log,                       \* the records each replica holds, in order
    highWatermark,             \* offsets below it are known by the replica to be committed; of a
                               \* dead replica, its checkpoint
    leader,                    \* whom each replica believes to lead, none before it learns
    leaderEpoch,               \* the leader epoch each replica last learned
    truncating,                \* followers that must find their truncation point before they fetch
                               \* (before KIP-595)
    brokerEpoch,               \* the incarnation of each broker (constant unless HasBrokerEpoch)
    isr,                       \* the in-sync set each leader takes to be committed
    pendingIsr,                \* the in-sync set each leader has proposed and not yet seen decided
    partitionEpoch,            \* the partition epoch of that in-sync set
    followerEnd,               \* the log end offset at which each leader saw each follower fetch in
                               \* this epoch; none before it did
    followerBrokerEpoch,       \* the incarnation of the follower in that fetch (constant unless
                               \* HasBrokerEpoch)
    leadingSince,              \* the epoch in which each leader began to lead without a break
                               \* (history: no action depends on it) (constant unless ProducersWait)
    knownAway,                 \* brokers that each leader's own metadata calls fenced or shutting
                               \* down (constant unless OwnView)
    fetch,                     \* the fetch of each follower: request, answer or none in flight
    fetchTo,                   \* the leader that is asked
    fetchEpoch,                \* the current leader epoch in the request and its answer
    fetchOffset,               \* request: the follower's log end; diverged: where the epoch in
                               \* fetch_last_epoch ends in the leader's log
    fetchLastEpoch,            \* request: the epoch of the follower's last record; diverged: the
                               \* largest epoch of the leader not above it
    fetchRecord,               \* answer: the record at that offset, if there is one
    fetchWatermark,            \* answer: the leader's high watermark
    alter,                     \* the AlterPartition of each leader: request, answer or none in
                               \* flight
    alterIsr,                  \* the in-sync set it proposes
    alterLeaderEpoch,          \* the leader epoch of the leader that proposes it
    alterPartitionEpoch,       \* the partition epoch that it would replace
    alterBrokerEpoch,          \* the incarnation of the replica that it would add (constant unless
                               \* HasBrokerEpoch)
    controllerLeader,          \* the elected leader
    controllerEpoch,           \* its leader epoch
    controllerPartitionEpoch,  \* how often the metadata has changed
    controllerIsr,             \* the in-sync replicas (ISR)
    controllerElr,             \* the eligible leader replicas (ELR, KIP-966)
    lastKnownLeader,           \* who led when the ISR became empty (LastKnownElr, KIP-966)
    fenced,                    \* brokers without a session
    shuttingDown,              \* brokers in controlled shutdown (constant unless MaxShutdowns > 0)
    cleanShutdown,             \* stopped brokers that left the mark of a clean shutdown (constant
                               \* unless MaxShutdowns > 0)
    writtenIn,                 \* the leader epoch in which each record was written
    acked,                     \* records acknowledged to their producer (history: no action depends
                               \* on it)
    committed,                 \* the true committed sequence: all that any leader committed
                               \* (history: no action depends on it)
    position,                  \* the consumer's next offset (constant unless Consumers > 0)
    consumed,                  \* what the consumer has read (history: no action depends on it)
                               \* (constant unless Consumers > 0)
    crashes,                   \* crashes so far
    lossyCrashes,              \* crashes so far that lost a suffix of a log
    sessionsLost,              \* sessions lost so far by living brokers
    unnoticed,                 \* restarts so far that nobody noticed
    shutdowns                  \* controlled shutdowns so far

fetchVars == <<fetch, fetchTo, fetchEpoch, fetchOffset, fetchLastEpoch, fetchRecord,
               fetchWatermark>>

alterVars == <<alter, alterIsr, alterLeaderEpoch, alterPartitionEpoch, alterBrokerEpoch>>

controllerVars == <<controllerLeader, controllerEpoch, controllerPartitionEpoch, controllerIsr,
                    controllerElr>>

vars == <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch, isr,
          pendingIsr, partitionEpoch, followerEnd, followerBrokerEpoch, leadingSince, knownAway,
          fetchVars, alterVars, controllerVars, lastKnownLeader, fenced, shuttingDown,
          cleanShutdown, writtenIn, acked, committed, position, consumed, crashes, lossyCrashes,
          sessionsLost, unnoticed, shutdowns>>

TypeOK ==
    /\ alive \in SUBSET Replica
    /\ log \in [Replica -> BoundedSeq(Record, Log)]
    /\ highWatermark \in [Replica -> Offset]
    /\ leader \in [Replica -> Replica \cup {None}]
    /\ leaderEpoch \in [Replica -> LeaderEpoch]
    /\ truncating \in SUBSET Replica
    /\ brokerEpoch \in [Replica -> BrokerEpoch]
    /\ isr \in [Replica -> SUBSET Replica]
    /\ pendingIsr \in [Replica -> SUBSET Replica]
    /\ partitionEpoch \in [Replica -> PartitionEpoch]
    /\ followerEnd \in [Replica -> [Replica -> Offset \cup {None}]]
    /\ followerBrokerEpoch \in [Replica -> [Replica -> BrokerEpoch]]
    /\ leadingSince \in [Replica -> LeaderEpoch]
    /\ knownAway \in [Replica -> SUBSET Replica]
    /\ fetch \in [Replica -> Fetch]
    /\ fetchTo \in [Replica -> Replica \cup {None}]
    /\ fetchEpoch \in [Replica -> LeaderEpoch]
    /\ fetchOffset \in [Replica -> Offset]
    /\ fetchLastEpoch \in [Replica -> LeaderEpoch]
    /\ fetchRecord \in [Replica -> Record \cup {None}]
    /\ fetchWatermark \in [Replica -> Offset]
    /\ alter \in [Replica -> Alter]
    /\ alterIsr \in [Replica -> SUBSET Replica]
    /\ alterLeaderEpoch \in [Replica -> LeaderEpoch]
    /\ alterPartitionEpoch \in [Replica -> PartitionEpoch]
    /\ alterBrokerEpoch \in [Replica -> BrokerEpoch]
    /\ controllerLeader \in Replica \cup {None}
    /\ controllerEpoch \in LeaderEpoch
    /\ controllerPartitionEpoch \in PartitionEpoch
    /\ controllerIsr \in SUBSET Replica
    /\ controllerElr \in SUBSET Replica
    /\ lastKnownLeader \in Replica \cup {None}
    /\ fenced \in SUBSET Replica
    /\ shuttingDown \in SUBSET Replica
    /\ cleanShutdown \in SUBSET Replica
    /\ writtenIn \in BoundedSeq(LeaderEpoch, Records)
    /\ acked \in SUBSET Record
    /\ committed \in BoundedSeq(Record, Log)
    /\ position \in Offset
    /\ consumed \in BoundedSeq(Record, Log)
    /\ crashes \in Crashes
    /\ lossyCrashes \in LossyCrashes
    /\ sessionsLost \in SessionsLost
    /\ unnoticed \in Unnoticed
    /\ shutdowns \in Shutdowns

--------------------------------------------------------------------------------

\* The least of a set of numbers, or of none the second argument.
Min(S, otherwise) == IF S = {} THEN otherwise ELSE CHOOSE m \in S : \A n \in S : m <= n

\* The greatest of a set of numbers, or of none the second argument.
Max(S, otherwise) == IF S = {} THEN otherwise ELSE CHOOSE m \in S : \A n \in S : m >= n

\* The value or, when there is none, the second argument.
OrElse(m, otherwise) == IF m = None THEN otherwise ELSE m

\* The item at a position, the first at 0; beyond the end 0.
At(s, i) == IF i \in 0..Len(s) - 1 THEN s[i + 1] ELSE 0

\* The first n items, or all when there are fewer.
Take(s, n) == SubSeq(s, 1, IF n < Len(s) THEN n ELSE Len(s))

\* The second sequence begins with the first.
IsPrefix(s, t) == Len(s) <= Len(t) /\ SubSeq(t, 1, Len(s)) = s

\* The replica is alive and believes that it leads (a zombie does, too).
Leads(r) ==
    /\ r \in alive
    /\ leader[r] = r

\* The log end offset (LEO): where the replica's next record goes.
LogEnd(r) == Len(log[r])

\* (7) The set has min.insync.replicas members, as the leader takes that number
\* (Partition.effectiveMinIsr).
Enough(l, members) == Cardinality(members) >= MinInsync

\* (2) The watermark is held while the committed in-sync set is under the minimum (KAFKA-15583,
\* since 3.7).
\*
\* Example: ISR {1}, ELR {2}, and the leader proposes {1, 3}: it would commit with 3 while the
\* controller may elect 2, of which the leader knows nothing.
MayCommit(I) == Cardinality(I) >= MinInsync

\* (2) The leader holds its watermark while its in-sync set is under the minimum
\* (Partition.isUnderMinIsr).
MayAdvance(l, I) == MayCommit(I)

\* The leader's in-sync set and what it has asked to add to it: all that may be in sync by now
\* (KIP-497).
MaximalIsr(l) == isr[l] \cup pendingIsr[l]

\* The replica is alive and no fetch of its present epoch is in flight; one of an older epoch is
\* given up.
MayFetch(follower) ==
    /\ follower \in alive
    /\ \/ fetch[follower] = "none"
       \/ fetchEpoch[follower] # leaderEpoch[follower]

\* (3) The follower's request is for this leader, which leads in the very epoch that the request
\* names.
\*
\* In another epoch the leader would answer FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH, and nothing
\* would change.
Takes(l, follower) ==
    /\ Leads(l)
    /\ fetchTo[follower] = l
    /\ fetchEpoch[follower] = leaderEpoch[l]

\* The leader epoch of the record at an offset of the replica's log.
EpochAt(r, o) == At(writtenIn, At(log[r], o))

\* The largest leader epoch in the replica's log that is not above e, 0 when there is none
\* (KIP-279).
EpochNotAbove(r, e) ==
    Max({IF EpochAt(r, o) <= e THEN EpochAt(r, o) ELSE 0 : o \in 0..LogEnd(r) - 1}, 0)

\* Where the records of epochs up to e end in the replica's log (LeaderEpochFileCache.endOffsetFor).
EndOfEpoch(r, e) ==
    Min({IF e < EpochAt(r, o) THEN o ELSE LogEnd(r) : o \in 0..LogEnd(r) - 1}, LogEnd(r))

\* The follower's log, as its fetch describes it, is a prefix of the leader's (KIP-595).
Continues(l, follower) ==
    \/ fetchOffset[follower] = 0
    \/ /\ EpochNotAbove(l, fetchLastEpoch[follower]) = fetchLastEpoch[follower]
       /\ fetchOffset[follower] <= EndOfEpoch(l, fetchLastEpoch[follower])

\* The follower will read the leader's answer: it is still in the epoch of its fetch.
Waits(l, follower) == fetchEpoch[follower] = leaderEpoch[follower]

\* The replica leads and nothing that it asked is undecided as far as it knows.
FreeToAsk(l) ==
    /\ Leads(l)
    /\ pendingIsr[l] = {}
    /\ alter[l] = "none"

\* None of them was seen at the leader's log end (time may then have run out for it).
AllLag(l, lagging) == \A f \in lagging : followerEnd[l][f] # LogEnd(l)

\* The follower was seen at or past the leader's watermark in this epoch; with OWN_VIEW, nor is it
\* away.
\*
\* Partition.isReplicaIsrEligible (4.3.1) also asks for its broker epoch, at which here the
\* controller looks.
CaughtUp(l, f) ==
    /\ followerEnd[l][f] # None
    /\ highWatermark[l] <= OrElse(followerEnd[l][f], 0)
    /\ f \notin knownAway[l]

\* Where the leader's own epoch starts in its log, its log end while it has not appended.
StartOfOwnEpoch(l) ==
    Min({IF EpochAt(l, o) = leaderEpoch[l] THEN o ELSE LogEnd(l) : o \in 0..LogEnd(l) - 1},
        LogEnd(l))

\* (4) The follower was seen at or past the start of the leader's epoch.
\*
\* At the watermark alone it may lack records that an earlier leader committed (KAFKA-7128).
PastEpochStart(l, f) == StartOfOwnEpoch(l) <= OrElse(followerEnd[l][f], 0)

\* The request is from the elected leader in its epoch and about the metadata as it is.
Current(l) ==
    /\ controllerLeader = l
    /\ alterLeaderEpoch[l] = controllerEpoch
    /\ alterPartitionEpoch[l] = controllerPartitionEpoch

\* No proposed member is fenced or shutting down (KIP-841), and none that joins is another
\* incarnation (KIP-903).
\*
\* A member that restarted was taken out of the ISR first, so the partition epoch gives it away.
Eligible(l) ==
    /\ alterIsr[l] \cap (fenced \cup shuttingDown) = {}
    /\ \A f \in alterIsr[l] \ controllerIsr : alterBrokerEpoch[l] = brokerEpoch[f]

\* The ELR beside a new ISR: nobody at the minimum, else whoever was in ISR or ELR and is not in the
\* ISR now.
\*
\* PartitionChangeBuilder.maybePopulateTargetElr.
ElrBeside(I) == IF Cardinality(I) >= MinInsync THEN {} ELSE (controllerElr \cup controllerIsr) \ I

\* The leader still waits for the answer: it has not learned newer metadata, nor died.
Hears(l) ==
    /\ Leads(l)
    /\ leaderEpoch[l] = alterLeaderEpoch[l]
    /\ partitionEpoch[l] = alterPartitionEpoch[l]

\* A living replica does not know the elected leader and its epoch.
Behind(r) ==
    /\ r \in alive
    /\ \/ leaderEpoch[r] # controllerEpoch
       \/ leader[r] # controllerLeader

\* A request of the replica is on its way to a leader that would still take it.
RequestLives(r) ==
    /\ \/ fetch[r] = "requested"
       \/ fetch[r] = "asked"
    /\ \E q \in Replica \ {r} : Takes(q, r)

\* (2) The same rule in the step in which the leader learns the controller's newest metadata.
MayAdvanceOnNews(l, I) == MayCommit(I)

\* (7) The same number in the step in which the leader learns the controller's newest metadata.
EnoughOnNews(l, members) == Cardinality(members) >= MinInsync

\* The ISR when a broker is gone; with an ELR to fall back on it may be empty.
IsrWithout(r) == controllerIsr \ {r}

\* The broker asked to shut down, and the controller can still take leadership or membership from
\* it.
Relievable(r) ==
    /\ r \in shuttingDown
    /\ \/ controllerLeader = r
       \/ IsrWithout(r) # controllerIsr

\* The controller may do without the broker: it is dead, may lose its session, or asked to shut
\* down.
Leaving(r) ==
    /\ r \notin fenced
    /\ \/ r \notin alive
       \/ sessionsLost < MaxSessionsLost
       \/ Relievable(r)

\* The broker has a session and is not shutting down.
Available(r) == r \notin fenced \cup shuttingDown

\* The broker is available and in the ISR or, when nobody is, in the ELR.
Electable(r, I, elr) ==
    /\ Available(r)
    /\ \/ r \in I
       \/ /\ I = {}
          /\ r \in elr

\* A living broker has no session.
Returns(r) ==
    /\ r \in fenced
    /\ r \in alive

\* The partition has no leader, and this replica may lead.
Awaited(r) ==
    /\ controllerLeader = None
    /\ \/ r \in controllerIsr
       \/ /\ controllerIsr = {}
          /\ r \in controllerElr

\* ISR and ELR are empty, and this replica led last (KIP-966's balanced recovery).
LastHope(r) ==
    /\ controllerIsr \cup controllerElr = {}
    /\ lastKnownLeader = r

\* (6) The controller strikes the returning replica from ISR and ELR: it left no mark of a clean
\* shutdown.
Struck(r) ==
    /\ r \in controllerIsr \cup controllerElr
    /\ r \notin cleanShutdown

\* The replica leads in the controller's present epoch: it is no zombie.
LeadsNow(r) ==
    /\ Leads(r)
    /\ controllerLeader = r
    /\ leaderEpoch[r] = controllerEpoch

\* The record is in the replica's log.
Holds(r, m) == \E o \in 0..LogEnd(r) - 1 : At(log[r], o) = m

\* The replica's log begins with the true committed sequence.
HasCommitted(r) == IsPrefix(committed, log[r])

\* The leader has taken a fetch of the follower, which has truncated, and both are in one epoch.
Met(l, follower) ==
    /\ Leads(l)
    /\ follower \in alive \ truncating
    /\ followerEnd[l][follower] # None
    /\ leaderEpoch[l] = leaderEpoch[follower]

\* The record is in every log from which a leader may be chosen cleanly.
Safe(m) == \A r \in Replica : r \in controllerIsr \cup controllerElr => Holds(r, m)

\* The ISR has no member but, perhaps, the elected leader.
NobodyButLeaderInIsr == \A q \in Replica : q \in controllerIsr => controllerLeader = q

\* The exploration's own bounds may stand in the way from here on.
BoundsSpent == ~(controllerPartitionEpoch < IsrChanges /\ controllerEpoch < Epochs)

\* A leader may still take a fenced broker for caught up; its lag time, which is left out, would end
\* that.
CountsTheDead ==
    \E r, f \in Replica : LeadsNow(r) /\ f \in fenced \cup shuttingDown /\ followerEnd[r][f] # None

\* Whoever leads has committed its whole log, or is under the minimum.
AllCommitted ==
    \/ BoundsSpent
    \/ CountsTheDead
    \/ \A r \in Replica :
           LeadsNow(r) => highWatermark[r] = LogEnd(r) \/ Cardinality(isr[r]) < MinInsync

\* The elected leader holds a record that is not committed, with an in-sync set that may commit it.
AcceptedAndUncommitted ==
    /\ controllerPartitionEpoch < IsrChanges
    /\ controllerEpoch < Epochs
    /\ \E r \in Replica :
           LeadsNow(r) /\ highWatermark[r] < LogEnd(r) /\ Cardinality(isr[r]) >= MinInsync

\* Every living replica with a session is in the ISR, or the partition has no leader.
NobodyLags ==
    \/ BoundsSpent
    \/ controllerLeader = None
    \/ (alive \ fenced) \ shuttingDown \subseteq controllerIsr

\* A living replica with a session is out of the ISR of a partition that has a leader.
SomebodyLags ==
    /\ controllerPartitionEpoch < IsrChanges
    /\ controllerEpoch < Epochs
    /\ \E r \in Replica :
           r \in ((alive \ fenced) \ shuttingDown) \ controllerIsr /\ controllerLeader # None

\* A living replica of the ISR or, when that is empty, of the ELR could lead.
Candidate ==
    (IF controllerIsr = {} THEN controllerElr ELSE controllerIsr) \cap (alive \ shuttingDown) # {}

\* The partition has a leader, or nobody is left who could lead.
HasLeader ==
    \/ controllerLeader # None
    \/ ~Candidate
    \/ BoundsSpent

\* The partition has no leader, and a living replica of ISR or ELR could lead.
LeaderlessWithCandidate ==
    /\ controllerPartitionEpoch < IsrChanges
    /\ controllerEpoch < Epochs
    /\ controllerLeader = None
    /\ Candidate

\* The leader epoch of the replica's last record, 0 for an empty log.
LastEpoch(r) == IF LogEnd(r) = 0 THEN 0 ELSE EpochAt(r, LogEnd(r) - 1)

\* No leader holds a record of its own epoch above its watermark: each was answered, or its leader
\* is gone.
NoWriteWaits ==
    \/ BoundsSpent
    \/ CountsTheDead
    \/ ~(\E r \in Replica :
             /\ Leads(r)
             /\ Cardinality(isr[r]) >= MinInsync
             /\ highWatermark[r] < LogEnd(r)
             /\ LastEpoch(r) = leaderEpoch[r])

\* A leader holds an acks=all record of its own epoch above its watermark.
WriteWaits ==
    /\ controllerPartitionEpoch < IsrChanges
    /\ controllerEpoch < Epochs
    /\ Acks = "all"
    /\ \E r \in Replica :
           /\ Leads(r)
           /\ Cardinality(isr[r]) >= MinInsync
           /\ highWatermark[r] < LogEnd(r)
           /\ LastEpoch(r) = leaderEpoch[r]

--------------------------------------------------------------------------------

\* All replicas are alive and in sync with an empty log, one of them leads, and the others fetch
\* from it.
Init ==
    \E first \in Replica :
        /\ alive = Replica
        /\ log = [k \in Replica |-> <<>>]
        /\ highWatermark = [k \in Replica |-> 0]
        /\ leader = [r \in Replica |-> first]
        /\ leaderEpoch = [k \in Replica |-> 0]
        /\ truncating = {}
        /\ brokerEpoch = [k \in Replica |-> 0]
        /\ isr = [r \in Replica |-> IF r = first THEN Replica ELSE {}]
        /\ pendingIsr = [k \in Replica |-> {}]
        /\ partitionEpoch = [k \in Replica |-> 0]
        /\ followerEnd = [k \in Replica |-> [k2 \in Replica |-> None]]
        /\ followerBrokerEpoch = [k \in Replica |-> [k2 \in Replica |-> 0]]
        /\ leadingSince = [k \in Replica |-> 0]
        /\ knownAway = [k \in Replica |-> {}]
        /\ fetch = [r \in Replica |-> IF r = first THEN "none" ELSE "requested"]
        /\ fetchTo = [r \in Replica |-> IF r = first THEN None ELSE first]
        /\ fetchEpoch = [k \in Replica |-> 0]
        /\ fetchOffset = [k \in Replica |-> 0]
        /\ fetchLastEpoch = [k \in Replica |-> 0]
        /\ fetchRecord = [k \in Replica |-> None]
        /\ fetchWatermark = [k \in Replica |-> 0]
        /\ alter = [k \in Replica |-> "none"]
        /\ alterIsr = [k \in Replica |-> {}]
        /\ alterLeaderEpoch = [k \in Replica |-> 0]
        /\ alterPartitionEpoch = [k \in Replica |-> 0]
        /\ alterBrokerEpoch = [k \in Replica |-> 0]
        /\ controllerLeader = first
        /\ controllerEpoch = 0
        /\ controllerPartitionEpoch = 0
        /\ controllerIsr = Replica
        /\ controllerElr = {}
        /\ lastKnownLeader = None
        /\ fenced = {}
        /\ shuttingDown = {}
        /\ cleanShutdown = {}
        /\ writtenIn = <<>>
        /\ acked = {}
        /\ committed = <<>>
        /\ position = 0
        /\ consumed = <<>>
        /\ crashes = 0
        /\ lossyCrashes = 0
        /\ sessionsLost = 0
        /\ unnoticed = 0
        /\ shutdowns = 0

--------------------------------------------------------------------------------

\* A producer's record reaches a leader, which appends it in its own epoch.
\*
\* (7) With acks=all it is refused before the append while the committed in-sync set is under the
\* minimum (NOT_ENOUGH_REPLICAS). With acks=1 the append is the acknowledgement.
\* ReplicaManager.appendRecords, Partition.appendRecordsToLeader.
LeaderAppends(l) ==
    LET least == Min({IF q = l THEN LogEnd(l) + 1 ELSE OrElse(followerEnd[l][q], 0)
                      : q \in MaximalIsr(l)
                              \cup {f \in Replica : /\ OwnView
                                                    /\ followerEnd[l][f] # None
                                                    /\ f \notin knownAway[l]}},
                     highWatermark[l])
        newHighWatermark == IF MayAdvance(l, isr[l])
                            THEN IF least <= highWatermark[l] THEN highWatermark[l] ELSE least
                            ELSE highWatermark[l]
    IN  /\ Leads(l)
        /\ LogEnd(l) < Log
        /\ Len(writtenIn) < Records
        /\ (Acks # "all" \/ Enough(l, isr[l])) = TRUE
        /\ log' = [log EXCEPT ![l] = Append(log[l], Len(writtenIn))]
        /\ writtenIn' = Append(writtenIn, leaderEpoch[l])
        /\ highWatermark' = [highWatermark EXCEPT ![l] = newHighWatermark]
        /\ committed' = IF Len(committed) < newHighWatermark
                        THEN Take(Append(log[l], Len(writtenIn)), newHighWatermark)
                        ELSE committed
        /\ acked' = acked \cup {m \in Record : Acks = "leader" /\ m = Len(writtenIn)}
                    \cup {m \in Record : /\ Acks = "all"
                                         /\ Enough(l, MaximalIsr(l))
                                         /\ \E o \in {i \in Offset : i < newHighWatermark} :
                                                /\ At(Append(log[l], Len(writtenIn)), o) = m
                                                /\ highWatermark[l] <= o
                                         /\ IF ProducersWait
                                            THEN /\ Leads(l)
                                                 /\ leadingSince[l] <= At(Append(writtenIn,
                                                                                 leaderEpoch[l]),
                                                                          m)
                                            ELSE At(Append(writtenIn, leaderEpoch[l]), m) = leaderEpoch[l]}
        /\ UNCHANGED <<alive, leader, leaderEpoch, truncating, brokerEpoch, isr, pendingIsr,
                       partitionEpoch, followerEnd, followerBrokerEpoch, leadingSince, knownAway,
                       fetchVars, alterVars, controllerVars, lastKnownLeader, fenced, shuttingDown,
                       cleanShutdown, position, consumed, crashes, lossyCrashes, sessionsLost,
                       unnoticed, shutdowns>>

\* A follower sends its first fetch in an epoch; from then on every answer makes it send the next.
\*
\* The request names the current leader epoch and the epoch of the last record (KIP-320, KIP-595). A
\* fetch that Kafka would park until there is news is one that is answered later.
\* AbstractFetcherThread.maybeFetch.
FollowerSendsFetch(follower, l) ==
    /\ MayFetch(follower) = TRUE
    /\ follower # l
    /\ leader[follower] = l
    /\ fetch' = [fetch EXCEPT ![follower] = "requested"]
    /\ fetchTo' = [fetchTo EXCEPT ![follower] = l]
    /\ fetchEpoch' = [fetchEpoch EXCEPT ![follower] = leaderEpoch[follower]]
    /\ fetchOffset' = [fetchOffset EXCEPT ![follower] = Len(log[follower])]
    /\ fetchLastEpoch' = [fetchLastEpoch EXCEPT
                             ![follower] = IF Len(log[follower]) = 0
                                           THEN 0
                                           ELSE At(writtenIn,
                                                   At(log[follower], Len(log[follower]) - 1))]
    /\ fetchRecord' = [fetchRecord EXCEPT ![follower] = None]
    /\ fetchWatermark' = [fetchWatermark EXCEPT ![follower] = 0]
    /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                   isr, pendingIsr, partitionEpoch, followerEnd, followerBrokerEpoch,
                   leadingSince, knownAway, alterVars, controllerVars, lastKnownLeader, fenced,
                   shuttingDown, cleanShutdown, writtenIn, acked, committed, position,
                   consumed, crashes, lossyCrashes, sessionsLost, unnoticed, shutdowns>>

\* A leader takes a follower's fetch as its acknowledgement, moves the watermark, and answers.
\*
\* ReplicaManager.fetchMessages, Partition.updateFollowerFetchState,
\* Partition.maybeIncrementLeaderHW.
LeaderAnswersFetch(l, follower) ==
    LET newFollowerEnd == [followerEnd[l] EXCEPT ![follower] = fetchOffset[follower]]
        least == Min({IF q = l THEN LogEnd(l) ELSE OrElse(newFollowerEnd[q], 0)
                      : q \in MaximalIsr(l)
                              \cup {f \in Replica : /\ OwnView
                                                    /\ newFollowerEnd[f] # None
                                                    /\ f \notin knownAway[l]}},
                     highWatermark[l])
        newHighWatermark == IF MayAdvance(l, isr[l])
                            THEN IF least <= highWatermark[l] THEN highWatermark[l] ELSE least
                            ELSE highWatermark[l]
    IN  /\ fetch[follower] = "requested"
        /\ Takes(l, follower)
        /\ Continues(l, follower) = TRUE
        /\ followerEnd' = [followerEnd EXCEPT ![l][follower] = fetchOffset[follower]]
        /\ followerBrokerEpoch' = IF HasBrokerEpoch
                                  THEN [followerBrokerEpoch EXCEPT
                                           ![l][follower] = brokerEpoch[follower]]
                                  ELSE followerBrokerEpoch
        /\ highWatermark' = [highWatermark EXCEPT ![l] = newHighWatermark]
        /\ committed' = IF Len(committed) < newHighWatermark
                        THEN Take(log[l], newHighWatermark)
                        ELSE committed
        /\ acked' = acked
                    \cup {m \in Record : /\ Acks = "all"
                                         /\ Enough(l, MaximalIsr(l))
                                         /\ \E o \in 0..newHighWatermark - 1 :
                                                At(log[l], o) = m /\ highWatermark[l] <= o
                                         /\ IF ProducersWait
                                            THEN Leads(l) /\ leadingSince[l] <= At(writtenIn, m)
                                            ELSE At(writtenIn, m) = leaderEpoch[l]}
        /\ fetch' = [fetch EXCEPT ![follower] = IF Waits(l, follower) THEN "answered" ELSE "none"]
        /\ fetchTo' = [fetchTo EXCEPT ![follower] = None]
        /\ fetchEpoch' = [fetchEpoch EXCEPT
                             ![follower] = IF Waits(l, follower) THEN fetchEpoch[follower] ELSE 0]
        /\ fetchOffset' = [fetchOffset EXCEPT ![follower] = 0]
        /\ fetchLastEpoch' = [fetchLastEpoch EXCEPT ![follower] = 0]
        /\ fetchRecord' = [fetchRecord EXCEPT
                              ![follower] = IF Waits(l, follower)
                                            THEN IF fetchOffset[follower] < LogEnd(l)
                                                 THEN At(log[l], fetchOffset[follower])
                                                 ELSE None
                                            ELSE None]
        /\ fetchWatermark' = [fetchWatermark EXCEPT
                                 ![follower] = IF Waits(l, follower) THEN newHighWatermark ELSE 0]
        /\ UNCHANGED <<alive, log, leader, leaderEpoch, truncating, brokerEpoch, isr, pendingIsr,
                       partitionEpoch, leadingSince, knownAway, alterVars, controllerVars,
                       lastKnownLeader, fenced, shuttingDown, cleanShutdown, writtenIn, position,
                       consumed, crashes, lossyCrashes, sessionsLost, unnoticed, shutdowns>>

\* A leader tells a follower where their logs part; such a fetch acknowledges nothing (3).
\*
\* It names its largest epoch that is not above the follower's and where that ends.
\* Partition.readRecords, lastOffsetForLeaderEpoch (KIP-595); KIP-279's rule.
LeaderAnswersDiverging(l, follower) ==
    LET epochNotAbove == EpochNotAbove(l, fetchLastEpoch[follower])
    IN  /\ fetch[follower] = "requested"
        /\ Takes(l, follower)
        /\ ~Continues(l, follower)
        /\ fetch' = [fetch EXCEPT ![follower] = IF Waits(l, follower) THEN "diverged" ELSE "none"]
        /\ fetchTo' = [fetchTo EXCEPT ![follower] = None]
        /\ fetchEpoch' = [fetchEpoch EXCEPT
                             ![follower] = IF Waits(l, follower) THEN fetchEpoch[follower] ELSE 0]
        /\ fetchOffset' = [fetchOffset EXCEPT
                              ![follower] = IF Waits(l, follower)
                                            THEN EndOfEpoch(l, epochNotAbove)
                                            ELSE 0]
        /\ fetchLastEpoch' = [fetchLastEpoch EXCEPT
                                 ![follower] = IF Waits(l, follower) THEN epochNotAbove ELSE 0]
        /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                       isr, pendingIsr, partitionEpoch, followerEnd, followerBrokerEpoch,
                       leadingSince, knownAway, fetchRecord, fetchWatermark, alterVars,
                       controllerVars, lastKnownLeader, fenced, shuttingDown, cleanShutdown,
                       writtenIn, acked, committed, position, consumed, crashes, lossyCrashes,
                       sessionsLost, unnoticed, shutdowns>>

\* A follower appends what it was sent, takes over the leader's watermark, even a lower one, and
\* asks for more.
\*
\* ReplicaFetcherThread.processPartitionData.
FollowerAppends(follower) ==
    LET newLog == IF fetchRecord[follower] = None
                  THEN log[follower]
                  ELSE Append(log[follower], OrElse(fetchRecord[follower], 0))
    IN  /\ fetch[follower] = "answered"
        /\ log' = [log EXCEPT ![follower] = newLog]
        /\ highWatermark' = [highWatermark EXCEPT
                                ![follower] = IF fetchWatermark[follower] <= Len(newLog)
                                              THEN fetchWatermark[follower]
                                              ELSE Len(newLog)]
        /\ fetch' = [fetch EXCEPT ![follower] = "requested"]
        /\ fetchTo' = [fetchTo EXCEPT ![follower] = leader[follower]]
        /\ fetchEpoch' = [fetchEpoch EXCEPT ![follower] = leaderEpoch[follower]]
        /\ fetchOffset' = [fetchOffset EXCEPT ![follower] = Len(newLog)]
        /\ fetchLastEpoch' = [fetchLastEpoch EXCEPT
                                 ![follower] = IF Len(newLog) = 0
                                               THEN 0
                                               ELSE At(writtenIn, At(newLog, Len(newLog) - 1))]
        /\ fetchRecord' = [fetchRecord EXCEPT ![follower] = None]
        /\ fetchWatermark' = [fetchWatermark EXCEPT ![follower] = 0]
        /\ UNCHANGED <<alive, leader, leaderEpoch, truncating, brokerEpoch, isr, pendingIsr,
                       partitionEpoch, followerEnd, followerBrokerEpoch, leadingSince, knownAway,
                       alterVars, controllerVars, lastKnownLeader, fenced, shuttingDown,
                       cleanShutdown, writtenIn, acked, committed, position, consumed, crashes,
                       lossyCrashes, sessionsLost, unnoticed, shutdowns>>

\* A follower cuts its log where it parts from the leader's, as far as it can tell, and asks again.
\*
\* AbstractFetcherThread.truncateOnFetchResponse, getOffsetTruncationState.
FollowerTruncates(follower) ==
    LET endOfEpoch == EndOfEpoch(follower, fetchLastEpoch[follower])
        value == IF fetchOffset[follower] <= endOfEpoch THEN fetchOffset[follower] ELSE endOfEpoch
    IN  /\ fetch[follower] = "diverged"
        /\ log' = [log EXCEPT ![follower] = Take(log[follower], value)]
        /\ highWatermark' = [highWatermark EXCEPT
                                ![follower] = IF highWatermark[follower] <= value
                                              THEN highWatermark[follower]
                                              ELSE value]
        /\ fetch' = [fetch EXCEPT ![follower] = "requested"]
        /\ fetchTo' = [fetchTo EXCEPT ![follower] = leader[follower]]
        /\ fetchEpoch' = [fetchEpoch EXCEPT ![follower] = leaderEpoch[follower]]
        /\ fetchOffset' = [fetchOffset EXCEPT ![follower] = Len(Take(log[follower], value))]
        /\ fetchLastEpoch' = [fetchLastEpoch EXCEPT
                                 ![follower] = IF Len(Take(log[follower], value)) = 0
                                               THEN 0
                                               ELSE At(writtenIn,
                                                       At(Take(log[follower], value),
                                                          Len(Take(log[follower], value)) - 1))]
        /\ fetchRecord' = [fetchRecord EXCEPT ![follower] = None]
        /\ fetchWatermark' = [fetchWatermark EXCEPT ![follower] = 0]
        /\ UNCHANGED <<alive, leader, leaderEpoch, truncating, brokerEpoch, isr, pendingIsr,
                       partitionEpoch, followerEnd, followerBrokerEpoch, leadingSince, knownAway,
                       alterVars, controllerVars, lastKnownLeader, fenced, shuttingDown,
                       cleanShutdown, writtenIn, acked, committed, position, consumed, crashes,
                       lossyCrashes, sessionsLost, unnoticed, shutdowns>>

\* A leader asks to drop the members that lag, all in one request.
\*
\* Lagging: not seen at the log end within replica.lag.time.max.ms. Partition.maybeShrinkIsr.
LeaderProposesShrink(l, lagging) ==
    /\ FreeToAsk(l)
    /\ lagging # {}
    /\ lagging \subseteq isr[l] \ {l}
    /\ AllLag(l, lagging)
    /\ pendingIsr' = [pendingIsr EXCEPT ![l] = isr[l] \ lagging]
    /\ alter' = [alter EXCEPT ![l] = "requested"]
    /\ alterIsr' = [alterIsr EXCEPT ![l] = isr[l] \ lagging]
    /\ alterLeaderEpoch' = [alterLeaderEpoch EXCEPT ![l] = leaderEpoch[l]]
    /\ alterPartitionEpoch' = [alterPartitionEpoch EXCEPT ![l] = partitionEpoch[l]]
    /\ alterBrokerEpoch' = IF HasBrokerEpoch
                           THEN [alterBrokerEpoch EXCEPT ![l] = 0]
                           ELSE alterBrokerEpoch
    /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                   isr, partitionEpoch, followerEnd, followerBrokerEpoch, leadingSince,
                   knownAway, fetchVars, controllerVars, lastKnownLeader, fenced, shuttingDown,
                   cleanShutdown, writtenIn, acked, committed, position, consumed, crashes,
                   lossyCrashes, sessionsLost, unnoticed, shutdowns>>

\* A leader asks to add a follower that has caught up; from now on it counts for the watermark (1).
\*
\* Kafka asks only while it handles the follower's fetch, and looks at its own metadata first
\* (isReplicaIsrEligible, here with OWN_VIEW); the controller looks again. Partition.maybeExpandIsr,
\* isFollowerInSync.
LeaderProposesExpansion(l, f) ==
    /\ FreeToAsk(l)
    /\ f \notin isr[l]
    /\ CaughtUp(l, f)
    /\ PastEpochStart(l, f)
    /\ pendingIsr' = [pendingIsr EXCEPT ![l] = isr[l] \cup {f}]
    /\ alter' = [alter EXCEPT ![l] = "requested"]
    /\ alterIsr' = [alterIsr EXCEPT ![l] = isr[l] \cup {f}]
    /\ alterLeaderEpoch' = [alterLeaderEpoch EXCEPT ![l] = leaderEpoch[l]]
    /\ alterPartitionEpoch' = [alterPartitionEpoch EXCEPT ![l] = partitionEpoch[l]]
    /\ alterBrokerEpoch' = IF HasBrokerEpoch
                           THEN [alterBrokerEpoch EXCEPT ![l] = followerBrokerEpoch[l][f]]
                           ELSE alterBrokerEpoch
    /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                   isr, partitionEpoch, followerEnd, followerBrokerEpoch, leadingSince,
                   knownAway, fetchVars, controllerVars, lastKnownLeader, fenced, shuttingDown,
                   cleanShutdown, writtenIn, acked, committed, position, consumed, crashes,
                   lossyCrashes, sessionsLost, unnoticed, shutdowns>>

\* The controller makes a proposed in-sync set the in-sync set.
\*
\* ReplicationControlManager.alterPartition.
ControllerAcceptsAlterPartition(l) ==
    /\ alter[l] = "requested"
    /\ Current(l)
    /\ Eligible(l)
    /\ controllerPartitionEpoch < IsrChanges
    /\ controllerPartitionEpoch' = controllerPartitionEpoch + 1
    /\ controllerIsr' = alterIsr[l]
    /\ controllerElr' = ElrBeside(alterIsr[l])
    /\ alter' = [alter EXCEPT ![l] = IF Hears(l) THEN "accepted" ELSE "none"]
    /\ alterIsr' = [alterIsr EXCEPT ![l] = {}]
    /\ alterLeaderEpoch' = [alterLeaderEpoch EXCEPT ![l] = 0]
    /\ alterPartitionEpoch' = [alterPartitionEpoch EXCEPT ![l] = 0]
    /\ alterBrokerEpoch' = IF HasBrokerEpoch
                           THEN [alterBrokerEpoch EXCEPT ![l] = 0]
                           ELSE alterBrokerEpoch
    /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                   isr, pendingIsr, partitionEpoch, followerEnd, followerBrokerEpoch,
                   leadingSince, knownAway, fetchVars, controllerLeader, controllerEpoch,
                   lastKnownLeader, fenced, shuttingDown, cleanShutdown, writtenIn, acked,
                   committed, position, consumed, crashes, lossyCrashes, sessionsLost,
                   unnoticed, shutdowns>>

\* The controller answers INELIGIBLE_REPLICA: a proposed member is fenced, leaving, or was
\* restarted.
ControllerRefusesAlterPartition(l) ==
    /\ alter[l] = "requested"
    /\ Current(l)
    /\ ~Eligible(l)
    /\ alter' = [alter EXCEPT ![l] = IF Hears(l) THEN "refused" ELSE "none"]
    /\ alterIsr' = [alterIsr EXCEPT ![l] = {}]
    /\ alterLeaderEpoch' = [alterLeaderEpoch EXCEPT ![l] = 0]
    /\ alterPartitionEpoch' = [alterPartitionEpoch EXCEPT ![l] = 0]
    /\ alterBrokerEpoch' = IF HasBrokerEpoch
                           THEN [alterBrokerEpoch EXCEPT ![l] = 0]
                           ELSE alterBrokerEpoch
    /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                   isr, pendingIsr, partitionEpoch, followerEnd, followerBrokerEpoch,
                   leadingSince, knownAway, fetchVars, controllerVars, lastKnownLeader, fenced,
                   shuttingDown, cleanShutdown, writtenIn, acked, committed, position,
                   consumed, crashes, lossyCrashes, sessionsLost, unnoticed, shutdowns>>

\* The controller answers FENCED_LEADER_EPOCH, INVALID_REQUEST or INVALID_UPDATE_VERSION: the
\* metadata has moved on.
\*
\* (5) To the leader this is an answer of unknown effect: it keeps the larger set until metadata
\* comes.
ControllerRejectsStaleAlterPartition(l) ==
    /\ alter[l] = "requested"
    /\ ~Current(l)
    /\ alter' = [alter EXCEPT ![l] = "none"]
    /\ alterIsr' = [alterIsr EXCEPT ![l] = {}]
    /\ alterLeaderEpoch' = [alterLeaderEpoch EXCEPT ![l] = 0]
    /\ alterPartitionEpoch' = [alterPartitionEpoch EXCEPT ![l] = 0]
    /\ alterBrokerEpoch' = IF HasBrokerEpoch
                           THEN [alterBrokerEpoch EXCEPT ![l] = 0]
                           ELSE alterBrokerEpoch
    /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                   isr, pendingIsr, partitionEpoch, followerEnd, followerBrokerEpoch,
                   leadingSince, knownAway, fetchVars, controllerVars, lastKnownLeader, fenced,
                   shuttingDown, cleanShutdown, writtenIn, acked, committed, position,
                   consumed, crashes, lossyCrashes, sessionsLost, unnoticed, shutdowns>>

\* A leader learns that its in-sync set was accepted, and moves the watermark under it.
LeaderAdoptsIsr(l) ==
    LET least == Min({IF q = l THEN LogEnd(l) ELSE OrElse(followerEnd[l][q], 0)
                      : q \in pendingIsr[l]
                              \cup {f \in Replica : /\ OwnView
                                                    /\ followerEnd[l][f] # None
                                                    /\ f \notin knownAway[l]}},
                     highWatermark[l])
        newHighWatermark == IF MayAdvance(l, pendingIsr[l])
                            THEN IF least <= highWatermark[l] THEN highWatermark[l] ELSE least
                            ELSE highWatermark[l]
    IN  /\ alter[l] = "accepted"
        /\ isr' = [isr EXCEPT ![l] = pendingIsr[l]]
        /\ pendingIsr' = [pendingIsr EXCEPT ![l] = {}]
        /\ partitionEpoch' = [partitionEpoch EXCEPT ![l] = partitionEpoch[l] + 1]
        /\ alter' = [alter EXCEPT ![l] = "none"]
        /\ alterIsr' = [alterIsr EXCEPT ![l] = {}]
        /\ alterLeaderEpoch' = [alterLeaderEpoch EXCEPT ![l] = 0]
        /\ alterPartitionEpoch' = [alterPartitionEpoch EXCEPT ![l] = 0]
        /\ alterBrokerEpoch' = IF HasBrokerEpoch
                               THEN [alterBrokerEpoch EXCEPT ![l] = 0]
                               ELSE alterBrokerEpoch
        /\ highWatermark' = [highWatermark EXCEPT ![l] = newHighWatermark]
        /\ committed' = IF Len(committed) < newHighWatermark
                        THEN Take(log[l], newHighWatermark)
                        ELSE committed
        /\ acked' = acked
                    \cup {m \in Record : /\ Acks = "all"
                                         /\ Enough(l, pendingIsr[l])
                                         /\ \E o \in 0..newHighWatermark - 1 :
                                                At(log[l], o) = m /\ highWatermark[l] <= o
                                         /\ IF ProducersWait
                                            THEN Leads(l) /\ leadingSince[l] <= At(writtenIn, m)
                                            ELSE At(writtenIn, m) = leaderEpoch[l]}
        /\ UNCHANGED <<alive, log, leader, leaderEpoch, truncating, brokerEpoch, followerEnd,
                       followerBrokerEpoch, leadingSince, knownAway, fetchVars, controllerVars,
                       lastKnownLeader, fenced, shuttingDown, cleanShutdown, writtenIn, position,
                       consumed, crashes, lossyCrashes, sessionsLost, unnoticed, shutdowns>>

\* (5) A leader learns that a proposed member is ineligible, and stops counting it.
LeaderRollsBack(l) ==
    /\ alter[l] = "refused"
    /\ pendingIsr' = [pendingIsr EXCEPT ![l] = {}]
    /\ alter' = [alter EXCEPT ![l] = "none"]
    /\ alterIsr' = [alterIsr EXCEPT ![l] = {}]
    /\ alterLeaderEpoch' = [alterLeaderEpoch EXCEPT ![l] = 0]
    /\ alterPartitionEpoch' = [alterPartitionEpoch EXCEPT ![l] = 0]
    /\ alterBrokerEpoch' = IF HasBrokerEpoch
                           THEN [alterBrokerEpoch EXCEPT ![l] = 0]
                           ELSE alterBrokerEpoch
    /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                   isr, partitionEpoch, followerEnd, followerBrokerEpoch, leadingSince,
                   knownAway, fetchVars, controllerVars, lastKnownLeader, fenced, shuttingDown,
                   cleanShutdown, writtenIn, acked, committed, position, consumed, crashes,
                   lossyCrashes, sessionsLost, unnoticed, shutdowns>>

\* A replica learns that it leads in a new epoch; alone in the in-sync set, it commits its whole
\* log.
\*
\* Partition.makeLeader.
BecomesLeader(r) ==
    LET value == IF controllerIsr = {r} THEN LogEnd(r) ELSE highWatermark[r]
        newHighWatermark == IF MayAdvanceOnNews(r, controllerIsr)
                            THEN IF value <= highWatermark[r] THEN highWatermark[r] ELSE value
                            ELSE highWatermark[r]
    IN  /\ Behind(r) = TRUE
        /\ controllerLeader = r
        /\ leader' = [leader EXCEPT ![r] = controllerLeader]
        /\ leaderEpoch' = [leaderEpoch EXCEPT ![r] = controllerEpoch]
        /\ pendingIsr' = [pendingIsr EXCEPT ![r] = {}]
        /\ leadingSince' = IF ProducersWait
                           THEN [leadingSince EXCEPT
                                    ![r] = IF controllerLeader = r
                                           THEN IF Leads(r) THEN leadingSince[r] ELSE controllerEpoch
                                           ELSE 0]
                           ELSE leadingSince
        /\ knownAway' = IF OwnView
                        THEN [knownAway EXCEPT
                                 ![r] = IF controllerLeader = r THEN fenced \cup shuttingDown ELSE {}]
                        ELSE knownAway
        /\ alter' = [alter EXCEPT ![r] = IF alter[r] = "requested" THEN alter[r] ELSE "none"]
        /\ followerEnd' = [followerEnd EXCEPT ![r] = [k \in Replica |-> None]]
        /\ followerBrokerEpoch' = IF HasBrokerEpoch
                                  THEN [followerBrokerEpoch EXCEPT ![r] = [k \in Replica |-> 0]]
                                  ELSE followerBrokerEpoch
        /\ isr' = [isr EXCEPT ![r] = controllerIsr]
        /\ partitionEpoch' = [partitionEpoch EXCEPT ![r] = controllerPartitionEpoch]
        /\ fetch' = [fetch EXCEPT
                        ![r] = IF RequestLives(r) THEN fetch[r] ELSE IF FALSE THEN "none" ELSE "none"]
        /\ fetchTo' = [fetchTo EXCEPT
                          ![r] = IF RequestLives(r)
                                 THEN fetchTo[r]
                                 ELSE IF FALSE THEN controllerLeader ELSE None]
        /\ fetchEpoch' = [fetchEpoch EXCEPT
                             ![r] = IF RequestLives(r)
                                    THEN fetchEpoch[r]
                                    ELSE IF FALSE THEN controllerEpoch ELSE 0]
        /\ fetchOffset' = [fetchOffset EXCEPT
                              ![r] = IF RequestLives(r)
                                     THEN fetchOffset[r]
                                     ELSE IF FALSE THEN Len(log[r]) ELSE 0]
        /\ fetchLastEpoch' = [fetchLastEpoch EXCEPT
                                 ![r] = IF RequestLives(r)
                                        THEN fetchLastEpoch[r]
                                        ELSE IF FALSE
                                             THEN IF Len(log[r]) = 0
                                                  THEN 0
                                                  ELSE At(writtenIn, At(log[r], Len(log[r]) - 1))
                                             ELSE 0]
        /\ fetchRecord' = [fetchRecord EXCEPT ![r] = None]
        /\ fetchWatermark' = [fetchWatermark EXCEPT ![r] = 0]
        /\ highWatermark' = [highWatermark EXCEPT ![r] = newHighWatermark]
        /\ committed' = IF Len(committed) < newHighWatermark
                        THEN Take(log[r], newHighWatermark)
                        ELSE committed
        /\ acked' = IF ProducersWait
                    THEN acked
                         \cup {m \in Record : /\ Acks = "all"
                                              /\ EnoughOnNews(r, controllerIsr)
                                              /\ \E o \in 0..newHighWatermark - 1 :
                                                     At(log[r], o) = m /\ highWatermark[r] <= o
                                              /\ IF ProducersWait
                                                 THEN Leads(r) /\ leadingSince[r] <= At(writtenIn, m)
                                                 ELSE At(writtenIn, m) = leaderEpoch[r]}
                    ELSE acked
        /\ UNCHANGED <<alive, log, truncating, brokerEpoch, alterIsr, alterLeaderEpoch,
                       alterPartitionEpoch, alterBrokerEpoch, controllerVars, lastKnownLeader,
                       fenced, shuttingDown, cleanShutdown, writtenIn, position, consumed, crashes,
                       lossyCrashes, sessionsLost, unnoticed, shutdowns>>

\* A replica learns of another leader and fetches from it, or that there is none; its log stays as
\* it is.
\*
\* Partition.makeFollower.
BecomesFollower(r) ==
    /\ Behind(r) = TRUE
    /\ controllerLeader # r
    /\ leader' = [leader EXCEPT ![r] = controllerLeader]
    /\ leaderEpoch' = [leaderEpoch EXCEPT ![r] = controllerEpoch]
    /\ pendingIsr' = [pendingIsr EXCEPT ![r] = {}]
    /\ leadingSince' = IF ProducersWait
                       THEN [leadingSince EXCEPT
                                ![r] = IF controllerLeader = r
                                       THEN IF Leads(r) THEN leadingSince[r] ELSE controllerEpoch
                                       ELSE 0]
                       ELSE leadingSince
    /\ knownAway' = IF OwnView
                    THEN [knownAway EXCEPT
                             ![r] = IF controllerLeader = r THEN fenced \cup shuttingDown ELSE {}]
                    ELSE knownAway
    /\ alter' = [alter EXCEPT ![r] = IF alter[r] = "requested" THEN alter[r] ELSE "none"]
    /\ followerEnd' = [followerEnd EXCEPT ![r] = [k \in Replica |-> None]]
    /\ followerBrokerEpoch' = IF HasBrokerEpoch
                              THEN [followerBrokerEpoch EXCEPT ![r] = [k \in Replica |-> 0]]
                              ELSE followerBrokerEpoch
    /\ isr' = [isr EXCEPT ![r] = {}]
    /\ partitionEpoch' = [partitionEpoch EXCEPT ![r] = 0]
    /\ fetch' = [fetch EXCEPT
                    ![r] = IF RequestLives(r)
                           THEN fetch[r]
                           ELSE IF controllerLeader # None THEN "requested" ELSE "none"]
    /\ fetchTo' = [fetchTo EXCEPT
                      ![r] = IF RequestLives(r)
                             THEN fetchTo[r]
                             ELSE IF controllerLeader # None THEN controllerLeader ELSE None]
    /\ fetchEpoch' = [fetchEpoch EXCEPT
                         ![r] = IF RequestLives(r)
                                THEN fetchEpoch[r]
                                ELSE IF controllerLeader # None THEN controllerEpoch ELSE 0]
    /\ fetchOffset' = [fetchOffset EXCEPT
                          ![r] = IF RequestLives(r)
                                 THEN fetchOffset[r]
                                 ELSE IF controllerLeader # None THEN Len(log[r]) ELSE 0]
    /\ fetchLastEpoch' = [fetchLastEpoch EXCEPT
                             ![r] = IF RequestLives(r)
                                    THEN fetchLastEpoch[r]
                                    ELSE IF controllerLeader # None
                                         THEN IF Len(log[r]) = 0
                                              THEN 0
                                              ELSE At(writtenIn, At(log[r], Len(log[r]) - 1))
                                         ELSE 0]
    /\ fetchRecord' = [fetchRecord EXCEPT ![r] = None]
    /\ fetchWatermark' = [fetchWatermark EXCEPT ![r] = 0]
    /\ UNCHANGED <<alive, log, highWatermark, truncating, brokerEpoch, alterIsr,
                   alterLeaderEpoch, alterPartitionEpoch, alterBrokerEpoch, controllerVars,
                   lastKnownLeader, fenced, shuttingDown, cleanShutdown, writtenIn, acked,
                   committed, position, consumed, crashes, lossyCrashes, sessionsLost,
                   unnoticed, shutdowns>>

\* A leader learns newer metadata of its own epoch, which settles whatever it had asked.
LeaderLearnsIsr(l) ==
    LET least == Min({IF q = l THEN LogEnd(l) ELSE OrElse(followerEnd[l][q], 0)
                      : q \in controllerIsr
                              \cup {f \in Replica : /\ OwnView
                                                    /\ followerEnd[l][f] # None
                                                    /\ f \notin fenced \cup shuttingDown}},
                     highWatermark[l])
        newHighWatermark == IF MayAdvanceOnNews(l, controllerIsr)
                            THEN IF least <= highWatermark[l] THEN highWatermark[l] ELSE least
                            ELSE highWatermark[l]
    IN  /\ Leads(l)
        /\ leaderEpoch[l] = controllerEpoch
        /\ partitionEpoch[l] < controllerPartitionEpoch
        /\ knownAway' = IF OwnView
                        THEN [knownAway EXCEPT ![l] = fenced \cup shuttingDown]
                        ELSE knownAway
        /\ isr' = [isr EXCEPT ![l] = controllerIsr]
        /\ pendingIsr' = [pendingIsr EXCEPT ![l] = {}]
        /\ partitionEpoch' = [partitionEpoch EXCEPT ![l] = controllerPartitionEpoch]
        /\ alter' = [alter EXCEPT ![l] = IF alter[l] = "requested" THEN alter[l] ELSE "none"]
        /\ highWatermark' = [highWatermark EXCEPT ![l] = newHighWatermark]
        /\ committed' = IF Len(committed) < newHighWatermark
                        THEN Take(log[l], newHighWatermark)
                        ELSE committed
        /\ acked' = acked
                    \cup {m \in Record : /\ Acks = "all"
                                         /\ EnoughOnNews(l, controllerIsr)
                                         /\ \E o \in 0..newHighWatermark - 1 :
                                                At(log[l], o) = m /\ highWatermark[l] <= o
                                         /\ IF ProducersWait
                                            THEN Leads(l) /\ leadingSince[l] <= At(writtenIn, m)
                                            ELSE At(writtenIn, m) = leaderEpoch[l]}
        /\ UNCHANGED <<alive, log, leader, leaderEpoch, truncating, brokerEpoch, followerEnd,
                       followerBrokerEpoch, leadingSince, fetchVars, alterIsr, alterLeaderEpoch,
                       alterPartitionEpoch, alterBrokerEpoch, controllerVars, lastKnownLeader,
                       fenced, shuttingDown, cleanShutdown, writtenIn, position, consumed, crashes,
                       lossyCrashes, sessionsLost, unnoticed, shutdowns>>

\* The controller fences a broker that is not in sync, which changes nothing for the partition.
ControllerFencesOutsider(r) ==
    /\ Leaving(r) = TRUE
    /\ controllerLeader # r
    /\ r \notin controllerIsr
    /\ fenced' = IF r \in shuttingDown /\ r \in alive THEN fenced ELSE fenced \cup {r}
    /\ sessionsLost' = IF r \in alive /\ ~(r \in shuttingDown /\ r \in alive)
                       THEN sessionsLost + 1
                       ELSE sessionsLost
    /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                   isr, pendingIsr, partitionEpoch, followerEnd, followerBrokerEpoch,
                   leadingSince, knownAway, fetchVars, alterVars, controllerVars,
                   lastKnownLeader, shuttingDown, cleanShutdown, writtenIn, acked, committed,
                   position, consumed, crashes, lossyCrashes, unnoticed, shutdowns>>

\* The controller fences a follower, or relieves one that shuts down, and takes it out of the ISR.
\*
\* ReplicationControlManager.handleBrokerFenced, handleBrokerInControlledShutdown.
ControllerFencesFollower(r) ==
    /\ Leaving(r) = TRUE
    /\ controllerLeader # r
    /\ r \in controllerIsr
    /\ controllerPartitionEpoch < IsrChanges
    /\ fenced' = IF r \in shuttingDown /\ r \in alive THEN fenced ELSE fenced \cup {r}
    /\ sessionsLost' = IF r \in alive /\ ~(r \in shuttingDown /\ r \in alive)
                       THEN sessionsLost + 1
                       ELSE sessionsLost
    /\ controllerPartitionEpoch' = controllerPartitionEpoch + 1
    /\ controllerIsr' = IsrWithout(r)
    /\ controllerElr' = ElrBeside(IsrWithout(r))
    /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                   isr, pendingIsr, partitionEpoch, followerEnd, followerBrokerEpoch,
                   leadingSince, knownAway, fetchVars, alterVars, controllerLeader,
                   controllerEpoch, lastKnownLeader, shuttingDown, cleanShutdown, writtenIn,
                   acked, committed, position, consumed, crashes, lossyCrashes, unnoticed,
                   shutdowns>>

\* The controller fences the leader, or relieves one that shuts down, and elects another replica.
ControllerFencesLeader(r, successor) ==
    LET newControllerIsr == IF IsrWithout(r) = {} THEN {successor} ELSE IsrWithout(r)
    IN  /\ Leaving(r) = TRUE
        /\ controllerLeader = r
        /\ successor # r
        /\ Electable(successor, IsrWithout(r), controllerElr \ {r}) = TRUE
        /\ controllerEpoch < Epochs
        /\ controllerPartitionEpoch < IsrChanges
        /\ fenced' = IF r \in shuttingDown /\ r \in alive THEN fenced ELSE fenced \cup {r}
        /\ sessionsLost' = IF r \in alive /\ ~(r \in shuttingDown /\ r \in alive)
                           THEN sessionsLost + 1
                           ELSE sessionsLost
        /\ controllerPartitionEpoch' = controllerPartitionEpoch + 1
        /\ controllerIsr' = newControllerIsr
        /\ controllerElr' = ElrBeside(newControllerIsr)
        /\ controllerLeader' = successor
        /\ controllerEpoch' = controllerEpoch + 1
        /\ lastKnownLeader' = None
        /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                       isr, pendingIsr, partitionEpoch, followerEnd, followerBrokerEpoch,
                       leadingSince, knownAway, fetchVars, alterVars, shuttingDown, cleanShutdown,
                       writtenIn, acked, committed, position, consumed, crashes, lossyCrashes,
                       unnoticed, shutdowns>>

\* The controller fences or relieves the leader, and nobody can take over: the partition has no
\* leader.
ControllerFencesLastLeader(r) ==
    /\ Leaving(r) = TRUE
    /\ controllerLeader = r
    /\ ~(\E q \in Replica \ {r} : Electable(q, IsrWithout(r), controllerElr \ {r}))
    /\ controllerEpoch < Epochs
    /\ controllerPartitionEpoch < IsrChanges
    /\ fenced' = IF r \in shuttingDown /\ r \in alive THEN fenced ELSE fenced \cup {r}
    /\ sessionsLost' = IF r \in alive /\ ~(r \in shuttingDown /\ r \in alive)
                       THEN sessionsLost + 1
                       ELSE sessionsLost
    /\ controllerPartitionEpoch' = controllerPartitionEpoch + 1
    /\ controllerIsr' = IsrWithout(r)
    /\ controllerElr' = ElrBeside(IsrWithout(r))
    /\ controllerLeader' = None
    /\ controllerEpoch' = controllerEpoch + 1
    /\ lastKnownLeader' = IF IsrWithout(r) = {} THEN r ELSE None
    /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                   isr, pendingIsr, partitionEpoch, followerEnd, followerBrokerEpoch,
                   leadingSince, knownAway, fetchVars, alterVars, shuttingDown, cleanShutdown,
                   writtenIn, acked, committed, position, consumed, crashes, lossyCrashes,
                   unnoticed, shutdowns>>

\* The controller gives a broker its session back, where that changes nothing for the partition.
ControllerUnfences(r) ==
    /\ Returns(r)
    /\ ~Awaited(r)
    /\ ~LastHope(r)
    /\ fenced' = fenced \ {r}
    /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                   isr, pendingIsr, partitionEpoch, followerEnd, followerBrokerEpoch,
                   leadingSince, knownAway, fetchVars, alterVars, controllerVars,
                   lastKnownLeader, shuttingDown, cleanShutdown, writtenIn, acked, committed,
                   position, consumed, crashes, lossyCrashes, sessionsLost, unnoticed,
                   shutdowns>>

\* The controller elects a replica for which the partition waited: it is back, or has become
\* eligible.
ControllerElectsReturned(r) ==
    LET newControllerIsr == IF controllerIsr = {} THEN {r} ELSE controllerIsr
    IN  /\ (Returns(r) \/ Available(r)) = TRUE
        /\ Awaited(r) = TRUE
        /\ controllerEpoch < Epochs
        /\ controllerPartitionEpoch < IsrChanges
        /\ fenced' = fenced \ {r}
        /\ controllerPartitionEpoch' = controllerPartitionEpoch + 1
        /\ controllerIsr' = newControllerIsr
        /\ controllerElr' = ElrBeside(newControllerIsr)
        /\ controllerLeader' = r
        /\ controllerEpoch' = controllerEpoch + 1
        /\ lastKnownLeader' = None
        /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                       isr, pendingIsr, partitionEpoch, followerEnd, followerBrokerEpoch,
                       leadingSince, knownAway, fetchVars, alterVars, shuttingDown, cleanShutdown,
                       writtenIn, acked, committed, position, consumed, crashes, lossyCrashes,
                       sessionsLost, unnoticed, shutdowns>>

\* Nobody is eligible, so the replica that led last leads again, whatever it may have lost.
\*
\* PartitionChangeBuilder.canElectLastKnownLeader.
ControllerElectsLastKnownLeader(r) ==
    /\ (Returns(r) \/ Available(r)) = TRUE
    /\ controllerLeader = None
    /\ LastHope(r)
    /\ controllerEpoch < Epochs
    /\ controllerPartitionEpoch < IsrChanges
    /\ fenced' = fenced \ {r}
    /\ controllerPartitionEpoch' = controllerPartitionEpoch + 1
    /\ controllerIsr' = {r}
    /\ controllerElr' = {}
    /\ controllerLeader' = r
    /\ controllerEpoch' = controllerEpoch + 1
    /\ lastKnownLeader' = None
    /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                   isr, pendingIsr, partitionEpoch, followerEnd, followerBrokerEpoch,
                   leadingSince, knownAway, fetchVars, alterVars, shuttingDown, cleanShutdown,
                   writtenIn, acked, committed, position, consumed, crashes, lossyCrashes,
                   sessionsLost, unnoticed, shutdowns>>

\* The controller moves leadership to another member of the ISR, which stays as it is (preferred
\* election).
ControllerMovesLeadership(l) ==
    /\ controllerLeader # None
    /\ controllerLeader # l
    /\ Electable(l, controllerIsr, {}) = TRUE
    /\ controllerEpoch < Epochs
    /\ controllerPartitionEpoch < IsrChanges
    /\ controllerPartitionEpoch' = controllerPartitionEpoch + 1
    /\ controllerIsr' = controllerIsr
    /\ controllerElr' = controllerElr
    /\ controllerLeader' = l
    /\ controllerEpoch' = controllerEpoch + 1
    /\ lastKnownLeader' = None
    /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                   isr, pendingIsr, partitionEpoch, followerEnd, followerBrokerEpoch,
                   leadingSince, knownAway, fetchVars, alterVars, fenced, shuttingDown,
                   cleanShutdown, writtenIn, acked, committed, position, consumed, crashes,
                   lossyCrashes, sessionsLost, unnoticed, shutdowns>>

\* Nobody eligible is available, so any available replica leads, alone, whatever it lacks.
\*
\* Kafka does this in the step that loses the leader; here it follows, one epoch later.
\* unclean.leader.election.enable; PartitionChangeBuilder.electAnyLeader.
ControllerElectsUnclean(l) ==
    /\ Unclean
    /\ controllerLeader = None
    /\ Available(l)
    /\ ~(\E q \in Replica : Electable(q, controllerIsr, controllerElr))
    /\ controllerEpoch < Epochs
    /\ controllerPartitionEpoch < IsrChanges
    /\ controllerPartitionEpoch' = controllerPartitionEpoch + 1
    /\ controllerIsr' = {l}
    /\ controllerElr' = {}
    /\ controllerLeader' = l
    /\ controllerEpoch' = controllerEpoch + 1
    /\ lastKnownLeader' = None
    /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                   isr, pendingIsr, partitionEpoch, followerEnd, followerBrokerEpoch,
                   leadingSince, knownAway, fetchVars, alterVars, fenced, shuttingDown,
                   cleanShutdown, writtenIn, acked, committed, position, consumed, crashes,
                   lossyCrashes, sessionsLost, unnoticed, shutdowns>>

\* A broker dies and keeps its disk; of its watermarks some older one was checkpointed.
BrokerCrashes(r, checkpoint) ==
    LET newFetch == [f \in Replica |-> IF f = r \/ fetchTo[f] = r THEN "none" ELSE fetch[f]]
    IN  /\ crashes < MaxCrashes
        /\ r \in alive
        /\ checkpoint <= highWatermark[r]
        /\ alive' = alive \ {r}
        /\ leader' = [leader EXCEPT ![r] = None]
        /\ leaderEpoch' = [leaderEpoch EXCEPT ![r] = 0]
        /\ truncating' = truncating \ {r}
        /\ isr' = [isr EXCEPT ![r] = {}]
        /\ pendingIsr' = [pendingIsr EXCEPT ![r] = {}]
        /\ partitionEpoch' = [partitionEpoch EXCEPT ![r] = 0]
        /\ followerEnd' = [followerEnd EXCEPT ![r] = [k \in Replica |-> None]]
        /\ followerBrokerEpoch' = IF HasBrokerEpoch
                                  THEN [followerBrokerEpoch EXCEPT ![r] = [k \in Replica |-> 0]]
                                  ELSE followerBrokerEpoch
        /\ leadingSince' = IF ProducersWait THEN [leadingSince EXCEPT ![r] = 0] ELSE leadingSince
        /\ knownAway' = IF OwnView THEN [knownAway EXCEPT ![r] = {}] ELSE knownAway
        /\ fetch' = newFetch
        /\ fetchTo' = [f \in Replica |-> IF newFetch[f] = "none" THEN None ELSE fetchTo[f]]
        /\ fetchEpoch' = [f \in Replica |-> IF newFetch[f] = "none" THEN 0 ELSE fetchEpoch[f]]
        /\ fetchOffset' = [f \in Replica |-> IF newFetch[f] = "none" THEN 0 ELSE fetchOffset[f]]
        /\ fetchLastEpoch' = [f \in Replica |-> IF newFetch[f] = "none" THEN 0 ELSE fetchLastEpoch[f]]
        /\ fetchRecord' = [f \in Replica |-> IF newFetch[f] = "none" THEN None ELSE fetchRecord[f]]
        /\ fetchWatermark' = [f \in Replica |-> IF newFetch[f] = "none" THEN 0 ELSE fetchWatermark[f]]
        /\ alter' = [alter EXCEPT ![r] = IF alter[r] = "requested" THEN alter[r] ELSE "none"]
        /\ highWatermark' = [highWatermark EXCEPT ![r] = checkpoint]
        /\ crashes' = crashes + 1
        /\ UNCHANGED <<log, brokerEpoch, alterIsr, alterLeaderEpoch, alterPartitionEpoch,
                       alterBrokerEpoch, controllerVars, lastKnownLeader, fenced, shuttingDown,
                       cleanShutdown, writtenIn, acked, committed, position, consumed,
                       lossyCrashes, sessionsLost, unnoticed, shutdowns>>

\* A broker dies with its page cache: only some first records of its log had reached the disk.
BrokerLosesPower(r, survivors, checkpoint) ==
    LET newFetch == [f \in Replica |-> IF f = r \/ fetchTo[f] = r THEN "none" ELSE fetch[f]]
    IN  /\ lossyCrashes < MaxLossyCrashes
        /\ Flush = "never"
        /\ r \in alive
        /\ survivors < LogEnd(r)
        /\ checkpoint <= (IF highWatermark[r] <= survivors THEN highWatermark[r] ELSE survivors)
        /\ alive' = alive \ {r}
        /\ leader' = [leader EXCEPT ![r] = None]
        /\ leaderEpoch' = [leaderEpoch EXCEPT ![r] = 0]
        /\ truncating' = truncating \ {r}
        /\ isr' = [isr EXCEPT ![r] = {}]
        /\ pendingIsr' = [pendingIsr EXCEPT ![r] = {}]
        /\ partitionEpoch' = [partitionEpoch EXCEPT ![r] = 0]
        /\ followerEnd' = [followerEnd EXCEPT ![r] = [k \in Replica |-> None]]
        /\ followerBrokerEpoch' = IF HasBrokerEpoch
                                  THEN [followerBrokerEpoch EXCEPT ![r] = [k \in Replica |-> 0]]
                                  ELSE followerBrokerEpoch
        /\ leadingSince' = IF ProducersWait THEN [leadingSince EXCEPT ![r] = 0] ELSE leadingSince
        /\ knownAway' = IF OwnView THEN [knownAway EXCEPT ![r] = {}] ELSE knownAway
        /\ fetch' = newFetch
        /\ fetchTo' = [f \in Replica |-> IF newFetch[f] = "none" THEN None ELSE fetchTo[f]]
        /\ fetchEpoch' = [f \in Replica |-> IF newFetch[f] = "none" THEN 0 ELSE fetchEpoch[f]]
        /\ fetchOffset' = [f \in Replica |-> IF newFetch[f] = "none" THEN 0 ELSE fetchOffset[f]]
        /\ fetchLastEpoch' = [f \in Replica |-> IF newFetch[f] = "none" THEN 0 ELSE fetchLastEpoch[f]]
        /\ fetchRecord' = [f \in Replica |-> IF newFetch[f] = "none" THEN None ELSE fetchRecord[f]]
        /\ fetchWatermark' = [f \in Replica |-> IF newFetch[f] = "none" THEN 0 ELSE fetchWatermark[f]]
        /\ alter' = [alter EXCEPT ![r] = IF alter[r] = "requested" THEN alter[r] ELSE "none"]
        /\ log' = [log EXCEPT ![r] = Take(log[r], survivors)]
        /\ highWatermark' = [highWatermark EXCEPT ![r] = checkpoint]
        /\ lossyCrashes' = lossyCrashes + 1
        /\ UNCHANGED <<brokerEpoch, alterIsr, alterLeaderEpoch, alterPartitionEpoch,
                       alterBrokerEpoch, controllerVars, lastKnownLeader, fenced, shuttingDown,
                       cleanShutdown, writtenIn, acked, committed, position, consumed, crashes,
                       sessionsLost, unnoticed, shutdowns>>

\* A broker tells the controller that it wants to stop (controlled shutdown); it will be relieved of
\* its duties.
BrokerAsksToShutDown(r) ==
    /\ shutdowns < MaxShutdowns
    /\ r \in alive
    /\ r \notin fenced \cup shuttingDown
    /\ shuttingDown' = IF MaxShutdowns > 0 THEN shuttingDown \cup {r} ELSE shuttingDown
    /\ shutdowns' = shutdowns + 1
    /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                   isr, pendingIsr, partitionEpoch, followerEnd, followerBrokerEpoch,
                   leadingSince, knownAway, fetchVars, alterVars, controllerVars,
                   lastKnownLeader, fenced, cleanShutdown, writtenIn, acked, committed,
                   position, consumed, crashes, lossyCrashes, sessionsLost, unnoticed>>

\* A relieved broker flushes, leaves the mark of a clean shutdown, and stops; the controller fences
\* it.
BrokerShutsDown(r) ==
    LET newFetch == [f \in Replica |-> IF f = r \/ fetchTo[f] = r THEN "none" ELSE fetch[f]]
    IN  /\ r \in shuttingDown
        /\ ~Relievable(r)
        /\ r \in alive
        /\ alive' = alive \ {r}
        /\ leader' = [leader EXCEPT ![r] = None]
        /\ leaderEpoch' = [leaderEpoch EXCEPT ![r] = 0]
        /\ truncating' = truncating \ {r}
        /\ isr' = [isr EXCEPT ![r] = {}]
        /\ pendingIsr' = [pendingIsr EXCEPT ![r] = {}]
        /\ partitionEpoch' = [partitionEpoch EXCEPT ![r] = 0]
        /\ followerEnd' = [followerEnd EXCEPT ![r] = [k \in Replica |-> None]]
        /\ followerBrokerEpoch' = IF HasBrokerEpoch
                                  THEN [followerBrokerEpoch EXCEPT ![r] = [k \in Replica |-> 0]]
                                  ELSE followerBrokerEpoch
        /\ leadingSince' = IF ProducersWait THEN [leadingSince EXCEPT ![r] = 0] ELSE leadingSince
        /\ knownAway' = IF OwnView THEN [knownAway EXCEPT ![r] = {}] ELSE knownAway
        /\ fetch' = newFetch
        /\ fetchTo' = [f \in Replica |-> IF newFetch[f] = "none" THEN None ELSE fetchTo[f]]
        /\ fetchEpoch' = [f \in Replica |-> IF newFetch[f] = "none" THEN 0 ELSE fetchEpoch[f]]
        /\ fetchOffset' = [f \in Replica |-> IF newFetch[f] = "none" THEN 0 ELSE fetchOffset[f]]
        /\ fetchLastEpoch' = [f \in Replica |-> IF newFetch[f] = "none" THEN 0 ELSE fetchLastEpoch[f]]
        /\ fetchRecord' = [f \in Replica |-> IF newFetch[f] = "none" THEN None ELSE fetchRecord[f]]
        /\ fetchWatermark' = [f \in Replica |-> IF newFetch[f] = "none" THEN 0 ELSE fetchWatermark[f]]
        /\ alter' = [alter EXCEPT ![r] = IF alter[r] = "requested" THEN alter[r] ELSE "none"]
        /\ shuttingDown' = IF MaxShutdowns > 0 THEN shuttingDown \ {r} ELSE shuttingDown
        /\ cleanShutdown' = IF MaxShutdowns > 0 THEN cleanShutdown \cup {r} ELSE cleanShutdown
        /\ fenced' = fenced \cup {r}
        /\ UNCHANGED <<log, highWatermark, brokerEpoch, alterIsr, alterLeaderEpoch,
                       alterPartitionEpoch, alterBrokerEpoch, controllerVars, lastKnownLeader,
                       writtenIn, acked, committed, position, consumed, crashes, lossyCrashes,
                       sessionsLost, unnoticed, shutdowns>>

\* A fenced broker starts and registers as a new incarnation, with the log that it finds on its
\* disk.
\*
\* Recovery and registration are one step, for nothing can be observed between them. What the
\* earlier incarnation asked is refused from now on (STALE_BROKER_EPOCH).
\* ClusterControlManager.registerBroker; ReplicationControlManager.handleBrokerShutdown (before 4.0:
\* handleBrokerUncleanShutdown).
BrokerRestarts(r) ==
    /\ r \in fenced
    /\ r \notin alive
    /\ (~Struck(r) \/ controllerPartitionEpoch < IsrChanges) = TRUE
    /\ alive' = alive \cup {r}
    /\ brokerEpoch' = IF HasBrokerEpoch
                      THEN [brokerEpoch EXCEPT ![r] = brokerEpoch[r] + 1]
                      ELSE brokerEpoch
    /\ cleanShutdown' = IF MaxShutdowns > 0 THEN cleanShutdown \ {r} ELSE cleanShutdown
    /\ shuttingDown' = IF MaxShutdowns > 0 THEN shuttingDown \ {r} ELSE shuttingDown
    /\ alter' = [alter EXCEPT ![r] = "none"]
    /\ alterIsr' = [alterIsr EXCEPT ![r] = {}]
    /\ alterLeaderEpoch' = [alterLeaderEpoch EXCEPT ![r] = 0]
    /\ alterPartitionEpoch' = [alterPartitionEpoch EXCEPT ![r] = 0]
    /\ alterBrokerEpoch' = IF HasBrokerEpoch
                           THEN [alterBrokerEpoch EXCEPT ![r] = 0]
                           ELSE alterBrokerEpoch
    /\ controllerPartitionEpoch' = IF Struck(r)
                                   THEN controllerPartitionEpoch + 1
                                   ELSE controllerPartitionEpoch
    /\ controllerIsr' = IF Struck(r) THEN controllerIsr \ {r} ELSE controllerIsr
    /\ controllerElr' = IF Struck(r) THEN controllerElr \ {r} ELSE controllerElr
    /\ UNCHANGED <<log, highWatermark, leader, leaderEpoch, truncating, isr, pendingIsr,
                   partitionEpoch, followerEnd, followerBrokerEpoch, leadingSince, knownAway,
                   fetchVars, controllerLeader, controllerEpoch, lastKnownLeader, fenced,
                   writtenIn, acked, committed, position, consumed, crashes, lossyCrashes,
                   sessionsLost, unnoticed, shutdowns>>

\* A consumer reads the next record from a replica, below the watermark that this replica knows.
\*
\* From the leader, or with follower reads from any replica that has a leader. At a replica whose
\* watermark is behind the consumer's position it gets nothing (KIP-392 proposed
\* OFFSET_NOT_AVAILABLE; Kafka answers with no records, and past the replica's log end with
\* OFFSET_OUT_OF_RANGE, upon which the client goes back to the leader).
ConsumerReads(r) ==
    /\ Consumers > 0
    /\ r \in alive
    /\ (leader[r] = r \/ (FollowerReads /\ leader[r] # None)) = TRUE
    /\ position < highWatermark[r]
    /\ position' = position + 1
    /\ consumed' = Append(consumed, At(log[r], position))
    /\ UNCHANGED <<alive, log, highWatermark, leader, leaderEpoch, truncating, brokerEpoch,
                   isr, pendingIsr, partitionEpoch, followerEnd, followerBrokerEpoch,
                   leadingSince, knownAway, fetchVars, alterVars, controllerVars,
                   lastKnownLeader, fenced, shuttingDown, cleanShutdown, writtenIn, acked,
                   committed, crashes, lossyCrashes, sessionsLost, unnoticed, shutdowns>>

--------------------------------------------------------------------------------

Next ==
    \/ \E l \in Replica : LeaderAppends(l)
    \/ \E follower, l \in Replica : FollowerSendsFetch(follower, l)
    \/ \E l, follower \in Replica : LeaderAnswersFetch(l, follower)
    \/ \E l, follower \in Replica : LeaderAnswersDiverging(l, follower)
    \/ \E follower \in Replica : FollowerAppends(follower)
    \/ \E follower \in Replica : FollowerTruncates(follower)
    \/ \E l \in Replica, lagging \in SUBSET Replica : LeaderProposesShrink(l, lagging)
    \/ \E l, f \in Replica : LeaderProposesExpansion(l, f)
    \/ \E l \in Replica : ControllerAcceptsAlterPartition(l)
    \/ \E l \in Replica : ControllerRefusesAlterPartition(l)
    \/ \E l \in Replica : ControllerRejectsStaleAlterPartition(l)
    \/ \E l \in Replica : LeaderAdoptsIsr(l)
    \/ \E l \in Replica : LeaderRollsBack(l)
    \/ \E r \in Replica : BecomesLeader(r)
    \/ \E r \in Replica : BecomesFollower(r)
    \/ \E l \in Replica : LeaderLearnsIsr(l)
    \/ \E r \in Replica : ControllerFencesOutsider(r)
    \/ \E r \in Replica : ControllerFencesFollower(r)
    \/ \E r, successor \in Replica : ControllerFencesLeader(r, successor)
    \/ \E r \in Replica : ControllerFencesLastLeader(r)
    \/ \E r \in Replica : ControllerUnfences(r)
    \/ \E r \in Replica : ControllerElectsReturned(r)
    \/ \E r \in Replica : ControllerElectsLastKnownLeader(r)
    \/ \E l \in Replica : ControllerMovesLeadership(l)
    \/ \E l \in Replica : ControllerElectsUnclean(l)
    \/ \E r \in Replica, checkpoint \in Offset : BrokerCrashes(r, checkpoint)
    \/ \E r \in Replica, survivors, checkpoint \in Offset : BrokerLosesPower(r, survivors, checkpoint)
    \/ \E r \in Replica : BrokerAsksToShutDown(r)
    \/ \E r \in Replica : BrokerShutsDown(r)
    \/ \E r \in Replica : BrokerRestarts(r)
    \/ \E r \in Replica : ConsumerReads(r)

Spec == Init /\ [][Next]_vars

--------------------------------------------------------------------------------

\* A record acknowledged to its producer is in the log of whoever leads.
\*
\* Promised for acks=all, with unclean election off, while at most min.insync.replicas - 1 brokers
\* stop uncleanly, if any of them loses unflushed records (before KIP-966: while none does). Kafka's
\* documentation, Replication: "a committed message will not be lost, as long as there is at least
\* one in sync replica alive, at all times". With acks=1 nothing is promised.
AckedSurvives == \A r \in Replica, m \in Record : LeadsNow(r) /\ m \in acked => Holds(r, m)

\* Whoever leads in the newest epoch has every committed record: committed implies present on the
\* new leader.
\*
\* Promised as acked-survives is, for every record that was ever below a leader's watermark.
\* KIP-101, KIP-279.
CommittedOnNewLeader == \A r \in Replica : LeadsNow(r) => HasCommitted(r)

\* Every replica that could be elected cleanly (alive and in ISR or ELR) holds every committed
\* record.
\*
\* Vanlightly's LeaderCandidateCompleteness; KIP-903 and KIP-966 exist for it.
LeadersComplete ==
    \A r \in Replica : r \in alive /\ r \in controllerIsr \cup controllerElr => HasCommitted(r)

\* Two logs agree on every offset that is below both replicas' watermarks.
\*
\* Where unflushed records may be lost, committed ones may be lost with them, and a replica that has
\* not met the new leader may still hold them; then the promise is for a leader and the followers
\* whose fetches it has taken. KIP-101, scenario 2; KIP-279. Vanlightly's LogMatching.
NoDivergence ==
    \A a, b \in Replica, o \in Offset :
        o < highWatermark[a] /\ o < highWatermark[b] /\ (MaxLossyCrashes = 0 \/ Met(a, b))
        => At(log[a], o) = At(log[b], o)

\* The committed sequence is append-only: no leader ever commits another record at an offset.
CommittedOnlyGrows == [][IsPrefix(committed, committed')]_vars

\* Below a leader's watermark, every living member of the leader's own in-sync set has the leader's
\* records.
\*
\* hachikuji's WeakIsr. Promised without lossy crashes: a zombie is not told that a member lost its
\* disk.
WeakIsr ==
    MaxLossyCrashes = 0
    => \A l, r \in Replica, o \in Offset :
           Leads(l) /\ r \in isr[l] \cap alive /\ o < highWatermark[l]
           => o < LogEnd(r) /\ At(log[r], o) = At(log[l], o)

\* Below any leader's watermark, every living member of the controller's ISR has that leader's
\* records.
\*
\* hachikuji's StrongIsr: zombies' watermarks count, too.
StrongIsr ==
    \A l, r \in Replica, o \in Offset :
        Leads(l) /\ r \in controllerIsr \cap alive /\ o < highWatermark[l]
        => o < LogEnd(r) /\ At(log[r], o) = At(log[l], o)

\* No replica's watermark is above its log end; of a dead replica it is the one with which it will
\* come back.
\*
\* Promised of every replica, in every design: what is read below a watermark is then a record.
\* Kafka cuts the watermark to the log end wherever either moves, and the checkpoint that a broker
\* finds when it starts: UnifiedLog's updateHighWatermark and truncateTo, Partition.createLog. A
\* leader's may not even be asked to pass it (UnifiedLog.maybeIncrementHighWatermark throws).
WatermarkWithinLog == \A r \in Replica : highWatermark[r] <= LogEnd(r)

\* A consumer has read only committed records, in their order.
ReadsCommitted == Consumers > 0 => IsPrefix(consumed, committed)

\* What a consumer has read stays readable, in order, also when it moves between replicas (KIP-392).
\*
\* Its position never goes back, and every replica that serves it has, below its watermark, what the
\* consumer read.
ReadsStable ==
    [][Consumers > 0
       => /\ position <= position'
          /\ \A r \in Replica, o \in Offset :
                 (/\ r \in alive'
                  /\ \/ leader'[r] = r
                     \/ /\ FollowerReads
                        /\ leader'[r] # None
                  /\ o < Len(consumed')
                  /\ o < highWatermark'[r])
                 => At(log'[r], o) = At(consumed', o)]_vars

\* An acks=all acknowledgement is given only when min.insync.replicas logs hold the record.
\*
\* Promised without lossy crashes: a copy can be lost between the follower's fetch and the
\* acknowledgement.
AcksMeetMinimum ==
    [][Acks = "all" /\ MaxLossyCrashes = 0
       => \A m \in Record :
              m \in acked' /\ m \notin acked
              => Cardinality({r \in Replica : Holds(r, m)'}) >= MinInsync]_vars

\* Since the last unclean election: what is acknowledged is safe, and stays so until the next one.
\*
\* Safe: in every log from which a leader may be chosen cleanly. What the unclean leader brought and
\* what is acknowledged in the newest epoch is lost by another unclean election only; unclean
\* election takes away nothing else. Without it acked-survives says as much. Promised without lossy
\* crashes.
AckedSurvivesCleanSteps ==
    [][Unclean /\ Acks = "all" /\ MaxLossyCrashes = 0
       => \/ \E r \in Replica :
                 /\ controllerLeader # r
                 /\ controllerLeader' = r
                 /\ r \notin controllerIsr \cup controllerElr
          \/ \A m \in Record :
                 (\/ /\ m \in acked
                     /\ Safe(m)
                  \/ /\ m \in acked' \ acked
                     /\ At(writtenIn', m) = controllerEpoch')
                 => Safe(m)']_vars

\* At most one replica acts as leader in an epoch.
OneLeaderPerEpoch ==
    \A a, b \in Replica : Leads(a) /\ Leads(b) /\ a # b => leaderEpoch[a] # leaderEpoch[b]

\* The elected leader is in the ISR.
LeaderInIsr == \A r \in Replica : controllerLeader = r => r \in controllerIsr

\* The leader's maximal in-sync set contains the controller's ISR and, at or above the minimum, its
\* ELR.
\*
\* Vanlightly's ReplicationQuorumSuperset (KIP-497, KIP-966): else a record could commit without a
\* possible leader.
MaximalIsrCovers ==
    \A r \in Replica :
        LeadsNow(r)
        => /\ controllerIsr \subseteq MaximalIsr(r)
           /\ Enough(r, isr[r]) => controllerElr \subseteq MaximalIsr(r)

\* Who is newly elected was in the ISR or, when that had nobody but the old leader, in the ELR.
\*
\* Promised with unclean election off; then at most the last known leader is elected from outside,
\* when nobody is in either (KIP-966). PartitionChangeBuilder.isValidNewLeader, canElectFromElr.
CleanElection ==
    [][\A r \in Replica :
           controllerLeader # r /\ controllerLeader' = r
           => \/ Unclean
              \/ r \in controllerIsr
              \/ /\ r \in controllerElr
                 /\ NobodyButLeaderInIsr
              \/ /\ controllerIsr \cup controllerElr = {}
                 /\ lastKnownLeader = r]_vars

\* Who is newly elected has a session and is not shutting down.
\* PartitionChangeBuilder.isAcceptableLeader.
ElectedIsAvailable ==
    [][\A r \in Replica :
           controllerLeader # r /\ controllerLeader' = r => r \notin fenced' \cup shuttingDown']_vars

\* No fenced broker is in the ISR, unless it is all that is left of it.
\*
\* KIP-841; Vanlightly's ValidControllerState.
FencedOutOfIsr == \A r \in Replica : r \in controllerIsr \cap fenced => controllerIsr = {r}

\* No broker that is shutting down joins the ISR; one that is in it may stay until it is relieved.
\*
\* KIP-841's other half; ReplicationControlManager.ineligibleReplicasForIsr.
LeavingDoesNotJoin ==
    [][MaxShutdowns > 0 => (controllerIsr' \ controllerIsr) \cap shuttingDown = {}]_vars

\* No replica is in ISR and ELR at once. KIP-966; Vanlightly's ValidControllerIsrAndElr, false of
\* its model.
IsrAndElrApart == controllerIsr \cap controllerElr = {}

\* The controller's epochs never go back, a new leader has a new leader epoch, and no living replica
\* goes back.
EpochsOnlyGrow ==
    [][/\ controllerEpoch <= controllerEpoch'
       /\ controllerPartitionEpoch <= controllerPartitionEpoch'
       /\ \/ controllerLeader = controllerLeader'
          \/ controllerEpoch < controllerEpoch'
       /\ \A r \in Replica : r \in alive \cap alive' => leaderEpoch[r] <= leaderEpoch'[r]]_vars

\* A leader appends an acks=all record only while its committed in-sync set has min.insync.replicas
\* members.
\*
\* NOT_ENOUGH_REPLICAS; Partition.appendRecordsToLeader.
WritesMeetMinimum ==
    [][Acks = "all"
       => \/ writtenIn = writtenIn'
          \/ \E r \in Replica : Leads(r) /\ LogEnd(r) < LogEnd(r)' /\ Enough(r, isr[r])]_vars

\* Records are appended, records in the log are acknowledged, the reader reads on; nothing is ever
\* taken back.
ImplementsCommittedLog ==
    [][/\ IsPrefix(committed, committed')
       /\ acked \subseteq acked'
       /\ \A m \in Record :
              m \in acked' /\ m \notin acked /\ Acks = "all"
              => \E o \in 0..Len(committed') - 1 : At(committed', o) = m
       /\ IsPrefix(consumed, consumed')
       /\ IsPrefix(consumed', committed')]_vars

\* A record commits.
\* Violated where TLC finds a witness.
NeverRecordCommits == ~(Len(committed) > 0)

\* The ISR has one replica, after it shrank or from the start.
\* Violated where TLC finds a witness.
NeverIsrShrinksToOne == Cardinality(controllerIsr) # 1

\* A replica comes back into the ISR.
\* Violated where TLC finds a witness.
NeverIsrGrowsBack ==
    [][~(controllerIsr \subseteq controllerIsr' /\ controllerIsr # controllerIsr')]_vars

\* A living follower truncates its log.
\* Violated where TLC finds a witness.
NeverFollowerLogShrinks ==
    [][Cardinality(Replica) > 1 => ~(\E r \in Replica : r \in alive' /\ LogEnd(r)' < LogEnd(r))]_vars

\* A replica outside ISR and ELR is elected.
\* Violated where TLC finds a witness.
NeverUncleanElection ==
    [][Unclean
       => ~(\E r \in Replica :
                /\ controllerLeader # r
                /\ controllerLeader' = r
                /\ r \notin controllerIsr \cup controllerElr)]_vars

\* A replica is elected from the ELR.
\* Violated where TLC finds a witness.
NeverElrMemberElected ==
    [][MinInsync > 1
       => ~(\E r \in Replica : controllerLeader # r /\ controllerLeader' = r /\ r \in controllerElr)]_vars

\* A leader's in-sync set is under the minimum, so it would refuse writes (NOT_ENOUGH_REPLICAS).
\* Violated where TLC finds a witness.
NeverWriteRefused ==
    Acks = "all" /\ MinInsync > 1
    => ~(\E r \in Replica : LeadsNow(r) /\ Cardinality(isr[r]) < MinInsync)

\* A replica's own watermark goes down, as it may: only the true one is monotone.
\* Violated where TLC finds a witness.
NeverWatermarkGoesDown == [][~(\E r \in Replica : highWatermark'[r] < highWatermark[r])]_vars

\* A partition with enough replicas in sync commits what it accepts. Kafka's documentation,
\* Replication.
HealthyPartitionCommits == AcceptedAndUncommitted ~> AllCommitted

HealthyPartitionCommitsSpec ==
    /\ Spec
    /\ \A follower, l \in Replica : WF_vars(FollowerSendsFetch(follower, l))
    /\ \A l, follower \in Replica : WF_vars(LeaderAnswersFetch(l, follower))
    /\ \A l, follower \in Replica : WF_vars(LeaderAnswersDiverging(l, follower))
    /\ \A follower \in Replica : WF_vars(FollowerAppends(follower))
    /\ \A follower \in Replica : WF_vars(FollowerTruncates(follower))
    /\ \A l \in Replica, lagging \in SUBSET Replica : WF_vars(LeaderProposesShrink(l, lagging))
    /\ \A l, f \in Replica : SF_vars(LeaderProposesExpansion(l, f))
    /\ \A l \in Replica : WF_vars(ControllerAcceptsAlterPartition(l))
    /\ \A l \in Replica : WF_vars(ControllerRefusesAlterPartition(l))
    /\ \A l \in Replica : WF_vars(ControllerRejectsStaleAlterPartition(l))
    /\ \A l \in Replica : WF_vars(LeaderAdoptsIsr(l))
    /\ \A l \in Replica : WF_vars(LeaderRollsBack(l))
    /\ \A r \in Replica : WF_vars(BecomesLeader(r))
    /\ \A r \in Replica : WF_vars(BecomesFollower(r))
    /\ \A l \in Replica : WF_vars(LeaderLearnsIsr(l))
    /\ \A r \in Replica : WF_vars(ControllerFencesOutsider(r))
    /\ \A r \in Replica : WF_vars(ControllerFencesFollower(r))
    /\ \A r, successor \in Replica : WF_vars(ControllerFencesLeader(r, successor))
    /\ \A r \in Replica : WF_vars(ControllerFencesLastLeader(r))
    /\ \A r \in Replica : WF_vars(ControllerUnfences(r))
    /\ \A r \in Replica : WF_vars(ControllerElectsReturned(r))
    /\ \A r \in Replica : WF_vars(ControllerElectsLastKnownLeader(r))
    /\ \A r \in Replica : WF_vars(BrokerShutsDown(r))

\* A living follower that fell behind comes back into the ISR. Partition.maybeExpandIsr;
\* KAFKA-19996.
LaggingFollowerReturns == SomebodyLags ~> NobodyLags

LaggingFollowerReturnsSpec ==
    /\ Spec
    /\ \A follower, l \in Replica : WF_vars(FollowerSendsFetch(follower, l))
    /\ \A l, follower \in Replica : WF_vars(LeaderAnswersFetch(l, follower))
    /\ \A l, follower \in Replica : WF_vars(LeaderAnswersDiverging(l, follower))
    /\ \A follower \in Replica : WF_vars(FollowerAppends(follower))
    /\ \A follower \in Replica : WF_vars(FollowerTruncates(follower))
    /\ \A l \in Replica, lagging \in SUBSET Replica : WF_vars(LeaderProposesShrink(l, lagging))
    /\ \A l, f \in Replica : SF_vars(LeaderProposesExpansion(l, f))
    /\ \A l \in Replica : WF_vars(ControllerAcceptsAlterPartition(l))
    /\ \A l \in Replica : WF_vars(ControllerRefusesAlterPartition(l))
    /\ \A l \in Replica : WF_vars(ControllerRejectsStaleAlterPartition(l))
    /\ \A l \in Replica : WF_vars(LeaderAdoptsIsr(l))
    /\ \A l \in Replica : WF_vars(LeaderRollsBack(l))
    /\ \A r \in Replica : WF_vars(BecomesLeader(r))
    /\ \A r \in Replica : WF_vars(BecomesFollower(r))
    /\ \A l \in Replica : WF_vars(LeaderLearnsIsr(l))
    /\ \A r \in Replica : WF_vars(ControllerFencesOutsider(r))
    /\ \A r \in Replica : WF_vars(ControllerFencesFollower(r))
    /\ \A r, successor \in Replica : WF_vars(ControllerFencesLeader(r, successor))
    /\ \A r \in Replica : WF_vars(ControllerFencesLastLeader(r))
    /\ \A r \in Replica : WF_vars(ControllerUnfences(r))
    /\ \A r \in Replica : WF_vars(ControllerElectsReturned(r))
    /\ \A r \in Replica : WF_vars(ControllerElectsLastKnownLeader(r))
    /\ \A r \in Replica : WF_vars(BrokerShutsDown(r))

\* With a member of ISR or ELR alive a leader is eventually elected: available after a short fail-
\* over.
LeaderIsElected == LeaderlessWithCandidate ~> HasLeader

LeaderIsElectedSpec ==
    /\ Spec
    /\ \A follower, l \in Replica : WF_vars(FollowerSendsFetch(follower, l))
    /\ \A l, follower \in Replica : WF_vars(LeaderAnswersFetch(l, follower))
    /\ \A l, follower \in Replica : WF_vars(LeaderAnswersDiverging(l, follower))
    /\ \A follower \in Replica : WF_vars(FollowerAppends(follower))
    /\ \A follower \in Replica : WF_vars(FollowerTruncates(follower))
    /\ \A l \in Replica, lagging \in SUBSET Replica : WF_vars(LeaderProposesShrink(l, lagging))
    /\ \A l, f \in Replica : SF_vars(LeaderProposesExpansion(l, f))
    /\ \A l \in Replica : WF_vars(ControllerAcceptsAlterPartition(l))
    /\ \A l \in Replica : WF_vars(ControllerRefusesAlterPartition(l))
    /\ \A l \in Replica : WF_vars(ControllerRejectsStaleAlterPartition(l))
    /\ \A l \in Replica : WF_vars(LeaderAdoptsIsr(l))
    /\ \A l \in Replica : WF_vars(LeaderRollsBack(l))
    /\ \A r \in Replica : WF_vars(BecomesLeader(r))
    /\ \A r \in Replica : WF_vars(BecomesFollower(r))
    /\ \A l \in Replica : WF_vars(LeaderLearnsIsr(l))
    /\ \A r \in Replica : WF_vars(ControllerFencesOutsider(r))
    /\ \A r \in Replica : WF_vars(ControllerFencesFollower(r))
    /\ \A r, successor \in Replica : WF_vars(ControllerFencesLeader(r, successor))
    /\ \A r \in Replica : WF_vars(ControllerFencesLastLeader(r))
    /\ \A r \in Replica : WF_vars(ControllerUnfences(r))
    /\ \A r \in Replica : WF_vars(ControllerElectsReturned(r))
    /\ \A r \in Replica : WF_vars(ControllerElectsLastKnownLeader(r))
    /\ \A r \in Replica : WF_vars(BrokerShutsDown(r))

\* Every acks=all write is answered, while the in-sync set may commit, or its leader ends; else
\* Kafka's time-out answers it, which is not modelled.
WritesAreAnswered == WriteWaits ~> NoWriteWaits

WritesAreAnsweredSpec ==
    /\ Spec
    /\ \A follower, l \in Replica : WF_vars(FollowerSendsFetch(follower, l))
    /\ \A l, follower \in Replica : WF_vars(LeaderAnswersFetch(l, follower))
    /\ \A l, follower \in Replica : WF_vars(LeaderAnswersDiverging(l, follower))
    /\ \A follower \in Replica : WF_vars(FollowerAppends(follower))
    /\ \A follower \in Replica : WF_vars(FollowerTruncates(follower))
    /\ \A l \in Replica, lagging \in SUBSET Replica : WF_vars(LeaderProposesShrink(l, lagging))
    /\ \A l, f \in Replica : SF_vars(LeaderProposesExpansion(l, f))
    /\ \A l \in Replica : WF_vars(ControllerAcceptsAlterPartition(l))
    /\ \A l \in Replica : WF_vars(ControllerRefusesAlterPartition(l))
    /\ \A l \in Replica : WF_vars(ControllerRejectsStaleAlterPartition(l))
    /\ \A l \in Replica : WF_vars(LeaderAdoptsIsr(l))
    /\ \A l \in Replica : WF_vars(LeaderRollsBack(l))
    /\ \A r \in Replica : WF_vars(BecomesLeader(r))
    /\ \A r \in Replica : WF_vars(BecomesFollower(r))
    /\ \A l \in Replica : WF_vars(LeaderLearnsIsr(l))
    /\ \A r \in Replica : WF_vars(ControllerFencesOutsider(r))
    /\ \A r \in Replica : WF_vars(ControllerFencesFollower(r))
    /\ \A r, successor \in Replica : WF_vars(ControllerFencesLeader(r, successor))
    /\ \A r \in Replica : WF_vars(ControllerFencesLastLeader(r))
    /\ \A r \in Replica : WF_vars(ControllerUnfences(r))
    /\ \A r \in Replica : WF_vars(ControllerElectsReturned(r))
    /\ \A r \in Replica : WF_vars(ControllerElectsLastKnownLeader(r))
    /\ \A r \in Replica : WF_vars(BrokerShutsDown(r))

--------------------------------------------------------------------------------

Symmetry == Permutations(Replica)

================================================================================
