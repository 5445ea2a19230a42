"""A deliberately naive in-sync replica set, to be held to the model (docs/conform.md). It imports nothing of insync.

One leader, followers that pull, a leader that shrinks and grows the ISR. It looks right, and passes a first test. Three
mistakes of first implementations are in it, each marked; insync conform finds them:

    insync conform --sut "python docs/examples/naive_isr.py" --replicas 3 --log 2 --records 2 --crashes 0
"""

from __future__ import annotations

import copy
import json
import sys
from typing import TypedDict, cast


class State(TypedDict):
    """What of the model's state this system has, as JSON has it; `acked` are the records that producers know of."""

    log: dict[str, list[int]]
    high_watermark: dict[str, int]
    isr: dict[str, list[str]]
    pending_isr: dict[str, list[str]]
    follower_end: dict[str, dict[str, int | None]]
    fetch: dict[str, str]
    fetch_offset: dict[str, int]
    fetch_record: dict[str, int | None]
    fetch_watermark: dict[str, int]
    alter: dict[str, str]
    alter_isr: dict[str, list[str]]
    controller_leader: str
    controller_isr: list[str]
    acked: list[int]


class Partition:
    """One partition: its replicas, its leader, the controller, and the messages between them."""

    def __init__(self, state: State, minimum: int) -> None:
        self.s, self.leader, self.minimum = state, state["controller_leader"], minimum

    def commit(self) -> None:
        """The watermark moves to what every member holds, and what is below it is acknowledged."""
        s, leader = self.s, self.leader
        ends = {f: end or 0 for f, end in s["follower_end"][leader].items()} | {leader: len(s["log"][leader])}
        # MISTAKE 1: whoever the leader has asked to add does not count yet.
        # MISTAKE 2: the watermark moves also while the ISR is under min.insync.replicas.
        held = min(ends[member] for member in s["isr"][leader])
        old = s["high_watermark"][leader]
        new = s["high_watermark"][leader] = max(old, held)
        s["acked"] = sorted({*s["acked"], *s["log"][leader][old:new]})

    def message(self, follower: str, kind: str, offset: int, record: int | None = None, watermark: int = 0) -> None:
        s = self.s
        s["fetch"][follower], s["fetch_offset"][follower] = kind, offset
        s["fetch_record"][follower], s["fetch_watermark"][follower] = record, watermark

    def propose(self, isr: list[str]) -> None:
        self.s["pending_isr"][self.leader] = self.s["alter_isr"][self.leader] = isr
        self.s["alter"][self.leader] = "requested"

    # The actions of the model that this system has, by their names; False where one is not possible.

    def leader_appends(self, leader: str) -> bool:
        log = self.s["log"][leader]
        if leader != self.leader or len(self.s["isr"][leader]) < self.minimum:
            return False
        log.append(len(log))
        self.commit()
        return True

    def leader_answers_fetch(self, leader: str, follower: str) -> bool:
        s, offset = self.s, self.s["fetch_offset"][follower]
        if leader != self.leader or s["fetch"][follower] != "requested":
            return False
        s["follower_end"][leader][follower] = offset
        self.commit()
        record = s["log"][leader][offset] if offset < len(s["log"][leader]) else None
        self.message(follower, "answered", 0, record, s["high_watermark"][leader])
        return True

    def follower_appends(self, follower: str) -> bool:
        s, record = self.s, self.s["fetch_record"][follower]
        if s["fetch"][follower] != "answered":
            return False
        if record is not None:
            s["log"][follower].append(record)
        # MISTAKE 3: the leader's watermark is taken as it comes, even past the end of the follower's own log.
        s["high_watermark"][follower] = s["fetch_watermark"][follower]
        self.message(follower, "requested", len(s["log"][follower]))
        return True

    def leader_proposes_shrink(self, leader: str, lagging: list[str]) -> bool:
        behind = [f for f in lagging if self.s["follower_end"][leader][f] != len(self.s["log"][leader])]
        if leader != self.leader or self.s["pending_isr"][leader] or not lagging or behind != lagging:
            return False
        self.propose([member for member in self.s["isr"][leader] if member not in lagging])
        return True

    def leader_proposes_expansion(self, leader: str, f: str) -> bool:
        isr, end = self.s["isr"][leader], self.s["follower_end"][leader][f]
        if leader != self.leader or self.s["pending_isr"][leader] or f in isr:
            return False
        if end is None or end < self.s["high_watermark"][leader]:
            return False
        self.propose([*isr, f])
        return True

    def controller_accepts_alter_partition(self, leader: str) -> bool:
        s = self.s
        if s["alter"][leader] != "requested":
            return False
        s["controller_isr"], s["alter"][leader], s["alter_isr"][leader] = s["alter_isr"][leader], "accepted", []
        return True

    def leader_adopts_isr(self, leader: str) -> bool:
        s = self.s
        if s["alter"][leader] != "accepted":
            return False
        s["isr"][leader], s["pending_isr"][leader], s["alter"][leader] = s["pending_isr"][leader], [], "none"
        self.commit()
        return True


def mine(state: State) -> State:
    """Of a whole state of the model what this system has."""
    return cast("State", {name: value for name, value in state.items() if name in State.__annotations__})


def main() -> None:
    """Answer line by line, as docs/conform.md says."""
    partition, minimum = None, 1
    actions = [name for name in vars(Partition) if name.startswith(("leader_", "follower_", "controller_"))]
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, object] = {}
        match request["do"]:
            case "hello":
                minimum = request["constants"]["min_insync"]
                answer = {"protocol": "insync/conform/1", "name": "naive ISR", "saves": True}
                answer |= {"variables": list(State.__annotations__), "actions": actions}
            case "reset":
                partition = Partition(mine(request["state"]), minimum)
            case "step":
                answer = {"done": getattr(partition, request["action"])(**request["parameters"])}
            case "snapshot" if partition:
                answer = {"state": partition.s}
            case "save" if partition:
                answer = {"token": copy.deepcopy(partition.s)}
            case "restore":
                partition = Partition(request["token"], minimum)
            case other:
                answer = {"error": f"{other} means nothing here"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
