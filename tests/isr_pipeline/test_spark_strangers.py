"""Exploration by a cluster whose workers share nothing but a store with each other and the driver (support/apart.py).

Without these, exploration could need a file that only one machine of a cluster has, or code that is installed on none.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest
from pyspark.sql import SparkSession
from tests.support.apart import Apart
from tests.support.apart import apart as cluster_apart
from tests.support.expected import outcome, table
from tests.support.models import two_phase_commit
from tests.support.sparks import answer, none_running

from insync_cli.exits import Exit
from isr_check import native
from isr_check.engine import Progress
from isr_lang import Instance
from isr_pipeline import session
from isr_pipeline.explore import SETTINGS, explore
from isr_pipeline.store import Commit, Remaking, Store
from isr_protocol.by_name import DESIGNS

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(1800)]
INSYNC = str(Path(sys.executable).with_name("insync"))
FIVE = Instance(two_phase_commit.DESIGN, {"rms": 5})
ROWS = [(run, said) for run, said, _ in table() if 5_000 < said.distinct < 40_000][:3]
BUCKETS = 4
PATIENT = {"spark.locality.wait": "100s"}
"""A task waits for the executor that has its bucket, however slow this machine is."""


@pytest.fixture(autouse=True)
def alone() -> None:
    none_running()


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apart]:
    with cluster_apart(tmp_path_factory.mktemp("cluster")) as made:
        yield made


def commits(apart: Apart, name: str) -> list[Commit]:
    return Store(apart.place(name)).commits()


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
    done = commits(apart, "stays")
    assert sum(c.remade.buckets for c in done) == BUCKETS
    assert sum(c.states > 100 for c in done) > 3


def test_disks_that_do_not_hold_all_visited_sets(tmp_path: Path) -> None:
    """What is on a disk beside the sets is Spark's: the code from the driver, and what passes between tasks."""
    many = 24
    with cluster_apart(tmp_path, disk=6 << 20) as small:
        with session.running(small.master, settings={**session.SETTINGS, **SETTINGS, **PATIENT}):
            found = explore(FIVE, store=small.store("full"), master=small.master, partitions=many, handover=100)
        assert answer(found) == answer(native.explore(FIVE))
        again = sum((c.remade for c in commits(small, "full")), Remaking())
    assert again.buckets > 2 * many, "sets were removed, and made again"


def executors(apart: Apart) -> list[int]:
    """The executors of this cluster, whoever else has one on this machine."""

    def ours(process: Path) -> bool:
        try:
            where = (process / "cwd").readlink()
            backend = "CoarseGrainedExecutorBackend" in (process / "cmdline").read_text()
        except OSError:
            return False
        return backend and any(where.is_relative_to(user.folder) for user in apart.users)

    return sorted(int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and ours(p))


@pytest.mark.usefixtures("spark")
def test_an_executor_killed_at_every_level(apart: Apart) -> None:
    killed = set[int]()

    def kill(at: Progress) -> None:
        if at.depth in killed:
            return
        while not (there := executors(apart)):
            time.sleep(0.2)  # the one that was killed before is not replaced yet
        os.kill(there[len(killed) % len(there)], signal.SIGKILL)
        killed.add(at.depth)

    found = explore(
        FIVE, (), None, kill, store=apart.store("killed"), master=apart.master, partitions=BUCKETS, handover=100
    )
    assert answer(found) == answer(native.explore(FIVE))
    done = commits(apart, "killed")
    assert killed >= set(range(len(found.levels)))
    remade = sum((c.remade for c in done), Remaking())
    assert remade.buckets > BUCKETS
    assert remade.seconds > 0


SPECULATIVE = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.25",
    "spark.speculation.minTaskRuntime": "500ms",
}


def workers_of(user: str) -> list[int]:
    """Spark's Python processes of a user, those that run tasks included."""
    found = subprocess.run(["pgrep", "-u", user, "-f", "pyspark.daemon"], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


def speculated(spark: SparkSession) -> int:
    """How many tasks were begun a second time because the first attempt was slow, as Spark's own page has it."""
    url = f"{session.page(spark)}/api/v1/applications/{spark.sparkContext.applicationId}/stages?details=true"
    with urlopen(url) as page:
        stages = json.load(page)
    return sum(task["speculative"] for stage in stages for task in stage.get("tasks", {}).values())


def test_a_task_that_hangs_is_begun_again_elsewhere(apart: Apart) -> None:
    """With speculation two attempts at a task can both end, and both write; one of them counts."""
    halted = dict[int, list[int]]()

    def halt(at: Progress) -> None:
        for depth in [d for d in halted if d < at.depth]:
            for process in halted.pop(depth):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)
            ended.append(depth)
        if (
            at.depth in (5, 7, 9)
            and at.depth not in halted
            and (there := workers_of(apart.users[at.depth // 2 % 2].name))
        ):
            for process in there:
                os.kill(process, signal.SIGSTOP)
            halted[at.depth] = there

    ended = list[int]()
    with session.running(apart.master, settings={**session.SETTINGS, **SETTINGS, **SPECULATIVE}) as spark:
        found = explore(
            FIVE, (), None, halt, store=apart.store("hung"), master=apart.master, partitions=BUCKETS, handover=100
        )
        again = speculated(spark)
    assert answer(found) == answer(native.explore(FIVE))
    assert ended == [5, 7, 9]
    assert again >= 3


def waited(done: Callable[[], bool], running: subprocess.Popen[str]) -> None:
    while not done():
        assert running.poll() is None, "it ended before it could be killed"
        time.sleep(0.05)


def test_the_driver_killed_then_resumed_by_another(apart: Apart, tmp_path: Path) -> None:
    """The second driver has nothing of the first one but the address of the store.

    Both have the cluster do levels: the first those from level 6 on, the second all that are left.
    """
    run = f"check kip-966 --replicas 2 --isr-changes 1 --engine spark --master {apart.master}"
    more = f"--partitions {BUCKETS} --handover 230"
    command = [INSYNC, *run.split(), *more.split(), "--memory", "512M", "--quiet", "--store", apart.store("driver")]
    first = subprocess.Popen([*command, "--out", "first"], cwd=tmp_path, text=True)
    waited(lambda: "0007.json" in apart.place("driver/commits").files(), first)
    first.kill()
    first.wait()
    done = len(commits(apart, "driver"))
    second = subprocess.run([*command, "--resume", "second"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert second.returncode == Exit.TOO_SMALL, second.stderr
    said = json.loads((tmp_path / "second" / "run.json").read_text(encoding="utf-8"))
    found = native.explore(Instance(DESIGNS["kip-966"], said["bounds"]))
    assert done < len(found.levels)
    assert (said["stats"]["distinct"], said["stats"]["generated"]) == (found.distinct, found.generated)
    assert said["coverage"]["actions"] == found.steps_by_action
    traced = {line["name"]: line["depth"] for line in said["properties"] if line["depth"] is not None}
    assert traced == {f.name: len(f.path.steps) for f in found.findings if f.path}
