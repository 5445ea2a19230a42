"""What brokers hear, held against the partition's model with one reliable controller: is each change one of its steps?

A change of what is committed is to be a decision that the one controller could take in the state in which it is
committed. Here an active controller commits one record at a time, for two decisions at once are no step of one. A new
one that has two decisions of others to commit is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from controller_model import KRAFT_CONTROLLERS
from controller_protocol.metadata import VARIABLES
from controller_protocol.promises import replica_was_out
from controller_protocol.state import State, is_active
from isr_lang import Property, Step, action, when
from isr_lang.expr import Expr
from isr_lang.refine import implements
from isr_model import KIP_966
from isr_protocol import state as partition
from kraft_protocol.abstract_quorum import Position
from kraft_protocol.state import Voter

METADATA = frozenset(VARIABLES) - {"broker_epoch"}
"""What brokers hear of: the variables of a partition's one controller."""
DECISIONS = attrs.evolve(
    KIP_966, actions=tuple(a for a in KIP_966.actions if not METADATA.isdisjoint(u.variable for u in a.updates))
)
"""The partition's model with the steps of its controller alone, registrations included."""


def value_of(name: str) -> Callable[[State], Expr]:
    """The variable of this name, which is the same in both models."""
    return lambda s: getattr(s, name)


decides_as_one = implements(
    "decides-as-one",
    "Every change that brokers hear of is one that a single reliable controller could make then.",
    DECISIONS,
    State,
    {v.name: value_of(v.name) for v in partition.State.variables()},
    variables=METADATA,
)


@action
def one_record_at_a_time(old: State, new: State, c: Voter, n: Position) -> Step:
    """An active controller commits the next record, and a new one its LeaderChange and at most one record before."""
    most = when(is_active(old, c), old.quorum_end[c] + 1, old.quorum_committed.length() + 2)
    return (n <= most,)


AS_ONE = (
    KRAFT_CONTROLLERS.replacing(
        "kraft-controllers-as-one",
        "Controllers on a quorum, of which each committed decision is compared with those of a single one",
        because="it asks where a quorum of controllers is no single reliable node.",
    )
    .extending(controller_commits=one_record_at_a_time)
    .promising(decides_as_one)
)

PREMISES: Mapping[str, Property] = {decides_as_one.name: replica_was_out}
"""By the name of the promise: what must happen in some behaviour, or else the promise says nothing."""

DESIGNS = (AS_ONE,)
