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

NAMED, ORDERED, ONE_LOG, MATCH = "records-are-named", "records-in-order", "one-epoch-one-log", "logs-match"
OWN, HAVE, EMPTY, TOLD = (
    "own-epoch-is-last",
    "leaders-have-their-epoch",
    "new-epochs-are-empty",
    "requests-tell-the-truth",
)
MATCHES, AGREED, SOMEBODY = (
    "continuing-requests-match",
    "leaders-agree-with-committed",
    "somebody-may-be-elected",
)
EPOCHS, OF_OWN, THERE, CUT = (
    "epochs-are-the-controllers",
    "requests-of-own-epoch",
    "acknowledged-is-there",
    "logs-part-at-the-cut",
)
ZOMBIES, COMPLETE, BEFORE, WATERMARKS, READ = (
    "zombies-commit-nothing-new",
    "candidates-are-complete",
    "committed-before-own-epoch",
    "watermarks-are-committed",
    "reads-are-of-what-is-committed",
)

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
    Conjunct(sets.requests_of_isr, {"becomes_leader": (EMPTY,)}),
    Conjunct(sets.somebody_may_be_elected),
    Conjunct(sets.leaders_count_candidates, {"becomes_leader": (EMPTY,)}),
    Conjunct(sets.zombies_wait_for_the_slow),
    Conjunct(logs.records_fit, {"leader_answers_fetch": (TOLD,)}),
    Conjunct(logs.records_are_named, {"becomes_leader": (WATERMARKS,)}),
    Conjunct(logs.requests_tell_the_truth, {"leader_appends": (NAMED,)}),
    Conjunct(logs.epochs_are_the_controllers, {"leader_appends": (NAMED,)}),
    Conjunct(logs.own_epoch_is_last, {"leader_answers_fetch": (MATCHES, THERE, TOLD), "*": (EPOCHS, NAMED)}),
    Conjunct(logs.records_in_order, {"leader_answers_fetch": (MATCHES, THERE, TOLD), "*": (NAMED, OWN)}),
    Conjunct(logs.one_epoch_one_log, {"leader_answers_fetch": (MATCHES, THERE, TOLD), "*": (NAMED, HAVE)}),
    Conjunct(logs.logs_match, {"leader_answers_fetch": (MATCHES, THERE, TOLD), "*": (NAMED, ORDERED)}),
    Conjunct(
        logs.leaders_have_their_epoch, {"leader_answers_fetch": (MATCHES, THERE, TOLD, MATCH), "*": (NAMED, EMPTY)}
    ),
    Conjunct(
        logs.new_epochs_are_empty, {"leader_answers_fetch": (MATCHES, OWN, THERE, TOLD), "*": (EPOCHS, NAMED, OWN)}
    ),
    Conjunct(logs.requests_of_own_epoch, {"becomes_leader": (TOLD, EMPTY, NAMED), "*": (NAMED, OWN, HAVE)}),
    Conjunct(logs.logs_part_at_the_cut, {"leader_answers_diverging": (ORDERED, TOLD), "*": (NAMED, ORDERED)}),
    Conjunct(
        logs.continuing_requests_match,
        {"leader_appends": (NAMED, OF_OWN, OWN), "*": (f"{ONE_LOG}'", f"{ORDERED}'", f"{TOLD}'")},
    ),
    Conjunct(
        logs.acknowledged_is_there,
        {
            "leader_appends": (NAMED, OF_OWN, TOLD),
            "leader_answers_fetch": (MATCHES, TOLD),
            "leader_answers_diverging": (f"{CUT}'", MATCH),
            "*": (ONE_LOG, MATCH, f"{TOLD}'"),
        },
    ),
    Conjunct(
        sets.zombies_commit_nothing_new,
        {
            "leader_appends": (NAMED, OF_OWN),
            "leader_answers_diverging": (f"{CUT}'", THERE),
            "leader_proposes_expansion": (THERE, OWN, BEFORE),
            "leader_answers_fetch": (MATCHES,),
            "becomes_leader": (NAMED,),
            "controller_begins_new_epoch": (THERE,),
            "*": (f"{THERE}'",),
        },
    ),
    Conjunct(
        sets.candidates_are_complete,
        {
            "leader_answers_diverging": (CUT + "'", "leaders-of-candidates-are-complete"),
            "leader_proposes_expansion": (BEFORE, THERE),
            "leader_answers_fetch": (MATCHES, THERE, ZOMBIES, WATERMARKS),
            "*": (THERE, ZOMBIES, NAMED, WATERMARKS),
        },
    ),
    Conjunct(
        sets.leaders_of_candidates_are_complete,
        {
            "leader_answers_fetch": (MATCHES, COMPLETE, ZOMBIES, THERE),
            "*": (COMPLETE, ZOMBIES, THERE),
            ANY_NUMBER: (WATERMARKS,),
        },
    ),
    Conjunct(
        sets.leaders_agree_with_committed,
        {
            "becomes_leader": (WATERMARKS, f"{SOMEBODY}'", f"{ZOMBIES}'", f"{COMPLETE}'"),
            "*": (f"{SOMEBODY}'", f"{ZOMBIES}'", f"{COMPLETE}'"),
        },
    ),
    Conjunct(
        sets.committed_before_own_epoch,
        {
            "becomes_leader": (COMPLETE, EMPTY, NAMED),
            "leader_answers_fetch": (MATCHES, COMPLETE, ZOMBIES, OWN),
            "*": (COMPLETE, ZOMBIES, OWN, NAMED),
            ANY_NUMBER: (WATERMARKS,),
        },
    ),
    Conjunct(
        sets.watermarks_are_committed,
        {"leader_appends": (AGREED, NAMED), "leader_answers_fetch": (AGREED, MATCHES, THERE, TOLD), "*": (AGREED,)},
    ),
    Conjunct(
        sets.acked_is_committed, {"leader_appends": (WATERMARKS, AGREED, NAMED), "*": (WATERMARKS, AGREED, MATCHES)}
    ),
    Conjunct(
        sets.reads_are_of_what_is_committed, {"consumer_reads": (WATERMARKS,), "*": (AGREED, MATCHES, WATERMARKS)}
    ),
)

# What follows from all of them together, and from which.
FOLLOWS: dict[str, Mapping[str, tuple[str, ...]]] = {
    "type-ok": {"consumer_reads": (READ, WATERMARKS), "*": (WATERMARKS,)},
    "committed-on-new-leader": {"*": (COMPLETE,)},
    "leaders-complete": {"*": (COMPLETE,)},
    "acked-survives": {"*": (COMPLETE, "acked-is-committed")},
    "no-divergence": {"*": (WATERMARKS,)},
    "watermark-within-log": {"*": (WATERMARKS,)},
    "strong-isr": {"*": (COMPLETE, WATERMARKS)},
    "committed-only-grows": {"*": (AGREED, MATCHES, WATERMARKS)},
    "implements-committed-log": {"*": (AGREED, MATCHES, WATERMARKS, READ)},
    "reads-stable": {"*": (f"{WATERMARKS}'", f"{READ}'")},
}
