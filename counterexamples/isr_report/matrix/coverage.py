"""What the runs of the matrix exercised: actions that nothing took, guards that never refused, probes and witnesses."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import cast

import attrs

from isr_report.html import HOLDS, code, count_text, link, table
from isr_report.matrix.grid import CellEntry, Matrix, PromiseEntry, is_probe


@attrs.frozen
class Covered:
    """Of one design over all of its runs: how often each action was taken, and the guards that never refused."""

    actions: Mapping[str, int]
    open_guards: tuple[tuple[str, str], ...]

    @property
    def never(self) -> list[str]:
        return [name for name, taken in self.actions.items() if not taken]


def coverage(matrix: Matrix, folder: Path) -> dict[str, Covered]:
    """Read from the run files of the matrix in the folder."""
    actions, refusal_counts = dict[str, Counter[str]](), dict[str, Counter[tuple[str, str]]]()
    for cell in matrix["cells"]:
        run = cast("Mapping[str, object]", json.loads((folder / cell["run"]).read_text(encoding="utf-8")))
        found = cast("Mapping[str, Mapping[str, object]]", run["coverage"])
        own, no = actions.setdefault(cell["design"], Counter()), refusal_counts.setdefault(cell["design"], Counter())
        own.update(cast("Mapping[str, int]", found["actions"]))
        for action, guards in cast("Mapping[str, Mapping[str, list[int]]]", found["guards"]).items():
            for guard, (_, refusals) in guards.items():
                no[action, guard] += refusals
    return {
        design: Covered(dict(taken), tuple(g for g, n in refusal_counts[design].items() if not n and taken[g[0]]))
        for design, taken in actions.items()
    }


def covered_table(covered: Mapping[str, Covered]) -> str:
    """A row for each design: what was taken, and what was not."""
    rows = [
        (
            f"<b>{escape(name)}</b>",
            f"{len(c.actions) - len(c.never)} of {len(c.actions)}",
            ", ".join(code(a) for a in c.never) or "none",
            _guards(c.open_guards),
        )
        for name, c in covered.items()
    ]
    return table(("design", "actions taken", "taken in no run", "guards that never refused"), rows)


def _guards(guards: tuple[tuple[str, str], ...]) -> str:
    if not guards:
        return "none"
    listed = "".join(f"<li>{code(action)} {code(guard)}</li>" for action, guard in guards)
    return f"<details><summary>{len(guards)}</summary><ul>{listed}</ul></details>"


@attrs.frozen
class Probe:
    """What can happen: in how many cells it was looked for and found, and the shortest witness there is."""

    name: str
    run_count: int
    witness_count: int
    shortest: PromiseEntry | None
    cell: CellEntry | None


def probes(matrix: Matrix) -> list[Probe]:
    rows: list[Probe] = []
    for name in matrix["promises"]:
        entries = [(p, c) for c in matrix["cells"] for p in c["promises"] if p["name"] == name and is_probe(p)]
        if not entries:
            continue
        reached = [(p, c) for p, c in entries if p["verdict"] in HOLDS]
        with_trace = [(p, c) for p, c in reached if p["trace"]]
        best, cell = min(with_trace, key=lambda pair: pair[0]["depth"] or 0, default=(None, None))
        rows.append(Probe(name, len(entries), len(reached), best, cell))
    return rows


def probes_table(matrix: Matrix, folder: str, pages: Mapping[str, str]) -> str:
    """Probes against vacuity, with what was observed."""
    rows: list[tuple[str, ...]] = []
    for p in probes(matrix):
        witness = "nowhere"
        if p.shortest is not None and p.shortest["trace"] and p.cell is not None:
            where = pages.get(p.shortest["trace"], f"{folder}/{p.shortest['trace']}")
            witness = link(where, count_text(p.shortest["depth"] or 0, "step")) + f" on {code(p.cell['design'])}"
        flag = "" if p.witness_count else ' <b class="flagged">never</b>'
        doc = escape(matrix["promises"][p.name])
        rows.append((code(p.name), doc, f"{p.witness_count} of {p.run_count}{flag}", witness))
    return table(("probe", "what happens", "reached in runs", "shortest witness"), rows, numbers=(2,))
