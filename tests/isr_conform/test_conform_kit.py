"""The base class for adapters, and the example that docs/conform.md begins with."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from isr_conform.conformance import conform
from isr_conform.conformance_result import Limits
from isr_conform.kit import Adapter, Conversation, Refused
from isr_lang import Instance
from isr_model import KIP_966

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "log_only.py"


class Counter(Adapter[list[int]]):
    """A world that counts to two, and refuses three."""

    def reset(self, state: object) -> list[int]:
        return [0]

    def step(self, world: list[int], action: str, parameters: object) -> None:
        world[0] += 1
        if action == "dance":
            raise Refused("no legs", cannot=True)
        if world[0] > 2:
            raise Refused("that is enough")

    def snapshot(self, world: list[int]) -> dict[str, object]:
        return {"count": world[0]}


def said(conversation: Conversation[list[int]], **request: object) -> dict[str, object]:
    return conversation.answer(json.dumps(request))


def test_a_refused_step_changes_nothing_and_a_saved_state_comes_back() -> None:
    talk = Conversation(Counter())
    hello = said(talk, do="hello", constants={"replicas": 2})
    assert hello == {
        "protocol": "insync/conform/1",
        "name": "Counter",
        "saves": True,
        "forgets": True,
        "branches": True,
        "enabled": False,
    }
    step: dict[str, object] = {"do": "step", "action": "count", "parameters": {}}
    assert said(talk, do="snapshot") == {"error": "ValueError: a reset comes first"}
    said(talk, do="reset", state={})
    assert said(talk, **step) == {"done": True}
    token = said(talk, do="save")["token"]
    assert said(talk, **step) == {"done": True}
    assert said(talk, **step) == {"done": False, "why": "that is enough"}
    assert said(talk, **step | {"action": "dance"}) == {"cannot": "no legs"}
    assert said(talk, do="snapshot") == {"state": {"count": 2}}
    said(talk, do="restore", token=token)
    assert said(talk, do="snapshot") == {"state": {"count": 1}}
    assert said(talk, do="forget", token=token) == {}
    assert "error" in said(talk, do="restore", token=token)
    token = said(talk, do="save")["token"]
    steps: list[object] = [{"action": "count", "parameters": {}, "save": True}, {"action": "dance", "parameters": {}}]
    branched = said(talk, do="branch", token=token, steps=steps, forget=[token])
    assert branched == {"after": [{"done": True, "state": {"count": 2}, "token": 3}, {"cannot": "no legs"}]}
    assert said(talk, do="snapshot") == {"state": {"count": 1}}
    assert "error" in said(talk, do="restore", token=token)
    assert said(talk, do="restore", token=3) == {}
    assert said(talk, do="snapshot") == {"state": {"count": 2}}
    assert said(talk, do="sing") == {"error": "no request of this protocol: sing"}


@pytest.mark.processes
def test_the_example_of_the_page_is_driven_both_ways() -> None:
    instance = Instance(KIP_966, {"replicas": 2, "crashes": 0, "records": 2, "log": 2})
    done = conform(instance, shlex.join([sys.executable, str(EXAMPLE)]), Limits(), patience=60.0)
    assert done.conforms, done.differences
    assert (done.edges, done.states) == (4, 6)


@pytest.mark.processes
def test_an_example_that_appends_anywhere_is_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(EXAMPLE.read_text().replace('if parameters["leader"] != world.leader:', "if False:"))
    done = conform(
        Instance(KIP_966, {"replicas": 2, "crashes": 0}),
        shlex.join([sys.executable, str(wrong)]),
        Limits(),
        patience=60.0,
    )
    assert {d.kind.value for d in done.differences} == {"unexpected action"}
