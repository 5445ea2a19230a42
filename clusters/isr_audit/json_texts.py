"""JSON in a description: whatever its line breaks, as one line; and whether it is a reassignment, which is a plan."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, cast

import attrs

_BEGINS: Final = re.compile(r"^[ \t]*\{[ \t]*(?:\"|$)", re.MULTILINE)


def on_one_line(text: str) -> str:
    """The text with each object of JSON that begins a line on one line, as Kafka's tools print it. The numbers of lines
    stay: what was several lines is followed by empty ones."""
    decoder, whole, at = json.JSONDecoder(), "", 0
    for match in _BEGINS.finditer(text):
        begin = text.index("{", match.start())
        if begin < at:
            continue
        try:
            value, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            continue
        compact = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        whole += text[at:begin] + compact + "\n" * text.count("\n", begin, end)
        at = end
    return whole + text[at:]


@attrs.frozen
class Plan:
    """A reassignment: how many partitions it has, and of which topics."""

    partitions: int
    topics: tuple[str, ...]


def plan_of(value: object) -> Plan | None:
    """The JSON of kafka-reassign-partitions.sh; None for any other."""
    partitions = cast("Mapping[str, object]", value).get("partitions") if isinstance(value, dict) else None
    if not isinstance(partitions, list) or not partitions:
        return None
    entries = [cast("Mapping[str, object]", p) for p in cast("list[object]", partitions) if isinstance(p, dict)]
    if len(entries) < len(cast("list[object]", partitions)) or any("replicas" not in p for p in entries):
        return None
    return Plan(len(entries), tuple(dict.fromkeys(str(p.get("topic")) for p in entries)))
