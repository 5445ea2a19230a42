"""The JSON lines of docs/history.md: one object per line, read and refused one at a time."""

from __future__ import annotations

import gc
import json
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, Literal, cast

import attrs
import cattrs

from isr_anomalies.operations import (
    DEFINITE,
    NO_EPOCH,
    Claims,
    Dump,
    Event,
    Extra,
    Fault,
    HeldRecord,
    Item,
    MalformedHistory,
    Micro,
    Polled,
    Record,
    SentRecord,
    Value,
)

Object = dict[str, object]
Kind = Literal["invoke", "ok", "fail", "info"]

CLIENT: Final = frozenset({"produce", "poll", "txn", "assign", "subscribe", "crash", "final-read"})
OTHER: Final = frozenset({"replica", "append", "truncate", "fault", "heal"})
_KINDS: Final = frozenset({"invoke", "ok", "fail", "info", "error"})
PLAIN: Final = frozenset(
    {"type", "f", "process", "time", "id", "key", "partition", "value", "offset", "records", "ops"}
)
"""Fields of lines that need no Extra."""
_SEEKS: Final = ("beginning", "end")
FORMAT: Final = 1
"""What a header says under `history`."""
SETTINGS: Final = {field.name: field for field in attrs.fields(Claims)}


def read_json(lines: Iterable[str]) -> Iterator[Item | Claims]:
    """Every line as an item; a first line that is a header as claims. Raises Malformed with the line's number."""
    for line, text in enumerate(lines, 1):
        if text.strip():
            table = parse_object(line, text)
            yield header_claims(line, table) if is_header(table) else item_of(line, table)


def is_header(table: Object) -> bool:
    """Whether a line has claims and is nothing else: in an operation `settings` is an unknown field."""
    return "settings" in table and not {"f", "type"} & table.keys()


def header_claims(line: int, table: Object) -> Claims:
    """The claims of a header; Malformed if it is not the first line, for they hold of all operations."""
    if line > 1:
        raise MalformedHistory(line, "a header with settings is the first line of a file, or there is none")
    if table.get("history", FORMAT) != FORMAT:
        raise MalformedHistory(line, f"history is {_name(table['history'])}, and only format {FORMAT} is known")
    return claims_of(line, table["settings"])


def parse_object(line: int, text: str) -> Object:
    """The object in a line of text; Malformed if there is none."""
    try:
        value: object = json.loads(text)
    except ValueError as problem:
        raise MalformedHistory(line, f"not JSON ({str(problem).split(':')[0].lower()})") from None
    except RecursionError:
        raise MalformedHistory(line, "JSON that is nested too deeply") from None
    if not isinstance(value, dict):
        raise MalformedHistory(line, f"an operation is an object, not {_name(value)}")
    return cast("Object", value)


def item_of(line: int, table: Object) -> Item:
    """The item that an object stands for, unless it is the header."""
    f = table.get("f")
    if isinstance(f, str) and f in CLIENT:
        return _event(line, f, table)
    if isinstance(f, str) and f in OTHER:
        return _other(line, f, table)
    known = ", ".join(sorted(CLIENT | OTHER))
    raise MalformedHistory(line, f"f is {_name(f)}; it is one of {known}" if "f" in table else "there is no f")


def claims_of(line: int, settings: object) -> Claims:
    """The claims of a header; a setting that is not there has Kafka's default."""
    if not isinstance(settings, dict):
        raise MalformedHistory(line, f"settings is an object, not {_name(settings)}")
    values: dict[str, object] = {}
    for name, value in cast("Object", settings).items():
        field = name.replace("-", "_").replace(".", "_")
        if field not in SETTINGS:
            raise MalformedHistory(line, f"there is no setting {name}; they are {', '.join(SETTINGS)}")
        values[field] = str(value) if field == "acks" else value
    return checked_claims(line, values)


def checked_claims(line: int, values: dict[str, object], base: Claims | None = None) -> Claims:
    """`base` with these values, each of its own type."""
    words = {"acks": ("0", "1", "all"), "isolation": ("read_uncommitted", "read_committed")}
    if values.get("acks") == "-1":
        values["acks"] = "all"
    for name, value in values.items():
        if name in words:
            if value not in words[name]:
                raise MalformedHistory(line, f"{name} is one of {', '.join(words[name])}, not {_name(value)}")
        elif isinstance(getattr(Claims(), name), bool):
            if not isinstance(value, bool):
                raise MalformedHistory(line, f"{name} is true or false, not {_name(value)}")
        elif not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise MalformedHistory(line, f"{name} is a whole number from 0, not {_name(value)}")
    return cattrs.structure({**attrs.asdict(base or Claims()), **values}, Claims)


def _event(line: int, f: str, table: Object) -> Event:
    kind = table.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise MalformedHistory(line, f"type is one of invoke, ok, fail, info, error, not {_name(kind)}")
    if kind == "error":  # the outcome rule: only some errors say that nothing was done
        kind = "fail" if _word(line, table, "error").upper() in DEFINITE else "info"
    process = table.get("process")
    if not isinstance(process, int | str) or isinstance(process, bool):
        raise MalformedHistory(line, f"process is a number or a name, not {_name(process)}")
    token = table.get("id")
    if token is not None and not isinstance(token, int | str):
        raise MalformedHistory(line, f"id is a number or a name, not {_name(token)}")
    time = _natural(line, table, "time")
    invoke = kind == "invoke"
    micro, extra = _micro(line, f, table, invoke=invoke), _extra(line, f, table, ok=kind == "ok")
    if extra is not None and f == "final-read" and kind == "ok":
        _check_inside(line, micro, extra)
    return Event(line, cast("Kind", kind), f, str(process), time, token, micro, extra)


def _check_inside(line: int, micro: tuple[Micro, ...], extra: Extra) -> None:
    if extra.start > extra.end:
        raise MalformedHistory(line, f"start {extra.start} is above end {extra.end}")
    for step in micro:
        for records in step.records.values() if isinstance(step, Polled) else ():
            for offset, _, _ in records:
                if not extra.start <= offset < extra.end:
                    raise MalformedHistory(line, f"offset {offset} is outside of [{extra.start}, {extra.end})")


def _micro(line: int, f: str, table: Object, *, invoke: bool) -> tuple[Micro, ...]:
    if f == "produce":
        offset = None if table.get("offset") is None else _natural(line, table, "offset")
        if "partition" not in table and not invoke:
            value = _value(line, table.get("value"))
            return () if offset is value is None else (SentRecord("", value, offset),)
        if "value" not in table:
            raise MalformedHistory(line, "a produce needs a value")
        return (SentRecord(_word(line, table, "partition"), _value(line, table["value"]), offset),)
    if f == "poll":
        return (_polled(line, table["records"]),) if table.get("records") is not None else ()
    if f == "final-read" and table.get("records") is not None:
        return (Polled({_word(line, table, "partition"): _records(line, table["records"])}),)
    if f == "txn":
        return tuple(_step(line, step) for step in _list(line, "ops", table.get("ops", [])))
    return ()


def _step(line: int, step: object) -> Micro:
    match _list(line, "a step of a txn", step):
        case ["send", str(partition), value]:
            return SentRecord(partition, _value(line, value), None)
        case ["send", str(partition), value, int(offset)] if offset >= 0 and not isinstance(offset, bool):
            return SentRecord(partition, _value(line, value), offset)
        case ["send", str(partition), value, None]:
            return SentRecord(partition, _value(line, value), None)
        case ["poll"]:
            return Polled({})
        case ["poll", records]:
            return _polled(line, records)
        case _:
            shape = '["send", partition, value], the same with an offset, ["poll"] or ["poll", records]'
            raise MalformedHistory(line, f"a step of a txn is {shape}")


def _polled(line: int, records: object) -> Polled:
    if not isinstance(records, dict):
        raise MalformedHistory(line, f"records is an object of partitions, not {_name(records)}")
    return Polled({p: _records(line, found) for p, found in cast("Object", records).items()})


def _records(line: int, records: object) -> list[Record]:
    return [_record(line, record) for record in _list(line, "the records of a partition", records)]


def _record(line: int, record: object) -> Record:
    if isinstance(record, list):
        parts = cast("list[object]", record)
        offset = parts[0] if parts else None
        epoch = parts[2] if len(parts) == 3 else NO_EPOCH
        whole = type(offset) is int and type(epoch) is int and offset >= 0
        if whole and len(parts) in (2, 3):
            return (cast("int", offset), _value(line, parts[1]), cast("int", epoch))
    raise MalformedHistory(line, "a record is [offset, value] or [offset, value, leader epoch]")


def _value(line: int, value: object) -> Value:
    if value is None or (isinstance(value, int | str) and not isinstance(value, bool)):
        return value
    raise MalformedHistory(line, f"a value is a whole number, a text or null, not {_name(value)}")


def _extra(line: int, f: str, table: Object, *, ok: bool) -> Extra | None:
    if table.keys() <= PLAIN and f != "final-read":
        return None
    acks = None if table.get("acks") is None else str(table["acks"]).replace("-1", "all")
    if acks not in (None, "0", "1", "all"):
        raise MalformedHistory(line, f"acks is 0, 1 or all, not {_name(table['acks'])}")
    seek = table.get("seek")
    if seek is not None and seek not in _SEEKS:
        raise MalformedHistory(line, f"seek is beginning or end, not {_name(seek)}")
    whole = f == "final-read"
    final = whole and ok
    gaps = table.get("unseen")
    return Extra(
        acks=acks,
        group=_optional_word(line, table, "group"),
        error=_optional_word(line, table, "error"),
        partitions=_words(line, table, "partitions") if not whole else _final_partition(line, table),
        seek=seek,
        rebalanced=frozenset(_words(line, table, "rebalanced")),
        diverged=frozenset(_words(line, table, "diverged")),
        start=_natural(line, table, "start") if whole and "start" in table else 0,
        end=_natural(line, table, "end") if final else 0,
        unseen=None if gaps is None else frozenset(_offset(line, o) for o in _list(line, "unseen", gaps)),
    )


def _final_partition(line: int, table: Object) -> tuple[str, ...]:
    return (_word(line, table, "partition"),) if table.get("partition") is not None else ()


def _other(line: int, f: str, table: Object) -> Dump | HeldRecord | Fault:
    if f in ("fault", "heal"):
        survivable = table.get("survivable") is True
        what = _optional_word(line, table, "what") or f
        return Fault(line, _natural(line, table, "time"), what, f == "heal", survivable)
    node, partition = _word(line, table, "node"), _word(line, table, "partition")
    if f != "replica":
        value = _value(line, table.get("value"))
        return HeldRecord(line, node, partition, _natural(line, table, "offset"), value, f == "truncate")
    rows: list[tuple[int, int]] = []
    for row in _list(line, "epochs", table.get("epochs", [])):
        match _list(line, "a row of epochs", row):
            case [int(epoch), int(start)]:
                rows.append((epoch, start))
            case _:
                raise MalformedHistory(line, "a row of epochs is [epoch, start offset]")
    return Dump(
        line,
        node,
        partition,
        table.get("in_sync") is True,
        table.get("leader") is True,
        _natural(line, table, "high_watermark"),
        _records(line, table.get("records")),
        tuple(rows),
    )


def _natural(line: int, table: Object, name: str) -> int:
    return _offset(line, table.get(name), name)


def _offset(line: int, value: object, name: str = "an offset") -> int:
    if type(value) is int and value >= 0:
        return value
    raise MalformedHistory(line, f"{name} is a whole number from 0, not {_name(value)}")


def _word(line: int, table: Object, name: str) -> str:
    value = table.get(name)
    if isinstance(value, str) and value:
        return value
    raise MalformedHistory(line, f"{name} is a text, not {_name(value)}")


def _optional_word(line: int, table: Object, name: str) -> str:
    return _word(line, table, name) if table.get(name) not in (None, "") else ""


def _words(line: int, table: Object, name: str) -> tuple[str, ...]:
    found = _list(line, name, table.get(name, []))
    if all(isinstance(word, str) for word in found):
        return tuple(cast("list[str]", found))
    raise MalformedHistory(line, f"{name} is a list of partitions, each a text")


def _list(line: int, name: str, value: object) -> list[object]:
    if isinstance(value, list):
        return cast("list[object]", value)
    raise MalformedHistory(line, f"{name} is a list, not {_name(value)}")


def _name(value: object) -> str:
    if value is None:
        return "missing"
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


@contextmanager
def paused_garbage_collection() -> Generator[None, None, None]:
    """Pause the garbage collector while a large history is read.

    Its millions of tuples have no cycles, and traversing them
    takes as long as everything else.
    """
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()
