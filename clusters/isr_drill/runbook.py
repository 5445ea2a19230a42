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
from collections.abc import Collection, Iterable, Mapping
from typing import Final, cast

import attrs

STOP, KILL, POWER_LOSS, DESTROY, PAUSE, START, WAIT, ELECT = (
    *("STOP", "KILL", "POWER_LOSS", "DESTROY", "PAUSE", "START", "WAIT", "ELECT"),
)
"""The names of `record_fate.Happening`."""

OF_BROKERS: Final[Mapping[str, tuple[str, ...]]] = {
    "stop": (STOP,),
    "kill": (KILL,),
    "power-loss": (POWER_LOSS,),
    "pause": (PAUSE,),
    "destroy": (DESTROY,),
    "start": (START,),
    "replace": (DESTROY, START),
}
"""A step that names brokers -> what happens to them, one after the other."""
GAPS: Final[Mapping[str, str]] = {
    "reassign": "reassignments are not carried yet; ask again when it is over, with its result",
    "drain": "reassignments are not carried yet; ask again when it is over, with its result",
    "partition": "partitions of the network are not carried yet; `pause` says what a lost session does",
    "controller": "the controllers' quorum has no model yet; ask about the brokers alone",
}
"""Steps that are understood and not carried -> what would decide."""
OTHERS: Final = ("lose-rack", "roll", "set", "wait", "elect")
VERBS: Final = (*OF_BROKERS, *OTHERS, *GAPS)
MINIMUM: Final = "min.insync.replicas"
DEFAULT: Final = "default"
ALL_TOPICS: Final = ""


class BadRunbook(ValueError):
    """A step that cannot be read: one sentence, with the nearest valid spelling."""


@attrs.frozen
class Stage:
    """One kind of happening to some brokers; of WAIT and ELECT none are named."""

    kind: str
    brokers: tuple[int, ...] = ()


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


def nearest(word: str, choices: Iterable[str]) -> str:
    """'; did you mean "x"?' with the nearest spelling, or nothing."""
    close = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else ""


@attrs.frozen
class Surroundings:
    """What a runbook may name: brokers, the racks of those that have one, and topics."""

    brokers: Collection[int]
    racks: Mapping[int, str]
    topics: Collection[str]

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
    steps = tuple(read_step(part, around) for part in parts if part)
    if not steps:
        raise BadRunbook('a runbook has at least one step (example: "destroy 3 7; start 3 7")')
    return steps


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
    if verb in GAPS:
        return RunbookStep(text, gap=GAPS[verb])
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
            return RunbookStep(text, gap=GAPS["reassign"])
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
    gap = "a change of min.insync.replicas is not carried yet; ask again once it is set and all are in sync"
    return RunbookStep(text, gap=gap, topic=ALL_TOPICS if topic == DEFAULT else topic)


# Other orders of the same steps


def with_waits(steps: Iterable[RunbookStep]) -> tuple[RunbookStep, ...]:
    """The runbook with `wait in-sync` after each step that starts brokers, and within each roll."""
    waiting: list[RunbookStep] = []
    for step in steps:
        verb = step.text.split()[0]
        if verb == "roll" and Stage(WAIT) not in step.stages:
            stages = [s for stage in step.stages for s in ((stage, Stage(WAIT)) if stage.kind == START else (stage,))]
            waiting.append(RunbookStep(f"{step.text} wait in-sync", tuple(stages)))
        else:
            waiting.append(step)
        if verb in ("start", "replace"):
            waiting.append(RunbookStep("wait in-sync", (Stage(WAIT),)))
    return tuple(waiting)


def one_by_one(steps: Iterable[RunbookStep]) -> tuple[RunbookStep, ...] | None:
    """The same with one broker after the other: each goes through all steps that name brokers, and is waited for.

    None where the steps do not all name the same brokers, or there is but one broker.
    """
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
    """The same with the blocks between starts in reverse order: what is started last comes first."""
    blocks: list[list[RunbookStep]] = [[]]
    for step in steps:
        blocks[-1].append(step)
        if any(stage.kind == START for stage in step.stages):
            blocks.append([])
    return tuple(step for block in reversed(blocks) for step in block)
