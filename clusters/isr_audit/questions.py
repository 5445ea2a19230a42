"""What is asked of the model about a topic: a design, its settings, and what may fail, each within named bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

import attrs

from isr_lang import Constant, Instance, Value
from isr_lang.instance import check_constants
from isr_protocol.by_name import DESIGNS
from isr_protocol.promises.room import larger
from isr_trace.cases import option

LOSS: Final = "acked-survives"
"""What was acknowledged stays: the promise whose violation is a loss."""
REFUSAL: Final = "writes-meet-minimum"
"""No leader takes an acks=all record below the minimum: the promise behind "stops accepting writes"."""
MOST_REPLICAS: Final = 3
"""More are not explored: a third is enough for somebody to lag while two others change places."""
RELEASE_DESIGNS: Final = ("kafka-4.4", "kafka-4.2", "kafka-4.0", "kafka-4.4-no-elr")
"""Kafka as it is released, with all that was found in its code (isr_protocol.designs.releases)."""
DECISIVE_VERDICTS: Final = ("HOLDS", "VIOLATED", "PROVED")


@attrs.frozen
class Fault:
    """What may fail, at most: `each` is spent once for every replica, `budget` once in all.

    A crash keeps the disk, a power loss loses what was not flushed, a restart is in order. In every case replicas may
    lag and leadership may move. `takes_disk`: whoever loses power has an empty log afterwards, flushed or not.
    """

    name: str
    says: str
    budget: Mapping[str, int] = attrs.field(factory=dict[str, int])
    each: str = ""
    takes_disk: bool = False

    def budgets_for(self, replicas: int) -> dict[str, int]:
        """The budgets at so many replicas."""
        return dict(self.budget) if not self.each else {self.each: replicas}

    def flushed(self) -> Fault:
        """The same where every record is on disk before it is acknowledged: a power loss is a crash that keeps it."""
        lost = self.budget.get("lossy_crashes", 0)
        if not lost or self.takes_disk:
            return self
        kept = {n: v for n, v in self.budget.items() if n != "lossy_crashes"}
        return attrs.evolve(self, budget={**kept, "crashes": kept.get("crashes", 0) + lost})


NOTHING: Final = Fault("nothing", "nothing")
CRASH: Final = Fault("one-crash", "one crash", {"crashes": 1})
POWER: Final = Fault("one-power-loss", "one power loss", {"lossy_crashes": 1})
DISK: Final = Fault("one-disk-lost", "one disk lost", {"lossy_crashes": 1}, takes_disk=True)
"""The worst power loss of one broker: nothing of its log is left (`broker_loses_power` with no survivors)."""
CRASH_AND_POWER: Final = Fault("crash-and-power-loss", "a crash and a power loss", {"crashes": 1, "lossy_crashes": 1})
TWO_POWER: Final = Fault("two-power-losses", "two power losses", {"lossy_crashes": 2})
RESTART: Final = Fault("restart-of-all", "a restart of all", each="shutdowns")
FAULTS: Final = (NOTHING, CRASH, POWER, DISK, CRASH_AND_POWER, TWO_POWER, RESTART)


def rack_outage(in_rack: int, replicas: int) -> Fault:
    """The outage of a rack that has so many replicas of a partition: all of them lose power, at once or one after the
    other, and none is back before the last is down."""
    return Fault(
        "rack", f"a rack with {in_rack} of {replicas} replicas", {"lossy_crashes": min(in_rack, MOST_REPLICAS)}
    )


@attrs.frozen
class Settings:
    """What of a topic the model knows: its replicas and Kafka's settings."""

    replicas: int
    min_insync: int
    unclean: bool
    acks: str

    def bounded(self) -> Settings:
        """The same with as many replicas as are explored."""
        replicas = min(self.replicas, MOST_REPLICAS)
        return attrs.evolve(self, replicas=replicas, min_insync=min(self.min_insync, replicas))


@attrs.frozen
class Question:
    """One promise of one design at constants, all of which are given. `without`: the actions that are left out."""

    design: str
    promise: str
    constants: Mapping[str, Value] = attrs.field(hash=False)
    without: tuple[str, ...] = ()

    def instance(self) -> Instance:
        """The model that answers it."""
        return Instance(DESIGNS[self.design].without(*self.without), self.constants)

    @property
    def symmetric(self) -> bool:
        """Whether one state of each orbit is enough; a single replica has nobody to change places with."""
        return self.constants["replicas"] != 1

    @property
    def reduction(self) -> bool:
        """Whether states that differ in nothing that matters count as one: the designs of releases are large."""
        return self.design in RELEASE_DESIGNS

    def command(self) -> str:
        """What asks the same again."""
        usual = usual_constants(self.design)
        told = [option(n, v) for n, v in self.constants.items() if n in _ALWAYS or v != usual[n]]
        told += ["--symmetry on"] if self.symmetric else []
        told += ["--reduction on"] if self.reduction else []
        told += [f"--without {action}" for action in self.without]
        return " ".join(["insync check", self.design, *told, f"--property {self.promise}"])

    def proof_command(self, left_open: Sequence[str]) -> str:
        """What has it proved again for every value of these bounds."""
        usual = usual_constants(self.design)
        told = [option(n, "any") for n in left_open]
        given = {n: v for n, v in self.constants.items() if n not in left_open}
        told += [option(n, v) for n, v in given.items() if n in _PROVED or v != usual[n]]
        return " ".join(["insync prove", self.design, *told, f"--property {self.promise}"])


_PROVED: Final = (
    *("replicas", "log", "records", "epochs", "isr_changes", "crashes", "sessions_lost", "shutdowns"),
    *("consumers", "follower_reads", "min_insync"),
)
"""What a proof takes to be something else unless it is told."""
_ALWAYS: Final = ("replicas", "log", "records", "epochs", "isr_changes", "min_insync", "unclean", "acks")


@cache
def constants_of(design: str) -> tuple[Constant, ...]:
    """The bounds and settings of a design."""
    return tuple(DESIGNS[design].constants())


def usual_constants(design: str) -> dict[str, Value]:
    """What its bounds and settings are where nobody says otherwise."""
    return {c.name: DESIGNS[design].defaults.get(c.name, c.default) for c in constants_of(design)}


def loss_question(design: str, settings: Settings, fault: Fault) -> Question:
    """Whether what was acknowledged can be lost; settings beyond what is explored are taken as bounded."""
    return _make_question(design, settings.bounded(), LOSS, fault)


def refusal_question(design: str, settings: Settings) -> Question:
    """Whether a leader ever takes an acks=all record below the minimum, while replicas lag as they like."""
    fault = NOTHING if settings.replicas > 1 else CRASH
    return _make_question(design, attrs.evolve(settings.bounded(), unclean=False, acks="all"), REFUSAL, fault)


def _make_question(design: str, settings: Settings, promise: str, fault: Fault) -> Question:
    """Every budget is what the fault spends, and the other bounds follow it (isr_protocol.promises.room).

    With two replicas two faults also get a second record: the first may be lost and replaced before the second fault.
    With three replicas that would be too much to explore.
    """
    spent = fault.budgets_for(settings.replicas)
    two = sum(spent.values()) > 1 and settings.replicas < MOST_REPLICAS
    constants: dict[str, Value] = {c.name: 0 for c in constants_of(design) if c.budget}
    constants |= {"epochs": 1, "isr_changes": 2, "log": 1 + two, "records": 1 + two, **spent}
    constants |= {
        "replicas": settings.replicas,
        "min_insync": settings.min_insync,
        "unclean": settings.unclean,
        "acks": settings.acks,
    }
    whole = check_constants(DESIGNS[design], constants)
    return Question(design, promise, {**whole, **larger(DESIGNS[design], whole)})


STORED_DESIGNS: Final = {"kip-966": 3, "kraft-3.5": 3, "kip-841": 2, "kip-497": 2}
"""Designs whose answers are stored, and up to how many replicas. Others are explored when somebody asks."""
OLDER_DESIGNS: Final = {"kip-497": (3,), "kip-841": (3,), "kip-320": (1, 2, 3), "kip-279": (1, 2, 3), "kip-101": (1, 2)}
"""Designs of which what one failure does is stored, too, at so many replicas: they tell which upgrade helps."""


def stored_questions() -> Iterator[Question]:
    """The usual questions, small ones first.

    Unclean election comes on before off: if nothing is lost there, nothing is lost where fewer elections are possible.
    """
    for replicas in range(1, MOST_REPLICAS + 1):
        for design in (d for d, most in STORED_DESIGNS.items() if replicas <= most):
            for fault in FAULTS[replicas == 1 :]:  # nothing happens to a single replica of which nothing fails
                yield from _with_fault(design, replicas, fault)
    for design, numbers in OLDER_DESIGNS.items():
        for replicas in numbers:
            for minimum in range(1, replicas + 1):
                yield from _of_one_failure(design, Settings(replicas, minimum, False, "all"))


def _of_one_failure(design: str, settings: Settings) -> Iterator[Question]:
    """With three replicas only the default is tried, with acks=all and unclean election off."""
    all_of = [(acks, unclean) for acks in ("1", "all") for unclean in (True, False)]
    for acks, unclean in [("all", False)] if settings.replicas == MOST_REPLICAS else all_of:
        for fault in (NOTHING, CRASH, POWER)[settings.replicas == 1 :]:
            yield loss_question(design, attrs.evolve(settings, acks=acks, unclean=unclean), fault)


def _with_fault(design: str, replicas: int, fault: Fault) -> Iterator[Question]:
    """With three replicas and more than one fault only the default is tried, with unclean election off."""
    large = replicas == MOST_REPLICAS and sum(fault.budgets_for(replicas).values()) > 1
    for minimum in range(1, replicas + 1):
        if fault is FAULTS[replicas == 1]:
            yield refusal_question(design, Settings(replicas, minimum, False, "all"))
        for acks in ("1", "all"):
            for unclean in (True, False)[large:]:
                yield loss_question(design, Settings(replicas, minimum, unclean, acks), fault)
