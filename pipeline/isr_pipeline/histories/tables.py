"""The result tables of all histories, as Parquet: anomalies, witnesses, and acknowledgements by window of time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from isr_pipeline.histories.jobs import CheckedHistory
from isr_pipeline.histories.rows import keep, schema
from isr_pipeline.locations import Location

ANOMALIES: Final = schema(
    history=pa.int32(),
    file=pa.string(),
    **dict.fromkeys(("anomaly", "verdict", "why"), pa.string()),
    **dict.fromkeys(("number", "found", "forbidden", "largest"), pa.int64()),
)
WITNESSES: Final = schema(
    history=pa.int32(),
    file=pa.string(),
    **dict.fromkeys(("anomaly", "partition", "says"), pa.string()),
    permitted=pa.bool_(),
    lines=pa.list_(pa.int64()),
    texts=pa.list_(pa.string()),
)
AVAILABILITY: Final = schema(
    history=pa.int32(),
    file=pa.string(),
    **dict.fromkeys(("begin", "width", "acked", "failed", "unknown"), pa.int64()),
)
"""Times are nanoseconds."""

Rows = Iterable[dict[str, object]]


def write(folder: Location, histories: list[CheckedHistory]) -> None:
    """Write the three tables, beside that of operations, and remove files that only passed data between jobs."""
    who = [{"history": number, "file": str(one.path)} for number, one in enumerate(histories)]
    pairs = list(zip(who, histories, strict=True))
    anomalies: Rows = (
        {
            **at,
            "anomaly": j.name,
            "verdict": j.verdict.value,
            "why": j.why,
            "number": j.number,
            "found": j.finding_count,
            "forbidden": j.forbidden,
            "largest": j.largest,
        }
        for at, one in pairs
        for j in one.answer.judgements
    )
    witnesses: Rows = (
        {
            **at,
            "anomaly": j.name,
            "partition": w.partition or None,
            "says": w.says,
            "permitted": w.is_permitted,
            "lines": list(w.lines),
            "texts": [one.quotes.get(line, "") for line in w.lines],
        }
        for at, one in pairs
        for j in one.answer.judgements
        for w in j.witnesses
    )
    availability: Rows = (
        {
            **at,
            "begin": w.begin,
            "width": one.answer.availability.width,
            "acked": w.acked,
            "failed": w.failed,
            "unknown": w.unknown,
        }
        for at, one in pairs
        for w in one.answer.availability.windows
    )
    _write(folder / "anomalies.parquet", anomalies, ANOMALIES)
    _write(folder / "witnesses.parquet", witnesses, WITNESSES)
    _write(folder / "availability.parquet", availability, AVAILABILITY)
    for kind in ("shares", "edges"):
        (folder / kind).delete_folder()


def _write(file: Location, rows: Rows, columns: pa.Schema) -> None:
    given = list(rows)
    keep(file, {name: [row[name] for row in given] for name in columns.names}, columns)
