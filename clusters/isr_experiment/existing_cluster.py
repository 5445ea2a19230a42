"""A cluster that runs already, and is nobody's to harm: clients write and read, and what they saw is judged.

No fault is made, so that nothing lost says little; whoever makes faults in the meantime learns what they cost. The
topic is a new one, and is deleted afterwards.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import attrs

from isr_cluster.admin import Address, Admin, RequestRefused
from isr_experiment import clients, verdicts
from isr_experiment.cells import PROGRESS_NS
from isr_experiment.clients import KINDS, PATIENCE, SPACE, Reader, Writer
from isr_experiment.recorder import Recorder
from isr_experiment.verdicts import Fate


@attrs.frozen(kw_only=True)
class Load:
    """What is written: by whom, how fast, for how long; into how many replicas (None: the cluster's default)."""

    writers: tuple[str, ...]
    per_second: float
    most: int
    seconds: float
    acks: str = "all"
    replicas: int | None = None
    min_insync: int | None = None
    keep_topic: bool = False


@attrs.frozen(kw_only=True)
class Observed:
    """What came of it."""

    topic: str
    replicas: int
    whole: Fate
    verdict: str
    words: dict[str, list[str]]
    complete: bool
    """The partition was read to its end."""
    resets: int
    cut_short: bool

    @property
    def violated(self) -> list[str]:
        """Anomalies that the claims exclude."""
        return self.words.get("VIOLATED", [])


def observe_cluster(at: Address, folder: Path, load: Load, over: threading.Event) -> Observed:
    """Clients on the cluster for so long, or until `over` is set; Refused if it refuses a topic."""
    topic = f"insync-{time.time_ns():x}"
    claims: dict[str, object] = {"acks": load.acks, "idempotence": load.acks == "all", "progress_within": PROGRESS_NS}
    config: dict[str, str] = {}
    if load.min_insync is not None:
        claims["min_insync"] = load.min_insync
        config["min.insync.replicas"] = str(load.min_insync)
    with Admin(at, 10.0) as admin:
        admin.create(topic, 1, load.replicas or -1, config)
    recorder = Recorder(folder / "history.jsonl", claims, topic=topic)
    try:
        replicas = _ready(at, topic)
        final_values, resets = _load(at, load, recorder, over)
    finally:
        recorder.close()
        if not load.keep_topic:
            _delete(at, topic)
    answer, lost = verdicts.judge_history(recorder.path)
    (whole, *_) = verdicts.fates(recorder, final_values, lost)
    return Observed(
        topic=topic,
        replicas=replicas,
        whole=whole,
        verdict=answer.verdict.value,
        words=dict(verdicts.by_word(answer)),
        complete=final_values is not None,
        resets=resets,
        cut_short=over.is_set(),
    )


def _ready(at: Address, topic: str) -> int:
    """Wait until somebody leads, for a while; how many replicas there are."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            with Admin(at, 10.0) as admin:
                found = [p for p in admin.partitions() if p.topic == topic]
        except RequestRefused:
            found = []
        if found and found[0].leader is not None:
            return len(found[0].replicas)
        if time.monotonic() > until:
            raise RequestRefused(f"topic {topic} has no leader after {PATIENCE} s")
        time.sleep(0.1)


def _load(at: Address, load: Load, recorder: Recorder, over: threading.Event) -> tuple[set[int] | None, int]:
    """Write and read, then read to the end: what is there, and how often a consumer was reset."""
    bootstrap, share = "{}:{}".format(*at), load.per_second / len(load.writers)
    writers: list[Writer] = []
    for n, kind in enumerate(load.writers):
        made = KINDS[kind](f"w{n}-{kind}", bootstrap, load.acks, load.acks == "all", True, recorder)
        writers.append(Writer(made, n * SPACE, share, load.most))
    reader = Reader("r0-confluent-kafka", bootstrap, recorder)
    for writer in writers:
        writer.begin()
    reader.begin()
    over.wait(load.seconds)
    for writer in writers:
        writer.stop()
    for writer in writers:
        writer.finish(PATIENCE + 5)
    rows = clients.read_all(bootstrap, recorder, 2.0 * PATIENCE)
    reader.finish()
    return (None if rows is None else {value for _, value in rows}), reader.resets


def _delete(at: Address, topic: str) -> None:
    """A cluster that is gone by now keeps the topic."""
    try:
        with Admin(at, 10.0) as admin:
            admin.delete(topic)
    except RequestRefused:
        return
