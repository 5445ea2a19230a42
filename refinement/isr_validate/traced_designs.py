"""The model that the traces of a design are compared with: the design's own, but for two things.

- Before KIP-497 the leader wrote the ISR itself, in one step. The broker asks the controller in every design, and says
  why (`isr_broker.designs`), so here the ISR changes as in kip-497, and everything else as in the design.
- Whether a follower still waits for an answer is seen where it takes it: a leader answers whether it does or not.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import attrs

from isr_designs import DESIGNS
from isr_history import ALTER_PARTITION
from isr_lang import Bool, Design, define
from isr_model import KIP_966
from isr_state import Replica, State

_CHANGES_ISR: Final = ("leader_proposes_shrink", "leader_proposes_expansion", *ALTER_PARTITION)
"""How the ISR changes since KIP-497."""

TRACED: Final = tuple(DESIGNS)[: list(DESIGNS).index("kafka-0.8") + 1]
"""The designs that a broker can be told to have (`isr_broker.designs.DESIGNS`)."""


@define
def whoever_waits(s: State, leader: Replica, follower: Replica) -> Bool:
    """Somebody reads the answer."""
    return Bool.true


@cache
def traced(name: str) -> Design:
    """The model for the traces of a design."""
    design = asking_controller(DESIGNS[name])
    waits = {d.name for d in design.definitions()} & {"waits", "waits_for_leader"}
    because = "who waits for an answer is seen where it is taken."
    return design.replacing(name, design.summary, because=because, **dict.fromkeys(waits, whoever_waits))


def asking_controller(design: Design) -> Design:
    """The design with an ISR that changes as in kip-497; who may join is by the design's own rules."""
    if any(action.name == "leader_adopts_isr" for action in design.actions):
        return design
    kept = tuple(action for action in design.actions if action.name not in _CHANGES_ISR)
    return attrs.evolve(design, actions=kept).adding(*map(KIP_966.action_named, _CHANGES_ISR))
