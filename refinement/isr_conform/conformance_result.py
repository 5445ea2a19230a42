"""What `insync conform` is asked to drive, and what comes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import attrs

from isr_broker.snapshot import Json
from isr_check.reference import Parameters
from isr_conform.broken_promises import BrokenPromise
from isr_conform.sut_messages import Place
from isr_conform.value_json import JsonObject
from isr_lang.declare import Value
from isr_replay.replay import Kind, NamedStep


@attrs.frozen(kw_only=True)
class Schedule:
    """The steps of a stored trace: the parameters of its initial state, then each action with its parameters.

    Values are the integers that the engines use.
    """

    initial: Mapping[str, object]
    steps: tuple[tuple[str, Mapping[str, object]], ...]


@attrs.frozen(kw_only=True)
class Limits:
    """How much is driven: a schedule, or walks, or a sample of the edges, or (with none of these given) every edge."""

    schedule: Schedule | None = None
    walks: int | None = None
    """How many walks, each of at most `walk_length` steps."""
    per_action: int | None = None
    """How many edges of each action are drawn at random; the edges on the paths to them are driven as well."""
    near_walks: int | None = None
    """How many edges are driven of the states that walks of the model come by, all those of a state; `walk_length`
    is theirs. The model is not explored for that."""
    paths: bool = False
    """Drive paths from resets even if the system can save its state."""
    walk_length: int = 40
    seed: int = 0
    stop_at_first: bool = False
    """End the run at the first difference."""
    max_steps: int | None = None
    max_seconds: float | None = None
    stop: Callable[[], bool] = lambda: False
    """Asked before each step: whether somebody wants the run to end with what it has."""

    @property
    def partial(self) -> bool:
        """Whether the run can go without the whole state graph."""
        return any(kind is not None for kind in (self.walks, self.schedule, self.near_walks))

    @property
    def draws_edges(self) -> bool:
        """Whether only some edges are driven, which are drawn by chance."""
        return self.per_action is not None or self.near_walks is not None


@attrs.frozen(kw_only=True)
class Difference:
    """A step at which system and model differ, with the shortest path known to it."""

    kind: Kind
    action: str
    parameters: Parameters
    initial: int
    path: tuple[NamedStep, ...]
    places: tuple[tuple[str, Json, Json], ...] = ()
    """Where the states differ, with the model's value and the system's value."""
    reason: str = ""
    """What the system gave as its reason to refuse the step."""
    rules: tuple[str, ...] = ()
    """What the action is, then the guards or updates of the model that the system breaks."""


Explain: TypeAlias = "Callable[[str, JsonObject, str, JsonObject, Sequence[Place], Sequence[Place] | None], str]"
"""What is known of a difference, given its kind, the state before, action, parameters and places; "" if nothing is.

The last says what came of the step that the system took: the unexpected one, or the one in place of the missing one.
It has the places at which the state after it is not the one to which the model's action of that name leads, whether
allowed or not. It is None where the system took no step, or does not tell.
"""


def nothing_known(
    kind: str,
    before: JsonObject,
    action: str,
    parameters: JsonObject,
    places: Sequence[Place],
    own: Sequence[Place] | None,
) -> str:
    """Of most systems no difference is known."""
    return ""


Progress: TypeAlias = "Callable[[str, int, int | None], None]"
"""Called on the way with what is counted, how many are done, and of how many, None if that is not known."""


@attrs.define(kw_only=True)
class ConformanceResult:
    """What was driven, and what differed.

    Fields `of_...` are the totals in the model, None if they were not counted.
    """

    name: str
    design: str
    constants: Mapping[str, Value]
    walks: int | None
    seed: int
    saves: bool
    variables: tuple[str, ...]
    follows_schedule: bool = False
    """Whether a stored trace was driven."""
    per_action: int | None = None
    near_walks: int | None = None
    drawn_edges: int = 0
    of_drawn: int = 0
    """Edges that were drawn at random, `per_action` of each action or those `near_walks`; `drawn_edges` counts those
    that were driven."""
    left_out: tuple[str, ...] = ()
    """Actions that the system does not implement, by its answer to `hello`."""
    model_alone: tuple[str, ...] = ()
    """Actions in which the system has no part, which the model takes alone."""
    complete: bool = False
    """Whether everything that the limits ask for was driven."""
    states: int = 0
    of_states: int | None = None
    edges: int = 0
    of_edges: int | None = None
    steps: int = 0
    alone_steps: int = 0
    """Steps that the model took alone."""
    resets: int = 0
    requests: int = 0
    """Requests of any kind."""
    actions: Counter[str] = attrs.field(factory=Counter[str])
    of_actions: Counter[str] | None = None
    untaken_actions: tuple[str, ...] = ()
    """Actions that a setting switches on, each with that setting, and that the model takes nowhere in these bounds."""
    pairs: int = 0
    """Pairs of actions that were driven one right after the other."""
    of_pairs: int | None = None
    skipped_steps: list[str] = attrs.field(factory=list[str])
    """Steps of a schedule that the design does not allow in the state in which the schedule has them."""
    broken_promises: list[BrokenPromise] = attrs.field(factory=list[BrokenPromise])
    """Promises that broke on the way of a schedule, each with the step."""
    cannot: Counter[str] = attrs.field(factory=Counter[str])
    """How many edges the system answered with `cannot`, by the reason that it gave."""
    cannot_actions: Counter[str] = attrs.field(factory=Counter[str])
    """The same by action."""
    known_differences: Counter[str] = attrs.field(factory=Counter[str])
    """Differences that are known, by what is known of them; they are not in `count`."""
    count: Counter[Kind] = attrs.field(factory=Counter[Kind])
    differences: list[Difference] = attrs.field(factory=list[Difference])
    seconds: float = 0.0

    @property
    def undriven_actions(self) -> tuple[str, ...]:
        """Actions that were tried, and of which the system could not be brought to a single step."""
        return tuple(name for name in self.cannot_actions if not self.actions[name])

    @property
    def conforms(self) -> bool:
        """Whether no difference was found."""
        return not self.count
