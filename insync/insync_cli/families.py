"""Which family a design is of; a model of another kind takes a row in `families`, and nothing else here."""

from __future__ import annotations

from isr_check.family import Family
from isr_lang import Design

UNKNOWN = Family()
"""The family of a design that no model claims, such as one in a file of somebody's own with a state of its own."""


def families() -> tuple[Family, ...]:
    from isr_protocol.family import IN_SYNC_REPLICAS

    return IN_SYNC_REPLICAS, UNKNOWN


def family_of(design: Design) -> Family:
    """The family of the nearest state that this design's state extends."""
    by_state = {family.state: family for family in families()}
    return next(by_state[state] for state in design.state.__mro__ if state in by_state)
