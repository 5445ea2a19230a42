"""What a node of Apache Kafka is started from: a class path, a formatted folder, an archive of classes; all cached.

    files = node_files("4.4.0")
    files.new_folder(Path("data/1"), node=1, cluster=new_id())
    subprocess.Popen(files.command(Path("server.properties")))

`noting` are nodes whose FileRecords notes what it flushed (`insync.node.Flushed`), which a power failure needs to know;
that class alone is changed, by ByteBuddy. A node ends when its standard input does.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import os
import shutil
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from isr_kafka.compile import build
from isr_kafka.jars import RELEASES, classpath, jars, logging, release_of, tools
from isr_kafka.programs import Unavailable, cache_folder, java, lock_folder
from isr_kafka.system import SOURCES

_COUNT: Final = itertools.count()
OLDEST: Final = (4, 0)
"""The first release whose nodes are started here: KRaft alone, with KIP-966's eligible leader replicas."""
RUNNABLE: Final = tuple(r for r in RELEASES if tuple(map(int, r.split(".")[:2])) >= OLDEST)
JVM: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")
"""Quick to start and small: half a dozen nodes fit into a laptop. Not for measurements of Kafka's speed."""
LOGS: Final = (
    "-Dorg.slf4j.simpleLogger.logFile=System.out",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
    "-Dlog4j2.level=INFO",  # of a downloaded Kafka, which brings Log4j
)
QUIETLY: Final = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dlog4j2.level=WARN")
"""Options with which a node says what is wrong, and no more: its ordinary log has a thousand lines for each start."""
ELR: Final = "eligible.leader.replicas.version"


@attrs.frozen(kw_only=True)
class NodeFiles:
    """One release, ready to be started; `folder` is where its archive of classes and its formatted folders lie."""

    release: str
    folder: Path
    program: str
    path: str
    noting: bool

    @property
    def archive(self) -> Path:
        """Kafka's classes as a JVM left them after one start (class data sharing), for quicker ones."""
        return self.folder / "classes.jsa"

    def command(self, properties: Path, options: Sequence[str] = ()) -> list[str]:
        """What starts a node; `options` are the JVM's."""
        shared = [f"-XX:SharedArchiveFile={self.archive}"] if self.archive.is_file() else []
        main = ["-cp", self.path, "insync.node.Node", str(properties)]
        return [self.program, *JVM, *LOGS, *shared, *options, *main]

    def plain_command(self) -> list[str]:
        """What starts a node by Kafka's own main class, without anything of ours; the name of its settings follows."""
        shared = [f"-XX:SharedArchiveFile={self.archive}"] if self.archive.is_file() else []
        return [self.program, *JVM, *LOGS, *QUIETLY, *shared, "-cp", self.path, "kafka.Kafka"]

    def new_folder(self, data: Path, node: int, cluster: str, controller: bool, elr: bool = True) -> None:
        """Make the folder of a node of this cluster, formatted with the ELR (KIP-966) switched on or off."""
        shutil.copytree(self._formatted_folder(controller, elr), data)
        mine = {"cluster.id": cluster, "node.id": str(node), "directory.id": new_id(), "version": "1"}
        (data / "meta.properties").write_text("".join(f"{k}={v}\n" for k, v in mine.items()), encoding="utf-8")

    def _formatted_folder(self, controller: bool, elr: bool) -> Path:
        """A folder that Kafka's StorageTool has formatted, once for all nodes of a role: that costs a JVM's start."""
        folder = self.folder / f"{'controller' if controller else 'broker'}-elr-{int(elr)}"
        if not folder.is_dir():
            with lock_folder(self.folder):
                if not folder.is_dir():
                    self._format(folder, controller, elr)
        return folder

    def _format(self, folder: Path, controller: bool, elr: bool) -> None:
        with tempfile.TemporaryDirectory(dir=self.folder) as work:
            properties = Path(work) / "server.properties"
            settings = {
                "node.id": "1",
                "process.roles": "broker,controller" if controller else "broker",
                "controller.quorum.voters": "1@127.0.0.1:9093" if controller else "2@127.0.0.1:9093",
                "controller.listener.names": "CONTROLLER",
                "listeners": "PLAINTEXT://127.0.0.1:9092" + (",CONTROLLER://127.0.0.1:9093" if controller else ""),
                "log.dirs": f"{work}/data",
            }
            properties.write_text("".join(f"{k}={v}\n" for k, v in settings.items()), encoding="utf-8")
            self.format(properties, new_id(), "--feature", f"{ELR}={int(elr)}")
            shutil.move(f"{work}/data", folder)

    def format(self, properties: Path, cluster: str, *arguments: str) -> None:
        """Have Kafka's StorageTool format the folders that a server.properties names; Unavailable if it does not."""
        tool = ["kafka.tools.StorageTool", "format", "--cluster-id", cluster, "--config", str(properties)]
        command = [self.program, *JVM, *LOGS, "-cp", self.path, *tool, *arguments]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0:
            said = (ran.stderr or ran.stdout).strip().splitlines()
            raise Unavailable(
                f"Kafka {self.release} formats no folder: {said[-1][:200] if said else 'no reason given'}"
            )

    @property
    def is_trained(self) -> bool:
        """Whether the archive was made, or tried to be."""
        return (self.folder / "trained").exists()

    def train(self, start_and_stop: Callable[[Sequence[str]], None]) -> None:
        """Make the archive, if there is none: have a node started and stopped in order with these options of the JVM.

        A JVM that cannot leaves none, and nodes take longer to start.
        """
        self._formatted_folder(controller=True, elr=True)
        with lock_folder(self.folder):
            if not self.is_trained:
                work = self.folder / "classes.jsa.new"
                start_and_stop([f"-XX:ArchiveClassesAtExit={work}", "-Xlog:disable"])
                if work.is_file():
                    work.rename(self.archive)
                (self.folder / "trained").touch()


def node_files(
    version: str | None = None, home: Path | None = None, noting: bool = False, tracing: bool = False
) -> NodeFiles:
    """What nodes of a release, or of a downloaded Kafka, are started from; Unavailable if something is missing.

    With `tracing` they can write what they do (`insync.trace.Trace`).
    """
    program = java()
    kafka_jars = [path for path in jars(version, home) if not path.name.startswith("slf4j-nop-")]
    release = release_of(kafka_jars)
    if tuple(map(int, release.split(".")[:2])) < OLDEST:
        raise Unavailable(f"Kafka {release} is not started here; there are {', '.join(RUNNABLE)}")
    kafka_jars += logging(home)
    ours = [build([SOURCES / "node"], version, home)]
    if noting:
        ours.append(
            _changed_classes([SOURCES / "node", SOURCES / "note"], "insync.note.Note", version, home, kafka_jars)
        )
    if tracing:
        sources = [SOURCES / "trace"]
        try:
            woven = _changed_classes(sources, "insync.trace.Weave", version, home, kafka_jars)
        except Unavailable as problem:
            raise Unavailable(f"Kafka {release} cannot be made to write traces, {RELEASES[0]} can: {problem}") from None
        ours += [build(sources, version, home, beside=tools()), woven]
    key = _key(program, kafka_jars, ours)
    folder = cache_folder() / "nodes" / f"{release}-{'noting-' * noting}{'tracing-' * tracing}{key}"
    with lock_folder(folder):
        jar = folder / "node.jar"
        if not jar.is_file():
            _pack(ours, jar)
    return NodeFiles(release=release, folder=folder, program=program, path=classpath(jar, kafka_jars), noting=noting)


def initial_controllers(addresses: Mapping[int, tuple[str, int]], directories: Mapping[int, str]) -> str:
    """Voters as `kafka-storage format --initial-controllers` takes them, each with its directory id (KIP-853)."""
    return ",".join(f"{node}@{host}:{port}:{directories[node]}" for node, (host, port) in addresses.items())


def controller_settings(node: int, address: tuple[str, int], data: Path) -> dict[str, str]:
    """What makes a node a controller and no broker; who its voters are stands beside it."""
    return {
        "node.id": str(node),
        "process.roles": "controller",
        "controller.listener.names": "CONTROLLER",
        "listeners": "CONTROLLER://{}:{}".format(*address),
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
        "log.dirs": str(data),
    }


def new_id() -> str:
    """An id in the form of Kafka's Uuid: 128 bits in base 64, not beginning with a dash. No two are alike."""
    while True:
        seed = f"{time.time_ns()} {os.getpid()} {next(_COUNT)}"
        word = base64.urlsafe_b64encode(hashlib.sha256(seed.encode()).digest()[:16])[:22].decode()
        if not word.startswith("-"):
            return word


def _changed_classes(
    sources: Sequence[Path], program: str, version: str | None, home: Path | None, kafka_jars: Sequence[Path]
) -> Path:
    """A folder with classes of Kafka's as a program of ours, made from these sources, has changed them."""
    maker = build(sources, version, home, beside=tools())
    folder = maker.parent / f"{maker.name}-changed"
    if not folder.is_dir():
        with lock_folder(folder.parent), tempfile.TemporaryDirectory(dir=folder.parent) as work:
            path = classpath(maker, kafka_jars, tools())
            ran = subprocess.run(
                [java(), *JVM, "-cp", path, program, f"{work}/classes"], capture_output=True, text=True
            )
            if ran.returncode != 0:
                raise Unavailable(f"{program} cannot change this Kafka's classes: {ran.stderr.strip()[:300]}")
            if not folder.is_dir():
                shutil.move(f"{work}/classes", folder)
    return folder


def _pack(folders: Sequence[Path], jar: Path) -> None:
    """One jar of all classes, for an archive of classes takes no folders; a later folder's class wins."""
    classes = {path.relative_to(top).as_posix(): path for top in folders for path in sorted(top.rglob("*.class"))}
    new = jar.with_suffix(".new")
    with zipfile.ZipFile(new, "w") as file:
        for name, path in classes.items():
            file.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), path.read_bytes())
    new.rename(jar)


def _key(program: str, *parts: Sequence[Path]) -> str:
    digest = hashlib.sha256(f"{os.path.realpath(program)} {' '.join((*JVM, *LOGS))}".encode())
    for path in (path for part in parts for path in part):
        digest.update(f"{path} {path.stat().st_size if path.is_file() else ''}\0".encode())
    return digest.hexdigest()[:16]
