"""Histories of Jepsen's kafka workload: EDN maps, one per line or in one vector, as the same items as JSON lines.

Keys become partitions named as they are printed; `:send`, `:poll` and `:txn` become produce, poll and txn;
faults of `:nemesis` become faults and healings. Written here because the EDN reader on the package index needs
minutes for a million operations, and this subset is small: no floats with suffix, no ratios, no metadata.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import Final, Literal, TypeGuard, cast

import attrs

from isr_anomalies.operations import (
    NO_EPOCH,
    Event,
    Extra,
    Fault,
    Item,
    MalformedHistory,
    Micro,
    Polled,
    Record,
    SentRecord,
    Value,
)

_TOKEN: Final = re.compile(
    r"""[\s,]*(?:;[^\n]*[\s,]*)*(?:(?P<open>\#\{|[\[({])|(?P<close>[\])}])|"(?P<text>(?:[^"\\]|\\.)*)"
    |(?P<tag>\#_|\#[A-Za-z][^\s,"{}()\[\]]*)|\\(?P<char>[^\s,{}()\[\]]+)|(?P<atom>[^\s,"{}()\[\];\\]+))""",
    re.VERBOSE,
)
_PARTNER: Final = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_ATOMS: Final[dict[str, object]] = {"nil": None, "true": True, "false": False}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}
_FUNCTIONS: Final = {
    "send": "produce",
    "poll": "poll",
    "txn": "txn",
    "assign": "assign",
    "subscribe": "subscribe",
    "crash": "crash",
}
_DEBUG_FUNCTION: Final = "debug-topic-partitions"
"""What the workload asks for its own log only."""
_HEALS: Final = frozenset({"heal", "resume", "start", "restart"})
_FAULTS: Final = frozenset({"kill", "pause", "crash", "partition"})


class Keyword(str):
    """:like-this, without the colon; unlike text, which it equals."""

    __slots__ = ()


@attrs.frozen
class Map:
    """A map and where it stands. (No tuple: those are vectors.)"""

    line: int
    entries: dict[Hashable, object]


def forms(text: str) -> Iterator[tuple[int, object]]:
    """Every form at the top with the line of its beginning: vectors, lists and sets as tuples, tags dropped."""
    at, line, previous_begin = 0, 1, 0
    stack: list[tuple[str, int, list[object]]] = []
    skip_at: list[int] = []
    end = len(text.rstrip(" \t\r\n,"))
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            rest = text[at:end]
            if not re.sub(r";[^\n]*|[\s,]", "", rest):
                break
            raise MalformedHistory(line, "not EDN")
        begin, at = match.start(match.lastgroup or 0), match.end()
        line, previous_begin = line + text.count("\n", previous_begin, begin), begin
        form: object
        match match.lastgroup:
            case "open":
                stack.append((match["open"], line, []))
                continue
            case "close":
                if not stack or _PARTNER[stack[-1][0]] != match["close"]:
                    raise MalformedHistory(line, f"an unexpected {match['close']}")
                form = _closed(*stack.pop())
            case "tag":
                if match["tag"] == "#_":
                    skip_at.append(len(stack))
                continue
            case "text":
                form = re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), match["text"])
            case "char":
                form = match["char"]
            case _:
                form = _atom(match["atom"])
        if skip_at and skip_at[-1] == len(stack):
            skip_at.pop()
        elif stack:
            stack[-1][2].append(form)
        else:
            yield (form.line if isinstance(form, Map) else line), form
    if stack:
        raise MalformedHistory(stack[-1][1], f"a {stack[-1][0]} that is never closed")


def _closed(bracket: str, line: int, parts: list[object]) -> object:
    if bracket != "{":
        return tuple(parts)
    if len(parts) % 2:
        raise MalformedHistory(line, "a map with a key and no value")
    try:
        return Map(line, dict(zip(parts[::2], parts[1::2], strict=True)))
    except TypeError:
        raise MalformedHistory(line, "a map with a map as a key") from None


def _atom(word: str) -> object:
    if word[0] == ":":
        return Keyword(word[1:])
    if word in _ATOMS:
        return _ATOMS[word]
    try:
        return int(word.removesuffix("N"))
    except ValueError:
        return word


def read_edn(text: str) -> Iterator[Item]:
    """The items of a history file. Raises Malformed with the line at which an operation begins."""
    open_faults: set[str] = set()
    for line, form in forms(text):
        for one in _vector(form) if form.__class__ is tuple else (form,):
            if not isinstance(one, Map):
                raise MalformedHistory(line, "an operation is a map")
            item = _item(one, open_faults)
            if item is not None:
                yield item


def _item(op: Map, open_faults: set[str]) -> Item | None:
    line, table = op.line, op.entries
    kind, f, process = table.get("type"), table.get("f"), table.get("process")
    if kind not in ("invoke", "ok", "fail", "info"):
        raise MalformedHistory(line, ":type is one of :invoke, :ok, :fail, :info")
    time = table.get("time", table.get("index", line))
    if not _is_natural(time):
        raise MalformedHistory(line, ":time is a whole number of nanoseconds from 0")
    if process == "nemesis":
        return _fault(line, time, str(f), open_faults)
    if not isinstance(process, int | str):
        raise MalformedHistory(line, ":process is a number or a keyword")
    if f == _DEBUG_FUNCTION:
        return None
    if not isinstance(f, str) or f not in _FUNCTIONS:
        known = ", ".join(f":{name}" for name in sorted((*_FUNCTIONS, _DEBUG_FUNCTION)))
        what = "there is no :f" if f is None else f":f is {_print_form(f)}"
        raise MalformedHistory(line, f"{what}; in Jepsen's kafka workload it is one of {known}")
    value = table.get("value")
    moved = table.get("rebalance-log")
    entries = cast("tuple[object, ...]", moved) if isinstance(moved, tuple) else ()
    seek = "beginning" if table.get("seek-to-beginning?") else None
    partitions: tuple[str, ...] = ()
    if f in ("assign", "subscribe"):
        partitions = tuple(str(key) for key in _sequence(line, value))
    keys = [key for e in entries if isinstance(e, Map) for key in _sequence(line, e.entries.get("keys"))]
    rebalanced = frozenset(map(str, keys))
    micro = tuple(_step(line, s) for s in _sequence(line, value)) if f in ("send", "poll", "txn") else ()
    if f == "send" and not any(isinstance(step, SentRecord) for step in micro):
        raise MalformedHistory(line, "a :send needs a value: [[:send k v]]")
    name = _FUNCTIONS[str(f)]
    if name == "produce" and len(micro) != 1:
        name = "txn"
    extra = Extra(partitions=partitions, seek=seek, rebalanced=rebalanced) if partitions or seek or rebalanced else None
    word = cast("Literal['invoke', 'ok', 'fail', 'info']", str(kind))
    return Event(line, word, name, str(process), time, None, micro, extra)


def _print_form(f: object) -> str:
    """An operation's function as EDN has it, cut where it is long."""
    text = f":{f}" if isinstance(f, Keyword) else repr(f)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _vector(value: object) -> tuple[object, ...]:
    return cast("tuple[object, ...]", value)


def _sequence(line: int, value: object) -> tuple[object, ...]:
    if value is None:
        return ()
    if isinstance(value, tuple):
        return _vector(cast("object", value))
    raise MalformedHistory(line, ":value is a vector")


def _step(line: int, step: object) -> Micro:
    match _sequence(line, step):
        case ("poll",):
            return Polled({})
        case ("poll", Map(entries=entries)):
            return Polled({str(k): [_record(line, r) for r in _sequence(line, rs)] for k, rs in entries.items()})
        case ("send", key, value):
            return _sent_step(line, str(key), value)
        case _:
            raise MalformedHistory(
                line, "a step is [:send k v], [:send k [offset v]], [:poll] or [:poll {k [[offset v]]}]"
            )


def _sent_step(line: int, partition: str, value: object) -> SentRecord:
    """A vector is [offset value], as a send returns it; anything else is the value."""
    if value.__class__ is not tuple:
        return SentRecord(partition, _value(line, value), None)
    match _vector(value):
        case (None | int() as offset, told) if offset is None or _is_natural(offset):
            return SentRecord(partition, _value(line, told), offset)
        case _:
            raise MalformedHistory(line, "what a send returns is [offset value], the offset a whole number from 0")


def _record(line: int, record: object) -> Record:
    match _sequence(line, record):
        case (int(offset), value) if _is_natural(offset):
            return (offset, _value(line, value), NO_EPOCH)
        case _:
            raise MalformedHistory(line, "a record is [offset value], the offset a whole number from 0")


def _is_natural(value: object) -> TypeGuard[int]:
    """Whether it is a whole number from 0 on; true and false are none, though Python counts with them."""
    return type(value) is int and value >= 0


def _value(line: int, value: object) -> Value:
    if value is None or type(value) is int:
        return value
    if isinstance(value, str):
        return str(value)
    raise MalformedHistory(line, "a value is a whole number, a text, a keyword or nil")


def _fault(line: int, time: int, f: str, open_faults: set[str]) -> Fault | None:
    """A fault counts from when it was asked for, a healing from when it was done: the second of its two lines."""
    if f.startswith("stop-") or f in _HEALS:
        open_faults.symmetric_difference_update({f})
        return None if f in open_faults else Fault(line, time, f, True, False)
    if f.startswith("start-") or f in _FAULTS:
        open_faults.symmetric_difference_update({f})
        return Fault(line, time, f, False, False) if f in open_faults else None
    return None
