"""A matrix that the tests of the matrix and those of the report read, and none writes."""

from pathlib import Path

import pytest

from insync_cli.main import main

SMALL = ["--design", "kafka-0.8", "--design", "kip-966", "--fault", "crash", "--quiet", "--workers", "1"]


@pytest.fixture(scope="session")
def small_matrix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a matrix of two designs under one fault."""
    folder = tmp_path_factory.mktemp("small") / "matrix"
    assert main(["matrix", *SMALL, "--out", str(folder)]) == 0
    return folder
