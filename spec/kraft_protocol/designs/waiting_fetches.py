"""Designs in which a fetch waits at the leader for news, as Kafka's do for fetchMaxWaitMs (KafkaRaftClient).

A fetch to which the leader has nothing new to say waits (fetchPurgatory). What it would be answered now is kept: those
are its `answer_*`, while `answer` has none yet. It is answered so if it waits too long, whatever became of the leader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from isr_lang import NONE, Action, Bool, Design, Map, Maybe, Step, action, define, when
from isr_lang.blank import blank
from isr_lang.expr import Expr
from isr_lang.sequel import with_sequels
from kraft_model import KRAFT
from kraft_protocol.designs.releases import KRAFT_3_9
from kraft_protocol.state import Answer, Epoch, Request, Role, State, Voter, log_end

V = TypeVar("V", bound=Expr)


@define
def waits_for_news(s: State, f: Voter, r: Voter) -> Bool:
    """The fetch of f waits at r. It is kept what r said when it came, with the epoch that r led."""
    return (s.request[f][r] == Request.FETCH) & (s.answer[f][r] == Answer.NONE) & (s.answer_epoch[f][r] > 0)


@action
def fetch_is_new(old: State, new: State, r: Voter, f: Voter) -> Step:
    """A fetch arrives once."""
    return (~waits_for_news(old, f, r),)


@define
def has_larger_watermark(s: State, f: Voter, r: Voter) -> Bool:
    """The answer to f has a larger watermark than f knows (KIP-1166)."""
    known, answer = s.high_watermark[f], s.answer_watermark[f][r]
    return (answer != NONE) & ((known == NONE) | (known.or_else(0) < answer.or_else(0)))


@action
def fetch_waits(old: State, new: State, r: Voter, f: Voter) -> Step:
    """An answer without a record and without a larger watermark is kept. KafkaRaftClient.handleFetchRequest."""
    nothing_new = (old.answer_record[f][r] == NONE) & ~has_larger_watermark(old, f, r)
    kept = (old.answer[f][r] == Answer.FETCHED) & nothing_new
    return (new.answer == old.answer.put(f, old.answer[f].put(r, when(kept, Answer.NONE, old.answer[f][r]))),)


@action
def fetch_waits_for_a_record(old: State, new: State, r: Voter, f: Voter) -> Step:
    """An answer without a record is kept, as before Kafka 4.1."""
    kept = (old.answer[f][r] == Answer.FETCHED) & (old.answer_record[f][r] == NONE)
    return (new.answer == old.answer.put(f, old.answer[f].put(r, when(kept, Answer.NONE, old.answer[f][r]))),)


def answers_those_that_wait(old: State, new: State, r: Voter, watermark_is_news: bool) -> Step:
    """What waits at r is answered by a record, by a larger watermark, or by an error where r leads that epoch no more.

    A leader that only left its epoch, and follows nobody yet, answers nobody. The fetches that wait at a process end
    with it, and arrive anew. KafkaRaftClient.onBecomeFollower, transitionToResigned, onUpdateLeaderHighWatermark.
    """

    def waits(f: Voter) -> Bool:
        return waits_for_news(old, f, r)

    def is_over(f: Voter) -> Bool:
        follows = (old.role[r] == Role.FOLLOWER) | (old.role[r] == Role.RESIGNED)
        leads_again = (old.role[r] == Role.LEADER) & (old.epoch[r] != old.answer_epoch[f][r])
        return waits(f) & old.alive.has(r) & (follows | leads_again)

    def is_gone(f: Voter) -> Bool:
        return waits(f) & ~old.alive.has(r)

    def has_record(f: Voter) -> Bool:
        return log_end(old, f) < log_end(old, r)

    def has_news(f: Voter) -> Bool:
        leads = (old.role[r] == Role.LEADER) & (old.epoch[r] == old.answer_epoch[f][r])
        news = has_record(f)
        if watermark_is_news:
            news |= old.high_watermark[r] != old.answer_watermark[f][r]
        return waits(f) & leads & news

    def rows(slots: Map[Voter, Map[Voter, V]], value: Callable[[Voter, V], V]) -> Map[Voter, Map[Voter, V]]:
        return Map.build(Voter, lambda f: slots[f].put(r, value(f, slots[f][r])))

    def content(f: Voter, error: V, until_now: V) -> V:
        return when(is_over(f), error, when(is_gone(f), blank(until_now), until_now))

    def record(f: Voter, none: Maybe[Epoch]) -> Maybe[Epoch]:
        return when(has_news(f) & has_record(f), Maybe.of(old.log[r][log_end(old, f)]), none)

    return (
        new.answer
        == rows(old.answer, lambda f, none: when(is_over(f), Answer.ERROR, when(has_news(f), Answer.FETCHED, none))),
        new.answer_epoch == rows(old.answer_epoch, lambda f, epoch: content(f, old.epoch[r], epoch)),
        new.answer_leader == rows(old.answer_leader, lambda f, leader: content(f, old.leader[r], leader)),
        new.answer_record == rows(old.answer_record, record),
        new.answer_watermark
        == rows(
            old.answer_watermark,
            lambda f, known: when(has_news(f), old.high_watermark[r], content(f, blank(known), known)),
        ),
    )


@action
def news_is_answered(old: State, new: State, r: Voter) -> Step:
    """What waits at r is answered where there is news, and a larger watermark is news."""
    return answers_those_that_wait(old, new, r, watermark_is_news=True)


@action
def record_is_answered(old: State, new: State, r: Voter) -> Step:
    """What waits at r is answered where there is a record, and not by a watermark."""
    return answers_those_that_wait(old, new, r, watermark_is_news=False)


@action
def waiting_fetch_times_out(old: State, new: State, r: Voter, f: Voter) -> Step:
    """A fetch has waited too long: it is answered as it would have been when it came, whatever became of r."""
    return (old.alive.has(r), r != f, waits_for_news(old, f, r), new.answer[f][r] == Answer.FETCHED)


def with_waiting_fetches(design: Design, waits: Action, is_answered: Action) -> Design:
    """The design in which fetches wait: `waits` follows the arrival of one, `is_answered` all that voters do."""
    voter_steps = [a.name for a in design.actions if {u.variable for u in a.updates} & {"role", "log", "alive"}]
    waiting = with_sequels(design.extending(leader_answers_fetch=fetch_is_new), leader_answers_fetch=waits)
    return with_sequels(waiting, **dict.fromkeys(voter_steps, is_answered)).adding(waiting_fetch_times_out)


WAITING_FETCHES = with_waiting_fetches(
    KRAFT.replacing(
        "kraft-waiting-fetches",
        "KRaft where a fetch waits at the leader for news",
        because="a fetch waits for a record or a larger watermark (KIP-1166, since Kafka 4.1).",
    ),
    fetch_waits,
    news_is_answered,
)
WAITING_FETCHES_4_0 = with_waiting_fetches(
    KRAFT.replacing(
        "kraft-4.0-waiting-fetches",
        "KRaft where a fetch waits at the leader for a record, as in Kafka 4.0",
        because="before KIP-1166 no watermark answered a fetch that waits.",
    ),
    fetch_waits_for_a_record,
    record_is_answered,
)
WAITING_FETCHES_3_9 = with_waiting_fetches(
    KRAFT_3_9.replacing(
        "kraft-3.9-waiting-fetches",
        "KRaft before Kafka 4.0 where a fetch waits at the leader for a record",
        because="before KIP-1166 no watermark answered a fetch that waits, and there were no pre-votes.",
    ),
    fetch_waits_for_a_record,
    record_is_answered,
)

DESIGNS = (WAITING_FETCHES, WAITING_FETCHES_4_0, WAITING_FETCHES_3_9)
