"""What a verdict does not speak of, at the end of the line that is quoted.

A verb may be asked of a part: one promise, one anomaly, one topic. Its word and its exit code are those of the part,
and its last line counts what was left out. A part from which nothing follows (`prove --only`) is PARTIAL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from insync_cli.terminal import count

MOST_NAMES = 3
"""So many promises are named where they hold; more are counted."""


def omissions_text(*rests: tuple[int, str, str]) -> str:
    """`not judged: 4 liveness promises, 3 promises off`, of counts, nouns and what else is said of them; or nothing."""
    parts = [f"{count(number, noun)}{more}" for number, noun, more in rests if number]
    return f"not judged: {', '.join(parts)}" if parts else ""


def others_text(part: Iterable[str], whole: Sequence[str], noun: str) -> str:
    """The same of a whole of which these were part, each by its name."""
    left = set(whole) - set(part)
    return omissions_text((len(left), f"other {noun}", ""))


def subject_and_ending(names: Sequence[str], noun: str, *, by_name: bool) -> tuple[str, str]:
    """The subject of a sentence, and the ending of its verb: `acked-survives`, `s`; or `20 promises` and nothing."""
    if by_name and 0 < len(names) <= MOST_NAMES:
        subject = f"{', '.join(names[:-1])} and {names[-1]}" if names[1:] else names[0]
    else:
        subject = count(len(names), noun)
    return subject, "" if names[1:] else "s"
