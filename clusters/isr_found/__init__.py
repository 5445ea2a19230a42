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
`brokers` starts a controller and three or four brokers, each in a JVM of its own, with Kafka's default time-outs. A fix
is a change of Kafka's byte code that our Java makes (`found/java/fixes`), put first on the class path.

A story's last act is a line that names its verdict, itself and the release, and an exit code that a JVM never ends with
by itself. Where the two are not both there and of one mind, the bug could not be tried: `Unavailable` says why.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import Final, cast

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


VERDICT: Final = "verdict: "
"""What the last line of a story begins with; JSON follows: its outcome, its class, `control` and the release."""


class Outcome(Enum):
    """What became of the record; the value is the exit code of a story, which a JVM never ends with by itself.

    FAULT is of what loses no record (`isr_found.controllers`): it shows.
    """

    LOST = 41
    HELD = 42
    NOT_TRIED = 43
    FAULT = 44


@attrs.frozen
class KafkaBug:
    """One bug: what it loses and when, the Java class that shows it, its fixes, the usual one first, and the places.

    `seconds`: what a reproduction takes, by place, where nothing else runs. `other_ways`: further classes that show it,
    by the name of the way, in the same places.
    """

    name: str
    loses: str
    when: str
    scenario: str
    fixes: tuple[str, ...]
    seconds: Mapping[str, int]
    other_ways: Mapping[str, str] = attrs.field(factory=dict[str, str])

    @property
    def places(self) -> tuple[str, ...]:
        """Where it can be reproduced."""
        return tuple(place for place in PLACES if place in self.seconds)


BUGS: Final = {
    bug.name: bug
    for bug in (
        KafkaBug(
            "removed-replica",
            "all records of a partition, acknowledged with acks=all",
            "a reassignment completes under min.insync.replicas, which leaves the removed replica eligible; "
            "it is added again, and the leader shuts down before it has caught up",
            "MovedReplica",
            ("elr-of-replicas",),
            {"brokers": 40},
            {"fewer": "RemovedReplica", "cancel": "CancelledMove"},
        ),
        KafkaBug(
            "removed-directory",
            "all records of a partition, acknowledged with acks=all",
            "a broker in the ELR starts without the log directory of its replica, which was taken out of log.dirs, "
            "while the other replicas are down",
            "RemovedDirectory",
            ("mark-of-all-directories",),
            {"brokers": 60},
            {"last": "LastRemovedDirectory"},
        ),
        KafkaBug(
            "kept-positions",
            "a record that was acknowledged with acks=all",
            "a leader learns in one step that another led and that it leads again: it commits at positions from before",
            "KeptPositions",
            ("positions-reset-after-gap", "positions-reset"),
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
            ("configuration-first", "minimum-in-new-version"),
            {"brokers": 25},
        ),
        KafkaBug(
            "forgotten-proposal",
            "a record that was acknowledged with acks=all",
            "a leader has proposed a member before its metadata bring the version that it knows from an answer",
            "ForgottenProposal",
            ("proposal-kept",),
            {"classes": 5, "brokers": 60},
            {"both-return": "BothReturn"},
        ),
    )
}
"""Every bug, by name."""


@attrs.frozen(kw_only=True)
class Trial:
    """One run: where, on which Kafka, without the decisive condition (`control`), with a fix in Kafka's byte code.

    `way`: one of the bug's `other_ways`. `traces`: on brokers, where these write what they do (docs/kafka-trace.md),
    and `METADATA` of the controller's disk.
    """

    on: str = "classes"
    release: str | None = None
    home: Path | None = None
    control: bool = False
    fix: str | None = None
    way: str | None = None
    traces: Path | None = None


@attrs.define
class StoryRun:
    """A process that tells a story. Its lines come as it prints them; then `outcome` is there, or Unavailable says why.

    `story` is the class that the verdict has to name, `patience` the seconds after which the process is ended.
    """

    command: Sequence[str]
    story: str
    release: str
    control: bool
    patience: float
    outcome: Outcome | None = None

    def lines(self) -> Iterator[str]:
        """Every line of its standard output but the verdict; Unavailable if it ends without one."""
        late, verdict = threading.Event(), ""
        with tempfile.TemporaryFile() as errors, ExitStack() as stack:
            process = stack.enter_context(
                subprocess.Popen(
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    encoding="utf-8",
                    errors="replace",
                )
            )
            stack.callback(process.kill)

            def too_late() -> None:
                late.set()
                process.kill()

            timer = threading.Timer(self.patience, too_late)
            stack.callback(timer.cancel)
            timer.start()
            assert process.stdout is not None
            for line in map(str.rstrip, process.stdout):
                if verdict:  # it was not the last line
                    yield verdict
                    verdict = ""
                if line.startswith(VERDICT):
                    verdict = line
                else:
                    yield line
            code = process.wait()
            errors.seek(0)
            complaint = _complaint(errors.read().decode(errors="replace"))
        if late.is_set():
            raise Unavailable(f"it did not end within {self.patience:.0f} s")
        self.outcome = self._outcome(verdict, code, complaint)

    def _outcome(self, verdict: str, code: int, complaint: str) -> Outcome:
        """What the last line and the exit code agree on; Unavailable otherwise."""
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        why = f": {complaint}" if complaint else ""
        if not verdict:
            raise Unavailable(f"its process ended with {how} and without a verdict{why}")
        try:
            words = cast("object", json.loads(verdict.removeprefix(VERDICT)))
        except ValueError:
            raise Unavailable(f"its verdict cannot be read: {verdict[:200]}") from None
        for outcome in Outcome:
            expected = {
                "outcome": outcome.name,
                "story": self.story,
                "control": self.control,
                "release": self.release,
            }
            if words == expected:
                if code != outcome.value:
                    raise Unavailable(f"its process said {outcome.name} and ended with {how}{why}")
                return outcome
        raise Unavailable(f"its verdict is not that of {self.story} on Kafka {self.release}: {verdict[:300]}")


def _complaint(errors: str) -> str:
    """The line of a JVM's standard error that says most: an exception, else the last one."""
    lines = [line.strip() for line in errors.splitlines() if line.strip() and not line.startswith("SLF4J")]
    exceptions = [line for line in lines if re.search(r"\b\w+(Exception|Error)\b", line) and not line.startswith("at ")]
    return (exceptions or lines[-1:] or [""])[0][:300]


@attrs.define
class StoryReproduction(ABC):
    """A run of a story. Its lines come as it prints them; then `outcome` is there."""

    outcome: Outcome | None = attrs.field(default=None, init=False)

    def lines(self) -> Iterator[str]:
        """What happens, line by line; Unavailable if it could not be tried: what is missing, or why no verdict came."""
        with ExitStack() as stack:
            run = self.story_run(stack)
            yield from run.lines()
            self.outcome = run.outcome

    @abstractmethod
    def story_run(self, stack: ExitStack) -> StoryRun:
        """What is to be run; `stack` removes the classes with a fix in the end. Unavailable if something is missing."""


@attrs.define
class Reproduction(StoryReproduction):
    """A bug's story, on Kafka's classes or on brokers."""

    bug: KafkaBug
    trial: Trial

    def story_run(self, stack: ExitStack) -> StoryRun:
        """What is to be run; `stack` removes the classes with a fix in the end. Unavailable if something is missing."""
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
        scenario = self.bug.scenario if self.trial.way is None else self.bug.other_ways[self.trial.way]
        main = f"insync.found.{self.trial.on}.{scenario}"
        command = [java(), *JVM, *options, "-cp", path, main, *(["--control"] if self.trial.control else [])]
        return StoryRun(command, main, release_of(kafka_jars), self.trial.control, PATIENCE_S[self.trial.on])


def our_classes(on: str, release: str | None = None, home: Path | None = None, fixes: bool = False) -> Path:
    """The folder of our compiled Java for one of `PLACES`; on Kafka's classes in one JVM it is the adapter's, too."""
    roots = [JAVA_ROOT / root for root in ("common", on, *(["fixes"] if fixes else []))]
    if on == "classes":
        roots += adapter_sources()
    return build(roots, release, home, EXPORTS, beside=tools() if fixes else [])


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
        raise Unavailable(
            f"the fix {fix} cannot be made in this Kafka: {_complaint(ran.stderr) or 'it does not say why'}"
        )
    if not any(folder.rglob("*.class")):
        raise Unavailable(f"the fix {fix} changed nothing in this Kafka, and did not say why")
