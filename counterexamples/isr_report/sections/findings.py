"""The sections of the page that come from runs and traces: questions, matrix, stories, scenes, controls, space."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from html import escape

from isr_report.html import HOLDS, code, command, count_text, link, picture, prose, table, verdict
from isr_report.material import (
    Alternative,
    Claim,
    Control,
    Material,
    PlayedScene,
    Question,
    Story,
    Together,
    states_of,
    target,
)
from isr_report.matrix.coverage import probes_table
from isr_report.matrix.grid import CellEntry, Matrix, verdict_of
from isr_report.sections.overview import SIGN_MEANINGS, SIGNS, kind_of

SAMPLE = "n"
"""In the key of the grid: a number of steps."""
ANSWER_SETTINGS = ("replicas", "min_insync", "unclean", "acks", "crashes", "lossy_crashes", "sessions_lost")
"""The settings and faults of a case that an answer names."""
FILTER = (
    '<p class="filtering"><input type="search" class="filter" placeholder="Filter: a word" aria-label="Filter cards">'
    '<span class="filter-note quiet" role="status"></span></p>'
)


def facts(m: Material, claims: list[Claim]) -> str:
    states = sum(c["distinct"] for c in m.matrix["cells"])
    numbers = [
        (f"{len(m.matrix['cells']):,}", "explorations in the matrix"),
        (f"{states:,}", "states seen in them"),
        (f"{len(m.stories)}", "historic bugs, each found again"),
        (f"{len(m.scenes)}", "scenes played on the model"),
        (f"{len(claims):,}", "claims with a command"),
    ]
    items = "".join(f"<div><dt>{says}</dt><dd>{number}</dd></div>" for number, says in numbers)
    return f'<dl class="facts-row">{items}</dl>'


def answers(m: Material) -> str:
    """The questions, those of each family below its name."""
    subjects = list(dict.fromkeys(q.subject for q in m.questions))
    heads = {s: f'<h3 class="subject">{escape(s)}</h3>' if s else "" for s in subjects}
    return "".join(heads[s] + _cards(m, [q for q in m.questions if q.subject == s]) for s in subjects)


def _cards(m: Material, questions: Sequence[Question]) -> str:
    """A card for each question; folded away, those that no run of this report answers."""
    found = [(q, _card(m, q)) for q in questions]
    cards = "".join(card for _, card in found if card)
    without = [_answer("open", "Not answered", q.asks, _missing(q), "") for q, card in found if not card]
    if not without:
        return f'<ul class="answers">{cards}</ul>'
    many = f"{count_text(len(without), 'question')} that no run of this report answers"
    rest = f'<details class="fold"><summary>{many}</summary><ul class="answers">{"".join(without)}</ul></details>'
    return f'<ul class="answers">{cards}</ul>{rest}' if cards else rest


def _card(m: Material, q: Question) -> str:
    """The answer, by what answers it; nothing where this report has no such run."""
    return _answer_of_check(m, q) if q.check else _answer_of_case(m, q) if q.case else _answer_of_cell(m, q)


def _missing(q: Question) -> str:
    """What would answer it."""
    if q.check:
        return f"insync check {q.check}"
    if q.case:
        return f"this report tells no story '{q.case}'"
    lacks = ", ".join([q.design, *(f"{k.replace('_', '-')} {v}" for k, v in q.settings.items())])
    return f"this matrix has no run of {lacks} under the fault '{q.fault}'"


def _answer_of_cell(m: Material, q: Question) -> str:
    """By the matrix; nothing where it has no such run."""
    cell = q.cell(m.matrix)
    entry = verdict_of(cell, q.promise) if cell is not None else None
    if cell is None or entry is None:
        return ""
    setting = ", ".join(f"{k.replace('_', '-')} {v}" for k, v in q.settings.items())
    about = f"{q.design}, {cell['constants'].get('replicas', '')} replicas, {setting}; {q.promise}"
    of = "not in any of" if q.holds == "No" else "in all"
    run = link(f"{m.folder}/{cell['run']}", f"{of} {states_of(cell)}")
    if entry["verdict"] in HOLDS:
        return _answer("holds", q.holds, q.asks, about, run)
    if entry["verdict"] == "VIOLATED":
        page = link(target(m, str(entry["trace"])), f"a counterexample of {entry['depth']} steps")
        return _answer("violated", q.breaks, q.asks, about, page)
    return _answer("open", "Undecided", q.asks, about, run)


def _answer_of_case(m: Material, q: Question) -> str:
    """By the run of a case on the design that has its bug; nothing where the report does not tell the case."""
    story = q.story(m.stories)
    if story is None:
        return ""
    case = story.case
    settings = ", ".join(
        f"{k.replace('_', '-')} {as_option(v)}" for k, v in case.settings.items() if k in ANSWER_SETTINGS
    )
    about = f"{story.bug_run.design}, {settings}; {case.property_name}"
    return _answer_of_run(q, story.bug_run, about, story.page)


def _answer_of_check(m: Material, q: Question) -> str:
    """By a run of its own; nothing where the report did not run it."""
    answer = m.checks.get(q.check)
    return _answer_of_run(q, answer.run, answer.run.command, answer.page) if answer is not None else ""


def _answer_of_run(q: Question, run: Control, about: str, page: str) -> str:
    """`page`: where the counterexample is shown, if there is one."""
    if run.verdict in HOLDS:
        shown = link(run.run, f"{'not in any of' if q.holds == 'No' else 'in all'} {run.distinct:,} states")
        return _answer("holds", q.holds, q.asks, about, shown)
    if run.verdict == "VIOLATED":
        shown = link(page, f"a counterexample of {count_text(run.depth or 0, 'step')}")
        return _answer("violated", q.breaks, q.asks, about, shown)
    return _answer("open", "Undecided", q.asks, about, link(run.run, run.verdict))


def as_option(value: object) -> str:
    """A setting as the command line has it."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _answer(kind: str, word: str, asks: str, about: str, proof: str) -> str:
    said = f'<b class="{kind}">{word}</b> {proof}' if proof else f'<b class="{kind}">{word}</b>'
    return f'<li class="{kind}"><h3>{escape(asks)}</h3><p>{said}</p><p class="quiet">{escape(about)}</p></li>'


def grid(m: Material) -> str:
    names = list(m.matrix["promises"])
    kinds = {p["name"]: p["kind"] for c in m.matrix["cells"] for p in c["promises"]}
    promises = [n for n in names if kinds.get(n, "").startswith(("always", "step", "eventually"))]
    first = promises[0] if promises else ""
    buttons = "".join(
        f'<button type="button" class="promise" value="{n}" aria-pressed="{str(n == first).lower()}">{n}</button>'
        for n in promises
    )
    says = escape(m.matrix["promises"].get(first, ""))
    panels = "".join(_panel(m, f["name"], f["says"], first) for f in m.matrix["faults"])
    return (
        f'<div class="promises" role="group" aria-label="promise">{buttons}</div>'
        f'<p id="promise-says" class="quiet">{says}</p><div class="panels">{panels}</div>'
    )


def signs() -> str:
    """What stands in the squares of the grid."""
    shown = {**SIGNS, "violated": SAMPLE}
    keys = "".join(
        f'<div><dt><i class="sign {kind}" aria-hidden="true">{shown[kind]}</i></dt><dd>{says}</dd></div>'
        for kind, says in SIGN_MEANINGS.items()
    )
    return f'<dl class="key-faults" aria-label="squares">{keys}</dl>'


def columns(matrix: Matrix) -> list[dict[str, str]]:
    """The combinations of settings, what changes most slowly first: the last setting of the plan."""
    names = list(reversed(matrix["settings"]))
    values = [list(reversed(matrix["settings"][n])) if n == names[0] else matrix["settings"][n] for n in names]
    return [dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*values)]


def _panel(m: Material, fault: str, says: str, promise: str) -> str:
    here = [(i, c) for i, c in enumerate(m.matrix["cells"]) if c["fault"] == fault]
    shown_columns = [
        column for column in columns(m.matrix) if any(c["settings"].items() <= column.items() for _, c in here)
    ]
    rows: list[str] = []
    for design in m.matrix["designs"]:
        own = [(i, c) for i, c in here if c["design"] == design["name"]]
        if not own:
            continue
        squares: list[str] = []
        for column in shown_columns:
            i, cell = next(((i, c) for i, c in own if c["settings"].items() <= column.items()), (-1, None))
            squares.append(f"<td>{_square(m, i, cell, promise)}</td>" if cell is not None else "<td></td>")
        rows.append(
            f'<tr><th scope="row" title="{escape(design["summary"])}">{design["name"]}</th>{"".join(squares)}</tr>'
        )
    heads = "".join(_head(m.matrix, n, shown_columns) for n in shown_columns[0]) if shown_columns else ""
    return (
        f'<figure class="fault"><figcaption>{escape(says)}</figcaption>'
        f'<table class="grid"><thead>{heads}</thead><tbody>{"".join(rows)}</tbody></table></figure>'
    )


def _head(matrix: Matrix, name: str, shown_columns: list[dict[str, str]]) -> str:
    groups = [(value, len(list(g))) for value, g in itertools.groupby(c[name] for c in shown_columns)]
    cells = "".join(f'<th colspan="{n}">{escape(value)}</th>' for value, n in groups)
    return f"<tr><th>{escape(name.replace('_', ' '))}</th>{cells}</tr>"


def _square(m: Material, i: int, cell: CellEntry, promise: str) -> str:
    said = verdict_of(cell, promise)
    kind = kind_of(said)
    text = str(said["depth"]) if said is not None and kind == "violated" else SIGNS[kind]
    href = target(m, str(said["trace"])) if said is not None and said["trace"] else f"{m.folder}/{cell['run']}"
    label = f"{cell['name']}: {said['verdict'] if said else 'not promised'}"
    return link(href, text, f"square {kind}").replace("<a ", f'<a data-i="{i}" aria-label="{escape(label)}" ', 1)


def together(t: Together | None, captions: Sequence[str] = ()) -> str:
    """Both schedules, a row for each step; under the step what `captions` says of it."""
    if t is None:
        return '<p class="quiet">The corpus that was given has no such schedule.</p>'
    lines = [_moment("T0", "the start", "", picture(t.here, 0), picture(t.there, 0))]
    for i, step in enumerate(t.here.steps, 1):
        right = picture(t.there, t.upto[i])
        if t.refusals[i]:
            right = f'<p class="refused"><b>Refused</b> {code(t.refusals[i])}</p>{right}'
        parted = "parted" if t.refusals[i] else ""
        left = picture(t.here, i)
        if captions:
            left = f"<p>{escape(captions[i - 1])}</p>{left}"
        lines.append(_moment(f"T{i}", t.here.step_text(step), parted, left, right))
    head = f'<div class="moment head"><span></span><b>{escape(t.here_label)}</b><b>{escape(t.there_label)}</b></div>'
    return f'<div class="together">{head}{"".join(lines)}</div><p>{link(t.page, "Walk through it")}</p>'


def _moment(when: str, what: str, kind: str, left_side: str, right: str) -> str:
    return (
        f'<div class="moment {kind}"><div class="when"><b>{when}</b><code>{escape(what)}</code></div>'
        f"<div>{left_side}</div><div>{right}</div></div>"
    )


def stories(story_list: list[Story]) -> str:
    cards: list[str] = []
    for s in story_list:
        last = len(s.trace.states) - 1
        about = f"{code(s.case.property_name)} on {code(s.case.design)} in {len(s.trace.steps)} steps"
        known = f'<p class="tracker">{escape(", ".join(s.case.tracker))}</p>' if s.case.tracker else ""
        cards.append(
            f'<li class="card"><div class="shot">{picture(s.trace, last)}</div>{known}'
            f"<h3>{link(s.page, escape(s.case.title))}</h3>{prose(s.case.result)}"
            f'<p class="quiet">{about}</p></li>'
        )
    return f'{FILTER}<ul class="cards">{"".join(cards)}</ul>'


def scenes(scene_list: list[PlayedScene]) -> str:
    return "".join(_scene(p) for p in scene_list)


def _scene(p: PlayedScene) -> str:
    beats = "".join(
        f'<li><span class="when">T{i}</span><div>{picture(p.trace, i)}</div><p>{escape(beat.says)}</p></li>'
        for i, beat in enumerate(p.scene.beats, 1)
    )
    body, walk = f'<ol class="beats">{beats}</ol>', f"<p>{link(p.page, 'Walk through it')}</p>"
    if p.beside is not None:
        body, walk = together(p.beside, [beat.says for beat in p.scene.beats]), ""
    end = (
        f'<p class="verdict-line">In the end {code(p.scene.breaks)} is broken, and not before.</p>'
        if p.scene.breaks
        else '<p class="verdict-line">No promise is broken at any step.</p>'
    )
    return (
        f'<details class="scene"><summary><b>{escape(p.scene.title)}</b><span class="quiet">{code(p.scene.design)}, '
        f"{len(p.scene.beats)} steps</span></summary>{prose(p.scene.lesson)}"
        f"{body}{end}{walk}</details>"
    )


def alternatives(alternative_list: list[Alternative]) -> str:
    """What was proposed, or left out a rule, and the trace that killed it; of what was not run only that it was not."""
    rows = [
        (
            f"<b>{escape(a.design)}</b><br><span class='quiet'>{escape(a.summary)}</span>",
            escape(a.because),
            f"{link(a.story.page, escape(a.story.case.name))}, {len(a.story.trace.steps)} steps",
        )
        for a in alternative_list
        if a.story is not None
    ]
    others = ", ".join(code(a.design) for a in alternative_list if a.story is None)
    rest = f'<p class="quiet">Not run for this page, which says nothing of them: {others}.</p>' if others else ""
    ran = (
        '<p class="quiet">Each was explored for this page, and stands beside the behaviour that speaks against it.</p>'
    )
    return (ran + table(("alternative", "why not", "the trace that killed it"), rows) if rows else "") + rest


def controls(m: Material) -> str:
    rows = [
        (link(s.page, escape(s.case.name)), code(s.case.property_name), *_control(s.bug_run), *_control(s.fix_run))
        for s in m.stories
    ]
    header = ("story", "promise", "where it is", "verdict", "states", "where it is mended", "verdict", "states")
    seen = probes_table(m.matrix, m.folder, m.pages)
    about = "What must be able to happen, lest a promise hold because nothing does; a witness can be walked through."
    return f'{table(header, rows, numbers=(4, 7))}<h3>Reachability probes</h3><p class="quiet">{about}</p>{seen}'


def _control(c: Control | None) -> tuple[str, str, str]:
    if c is None:
        return "what the setting means", "", ""
    steps = f" in {c.depth}" if c.depth else ""
    return code(c.design), f'<span class="whole">{verdict(c.verdict)}{steps}</span>', link(c.run, f"{c.distinct:,}")


def reproduce(claims: list[Claim]) -> str:
    rows = [(link(c.run, escape(c.says)), command(c.command)) for c in claims]
    return f"<details><summary>All {len(claims):,} commands</summary>{table(('claim', 'command'), rows)}</details>"
