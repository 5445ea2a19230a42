"""The in-sync set as short descriptions of it have it: a leader that puts a slow follower out by itself.

Such a description is a few lines, and these are the ones that matter:

    for follower in isr: if lags(follower): isr.remove(follower)
    high_watermark = min(log_end[member] for member in isr)
    acknowledge everything below high_watermark

Nobody else is asked. It imports nothing of insync, which says where it differs from Kafka, and what that costs:

    insync conform --sut "python docs/examples/evicts_alone.py" --replicas 2 --crashes 0 --first
    insync conform leader-evicts-alone --sut "python docs/examples/evicts_alone.py" \\
        --trace counterexamples/cases/evicted-alone/trace.itf.json

The first finds that a record is acknowledged while the controller still takes the follower for a member. The second
drives it along the shortest loss of the design that is written down so, and it takes every step.
"""

from __future__ import annotations

import copy
import json
import sys
from typing import TypedDict, cast


class State(TypedDict):
    """What of the model's state this system has; `controller_leader` is whom the controller has chosen."""

    log: dict[str, list[int]]
    high_watermark: dict[str, int]
    isr: dict[str, list[str]]
    leader: dict[str, str | None]
    controller_leader: str
    acked: list[int]


OBSERVABLES = ["log", "high_watermark", "leader", "controller_leader", "acked"]
"""What is compared with the model: all but the leader's own set, in which it differs on purpose."""


class Partition:
    """One partition. The actions have the model's names; False where one is not possible."""

    def __init__(self, state: State) -> None:
        self.s = state

    def commit(self, leader: str) -> None:
        s = self.s
        old = s["high_watermark"][leader]
        new = s["high_watermark"][leader] = min(len(s["log"][member]) for member in s["isr"][leader])
        s["acked"] = sorted({*s["acked"], *s["log"][leader][old:new]})

    def leader_appends(self, leader: str) -> bool:
        if self.s["leader"][leader] != leader:
            return False
        self.s["log"][leader].append(sum(len(log) for log in self.s["log"].values()))
        self.commit(leader)
        return True

    def leader_evicts_alone(self, leader: str, lagging: list[str]) -> bool:
        isr = self.s["isr"][leader]
        if self.s["leader"][leader] != leader or not lagging or not set(lagging) <= set(isr) - {leader}:
            return False
        self.s["isr"][leader] = [member for member in isr if member not in lagging]
        self.commit(leader)
        return True

    leader_proposes_shrink = leader_evicts_alone
    """Kafka's leader asks first, and commits when it is answered."""

    def controller_moves_leadership(self, leader: str) -> bool:
        self.s["controller_leader"] = leader
        return True

    def becomes_leader(self, r: str) -> bool:
        if self.s["controller_leader"] != r or self.s["leader"][r] == r:
            return False
        self.s["leader"][r], self.s["isr"][r] = r, sorted(self.s["log"])
        return True


def mine(state: State) -> State:
    """Of a whole state of the model what this system has."""
    return cast("State", {name: value for name, value in state.items() if name in State.__annotations__})


def main() -> None:
    """Answer line by line, as docs/conform.md says."""
    partition = None
    actions = [name for name in vars(Partition) if name.startswith(("leader_", "controller_", "becomes_"))]
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, object] = {}
        match request["do"]:
            case "hello":
                answer = {"protocol": "insync/conform/1", "name": "evicts alone", "saves": True}
                alone = request["design"] == "leader-evicts-alone"
                foreign = "leader_proposes_shrink" if alone else "leader_evicts_alone"
                answer |= {"variables": OBSERVABLES, "actions": [a for a in actions if a != foreign]}
            case "reset":
                partition = Partition(mine(request["state"]))
            case "step" if partition:
                answer = {"done": getattr(partition, request["action"])(**request["parameters"])}
            case "snapshot" if partition:
                answer = {"state": partition.s}
            case "save" if partition:
                answer = {"token": copy.deepcopy(partition.s)}
            case "restore":
                partition = Partition(request["token"])
            case other:
                answer = {"error": f"{other} means nothing here"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
