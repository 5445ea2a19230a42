"""`insync experiment --bootstrap`: clients on a cluster that runs already; no fault is made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import terminal
from insync_cli.clusters.settings import address
from insync_cli.exits import Exit, UsageError
from insync_cli.options import choice, flag, option, positive, seconds
from insync_cli.progress import ended_in_order
from insync_cli.terminal import QuietOutput

if TYPE_CHECKING:
    from isr_experiment.existing_cluster import Observed


@attrs.frozen(kw_only=True)
class BootstrapOptions:
    """The cluster, and the topic that is made on it."""

    bootstrap: str | None = option("HOST:PORT", "any broker of a running cluster; takes no NAME", str)
    observe_seconds: float = option("S", "with --bootstrap: how long clients write", seconds, 30.0)
    acks: str = choice(("all", "1"), "with --bootstrap: acks of the producers", "all")
    replicas: int | None = option("N", "with --bootstrap: of the topic; without it, the cluster's default", positive)
    min_insync: int | None = option("N", "with --bootstrap: min.insync.replicas of the topic; likewise", positive)
    keep_topic: bool = flag("with --bootstrap: do not delete the topic afterwards")

    @property
    def changed_options(self) -> list[str]:
        """The options that were given and that go with --bootstrap only."""
        default = BootstrapOptions(
            bootstrap=None, observe_seconds=30.0, acks="all", replicas=None, min_insync=None, keep_topic=False
        )
        names = [field.name for field in attrs.fields(BootstrapOptions) if field.name != "bootstrap"]
        return [f"--{name.replace('_', '-')}" for name in names if getattr(self, name) != getattr(default, name)]


def observe(
    options: BootstrapOptions,
    writers: tuple[str, ...],
    per_second: float,
    most: int,
    out: Path | None,
    output: QuietOutput,
) -> int:
    """Clients write and read until the time is over or somebody stops it; the exit code of what was seen."""
    from isr_cluster.admin import RequestRefused
    from isr_experiment.existing_cluster import Load, observe_cluster

    at = address(options.bootstrap or "", "--bootstrap")
    folder = terminal.make_folder(out or Path("runs/experiment-bootstrap"))
    load = Load(
        writers=writers,
        per_second=per_second,
        most=most,
        seconds=options.observe_seconds,
        acks=options.acks,
        replicas=options.replicas,
        min_insync=options.min_insync,
        keep_topic=options.keep_topic,
    )
    try:
        with ended_in_order() as over:
            observation = observe_cluster(at, folder, load, over)
    except RequestRefused as refused:
        raise UsageError(str(refused)) from None
    report = {"schema": "insync/observed/1", "bootstrap": options.bootstrap, **attrs.asdict(observation)}
    (folder / "observed.json").unlink(missing_ok=True)
    terminal.write_json(str(folder / "observed.json"), report)
    word, code = verdict_of(observation)
    output.answer(report, lambda out: None, result_line(observation, word, folder))
    return code


def verdict_of(observation: Observed) -> tuple[str, Exit]:
    """The word and the exit code: nothing is said of a partition that was not read to its end."""
    if observation.violated or observation.whole.lost:
        return "LOST" if observation.whole.lost else "VIOLATED", Exit.SAFETY
    if not observation.complete or not observation.whole.acknowledged:
        return "INVALID", Exit.INCONCLUSIVE
    return "NOTHING LOST", Exit.HOLDS


def result_line(observation: Observed, word: str, folder: Path) -> str:
    """The one line to look for."""
    whole = observation.whole
    parts = [
        f"{whole.attempted:,} written to {terminal.count(observation.replicas, 'replica')} of {observation.topic}, "
        "no fault made",
        f"{whole.acknowledged:,} acknowledged, {whole.lost:,} lost",
    ]
    parts += [f"checks violated: {', '.join(observation.violated)}"] if observation.violated else []
    parts += [] if observation.complete else ["the partition could not be read to its end"]
    parts += [] if whole.acknowledged else ["nothing was acknowledged"]
    parts += ["stopped early"] if observation.cut_short else []
    return f"insync experiment --bootstrap: {word} - {'; '.join(parts)}; history in {folder}/history.jsonl"
