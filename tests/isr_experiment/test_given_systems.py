"""A system that a file describes: what the file may say, what follows from what it leaves out, and a run of it.

Without these, a mistake in a user's `system.toml` could end in a traceback, or a fault that a system cannot have could
count as survived.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import attrs
import pytest

from insync_cli.main import main
from isr_cluster.ports import HOST, free_ports
from isr_cluster.system_description import BadDescription, GivenProcesses, read_system_description
from isr_experiment.campaign import lacking
from isr_experiment.catalogue import EXPERIMENTS
from isr_experiment.cells import REPLICAS
from isr_experiment.schedules import NEEDS, restart_of_one
from isr_experiment.systems import GivenSystem, needs

TOP = Path(__file__).resolve().parents[2]
START = 'start = ["broker", "--port", "{port}", "--advertise", "{found_host}:{found_port}", "{flush_record}"]\n'
FULL = START + 'logs = "{data}"\n'


def file(folder: Path, text: str) -> Path:
    path = folder / "system.toml"
    path.write_text(text)
    return path


def system(folder: Path, text: str, network: str = "proxies") -> GivenSystem:
    description = read_system_description(file(folder, text))
    brokers = tuple(range(1, description.brokers + 1))
    return GivenSystem(name=description.name, description=description, network=network, brokers=brokers)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("start = [", "is not TOML: "),
        ("", "does not say how to start a broker"),
        (START + "stpo = []", "has a key 'stpo'; did you mean 'stop'?"),
        ('start = "broker"', "start is a list of words"),
        ('start = ["b", "{prot}"]', "start has '{prot}'; did you mean 'port'?"),
        ('start = ["b", "{"]', "start has '{': "),
        (START + 'pause = ["x"]', "needs both of pause and resume"),
        (START + "brokers = 2", "brokers is 4, or 1 for a system that is one process, not 2"),
        (START + 'orderly_exits = ["0"]', "orderly_exits is a list of exit codes"),
        (START + "logs = 1", "name and logs are texts"),
        (START + "[settings]\na = 1", "[settings] is a table of texts"),
        (START + '[cannot]\npuase = "no"', "there is no fault 'puase'; did you mean 'pause'?"),
    ],
)
def test_a_file_that_describes_no_system_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, sentence: str
) -> None:
    path = file(tmp_path, text)
    with pytest.raises(BadDescription) as problem:
        read_system_description(path)
    assert sentence in str(problem.value)
    assert main(["experiment", "quick", "--network", "proxies", "--system", str(path)]) == 65
    assert capsys.readouterr().err == f"insync: {problem.value}\n"


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = str(tmp_path / "system.toml")
    assert main(["experiment", "quick", "--network", "proxies", "--system", nowhere]) == 65
    assert capsys.readouterr().err == f"insync: {nowhere} cannot be read: no such file or directory\n"
    assert main(["experiment", "quick", "--system", nowhere, "--kafka-home", "x"]) == 64


def left_out(of: GivenSystem, name: str) -> list[str]:
    return list(lacking(EXPERIMENTS[name], of))


def test_what_a_system_cannot_have_is_left_out_with_the_reason(tmp_path: Path) -> None:
    able = system(tmp_path, FULL)
    assert left_out(able, "power-loss") == []
    assert left_out(able, "jepsen-2013") == ["kafka-0.8", "kip-497, min 2", "kraft-3.5, min 2"]
    fixed = system(tmp_path, 'name = "fixed"\nstart = ["broker", "{host}", "{flush_record}"]\nlogs = "{data}"')
    assert lacking(EXPERIMENTS["acks-1"], fixed)["acks=1"] == (
        "fixed cannot have the fault 'partition': its start command does not take {found_port}, over proxies"
    )
    assert not lacking(EXPERIMENTS["acks-1"], attrs.evolve(fixed, network="namespaces"))
    blind = system(tmp_path, START)
    assert len(left_out(blind, "power-loss")) == 3
    assert left_out(blind, "full-disk") == ["full disk"]
    assert "its file does not say where its logs are" in blind.cannot()["power"]
    silent = system(tmp_path, START.replace(', "{flush_record}"', "") + 'logs = "{data}"')
    assert "does not note what it has flushed" in silent.cannot()["power"]
    assert left_out(silent, "full-disk") == []
    told = system(tmp_path, FULL + '[cannot]\nstop = "it has no orderly end"')
    assert left_out(told, "rolling-restart") == ["orderly, one by one"]
    assert left_out(told, "safe-settings") == [], "a storm takes other kinds of fault"
    bare = system(tmp_path, 'start = ["b"]\n[cannot]\nkill = "no"\npause = "no"\nslow = "no"')
    assert left_out(bare, "safe-settings") == ["kip-966, acks=all, min 2, unclean off"]


def test_a_system_of_one_process_has_the_cells_of_one_replica(tmp_path: Path) -> None:
    alone = system(tmp_path, START + "brokers = 1")
    assert left_out(alone, "one-replica") == []
    assert lacking(EXPERIMENTS["unclean"], alone)["unclean on"].endswith(
        "is one process, and the cell needs 3 replicas"
    )
    (cell, *_) = EXPERIMENTS["one-replica"].cells(0)
    assert alone.replicas(cell) == (1,)
    assert system(tmp_path, START).replicas(cell) == REPLICAS[:1]


def test_it_is_known_of_every_cell_what_it_needs() -> None:
    for experiment in EXPERIMENTS.values():
        for cell in experiment.cells(0):
            assert isinstance(needs(cell, frozenset()), frozenset)
    assert restart_of_one not in NEEDS, "it needs what it is told to do"


BROKER = """
import os, pathlib, signal, sys, time
pathlib.Path(sys.argv[3], "pid").write_text(str(os.getpid()))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print(*sys.argv[1:], pathlib.Path(sys.argv[4]).read_text().split(), flush=True)
while True:
    time.sleep(0.05)
"""


def processes(folder: Path, told: list[str], more: str = "") -> GivenProcesses:
    (folder / "broker.py").write_text(BROKER)
    words = [sys.executable, str(folder / "broker.py"), "{id}", "{host}:{port}", "{data}", "{properties}"]
    text = (
        f'start = {json.dumps(words)}\norderly_exits = [7]\n{more}\n[settings]\nown = "yes"\nmin.insync.replicas = "1"'
    )
    text = text.replace('min.insync.replicas = "1"', '"min.insync.replicas" = "1"')
    description = read_system_description(file(folder, text))
    return GivenProcesses(
        root=folder,
        ports={1: 5001},
        properties={"min.insync.replicas": "2", "a": "b"},
        tell=told.append,
        description=description,
        controller=((HOST, 1), (HOST, 1)),
    )


def heard(told: list[str]) -> str:
    until = time.monotonic() + 20
    while not told and time.monotonic() < until:
        time.sleep(0.01)
    return told[0]


@pytest.mark.processes
def test_a_broker_is_told_where_it_is_and_ends_as_its_file_says(tmp_path: Path) -> None:
    told: list[str] = []
    given = processes(tmp_path, told)
    given.start(1)
    line = heard(told)
    assert f"1 {HOST}:5001 {tmp_path / '1'} {tmp_path / '.server-1.properties'}" in line
    assert "['min.insync.replicas=1', 'a=b', 'own=yes']" in line
    assert (tmp_path / "1").is_dir()
    assert given.pause(1)
    given.resume(1)
    assert given.stop(1) == 0
    told.clear()
    given.start(1)
    heard(told)
    assert given.stop(1, signal.SIGKILL) == -signal.SIGKILL


@pytest.mark.processes
def test_what_the_file_says_is_done_in_place_of_a_signal(tmp_path: Path) -> None:
    by_file = 'kill = ["sh", "-c", "touch killed; kill -9 $(cat \'{data}/pid\')"]\npause = ["false"]\nresume = ["true"]'
    told: list[str] = []
    given = processes(tmp_path, told, by_file)
    given.start(1)
    heard(told)
    assert not given.pause(1), "a command that fails has paused nothing"
    assert given.kill(1)
    assert (tmp_path / "killed").exists()
    assert given.running == {}


@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.slow
def test_our_own_broker_is_put_under_test_by_a_file(tmp_path: Path) -> None:
    words = ["-m", "isr_broker", "--id", "{id}", "--host", "{host}", "--port", "{port}", "--data", "{data}", "--tied"]
    words += ["--cluster", "{cluster}", "--controller", "{first_host}:{first_port}"]
    words += ["--advertise", "{found_host}:{found_port}", "insync.flush.record={flush_record}"]
    short = {"broker.session.timeout.ms": 1500, "broker.heartbeat.interval.ms": 200, "replica.lag.time.max.ms": 3000}
    words += [f"{name}={value}" for name, value in {**short, "insync.waits.for.joiners": "false"}.items()]
    path = file(tmp_path, f'name = "ours"\nstart = {json.dumps([sys.executable, *words])}\nlogs = "{{data}}"\n')
    out = tmp_path / "out"
    run = [
        "experiment",
        "power-loss",
        "--cell",
        "one at a time, no flush",
        "--network",
        "proxies",
        "--plain",
        "--no-model",
    ]
    assert main([*run, "--system", str(path), "--out", str(out)]) == 0
    found = json.loads((out / "experiment.json").read_text())
    assert (found["system"], found["cells"][0]["lost"]) == ("ours", 0)
    assert {"killed", "bytes lost"} <= set(found["cells"][0]["runs"][0]["faults"][0]["evidence"])


@pytest.fixture
def kfake(tmp_path: Path) -> Path:
    """The folder of the example, built; a visible skip without Go or its modules, a failure under CI."""
    folder = tmp_path / "kfake"
    shutil.copytree(TOP / "docs" / "examples" / "kfake", folder)
    go = shutil.which("go")
    built = None if go is None else subprocess.run([go, "build", "-o", "kfake", "."], cwd=folder, capture_output=True)
    if built is None or built.returncode != 0:
        why = "go not found (Debian: apt-get install golang)" if built is None else f"no kfake: {built.stderr.decode()}"
        if os.environ.get("CI", "").lower() not in ("", "0", "false"):
            pytest.fail(f"{why}; under CI this is a failure, not a skip", pytrace=False)
        pytest.skip(why)
    return folder


@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.slow
def test_a_broker_that_is_not_of_kafka_s_making_is_put_under_test_and_one_without_a_disk_is_caught(
    kfake: Path, tmp_path: Path
) -> None:
    run = [
        "experiment",
        "one-replica",
        "--cell",
        "killed, and started",
        "--network",
        "proxies",
        "--plain",
        "--no-model",
    ]
    out = tmp_path / "out"
    code = main([*run, "--system", str(kfake / "system.toml"), "--out", str(out)])
    found = json.loads((out / "experiment.json").read_text())
    checks = [r["checks"] for cell in found["cells"] for r in cell["runs"]]
    violated = {name for check in checks for name in check.get("VIOLATED", [])}
    assert violated <= {"duplicate"}, (
        "a write that its client repeated after the kill was there twice in one of our runs"
    )
    assert (code, found["totals"]["lost"]) == (12 if violated else 0, 0)
    assert found["totals"]["acknowledged"] > 500
    forgetful = kfake / "memory.toml"
    forgetful.write_text('brokers = 1\nstart = ["./kfake", "-port", "{port}"]\n')
    assert main([*run, "--system", str(forgetful), "--out", str(out), "--max-seconds", "30"]) == 12


@pytest.mark.processes
@pytest.mark.sockets
def test_a_program_that_is_not_there_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file(tmp_path, 'start = ["no-such-broker", "{port}"]')
    port, _ = free_ports(2)
    up = [
        "cluster",
        "up",
        "--system",
        str(path),
        "--data",
        str(tmp_path / "d"),
        "--base-port",
        str(port),
        "--brokers",
        "1",
    ]
    assert main(up) == 64
    assert "broker 1 did not start: no-such-broker: no such file or directory" in capsys.readouterr().err.lower()
