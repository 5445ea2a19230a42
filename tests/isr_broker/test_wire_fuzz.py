"""A minute of random requests against three processes, with somebody beside them who writes.

`tests.support.wire_fuzz` says what they are. Without it a request that nobody thought of could take a broker's memory,
or hold up everybody else. Its verdict is planted: figures that must not be, a broker that stands still, one that ends.
"""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import attrs
import pytest
from tests.support.peer_fuzz import OF_BROKERS, private_frame
from tests.support.wire_fuzz import APIS, MOST_GROWTH, MOST_KEPT, Figures, Harm, Requests, campaign

from isr_broker.core import message_json
from isr_broker.core.message_json import PEER_API, BadMessage
from isr_broker.wire import protocol
from isr_broker.wire.decoder import BadFrame
from isr_cluster.processes import Processes


def test_random_requests_are_of_every_api_of_clients_and_most_of_them_are_read() -> None:
    requests, keys, unread = Requests(Random(1)), set[int](), 0
    for _ in range(300):
        key, frame = requests.frame()
        keys.add(key)
        try:
            protocol.parse(frame[4:])
        except BadFrame:
            unread += 1
    assert keys == set(APIS)
    assert 0 < unread < 100


def test_requests_of_brokers_and_their_private_frames_are_among_them() -> None:
    requests = Requests(Random(1))
    keys = {requests.any_frame()[0] for _ in range(200)}
    assert keys >= {PEER_API, *OF_BROKERS}


def test_private_frames_are_good_and_damaged_and_end_nothing() -> None:
    """Whatever they are, they are read or refused in a sentence."""
    chance, verdicts = Random(1), list[str]()
    for _ in range(200):
        frame = private_frame(chance, "insync")
        try:
            verdicts.append("read" if message_json.decode(frame[4:], "insync") else "empty")
        except BadMessage as error:
            verdicts.append(str(error)[:20])
    assert 10 < verdicts.count("read") < 100
    assert len(set(verdicts)) > 5


WELL = Figures(writes=100, stall=0.5, processor=0.5, before=50_000_000, peak=200_000_000, after=100_000_000)
PLANTED = {
    "refused": (attrs.evolve(WELL, refused=1), "1 writes of the bystander were refused"),
    "stalled": (attrs.evolve(WELL, stall=1.1), "took 1,100 ms"),
    "busy": (attrs.evolve(WELL, processor=2.0), "took 2,000 ms"),
    "grown": (attrs.evolve(WELL, peak=WELL.before + MOST_GROWTH + 1), "grew by 400 MB"),
    "kept": (attrs.evolve(WELL, after=WELL.before + MOST_KEPT + 1), "kept 150 MB"),
    "nothing written": (attrs.evolve(WELL, writes=0), "no write"),
    "ended": (attrs.evolve(WELL, ended=["broker 2 has ended: halted"]), "broker 2 has ended"),
}


@pytest.mark.parametrize("what", PLANTED)
def test_figures_that_must_not_be_are_a_complaint(what: str) -> None:
    figures, sentence = PLANTED[what]
    (complaint,) = figures.complaints()
    assert sentence in complaint
    assert not WELL.complaints()


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.sockets
def test_random_requests_hold_up_nobody_and_keep_no_memory(tmp_path: Path) -> None:
    figures = campaign(60, 1, tmp_path)
    print("\n".join(figures.lines()))
    assert figures.complaints() == []
    assert sum(figures.frames.values()) > 100


def pauses(brokers: Processes) -> None:
    """The leader stands still for two seconds, and uses no processor."""
    brokers.pause(1)
    time.sleep(2)
    brokers.resume(1)


def kills(brokers: Processes) -> None:
    brokers.kill(1)


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.parametrize(
    ("harm", "sentence"), [(pauses, "a write of the bystander took"), (kills, "writes of the bystander were refused")]
)
def test_a_harm_to_the_bystander_is_a_complaint(harm: Harm, sentence: str, tmp_path: Path) -> None:
    complaints = campaign(6, 1, tmp_path, clients=1, harm=harm).complaints()
    assert any(sentence in complaint for complaint in complaints), complaints
