"""Which insync this is: `--version`, and every file of results."""

from __future__ import annotations


def version() -> str:
    from importlib.metadata import version

    return version("insync")
