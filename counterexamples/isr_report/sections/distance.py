"""How few faults it takes, exactly, from the explorations: to lose what was acknowledged, and to refuse a write.

How many faults a cell has, its plan says. In the model any follower may lag at any time, which is no fault; so a
minimum of in-sync replicas may refuse writes without one.
"""

from __future__ import annotations

from html import escape

import attrs

from isr_report.html import HOLDS, code, count_text, link, table
from isr_report.material import Material, target
from isr_report.matrix.grid import CellEntry, Matrix, is_probe, verdict_of

LOSING, REFUSING = "acked-survives", "write-refused"


@attrs.frozen
class Distance:
    """The fewest faults after which it happens, and the run that shows it; `beyond`: the most that were tried."""

    faults: int | None
    beyond: int
    cell: CellEntry | None


def distance(matrix: Matrix, design: str, settings: dict[str, str], promise: str) -> Distance | None:
    """None where nothing of the kind was asked."""
    own = [c for c in matrix["cells"] if c["design"] == design and c["settings"] == settings]
    faults = {f["name"]: f["count"] for f in matrix["faults"]}
    outcomes = [(faults[c["fault"]], c, said) for c in own if (said := verdict_of(c, promise)) is not None]
    if not outcomes:
        return None
    happens = [(n, c) for n, c, p in outcomes if (p["verdict"] in HOLDS if is_probe(p) else p["verdict"] == "VIOLATED")]
    fewest = min(happens, key=lambda pair: pair[0], default=(None, None))
    return Distance(fewest[0], max(n for n, _, _ in outcomes), fewest[1])


def distances(m: Material) -> str:
    """A row for each design and settings, unclean election and single acknowledgements left out."""
    columns = {tuple(c["settings"].items()): c["settings"] for c in m.matrix["cells"]}
    usual = {k: v for k, v in m.matrix["usual"].items() if k != "min_insync"}
    rows: list[tuple[str, ...]] = []
    for design in (d["name"] for d in m.matrix["designs"]):
        for settings in columns.values():
            if not all(usual.get(k, v) == v for k, v in settings.items()):
                continue
            losing = distance(m.matrix, design, settings, LOSING)
            if losing is not None:
                said = ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in settings.items())
                refusing = distance(m.matrix, design, settings, REFUSING)
                rows.append((code(design), escape(said), _cell(m, losing, LOSING), _cell(m, refusing, REFUSING)))
    header = (
        "design",
        "settings",
        "faults that lose an acknowledged record",
        "faults that make a leader refuse writes",
    )
    many = "; ".join(escape(f["says"]) for f in m.matrix["faults"] if f["count"] > 1)
    about = "The fewest faults in the explorations of this page. A follower may lag without any fault."
    about += f" More than one fault, that is: {many}." if many else ""
    return f'<h3>Seen by exploration</h3><p class="quiet">{about}</p>{table(header, rows)}<h3>As probabilities</h3>'


def _cell(m: Material, fault_distance: Distance | None, promise: str) -> str:
    if fault_distance is None:
        return "does not apply"
    if fault_distance.cell is None:
        return f"more than {fault_distance.beyond}"
    said = verdict_of(fault_distance.cell, promise)
    shown = (
        target(m, said["trace"]) if said is not None and said["trace"] else f"{m.folder}/{fault_distance.cell['run']}"
    )
    depth = f" in {count_text(said['depth'], 'step')}" if said is not None and said["depth"] else ""
    return link(shown, f"{fault_distance.faults}") + f"{depth}"
