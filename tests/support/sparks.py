"""For what tries Spark: Java or a skip, one session for each process of tests, a cluster, and what is compared."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from pwd import getpwnam

import attrs
import pyspark
import pytest
from pyspark.sql import SparkSession
from tests.support.limits import small_disk

from isr_check.engine import Exploration, Unavailable
from isr_pipeline import session
from isr_pipeline.explore import IN_MEMORY, QUICKLY, SETTINGS


def require_spark() -> None:
    """Skip the calling test without Java; fail it under CI."""
    try:
        session.check()
    except Unavailable as problem:
        if os.environ.get("CI", "").lower() not in ("", "0", "false"):
            pytest.fail(f"{problem}; under CI this is a failure, not a skip", pytrace=False)
        pytest.skip(str(problem))


FEW = {"spark.sql.shuffle.partitions": "2"}


def spark() -> SparkSession:
    """A session with two tasks at once, started by the first test that asks, ended with this process."""
    require_spark()
    if (active := SparkSession.getActiveSession()) is not None:
        return active
    return session.start(session.local(2), {**session.SETTINGS, **session.LOCALLY, **SETTINGS, **IN_MEMORY, **FEW})


def none_running() -> None:
    """End the session of this process, which another test left, so that one on a cluster can start."""
    if (active := SparkSession.getActiveSession()) is not None:
        session.stop(active)


def answer(found: Exploration) -> Exploration:
    """All that an engine says, less how long it took."""
    return attrs.evolve(found, seconds=0)


# A standalone cluster of processes on this machine

SPARK = Path(pyspark.__file__).parent
PATIENCE = 300.0
"""Seconds until a process must have said what is waited for, on a machine that has other things to do."""


@attrs.frozen
class Stranger:
    """A user of this machine with a folder that no other user may enter, as if it had a machine of its own."""

    name: str
    folder: Path

    @property
    def command(self) -> list[str]:
        return ["setpriv", "--reuid", self.name, "--regid", str(getpwnam(self.name).pw_gid), "--clear-groups"]

    def environment(self) -> dict[str, str]:
        own = {"HOME": self.folder, "TMPDIR": self.folder, "SPARK_LOCAL_DIRS": self.local}
        return {name: str(path) for name, path in own.items()}

    @property
    def local(self) -> Path:
        """Where Spark's files of this user are, and its visited sets."""
        return self.folder / "local"

    @contextmanager
    def with_disk(self, size: int) -> Generator[None, None, None]:
        """For what is local there is a disk of so many bytes."""
        with small_disk(self.local, size):
            shutil.chown(self.local, self.name, getpwnam(self.name).pw_gid)
            yield


@contextmanager
def strangers(*names: str) -> Generator[list[Stranger], None, None]:
    """Users of these names, who share no folder that any of them can write. Skips where this user is not root."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can be several users (setpriv)")
    with tempfile.TemporaryDirectory(prefix="insync-users-") as folder:
        Path(folder).chmod(0o711)
        made = [Stranger(name, Path(folder) / name) for name in names]
        for one in made:
            one.folder.mkdir(mode=0o700)
            shutil.chown(one.folder, one.name, getpwnam(one.name).pw_gid)
        yield made


@contextmanager
def cluster(
    folder: Path, workers: int, memory: str = "1g", owners: Sequence[Stranger] = ()
) -> Generator[str, None, None]:
    """The address of a master with so many workers of one core each, which work in `folder`.

    With `owners` each worker is of another user, works in that user's folder, and has an address of its own.
    """
    with ExitStack() as closing:
        log = started(closing, folder, "master", "--host", "127.0.0.1", "--port", "0")
        url = found_in(log, r"spark://127\.0\.0\.1:\d+")
        logs = list[Path]()
        everybody: Sequence[Stranger | None] = owners or [None] * workers
        for number, owner in enumerate(everybody, 2):
            host = f"127.0.0.{number}" if owner is not None else "127.0.0.1"
            work = str((owner.folder if owner is not None else folder) / "work")
            each = ["--host", host, "--cores", "1", "--memory", memory, "--work-dir", work]
            logs.append(started(closing, folder, "worker", *each, url, owner=owner))
        for log in logs:
            found_in(log, "Successfully registered with master")
        yield url


def started(closing: ExitStack, folder: Path, name: str, *arguments: str, owner: Stranger | None = None) -> Path:
    """A process of the cluster, which ends with the test; returns the file with what it says."""
    jars = str(SPARK / "jars" / "*")
    log = folder / f"{name}-{len(list(folder.glob('*.log')))}.log"
    main = f"org.apache.spark.deploy.{name}.{name.capitalize()}"
    own = ["-Dspark.master.rest.enabled=false", "-Xmx256m"]  # its port would be 6066, whoever else has it
    command = [session.java(), *QUICKLY.split(), *own, "-cp", jars, main, *arguments, "--webui-port", "0"]
    home, has = (owner.folder, owner.environment()) if owner is not None else (folder, dict[str, str]())
    command = [*(owner.command if owner is not None else []), *command]
    with log.open("wb") as said:
        process = subprocess.Popen(command, cwd=home, env={**environment(), **has}, stdout=said, stderr=said)
    closing.callback(process.wait)
    closing.callback(process.terminate)
    return log


def environment() -> dict[str, str]:
    """Everybody is on this machine alone; a worker must be told where Spark is, and for which Scala it was made."""
    scala = next((SPARK / "jars").glob("scala-library-*.jar")).stem.removeprefix("scala-library-").rpartition(".")[0]
    here = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_PUBLIC_DNS": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    return {**os.environ, **here, "SPARK_HOME": str(SPARK), "SPARK_SCALA_VERSION": scala}


def found_in(log: Path, pattern: str) -> str:
    until = time.monotonic() + PATIENCE
    while not (found := re.search(pattern, log.read_text(encoding="utf-8", errors="replace"))):
        assert time.monotonic() < until, log.read_text(encoding="utf-8", errors="replace")
        time.sleep(0.1)
    return found[0]
