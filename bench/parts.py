"""The parts of a bench that its command line may name."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection


def one_of(parts: Collection[str]) -> Callable[[str], str]:
    """A type of argparse: the name of a part, so that another name is refused before anything is measured."""

    def part(name: str) -> str:
        if name not in parts:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(parts)}")
        return name

    return part
