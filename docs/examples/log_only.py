"""The smallest adapter that says something: leaders that append, held to three variables of the model.

    insync conform --sut "python docs/examples/log_only.py" --replicas 2 --crashes 0

Replace the three methods by calls of your own system; docs/conform.md goes on from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import attrs

from isr_conform.kit import Adapter, Refused, Step, run


@attrs.define
class Logs:
    """A leader and the records of each replica."""

    leader: str
    records: dict[str, list[int]]
    produced: int = 0


class LogOnly(Adapter[Logs]):
    """A system whose leader appends what it is given."""

    name = "logs only"
    variables = ("log", "leader", "written_in")
    actions = ("leader_appends",)

    def reset(self, state: Mapping[str, object]) -> Logs:
        leader = cast("str", state["controller_leader"])
        return Logs(leader, {replica: [] for replica in cast("dict[str, object]", state["log"])})

    def step(self, world: Logs, action: str, parameters: Mapping[str, object]) -> None:
        if parameters["leader"] != world.leader:
            raise Refused("NOT_LEADER_OR_FOLLOWER")
        if world.produced >= cast("int", self.constants["records"]):
            raise Refused("beyond the model's bounds")
        world.records[world.leader].append(world.produced)
        world.produced += 1

    def snapshot(self, world: Logs) -> Mapping[str, object]:
        return {
            "log": world.records,
            "leader": {replica: world.leader for replica in world.records},
            "written_in": [0] * world.produced,
        }

    def candidates(self, world: Logs) -> Iterable[Step]:
        return [("leader_appends", {"leader": replica}) for replica in world.records]


if __name__ == "__main__":
    run(LogOnly())
