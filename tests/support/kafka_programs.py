"""Programs on Kafka's own classes, from tests/isr_kafka/java, which answer a line with a line."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from isr_kafka import classpath, jars, java
from isr_kafka.compile import build

JAVA = Path(__file__).parent.parent / "isr_kafka" / "java"


@contextmanager
def kafka_program(main: str, release: str) -> Generator[subprocess.Popen[str]]:
    """The program of this class beside the jars of a release; it is killed in the end."""
    path = classpath(build([JAVA], release), jars(release))
    command = [java(), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", path, main]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
