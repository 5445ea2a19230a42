"""Apache Kafka's own code on this machine: its jars, a Java runtime, and our Java compiled against one release.

    from isr_kafka import RELEASES, Unavailable, build, classpath, jars, java
    from isr_kafka.jars import cached
    from isr_kafka.system import EXPORTS, adapter_sources

    release = RELEASES[0]
    try:
        if cached(release):                             # elsewhere `jars` would have Maven fetch them first
            classes = build(adapter_sources(), release, options=EXPORTS)
            print([java(), *EXPORTS, "-cp", classpath(classes, jars(release)), "insync.kafka.Main"])
    except Unavailable as missing:
        print(missing)

Jars come from Maven Central, each held to its checksum in `pinned/`, or from the `libs/` of a downloaded Kafka
(`home`). What is fetched and built lies in the user's cache folder. Whatever is missing is one sentence: `Unavailable`.

Reading order: `programs` (Java, Maven, and where things are kept), `jars`, `compile` (our Java), `system` (Kafka's
classes, driven by the model), `known_differences` and `known_raft_differences`, `mistakes`, `raft_mistakes` and
`controller_mistakes` (planted in Kafka's classes), `node` (a whole node of Kafka).
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
