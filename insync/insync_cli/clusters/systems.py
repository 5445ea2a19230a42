"""`--system`: whose brokers a verb starts: ours, or those of a release of Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli.exits import InputError, UsageError, did_you_mean
from insync_cli.options import option

if TYPE_CHECKING:
    from isr_cluster.system_description import Description
    from isr_kafka.node import NodeFiles

OURS = "insync"
KAFKA = "apache-kafka"


@attrs.frozen(kw_only=True)
class UnderTest:
    """Which system, and where it comes from."""

    system: str = option(
        "SYSTEM", "insync, apache-kafka, apache-kafka=4.3.1, or a FILE.toml (docs/own-broker.md)", str, OURS
    )
    kafka_home: Path | None = option(
        "DIR", "with apache-kafka: one that you downloaded or built, not Maven's jars", Path
    )

    @property
    def file(self) -> Path | None:
        """The file that describes the system, if it is one."""
        return Path(self.system) if self.system.endswith(".toml") else None

    def read_description(self) -> Description:
        """What that file says; InputError if it describes no system."""
        from isr_cluster.system_description import BadDescription, read_system_description

        try:
            return read_system_description(Path(self.system))
        except BadDescription as problem:
            raise InputError(str(problem)) from None

    @property
    def is_ours(self) -> bool:
        """Whether it is our reference broker; UsageError if there is no such system."""
        name, equals, release = self.system.partition("=")
        if self.file is not None:
            if self.kafka_home is not None:
                raise UsageError(f"--kafka-home goes with --system {KAFKA}, without a version")
            return False
        if name not in (OURS, KAFKA) or (name == OURS and equals) or (equals and not release):
            raise UsageError(
                f"there is no system '{self.system}'{did_you_mean(name, (OURS, KAFKA))}; "
                f"they are {OURS}, {KAFKA}, {KAFKA}=VERSION and a FILE.toml"
            )
        if release:
            _check_release(release)
        if self.kafka_home is not None and (name == OURS or release):
            raise UsageError(f"--kafka-home goes with --system {KAFKA}, without a version")
        return name == OURS

    def kafka_files(self, noting: bool, tell: Callable[[str], None], tracing: bool = False) -> NodeFiles:
        """What nodes of Apache Kafka are started from, noting flushes, writing traces, or not; InputError if it cannot
        be had."""
        from isr_cluster.kafka import archive
        from isr_cluster.processes import Mishap
        from isr_kafka import Unavailable
        from isr_kafka.node import node_files

        release = self.system.partition("=")[2] or None
        try:
            files = node_files(release, self.kafka_home, noting, tracing)
            if not files.is_trained:
                tell(f"Kafka {files.release}: preparing a quick start, once for this machine")
                archive(files)
        except (Unavailable, Mishap) as problem:
            raise InputError(str(problem)) from None
        return files


def _check_release(release: str) -> None:
    from isr_kafka.node import RUNNABLE

    if release not in RUNNABLE:
        hint = did_you_mean(release, RUNNABLE)
        raise UsageError(f"Kafka {release} cannot be started here{hint}; there are {', '.join(RUNNABLE)}")
