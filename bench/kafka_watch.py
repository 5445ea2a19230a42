"""A program of found/java on brokers of Kafka, where a line of ours in the byte code of Partition writes a watch."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from isr_found import JAVA_ROOT, JVM
from isr_kafka import build, classpath, jars, java, tools

ROOTS = ("common", "brokers", "likely")


def watch_of(release: str | None, program: str, numbers: Sequence[float], *what: str) -> tuple[int, list[str]]:
    """Run a class of `insync.found.likely` with these numbers: its exit status, and each line of its JVMs' watches.

    `what` is to be watched, in the words of Instrument; without it, epochs.
    """
    kafka_jars, more = jars(release), tools()
    classes = build([JAVA_ROOT / root for root in ROOTS], release, beside=more)
    with tempfile.TemporaryDirectory() as temporary:
        byte_code, watch = Path(temporary) / "byte-code", Path(temporary) / "watch"
        byte_code.mkdir()
        plain = classpath(classes, kafka_jars, more)
        instrument = ["insync.found.likely.Instrument", str(byte_code), *what]
        subprocess.run([java(), *JVM, "-cp", plain, *instrument], check=True)
        command = [java(), *JVM, f"-Dinsync.watch={watch}", "-cp", classpath(byte_code, classes, kafka_jars, more)]
        ran = subprocess.run([*command, f"insync.found.likely.{program}", *map(str, numbers)])
        lines = [line for file in sorted(Path(temporary).glob("watch.*")) for line in file.open()]
    return ran.returncode, lines
