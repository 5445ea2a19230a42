"""Reading large histories without the collector of garbage."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collector() -> Generator[None, None, None]:
    """Millions of tuples without a cycle: looking for garbage among them takes as long as all the rest."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()
