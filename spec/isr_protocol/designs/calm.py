"""That a healthy follower is in the ISR again, as steps: today's design with a calm in which nothing more goes wrong.

Liveness of any number of replicas cannot be explored, and induction proves steps only. So the promise is taken apart,
as by a ranking (Manna and Pnueli): something that cannot shrink for ever shrinks with every step that a fair follower,
leader or controller takes, and no other step makes it grow.

From some moment on it is calm: nothing is written, nobody stops, comes back, loses a session, is elected or dropped.
A follower is then in two phases. First it catches up. As long as its leader has not heard of it in this epoch, its log
gets shorter with each answer; after that, longer, up to the leader's (`fetching_goes_on`), and one of its messages can
always be delivered (`fetch_can_go_on`). What the leader has heard then stays so (`seen_stays`). Second, it is let in.
Whatever the leader has asked of the controller is decided, and the leader hears it, in at most six steps
(`asking_goes_on`, `decision_can_be_made`); then it may propose the follower (`follower_may_be_proposed`), and what it
proposes is accepted (`proposal_is_eligible`, `proposal_stays_eligible`).

What follows: in a calm, a follower with a session that knows the elected leader is in the ISR again, if each of its
messages is delivered and each request decided in the end (weak fairness), and the leader proposes it some time if it
may do so again and again (strong fairness; Kafka's leader does so with the follower's next fetch). Or the bound on
changes of the metadata is reached, which Kafka has not. That last conclusion is drawn here, not by a solver.
"""

from __future__ import annotations

import attrs

from isr_lang import (
    NONE,
    Bool,
    Maybe,
    Number,
    Step,
    action,
    always,
    define,
    enabled,
    forall,
    initial,
    leads_to,
    step,
    when,
)
from isr_model import KIP_966
from isr_protocol.designs.wider_state import Calmed
from isr_protocol.membership import (
    controller_accepts_alter_partition,
    controller_refuses_alter_partition,
    controller_rejects_stale_alter_partition,
    current,
    eligible,
    free_to_ask,
    leader_adopts_isr,
    leader_proposes_expansion,
    leader_rolls_back,
)
from isr_protocol.metadata import leader_learns_isr
from isr_protocol.promises.liveness import PROGRESS
from isr_protocol.promises.safety import leads_now
from isr_protocol.replication import (
    continues,
    follower_appends,
    follower_sends_fetch,
    follower_truncates,
    leader_answers_diverging,
    leader_answers_fetch,
)
from isr_protocol.state import ISR_CHANGES, Alter, Fetch, Replica, State, log_end


@initial
def not_yet_calm(new: Calmed) -> Step:
    """Anything may happen."""
    return (new.calm == Bool.false,)


@action
def calm_begins(old: Calmed, new: Calmed) -> Step:
    """From now on nothing goes wrong."""
    return (~old.calm, new.calm == Bool.true)


@action
def before_the_calm(old: Calmed, new: Calmed) -> Step:
    """Taken with every step that a calm is free of."""
    return (~old.calm,)


DISTURBING = (
    "leader_appends",
    "leader_proposes_shrink",
    "controller_fences_outsider",
    "controller_fences_follower",
    "controller_fences_leader",
    "controller_fences_last_leader",
    "controller_unfences",
    "controller_elects_returned",
    "controller_elects_last_known_leader",
    "controller_moves_leadership",
    "controller_elects_unclean",
    "broker_crashes",
    "broker_loses_power",
    "broker_asks_to_shut_down",
    "broker_shuts_down",
    "broker_restarts",
)
"""What does not happen in a calm."""

# Of whom it is promised.


@define
def healthy_follower(s: Calmed, q: Replica, f: Replica) -> Bool:
    """It is calm, q leads, and f is another replica with a session that knows so."""
    up = (s.alive - s.fenced - s.shutting_down).has(f)
    knows = (s.leader[f] == q) & (s.leader_epoch[f] == s.leader_epoch[q])
    return s.calm & leads_now(s, q) & (q != f) & up & knows


@define
def heard(s: State, q: Replica, f: Replica) -> Bool:
    """The leader has taken a fetch of the follower in this epoch."""
    return s.follower_end[q][f] != NONE


@define
def seen_at_end(s: State, q: Replica, f: Replica) -> Bool:
    """The leader has seen this incarnation of the follower at its log end."""
    return (s.follower_end[q][f] == Maybe.of(log_end(s, q))) & (s.follower_broker_epoch[q][f] == s.broker_epoch[f])


@step
def followers_stay_healthy(old: Calmed, new: Calmed) -> Bool:
    """Who is healthy in a calm stays so."""
    return forall(
        healthy_follower(old, q, f).implies(healthy_follower(new, q, f)) for q in Replica.all() for f in Replica.all()
    )


# It catches up.


@define
def idle(s: State, f: Replica) -> Bool:
    """No fetch of the follower's present epoch is on its way."""
    return (s.fetch[f] == Fetch.NONE) | (s.fetch_epoch[f] != s.leader_epoch[f])


@define
def told(s: State, f: Replica) -> Bool:
    """An answer is on its way to the follower."""
    return ~idle(s, f) & (s.fetch[f] != Fetch.REQUESTED)


@define
def told_too_early(s: State, q: Replica, f: Replica) -> Bool:
    """The answer says that there is nothing more, and is older than a record that there is by now."""
    return told(s, f) & (s.fetch[f] == Fetch.ANSWERED) & (s.fetch_record[f] == NONE) & (log_end(s, f) < log_end(s, q))


@step
def fetching_goes_on(old: Calmed, new: Calmed) -> Bool:
    """Every step of a follower that its leader has not seen at its log end brings it nearer; no other takes it back.

    It comes nearer if the leader hears of it for the first time; or its log gets shorter before that, and longer after
    that; or an answer that came too early is spent; or its message is one stage further: none, request, answer.
    """

    def nearer(q: Replica, f: Replica) -> Bool:
        first = heard(new, q, f) & ~heard(old, q, f)
        grows = (log_end(old, f) < log_end(new, f)) & (log_end(new, f) <= log_end(new, q))
        log_moves = when(heard(old, q, f), grows, log_end(new, f) < log_end(old, f))
        stays = log_end(old, f) == log_end(new, f)
        early_answer_expires = told_too_early(old, q, f) & ~told_too_early(new, q, f)
        early_answer_stays = told_too_early(old, q, f) == told_too_early(new, q, f)
        later = (idle(old, f) & ~idle(new, f)) | (~told(old, f) & told(new, f))
        same = (idle(old, f) == idle(new, f)) & (told(old, f) == told(new, f))
        waits = same & (
            idle(old, f) | ((old.fetch[f] == new.fetch[f]) & (continues(old, q, f) == continues(new, q, f)))
        )
        again = (heard(old, q, f) == heard(new, q, f)) & (log_end(old, q) == log_end(new, q))
        return first | (again & (log_moves | (stays & (early_answer_expires | (early_answer_stays & (later | waits))))))

    return forall(
        (healthy_follower(old, q, f) & ~seen_at_end(old, q, f)).implies(seen_at_end(new, q, f) | nearer(q, f))
        for q in Replica.all()
        for f in Replica.all()
    )


@always
def fetch_can_go_on(s: Calmed) -> Bool:
    """As long as it has not been seen there, the follower may fetch, or has asked the leader, or has an answer."""
    return forall(
        (healthy_follower(s, q, f) & ~seen_at_end(s, q, f)).implies(
            when(
                idle(s, f),
                enabled(follower_sends_fetch, f, q),
                when(
                    told(s, f),
                    enabled(follower_appends, f) | enabled(follower_truncates, f),
                    enabled(leader_answers_fetch, q, f) | enabled(leader_answers_diverging, q, f),
                ),
            )
        )
        for q in Replica.all()
        for f in Replica.all()
    )


@step
def seen_stays(old: Calmed, new: Calmed) -> Bool:
    """Whoever was seen at the log end stays there."""
    return forall(
        (healthy_follower(old, q, f) & seen_at_end(old, q, f)).implies(seen_at_end(new, q, f))
        for q in Replica.all()
        for f in Replica.all()
    )


# It is let in.


class Phase(Number, high=6):
    """How many steps a leader is at most from asking for something new, with the newest metadata."""


@define
def up_to_date(s: State, q: Replica) -> Bool:
    """The leader knows the newest version of the partition."""
    return s.partition_epoch[q] == s.controller_partition_epoch


@define
def phase_of(s: State, q: Replica) -> Phase:
    """The steps to go: an answer to hear, a decision to be made, metadata to learn."""
    asks, waits = s.alter[q] == Alter.REQUESTED, ~s.pending_isr[q].is_empty()
    nothing = s.alter[q] == Alter.NONE
    next_version = (s.alter[q] == Alter.ACCEPTED) & (s.partition_epoch[q] + 1 == s.controller_partition_epoch)
    phase_up_to_date = when(asks, Phase.of(2), when(free_to_ask(s, q), Phase.of(0), Phase.of(1)))
    phase_behind = when(
        next_version,
        Phase.of(1),
        when(
            waits & nothing,
            Phase.of(3),
            when(waits & asks, Phase.of(4), when(~waits & nothing, Phase.of(5), Phase.of(6))),
        ),
    )
    return when(up_to_date(s, q), phase_up_to_date, phase_behind)


@define
def led_in_calm(s: Calmed, q: Replica) -> Bool:
    """It is calm, and this replica leads."""
    return s.calm & leads_now(s, q)


@step
def asking_goes_on(old: Calmed, new: Calmed) -> Bool:
    """Whatever is asked, decided or heard brings the leader nearer to where it may ask again; no other step does
    anything to it."""
    return forall(
        (led_in_calm(old, q) & (phase_of(old, q) > 0)).implies(
            (phase_of(new, q) < phase_of(old, q))
            | (
                (phase_of(new, q) == phase_of(old, q))
                & (new.alter[q] == old.alter[q])
                & (old.alter[q] == Alter.REQUESTED).implies(
                    (current(new, q) == current(old, q)) & (eligible(new, q) == eligible(old, q))
                )
            )
        )
        for q in Replica.all()
    )


@always
def decision_can_be_made(s: Calmed) -> Bool:
    """Until then somebody can act: the controller decides, the leader hears an answer or learns the metadata."""
    room = s.controller_partition_epoch < ISR_CHANGES
    return forall(
        (led_in_calm(s, q) & (phase_of(s, q) > 0)).implies(
            enabled(controller_accepts_alter_partition, q)
            | enabled(controller_refuses_alter_partition, q)
            | enabled(controller_rejects_stale_alter_partition, q)
            | enabled(leader_adopts_isr, q)
            | enabled(leader_rolls_back, q)
            | enabled(leader_learns_isr, q)
            | ~room
        )
        for q in Replica.all()
    )


@always
def follower_may_be_proposed(s: Calmed) -> Bool:
    """Then the leader may propose any healthy follower that it has seen at its log end, and that is not in the ISR."""
    return forall(
        (healthy_follower(s, q, f) & seen_at_end(s, q, f) & (phase_of(s, q) == 0) & ~s.controller_isr.has(f)).implies(
            enabled(leader_proposes_expansion, q, f)
        )
        for q in Replica.all()
        for f in Replica.all()
    )


@define
def admits(s: Calmed, q: Replica, f: Replica) -> Bool:
    """A request that would add the follower is on its way, and the controller would accept it."""
    return (s.alter[q] == Alter.REQUESTED) & s.alter_isr[q].has(f) & current(s, q) & eligible(s, q)


@step
def proposal_is_eligible(old: Calmed, new: Calmed) -> Bool:
    """If it is proposed then, the controller would accept that."""
    return forall(
        (
            healthy_follower(old, q, f)
            & seen_at_end(old, q, f)
            & (phase_of(old, q) == 0)
            & ~old.controller_isr.has(f)
            & (new.alter[q] == Alter.REQUESTED)
            & new.alter_isr[q].has(f)
        ).implies(admits(new, q, f))
        for q in Replica.all()
        for f in Replica.all()
    )


@step
def proposal_stays_eligible(old: Calmed, new: Calmed) -> Bool:
    """It stays so until the controller has accepted it."""
    return forall(
        (healthy_follower(old, q, f) & admits(old, q, f)).implies(new.controller_isr.has(f) | admits(new, q, f))
        for q in Replica.all()
        for f in Replica.all()
    )


STEPS_OF_RETURN = (
    followers_stay_healthy,
    fetching_goes_on,
    fetch_can_go_on,
    seen_stays,
    asking_goes_on,
    decision_can_be_made,
    follower_may_be_proposed,
    proposal_is_eligible,
    proposal_stays_eligible,
)
"""What the promise was taken apart into."""


@define
def somebody_is_out(s: Calmed) -> Bool:
    """A healthy follower is not in the ISR."""
    room = s.controller_partition_epoch < ISR_CHANGES
    return room & ~forall(
        healthy_follower(s, q, f).implies(s.controller_isr.has(f)) for q in Replica.all() for f in Replica.all()
    )


@define
def everybody_is_in(s: Calmed) -> Bool:
    """Every healthy follower is in the ISR, or the bound on changes of the metadata is reached."""
    return ~somebody_is_out(s)


healthy_follower_returns = leads_to(
    "healthy-follower-returns",
    "In a calm, every healthy follower is in the ISR in the end. Partition.maybeExpandIsr.",
    somebody_is_out,
    everybody_is_in,
    state=Calmed,
    fair=PROGRESS,
    strong=("leader_proposes_expansion",),
)

_OF_SAFETY = tuple(p for p in KIP_966.properties if p.kind != "eventually")

KIP_966_CALM = attrs.evolve(
    attrs.evolve(KIP_966, properties=_OF_SAFETY)
    .in_state(Calmed, not_yet_calm)
    .extending(**dict.fromkeys(DISTURBING, before_the_calm))
    .adding(calm_begins)
    .promising(*STEPS_OF_RETURN, healthy_follower_returns),
    name="kip-966-calm",
    summary="KIP-966 where from some moment on nothing goes wrong: a healthy follower is in the ISR again",
    because="what comes to pass is promised of a calm only.",
    based_on=KIP_966,
).with_defaults(replicas=2, crashes=0, isr_changes=3)

DESIGNS = (KIP_966_CALM,)
