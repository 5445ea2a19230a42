"""The summary of the matrix: what a client is promised against designs, at the usual settings, under every fault."""

from __future__ import annotations

from collections import Counter
from html import escape

from isr_report.grid import CellEntry, FaultEntry, PromiseEntry, verdict_of
from isr_report.html import KINDS, counted, link, verdict
from isr_report.material import Material, target

SIGNS = {"holds": "✓", "violated": "✕", "vacuous": "∅", "open": "?", "none": "·"}


def overview(m: Material) -> str:
    """A row for each promise to a client, a column for each design."""
    if not m.matrix["client"] or not m.matrix["usual"]:
        return '<p class="quiet">The plan of this matrix names no promises to clients, or no usual settings.</p>'
    designs = [d["name"] for d in m.matrix["designs"]]
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in designs)
    rows = "".join(
        f'<tr><th scope="row">{escape(says)}<code>{escape(name)}</code></th>'
        f"{''.join(f'<td>{_square(m, name, design)}</td>' for design in designs)}</tr>"
        for name, says in m.matrix["client"].items()
    )
    return (
        f'<div class="scroll framed"><table class="overview"><thead><tr><td></td>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{_key(m)}"
    )


def _key(m: Material) -> str:
    usual = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in m.matrix["usual"].items())
    faults, more = (
        "; ".join(escape(f["says"]) for f in m.matrix["faults"] if (f["count"] > 1) is many) for many in (False, True)
    )
    twice = f" Below them is what was asked of two faults, which are: {more}." if more else ""
    return _room(m) + (
        f'<p class="key-line quiet">At {escape(usual)}. The word is the weakest of single faults, or of two where one '
        f"never puts the promise to the test; the marks are, from left to right: {faults}.{twice} An empty set: "
        f"nothing comes to where the promise would be tested; a dot: no such fault, or no such promise.</p>"
    )


def _room(m: Material) -> str:
    """The bounds of most designs, and who has others: with more room more can be seen."""
    calm = m.matrix["faults"][0]["name"] if m.matrix["faults"] else ""
    of: dict[str, dict[str, int]] = {}
    for c in m.matrix["cells"]:
        if c["fault"] == calm and c["design"] not in of:
            whole = {n: v for n, v in c["constants"].items() if isinstance(v, int) and not isinstance(v, bool) and v}
            of[c["design"]] = {n: v for n, v in whole.items() if n not in c["settings"]}
    names = list(dict.fromkeys(n for bounds in of.values() for n in bounds))
    most = {n: Counter(b[n] for b in of.values() if n in b).most_common(1)[0][0] for n in names}
    shared = ", ".join(f"{n.replace('_', ' ')} {v}" for n, v in most.items())
    apart = [
        f"{escape(design)} has {', '.join(f'{n} {v}' for n, v in bounds.items() if most[n] != v)}"
        for design, bounds in of.items()
        if any(most[n] != v for n, v in bounds.items())
    ]
    more = f"; {'; '.join(apart)}, and so can show more" if apart else ""
    twice = {f["name"] for f in m.matrix["faults"] if f["count"] > 1}
    roomier = {
        (n, v)
        for c in m.matrix["cells"]
        if c["fault"] in twice
        for n, v in c["constants"].items()
        if isinstance(v, int) and n in most and v > of[c["design"]].get(n, v)
    }
    said = ", ".join(f"{n.replace('_', ' ')} {v}" for n, v in sorted(roomier))
    more += f"; two faults have {said}" if said else ""
    return f'<p class="key-line quiet">Bounds: {escape(shared)}{more}. Beyond them nothing is said.</p>'


def usual_cells(m: Material, design: str) -> list[tuple[FaultEntry, CellEntry | None]]:
    """The cell of a design under each fault, at the usual settings or as many of them as it has."""
    usual = m.matrix["usual"]
    own = [c for c in m.matrix["cells"] if c["design"] == design and c["settings"].items() <= usual.items()]
    return [(f, next((c for c in own if c["fault"] == f["name"]), None)) for f in m.matrix["faults"]]


def kind_of(said: PromiseEntry | None) -> str:
    """How a verdict is shown."""
    if said is None:
        return "none"
    return KINDS.get(said["verdict"], "open")


def summed(found: list[PromiseEntry]) -> PromiseEntry | None:
    """The entry with the weakest verdict: broken the soonest, else whatever is least certain; one that was never put to
    the test counts only where all are so."""
    order = ("violated", "open", "holds", "vacuous")
    return min(found, key=lambda p: (order.index(kind_of(p)), p["depth"] or 0), default=None)


def word_of(found: list[tuple[FaultEntry, PromiseEntry]]) -> PromiseEntry | None:
    """What is said of a promise in one word: the weakest of single faults, or of all where those test nothing."""
    one = summed([said for f, said in found if f["count"] <= 1])
    return one if one is None or kind_of(one) != "vacuous" else summed([said for _, said in found])


def _square(m: Material, promise: str, design: str) -> str:
    here = [(f, c, verdict_of(c, promise) if c is not None else None) for f, c in usual_cells(m, design)]
    word = word_of([(f, said) for f, _, said in here if said is not None])
    if word is None:
        return '<span class="quiet">not promised</span>'
    one = "".join(_mark(m, f, c, said) for f, c, said in here if f["count"] <= 1)
    two = "".join(_mark(m, f, c, said) for f, c, said in here if f["count"] > 1 and said is not None)
    more = f'<span class="marks more">{two}</span>' if two else ""
    return f'{verdict(word["verdict"])}<span class="marks">{one}</span>{more}'


def _mark(m: Material, fault: FaultEntry, cell: CellEntry | None, said: PromiseEntry | None) -> str:
    kind = kind_of(said)
    if cell is None or said is None:
        return f'<i class="mark none" title="{escape(fault["says"])}: nothing is promised">{SIGNS[kind]}</i>'
    steps = f" in {counted(said['depth'], 'step')}" if said["depth"] and kind == "violated" else ""
    label = f"{fault['says']}: {said['verdict']}{steps}"
    href = target(m, said["trace"]) if said["trace"] else f"{m.folder}/{cell['run']}"
    return link(href, SIGNS[kind], f"mark {kind}").replace(
        "<a ", f'<a title="{escape(label)}" aria-label="{escape(label)}" ', 1
    )
