"""Runbooks: the steps that people take, from a command line, a file of lines or TOML.

    destroy 3 7; start 3 7
    lose-rack a
    roll 1 2 3 wait in-sync

A step becomes stages. Each stage is one kind of happening to some brokers, in any order among these. A step that the
model does not carry has a `gap`, a sentence that says what is missing, and is never passed over.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, cast

import attrs

from isr_drill.quorum import Voters, after_broker_stage, after_controller_step
from isr_drill.reassignments import NO_ASSIGNMENT, Assignment, BadRunbook, read_assignment

STOP, KILL, POWER_LOSS, DESTROY, PAUSE, START, WAIT, ELECT = (
    *("STOP", "KILL", "POWER_LOSS", "DESTROY", "PAUSE", "START", "WAIT", "ELECT"),
)
SET, REASSIGN, WAIT_REASSIGNED, RESUME, CANCEL = "SET", "REASSIGN", "WAIT_REASSIGNED", "RESUME", "CANCEL"
"""The names of `record_fate.Happening`."""
DRAIN: Final = "DRAIN"
"""A reassignment of which only the brokers that leave are named (`isr_drill.course`)."""
ENDS_ABRUPTLY: Final = (KILL, POWER_LOSS, DESTROY, PAUSE)
"""Whoever ends so, or is cut off, stays in its ISRs until somebody misses it, and acks=all waits for it until then."""
LEAVES: Final = (STOP, *ENDS_ABRUPTLY)
"""What takes a broker away."""
BRINGS: Final = (START, RESUME, WAIT, WAIT_REASSIGNED)
"""What takes nobody away, and changes nothing."""
CHANGES: Final = (SET, REASSIGN, DRAIN, CANCEL)
"""What changes replicas or the minimum."""

OF_BROKERS: Final[Mapping[str, tuple[str, ...]]] = {
    "stop": (STOP,),
    "kill": (KILL,),
    "power-loss": (POWER_LOSS,),
    "pause": (PAUSE,),
    "destroy": (DESTROY,),
    "start": (START,),
    "replace": (DESTROY, START),
    "partition": (PAUSE,),
    "heal": (RESUME,),
}
"""A step that names brokers -> what happens to them, one after the other."""
OTHERS: Final = ("lose-rack", "roll", "set", "wait", "elect", "reassign", "cancel", "drain", "controller")
WITH_FILE: Final = {"reassign": REASSIGN, "cancel": CANCEL}
"""A step that names a file -> what happens to the partitions in it."""
VERBS: Final = (*OF_BROKERS, *OTHERS)
CUT: Final = "partition"
DEEDS: Final = ("stop", "kill", "destroy", "start")
"""What happens to a controller."""
IN_PARTITION: Final = "what a broker that is cut off does when it stops or starts is not carried; heal it before"
AT_BROKERS: Final = frozenset(kind for kinds in OF_BROKERS.values() for kind in kinds)
MINIMUM: Final = "min.insync.replicas"
DEFAULT: Final = "default"
ALL_TOPICS: Final = ""


@attrs.frozen
class Stage:
    """One kind of happening to some brokers; of WAIT and ELECT none are named.

    `topic` and `minimum` are those of SET, `assignment` is that of REASSIGN; of CANCEL its partitions count.
    """

    kind: str
    brokers: tuple[int, ...] = ()
    topic: str = ALL_TOPICS
    minimum: int = 0
    assignment: Assignment = NO_ASSIGNMENT


@attrs.frozen
class RunbookStep:
    """One step as it was written, and its stages. `gap`: why the model does not carry it, "" where it does; then
    `topic` is whose partitions that leaves UNKNOWN, or `ALL_TOPICS`. `note`: what it was taken for."""

    text: str
    stages: tuple[Stage, ...] = ()
    gap: str = ""
    topic: str = ALL_TOPICS
    note: str = ""

    @property
    def brokers(self) -> tuple[int, ...]:
        """All that it names, each once."""
        return tuple(dict.fromkeys(b for stage in self.stages for b in stage.brokers))

    @property
    def cuts(self) -> bool:
        """Whether it cuts brokers off."""
        return self.text.split()[0] == CUT

    @property
    def is_change(self) -> bool:
        """Whether it changes replicas or the minimum."""
        return any(stage.kind in CHANGES for stage in self.stages)


def nearest(word: str, choices: Iterable[str]) -> str:
    """'; did you mean "x"?' with the nearest spelling, or nothing."""
    close = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else ""


def no_file(name: str) -> str:
    """For runbooks that have no files."""
    raise BadRunbook(f"there is no file '{name}'")


NOBODY_TOLD: Final = Voters(None)


@attrs.frozen
class Surroundings:
    """What a runbook may name: brokers, the racks of those that have one, topics, files by their text, and the
    controllers that vote."""

    brokers: Collection[int]
    racks: Mapping[int, str]
    topics: Collection[str]
    text_of: Callable[[str], str] = no_file
    quorum: Voters = NOBODY_TOLD

    def in_rack(self, rack: str) -> tuple[int, ...]:
        names = sorted(set(self.racks.values()))
        if rack not in names:
            where = f"the racks are {' '.join(names)}" if names else "no rack was told; give --racks FILE"
            raise BadRunbook(f"there is no rack '{rack}'{nearest(rack, names)} ({where})")
        untold = [b for b in sorted(self.brokers) if b not in self.racks]
        if untold:
            who = f"broker {untold[0]}" + (f" and {len(untold) - 1} more" if len(untold) > 1 else "")
            raise BadRunbook(f"the rack of {who} was not told, and may be '{rack}'; give --racks FILE")
        return tuple(sorted(b for b, r in self.racks.items() if r == rack))

    def ids(self, verb: str, words: Iterable[str]) -> tuple[int, ...]:
        """Brokers by their numbers, each once."""
        ids: list[int] = []
        for word in words:
            if not re.fullmatch(r"\d{1,9}", word, re.ASCII):
                raise BadRunbook(f"{verb} names brokers by their numbers, not '{word}' (example: {verb} 3 7)")
            if int(word) not in self.brokers:
                known = sorted(map(str, self.brokers), key=int)
                shown = f"{' '.join(known[:12])}{' ...' if len(known) > 12 else ''}"
                raise BadRunbook(f"there is no broker {word}{nearest(word, known)} (described are {shown})")
            ids.append(int(word))
        if not ids:
            raise BadRunbook(f"{verb} names at least one broker (example: {verb} 3 7)")
        return tuple(dict.fromkeys(ids))


def read_runbook(text: str, around: Surroundings, *, is_toml: bool = False) -> tuple[RunbookStep, ...]:
    """The steps of a text: a line each, or several between semicolons; # begins a comment. Of TOML, the list `steps`.

    BadRunbook where a step cannot be read, or there is none.
    """
    lines = _toml_steps(text) if is_toml else [line.split("#", 1)[0] for line in text.splitlines()]
    parts = [part.strip() for line in lines for part in line.split(";")]
    parts = [part for part in parts if part]
    files = {part: _assignment(part.split(), around) for part in parts if part.split()[0] in WITH_FILE}
    joining = {b for assignment in files.values() for _, replicas in assignment.pairs for b in replicas}
    around = attrs.evolve(around, brokers={*around.brokers, *joining})
    steps = tuple(_reassign(part, files[part], around) if part in files else read_step(part, around) for part in parts)
    if not steps:
        raise BadRunbook('a runbook has at least one step (example: "destroy 3 7; start 3 7")')
    return tuple(with_gaps(steps, around.quorum))


def with_gaps(steps: Iterable[RunbookStep], voters: Voters) -> Iterator[RunbookStep]:
    """The steps, with a gap where one is beyond the rule for controllers, or stops or starts who is cut off, and with
    no other."""
    cut: set[int] = set()
    for step in steps:
        verb, *words = step.text.replace(",", " ").split()
        gap = ""
        if verb == "controller":
            voters, gap = after_controller_step(voters, words[0], int(words[1]))
        for stage in step.stages:
            if stage.kind in AT_BROKERS:
                voters, beyond = after_broker_stage(voters, stage.kind, stage.brokers)
                gap = gap or beyond
            if stage.kind in (STOP, START, PAUSE) and verb != CUT and cut & {*stage.brokers}:
                gap = gap or IN_PARTITION
            cut = cut - {*stage.brokers} if stage.kind == RESUME else cut
        cut |= {*step.brokers} if verb == CUT else set()
        yield attrs.evolve(step, gap=gap)


def _toml_steps(text: str) -> list[str]:
    try:
        steps: object = tomllib.loads(text).get("steps")
    except tomllib.TOMLDecodeError as problem:
        raise BadRunbook(f"this is no TOML: {problem}") from None
    texts = [s for s in cast("list[object]", steps) if isinstance(s, str)] if isinstance(steps, list) else []
    if not isinstance(steps, list) or len(texts) < len(cast("list[object]", steps)):
        raise BadRunbook(
            'a runbook in TOML has its steps as a list of texts (example: steps = ["destroy 3", "start 3"])'
        )
    return texts


def read_step(text: str, around: Surroundings) -> RunbookStep:
    """One step."""
    verb, *words = text.replace(",", " ").split()
    if verb in OF_BROKERS:
        ids = around.ids(verb, words)
        return RunbookStep(text, tuple(Stage(kind, ids) for kind in OF_BROKERS[verb]))
    match verb:
        case "lose-rack":
            if not words:
                raise BadRunbook("lose-rack names at least one rack (example: lose-rack a)")
            lost = tuple(b for rack in words for b in around.in_rack(rack))
            return RunbookStep(text, (Stage(POWER_LOSS, lost),))
        case "roll":
            return _roll(text, words, around)
        case "wait":
            return _wait(text, words)
        case "elect":
            return _elect(text, words)
        case "set":
            return _set(text, words, around)
        case "reassign" | "cancel":
            return _reassign(text, _assignment([verb, *words], around), around)
        case "controller":
            return _controller(text, words, around)
        case "drain":
            return RunbookStep(text, (Stage(DRAIN, around.ids(verb, words)),))
        case _:
            raise BadRunbook(f"there is no step '{verb}'{nearest(verb, VERBS)} (steps: {' '.join(VERBS)})")


def _roll(text: str, words: list[str], around: Surroundings) -> RunbookStep:
    """Each is stopped and started, one after the other: brokers, or racks as wholes where the words are racks."""
    waits = words[-2:] == ["wait", "in-sync"]
    words = words[:-2] if waits else words
    racks = set(around.racks.values())
    groups = (
        [around.in_rack(w) for w in words]
        if words and not all(w.isdecimal() for w in words) and racks
        else [(b,) for b in around.ids("roll", words)]
    )
    stages: list[Stage] = []
    for group in groups:
        stages += [Stage(STOP, group), Stage(START, group), *([Stage(WAIT)] if waits else [])]
    note = "" if waits else "nothing is waited for between two restarts; `roll ... wait in-sync` waits"
    return RunbookStep(text, tuple(stages), note=note)


def _wait(text: str, words: list[str]) -> RunbookStep:
    match words:
        case ["in-sync"]:
            return RunbookStep(text, (Stage(WAIT),))
        case ["reassigned"]:
            return RunbookStep(text, (Stage(WAIT_REASSIGNED),))
        case [seconds] if re.fullmatch(r"\d{1,9}s?", seconds, re.ASCII):
            return RunbookStep(
                text, note="the model has no clock: however long one waits, anything may still be on its way"
            )
        case _:
            word = words[0] if words else ""
            raise BadRunbook(
                f"wait is for in-sync, reassigned or a number of seconds, not '{' '.join(words)}'"
                f"{nearest(word, ('in-sync', 'reassigned'))}"
            )


def _elect(text: str, words: list[str]) -> RunbookStep:
    match words:
        case ["preferred"]:
            return RunbookStep(text, note="leadership may move among the in-sync replicas at any time anyway")
        case ["unclean"]:
            return RunbookStep(text, (Stage(ELECT),))
        case _:
            word = words[0] if words else ""
            raise BadRunbook(
                f"elect is preferred or unclean, not '{' '.join(words)}'{nearest(word, ('preferred', 'unclean'))}"
            )


def _set(text: str, words: list[str], around: Surroundings) -> RunbookStep:
    example = f"set orders {MINIMUM}=2"
    if len(words) != 2:
        raise BadRunbook(f"set names a topic, or default, and {MINIMUM}=N (example: {example})")
    topic, (name, _, value) = words[0], words[1].partition("=")
    if topic != DEFAULT and topic not in around.topics:
        raise BadRunbook(f"there is no topic '{topic}'{nearest(topic, (*around.topics, DEFAULT))}")
    if name != MINIMUM or not re.fullmatch(r"[1-9]\d{0,3}", value, re.ASCII):
        raise BadRunbook(
            f"what can be set is {MINIMUM}=N, a whole number above 0, not '{words[1]}' (example: {example})"
        )
    note = "a leader may go by the old number until its metadata bring the new one; ask again once it is set"
    stage = Stage(SET, topic=ALL_TOPICS if topic == DEFAULT else topic, minimum=int(value))
    return RunbookStep(text, (stage,), note=note)


def _controller(text: str, words: list[str], around: Surroundings) -> RunbookStep:
    example = "example: controller stop 1"
    if len(words) != 2 or not re.fullmatch(r"\d{1,9}", words[1], re.ASCII) or words[0] not in DEEDS:
        close = nearest(words[0], DEEDS) if words and words[0] not in DEEDS else ""
        raise BadRunbook(
            f"controller is followed by {', '.join(DEEDS[:-1])} or {DEEDS[-1]}, and one id{close} ({example})"
        )
    if around.quorum.names is not None and int(words[1]) not in around.quorum.names:
        names = sorted(map(str, around.quorum.names), key=int)
        raise BadRunbook(
            f"there is no controller {words[1]}{nearest(words[1], names)} (the voters are {' '.join(names)})"
        )
    return RunbookStep(text, note="while a majority of the controllers is up and their disks are kept, nothing changes")


def _assignment(words: list[str], around: Surroundings) -> Assignment:
    if len(words) != 2:
        verb = words[0]
        raise BadRunbook(f"{verb} names one file, as kafka-reassign-partitions reads it (example: {verb} plan.json)")
    return read_assignment(around.text_of(words[1]), words[1])


def _reassign(text: str, assignment: Assignment, around: Surroundings) -> RunbookStep:
    topics = [name.rpartition("-")[0] for name, _ in assignment.pairs]
    strange = sum(topic not in around.topics for topic in topics)
    note = f"{strange:,} of its {len(topics):,} partitions are of no topic that is judged" if strange else ""
    return RunbookStep(text, (Stage(WITH_FILE[text.split()[0]], assignment=assignment),), note=note)


# Other orders of the same steps


IN_SYNC: Final = RunbookStep("wait in-sync", (Stage(WAIT),))


def with_waits(steps: Iterable[RunbookStep]) -> tuple[RunbookStep, ...]:
    """The runbook with `wait in-sync` after each step that starts brokers, and within each roll, and with
    `wait reassigned` after each reassignment, but where it waits already."""
    waiting: list[RunbookStep] = []
    steps = tuple(steps)
    for step, later in zip(steps, (*steps[1:], None), strict=True):
        verb = step.text.split()[0]
        if verb == "roll" and Stage(WAIT) not in step.stages:
            stages = [s for stage in step.stages for s in ((stage, Stage(WAIT)) if stage.kind == START else (stage,))]
            waiting.append(RunbookStep(f"{step.text} wait in-sync", tuple(stages)))
        else:
            waiting.append(step)
        wait = (
            IN_SYNC
            if verb in ("start", "replace")
            else RunbookStep("wait reassigned", (Stage(WAIT_REASSIGNED),))
            if verb in ("reassign", "drain")
            else None
        )
        if wait is not None and (later is None or later.stages != wait.stages):
            waiting.append(wait)
    return tuple(waiting)


@attrs.frozen
class Absence:
    """Whom the steps until now took away, and whom they cut off, and nobody brought back."""

    down: tuple[int, ...] = ()
    cut: tuple[int, ...] = ()

    def after(self, stage: Stage, *, cuts: bool) -> Absence:
        """The same after one more stage."""
        if stage.kind in (START, RESUME):
            return Absence(*(tuple(b for b in some if b not in stage.brokers) for some in (self.down, self.cut)))
        if stage.kind not in LEAVES:
            return self
        gone = tuple(dict.fromkeys((*(self.cut if cuts else self.down), *stage.brokers)))
        return attrs.evolve(self, cut=gone) if cuts else attrs.evolve(self, down=gone)

    def returns(self) -> list[RunbookStep]:
        """The steps that bring them back."""
        verbs = (("start", START, self.down), ("heal", RESUME, self.cut))
        return [RunbookStep(f"{v} {' '.join(map(str, some))}", (Stage(kind, some),)) for v, kind, some in verbs if some]


def with_returns(steps: Iterable[RunbookStep]) -> tuple[RunbookStep, ...]:
    """The runbook with `start` or `heal` of whoever is away before each step that waits for them in vain."""
    whole, away = list[RunbookStep](), Absence()
    for step in steps:
        then = away
        for stage in step.stages:
            if stage.kind == WAIT and then != Absence():
                whole += then.returns()
                away = then = Absence()
            then = then.after(stage, cuts=step.cuts)
        whole.append(step)
        away = then
    return tuple(whole)


def missing_returns(steps: Sequence[RunbookStep]) -> str:
    """Those steps that are missing, in words; "" where none is."""
    return ", ".join(f"'{step.text}'" for step in with_returns(steps) if step not in steps)


def one_by_one(steps: Iterable[RunbookStep]) -> tuple[RunbookStep, ...] | None:
    """The same with one broker after the other: each goes through all steps that name brokers, and is waited for.

    None where the steps do not all name the same brokers, or there is but one broker, or something is changed.
    """
    steps = list(steps)
    if any(step.is_change for step in steps):
        return None
    at_brokers = [s for s in steps if s.stages and s.brokers]
    whole = [s.brokers for s in at_brokers]
    if (
        not at_brokers
        or len(whole[0]) < 2
        or any(set(w) != set(whole[0]) for w in whole)
        or at_brokers[-1].stages[-1].kind != START
    ):
        return None
    order: list[RunbookStep] = []
    for broker in whole[0]:
        for step in at_brokers:
            stages = tuple(Stage(stage.kind, (broker,)) for stage in step.stages if stage.brokers)
            order.append(RunbookStep(f"{step.text.split()[0]} {broker}", stages))
        order.append(RunbookStep("wait in-sync", (Stage(WAIT),)))
    return tuple(order)


def backwards(steps: Iterable[RunbookStep]) -> tuple[RunbookStep, ...]:
    """The same with the blocks between starts in reverse order: what is started last comes first.

    Where something is changed, the order stays: the last change is what is meant to be.
    """
    steps = tuple(steps)
    if any(step.is_change for step in steps):
        return steps
    blocks: list[list[RunbookStep]] = [[]]
    for step in steps:
        blocks[-1].append(step)
        if any(stage.kind == START for stage in step.stages):
            blocks.append([])
    return tuple(step for block in reversed(blocks) for step in block)
