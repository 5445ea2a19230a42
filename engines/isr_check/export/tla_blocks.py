"""The lines of a TLA+ module: comments, declarations, definitions, bulleted lists."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from inspect import cleandoc

from isr_check.export.layout import WIDTH, Term, hang, lines, paragraphs, wrapped_list


def argument_list(names: Sequence[str]) -> str:
    return f"({', '.join(names)})" if names else ""


def comment(doc: str) -> list[str]:
    return [f"\\* {line}".rstrip() for line in paragraphs(cleandoc(doc), WIDTH - 3)] if doc.strip() else []


def tuple_of(name: str, members: Sequence[str]) -> list[str]:
    block = hang(f"{name} == <<", wrapped_list(members, WIDTH - len(name) - 8))
    return [*block[:-1], block[-1] + ">>"]


def bullets(items: Sequence[Term]) -> list[str]:
    """A bulleted conjunction; a single item has a bullet, too."""
    block: list[str] = []
    for item in items:
        for conjunct in item.parts if item.bullet == "/\\" else (item,):
            if isinstance(conjunct, Term):
                block += hang("/\\ ", lines(conjunct, WIDTH - 7, force=True))
    return block


def head_and_body(head: str, body: Term) -> list[str]:
    """`head body` on one line if it fits, else the body on the lines below."""
    if len(head) + 1 + len(body.flat) <= WIDTH and not body.bullet:
        return [f"{head} {body.flat}"]
    return [head, *("    " + line for line in lines(body, WIDTH - 4, force=True))]


def declaration(keyword: str, entries: Sequence[tuple[str, str]]) -> list[str]:
    """A declaration of CONSTANTS or VARIABLES, each with its meaning in a comment beside it."""
    column = max(len(name) for name, _ in entries) + 1
    block = [keyword]
    for i, (name, doc) in enumerate(entries):
        comma = "," if i < len(entries) - 1 else ""
        said = textwrap.wrap(" ".join(doc.split()), WIDTH - 9 - column)
        block += [f"    {name + comma:<{column}}  \\* {said[0]}" if said else f"    {name}{comma}"]
        block += [f"    {'':<{column}}  \\* {more}" for more in said[1:]]
    return block
