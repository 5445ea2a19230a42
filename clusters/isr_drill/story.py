"""How a record is lost, in sentences with the ids of brokers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from isr_drill.exploration import Way
from isr_drill.runbook import CUT, RunbookStep
from isr_drill.situation import Situation

SENTENCES: Final[Mapping[str, str]] = {
    "controller_fences_outsider": "{0} loses its session",
    "controller_fences_follower": "the controller takes {0} out of the ISR",
    "controller_fences_leader": "the controller takes leadership from {0}, and elects {1}",
    "controller_fences_last_leader": "the controller takes leadership from {0}, and nobody can take over",
    "controller_unfences": "{0} has its session back",
    "controller_elects_returned": "the controller elects {0}, for which the partition waited",
    "controller_elects_last_known_leader": "nobody is eligible, so the controller elects {0}, which led last",
    "controller_elects_unclean": "nobody eligible is there, so the controller elects {0}, uncleanly",
    "controller_elects_by_order": "the controller elects {0}, uncleanly, as it was ordered",
    "controller_moves_leadership": "leadership may move to {0}",
    "broker_asks_to_shut_down": "{0} asks to shut down",
    "broker_shuts_down": "{0} is down, in order",
    "broker_restarts": "{0} starts with what is on its disk",
    "broker_resumes": "{0} goes on",
    "broker_is_killed": "{0} is killed, and its disk stays",
    "broker_is_paused": "{0} stands still",
    "broker_is_cut_off": "{0} is cut off from all others",
    "disk_is_destroyed": "{0} is gone with its disk",
    "isr_grows": "{0} joins the ISR",
    "isr_shrinks": "{0} may lag, and be out of the ISR",
    "record_is_acknowledged": "a record may be acknowledged, which is surely on the disk of {0} only",
    "record_is_copied": "{0} may fetch it",
    "isr_grows_and_completes": "{0} joins the ISR, which completes the reassignment, and {1} leads",
    "controller_starts_reassignment": "the replicas are to be {0}",
    "controller_reassigns_at_once": "the replicas are {0} at once, and {1} leads",
    "controller_cancels_reassignment": "the reassignment is cancelled, and {0} leads",
    "replica_is_deleted": "{0} has no replica any more, and deletes its log",
    "minimum_is_set": "min.insync.replicas is {0}, and nobody is eligible any more that is not in sync",
}
"""An action -> what it does; the numbers stand for its parameters. those of SILENT say nothing."""
SILENT: Final = ("phase_is_moot", "reassignment_is_moot", "cancellation_is_moot")
SETS: Final = (
    *("isr_shrinks", "record_is_acknowledged", "controller_starts_reassignment", "controller_reassigns_at_once"),
)
"""Actions whose first parameter is a set of replicas."""
SENTENCES_OF_POWER: Final = (
    "{0} loses its power, and what it had may be flushed",
    "{0} loses its power, and may lose what was not flushed",
)


def story(situation: Situation, way: Way, steps: Sequence[RunbookStep]) -> list[str]:
    """The sentences, each after the step of the runbook in which it happens, and what is lost at the end."""
    values = values_of(situation, way.start)
    sentences: list[str] = []
    if values["acked"]:
        holders = names_in(situation, int(str(values["holders"])))
        sentences.append(f"now: what is acknowledged is surely on the disk of {holders or 'nobody'} only")
    where = "now"
    for action, parameters in way.path.steps:
        if action == "next_phase_begins":
            number = next(i for i, end in enumerate(situation.ends) if end >= int(str(parameters[0])))
            where = f"{number} {steps[number - 1].text}"
        elif action not in SILENT:
            is_cut = action == "broker_is_paused" and where.split()[1:2] == [CUT]
            name = "broker_is_cut_off" if is_cut else action
            sentences.append(f"{where}: {sentence_of(situation, name, parameters)}")
    return [*sentences, f"{where}: {loss(situation, way)}"]


def values_of(situation: Situation, state: Sequence[object]) -> Mapping[str, object]:
    """A state by the names of its variables."""
    return {v.name: value for v, value in zip(situation.setting.variables, state, strict=True)}


def names_in(situation: Situation, members: int) -> str:
    """The brokers of a set of the model."""
    return " ".join(str(b) for i, b in enumerate(situation.brokers) if members >> i & 1)


def sentence_of(situation: Situation, action: str, parameters: Sequence[object]) -> str:
    """What one step of the model does."""
    form = SENTENCES_OF_POWER[bool(parameters[1])] if action == "power_fails" else SENTENCES[action]
    return form.format(*_words(situation, action, parameters))


def _words(situation: Situation, action: str, parameters: Sequence[object]) -> Iterator[str]:
    for place, value in enumerate(parameters):
        number = int(str(value)) if not isinstance(value, bool) else int(value)
        if action in SETS and place == 0:
            yield names_in(situation, number)
        elif action == "minimum_is_set":
            yield str(number)
        else:
            yield str(situation.brokers[number]) if number < len(situation.brokers) else ""


def loss(situation: Situation, way: Way) -> str:
    """What is lost at the end."""
    values = values_of(situation, way.end)
    if not values["holders"]:
        return "no disk has the record any more"
    leader = situation.brokers[int(str(values["controller_leader"])) - 1]
    has = names_in(situation, int(str(values["holders"])))
    return f"{leader} leads without the record, which is on the disk of {has}, and will be cut off there"
