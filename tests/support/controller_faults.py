"""Faults of controllers that are known by their disks, in an order that a seed draws, while a producer writes on.

Each of the three is killed once, the active one is paused, and the disk of one is destroyed. In the end a broker is
killed, so that a controller has to decide, and all that was acknowledged is read.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import attrs
from tests.isr_broker.test_controller_process import OF_ALL, QUICK, active, created, in_time, other_leader
from tests.support.clients import Confluent, confluent_read
from tests.support.quorums import DynamicControllers

from isr_broker.core.messages import Error

_PAUSE = 0.02
_PATIENCE = 60.0


class SteadyProducer:
    """It sends a record every 20 ms with acks=all, in a thread of its own, until it is stopped."""

    def __init__(self, bootstrap: str) -> None:
        self.client = Confluent(bootstrap, {"acks": "all", "enable.idempotence": True, "linger.ms": 0})
        self.sent = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sends, daemon=True)
        self._thread.start()

    def _sends(self) -> None:
        while not self._over.wait(_PAUSE):
            self.client.send("t", b"%06d" % self.sent)
            self.sent += 1

    def goes_on(self, count: int) -> None:
        """So many more are acknowledged, of those that it sends from now on."""
        goal = len(self.client.acked) + count
        in_time(lambda: len(self.client.acked) >= goal, "nothing is acknowledged any more")

    def stop(self) -> None:
        """What was sent is acknowledged, or the producer has given it up."""
        self._over.set()
        self._thread.join()
        assert self.client.producer.flush(_PATIENCE) == 0, "nothing is acknowledged any more"


@attrs.frozen(kw_only=True)
class Endurance:
    """What came of one run: which faults in which order, and how many records were acknowledged, and then missing."""

    seed: int
    faults: tuple[str, ...]
    acknowledged: int
    missing: int
    epochs: int
    seconds: float
    ends: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Nothing is missing, and no process has ended that was not killed."""
        return self.acknowledged > 0 and not self.missing and not self.ends


@attrs.define
class _Cluster:
    nodes: DynamicControllers
    traffic: SteadyProducer
    draw: random.Random

    def kill(self, number: int) -> None:
        """A controller is killed, the others go on, and it is back."""
        assert self.nodes.kill(number)
        active(self.nodes, number)
        self.traffic.goes_on(20)
        self.nodes.start(number)

    def pause(self) -> None:
        """The active controller stands still until another is active, and wakes up."""
        first = active(self.nodes)
        assert self.nodes.pause(first.leader)
        active(self.nodes, first.leader)
        self.traffic.goes_on(20)
        self.nodes.resume(first.leader)

    def loses_disk(self, number: int) -> None:
        """A disk is destroyed. Its controller comes back with another one, and is put in again."""
        self.nodes.loses_disk(number)
        self.traffic.goes_on(20)
        self.nodes.start(number)
        assert self.nodes.puts_in_again(number)[1] in (Error.NONE, Error.DUPLICATE_VOTER)

    def rests(self) -> None:
        """Every controller that should vote does, before the next fault: two at once are more than three bear."""
        everybody = set(self.nodes.controllers)
        in_time(
            lambda: (
                set((status := active(self.nodes)).ends) == everybody
                and min(status.ends.values()) >= status.watermark - 5
                and all(status.directories[q] == self.nodes.directories[q] for q in everybody)
            ),
            "not all controllers have caught up",
        )
        time.sleep(self.draw.random())


def endure_controllers(root: Path, seed: int) -> Endurance:
    """One run on six processes."""
    draw, began = random.Random(seed), time.monotonic()
    nodes = DynamicControllers.of(root, OF_ALL, QUICK)
    try:
        nodes.start_all()
        in_time(lambda: created(nodes, "t"), "no topic is created")
        cluster = _Cluster(nodes, SteadyProducer(nodes.bootstrap), draw)
        first = active(nodes).epoch
        lost = draw.choice(sorted(nodes.controllers))
        faults: dict[str, Callable[[], None]] = {
            **{f"kill {number}": partial(cluster.kill, number) for number in nodes.controllers},
            "pause the active one": cluster.pause,
            f"lose the disk of {lost}": lambda: cluster.loses_disk(lost),
        }
        order = draw.sample(sorted(faults), len(faults))
        for name in order:
            faults[name]()
            cluster.rests()
        in_time(lambda: created(nodes, "u"), "no controller creates a topic")
        other_leader(nodes, cluster.traffic)
        cluster.traffic.stop()
        acknowledged = cluster.traffic.client.acked
        missing = set(acknowledged) - set(confluent_read(nodes.bootstrap, "t", len(acknowledged)))
        ends = tuple(f"{nodes.name(node)}: {code}" for node, code in nodes.early_exits().items())
        return Endurance(
            seed=seed,
            faults=tuple(order),
            acknowledged=len(acknowledged),
            missing=len(missing),
            epochs=active(nodes).epoch - first,
            seconds=time.monotonic() - began,
            ends=ends,
        )
    finally:
        nodes.kill_all()
