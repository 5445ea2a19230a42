"""The page of an audit: what is said in the terminal, and below it the shortest way to each loss, to walk through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from insync_cli.clusters import audit_brokers, audit_short, audit_text
from insync_cli.clusters.audit_text import losses, title
from insync_cli.terminal import write_text
from insync_cli.view.pages import roomier
from insync_cli.view.remedy import mender, remedy
from isr_audit.audit import MAY_BE_LOST, SURVIVES, Row
from isr_check.reference import Evaluator
from isr_trace.itf import itf_text
from isr_visual.document import Model, document
from isr_visual.overview import items, table
from isr_visual.page import page

if TYPE_CHECKING:
    from isr_audit.advice import AdviceStep
    from isr_audit.answers import Answer
    from isr_audit.audit import Change, Line
    from isr_audit.report import Audit
    from isr_drill.outlook import Outlook
    from isr_visual.document import Document

TIME_MARK: Final = "<!-- when this was seen -->"
"""Where a page that is served says when."""
KINDS: Final = {SURVIVES: "survives", MAY_BE_LOST: "lost"}
"""How an answer is shown; any other is open."""


def write_page(audit: Audit, file: Path, whose: Sequence[Outlook] | None = None) -> None:
    """The page as a file; UsageError where it cannot be written. `whose`: of brokers, where these were asked about."""
    write_text(file, page_of(audit, whose))


def page_of(audit: Audit, whose: Sequence[Outlook] | None = None) -> str:
    """One page with every row, and every loss of every row once, and what the next deed at each broker does."""
    lost = [(line.answer, f"{title(row)}: {line.fault.says}") for row in audit.rows for line, _ in losses(row)]
    documents: dict[str, tuple[Document, str]] = {}
    for answer, name in lost:
        if answer is not None and answer.command not in documents:
            documents[answer.command] = _document_of(answer, name)
    links = {
        command: f"#t={document['story']['breaks'] or 0}&trace={document['digest']}"
        for command, (document, _) in documents.items()
    }
    return page(list(documents.values()), "insync audit: what this cluster can lose", _overview(audit, links, whose))


def _document_of(answer: Answer, name: str) -> tuple[Document, str]:
    trace = answer.trace()
    assert trace is not None, "a loss has a trace"
    instance = answer.question.instance()
    evaluator = Evaluator(instance)
    other = mender(trace, evaluator)
    model = Model(evaluator, roomier(instance.design, instance.constants), other)
    found = remedy(trace, evaluator, other)
    todo = (found.says, found.commands) if found is not None else None
    return document(trace, name, model=model, todo=todo), itf_text(trace)


# What stands above the traces


def _overview(audit: Audit, links: dict[str, str], whose: Sequence[Outlook] | None) -> str:
    parts = [
        "<h1>What can this cluster lose?</h1>",
        TIME_MARK,
        f'<p class="result">{escape(audit_short.decision(audit))}</p>',
        f'<p class="quiet">{escape(audit_text.about(audit))}</p>',
        _summary(audit.rows),
        *([f"<p>{escape(said)}</p>"] if (said := audit_text.controllers(audit)) else []),
        f'<p class="quiet">{escape(audit_text.LEGEND)} Not judged: {audit_text.NOT_JUDGED}.</p>',
        "<h2>Now</h2>",
        items(audit_text.now_lines(audit)),
        *_brokers(audit, whose),
        *(_plan(*plan) for plan in audit_text.plans(audit)),
        items(f"note: {note}" for note in audit_text.notes(audit)),
        *(_row(row, n, links) for n, row in enumerate(audit.rows)),
    ]
    known = list(audit_text.bug_lines(audit))
    parts += [f"<h2>{audit_text.BUGS}</h2>", items(known)] if known else []
    return "\n".join(parts)


def _brokers(audit: Audit, whose: Sequence[Outlook] | None) -> Iterator[str]:
    """Which may be restarted now, and a line for each broker; nothing where nobody asked."""
    if whose is None:
        return
    yield f"<h2>{audit_brokers.TITLE}</h2>"
    yield f"<p>{escape(audit_brokers.verdict(whose, len(audit.cluster.omissions)))}</p>"
    if whose:
        yield table(audit_brokers.HEADER, ([*map(escape, row)] for row in audit_brokers.rows(whose)))
    yield items(audit_brokers.footnotes(whose))


def _plan(topics: str, change: Change, steps: Sequence[AdviceStep]) -> str:
    """What to do, in order, with what to type."""
    lines = "".join(
        f"<li>{escape(step.says)}"
        + "".join(f"<br><code>{escape(line)}</code>" for line in audit_text.lines_to_type(step))
        + "</li>"
        for step in steps
    )
    price = escape(", and ".join(change.costs))
    title = escape(f"{topics}: {' and '.join(change.settings)}")
    return f'<h2>What to change of {title}</h2><ol>{lines}</ol><p class="advice">The price: {price}</p>'


def _summary(rows: Sequence[Row]) -> str:
    """A row for each kind of topic, a column for each fault that every kind has an answer to."""
    faults = [line.fault for line in rows[0].lines if line.acks == "all"] if rows else []
    head = ["topics", *(fault.says if fault.name != "rack" else "a rack" for fault in faults)]
    body = [
        [f'<a href="#row-{n}">{escape(title(row))}</a>', *(_answer(x) for x in row.lines if x.acks == "all")]
        for n, row in enumerate(rows)
    ]
    return table(head, body)


def _row(row: Row, n: int, links: dict[str, str]) -> str:
    cells = [
        [escape(acks), f'<span class="answer {KINDS.get(verdict, "")}">{escape(verdict)}</span>', escape(when)]
        for acks, verdict, when in audit_text.table(row)
    ]
    parts = [
        f'<h2 id="row-{n}">{escape(title(row))}</h2>',
        items(f"note: {note}" for note in row.notes),
        table(audit_text.TABLE, cells),
        f"<p>{escape(audit_text.stopping(row))}</p>",
        *(_loss(row, first, same, links) for first, same in losses(row)),
        *_ways(row),
    ]
    runs = items((f"<code>{escape(command)}</code>" for command in audit_text.commands_without_loss(row)), text=False)
    parts.append(f"<details><summary>Runs in which nothing is lost, or nothing was decided</summary>{runs}</details>")
    return "\n".join(parts)


def _ways(row: Row) -> Iterator[str]:
    """What else loses a record of these topics on Kafka as it is released."""
    for text in audit_text.ways_title(row):
        yield f"<p>{escape(text)}:</p>"
    told = (
        f"{escape(audit_text.way_text(row, way))}<br><code>{escape(way.answer.command)}</code>"
        for way in row.ways_to_loss
    )
    yield items(told, text=False)
    yield from (f"<p>{escape(text)}</p>" for text in audit_text.ways_rest(row))


def _loss(row: Row, line: Line, same: Sequence[Line], links: dict[str, str]) -> str:
    assert line.answer is not None, "a loss has a run"
    command = line.answer.command
    steps = "".join(
        f"<li>{escape(sentence)}</li>" for sentence in audit_text.steps_told(line.answer, audit_text.example_of(row))
    )
    advice = "".join(f'<p class="advice">{escape(said)}</p>' for said in audit_text.advice_for(same))
    return (
        f'<section class="way"><h3>{escape(audit_text.loss_title(row, line))}</h3>'
        f"<ol>{steps}</ol>{advice}"
        f'<p><a href="{escape(links[command])}">Walk through it</a>, or run it again: '
        f"<code>{escape(command)}</code></p></section>"
    )


def _answer(line: Line) -> str:
    return f'<span class="answer {KINDS.get(line.verdict, "")}">{escape(line.verdict)}</span>'
