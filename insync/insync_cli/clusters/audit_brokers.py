"""What the next deed at each broker does, in words: which may be restarted now, and what a failure stops or loses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs

from insync_cli import terminal
from insync_cli.clusters.audit_text import some_names

if TYPE_CHECKING:
    from rich.console import Console

    from isr_drill.outlook import Deed, Outlook

HEADER: Final = ("broker", "restarted in order", "gone with its disk")
MOST_NAMES: Final = 2


def show(out: Console, outlooks: Sequence[Outlook]) -> None:
    """Who may be restarted now, and a line for each broker."""
    out.print()
    terminal.print_wrapped(out, verdict(outlooks), 0)
    if outlooks:
        rows = [(str(o.broker), words(o.restart), words(o.failure)) for o in outlooks]
        terminal.print_table(out, HEADER, rows, indent=0)
    for reason in dict.fromkeys(d.because for o in outlooks for d in (o.restart, o.failure) if d.because):
        terminal.print_wrapped(out, f"UNKNOWN: {reason}", 0)


def verdict(outlooks: Sequence[Outlook]) -> str:
    """Which brokers may be restarted now, each alone."""
    if not outlooks:
        return "Which brokers may be restarted now: it was not told which run"
    may = [o.broker for o in outlooks if o.restart.is_harmless]
    may_not = [o.broker for o in outlooks if o.restart.loses or o.restart.stops]
    rest = [o.broker for o in outlooks if o.broker not in {*may, *may_not}]
    parts = [f"{what}: {numbers(some)}" for what, some in (("not", may_not), ("UNKNOWN", rest)) if some]
    whole = "May be restarted now, one at a time and each once all are in sync again"
    return "; ".join([f"{whole}: {numbers(may) or 'none'}", *parts])


def numbers(brokers: Sequence[int]) -> str:
    return " ".join(map(str, brokers))


def words(deed: Deed) -> str:
    """What a deed stops, and what it may lose."""
    parts = (("may lose", deed.loses), ("stops", deed.stops), ("UNKNOWN", deed.unknown))
    said = [f"{what} {len(names):,}: {some_names(names, MOST_NAMES)}" for what, names in parts if names]
    return "; ".join(said) or "nothing"


def document(outlooks: Sequence[Outlook]) -> list[dict[str, object]]:
    """The same for --json."""
    return [attrs.asdict(o) for o in outlooks]
