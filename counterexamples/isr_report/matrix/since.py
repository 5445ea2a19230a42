"""What changed since an earlier report: verdicts, sizes, and whether a run took unusually long."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import attrs

from isr_report.html import code, command, link, table, verdict
from isr_report.matrix.grid import CellEntry, Matrix, verdict_of

FASTER, SLOWER = 0.5, 2.0
"""The band: a design whose runs took longer or shorter than this, as a multiple of before, is named."""
NOTICEABLE = 1.0
"""Seconds that the runs of a design must take together before their time says anything."""


@attrs.frozen
class CellChange:
    """A cell that says something else: of a promise, or how many states there are."""

    cell: CellEntry
    what: str
    before: str
    after: str


@attrs.frozen
class Since:
    """`models`: designs whose model is another one now; their numbers may differ, all others may not."""

    models: tuple[str, ...]
    verdicts: tuple[CellChange, ...]
    sizes: tuple[CellChange, ...]
    new: tuple[str, ...]
    removed_cells: tuple[str, ...]
    times: Mapping[str, tuple[float, float]]

    @property
    def unusual(self) -> dict[str, tuple[float, float]]:
        """Outside of the band."""
        enough = {d: t for d, t in self.times.items() if max(t) >= NOTICEABLE and min(t) > 0}
        return {d: (a, b) for d, (a, b) in enough.items() if not FASTER <= b / a <= SLOWER}


def since(before: Matrix, now: Matrix) -> Since:
    """Cells are the same when their commands are; a cell of an older plan is gone."""
    old = {" ".join(c["command"]): c for c in before["cells"]}
    new = {" ".join(c["command"]): c for c in now["cells"]}
    verdicts, sizes, models = list[CellChange](), list[CellChange](), dict[str, None]()
    for asked in old.keys() & new.keys():
        a, b = old[asked], new[asked]
        if a["model_hash"] != b["model_hash"]:
            models[b["design"]] = None
        for p in b["promises"]:
            was = verdict_of(a, p["name"])
            if was is not None and (was["verdict"], was["depth"]) != (p["verdict"], p["depth"]):
                verdicts.append(
                    CellChange(
                        b, p["name"], f"{was['verdict']} {was['depth'] or ''}", f"{p['verdict']} {p['depth'] or ''}"
                    )
                )
        if (a["distinct"], a["generated"]) != (b["distinct"], b["generated"]):
            sizes.append(CellChange(b, "states", f"{a['distinct']:,}", f"{b['distinct']:,}"))
    designs = {c["design"] for c in new.values()} & {c["design"] for c in old.values()}
    shared = old.keys() & new.keys()
    times = {
        d: tuple(sum(side[asked]["seconds"] for asked in shared if side[asked]["design"] == d) for side in (old, new))
        for d in sorted(designs)
    }
    return Since(
        tuple(models),
        tuple(sorted(verdicts, key=lambda c: (c.cell["name"], c.what))),
        tuple(sorted(sizes, key=lambda c: c.cell["name"])),
        tuple(c["name"] for asked, c in new.items() if asked not in old),
        tuple(c["name"] for asked, c in old.items() if asked not in new),
        {d: (t[0], t[1]) for d, t in times.items()},
    )


def section(comparison: Since | None, folder: str) -> str:
    title = "<h3>Since the last report</h3>"
    if comparison is None:
        none = '<p class="quiet">No earlier report was given to compare with. One is compared by</p>'
        return title + none + command("insync report --since OLD-REPORT")
    models = ", ".join(code(d) for d in comparison.models)
    parts = [
        f"<p>The model has changed of {models}.</p>" if models else "<p>The model of every design is the same.</p>"
    ]
    for changes, says in ((comparison.verdicts, "verdicts or depths"), (comparison.sizes, "state spaces")):
        if not changes:
            parts.append(f"<p>No {says} changed.</p>")
            continue
        rows = [
            (link(f"{folder}/{c.cell['run']}", escape(c.cell["name"])), code(c.what), _word(c.before), _word(c.after))
            for c in changes
        ]
        parts.append(f"<p><b>{len(changes)} {says} changed:</b></p>" + table(("cell", "what", "before", "now"), rows))
    for names, says in ((comparison.new, "new"), (comparison.removed_cells, "gone")):
        if names:
            items = "".join(f"<li>{escape(n)}</li>" for n in names)
            parts.append(f"<details><summary>{len(names)} cells are {says}</summary><ul>{items}</ul></details>")
    times = [
        (
            code(d),
            f"{a:.1f}",
            f"{b:.1f}",
            f"{b / a:.2f}" if a else "",
            '<b class="flagged">unusual</b>' if d in comparison.unusual else "",
        )
        for d, (a, b) in comparison.times.items()
    ]
    band = f"<p>Seconds; named where the ratio is outside of {FASTER} to {SLOWER}:</p>"
    return title + "".join(parts) + band + table(("design", "before", "now", "ratio", ""), times, numbers=(1, 2, 3))


def _word(text: str) -> str:
    word, _, depth = text.partition(" ")
    return verdict(word) + f" {depth}" if word.isupper() else escape(text)
