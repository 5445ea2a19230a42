"""Bugs that were found here in Apache Kafka, each with two reproductions in Java that run Kafka's own code.

    from isr_found import BUGS, Outcome, Reproduction, Trial
    from isr_kafka.jars import cached

    run = Reproduction(BUGS["kept-positions"], Trial(on="classes", release="4.4.0"))
    print(run.bug.loses, "-", run.bug.when)
    if cached("4.4.0"):                                 # elsewhere it would have Maven fetch Kafka first
        for line in run.lines():
            print(line)
        assert run.outcome is Outcome.LOST

`found/` has a page for each, and the Java: `classes` runs Kafka's classes in one JVM, in seconds and always alike;
`brokers` starts a controller and three brokers, each in a JVM of its own, with Kafka's default time-outs. A fix is a
change of Kafka's byte code that our Java makes (`found/java/fixes`), put first on the class path.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import Final

import attrs

from isr_kafka import Unavailable, build, classpath, jars, java, release_of, tools
from isr_kafka.node import node_files
from isr_kafka.system import EXPORTS, adapter_sources

PLACES: Final = ("classes", "brokers")
"""Where a bug can be reproduced."""
CHECKOUT_JAVA: Final = Path(__file__).parents[2] / "found" / "java"
JAVA_ROOT: Final = CHECKOUT_JAVA if CHECKOUT_JAVA.is_dir() else Path(__file__).parent / "java"
"""The Java of the reproductions: in a checkout, or in the installed package."""
METADATA: Final = "metadata.log"
"""Beside traces: the log of `__cluster_metadata` as the controller left it."""
PATIENCE_S: Final = {"classes": 300.0, "brokers": 900.0}
"""Seconds after which a reproduction is ended: many times what it takes."""
JVM: Final = (
    *EXPORTS,
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
    f"-Dinsync.folder={tempfile.gettempdir()}",
)
"""Options of a JVM that runs our Java; what it writes for brokers in one JVM lies in the folder of temporary files."""


class Outcome(Enum):
    """What became of the record; the value is the exit code of our Java."""

    HELD = 0
    LOST = 1
    NOT_TRIED = 2


@attrs.frozen
class KafkaBug:
    """One bug: what it loses and when, the Java class that shows it, its fixes, the usual one first, and the places.

    `seconds`: what a reproduction takes, by place, where nothing else runs.
    """

    name: str
    loses: str
    when: str
    scenario: str
    fixes: tuple[str, ...]
    seconds: Mapping[str, int]

    @property
    def places(self) -> tuple[str, ...]:
        """Where it can be reproduced."""
        return tuple(place for place in PLACES if place in self.seconds)


BUGS: Final = {
    bug.name: bug
    for bug in (
        KafkaBug(
            "kept-positions",
            "a record that was acknowledged with acks=all",
            "a leader learns in one step that another led and that it leads again: it commits at positions from before",
            "KeptPositions",
            ("positions-reset", "positions-reset-after-gap"),
            {"classes": 5, "brokers": 12},
        ),
        KafkaBug(
            "overtaken-request",
            "a record that was acknowledged with acks=all",
            "an AlterPartition hangs, its second copy is refused, and then the first copy is accepted",
            "OvertakenRequest",
            ("refusal-in-new-version",),
            {"classes": 5, "brokers": 55},
        ),
        KafkaBug(
            "raised-min-insync",
            "a record that was acknowledged with acks=all",
            "a leader hears in one step that min.insync.replicas was raised and that it is alone in the ISR",
            "RaisedMinInsync",
            ("configuration-first",),
            {"brokers": 25},
        ),
        KafkaBug(
            "removed-replica",
            "all acknowledged records that a replica has not fetched",
            "a replica was removed below min.insync.replicas and added again, and the leader shuts down",
            "RemovedReplica",
            ("elr-of-replicas",),
            {"brokers": 14},
        ),
        KafkaBug(
            "forgotten-proposal",
            "a record that was acknowledged with acks=all",
            "a leader has proposed a member before its metadata bring the version that it knows from an answer",
            "ForgottenProposal",
            ("proposal-kept",),
            {"classes": 5, "brokers": 60},
        ),
    )
}
"""Every bug, by name."""


@attrs.frozen(kw_only=True)
class Trial:
    """One run: where, on which Kafka, without the decisive condition (`control`), with a fix in Kafka's byte code.

    `traces`: on brokers, where these write what they do (docs/kafka-trace.md), and `METADATA` of the controller's disk.
    """

    on: str = "classes"
    release: str | None = None
    home: Path | None = None
    control: bool = False
    fix: str | None = None
    traces: Path | None = None


@attrs.define
class Reproduction:
    """A run of our Java. Its lines come as it prints them; then `outcome` is known."""

    bug: KafkaBug
    trial: Trial
    outcome: Outcome | None = None

    def lines(self) -> Iterator[str]:
        """What happens, line by line; Unavailable if Java or Kafka is missing, or our Java does not fit the release."""
        with ExitStack() as stack:
            command = self._command(stack)
            process = stack.enter_context(
                subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
                )
            )
            timer = threading.Timer(PATIENCE_S[self.trial.on], process.kill)
            stack.callback(timer.cancel)
            stack.callback(process.kill)
            timer.start()
            assert process.stdout is not None
            for line in process.stdout:
                if not line.startswith("SLF4J"):  # a downloaded Kafka without its logging says that it has none
                    yield line.rstrip("\n")
            code = process.wait()
        self.outcome = _outcome(code, self.trial)

    def _command(self, stack: ExitStack) -> list[str]:
        if not JAVA_ROOT.is_dir():
            raise Unavailable("the reproductions are Java in found/java of the repository, which is not here")
        kafka_jars = jars(self.trial.release, self.trial.home)
        more = tools() if self.trial.fix else []
        classes = our_classes(self.trial.on, self.trial.release, self.trial.home, fixes=self.trial.fix is not None)
        path = classpath(classes, kafka_jars, more)
        options: list[str] = []
        if self.trial.traces is not None:
            path = os.pathsep.join((str(classes), node_files(self.trial.release, self.trial.home, tracing=True).path))
            options = [f"-Dinsync.traces={self.trial.traces}"]
        if self.trial.fix:
            changed = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="insync-fix-")))
            write_fix(self.trial.fix, changed, path)
            path = classpath(changed, classes, kafka_jars, more)
        main = f"insync.found.{self.trial.on}.{self.bug.scenario}"
        return [java(), *JVM, *options, "-cp", path, main, *(["--control"] if self.trial.control else [])]


def our_classes(on: str, release: str | None = None, home: Path | None = None, fixes: bool = False) -> Path:
    """The folder of our compiled Java for one of `PLACES`; on Kafka's classes in one JVM it is the adapter's, too."""
    roots = [JAVA_ROOT / root for root in ("common", on, *(["fixes"] if fixes else []))]
    if on == "classes":
        roots += adapter_sources(release_of(jars(release, home)))
    return build(roots, release, home, EXPORTS, beside=tools() if fixes else [])


def _outcome(code: int, trial: Trial) -> Outcome:
    if code in {outcome.value for outcome in Outcome}:
        return Outcome(code)
    if code < 0:
        raise Unavailable(f"the reproduction did not end within {PATIENCE_S[trial.on]:.0f} s")
    raise Unavailable(f"the reproduction ended with code {code}; what it printed says why")


def fixed_classes(fix: str, release: str | None, home: Path | None, folder: Path) -> tuple[Path, Path]:
    """What comes before Kafka's own on a class path: the folder, with the classes that the fix changes, and ours."""
    found, more = jars(release, home), tools()
    classes = build([JAVA_ROOT / "fixes"], release, home, beside=more)
    write_fix(fix, folder, classpath(classes, found, more))
    return folder, classes


def write_fix(fix: str, folder: Path, path: str) -> None:
    """Write Kafka's classes with the fix in their byte code; Unavailable if this Kafka has no such method."""
    command = [java(), *JVM, "-cp", path, "insync.found.fix.Fix", fix, str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        said = next((line for line in ran.stderr.splitlines() if line.strip()), "it does not say why")
        raise Unavailable(f"the fix {fix} cannot be made in this Kafka: {said}")
