"""Ports of this machine for brokers that may be killed and started again: nobody else is given them meanwhile."""

from __future__ import annotations

import itertools
import os
import socket
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"
LOWEST: Final = 10_240
"""Where the ports begin that are given."""
_EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_MOST_CLAIMS: Final = 256
_offsets: Iterator[int] = itertools.count(16 * os.getpid(), 16)
_claims: Final = deque[socket.socket]()


def free_ports(count: int) -> list[int]:
    """Consecutive ports that nobody listens on now.

    They lie below those that the system gives to outgoing connections (unless it gives nearly all): one of these would
    otherwise take the port of a broker that is down. No other process gets them from here before this one has asked
    for 256 more.
    """
    places = _first_ephemeral() - LOWEST - count
    while True:
        ports = range(first := LOWEST + next(_offsets) % places, first + count)
        if not any(map(in_use, ports)) and _claim_ports(ports):
            return list(ports)


def in_use(port: int) -> bool:
    """Whether somebody listens on the port."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((HOST, port))
        except OSError:
            return True
    return False


def _first_ephemeral() -> int:
    """Where the system's own choice begins; Linux says it, and others begin later than Linux does by default."""
    first = 32_768
    with suppress(OSError):
        first = int(_EPHEMERAL.read_text().split()[0])
    return first if first >= 2 * LOWEST else 65_536


def _claim_ports(ports: range) -> bool:
    """Whether no other process has claimed one of these TCP ports, which one does by holding the UDP port."""
    with ExitStack() as closing:
        claims = [closing.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in ports]
        try:
            for claim, port in zip(claims, ports, strict=True):
                claim.bind((HOST, port))
        except OSError:
            return False
        closing.pop_all()
    _claims.extend(claims)
    while len(_claims) > _MOST_CLAIMS:
        _claims.popleft().close()
    return True
