"""The rules that hold for all tests: what a missing Debian package does, and that markers are honest.

Without them `make quick` would come to start processes and open sockets, test by test, and CI would skip what nobody
installed.
"""

import asyncio
import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import pytest
from tests.support.durations import rows, taken
from tests.support.guard import GUARD, Guard


def test_a_missing_package_skips_at_home(needs_package: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install no-such-program"):
        needs_package("no-such-program")


def test_a_missing_package_fails_under_ci(
    needs_package: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-program not found"):
        needs_package("no-such-program")


def test_a_package_that_is_there_is_no_matter(needs_package: Callable[[str], None]) -> None:
    needs_package("sh")


def listen() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))


def connect() -> None:
    with socket.socket() as client:
        client.connect(("127.0.0.1", 9))


def fork() -> None:
    if not os.fork():
        os._exit(0)


FORBIDDEN = {
    "a program": lambda: subprocess.run(["true"], check=True),
    "a spawned program": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "a fork": fork,
    "a spawned process": get_context("spawn").Process(target=listen).start,
    "a server": listen,
    "a client": connect,
}


@pytest.mark.parametrize("forbidden", FORBIDDEN.values(), ids=FORBIDDEN)
def test_an_unmarked_test_starts_no_process_and_opens_no_socket(forbidden: Callable[[], object]) -> None:
    with pytest.raises(pytest.fail.Exception, match="is marked so"):
        forbidden()
    GUARD.seen.clear()


def test_what_is_caught_or_done_by_a_thread_fails_the_test_all_the_same() -> None:
    def caught() -> None:
        with contextlib.suppress(pytest.fail.Exception):
            listen()

    thread = threading.Thread(target=caught)
    thread.start()
    thread.join()
    with pytest.raises(pytest.fail.Exception, match=r"socket\.bind"):
        GUARD.settle()
    GUARD.seen.clear()


@pytest.mark.sockets
def test_a_test_that_is_marked_for_sockets_opens_them() -> None:
    listen()


@pytest.mark.processes
def test_a_test_that_is_marked_for_processes_starts_them() -> None:
    assert subprocess.run(["true"], check=False).returncode == 0


def test_an_event_loop_is_no_socket_to_anybody() -> None:
    assert asyncio.run(asyncio.sleep(0, "done")) == "done"


def test_between_tests_everything_is_allowed() -> None:
    guard = Guard()
    guard.watch(None)
    guard.notice("os.fork")
    assert not guard.seen


def test_what_a_test_took_is_told_by_file(tmp_path: Path) -> None:
    cases = "".join(
        f'<testcase classname="{where}" name="test_it[{n}]" time="9"><properties>'
        f'<property name="processor_seconds" value="{n}"/></properties>{skipped}</testcase>'
        for n, (where, skipped) in enumerate(
            [
                ("tests.a.test_x", ""),
                ("tests.a.test_x.TestAll", ""),
                ("tests.test_y", ""),
                ("tests.test_y", "<skipped/>"),
            ]
        )
    )
    (tmp_path / "run.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert rows(taken(tmp_path / "run.xml")) == [
        "| `tests/test_y.py` | 1 | 2.0 | 9.0 | `test_it` | 2.0 |",
        "| `tests/a/test_x.py` | 2 | 1.0 | 18.0 | `test_it` | 1.0 |",
        "| `all` | 3 | 3.0 | 27.0 | `test_it` | 2.0 |",
    ]


@pytest.mark.parametrize("before", [True, False])
def test_what_a_thread_of_an_earlier_test_does_is_not_blamed_on_this_one(before: bool) -> None:
    guard, may_go = Guard(), threading.Event()

    def connects() -> None:
        may_go.wait(10)
        with contextlib.suppress(pytest.fail.Exception):
            guard.notice("socket.connect")

    thread = threading.Thread(target=connects)
    if before:
        thread.start()
        guard.watch(())
    else:
        guard.watch(())
        thread.start()
    may_go.set()
    thread.join()
    assert bool(guard.seen) is not before
