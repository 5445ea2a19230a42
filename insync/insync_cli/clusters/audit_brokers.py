"""What the next deed at each broker does, in words: which may be restarted now, and what a failure stops or loses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from insync_cli import terminal
from insync_cli.clusters.audit_text import some_names
from insync_cli.clusters.drill_text import TIMEOUT
from insync_cli.omissions import omissions_text

if TYPE_CHECKING:
    from rich.console import Console

    from isr_drill.outlook import Deed, Outlook

HEADER: Final = ("broker", "restarted in order", "gone with its disk")
TITLE: Final = "Which brokers may be restarted now"
MOST_NAMES: Final = 2
STILL: Final = "stop only what stands still already"


def show(out: Console, outlooks: Sequence[Outlook], omissions: int = 0) -> None:
    """Who may be restarted now, and a line for each broker. `omissions`: how many topics nobody asked about."""
    out.print()
    terminal.print_wrapped(out, verdict(outlooks, omissions), 0)
    if outlooks:
        terminal.print_table(out, HEADER, rows(outlooks), indent=0)
    for line in footnotes(outlooks):
        terminal.print_wrapped(out, line, 0)


def rows(outlooks: Iterable[Outlook]) -> list[tuple[str, str, str]]:
    """A line for each broker."""
    return [(str(o.broker), words(o.restart), words(o.failure)) for o in outlooks]


def footnotes(outlooks: Iterable[Outlook]) -> list[str]:
    """What a failure does besides, and why something is UNKNOWN, each reason once."""
    reasons = dict.fromkeys(d.because for o in outlooks for d in (o.restart, o.failure) if d.because)
    gap = f"What a broker leads that is gone has no leader until its session ends ({TIMEOUT})"
    return [*([gap] if outlooks else []), *(f"UNKNOWN: {reason}" for reason in reasons)]


def verdict(outlooks: Sequence[Outlook], omissions: int = 0) -> str:
    """Which brokers may be restarted now, each alone; a drill of each that may says YES."""
    if not outlooks:
        return f"{TITLE}: it was not told which run"
    may = [o.broker for o in outlooks if o.restart.is_harmless]
    no_worse = [o.broker for o in outlooks if o.restart.is_no_worse]
    may_not = [o.broker for o in outlooks if (o.restart.loses or o.restart.stops) and o.broker not in no_worse]
    rest = [o.broker for o in outlooks if o.broker not in {*may, *may_not, *no_worse}]
    groups = (("not", may_not), (STILL, no_worse), ("UNKNOWN", rest))
    parts = [f"{what}: {numbers(some)}" for what, some in groups if some]
    whole = "May be restarted now, one at a time and each once all are in sync again"
    left = omissions_text((omissions, "other topic", ", of which they may have partitions"))
    return "; ".join(filter(None, [f"{whole}: {numbers(may) or 'none'}", *parts, left]))


def markdown(outlooks: Sequence[Outlook], omissions: int = 0) -> str:
    """The same for a ticket."""
    table = [HEADER, ("---",) * len(HEADER), *rows(outlooks)] if outlooks else []
    lines = ["", f"## {TITLE}", "", verdict(outlooks, omissions), "", *(f"| {' | '.join(row)} |" for row in table), ""]
    return "\n".join([*lines, *(f"- {line}" for line in footnotes(outlooks)), ""])


def numbers(brokers: Sequence[int]) -> str:
    return " ".join(map(str, brokers))


def words(deed: Deed) -> str:
    """What a deed stops, and what it may lose."""
    parts = (("may lose", deed.loses), ("stops", deed.stops), ("UNKNOWN", deed.unknown))
    said = [f"{what} {len(names):,}: {some_names(names, MOST_NAMES)}" for what, names in parts if names]
    if deed.already:
        which = "" if len(deed.already) == len(deed.stops) else f"{len(deed.already):,} of them "
        said = [f"{text} ({which}already)" if text.startswith("stops") else text for text in said]
    return "; ".join([*said, *(["UNKNOWN: what was not told"] if deed.is_partial else [])]) or "nothing"


def document(outlooks: Sequence[Outlook]) -> list[dict[str, object]]:
    """The same for --json."""
    return [attrs.asdict(o) for o in outlooks]
