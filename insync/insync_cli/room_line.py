"""What bounds leave room for, and what they notice, as `run.json` has it and as a sentence.

`isr_check.room_search` searches for a behaviour that passes given milestones. Each family of designs says which those
are, and which bounds faults need: `isr_protocol.promises.room` for Kafka's replication, `kraft_protocol.room` for its
quorum. This module tells the answer. What is noticed of known mistakes is in the `notice` of each family.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from insync_cli.options import value_text
from insync_cli.runfile import NoticeLine, PrecursorLine, RoomLine
from insync_cli.terminal import count

if TYPE_CHECKING:
    from isr_check.family import Family, Notice, Precursor
    from isr_check.room_search import Room
    from isr_lang import Value


def room_line(room: Room | None) -> RoomLine | None:
    if room is None:
        return None
    lacking = room.lacking.name if room.lacking is not None else None
    return RoomLine(lacking=lacking, cut=dict(room.cut), enough=dict(room.enough), complete=room.complete)


def room_sentence(line: RoomLine, family: Family) -> str:
    """Why the bounds are too small, and which are not; for a line with something lacking, which is a milestone."""
    lacking = next(m for m in family.milestones() if m.name == line["lacking"])
    what = lacking.doc.rstrip(".")
    none = f"no behaviour {'exists' if line['complete'] else 'was found'}"
    text = f"within these bounds {none} with all of this: {family.fault_story}. "
    text += f"What is missing first: {what[0].lower()}{what[1:]}"
    if not line["enough"]:
        return f"{text}. No larger bounds that were tried have one, either"
    return f"{text}. Too small: {options_of(line['cut'])}. Enough: {options_of(line['enough'])}"


def precursor_line(precursor: Precursor | None) -> PrecursorLine | None:
    if precursor is None:
        return None
    probe = precursor.probe
    return PrecursorLine(name=probe.name, text=probe.doc, steps=precursor.steps, promises=list(precursor.promises))


def precursor_remark(line: PrecursorLine) -> str:
    """Why a promise that is not violated says too little, beside its verdict."""
    return f"not violated, but {_event(line)}, and these bounds may cut off what follows"


def precursor_sentence(line: PrecursorLine, family: Family) -> str:
    """The same of all such promises, with the bounds that may be larger."""
    *most, last = [_option(name) for name in (*family.bounds_of_mistakes, *family.bounds_of_faults)]
    larger = f"{', '.join(most)} or {last}" if most else last
    return f"{', '.join(line['promises'])} may break later: {_event(line)}, and what follows may take larger {larger}"


def _event(line: PrecursorLine) -> str:
    text = line["text"].rstrip(".")
    return f"{text[0].lower()}{text[1:]} here (in {count(line['steps'], 'step')})"


def options_of(constants: Mapping[str, Value]) -> str:
    return " ".join(f"{_option(name)} {value_text(value)}" for name, value in constants.items())


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def notice_line(notice: Notice | None) -> NoticeLine | None:
    if notice is None:
        return None
    return NoticeLine(
        known=list(notice.mistakes),
        noticed=list(notice.noticed_mistakes),
        unnoticed={promise: list(names) for promise, names in notice.unnoticed_by_promise.items()},
        beyond={promise: list(names) for promise, names in notice.beyond_by_promise.items()},
        enough=dict(notice.enough),
        settings=dict(notice.settings),
        without_mistake=list(notice.without_mistake),
        base=notice.base,
        short_of_base=list(notice.short_of_base),
    )


def notice_sentence(line: NoticeLine, design: str = "") -> str:
    """How many known mistakes the bounds notice, and which bounds would notice all.

    At other settings than those of the table, and of a model that is not the table's, it says what the bounds would
    notice at those, and in that. `design`: the name of the design that was asked about, which may lack actions of the
    table's. It ends with the promises that no known mistake breaks.
    """
    total, hits, none = len(line["known"]), len(line["noticed"]), len(line["without_mistake"])
    no_mistake = f"of {none} of these promises no mistake is known" if none else ""
    if not total:
        return no_mistake
    whole = "the whole " if line["base"] == design else ""
    where = [f"in {whole}{line['base']}"] if line["base"] else []
    where += [f"at {options_of(line['settings'])}"] if line["settings"] else []
    place = f"{' '.join(where)}, where mistakes were tried, " if where else ""
    enough = options_of(line["enough"])
    if not line["unnoticed"] and not line["beyond"]:
        text = f"{place}these bounds {'would ' if where else ''}notice all {total} known mistakes"
    elif hits == total:
        start = f"{place}these bounds are known to notice {hits} of {total} mistakes"
        text = f"{start}, not each by every promise that can; {enough} would"
    else:
        text = f"{place}these bounds are known to notice {hits} of {total} mistakes; {enough} would notice all"
    return "; ".join(filter(None, (text, no_mistake)))


def base_sentence(names: Sequence[str], line: NoticeLine) -> str:
    """Why these promises of a design of somebody's own say too little, and which bounds are enough."""
    known = f"is known of {line['base']}" if line["base"] else "is known"
    return (
        f"{', '.join(names)}: what a change of your own breaks nobody knows, and these bounds are smaller than those "
        f"that notice what {known}. Enough: {options_of(line['enough'])}"
    )
