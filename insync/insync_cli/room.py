"""What a verdict is worth: whether what a promise speaks about happens, and whether the bounds leave room for faults.

A promise of liveness has slack, too: how much of the bounds is left when it comes to pass. All are asked of the designs
of Kafka only: `isr_protocol.promises.worth` states what a verdict deserves, `isr_protocol.promises.slack` what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import attrs

from insync_cli import registry
from insync_cli.options import shown
from insync_cli.runfile import RoomLine
from isr_check.engine import Exploration, Limits, Verdict
from isr_lang import Instance

if TYPE_CHECKING:
    from insync_cli.progress import Ticker
    from isr_check.room import Room
    from isr_lang import Design, Value

Slack = dict[str, int]
"""The name of a bound -> how much of it is left, at most, when a promise of liveness comes to pass."""


def of_kafka(design: Design) -> bool:
    """Whether the state of the design is that of the protocol, or has it and more."""
    from isr_protocol.state import State

    return issubclass(design.state, State)


def following(design: Design, constants: Mapping[str, Value]) -> Mapping[str, Value]:
    """The constants that are given, and bounds that follow the faults among them; UsageError where they cannot be."""
    registry.instance_of(design, constants)
    if not of_kafka(design):
        return constants
    from isr_protocol.promises.room import following

    return following(design, constants)


def with_premises(instance: Instance, wanted: Sequence[str]) -> tuple[Instance, tuple[str, ...]]:
    """The instance with the premises of what is wanted as properties of their own, and all that is then wanted."""
    if not of_kafka(instance.design):
        return instance, tuple(wanted)
    from isr_protocol.promises.worth import with_premises

    return with_premises(instance, wanted)


def with_every_premise(design: Design) -> Design:
    """The design with the premises of all its promises as properties of their own."""
    if not of_kafka(design):
        return design
    from isr_protocol.promises.worth import with_every_premise

    return with_every_premise(design)


# Slack


def with_slack(instance: Instance, wanted: Sequence[str]) -> tuple[Instance, tuple[str, ...]]:
    """The instance with what tells the slack of each promise of liveness that is wanted, and all then wanted."""
    if not of_kafka(instance.design):
        return instance, tuple(wanted)
    from isr_protocol.promises.slack import probes

    more = [p for found in probes(instance, wanted).values() for p in found]
    design = instance.design
    wider = attrs.evolve(design, properties=(*design.properties, *map(design.restated, more)))
    return Instance(wider, instance.constants), (*wanted, *(p.name for p in more))


def without_slack(
    instance: Instance, found: Exploration, wanted: Sequence[str]
) -> tuple[Exploration, dict[str, Slack]]:
    """The findings without what tells the slack, and the slack of each promise of liveness that holds."""
    if not of_kafka(instance.design):
        return found, {}
    from isr_protocol.promises.slack import probes, slack

    names = {p.name for of in probes(instance, wanted).values() for p in of}
    met = {f.name for f in found.findings if f.name in names and f.path is not None}
    held = [f.name for f in found.findings if f.kind == "eventually" and f.verdict is Verdict.HOLDS]
    left = attrs.evolve(found, findings=tuple(f for f in found.findings if f.name not in names))
    return left, {name: dict(slack(instance, name, met)) for name in held}


def worth(
    instance: Instance,
    found: Exploration,
    wanted: Sequence[str],
    workers: int,
    limits: Limits,
    ticker: Ticker | None = None,
) -> tuple[Exploration, Room | None]:
    """The findings on what was wanted, each with the verdict that it deserves, and the room that the bounds leave.

    `found` is the exploration of what `with_premises` made of the instance. Of other designs nothing more is known.
    """
    if not of_kafka(instance.design):
        return found, None
    from isr_protocol.promises.worth import worth

    engine, _ = registry.engine_named(registry.default_engine(), workers)
    if ticker is None:
        return worth(instance, found, wanted, engine, limits)
    looked = partial(ticker.count, what="states, at most, looked at: do the bounds leave room?")
    return worth(instance, found, wanted, engine, limits, ticker, looked)


def room_line(room: Room | None) -> RoomLine | None:
    if room is None:
        return None
    lacking = room.lacking.name if room.lacking is not None else None
    return RoomLine(lacking=lacking, cut=dict(room.cut), enough=dict(room.enough), complete=room.complete)


def sentence(line: RoomLine) -> str:
    """Why the bounds are too small, and which are not; for a line with something lacking."""
    from isr_protocol.promises.room import MILESTONES

    lacking = next(m for m in MILESTONES if m.name == line["lacking"])
    what = lacking.doc.rstrip(".")
    none = f"no behaviour {'exists' if line['complete'] else 'was found'}"
    said = f"within these bounds {none} with all of this: the faults, a new leader, a follower that rejoins, a commit. "
    said += f"What is missing first: {what[0].lower()}{what[1:]}"
    if not line["enough"]:
        return f"{said}. No larger bounds that were tried have one, either"
    return f"{said}. Too small: {options_of(line['cut'])}. Enough: {options_of(line['enough'])}"


def options_of(constants: Mapping[str, Value]) -> str:
    return " ".join(f"--{name.replace('_', '-')} {shown(value)}" for name, value in constants.items())
