"""The page of an audit: what is said in the terminal, and below it the shortest way to each loss, to walk through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from insync_cli.clusters import audit_text
from insync_cli.clusters.audit_text import Audit, losses, title
from insync_cli.terminal import write_text
from insync_cli.view.pages import roomier
from insync_cli.view.remedy import mender, remedy
from isr_audit.audit import MAY_BE_LOST, SURVIVES, Row
from isr_check.reference import Evaluator
from isr_trace.itf import itf_text
from isr_visual.document import Model, document
from isr_visual.page import page

if TYPE_CHECKING:
    from isr_audit.answers import Answer
    from isr_audit.audit import Line
    from isr_visual.document import Document

KINDS: Final = {SURVIVES: "survives", MAY_BE_LOST: "lost"}
"""How an answer is shown; any other is open."""


def write_page(audit: Audit, file: Path) -> None:
    """The page as a file; UsageError where it cannot be written."""
    write_text(file, page_of(audit))


def page_of(audit: Audit) -> str:
    """One page with every row, and every loss of every row once."""
    lost = [(line.answer, f"{title(row)}: {line.fault.says}") for row in audit.rows for line, _ in losses(row)]
    documents: dict[str, tuple[Document, str]] = {}
    for answer, name in lost:
        if answer is not None and answer.command not in documents:
            documents[answer.command] = _document_of(answer, name)
    links = {
        command: f"#t={document['story']['breaks'] or 0}&trace={document['digest']}"
        for command, (document, _) in documents.items()
    }
    return page(list(documents.values()), "insync audit: what this cluster can lose", _overview(audit, links))


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


def _overview(audit: Audit, links: dict[str, str]) -> str:
    parts = [
        "<h1>What can this cluster lose?</h1>",
        f'<p class="quiet">{escape(audit_text.about(audit))}</p>',
        f'<p class="result">{escape(audit_text.result_line(audit))}</p>',
        _items(f"note: {note}" for note in audit_text.notes(audit)),
        "<h2>Now</h2>",
        _items(audit_text.now_lines(audit)),
        "<h2>What survives, of what was acknowledged with acks=all</h2>",
        _summary(audit.rows),
        f'<p class="quiet">{escape(audit_text.LEGEND)}</p>',
        *(_row(row, n, links) for n, row in enumerate(audit.rows)),
    ]
    known = list(audit_text.bug_lines(audit))
    parts += [f"<h2>{audit_text.BUGS}</h2>", _items(known)] if known else []
    return "\n".join(parts)


def _summary(rows: Sequence[Row]) -> str:
    """A row for each kind of topic, a column for each fault that every kind has an answer to."""
    faults = [line.fault for line in rows[0].lines if line.acks == "all"] if rows else []
    head = ["topics", *(fault.says if fault.name != "rack" else "a rack" for fault in faults)]
    body = [
        [f'<a href="#row-{n}">{escape(title(row))}</a>', *(_answer(x) for x in row.lines if x.acks == "all")]
        for n, row in enumerate(rows)
    ]
    return _table(head, body)


def _row(row: Row, n: int, links: dict[str, str]) -> str:
    cells = [
        [escape(acks), f'<span class="answer {KINDS.get(verdict, "")}">{escape(verdict)}</span>', escape(when)]
        for acks, verdict, when in audit_text.table(row)
    ]
    parts = [
        f'<h2 id="row-{n}">{escape(title(row))}</h2>',
        _items(f"note: {note}" for note in row.notes),
        _table(["", "what was acknowledged", "when this fails"], cells),
        f"<p>{escape(audit_text.stopping(row))}</p>",
        *(_loss(first, same, links) for first, same in losses(row)),
    ]
    runs = _items((f"<code>{escape(command)}</code>" for command in audit_text.commands_without_loss(row)), text=False)
    parts.append(f"<details><summary>Runs in which nothing is lost, or nothing was decided</summary>{runs}</details>")
    return "\n".join(parts)


def _loss(line: Line, same: Sequence[Line], links: dict[str, str]) -> str:
    assert line.answer is not None, "a loss has a run"
    command = line.answer.command
    steps = "".join(f"<li>{escape(sentence)}</li>" for sentence in audit_text.steps_told(line.answer))
    advice = "".join(f'<p class="advice">{escape(said)}</p>' for said in audit_text.advice_for(same))
    return (
        f'<section class="way"><h3>acks={line.acks}, what fails: {escape(line.fault.says)}</h3>'
        f"<ol>{steps}</ol>{advice}"
        f'<p><a href="{escape(links[command])}">Walk through it</a>, or run it again: '
        f"<code>{escape(command)}</code></p></section>"
    )


def _answer(line: Line) -> str:
    return f'<span class="answer {KINDS.get(line.verdict, "")}">{escape(line.verdict)}</span>'


def _items(lines: Iterable[str], *, text: bool = True) -> str:
    items = "".join(f"<li>{escape(line) if text else line}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells of the body are HTML."""
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<div class="wide"><table><thead><tr>{"".join(f"<th>{escape(h)}</th>" for h in head)}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
