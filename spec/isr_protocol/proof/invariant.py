"""Why it holds: an inductive invariant of the protocol, as named conjuncts.

Every conjunct holds at the start, and every action that starts where all of them hold ends where all of them hold;
together they imply the promises. `insync prove` has a solver check that, with logs, records, epochs and changes of the
metadata unbounded; `insync check` explores the same conjuncts like any other property.

The argument in short. Logs form a tree: a record fixes everything before it (logs-match). Whoever may be elected
(`candidates`) holds what is committed, in the part of its log that it cannot be about to cut (`firm`). A leader
that the controller still wants counts all of them before it commits (leaders-count-candidates). One that it has
replaced, a zombie, can still commit, but only what one of its followers had asked for before it moved on; its
log, and so every candidate's, already contained it (zombies-commit-nothing-new).

Assumed: no lossy crash, no controlled shutdown beside two crashes (docs/proof.md says what then happens), no unclean
election, no restart that nobody notices.
"""

from __future__ import annotations

from collections.abc import Mapping

from isr_lang import ANY_NUMBER, Conjunct
from isr_protocol.proof import logs, sets

# Each with the lemmas that its proof takes, by action (see isr_lang.Conjunct).
INVARIANT: tuple[Conjunct, ...] = (
    Conjunct(logs.blanks),
    Conjunct(logs.fetches_make_sense),
    Conjunct(logs.one_epoch_one_leader),
    Conjunct(logs.positions_within_log),
    Conjunct(logs.positions_are_of_this_epoch),
    Conjunct(sets.elected_leader),
    Conjunct(sets.no_elr_beside_enough),
    Conjunct(sets.own_isr),
    Conjunct(sets.requests_of_isr, {"becomes_leader": ("new-epochs-are-empty",)}),
    Conjunct(sets.somebody_may_be_elected),
    Conjunct(sets.leaders_count_candidates, {"becomes_leader": ("new-epochs-are-empty",)}),
    Conjunct(sets.zombies_wait_for_the_slow),
    Conjunct(logs.records_fit, {"leader_answers_fetch": ("requests-tell-the-truth",)}),
    Conjunct(logs.records_are_named, {"becomes_leader": ("watermarks-are-committed",)}),
    Conjunct(logs.requests_tell_the_truth, {"leader_appends": ("records-are-named",)}),
    Conjunct(logs.epochs_are_the_controllers, {"leader_appends": ("records-are-named",)}),
    Conjunct(
        logs.own_epoch_is_last,
        {
            "leader_answers_fetch": ("continuing-requests-match", "acknowledged-is-there", "requests-tell-the-truth"),
            "*": ("epochs-are-the-controllers", "records-are-named"),
        },
    ),
    Conjunct(
        logs.records_in_order,
        {
            "leader_answers_fetch": ("continuing-requests-match", "acknowledged-is-there", "requests-tell-the-truth"),
            "*": ("records-are-named", "own-epoch-is-last"),
        },
    ),
    Conjunct(
        logs.one_epoch_one_log,
        {
            "leader_answers_fetch": ("continuing-requests-match", "acknowledged-is-there", "requests-tell-the-truth"),
            "*": ("records-are-named", "leaders-have-their-epoch"),
        },
    ),
    Conjunct(
        logs.logs_match,
        {
            "leader_answers_fetch": ("continuing-requests-match", "acknowledged-is-there", "requests-tell-the-truth"),
            "*": ("records-are-named", "records-in-order"),
        },
    ),
    Conjunct(
        logs.leaders_have_their_epoch,
        {
            "leader_answers_fetch": (
                "continuing-requests-match",
                "acknowledged-is-there",
                "requests-tell-the-truth",
                "logs-match",
            ),
            "*": ("records-are-named", "new-epochs-are-empty"),
        },
    ),
    Conjunct(
        logs.new_epochs_are_empty,
        {
            "leader_answers_fetch": (
                "continuing-requests-match",
                "own-epoch-is-last",
                "acknowledged-is-there",
                "requests-tell-the-truth",
            ),
            "*": ("epochs-are-the-controllers", "records-are-named", "own-epoch-is-last"),
        },
    ),
    Conjunct(
        logs.requests_of_own_epoch,
        {
            "becomes_leader": ("requests-tell-the-truth", "new-epochs-are-empty", "records-are-named"),
            "*": ("records-are-named", "own-epoch-is-last", "leaders-have-their-epoch"),
        },
    ),
    Conjunct(
        logs.logs_part_at_the_cut,
        {
            "leader_answers_diverging": ("records-in-order", "requests-tell-the-truth"),
            "*": ("records-are-named", "records-in-order"),
        },
    ),
    Conjunct(
        logs.continuing_requests_match,
        {
            "leader_appends": ("records-are-named", "requests-of-own-epoch", "own-epoch-is-last"),
            "*": ("one-epoch-one-log'", "records-in-order'", "requests-tell-the-truth'"),
        },
    ),
    Conjunct(
        logs.acknowledged_is_there,
        {
            "leader_appends": ("records-are-named", "requests-of-own-epoch", "requests-tell-the-truth"),
            "leader_answers_fetch": ("continuing-requests-match", "requests-tell-the-truth"),
            "leader_answers_diverging": ("logs-part-at-the-cut'", "logs-match"),
            "*": ("one-epoch-one-log", "logs-match", "requests-tell-the-truth'"),
        },
    ),
    Conjunct(
        sets.zombies_commit_nothing_new,
        {
            "leader_appends": ("records-are-named", "requests-of-own-epoch"),
            "leader_answers_diverging": ("logs-part-at-the-cut'", "acknowledged-is-there"),
            "leader_proposes_expansion": ("acknowledged-is-there", "own-epoch-is-last", "committed-before-own-epoch"),
            "leader_answers_fetch": ("continuing-requests-match",),
            "becomes_leader": ("records-are-named",),
            "controller_begins_new_epoch": ("acknowledged-is-there",),
            "*": ("acknowledged-is-there'",),
        },
    ),
    Conjunct(
        sets.candidates_are_complete,
        {
            "leader_answers_diverging": ("logs-part-at-the-cut'", "leaders-of-candidates-are-complete"),
            "leader_proposes_expansion": ("committed-before-own-epoch", "acknowledged-is-there"),
            "leader_answers_fetch": (
                "continuing-requests-match",
                "acknowledged-is-there",
                "zombies-commit-nothing-new",
                "watermarks-are-committed",
            ),
            "*": (
                "acknowledged-is-there",
                "zombies-commit-nothing-new",
                "records-are-named",
                "watermarks-are-committed",
            ),
        },
    ),
    Conjunct(
        sets.leaders_of_candidates_are_complete,
        {
            "leader_answers_fetch": (
                "continuing-requests-match",
                "candidates-are-complete",
                "zombies-commit-nothing-new",
                "acknowledged-is-there",
            ),
            "*": ("candidates-are-complete", "zombies-commit-nothing-new", "acknowledged-is-there"),
            ANY_NUMBER: ("watermarks-are-committed",),
        },
    ),
    Conjunct(
        sets.leaders_agree_with_committed,
        {
            "becomes_leader": (
                "watermarks-are-committed",
                "somebody-may-be-elected'",
                "zombies-commit-nothing-new'",
                "candidates-are-complete'",
            ),
            "*": ("somebody-may-be-elected'", "zombies-commit-nothing-new'", "candidates-are-complete'"),
        },
    ),
    Conjunct(
        sets.committed_before_own_epoch,
        {
            "becomes_leader": ("candidates-are-complete", "new-epochs-are-empty", "records-are-named"),
            "leader_answers_fetch": (
                "continuing-requests-match",
                "candidates-are-complete",
                "zombies-commit-nothing-new",
                "own-epoch-is-last",
            ),
            "*": ("candidates-are-complete", "zombies-commit-nothing-new", "own-epoch-is-last", "records-are-named"),
            ANY_NUMBER: ("watermarks-are-committed",),
        },
    ),
    Conjunct(
        sets.watermarks_are_committed,
        {
            "leader_appends": ("leaders-agree-with-committed", "records-are-named"),
            "leader_answers_fetch": (
                "leaders-agree-with-committed",
                "continuing-requests-match",
                "acknowledged-is-there",
                "requests-tell-the-truth",
            ),
            "*": ("leaders-agree-with-committed",),
        },
    ),
    Conjunct(
        sets.acked_is_committed,
        {
            "leader_appends": ("watermarks-are-committed", "leaders-agree-with-committed", "records-are-named"),
            "*": ("watermarks-are-committed", "leaders-agree-with-committed", "continuing-requests-match"),
        },
    ),
    Conjunct(
        sets.reads_are_of_what_is_committed,
        {
            "consumer_reads": ("watermarks-are-committed",),
            "*": ("leaders-agree-with-committed", "continuing-requests-match", "watermarks-are-committed"),
        },
    ),
)

# What follows from all of them together, and from which.
FOLLOWS: dict[str, Mapping[str, tuple[str, ...]]] = {
    "type-ok": {
        "consumer_reads": ("reads-are-of-what-is-committed", "watermarks-are-committed"),
        "*": ("watermarks-are-committed",),
    },
    "committed-on-new-leader": {"*": ("candidates-are-complete",)},
    "leaders-complete": {"*": ("candidates-are-complete",)},
    "acked-survives": {"*": ("candidates-are-complete", "acked-is-committed")},
    "no-divergence": {"*": ("watermarks-are-committed",)},
    "watermark-within-log": {"*": ("watermarks-are-committed",)},
    "strong-isr": {"*": ("candidates-are-complete", "watermarks-are-committed")},
    "committed-only-grows": {
        "*": ("leaders-agree-with-committed", "continuing-requests-match", "watermarks-are-committed")
    },
    "implements-committed-log": {
        "*": (
            "leaders-agree-with-committed",
            "continuing-requests-match",
            "watermarks-are-committed",
            "reads-are-of-what-is-committed",
        )
    },
    "reads-stable": {"*": ("watermarks-are-committed'", "reads-are-of-what-is-committed'")},
}
