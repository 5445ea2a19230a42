"""What every test may ask for, and what none may do unless it is marked so.

A missing Debian package skips a test where a person sees it, and fails it under CI, where nobody would.
"""

import os
import shutil
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from tests.support import guard, leaks
from tests.support.models import ticket_desk

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PROGRAMS = {
    "graphviz": ("dot",),
    "rumur": ("rumur", "gcc"),  # rumur writes C, so it is of no use without the compiler
}


def pytest_configure() -> None:
    guard.install()
    leaks.install()
    # How long an example takes says how busy the machine is, and nothing about the example.
    settings.register_profile("insync", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("insync")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Watch a test from its fixtures' beginning to their end."""
    guard.GUARD.watch({marker.name for marker in item.iter_markers()})
    try:
        return (yield)
    finally:
        guard.GUARD.watch(None)


STARTED = pytest.StashKey[float]()


def processor_seconds() -> float:
    """Of this process, and of those that it started and waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    item.stash[STARTED] = processor_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Tell tests/support/durations.py what the test took, by --junitxml."""
    try:
        return (yield)
    finally:
        item.user_properties.append(("processor_seconds", f"{processor_seconds() - item.stash[STARTED]:.2f}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    result = yield
    guard.GUARD.settle()
    return result


def missing_programs(package: str) -> list[str]:
    """The programs of a Debian package (and of what it needs) that are not on the PATH."""
    return [program for program in PROGRAMS.get(package, (package,)) if shutil.which(program) is None]


def require_package(package: str) -> None:
    """Skip the calling test when the Debian package is absent; fail it under CI."""
    missing = missing_programs(package)
    if not missing:
        return
    reason = f"{' and '.join(missing)} not found (Debian: apt-get install {' '.join(missing)})"
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        pytest.fail(f"{reason}; under CI this is a failure, not a skip", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser() -> Generator["Browser"]:
    """Debian's Chromium, in which pages are opened as `tests.support.pages.opened` says."""
    require_package("chromium")
    from tests.support.pages import chromium

    with chromium() as started:
        yield started


@pytest.fixture
def needs_package() -> Callable[[str], None]:
    """`needs_package("rumur")` at the top of a test that runs a program of that Debian package."""
    return require_package


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The command line knows the designs of ticket_desk only, and works in an empty folder."""
    monkeypatch.setattr("insync_cli.families.designs_of_all", lambda: ticket_desk.DESIGNS)
    monkeypatch.setattr("insync_cli.registry.default_engine", lambda: "reference")
    monkeypatch.chdir(tmp_path)
    return tmp_path
