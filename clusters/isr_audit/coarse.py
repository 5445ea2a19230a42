"""What survives with more replicas than the whole protocol is explored with: by the coarse model of `insync drill`.

That model does more than the protocol, so what survives there survives (docs/drill.md#what-is-explored). What may be
lost there is no answer here. The table is made by `python -m tests.support.coarse_answers`; an answer whose design has
changed since is not used.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias, TypedDict, cast

from isr_audit.questions import CRASH, CRASH_AND_POWER, DISK, MOST_REPLICAS, POWER, TWO_POWER, Fault, Settings
from isr_protocol.by_name import DESIGNS

SCHEMA: Final = "insync/audit-coarse/1"
TABLE: Final = Path(__file__).parent / "coarse.json"
COARSE_DESIGNS: Final = ("kip-966", "kraft-3.5")
COARSE_FAULTS: Final = (CRASH, POWER, DISK, CRASH_AND_POWER, TWO_POWER)
MOST_COARSE: Final = 5
"""Replicas of which the coarse model is explored (`isr_drill.situation`)."""
COARSE: Final = f"with more than {MOST_REPLICAS} replicas explored on the coarse model of insync drill"
Survivor: TypeAlias = tuple[str, int, int, bool, str]
"""A design, the replicas of a partition, its minimum, whether unclean election is on, and a fault's name."""


class CoarseTable(TypedDict):
    """`hashes`: the model hash of each design when it was explored."""

    schema: str
    hashes: dict[str, str]
    survivors: list[Survivor]


def survives(design: str, settings: Settings, fault: Fault) -> bool:
    """Whether no record that was acknowledged with acks=all is lost by the fault; False where that is not known."""
    # A fault of flushed records is another one by its budget, and keeps its name.
    same = next((f for f in COARSE_FAULTS if f.budget == fault.budget and f.takes_disk == fault.takes_disk), None)
    if same is None or settings.acks != "all":
        return False
    return (design, settings.replicas, settings.min_insync, settings.unclean, same.name) in survivors()


@cache
def survivors() -> frozenset[Survivor]:
    """Those of the table whose designs are what they were."""
    table = _table(TABLE.read_text(encoding="utf-8"))
    fresh = {name for name, digest in table["hashes"].items() if DESIGNS[name].model_hash() == digest}
    return frozenset(cast("Survivor", tuple(row)) for row in table["survivors"] if row[0] in fresh)


def _table(text: str) -> CoarseTable:
    return cast("CoarseTable", json.loads(text))


def write_survivors(rows: list[Survivor]) -> None:
    """One line for each, in order."""
    hashes = {name: DESIGNS[name].model_hash() for name in COARSE_DESIGNS}
    lines = ",\n".join("  " + json.dumps(row) for row in sorted(rows))
    head = f'{{\n"schema": {json.dumps(SCHEMA)},\n"hashes": {json.dumps(hashes)},\n'
    TABLE.write_text(f'{head}"survivors": [\n{lines}\n]\n}}\n', encoding="utf-8")
