"""A Spark session: how it is started, what is said when it cannot be, and what is said when a task fails.

    with session.running(master="local[2]") as spark:
        with session.configured(spark, {"spark.sql.shuffle.partitions": "4"}), session.plainly():
            ...

Only the DataFrame interface and Arrow are used, so that `sc://host`, Spark Connect, is a master like others.
pyspark is an extra of this project, and Java comes from the system: the launcher of Spark 4 wants a module of it
(`jdk.incubator.vector`) that the Java runtimes on PyPI lack.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, cast
from urllib.parse import urlsplit

from isr_check.engine import Failed, Unavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = 17
"""The oldest Java on which Spark 4 runs."""
PACKAGE = "openjdk-17-jre-headless"
EXTRA = "pip install 'insync[spark]'"
CONNECT = 15002
"""The port of a server of Spark Connect, unless its URL names another."""

SETTINGS = {
    "spark.log.level": "OFF",  # a task that fails is reported by us, in one line
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",  # plans here are small and known; adapting them takes longer than they do
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}
LOCALLY = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""Settings of a session on this machine alone, which must also work without a network."""


class Gateway(Protocol):
    """The Java process of a session."""

    proc: subprocess.Popen[bytes]

    def shutdown(self) -> None: ...


Tell = Callable[[str, int, int], object]
"""Hears what tasks are for, how many of them are done, and how many there are."""
LOOK = 0.5
"""Seconds between two looks at how far a job is."""


def silent(what: str, finished_count: int, total: int) -> None:
    """Tells nobody."""


Launch = Callable[[object, dict[str, IO[bytes]]], Gateway]


def java() -> str:
    """The program `java` that Spark will run; Unavailable if there is none, or if it is too old."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if program is None:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH"
        raise Unavailable(f"Spark needs Java {JAVA} or newer, and there is none {where} (Debian: {PACKAGE})")
    told = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)(?:\.(\d+))?', told.stdout + told.stderr)
    major = int(version[2] or 0) if version and version[1] == "1" else int(version[1]) if version else 0
    if major < JAVA:
        raise Unavailable(f"Spark needs Java {JAVA} or newer, and {program} is {major} (Debian: {PACKAGE})")
    return program


def check(master: str | None = None) -> None:
    """Unavailable, with a sentence of what to install, unless a session can be started here.

    Spark Connect has its Java elsewhere.
    """
    for name in ("pyspark", "pyarrow", "msgspec"):
        if find_spec(name) is None:
            raise Unavailable(f"the engine 'spark' needs {name}, which is not installed: {EXTRA}")
    if not remote(master):
        java()


def remote(master: str | None) -> bool:
    """Whether this master is a server of Spark Connect."""
    return master is not None and master.startswith("sc://")


def local(workers: int | None = None) -> str:
    """The master for this machine alone, with so many tasks at once, all processors unless told.

    As on a cluster, a task that fails is tried again.
    """
    return f"local[{workers or len(os.sched_getaffinity(0))},4]"


def alone(master: str | None) -> bool:
    """Whether this master is this machine alone."""
    return master is None or master.startswith("local")


@contextmanager
def running(
    master: str | None = None,
    *,
    workers: int | None = None,
    memory: int | None = None,
    scratch: Path | None = None,
    settings: Mapping[str, str] | None = None,
) -> Generator[SparkSession, None, None]:
    """A session on the master, this machine alone unless told; one that is running already is used, and left running.

    Failed if that one is on another master: a process has one, and who named a cluster would not be asking it.

    `memory`: bytes for Java, here and in each executor. `scratch`: a folder for what passes between tasks. Executors of
    a cluster get the code from here, so that they need Python with what insync depends on, and not insync.
    """
    check(master)
    from pyspark.sql import SparkSession

    if (active := SparkSession.getActiveSession()) is not None:
        where = master_of(active)
        if master is not None and where not in (None, master) and not (alone(where) and alone(master)):
            raise Failed(f"this process has a session on {where}; end it before one on {master} can start")
        yield active
        return
    all_settings = {**SETTINGS, **(settings or {})}
    if memory is not None:
        all_settings |= {f"spark.{who}.memory": f"{max(memory >> 20, 512)}m" for who in ("driver", "executor")}
    if scratch is not None:
        all_settings["spark.local.dir"] = str(scratch)
    if not alone(master):
        all_settings["spark.ui.enabled"] = "true"
    with tempfile.TemporaryDirectory(prefix="insync-") as code:
        spark = start(master or local(workers), all_settings)
        try:
            if not alone(master):
                ship(spark, Path(code) / "insync.zip")
            yield spark
        finally:
            stop(spark)


def master_of(spark: SparkSession) -> str | None:
    """The master of a session; None of Spark Connect, whose client does not know."""
    with suppress(Exception):
        return spark.sparkContext.master
    return None


def ship(spark: SparkSession, archive: Path) -> None:
    """Give the executors of a session the code that runs here, whatever is installed where they are.

    The archive is made for it, and must stay as long as the session: executors that come later ask for it, too.
    """
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as content:
        for name, file in own_code().items():
            content.write(file, name)
    before = list(sys.path)
    with plainly():
        spark.addArtifacts(str(archive), pyfile=True)
    sys.path[:] = before  # what is imported here goes on to come from where it came from


def own_code() -> dict[str, Path]:
    """The files of all modules of this project by their names in an archive."""
    found = dict[str, Path]()
    for root in (Path(entry or ".") for entry in reversed(sys.path)):
        for file in (*root.glob("isr_*.py"), *root.glob("isr_*/**/*.py"), *root.glob("insync_cli/**/*.py")):
            found[str(file.relative_to(root))] = file
    return found


def describe(spark: SparkSession, what: str) -> None:
    """Name the jobs that this thread starts from now on; a page of Spark Connect shows no names."""
    with suppress(Exception):
        spark.sparkContext.setJobDescription(f"insync: {what}")


def page(spark: SparkSession) -> str:
    """The address of Spark's page about this session; empty if it has none."""
    with suppress(Exception):
        return spark.sparkContext.uiWebUrl or ""
    return ""


def tasks(spark: SparkSession) -> tuple[int, int] | None:
    """How many tasks of the running stages are done, and how many there are; None where Spark does not tell."""
    with suppress(Exception):
        tracker = spark.sparkContext.statusTracker()
        stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage)) is not None]
        if stages:
            return sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)
    return None


@contextmanager
def watch_jobs(spark: SparkSession, what: str, tell: Tell) -> Generator[None, None, None]:
    """Name the jobs that the block starts, and tell meanwhile how many of their tasks are done."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK):
            if counted := tasks(spark):
                tell(f"tasks: {what}", *counted)

    describe(spark, what)
    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def start(master: str, settings: Mapping[str, str]) -> SparkSession:
    """Start a session. The output of Java goes to a file, whose last error is in the message if Java does not start."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Spark starts its workers in the current folder, whose modules they would import.
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    if remote(master):
        _reach(master)
        try:
            builder = SparkSession.builder.remote(master)
            for name, value in settings.items():
                if name.startswith("spark.sql."):  # a client sets nothing else: the server runs already
                    builder = builder.config(name, value)
            return builder.getOrCreate()
        except ImportError as problem:
            raise Unavailable(f"Spark Connect ({master}) needs more: {last_line(str(problem))}") from None
        except Exception as problem:
            raise Failed(f"there is no session at {master}: {last_line(str(problem))}") from None
    return _start_here(master, {**(LOCALLY if master.startswith("local") else {}), **settings})


def _reach(master: str) -> None:
    """Failed where nobody answers: a client of Spark Connect would try again for ten minutes."""
    at = urlsplit(master)
    try:
        socket.create_connection((at.hostname or "", at.port or CONNECT), timeout=10).close()
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise Failed(f"there is no session at {at.scheme}://{at.netloc}: {str(reason).lower()}") from None


def _start_here(master: str, settings: Mapping[str, str]) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    launch_gateway = cast("Launch", vars(import_module("pyspark.java_gateway"))["launch_gateway"])

    configuration = SparkConf().setMaster(master).setAppName("insync")
    for name, value in settings.items():
        configuration.set(name, value)
    with tempfile.TemporaryFile() as log, _own_interrupts():
        try:
            gateway = launch_gateway(configuration, {"stdout": log, "stderr": log})
            context = cast("Callable[..., SparkContext]", SparkContext)
            return SparkSession(context(gateway=gateway, conf=configuration))
        except Exception as problem:
            reason = last_line(_text(problem))
            with suppress(Exception):
                cast("SparkContext", vars(SparkContext)["_active_spark_context"]).stop()
            _forget()
            log.seek(0)
            said = log.read().decode(errors="replace").strip().splitlines()
            errors = [line for line in said if re.search(r"\b(Error|Exception)\b", line)]
            reason = errors[-1] if errors else reason
            raise Failed(f"Spark did not start on {master}: {reason.strip()}") from None


def stop(spark: SparkSession) -> None:
    """End the session, even if its Java has died."""
    with suppress(Exception):
        spark.stop()
    _forget()


def _forget() -> None:
    """End the Java process, so that the next session starts a new one with its own memory setting."""
    from pyspark import SparkContext

    state = vars(SparkContext)
    gateway = state.get("_gateway")
    if gateway is None or state.get("_active_spark_context") is not None:
        return
    with suppress(Exception):
        cast("Gateway", gateway).shutdown()
    with suppress(Exception):
        process = cast("Gateway", gateway).proc
        assert process.stdin is not None, "Java ends when this closes"
        process.stdin.close()
        process.wait(timeout=20)
    for name in ("_gateway", "_jvm"):
        setattr(SparkContext, name, None)


@contextmanager
def _own_interrupts() -> Generator[None, None, None]:
    """Keep the handler of Ctrl-C, which Spark would replace when it starts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def use_settings(spark: SparkSession, settings: Mapping[str, str]) -> Generator[None, None, None]:
    """Change settings of the session inside the context."""
    before = {name: _setting(spark, name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        with suppress(Exception):  # a session that has died has no settings
            for name, earlier in before.items():
                if earlier is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, earlier)


def _setting(spark: SparkSession, name: str) -> str | None:
    """The value of a setting, or Spark's default; None if it has neither."""
    with suppress(Exception):
        return spark.conf.get(name)
    return None


@contextmanager
def plainly() -> Generator[None, None, None]:
    """Turn what Spark raises into Failed, with the last line of a task's exception in place of Java's many lines."""
    from pyspark.errors import PySparkException

    gateway_error = cast("type[Exception]", vars(import_module("py4j.protocol"))["Py4JError"])
    try:
        yield
    except (PySparkException, gateway_error, ConnectionError, EOFError) as problem:
        raise Failed(last_line(_text(problem))) from None


def _text(problem: Exception) -> str:
    """The message of an exception; empty if it came from a Java that has ended since."""
    with suppress(Exception):
        return str(problem)
    return ""


def last_line(text: str) -> str:
    """The last line of a Python traceback in this text; without one, Java's message, or the first line."""
    lines = text.strip().splitlines()
    begins = [i for i, line in enumerate(lines) if "Traceback (most recent call last):" in line]
    if begins:
        for line in lines[begins[-1] + 1 :]:
            if line.strip() and not line.startswith((" ", "\t")):
                return line.strip()
    java_says = re.search(r"^: (\S.*)", text, re.MULTILINE)
    if lines and lines[0].startswith("An error occurred while calling") and java_says:
        return java_says[1].strip()
    crashed = re.search(r"Python worker (?:exited|failed|process)[^\n(]*", text)
    if crashed:
        return crashed[0].strip().rstrip(".:")
    return lines[0].strip() if lines else "no reason was given"
