"""Which insync this is: `--version`, and every file of results."""

from __future__ import annotations

import sys
from pathlib import Path


def version() -> str:
    """The folder of the distribution says it by its name. To import importlib.metadata takes as long as a model."""
    found = (entry for folder in sys.path for entry in Path(folder).glob("insync-*.dist-info"))
    if (entry := next(found, None)) is not None:
        return entry.name.removeprefix("insync-").removesuffix(".dist-info")
    from importlib.metadata import version

    return version("insync")
