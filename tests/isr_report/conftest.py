"""A matrix that the tests of the matrix and those of the report read, and none writes."""

from pathlib import Path

import pytest

from insync_cli.main import main
from isr_report.matrix.plan import STANDARD

SMALL = ["--design", "kafka-0.8", "--design", "kip-966", "--fault", "crash", "--quiet", "--workers", "1"]


@pytest.fixture(scope="session")
def small_matrix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a matrix of two designs under one fault, without a consumer, which takes a third of the states."""
    top = tmp_path_factory.mktemp("small")
    text = STANDARD.read_text(encoding="utf-8")
    assert "consumers = 1" in text
    (top / "plan.toml").write_text(text.replace("consumers = 1", "consumers = 0"), encoding="utf-8")
    assert main(["matrix", "--plan", str(top / "plan.toml"), *SMALL, "--out", str(top / "matrix")]) == 0
    return top / "matrix"
