"""Names in an exported module: legal in its language, claimed once, and as close to the model's names as possible."""

from __future__ import annotations

import re
from collections.abc import Iterable


def camel(name: str) -> str:
    """`high_mark` and `high-mark` as `HighMark`; `2pc` as `M2pc`, since a name begins with a letter."""
    words = re.findall(r"[A-Za-z0-9]+", name)
    joined = "".join(w[0].upper() + w[1:] for w in words)
    return joined if joined[:1].isalpha() else f"M{joined}"


def small_camel(name: str) -> str:
    """`high_mark` as `highMark`."""
    joined = camel(name)
    return joined[0].lower() + joined[1:]


def snake(name: str) -> str:
    """`high-mark` as `high_mark`."""
    joined = "_".join(re.findall(r"[A-Za-z0-9]+", name))
    return joined if joined[:1].isalpha() else f"m_{joined}"


class Names:
    """The names that are taken; `reserved_words`: the target language's, `keywords`: taken in any case."""

    def __init__(self, reserved_words: Iterable[str], keywords: Iterable[str] = ()) -> None:
        self.names_in_use = set(reserved_words)
        self.keywords = frozenset(keywords)

    def claim(self, *preferred: str) -> str:
        """Take the first of the preferred names that is free; if none is, the last one with a number."""
        name = self.free(*preferred)
        self.names_in_use.add(name)
        return name

    def free(self, *preferred: str, beside: frozenset[str] = frozenset()) -> str:
        """A name chosen as by `claim`, but not taken: for a local that hides no name that is taken or in `beside`."""
        numbered = (f"{preferred[-1]}{n}" for n in range(2, len(self.names_in_use) + len(beside) + 3))
        barred = self.names_in_use | beside
        return next(n for n in (*preferred, *numbered) if n not in barred and n.lower() not in self.keywords)
