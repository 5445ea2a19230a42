"""The broker's shape: one of its modules opens files, two open sockets and know time, the cores do neither."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest
from tests.test_architecture import below, findings, imported_modules, package_files, report

FILES_OPENED_BY = ("impl/isr_broker/storage/disk_files",)
SOCKETS_OPENED_BY = (
    "impl/isr_broker/server",
    "impl/isr_broker/links",
    "impl/isr_broker/listeners",
    "impl/isr_broker/voter_server",
)
"""For connections that come and that go, for TLS on both, and for those of a voter."""

FILE_MODULES = frozenset({"os", "io", "pathlib", "shutil", "tempfile", "mmap"})
SOCKET_MODULES = frozenset({"asyncio", "socket", "selectors", "ssl", "time", "datetime", "signal", "threading"})

HARMLESS = frozenset({"datetime.timedelta", "io.BytesIO"})
"""They know no time, and open no file."""


def uses_of(source: str, modules: frozenset[str], *calls: str) -> list[str]:
    """Imports of modules, and calls of functions that need no import."""
    lines = {
        line: name for line, name in imported_modules(source) if name.split(".")[0] in modules and name not in HARMLESS
    }
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id=name), lineno=line) if name in calls:
                lines[line] = f"{name}()"
            case _:
                pass
    return [f"{line}: uses {name}" for line, name in sorted(lines.items())]


def files_opened(source: str) -> list[str]:
    return uses_of(source, FILE_MODULES, "open")


def sockets_opened(source: str) -> list[str]:
    return uses_of(source, SOCKET_MODULES)


@pytest.mark.long
@pytest.mark.parametrize(("rule", "allowed"), [(files_opened, FILES_OPENED_BY), (sockets_opened, SOCKETS_OPENED_BY)])
def test_few_modules_of_the_broker_may(rule: Callable[[str], list[str]], allowed: tuple[str, ...]) -> None:
    files = package_files("isr_broker", "isr_sim")
    assert files
    report(findings(rule, [path for path in files if not below(path, allowed)]))


@pytest.mark.parametrize(
    ("rule", "planted"),
    [
        (files_opened, "from pathlib import Path"),
        (files_opened, "text = open('x').read()"),
        (sockets_opened, "from time import monotonic"),
        (sockets_opened, "import asyncio.streams"),
    ],
)
def test_a_planted_use_is_seen(rule: Callable[[str], list[str]], planted: str) -> None:
    assert rule(planted)
