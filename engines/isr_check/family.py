"""A family: what is known of all designs of one model, beyond the designs themselves.

An engine says what it saw. What a verdict is worth, which bounds a fault needs and what a proof begins with are things
that only the model can say. So is what helps against a broken promise. A model says them in one object, which extends
`Family`. `Family` itself knows nothing: it is the family of a design that no model claims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from isr_check.engine import Engine, Exploration, Limits, Progress, silent
from isr_lang import Conjunct, Design, Instance, Property, Struct, Value

if TYPE_CHECKING:
    from isr_check.best_first import SearchProgress
    from isr_check.room_search import Room

Slack = Mapping[str, int]
"""The name of a bound -> how much of it is left, at most, when a promise of liveness comes to pass."""
Lines = tuple[tuple[str, str], ...]
"""What each is for -> what is to be typed, or read."""


@attrs.frozen
class ProofPlan:
    """What a proof takes where nobody says otherwise.

    `promises`: names of the properties to prove. `open_bounds`: bounds that may have any value. `constants`: those of
    the others that do not have the design's default. `lemmas`: conjunct or promise -> action or nothing -> the names
    of the conjuncts that it follows from. `cores`: the file of what earlier proofs learnt. `lemmas_suffice`: a promise
    takes no conjuncts but those that its lemmas name, and the lemmas of these.
    """

    promises: tuple[str, ...] = ()
    open_bounds: tuple[str, ...] = ()
    constants: Mapping[str, Value] = attrs.field(factory=dict[str, Value])
    lemmas: Mapping[str, Mapping[str, tuple[str, ...]]] = attrs.field(factory=dict[str, Mapping[str, tuple[str, ...]]])
    cores: Path | None = None
    lemmas_suffice: bool = False

    def conjuncts_for(self, promises: Iterable[str], conjuncts: Sequence[Conjunct]) -> list[Conjunct]:
        """The conjuncts that these promises take, in their order: all of them, unless the lemmas suffice."""
        by_name = {c.name: c.by for c in conjuncts}
        waiting = list(promises)
        if not self.lemmas_suffice or not waiting or not all(p in self.promises for p in waiting):
            return list(conjuncts)
        cone = set[str]()
        while waiting:
            name = waiting.pop()
            if name not in cone:
                cone.add(name)
                lemmas = [*self.lemmas.get(name, {}).values(), *by_name.get(name, {}).values()]
                waiting += [n.removesuffix("'") for names in lemmas for n in names]
        return [c for c in conjuncts if c.name in cone]


@attrs.frozen
class Notice:
    """What bounds notice of known mistakes: each was planted, and breaks some promise asked about within some bounds.

    `mistakes`: the names of those that say something here; `noticed_mistakes`: those that break a promise within these
    bounds. `unnoticed_by_promise`: of each promise the mistakes that break it within larger bounds, and not within
    these. `beyond_by_promise`: those of them that do not count against the promise. `enough`: the least values, of the
    bounds in the way, at which none is left. `settings`: those at which the mistakes were tried, where they are not the
    question's. `without_mistake`: the promises that no known mistake breaks. `base`: the design in which the mistakes
    were tried, where it is not the model of the question. `short_of_base`: promises of a design of somebody's own that
    say too little within bounds that would miss what is known of `base`; `enough` is enough for these, too.
    """

    mistakes: tuple[str, ...] = ()
    noticed_mistakes: tuple[str, ...] = ()
    unnoticed_by_promise: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict[str, tuple[str, ...]])
    beyond_by_promise: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict[str, tuple[str, ...]])
    enough: Mapping[str, Value] = attrs.field(factory=dict[str, Value])
    settings: Mapping[str, Value] = attrs.field(factory=dict[str, Value])
    without_mistake: tuple[str, ...] = ()
    base: str = ""
    short_of_base: tuple[str, ...] = ()


@attrs.frozen
class Precursor:
    """A probe with a witness of so many `steps`, after which a promise of these names may break.

    None of them breaks within the bounds, and each would have been said to hold. What follows the witness is cut off.
    """

    probe: Property
    steps: int
    promises: tuple[str, ...]


@attrs.frozen
class Worth:
    """An exploration whose findings have the verdicts that they deserve, and why they deserve no better ones.

    `room`: whether the bounds leave room for the faults; None where nobody asked. `without_encounter`: promises of
    which random walks met nothing that they speak about, so that it is not decided whether they are vacuous.
    """

    exploration: Exploration
    room: Room | None = None
    precursor: Precursor | None = None
    without_encounter: tuple[str, ...] = ()


class Family:
    """The designs whose state is `state`, or extends it. Of these nothing is known."""

    state: type[Struct] = Struct
    subject: str = ""
    """What its designs are of, as a heading."""
    fault_story: str = "the faults"
    """What a behaviour has that passes every milestone, as a list in words."""
    aftermath: str = "after all faults"
    """When slack is measured."""
    slack_words: Mapping[str, str] = {}
    """The name of a bound of which slack is told -> whose changes it counts."""
    bounds_of_faults: tuple[str, ...] = ()
    """Bounds that follow the faults where they are not given: those of `constants_with_room`."""
    bounds_of_mistakes: tuple[str, ...] = ()
    """Bounds that only `noticing_constants` chooses where they are not given, and then larger than their defaults."""
    safer: Mapping[str, Value] = {}
    """Settings that are recommended, the best first."""
    dearer: Mapping[str, Value] = {}
    """Settings that help where those do not, at a price."""
    proved: str = ""
    """What has an inductive invariant, and how it is proved, where designs of the family have none."""
    outputs: tuple[str, ...] = ()
    """How the names of variables begin that have what a step sends or answers."""

    def designs(self) -> Mapping[str, Design]:
        """The designs of the model by name, in the order in which they are listed."""
        return {}

    def planted_bugs(self) -> Mapping[str, Design]:
        """Designs with a bug that was planted on purpose, by name; they are found by it, and not listed."""
        return {}

    # before an exploration

    def constants_with_room(self, design: Design, constants: Mapping[str, Value]) -> Mapping[str, Value]:
        """The constants, and of the other bounds those that the fault budgets and settings among them need.

        SettingError for a constant that does not exist or a value that it cannot have.
        """
        del design
        return constants

    def noticing_constants(
        self, design: Design, constants: Mapping[str, Value], promises: Iterable[str], *, whatever_it_takes: bool
    ) -> Mapping[str, Value]:
        """The same, and the least bounds that notice all known mistakes of these promises.

        Where an exploration would take more than seconds, bounds are not enlarged for mistakes, unless it may take
        `whatever_it_takes`. SettingError as for `constants_with_room`.
        """
        del promises, whatever_it_takes
        return self.constants_with_room(design, constants)

    def is_large(self, instance: Instance) -> bool:
        """Whether one state of each orbit and of each kind is explored where nobody says otherwise."""
        del instance
        return False

    def premises(self, names: Iterable[str]) -> tuple[Property, ...]:
        """What must happen in some behaviour, or else the properties of these names say nothing."""
        del names
        return ()

    def precursors(self, names: Iterable[str]) -> tuple[Property, ...]:
        """What comes before the harm to the properties of these names: with a witness of it, HOLDS says too little."""
        del names
        return ()

    def probes(self, names: Sequence[str]) -> tuple[Property, ...]:
        """All that `worth` needs the findings of, beside those of the properties of these names."""
        return (*self.premises(names), *self.precursors(names))

    def slack_probes(self, instance: Instance, names: Sequence[str]) -> tuple[Property, ...]:
        """What tells how much of the bounds is left when the promises of liveness of these names come to pass."""
        del instance, names
        return ()

    # after it

    def slack(
        self, instance: Instance, exploration: Exploration, names: Sequence[str]
    ) -> tuple[Exploration, Mapping[str, Slack]]:
        """The exploration without the findings on `slack_probes`, and the slack of each promise that holds."""
        del instance, names
        return exploration, {}

    def worth(
        self,
        instance: Instance,
        exploration: Exploration,
        names: Sequence[str],
        engine: Engine,
        limits: Limits,
        progress: Callable[[Progress], None] = silent,
        search_progress: SearchProgress = lambda expanded, most: None,
    ) -> Worth:
        """The findings on the properties of these names, each with the verdict that it deserves, and why.

        `exploration` has the findings on `probes`, too. The engine looks for room; `progress` and `search_progress`
        are those of `isr_check.room_search`.
        """
        del instance, names, engine, limits, progress, search_progress
        return Worth(exploration)

    def noticing(
        self, instance: Instance, exploration: Exploration, names: Sequence[str]
    ) -> tuple[Exploration, Notice | None]:
        """The findings on the properties of these names, and which known mistakes the bounds notice.

        A promise that holds, and would not have noticed a mistake of its own kind, is TOO SMALL. None: nobody knows.
        """
        del instance, names
        return exploration, None

    def milestones(self) -> tuple[Property, ...]:
        """What a behaviour passes that has room for the faults, in order: `Room.lacking` is one of these."""
        return ()

    # a proof

    def proof_plan(self) -> ProofPlan:
        return ProofPlan()

    def invariant(self, design: Design) -> tuple[Conjunct, ...]:
        """The conjuncts of the inductive invariant; none where none is known."""
        del design
        return ()

    # a broken promise

    def alternatives(self, design: Design, designs: Mapping[str, Design]) -> Iterator[Design]:
        """Of all `designs` those that may keep what this one breaks, the nearest first.

        They are those that it was made from, and then those that were made from it.
        """
        base = design.based_on
        while base is not None:
            if base.name in designs:
                yield designs[base.name]
            base = base.based_on
        yield from (
            other for other in designs.values() if other.based_on is not None and other.based_on.name == design.name
        )

    def ways_to_set(self, settings: Mapping[str, Value]) -> Lines:
        """How a running system is given these settings, as far as it has them."""
        del settings
        return ()

    def whereabouts(self, design: Design) -> Lines:
        """Where somebody finds a system that has this design."""
        del design
        return ()

    # a report

    questions: Path | None = None
    """The file of what a report asks of the designs, each answered by a run of its own; None where it asks nothing."""

    def omissions(self) -> str:
        """What the model leaves out, as a paragraph; empty where it does not say."""
        return ""
