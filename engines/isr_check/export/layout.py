"""Layout of expressions: on one line where they fit, else broken where a person would break them.

A term is a row of texts, smaller terms and places where a line may end. Whoever makes a term puts parentheses around
the parts that bind too loosely. A junction (a list of conjuncts or disjuncts) needs parentheses on one line only: as a
bulleted list it is delimited by its indentation.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import attrs

WIDTH = 100

# From loosest to tightest. OPEN terms (IF, quantifiers) reach as far to the right as they can.
OPEN, IMPLIES, EQUIVALENT, JUNCTION, NOT, COMPARE, SETS, RANGE, PLUS, MINUS, ATOM = range(11)


@attrs.frozen
class Break:
    """A place where a line may end. The next line starts `indent` columns to the right of the term's beginning.

    `flat` stands here if the line does not end.
    """

    indent: int = 0
    flat: str = " "


@attrs.frozen
class Loose:
    """A term that gets parentheses only when it takes several lines."""

    term: Term


@attrs.frozen
class Term:
    """An expression: its parts, how tightly it binds (`level`), and the whole of it on one line (`flat`).

    With a `bullet` the term is a junction and its parts are the items.
    """

    parts: tuple[str | Break | Loose | Term, ...]
    level: int = ATOM
    bullet: str = ""
    flat: str = attrs.field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "flat", self._flat())

    def _flat(self) -> str:
        if self.bullet:
            items = [p for p in self.parts if isinstance(p, Term)]
            return f" {self.bullet} ".join(at_least(i, NOT).flat for i in items)
        texts: list[str] = []
        for part in self.parts:
            match part:
                case str():
                    texts.append(part)
                case Term():
                    texts.append(part.flat)
                case Loose():
                    texts.append(part.term.flat)
                case Break():
                    texts.append(part.flat)
        return "".join(texts)


def at_least(term: Term, level: int) -> Term:
    """The term, in parentheses if it binds more loosely than `level`."""
    return term if term.level >= level else Term(("(", term, ")"))


def junction(bullet: str, items: Sequence[Term]) -> Term:
    """The conjunction or disjunction of the items; an item that is a junction of the same kind is merged into it."""
    flattened: list[Term] = []
    for item in items:
        flattened += [p for p in item.parts if isinstance(p, Term)] if item.bullet == bullet else [item]
    return Term(tuple(flattened), JUNCTION, bullet) if len(flattened) > 1 else flattened[0]


def lines(term: Term, width: int, force: bool = False) -> list[str]:
    """The term on as few lines as the width allows; `force`: a junction becomes a list even if it fits on one line."""
    if len(term.flat) <= width and not (force and term.bullet):
        return [term.flat]
    block: list[str] = []
    if term.bullet:
        for item in term.parts:
            if isinstance(item, Term):
                block += hang(f"{term.bullet} ", lines(item, width - len(term.bullet) - 1, force=True))
        return block
    block.append("")
    for part in term.parts:
        match part:
            case str():
                block[-1] += part
            case Break():
                block.append(" " * part.indent)
            case Loose() | Term():
                inner = part.term if isinstance(part, Loose) else part
                room = width - len(block[-1])
                if isinstance(part, Loose) and len(inner.flat) > room:
                    inner = Term(("(", inner, ")"))
                block[-1:] = hang(block[-1], lines(inner, room))
    return block


def hang(prefix: str, block: Sequence[str]) -> list[str]:
    """The block with the prefix before its first line, and all other lines indented by the prefix's width."""
    return [prefix + block[0], *(" " * len(prefix) + line for line in block[1:])]


def wrapped_list(items: Sequence[str], width: int, separator: str = ", ") -> list[str]:
    """The items separated by commas, wrapped."""
    block = [""]
    for i, item in enumerate(items):
        text = item + (separator.rstrip() if i < len(items) - 1 else "")
        if block[-1] and len(block[-1]) + 1 + len(text) > width:
            block.append("")
        block[-1] += (" " if block[-1] else "") + text
    return block


def paragraphs(text: str, width: int) -> list[str]:
    """A docstring wrapped paragraph by paragraph; indented lines and list items stay as they are."""
    block: list[str] = []
    for paragraph in text.strip().split("\n\n"):
        if block:
            block.append("")
        kept = any(line.startswith((" ", "- ", "* ")) for line in paragraph.splitlines())
        block += paragraph.splitlines() if kept else textwrap.wrap(paragraph, width)
    return block
