"""A trace told in at most five sentences: who did what, which step was the cause, where it showed, what would mend it.

The sentences are made from what the steps changed, so a trace that was found a minute ago is told like a curated one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs
from rich.text import Text

from isr_lang import show as show_value
from isr_trace.cause import Cause, first_loss, lacking, promised_records
from isr_trace.scene import EVENTS, NOBODY, View
from isr_trace.trace import Step, Trace

PHRASES: Mapping[str, str] = {
    "becomes_follower": "{r} began to follow",
    "becomes_follower_of_old_image": "{r} began to follow by metadata that were replaced",
    "becomes_leader": "{r} began to lead",
    "becomes_replaced_leader": "{r} began to lead by metadata that were replaced",
    "broker_crashes": "{r} crashed, and its disk stayed",
    "broker_learns_minimum": "{r} learned of another min.insync.replicas",
    "broker_learns_old_minimum": "{r} learned of a min.insync.replicas that was replaced",
    "broker_loses_power": "{r} lost power",
    "broker_restarts": "{r} started again",
    "broker_restarts_unnoticed": "{r} was back before the controller had noticed",
    "broker_shuts_down": "{r} shut down",
    "consumer_is_reset": "a consumer was out of range at {r} and started again there",
    "consumer_reads": "a consumer read from {r}",
    "controller_accepts_alter_partition": "the controller accepted what {leader} had proposed",
    "controller_adds_replica": "the controller gave {r} a replica",
    "controller_elects_last_known_leader": "the controller elected {r}, the last leader it knew",
    "controller_elects_returned": "the controller elected {r}, which was back",
    "controller_elects_unclean": "the controller chose {leader} in an unclean election",
    "controller_elects_unclean_since_switched": "the controller chose {leader} in an unclean election",
    "controller_fences_follower": "the controller fenced {r}",
    "controller_fences_last_leader": "the controller fenced {r}",
    "controller_fences_leader": "the controller fenced {r} and chose {successor}",
    "controller_moves_leadership": "the controller moved leadership to {leader}",
    "controller_recovers": "the controller elected {leader}, the longest log of {answered}",
    "controller_refuses_alter_partition": "the controller refused what {leader} had proposed",
    "controller_refuses_later_copy": "the controller refused the copy of {leader}'s request that came first",
    "controller_removes_replica": "the controller took the replica of {r} away",
    "controller_sets_minimum": "min.insync.replicas was set to {value}",
    "controller_switches_unclean_election": "unclean.leader.election.enable was switched",
    "controller_unfences": "the controller let {r} back in",
    "directory_is_removed": "{r} lost the directory with its log to log.dirs",
    "disk_is_replaced": "{r} got an empty disk",
    "follower_appends": "{follower} appended what it was sent",
    "follower_raises_watermark_first": "{follower} took over the watermark of a diverging answer",
    "follower_sends_fetch": "{follower} sent a fetch to {leader}",
    "follower_truncates": "{follower} cut its log where it thought that it parts from the leader's",
    "follower_truncates_to_watermark": "{follower} cut its log at its own watermark",
    "image_is_delayed": "metadata came late to some brokers",
    "leader_adopts_isr": "{leader} adopted the new in-sync set",
    "leader_answers_diverging": "{leader} told {follower} where their logs part",
    "leader_answers_epoch_end": "{leader} told {follower} where an epoch ends",
    "leader_answers_fetch": "{leader} answered {follower}'s fetch",
    "leader_answers_undefined_epoch": "{leader} did not know the epoch that {follower} asked for",
    "leader_appends": "{leader} appended a record",
    "leader_evicts_alone": "{leader} evicted {lagging} and asked nobody",
    "leader_hears_known_version": "{leader} heard once more of a version that it knew",
    "leader_hears_known_version_of_old_image": "{leader} heard once more of a version that it knew",
    "leader_learns_brokers": "{leader} learned who is fenced or stopping",
    "leader_learns_isr": "{leader} learned of another in-sync set",
    "leader_learns_old_isr": "{leader} learned of an in-sync set that was replaced",
    "leader_loads_snapshot": "{leader} loaded a snapshot of the metadata",
    "leader_proposes_expansion": "{leader} asked to add {f} to the in-sync set",
    "leader_proposes_shrink": "{leader} put {lagging} out of its in-sync set",
    "leader_rolls_back": "{leader} took back what it had proposed",
    "replica_is_deleted": "{r} deleted its replica",
    "replica_is_deleted_by_old_image": "{r} deleted its replica by metadata that were replaced",
}
"""What an action is in a story, with its parameters; any other action is told by its name."""

SENTENCES = 5
PREFIXES: Mapping[str, str] = {
    **dict.fromkeys(("stake", "alone", "event"), ""),
    **{"cause": "Cause: ", "late": "Too late: ", "symptom": "Symptom: ", "mend": "Mend: "},
}


@attrs.frozen
class Sentence:
    """`step`: the state that it is about, None where it is about none. `part`: stake, alone, event, cause, late,
    symptom or mend."""

    step: int | None
    part: str
    text: str


@attrs.frozen
class Story:
    """`headline` has a subject; `breaks` is the step at which it shows, None where nothing is broken."""

    headline: str
    breaks: int | None
    sentences: tuple[Sentence, ...]


def story(trace: Trace, cause: Cause | None = None, promise: str = "", mend: str = "") -> Story:
    """`promise`: what the property says; `mend`: a sentence about what would have helped."""
    views = [View(trace, i) for i in range(len(trace.states))]
    telling = _Telling(trace, views, cause, promise)
    parts = dict(sorted(telling.moments().items()))
    room = SENTENCES - bool(mend)
    sentences = [
        Sentence(i, part, telling.sentence(i, part)) for i, part in _chosen_moments(parts, views, room).items()
    ]
    ends = [Sentence(None, "mend", mend)] if mend else []
    return Story(telling.headline(), telling.breaks, (*sentences, *ends))


def story_lines(narrative: Story) -> Iterator[Text]:
    """The story for the terminal."""
    if not narrative.sentences:
        return
    yield Text(narrative.headline, style="bold")
    for sentence in narrative.sentences:
        when = f"T{sentence.step}" if sentence.step is not None else ""
        yield Text(f"  {when:<4} ").append(f"{PREFIXES[sentence.part]}").append(sentence.text)
    yield Text()


def _chosen_moments(parts: dict[int, str], views: Sequence[View], room: int) -> dict[int, str]:
    """The moments that must be told; if there is room left, what else a client or the controller would notice."""
    for dispensable in ("late", "alone", "stake"):
        if len(parts) > room:
            parts = {i: part for i, part in parts.items() if part != dispensable}
    end = max(parts, default=len(views))
    others = sorted((-_weight(views, i), -i) for i in range(1, end) if i not in parts and _weight(views, i))
    parts |= {-i: "event" for _, i in others[: max(0, room - len(parts))]}
    return dict(sorted(parts.items()))


def _weight(views: Sequence[View], i: int) -> int:
    """How much a step is worth a sentence: whoever is elected without a promised record, what a fault or a cut took,
    then who leads, who is in sync, and what clients were told."""
    before, after = views[i - 1], views[i]
    changed_roles = {role for role in EVENTS if before.values_by_role.get(role) != after.values_by_role.get(role)}
    elected = after.values_by_role.get("leader")
    if "leader" in changed_roles and isinstance(elected, str) and elected in lacking(after):
        return 4
    if any((after.down(r) and not before.down(r)) or len(after.log(r)) < len(before.log(r)) for r in after.replicas):
        return 3
    return 2 if changed_roles & {"leader", "isr", "alive"} else 1 if changed_roles & {"acked", "committed"} else 0


class _Telling:
    """One trace, told."""

    def __init__(self, trace: Trace, views: Sequence[View], cause: Cause | None, promise: str) -> None:
        self.trace, self.views, self.cause = trace, views, cause
        self.promise = promise or trace.promise
        self.breaks = cause.symptom if cause is not None else first_loss(views)
        if self.breaks is None and trace.property_name and trace.loop is None:
            self.breaks = len(views) - 1
        self.lost_records = self._lost_records()

    def _lost_records(self) -> tuple[str, ...]:
        """The records that are gone where it shows."""
        if self.breaks is None:
            return ()
        now = self.views[self.breaks]
        elected = now.values_by_role.get("leader")
        gone = dict.fromkeys(m for r, records in lacking(now).items() if now.leads(r) or r == elected for m in records)
        return tuple(gone)

    def moments(self) -> dict[int, str]:
        """The steps of which a sentence is told, by what they are for the story."""
        parts: dict[int, str] = {}
        stake = next((i for i, v in enumerate(self.views) if set(self.lost_records) & set(promised_records(v))), None)
        if self.lost_records and stake is not None:
            parts[stake] = "stake"
            alone = next((i for i in range(stake, len(self.views)) if self._keepers(i)), None)
            if alone is not None:
                parts.setdefault(alone, "alone")
        if self.cause is not None and self.cause.too_late is not None:
            parts[self.cause.too_late] = "late"
        if self.cause is not None:
            parts[self.cause.step] = "cause"
        if self.breaks is not None:
            parts[self.breaks] = "symptom"
        return parts

    def _keepers(self, i: int) -> tuple[str, ...]:
        """The one replica that has a promised record which will be lost; nobody if there are more of them, or none."""
        now = self.views[i]
        for m in self.lost_records:
            holders = [r for r in now.replicas if m in now.log(r)]
            if m in promised_records(now) and len(holders) == 1:
                return tuple(holders)
        return ()

    # sentences

    def sentence(self, i: int, part: str) -> str:
        alone = self._keepers(i) if not i or not self._keepers(i - 1) else ()
        text = self.what(i) if i else "so it began"
        if alone and part in ("stake", "alone", "cause"):
            text = f"{text}, and only {alone[0]} has {_it(self.lost_records)}"
        text = f"{_sentence(text)}."
        if part == "cause" and self.cause is not None:
            text += self._why(self.cause)
        elif part == "late":
            text += " From here on nothing within the bounds keeps the promise."
        elif part == "symptom":
            text += self._what_breaks(i)
        return text

    def _why(self, cause: Cause) -> str:
        """What the cause took away, and what would have been without it."""
        short = {r: records for r, records in lacking(self.views[cause.step]).items()}
        text = ""
        if cause.step == cause.symptom:
            text = self._what_breaks(cause.step)
        elif short:
            r, records = next(iter(short.items()))
            text = f" That took the guarantee away: {r} may lead, and lacks {_records(records)}."
        elif cause.step == cause.first:
            text = f" That broke {cause.broken_promises[0]}, the first promise to go."
        if cause.role == "needed":
            return f"{text} Without this step all others happen and the promise holds."
        if cause.role == "enabling":
            later = [f"T{i}" for i in cause.enables[:3]] + (["more"] if cause.enables[3:] else [])
            return f"{text} Without this step {_names(later)} could not happen."
        return text

    def _what_breaks(self, i: int) -> str:
        name = self.trace.property_name
        lost = [line.removeprefix("LOST: ") for line in self.views[i].losses() if line.startswith("LOST")]
        if lost:
            return f" {_sentence(lost[0])}{f': {name} is broken' if name else ''}."
        if not name:
            return ""
        if self.trace.kind.startswith("sometimes"):
            return f" That is {name}."
        rule = self.promise.split("\n\n")[0].replace("\n", " ").split(":")[0].rstrip(".")
        return f" That breaks {name}: {rule[:1].lower()}{rule[1:]}." if rule else f" That breaks {name}."

    def headline(self) -> str:
        """What happens, with a subject."""
        name, design = self.trace.property_name, self.trace.design
        if self.breaks is None and self.trace.loop is not None and name:
            return f"{design} breaks {name}, and goes on so for ever"
        if self.breaks is None:
            return f"{design} at work" if design else ""
        now = self.views[self.breaks]
        leader = now.values_by_role.get("leader")
        if self.lost_records and isinstance(leader, str) and leader in now.replicas:
            return f"{leader} leads without {_records(self.lost_records)}, which {_was(now, self.lost_records)}"
        if self.lost_records:
            return _sentence(f"{_records(self.lost_records)} {_is(self.lost_records)} lost")
        if self.trace.kind.startswith("sometimes"):
            return f"{design} reaches {name}"
        return f"{design} breaks {name} where {self.phrase(self.breaks)}"

    # what happened

    def what(self, i: int) -> str:
        """What was done, and what that changed, where the first does not say it."""
        main_clause = self.phrase(i)
        doer = main_clause.split()[0]
        more = [c.removeprefix(f"{doer} ") if c.startswith(f"{doer} lost") else c for c in self.clauses(i)]
        more = [c for c in more if not (c.endswith(" was elected") and main_clause.endswith(f" {c.split()[0]}"))]
        more = [c for c in more if not (c.startswith(f"{doer} got ") and "append" in main_clause and len(more) > 1)]
        return _join_clauses([main_clause, *more])

    def phrase(self, i: int) -> str:
        if not self.trace.steps:
            return f"the state changed at step {i}"
        return phrase(self.trace, self.trace.steps[i - 1])

    def clauses(self, i: int) -> list[str]:
        """What a step changed, in words: leader, in-sync set, logs, what producers and consumers were told."""
        before, after = self.views[i - 1], self.views[i]
        return [clause for tell in (_leader, _members, _logs, _clients) for clause in tell(before, after)]


def phrase(trace: Trace, step: Step) -> str:
    """What somebody did, in the past tense where it is known how to say it."""
    note = trace.actions.get(step.action)
    values = {n: show_value(v, note.parameters[n]) for n, v in step.parameters.items()} if note is not None else {}
    told = PHRASES.get(step.action)
    if told is not None and set(re.findall(r"{(\w+)}", told)) <= set(values):
        return told.format(**{n: v.strip("{}") for n, v in values.items()})
    role, _, rest = step.action.partition("_")
    named = step.actor if step.actor and step.actor != role else f"the {role}"
    peer = f" ({step.peer})" if step.peer else ""
    return f"{named}: {step.action.replace('_', ' ')}{peer}" if rest else f"{named} {role}{peer}"


def _leader(before: View, after: View) -> Iterator[str]:
    old, new = before.values_by_role.get("leader"), after.values_by_role.get("leader")
    if old == new or not isinstance(new, str):
        return
    if new == NOBODY:
        yield "nobody leads"
    elif missing := [m for m in promised_records(after) if m not in after.log(new)]:
        yield f"{new} lacks {_records(missing)}, which {_was(after, missing)}"
    else:
        yield f"{new} was elected"


def _members(before: View, after: View) -> Iterator[str]:
    old, new = before.many("isr"), after.many("isr")
    come, removals = [r for r in new if r not in old], [r for r in old if r not in new]
    whole = "{" + ", ".join(new) + "}"
    if not old and "isr" not in before.values_by_role:
        return
    if come and removals:
        yield f"the ISR became {whole}"
    elif come:
        missing = {r: [m for m in promised_records(after) if m not in after.log(r)] for r in come}
        lacks = next((f" without {_records(records)}" for records in missing.values() if records), "")
        yield f"{_names(come)} joined the ISR{lacks}"
    elif removals:
        yield f"the ISR shrank to {whole}"


def _logs(before: View, after: View) -> Iterator[str]:
    for r in after.replicas:
        old, new = before.log(r), after.log(r)
        kept = next((k for k, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        if kept < len(old):
            yield f"{r} lost {_records(old[kept:])}"
        if kept < len(new):
            yield f"{r} got {_records(new[kept:])}"


def _clients(before: View, after: View) -> Iterator[str]:
    acked = [m for m in after.many("acked") if m not in before.many("acked")]
    committed = [m for m in after.many("committed") if m not in before.many("committed")]
    if acked:
        yield f"{_records(acked)} {_were(acked)} acknowledged"
    elif committed:
        yield f"{_records(committed)} {_were(committed)} committed"
    read = after.many("consumed")[len(before.many("consumed")) :]
    if read:
        yield f"the consumer got {_records(read)}"
    elif len(after.many("consumed")) < len(before.many("consumed")):
        yield "what it had read was not there"


def _was(view: View, records: Iterable[str]) -> str:
    return "was acknowledged" if all(m in view.many("acked") for m in records) else "was committed"


def _is(items: Sequence[str]) -> str:
    return "is" if len(items) == 1 else "are"


def _were(items: Sequence[str]) -> str:
    return "was" if len(items) == 1 else "were"


def _it(items: Sequence[str]) -> str:
    return "it" if len(items) == 1 else "them"


def _records(records: Sequence[str]) -> str:
    return f"record{'' if len(records) == 1 else 's'} {_names(records)}"


def _names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _join_clauses(clauses: Sequence[str]) -> str:
    """`a, b, and c`."""
    return clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])}, and {clauses[-1]}"


def _sentence(text: str) -> str:
    """With a capital, but for a replica's name."""
    first = text.split(" ", 1)[0]
    return text if any(c.isdigit() for c in first) else text[:1].upper() + text[1:]
