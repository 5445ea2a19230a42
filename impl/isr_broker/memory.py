"""Memory that is free in this process, given back to the system.

The allocator of the C library keeps what was freed, for it may be wanted again: a broker that held 200 MB for clients
who are gone would keep them for good.
"""

from __future__ import annotations

import contextlib
import ctypes


def give_back() -> None:
    """Give free memory back, where the C library can (glibc's malloc_trim); takes milliseconds."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
