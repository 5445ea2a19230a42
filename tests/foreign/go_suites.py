"""franz-go and Sarama: Go modules, whose tests run where the module proxy's copy lies."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

import attrs
from tests.foreign.clusters import cluster
from tests.foreign.outcomes import Expected, Outcome, State
from tests.foreign.programs import Missing, foreign_folder, program, run

from isr_cluster.ports import HOST, free_ports, in_use


@attrs.frozen
class Module:
    """A Go module: its path, its version, and the checksum of its tree (as in go.sum)."""

    path: str
    version: str
    sum: str


FRANZ_GO: Final = Module("github.com/twmb/franz-go", "v1.22.2", "h1:EdwIHGzD/4mgCpl/sNS0C74JYn6cL/r2KYS+8UC96Ww=")
SARAMA: Final = Module("github.com/IBM/sarama", "v1.61.1", "h1:I59MWPHQUWqJNdRpsDUcbeCriog8SxjQaPfHNWxidEg=")
TOXIPROXY: Final = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0"
"""What stands between Sarama's tests and the brokers, and breaks connections when they say so."""

_SARAMA_PORTS: Final = {broker: 29_090 + broker for broker in range(1, 6)}
"""Where Sarama's tests look for five brokers."""
_KAFKA_VERSION: Final = "4.3.1"
"""What Sarama's tests are told the brokers are: they ask which APIs there are in any case."""
_BUILD_SECONDS: Final = 1_200.0


def go() -> str:
    """The Go toolchain; a module that wants a newer one has it fetched."""
    return program("go", "fetches and runs the tests", "golang-go")


def fetched(module: Module) -> Path:
    """The folder of a module's sources; Missing if the module proxy does not give what is pinned."""
    ran = run([go(), "mod", "download", "-json", f"{module.path}@{module.version}"], 600, folder=foreign_folder("go"))
    start = ran.said.find("{")
    said = cast("dict[str, str]", json.loads(ran.said[start:])) if start >= 0 else {}
    if "Dir" not in said:
        raise Missing(f"Go cannot fetch {module.path}@{module.version}: {(said.get('Error') or ran.last)[:200]}")
    if said.get("Sum") != module.sum:
        raise Missing(f"{module.path}@{module.version} is not what is pinned: its checksum is {said.get('Sum')}")
    return Path(said["Dir"])


# What `go test -json` says


@attrs.define
class Events:
    """The events of `go test -json`, line by line (cmd/test2json). `tell` hears of each failure as it comes."""

    tell: Callable[[str], None]
    states: dict[str, State | None] = attrs.field(factory=dict[str, "State | None"])
    said: dict[str, list[str]] = attrs.field(factory=dict[str, list[str]])
    other: list[str] = attrs.field(factory=list[str])

    def line(self, line: str) -> None:
        """One event; a line that is none comes from the compiler."""
        try:
            event = cast("dict[str, str]", json.loads(line))
        except ValueError:
            self.other.append(line)
            return
        test, action = event.get("Test", ""), event.get("Action", "")
        match action:
            case "run":
                self.states[test] = None
            case "output" | "build-output":
                self.said.setdefault(test, []).append(event.get("Output", ""))
            case "pass" | "fail" | "skip" if test:
                self.states[test] = {"pass": State.PASSED, "fail": State.FAILED, "skip": State.SKIPPED}[action]
                if action == "fail":
                    self.tell(f"  fails: {test}")
            case _:
                pass

    def outcomes(self, code: int | None) -> list[Outcome]:
        """The tests that have no tests below them, and of the others those that failed by themselves.

        A test that began and did not end has failed, and so has a run that failed without any failed test.
        """
        found = [
            Outcome(test, state or State.FAILED, self._why(test) if state is not State.PASSED else "")
            for test, state in self.states.items()
            if not self._below(test) or (state in (None, State.FAILED) and not self._fails_below(test))
        ]
        if code != 0 and not any(o.state is State.FAILED for o in found):
            last = _complaint([*self.other, *self.said.get("", [])])
            found.append(Outcome("go test", State.FAILED, last or f"exit code {code}"))
        return found

    def _below(self, test: str) -> bool:
        return any(other.startswith(f"{test}/") for other in self.states)

    def _fails_below(self, test: str) -> bool:
        return any(o.startswith(f"{test}/") and s in (None, State.FAILED) for o, s in self.states.items())

    def _why(self, test: str) -> str:
        return _complaint(self.said.get(test, []))


_POSITION: Final = re.compile(r"^\s+\w+\.go:\d+: ")


def _complaint(lines: Iterable[str]) -> str:
    """The last line in which a test complains, else the last that says something."""
    said = [line for line in lines if line.strip() and not line.lstrip().startswith(("---", "===", "FAIL", "PASS"))]
    complaints = [line for line in said if _POSITION.match(line)]
    return (complaints or said or [""])[-1].strip()[:300]


def _tests(
    name: str,
    module: Module,
    package: str,
    expected: Expected,
    only: Sequence[str],
    tell: Callable[[str], None],
    environment: Mapping[str, str],
    flags: Sequence[str] = (),
    seconds: int = 1_200,
) -> list[Outcome]:
    """Compile and run the tests of a package, all or some, and keep what they print in the suite's folder."""
    chosen = ["-run", _pattern(only)] if only else []
    chosen += ["-skip", _pattern(expected.left_out)] if expected.left_out else []
    command = [go(), "test", "-json", "-count=1", f"-timeout={seconds}s", *flags, *chosen, package]
    events, log = Events(tell), foreign_folder(name) / "tests.log"
    ran = run(command, seconds + _BUILD_SECONDS, folder=fetched(module), environment=environment, line=events.line)
    log.write_text("".join([*events.other, *(line for lines in events.said.values() for line in lines)]))
    return events.outcomes(ran.code)


def _pattern(tests: Iterable[str]) -> str:
    """The regular expression of -run and -skip for whole tests, which Go matches level by level."""
    return f"^({'|'.join(sorted(re.escape(test.split('/')[0]) for test in tests))})$"


def franz_go(expected: Expected, only: Sequence[str], tell: Callable[[str], None]) -> list[Outcome]:
    """`go test ./pkg/kgo`: unit tests, and the client against three brokers."""
    fetched(FRANZ_GO)
    log = foreign_folder("franz-go") / "brokers.log"
    with cluster(log, {"group.initial.rebalance.delay.ms": "0"}) as brokers:
        environment = {
            "KGO_SEEDS": brokers.bootstrap,
            "KGO_TEST_RF": "3",
            "KGO_TEST_RECORDS": "20000",
            "KGO_TEST_MAX_TOPIC_PARTS": "3",
            "KGO_LOG_LEVEL": "none",
        }
        outcomes = _tests("franz-go", FRANZ_GO, "./pkg/kgo", expected, only, tell, environment)
        return outcomes + brokers.ended()


# Sarama

_TEST: Final = re.compile(r"^func (Test\w+)\(t \*testing\.T\)", re.MULTILINE)


def sarama(expected: Expected, only: Sequence[str], tell: Callable[[str], None]) -> list[Outcome]:
    """The functional tests, against five brokers, each behind a proxy that the tests cut off."""
    functional = [
        test for path in fetched(SARAMA).glob("functional_*_test.go") for test in _TEST.findall(path.read_text())
    ]
    server, folder = toxiproxy(), foreign_folder("sarama")
    used = [port for port in _SARAMA_PORTS.values() if in_use(port)]
    if used:
        raise Missing(f"port {used[0]}, where Sarama's tests look for a broker, is in use")
    api, *own = free_ports(6)
    ports = dict(zip(_SARAMA_PORTS, own, strict=True))
    settings = {
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "min.insync.replicas": "1",
        "default.replication.factor": "2",
        "offsets.topic.replication.factor": "2",
    }
    found = {broker: (HOST, port) for broker, port in _SARAMA_PORTS.items()}
    racks = {broker: {"broker.rack": str(broker)} for broker in ports}
    with (
        proxies(server, api, ports, folder / "toxiproxy.log"),
        cluster(folder / "brokers.log", settings, ports=ports, own=racks, advertised=found) as brokers,
    ):
        environment = {"TOXIPROXY_ADDR": f"http://{HOST}:{api}", "KAFKA_VERSION": _KAFKA_VERSION}
        outcomes = _tests("sarama", SARAMA, ".", expected, only or functional, tell, environment, ["-tags=functional"])
        return outcomes + brokers.ended()


def toxiproxy() -> str:
    """The proxy's program, built once; Missing if Go cannot fetch it."""
    folder = foreign_folder("toxiproxy")
    if not (folder / "server").is_file():
        ran = run([go(), "install", TOXIPROXY], _BUILD_SECONDS, environment={"GOBIN": str(folder)})
        if ran.code != 0:
            raise Missing(f"Go cannot build {TOXIPROXY}: {ran.last[:200]}")
    return str(folder / "server")


@contextlib.contextmanager
def proxies(server: str, api: int, ports: Mapping[int, int], log: Path) -> Generator[None]:
    """The proxy server, with a proxy for each broker from where the tests look to where it listens."""
    with log.open("w") as file:
        process = subprocess.Popen([server, "-host", HOST, "-port", str(api)], stdout=file, stderr=subprocess.STDOUT)
        try:
            for broker, port in ports.items():
                listen = f"{HOST}:{_SARAMA_PORTS[broker]}"
                _posts(api, {"name": f"kafka{broker}", "listen": listen, "upstream": f"{HOST}:{port}", "enabled": True})
            yield
        finally:
            process.kill()
            process.wait()


def _posts(api: int, proxy: Mapping[str, object]) -> None:
    """Create a proxy, once the server listens."""
    body = json.dumps(proxy).encode()
    for attempt in range(100):
        request = urllib.request.Request(f"http://{HOST}:{api}/proxies", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=5):
                return
        except urllib.error.HTTPError as error:
            raise Missing(f"toxiproxy refuses a proxy: {error.read().decode(errors='replace')[:200]}") from None
        except OSError:
            if attempt == 99:
                raise Missing("toxiproxy does not listen after 10 s") from None
            time.sleep(0.1)
