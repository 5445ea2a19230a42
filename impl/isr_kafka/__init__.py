"""Apache Kafka's own code on this machine: its jars, a Java runtime, and our Java compiled against one release.

    from isr_kafka import RELEASES, Unavailable, build, jars, java

    classes = build([Path("impl/apache_kafka/src/main/java")], "4.4.0")
    subprocess.run([java(), "-cp", classpath(classes, jars("4.4.0")), "insync.Main"])

Jars come from Maven Central, each held to its checksum in `pinned/`, or from the `libs/` of a downloaded Kafka
(`home`). What is fetched and built lies in the user's cache folder. Whatever is missing is one sentence: `Unavailable`.
"""

from __future__ import annotations

from isr_kafka.compile import build
from isr_kafka.jars import RELEASES, classpath, command_line, jars, release_of, tools
from isr_kafka.programs import Unavailable, java, javac, maven

__all__ = [
    "RELEASES",
    "Unavailable",
    "build",
    "classpath",
    "command_line",
    "jars",
    "java",
    "javac",
    "maven",
    "release_of",
    "tools",
]
