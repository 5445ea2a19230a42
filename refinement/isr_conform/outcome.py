"""What `conform` was asked for, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import attrs

from isr_broker.snapshot import Json
from isr_check.reference import Parameters
from isr_lang.declare import Value
from isr_replay.replay import Kind, Named


@attrs.frozen(kw_only=True)
class Schedule:
    """A story to follow: where it begins, and its steps, with their parameters by name, as the engines have them."""

    initial: Mapping[str, object]
    steps: tuple[tuple[str, Mapping[str, object]], ...]


@attrs.frozen(kw_only=True)
class Limits:
    """How much is driven: every edge, so many of `each` action, walks, or one story; and when to stop in any case."""

    schedule: Schedule | None = None

    walks: int | None = None
    each: int | None = None
    """So many edges of each action, drawn by chance, and what lies on the ways to them."""
    paths: bool = False
    """Along paths from resets, also where the system can save its state."""
    longest: int = 40
    seed: int = 0
    first: bool = False
    """Stop at the first difference."""
    max_steps: int | None = None
    max_seconds: float | None = None

    @property
    def partial(self) -> bool:
        """Not all of the graph need be known."""
        return self.walks is not None or self.schedule is not None


@attrs.frozen(kw_only=True)
class Unlike:
    """A step at which system and model differ, the shortest way to it, and why the model says what it says."""

    kind: Kind
    action: str
    parameters: Parameters
    initial: int
    path: tuple[Named, ...]
    places: tuple[tuple[str, Json, Json], ...] = ()
    """Where they differ, the model's value, the system's value."""
    said: str = ""
    rules: tuple[str, ...] = ()


@attrs.define(kw_only=True)
class Conformed:
    """What was driven and what came of it. `edges` are those of the model, where they are known."""

    name: str
    design: str
    constants: Mapping[str, Value]
    walks: int | None
    seed: int
    saves: bool
    variables: tuple[str, ...]
    story: bool = False
    each: int | None = None
    drawn: int = 0
    of_drawn: int = 0
    """Of the edges that were drawn by chance, so many of each action."""
    left_out: tuple[str, ...] = ()
    """Actions that the system does not claim to have."""
    complete: bool = False
    states: int = 0
    of_states: int | None = None
    edges: int = 0
    of_edges: int | None = None
    steps: int = 0
    resets: int = 0
    asked: int = 0
    actions: Counter[str] = attrs.field(factory=Counter[str])
    of_actions: Counter[str] | None = None
    pairs: int = 0
    """Actions that were driven one right after the other."""
    of_pairs: int | None = None
    skipped: list[str] = attrs.field(factory=list[str])
    """Steps of a story that this design does not allow where the story comes to them."""
    cannot: Counter[str] = attrs.field(factory=Counter[str])
    """Edges that the system could not be brought to try, by the reason that it gave."""
    count: Counter[Kind] = attrs.field(factory=Counter[Kind])
    unlike: list[Unlike] = attrs.field(factory=list[Unlike])
    seconds: float = 0.0

    @property
    def alike(self) -> bool:
        """Nothing differs."""
        return not self.count
