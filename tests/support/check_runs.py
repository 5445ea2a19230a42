"""`insync check`, run in the folder of a test, and what it wrote there."""

import json
from pathlib import Path

from insync_cli.main import main
from insync_cli.runfile import Run


def check(command: str) -> int:
    """The exit code; what was written is in the folder `run`."""
    return main(["check", *command.split(), "--out", "run"])


def run_of(folder: Path) -> Run:
    answer: Run = json.loads((folder / "run" / "run.json").read_text(encoding="utf-8"))
    return answer
