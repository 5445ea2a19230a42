"""A cluster whose workers are two users that may not read each other's files; they share an S3 server with the driver.

Without these, exploration could need a file that only one machine of a cluster has, or code that is installed on none.
The executors' Python lacks insync: it comes from the driver.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
from tests.support import s3
from tests.support.expected import outcome, table
from tests.support.models import two_phase_commit
from tests.support.sparks import Stranger, answer, cluster, environment, require_spark, strangers

from isr_check import native
from isr_check.engine import Progress
from isr_designs import DESIGNS
from isr_lang import Instance
from isr_pipeline import session
from isr_pipeline.explore import SETTINGS, explore
from isr_pipeline.locations import Location
from isr_pipeline.store import Commit, Remade, Store

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(1800)]
INSYNC = str(Path(sys.executable).with_name("insync"))
FIVE = Instance(two_phase_commit.DESIGN, {"rms": 5})
ROWS = [(run, said) for run, said, _ in table() if 5_000 < said.distinct < 40_000][:3]
BUCKETS = 4
PATIENT = {"spark.locality.wait": "100s"}
"""A task waits for the executor that has its bucket, however slow this machine is."""

APART = "spark.shuffle.readHostLocalDisk false"
"""Executors of one address read each other's files, unless Spark is told that they cannot. Machines have addresses."""


@attrs.frozen
class Apart:
    """What the machines of a cluster have in common, its address and a bucket of a store; and who they are."""

    master: str
    url: str
    users: list[Stranger]

    def store(self, name: str) -> str:
        return self.url.format(name)

    def commits(self, name: str) -> list[Commit]:
        return Store(Location.of(self.store(name))).commits()


@contextmanager
def bare() -> Generator[str]:
    """A Python for everybody that has what insync depends on, and not insync."""
    site = next(entry for entry in sys.path if (Path(entry) / "pyarrow").is_dir())
    with tempfile.TemporaryDirectory(prefix="insync-python-") as folder:
        Path(folder).chmod(0o755)
        venv.create(folder, with_pip=False)
        packages = next(Path(folder).glob("lib/python*/site-packages"))
        (packages / "dependencies.pth").write_text(f"{site}\n", encoding="utf-8")
        yield str(Path(folder) / "bin" / "python")


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apart]:
    require_spark()
    folder = tmp_path_factory.mktemp("cluster")
    before = dict(os.environ)
    with s3.server(folder) as url, strangers("nobody", "daemon") as users, bare() as python:
        for user in users:
            asked = [*user.command, python, "-c", "import pyspark, pyarrow, isr_pipeline"]
            lacks = subprocess.run(asked, capture_output=True, text=True, check=False)
            assert "No module named 'isr_pipeline'" in lacks.stderr
        (folder / "spark-defaults.conf").write_text(f"{APART}\n", encoding="utf-8")
        os.environ.update({**environment(), "PYSPARK_PYTHON": python, "SPARK_CONF_DIR": str(folder)})
        try:
            with cluster(folder, 2, owners=users) as master:
                yield Apart(master, url, users)
        finally:
            os.environ.clear()
            os.environ.update(before)


@pytest.fixture
def spark(apart: Apart) -> Iterator[None]:
    with session.running(apart.master, settings={**session.SETTINGS, **SETTINGS, **PATIENT}):
        yield


def test_no_machine_reads_what_another_one_writes(apart: Apart, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("of the driver")
    for user, other in (apart.users, apart.users[::-1]):
        for place in (other.folder, tmp_path / "file"):
            refused = subprocess.run([*user.command, "ls", str(place)], capture_output=True, text=True, check=False)
            assert "Permission denied" in refused.stderr


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("row", range(len(ROWS)))
def test_rows_of_the_table(apart: Apart, row: int) -> None:
    run, said = ROWS[row]
    name = f"row-{row}"
    found = explore(run.instance(), store=apart.store(name), master=apart.master, partitions=BUCKETS, handover=500)
    assert outcome(found) == said
    assert answer(found) == answer(native.explore(run.instance()))
    by_executor = [list((user.folder / "local").glob("**/bucket-*/states")) for user in apart.users]
    assert all(by_executor), "both have visited sets"


@pytest.mark.usefixtures("spark")
def test_a_bucket_stays_where_its_visited_set_is(apart: Apart) -> None:
    """Each executor makes the sets of its buckets once, after the levels that the driver has done; then it has them."""
    found = explore(FIVE, store=apart.store("stays"), master=apart.master, partitions=BUCKETS, handover=100)
    assert answer(found) == answer(native.explore(FIVE))
    commits = apart.commits("stays")
    assert sum(c.remade.buckets for c in commits) == BUCKETS
    assert sum(c.states > 100 for c in commits) > 3


def executors() -> list[int]:
    def command(process: Path) -> str:
        try:
            return (process / "cmdline").read_text()
        except OSError:
            return ""

    found = [p for p in Path("/proc").iterdir() if p.name.isdigit() and "CoarseGrainedExecutorBackend" in command(p)]
    return sorted(int(p.name) for p in found)


@pytest.mark.usefixtures("spark")
def test_an_executor_killed_again_and_again(apart: Apart) -> None:
    killed = dict[int, int]()

    def kill(at: Progress) -> None:
        if at.depth in (4, 6, 8, 10) and at.depth not in killed and (there := executors()):
            os.kill(there[len(killed) % len(there)], signal.SIGKILL)
            killed[at.depth] = there[0]

    found = explore(
        FIVE, (), None, kill, store=apart.store("killed"), master=apart.master, partitions=BUCKETS, handover=100
    )
    assert answer(found) == answer(native.explore(FIVE))
    assert len(killed) == 4
    remade = sum((c.remade for c in apart.commits("killed")), Remade())
    assert remade.buckets > BUCKETS
    assert remade.seconds > 0


def waited(done: Callable[[], bool], running: subprocess.Popen[str]) -> None:
    while not done():
        assert running.poll() is None, "it ended before it could be killed"
        time.sleep(0.05)


def test_the_driver_killed_then_resumed_by_another(apart: Apart, tmp_path: Path) -> None:
    """The second driver has nothing of the first one but the address of the store."""
    run = f"check kip-966 --replicas 2 --engine spark --master {apart.master} --partitions {BUCKETS} --handover 700"
    command = [INSYNC, *run.split(), "--memory", "512M", "--quiet", "--store", apart.store("driver")]
    first = subprocess.Popen([*command, "--out", "first"], cwd=tmp_path, text=True)
    waited(lambda: "0007.json" in Location.of(apart.store("driver/commits")).files(), first)
    first.kill()
    first.wait()
    done = len(apart.commits("driver"))
    second = subprocess.run([*command, "--resume", "second"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert second.returncode == 0, second.stderr
    said = json.loads((tmp_path / "second" / "run.json").read_text(encoding="utf-8"))
    found = native.explore(Instance(DESIGNS["kip-966"], said["bounds"]))
    assert done < len(found.levels)
    assert (said["stats"]["distinct"], said["stats"]["generated"]) == (found.distinct, found.generated)
    assert said["coverage"]["actions"] == found.taken
    traced = {line["name"]: line["depth"] for line in said["properties"] if line["depth"] is not None}
    assert traced == {f.name: len(f.path.steps) for f in found.findings if f.path}
