"""The lines of a description as a tool printed them: without quotation marks of a mail, and those put together again
that a terminal or an editor has wrapped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Final

import attrs

_NAME: Final = r"[A-Z]\w*(?: [A-Z]\w*)?"
_FIELD: Final = re.compile(rf"({_NAME}):[ ]?(?!{_NAME}:)([^\t]*?)(?=\s*$|\t| {{2,}}(?=[A-Z])| (?={_NAME}:))")
"""`Isr: 1,2`, up to the next field; Kafka's tools put a tab between two, a copied text perhaps spaces."""
_QUOTE: Final = re.compile(r"^(?:[ \t]*[>|])+ ?")
_TOPIC: Final = re.compile(r"(?<![\w-])Topic:")
_WORDS: Final = re.compile(
    r"(?<!\w)(?:Topic|Partition|PartitionCount|Leader|Replicas|Isr|Elr|Configs|Feature):|FinalizedVersionLevel"
)


@attrs.frozen
class SpokenLine:
    """A line by its number in the file. `fields`: its columns, if it is one of kafka-topics.sh. `is_quoted`: something
    stood before it. `is_joined`: it was wrapped, and is whole again. `is_rest`: it follows one of kafka-topics.sh, and
    may be what is missing there."""

    number: int
    text: str
    fields: Mapping[str, str] = attrs.field(factory=dict[str, str])
    is_quoted: bool = False
    is_joined: bool = False
    is_rest: bool = False


def speaks_of_topics(text: str) -> bool:
    """Whether a text has a word of kafka-topics.sh, or of kafka-features.sh, and so should have been understood."""
    return _WORDS.search(text) is not None


def fields_of(text: str) -> dict[str, str] | None:
    """The columns of a line of kafka-topics.sh; None where one is there twice."""
    pairs: list[tuple[str, str]] = _FIELD.findall(text.strip())
    columns = dict(pairs)
    return columns if len(columns) == len(pairs) else None


def spoken_lines(text: str, begins_otherwise: Callable[[str], bool]) -> Iterator[SpokenLine]:
    """Every line that is not empty. `begins_otherwise`: whether a text is a line of another tool than kafka-topics.sh.

    A line after one of kafka-topics.sh that is none of any tool is the rest of it, if both together make sense.
    """
    waiting: list[SpokenLine] = []
    for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        line = _QUOTE.sub("", raw)
        before, *topics = _split(line)
        if not line.strip() or (topics and not before.strip()) or begins_otherwise(line):
            yield from _whole_lines(waiting)
            waiting = []
        rest = bool(waiting) and bool(before.strip())
        if rest:
            waiting.append(SpokenLine(number, before, is_rest=not line.startswith("#")))
        elif before.strip() and not topics:
            yield SpokenLine(number, line, is_quoted=line != raw)
        if topics:
            yield from _whole_lines(waiting)
            quoted = line != raw or (bool(before.strip()) and not rest)
            *whole, last = (SpokenLine(number, part, is_quoted=quoted) for part in topics)
            for one in whole:
                yield from _whole_lines([one])
            waiting = [last]
    yield from _whole_lines(waiting)


def _split(line: str) -> list[str]:
    """What stands before the first topic, and each topic of a line to which several lines were put together."""
    edges = [0, *(m.start() for m in _TOPIC.finditer(line)), len(line)]
    return [line[a:b] for a, b in pairwise(edges)]


def _whole_lines(lines: list[SpokenLine]) -> Iterator[SpokenLine]:
    """A line of kafka-topics.sh with as many of those that follow it as make it longer and still make sense."""
    if not lines:
        return
    whole, length = lines[0].text.rstrip("\r\n"), 1
    for line in lines[1:]:
        longer = next((t for t in (whole + line.text, f"{whole} {line.text.lstrip()}") if _makes_sense(t)), None)
        if longer is None:
            break
        whole, length = longer, length + 1
    first = attrs.evolve(lines[0], text=whole, is_joined=length > 1)
    columns = fields_of(whole)
    yield attrs.evolve(first, fields=columns) if columns is not None else first
    yield from lines[length:]


_IDS: Final = re.compile(r"(?:\d{1,10}(?: ?, ?\d{1,10})*)?", re.ASCII)
_TEXTS: Final[Mapping[str, re.Pattern[str]]] = {
    "Topic": re.compile(r"\S+"),
    "TopicId": re.compile(r"\S+"),
    "PartitionCount": re.compile(r"\d+"),
    "ReplicationFactor": re.compile(r"\d+"),
    "Configs": re.compile(r"(?:[a-z][\w.-]*=\S*)?"),
    "Partition": re.compile(r"\d+"),
    "Leader": re.compile(r"-?\w+"),
    **{name: _IDS for name in ("Replicas", "Isr", "Adding Replicas", "Removing Replicas", "Observers", "Offline")},
    "Elr": re.compile(rf"N/A|{_IDS.pattern}", re.ASCII),
    "LastKnownElr": re.compile(rf"N/A|{_IDS.pattern}", re.ASCII),
}


def _makes_sense(text: str) -> bool:
    """Whether every column of a line is one of kafka-topics.sh, once, and has a text that may stand there."""
    columns = fields_of(text)
    if columns is None:
        return False
    return all(name not in _TEXTS or _TEXTS[name].fullmatch(value) for name, value in columns.items())
