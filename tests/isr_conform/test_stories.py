"""Stories told to a system that says too little: silence takes no step, refuses none and agrees with nothing."""

from collections.abc import Mapping

import attrs
import pytest

from insync_cli import registry, tracefiles
from isr_broker.snapshot import Json
from isr_conform.stories import StoryProgress, tell
from isr_conform.sut_client import PROTOCOL, AnsweredAtOnce, SutFailure
from isr_conform.value_json import JsonObject, state_json
from isr_lang import Instance
from isr_trace.trace import Trace

TRACE = tracefiles.load(tracefiles.CORPUS / "kept-positions" / "trace.itf.json")
INSTANCE: Instance = registry.instance_of(registry.design_named(TRACE.design), TRACE.constants)


@attrs.define
class Silent(AnsweredAtOnce):
    """Greets, and answers the rest as a table has it; `{}` where that has nothing."""

    answers: Mapping[str, JsonObject]
    more: JsonObject
    request_count: int = 0

    def __attrs_pre_init__(self) -> None:
        super().__init__()

    def ask(self, do: str, **more: Json) -> JsonObject:
        if do == "hello":
            return {"protocol": PROTOCOL, "name": "silent", **self.more}
        return dict(self.answers.get(do, {}))


def told(answers: Mapping[str, JsonObject], **hello: Json) -> StoryProgress:
    return tell(Silent(answers, dict(hello)), INSTANCE, TRACE, "kept-positions")


def last_state(trace: Trace) -> JsonObject:
    return state_json(INSTANCE, tuple(trace.states[-1][v.name] for v in INSTANCE.variables))


TAKES: JsonObject = {"done": True}


def test_a_story_is_taken_where_every_step_and_the_end_agree() -> None:
    assert told({"step": TAKES, "snapshot": {"state": last_state(TRACE)}}).cell == "**takes it**"


def test_what_a_snapshot_lacks_is_said_and_not_taken_to_agree() -> None:
    some: JsonObject = {"state": {"isr": last_state(TRACE)["isr"]}}
    cell = told({"step": TAKES, "snapshot": some}).cell
    assert cell.startswith("**takes it**, ")
    assert "`log`" in cell
    assert "`isr`" not in cell


@pytest.mark.parametrize("answer", [{"done": False}, {"done": False, "why": "no"}, {"cannot": "no"}])
def test_a_step_that_is_refused_stops_it(answer: JsonObject) -> None:
    assert told({"step": answer}).steps_taken == 0
    assert told({"step": answer}).cell.startswith("stops at 1 of ")


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ({}, "neither takes nor refuses it"),
        ({"step": {"done": None}}, "neither takes nor refuses it"),
        ({"step": {"why": "java.lang.NullPointerException"}}, "neither takes nor refuses it"),
        ({"step": TAKES}, "its answer to snapshot has no state"),
        ({"step": TAKES, "snapshot": {"state": {}}}, "its snapshot has no variable of the story"),
    ],
)
def test_silence_is_no_answer(answers: Mapping[str, JsonObject], sentence: str) -> None:
    with pytest.raises(SutFailure, match=sentence):
        told(answers)
