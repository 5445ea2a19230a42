"""The network as the kernel makes it: a namespace for each broker, and one between them that routes.

A cut link is a rule of the router that sends what goes from the one address to the other into an interface whose
far end nobody reads, which counts it. No address, rule or interface of the machine's own namespace is touched: whoever
uses this has entered a new one (`unshare --net`), and all namespaces vanish with their processes. Slow links need
`netem`, which few kernels have, so there are none here.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Final, cast

from isr_cluster.identity import CONTROLLER_BROKER
from isr_cluster.processes import Address
from isr_experiment.network import CLIENTS, Node, Way

INSIDE: Final = "INSYNC_EXPERIMENT_NAMESPACE"
"""Set in the environment of a process that was started in a namespace of its own."""

_PORT: Final = 9092


class NotPermitted(Exception):
    """No namespaces here; the message says why."""


def missing_requirement() -> str | None:
    """None if namespaces can be made, else what is missing."""
    for program in ("ip", "unshare", "nsenter"):
        if shutil.which(program) is None:
            return f"there is no program {program}"
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    script = "ip link set lo up && ip link add a0 type veth peer name b0 && ip rule add blackhole pref 9"
    tried = subprocess.run(["unshare", "--net", "sh", "-c", script], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"the kernel refuses: {tried.stderr.strip().splitlines()[-1:]}"


def _address(node: Node) -> str:
    return f"10.77.{node}.2"


class Namespaces:
    """One namespace per broker and one for the router; clients are in that of this process."""

    kind = "namespaces"
    slows = False

    def __init__(self, brokers: Sequence[int]) -> None:
        if os.environ.get(INSIDE) != "1":
            raise NotPermitted("this process is not in a network namespace of its own")
        self.nodes: tuple[Node, ...] = (CLIENTS, *brokers)
        self.holders: dict[str, subprocess.Popen[bytes]] = {}
        self.hosts = {b: _address(b) for b in brokers}
        self.ports = dict.fromkeys(brokers, _PORT)
        self.advertised: dict[int, Address] = {}
        listens = (_address(CONTROLLER_BROKER), _PORT + 1)
        self.controller: tuple[Address, Address] = (listens, listens)
        self._cut: dict[Way, int] = {}
        self._sinks: dict[Way, str] = {}
        try:
            router = self._hold("router")
            self._in("router", "ip link set lo up", "echo 1 > /proc/sys/net/ipv4/ip_forward")
            _run("ip link set lo up")
            for node in self.nodes:
                pid = os.getpid() if node == CLIENTS else self._hold(str(node))
                _run(f"ip link add e{node} netns {pid} type veth peer name r{node} netns {router}")
                mine = (
                    f"ip addr add {_address(node)}/24 dev e{node}",
                    f"ip link set e{node} up",
                    f"ip route add 10.77.0.0/16 via 10.77.{node}.1",
                )
                for line in mine:
                    _run(line, None if node == CLIENTS else pid)
                if node != CLIENTS:
                    _run("ip link set lo up", pid)
                self._in("router", f"ip addr add 10.77.{node}.1/24 dev r{node}", f"ip link set r{node} up")
        except BaseException:
            self.close()
            raise
        self.inside: dict[int, tuple[str, ...]] = {}
        for broker in brokers:
            self.inside[broker] = ("nsenter", "--target", str(self.holders[str(broker)].pid), "--net", "--")

    def _hold(self, name: str) -> int:
        """A namespace that lives as long as this process does: `cat` ends with its input."""
        started = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self.holders[name] = started
        assert started.stdout is not None
        started.stdout.readline()
        return started.pid

    def _in(self, name: str, *lines: str) -> str:
        return "".join(_run(line, self.holders[name].pid) for line in lines)

    def cut(self, source: Node, to: Node) -> None:
        """From now on nothing from the one reaches the other."""
        way = (source, to)
        number = 100 + self.nodes.index(source) * len(self.nodes) + self.nodes.index(to)
        if way not in self._sinks:
            sink = self._sinks[way] = f"s{number}"
            self._in(
                "router",
                f"ip link add {sink} type veth peer name t{number}",
                f"ip link set {sink} arp off up",
                f"ip link set t{number} arp off up",
                f"ip route add default dev {sink} table {number}",
            )
        if way not in self._cut:
            rule = f"ip rule add from {_address(source)} to {_address(to)} lookup {number} pref {number}"
            self._in("router", rule)
            self._cut[way] = number

    def slow(self, source: Node, to: Node, seconds: float) -> None:
        """Not here."""
        raise NotPermitted("links between namespaces cannot be slowed here")

    def mend(self) -> None:
        """Every link is whole again."""
        for number in self._cut.values():
            self._in("router", f"ip rule del pref {number}")
        self._cut.clear()

    def dropped_bytes(self) -> Mapping[Way, int]:
        """Bytes of packets that went nowhere, on each link so far."""
        said = json.loads(self._in("router", "ip -s -j link show"))
        sent = {str(link["ifname"]): int(link["stats64"]["tx"]["bytes"]) for link in cast("list[_LinkStats]", said)}
        return {way: sent[sink] for way, sink in self._sinks.items() if sent.get(sink)}

    def delayed_bytes(self) -> Mapping[Way, int]:
        """None."""
        return {}

    def close(self) -> None:
        """The namespaces end with what holds them."""
        for holder in self.holders.values():
            holder.kill()
            holder.wait()
            for end in (holder.stdin, holder.stdout):
                if end is not None:
                    end.close()
        self.holders.clear()
        if os.environ.get(INSIDE) == "1":
            subprocess.run(["ip", "link", "del", f"e{CLIENTS}"], capture_output=True, check=False)


_LinkStats = dict[str, dict[str, dict[str, int]]]


def _run(line: str, inside: int | None = None) -> str:
    """A line of shell, in a process's network namespace if one is named."""
    command = ["sh", "-c", line]
    if inside is not None:
        command = ["nsenter", "--target", str(inside), "--net", "--", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotPermitted(f"{line}: {done.stderr.strip()}")
    return done.stdout


def run_in_namespace(command: Sequence[str], more: Mapping[str, str] | None = None) -> int:
    """Run a command in a new network namespace and give its exit code; SIGINT and SIGTERM are handed on to it.

    `more` are variables of its environment.
    """
    environment = {**os.environ, **(more or {}), INSIDE: "1"}
    # Of a session of its own, or Ctrl-C would reach it twice.
    started = subprocess.Popen(["unshare", "--net", "--", *command], env=environment, start_new_session=True)

    def hands_on(number: int, frame: FrameType | None) -> None:
        started.send_signal(number)

    before = {number: signal.signal(number, hands_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return started.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def is_inside() -> bool:
    """Whether this process was started by `run_in_namespace`."""
    return os.environ.get(INSIDE) == "1" and Path("/proc/self/ns/net").exists()
