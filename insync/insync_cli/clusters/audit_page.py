"""The page of an audit: the shortest way to each loss, as `insync show --html` draws it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from insync_cli.clusters.audit_text import Audit, losses, title
from insync_cli.exits import InputError
from insync_cli.terminal import write_text
from insync_cli.view.pages import roomier
from insync_cli.view.remedy import mender, remedy
from isr_check.reference import Evaluator
from isr_trace.itf import itf_text
from isr_visual.document import Model, document
from isr_visual.page import page

if TYPE_CHECKING:
    from isr_audit.answers import Answer
    from isr_visual.document import Document


def write_page(audit: Audit, file: Path) -> None:
    """One page with every loss of every row, each once; InputError where nothing is lost."""
    lost = [(line.answer, f"{title(row)}: {line.fault.says}") for row in audit.rows for line, _ in losses(row)]
    made = [_described(answer, name) for answer, name in lost if answer is not None]
    if not made:
        raise InputError("nothing is lost, so there is no page to write")
    write_text(file, page(made, "insync audit: the shortest way to each loss"))


def _described(answer: Answer, name: str) -> tuple[Document, str]:
    trace = answer.trace()
    assert trace is not None, "a loss has a trace"
    instance = answer.question.instance()
    evaluator = Evaluator(instance)
    other = mender(trace, evaluator)
    model = Model(evaluator, roomier(instance.design, instance.constants), other)
    found = remedy(trace, evaluator, other)
    todo = (found.says, found.commands) if found is not None else None
    return document(trace, name, model=model, todo=todo), itf_text(trace)
