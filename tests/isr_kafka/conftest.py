"""Apache Kafka for the tests that drive it: a visible skip where it cannot be had, a failure under CI."""

import os

import pytest

from isr_kafka import Unavailable
from isr_kafka.system import CONTROLLERS, DRIVEN_RELEASES, QUORUM, QUORUM_ON_FILES, Kafka


@pytest.fixture(scope="session")
def newest() -> Kafka:
    """The newest release, fetched and built."""
    return driven(Kafka())


@pytest.fixture(scope="session", params=DRIVEN_RELEASES)
def each(request: pytest.FixtureRequest) -> Kafka:
    """Every release that can be driven, fetched and built."""
    return driven(Kafka(str(request.param)))


@pytest.fixture(scope="session")
def newest_raft() -> Kafka:
    """The quorum of the newest release, fetched and built."""
    return driven(Kafka(part=QUORUM))


@pytest.fixture(scope="session")
def newest_raft_on_files() -> Kafka:
    """The same on Kafka's own files."""
    return driven(Kafka(part=QUORUM_ON_FILES))


@pytest.fixture(scope="session", params=QUORUM.releases)
def each_raft(request: pytest.FixtureRequest) -> Kafka:
    """The quorum of every release in which it can be driven, fetched and built."""
    return driven(Kafka(str(request.param), part=QUORUM))


@pytest.fixture(scope="session")
def newest_controllers() -> Kafka:
    """Controllers on the quorum, of the newest release, fetched and built."""
    return driven(Kafka(part=CONTROLLERS))


@pytest.fixture(scope="session", params=CONTROLLERS.releases)
def each_controllers(request: pytest.FixtureRequest) -> Kafka:
    """The same of every release in which they can be driven."""
    return driven(Kafka(str(request.param), part=CONTROLLERS))


def driven(kafka: Kafka) -> Kafka:
    """The same, after it was fetched and built."""
    try:
        kafka.command()
    except Unavailable as problem:
        if os.environ.get("CI", "").lower() not in ("", "0", "false"):
            pytest.fail(f"{problem}; under CI this is a failure, not a skip", pytrace=False)
        pytest.skip(str(problem))
    return kafka
