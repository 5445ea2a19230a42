"""The summary of the matrix: what the recommended settings bear, and what a client is promised against designs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from isr_report.html import HOLDS, KINDS, code, count_text, link, table, verdict
from isr_report.material import Material, states_of, target
from isr_report.matrix.grid import CellEntry, FaultEntry, Matrix, PromiseEntry, verdict_of

SIGNS = {"holds": "✓", "violated": "✕", "vacuous": "∅", "open": "?", "none": "·"}
SIGN_MEANINGS = {
    "holds": "no state within the bounds breaks it",
    "violated": "broken, in so many steps",
    "vacuous": "nothing comes to where it would be tested",
    "open": "not decided",
    "none": "not promised at these settings",
}
"""What each sign stands for, where squares are too small for words."""

COUNTS = (("one fault", False), ("two faults", True))
CellAnswer = tuple[FaultEntry, CellEntry, PromiseEntry]


def overview(m: Material) -> str:
    """A row for each promise to a client, a column for each design; before it the recommended settings."""
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
        f"{_recommended_section(m)}<h3>{escape(_world(m).capitalize())}, all faults of this report</h3>"
        f'<div class="scroll framed"><table class="overview"><thead><tr><td></td>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{_key(m)}"
    )


# The recommended settings


def recommended_runs(matrix: Matrix) -> list[CellAnswer]:
    """The cells at the settings that Kafka's documentation recommends, each with the promise that it was asked."""
    faults = [f for f in matrix["faults"] if f["recommended"]]
    cells = [(f, c) for f in faults for c in matrix["cells"] if c["fault"] == f["name"]]
    return [(f, c, p) for f, c in cells for p in c["promises"]]


def _recommended_section(m: Material) -> str:
    answers = recommended_runs(m.matrix)
    if not answers:
        return (
            '<h3>The recommended settings</h3><p class="quiet">No run with the replicas that Kafka\'s documentation '
            "recommends is here; <code>insync matrix</code> makes them.</p>"
        )
    designs = list(dict.fromkeys(c["design"] for _, c, _ in answers))
    faults = list({f["name"]: f for f, _, _ in answers}.values())
    rows = [(escape(f["says"]), *(_verdict_cell(m, answers, f, design) for design in designs)) for f in faults]
    promise = answers[0][2]["name"]
    says = m.matrix["client"].get(promise, promise)
    return (
        f"<h3>The recommended settings: {escape(_settings(answers[0][1]))}</h3>"
        f"<p>{escape(says)} (<code>{escape(promise)}</code>):</p>"
        f"{table(('what may happen', *map(code, designs)), rows)}"
    )


def _settings(cell: CellEntry) -> str:
    replicas = count_text(int(cell["constants"]["replicas"]), "replica")
    return ", ".join([replicas, *(f"{n.replace('_', ' ')} {v}" for n, v in cell["settings"].items())])


def _verdict_cell(m: Material, answers: Sequence[CellAnswer], fault: FaultEntry, design: str) -> str:
    """The verdict of a design under a fault, and what shows it."""
    found = next(((c, p) for f, c, p in answers if f is fault and c["design"] == design), None)
    if found is None:
        return "not asked"
    cell, entry = found
    run = f"{m.folder}/{cell['run']}"
    if entry["verdict"] == "VIOLATED":
        shown = link(target(m, str(entry["trace"])), f"in {count_text(entry['depth'] or 0, 'step')}")
    else:
        shown = link(run, f"{'in all' if entry['verdict'] in HOLDS else 'of'} {states_of(cell)}")
    return f"{verdict(entry['verdict'])} {shown}"


# All designs, at the usual settings


def _world(m: Material) -> str:
    """The replicas of most designs, and the settings of all."""
    replicas = Counter(int(c["constants"].get("replicas", 0)) for c in m.matrix["cells"]).most_common(1)[0][0]
    usual = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in m.matrix["usual"].items())
    return f"in the smallest world: {count_text(replicas, 'replica')}, {usual}"


def _key(m: Material) -> str:
    names = "".join(
        f"<div><dt>{escape(fault_name(f))}</dt><dd>{escape(f['says'])}</dd></div>"
        for f in m.matrix["faults"]
        if not f["recommended"]
    )
    return (
        f"{_room(m)}"
        '<p class="key-line quiet">The word is the weakest verdict of all runs with so many faults. Below it stands '
        "each fault that breaks the promise, with the steps of its shortest counterexample, to which it leads. "
        "Untested are faults under which nothing comes to where the promise would be tested, and "
        f"{verdict('VACUOUS')} is what is untested under all of them.</p>"
        f'<dl class="key-faults" aria-label="faults">{names}</dl>'
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
    twice = {f["name"] for f in m.matrix["faults"] if f["count"] > 1 and not f["recommended"]}
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
    faults = [f for f in m.matrix["faults"] if not f["recommended"]]
    return [(f, next((c for c in own if c["fault"] == f["name"]), None)) for f in faults]


def asked_of(m: Material, design: str, promise: str, *, two: bool) -> list[CellAnswer]:
    """What the runs with at most one fault, or those with two, say of a promise at the usual settings."""
    here = [(f, c, verdict_of(c, promise)) for f, c in usual_cells(m, design) if c is not None]
    return [(f, c, said) for f, c, said in here if said is not None and (f["count"] > 1) is two]


def kind_of(entry: PromiseEntry | None) -> str:
    """How a verdict is shown."""
    if entry is None:
        return "none"
    return KINDS.get(entry["verdict"], "open")


def fault_name(fault: FaultEntry) -> str:
    """The fault in a word or two."""
    return fault["name"] if fault["count"] else "no fault"


def weakest(answers: Sequence[CellAnswer]) -> PromiseEntry:
    """The entry with the weakest verdict: broken the soonest, else whatever is least certain; one that was never put to
    the test counts only where all are so."""
    order = ("violated", "open", "holds", "vacuous")
    return min((p for _, _, p in answers), key=lambda p: (order.index(kind_of(p)), p["depth"] or 0))


def summary_line(m: Material, design: str, promise: str) -> str:
    """One line for a terminal: what a design bears, of one fault and of two, and of what is recommended."""
    parts: list[str] = []
    for words, two in COUNTS:
        if found := asked_of(m, design, promise, two=two):
            parts.append(f"{words} {_verdict_text([(f, p) for f, _, p in found], weakest(found)['verdict'])}")
    if asked := [one for one in recommended_runs(m.matrix) if one[1]["design"] == design and one[2]["name"] == promise]:
        parts.append(
            f"{_settings(asked[0][1])} {_verdict_text([(f, p) for f, _, p in asked], weakest(asked)['verdict'])}"
        )
    return f"{design}, {promise}: {'; '.join(parts)}" if parts else ""


def _verdict_text(entries: Sequence[tuple[FaultEntry, PromiseEntry]], word: str) -> str:
    broken = ", ".join(
        f"{fault_name(f)} in {count_text(p['depth'] or 0, 'step')}" for f, p in entries if p["verdict"] == word
    )
    return f"{word} ({broken})" if word == "VIOLATED" else word


def _square(m: Material, promise: str, design: str) -> str:
    parts: list[str] = []
    for words, two in COUNTS:
        if found := asked_of(m, design, promise, two=two):
            word = weakest(found)
            parts.append(
                f'<p class="said">{verdict(word["verdict"])} <small>{words}</small></p>{_marks(m, found, word)}'
            )
    return "".join(parts) or '<span class="quiet">not promised</span>'


def _marks(m: Material, answers: Sequence[CellAnswer], word: PromiseEntry) -> str:
    """The faults that break it or leave it open, each by its name; then those that test nothing."""
    marks = "".join(_mark(m, *one) for one in answers if kind_of(one[2]) in ("violated", "open"))
    idle = [fault_name(f) for f, _, p in answers if kind_of(p) == "vacuous"] if kind_of(word) != "vacuous" else []
    untested = f'<p class="untested">untested: {escape(", ".join(idle))}</p>' if idle else ""
    return (f'<p class="marks">{marks}</p>' if marks else "") + untested


def _mark(m: Material, fault: FaultEntry, cell: CellEntry, entry: PromiseEntry) -> str:
    broken = kind_of(entry) == "violated"
    steps = f" in {count_text(entry['depth'], 'step')}" if entry["depth"] and broken else ""
    label = f"{fault['says']}: {entry['verdict']}{steps}"
    href = target(m, entry["trace"]) if entry["trace"] else f"{m.folder}/{cell['run']}"
    text = f"{escape(fault_name(fault))} <b>{entry['depth'] if steps else SIGNS['open']}</b>"
    return link(href, text, f"mark {kind_of(entry)}").replace(
        "<a ", f'<a title="{escape(label)}" aria-label="{escape(label)}" ', 1
    )
