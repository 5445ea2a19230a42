"""Kafka's replication as a family: what every design of this package brings besides itself.

Each part is imported when it is asked for, as most commands need one of them or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from isr_check.engine import Engine, Exploration, Limits, Progress, silent
from isr_check.family import Family, Lines, Notice, ProofPlan, Slack, Worth
from isr_lang import Conjunct, Design, Instance, Property, Value
from isr_protocol.state import State

if TYPE_CHECKING:
    from isr_check.best_first import SearchProgress

TOPIC: Mapping[str, str] = {
    "unclean": "unclean.leader.election.enable=false",
    "min_insync": "min.insync.replicas={}",
    "flush": "flush.messages=1",
}
"""Configurations of a topic by the names of our settings."""
ALTER = "kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type topics --entity-name TOPIC --add-config"
RELEASES = "docs/versions.md says which releases of Kafka have this design"
NO_RELEASE = "no release of Kafka has this design"


class InSyncReplicas(Family):
    """One partition, replicated by `isr_protocol.state` or by a state that extends it."""

    state = State
    subject = "Replicas of a partition"
    outputs = ("fetch", "alter", "acked", "consumed")
    fault_story = "the faults, a new leader, a follower that rejoins, a commit"
    aftermath = "after all faults and a change of the leader"
    slack_words: Mapping[str, str] = {"isr_changes": "the metadata", "epochs": "the leader"}
    bounds_of_faults = ("epochs", "isr_changes")
    bounds_of_mistakes = ("log", "records")
    safer: Mapping[str, Value] = {"unclean": False, "acks": "all", "min_insync": 2}
    """Settings as Kafka recommends them."""
    dearer: Mapping[str, Value] = {"min_insync": 3, "flush": "always"}
    """The price: a write waits for every replica of three, or for disks."""

    def designs(self) -> Mapping[str, Design]:
        from isr_protocol.by_name import DESIGNS

        return DESIGNS

    def planted_bugs(self) -> Mapping[str, Design]:
        from isr_protocol.planted.bugs import PLANTED

        return {name: bug.design for name, bug in PLANTED.items() if bug.design is not None}

    def constants_with_room(self, design: Design, constants: Mapping[str, Value]) -> Mapping[str, Value]:
        from isr_protocol.promises.room import following

        return following(design, constants)

    def noticing_constants(
        self, design: Design, constants: Mapping[str, Value], promises: Iterable[str], *, whatever_it_takes: bool
    ) -> Mapping[str, Value]:
        from isr_protocol.planted.notice import noticing_constants

        return noticing_constants(design, constants, tuple(promises), whatever_it_takes=whatever_it_takes)

    def is_large(self, instance: Instance) -> bool:
        """Where people work beside the faults, or a message comes twice or late."""
        from isr_protocol.promises.room import operations_of

        return any(instance.constants[name] for name in operations_of(instance.design))

    def premises(self, names: Iterable[str]) -> tuple[Property, ...]:
        from isr_protocol.promises.worth import premises

        return premises(names)

    def precursors(self, names: Iterable[str]) -> tuple[Property, ...]:
        from isr_protocol.promises.worth import precursors

        return precursors(names)

    def slack_probes(self, instance: Instance, names: Sequence[str]) -> tuple[Property, ...]:
        from isr_protocol.promises.slack import probes

        return tuple(probe for of_promise in probes(instance, names).values() for probe in of_promise)

    def slack(
        self, instance: Instance, exploration: Exploration, names: Sequence[str]
    ) -> tuple[Exploration, Mapping[str, Slack]]:
        from isr_protocol.promises.worth import slack

        return slack(instance, exploration, names)

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
        from isr_protocol.promises.worth import worth

        return worth(instance, exploration, names, engine, limits, progress, search_progress)

    def noticing(
        self, instance: Instance, exploration: Exploration, names: Sequence[str]
    ) -> tuple[Exploration, Notice | None]:
        from isr_protocol.planted.notice import noticing

        return noticing(instance, exploration, names)

    def milestones(self) -> tuple[Property, ...]:
        from isr_protocol.promises.room import MILESTONES, OF_ALLOWANCES, operations_milestone

        return (*MILESTONES, *OF_ALLOWANCES, operations_milestone(State, {}))

    def proof_plan(self) -> ProofPlan:
        from isr_protocol.proof.questions import CORES, FIXED_CONSTANTS, FOLLOWS, OF_DESIGNS, OPEN, PROMISES

        return ProofPlan((*PROMISES, *OF_DESIGNS), OPEN, FIXED_CONSTANTS, FOLLOWS, CORES)

    def invariant(self, design: Design) -> tuple[Conjunct, ...]:
        from isr_protocol.proof.operations import invariant

        return invariant(design)

    def alternatives(self, design: Design, designs: Mapping[str, Design]) -> Iterator[Design]:
        """Of a design that was Kafka's those that came after it, the next one first. Of others also today's, last."""
        names = self._kafkas()
        if design.name in names:
            yield from (designs[name] for name in reversed(names[: names.index(design.name)]))
            return
        yield from super().alternatives(design, designs)
        yield from islice(self.designs().values(), 1)

    def ways_to_set(self, settings: Mapping[str, Value]) -> Lines:
        of_topic = [TOPIC[name].format(value) for name, value in settings.items() if name in TOPIC]
        of_producers = (("set it", "acks=all in the configuration of every producer"),) if "acks" in settings else ()
        return (*((("set it", f"{ALTER} {','.join(of_topic)}"),) if of_topic else ()), *of_producers)

    def whereabouts(self, design: Design) -> Lines:
        return (("which Kafka", RELEASES if design.name in self._kafkas() else NO_RELEASE),)

    def omissions(self) -> str:
        """The paragraph of the model's docstring that lists what is not modelled."""
        from isr_model import __doc__ as model_text

        text = " ".join((model_text or "").split())
        start = text.index("Not modelled:")
        return text[start : text.index(" Rules that", start)]

    def _kafkas(self) -> list[str]:
        """The names of the designs that were Kafka's: they are listed from today's on, back to the first."""
        from isr_protocol.designs.history import KAFKA_0_8

        names = list(self.designs())
        return names[: names.index(KAFKA_0_8.name) + 1]


IN_SYNC_REPLICAS = InSyncReplicas()
