"""How prose reads, in numbers: sentences of a Markdown page, their words, and their semicolons.

Code, tables, headings, link targets and pictures are not prose. A list item is a sentence of its own at least. The
goal (CONTRIBUTING.md) is a page's: at most `MEAN` words a sentence, `LONG_SHARE` of them over `LONG` words, and
`SEMICOLONS` a sentence.
"""

import re
from collections.abc import Iterator

import attrs

MEAN = 16.0
LONG = 30
LONG_SHARE = 0.06
SEMICOLONS = 0.05

FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
CODE = re.compile(r"`[^`]+`")
END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[*_]*[A-Z0-9`])")
WORD = re.compile(r"[^\s\u2013\u2014|]*\w[^\s\u2013\u2014|]*")
ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")


@attrs.frozen
class Prose:
    """The sentences of one page, in order."""

    sentences: tuple[str, ...]

    @property
    def lengths(self) -> tuple[int, ...]:
        """Words of each sentence; a piece of code is one word."""
        return tuple(len(WORD.findall(sentence)) for sentence in self.sentences)

    @property
    def mean(self) -> float:
        """Words a sentence."""
        return sum(self.lengths) / len(self.lengths) if self.lengths else 0.0

    @property
    def long_share(self) -> float:
        """The share of sentences of more than `LONG` words."""
        return sum(n > LONG for n in self.lengths) / len(self.lengths) if self.lengths else 0.0

    @property
    def semicolons(self) -> float:
        """Semicolons a sentence."""
        return sum(s.count(";") for s in self.sentences) / len(self.sentences) if self.sentences else 0.0


def prose_of(page: str) -> Prose:
    """The prose of a page in Markdown."""
    return Prose(tuple(sentence for block in _blocks(page) for sentence in _sentences(block)))


def _blocks(page: str) -> Iterator[str]:
    """Paragraphs and list items, each in one line."""
    block: list[str] = []
    for line in (*COMMENT.sub("", FENCE.sub("", page)).splitlines(), ""):
        text, item = line.strip(), ITEM.match(line)
        code = line.startswith(("    ", "\t")) and not block and not item  # inside a paragraph an indented line goes on
        apart = not text or code or text.startswith(("|", "#", "---", "==="))
        if block and (apart or item):
            yield " ".join(block)
            block = []
        if not apart:
            block.append(ITEM.sub("", line).strip().lstrip("> "))


def _sentences(block: str) -> Iterator[str]:
    text = CODE.sub(lambda code: "`" + re.sub(r"\W", "_", code[0]) + "`", LINK.sub(r"\1", PICTURE.sub("", block)))
    for sentence in END.split(text):
        if len(WORD.findall(sentence)) > 1:
            yield sentence
