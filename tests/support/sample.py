"""A family of tests of which a sample says the same: the sample in `make test`, the whole family in `make slow`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet


def sample(values: Iterable[object], every: int) -> list[ParameterSet]:
    """The values of a parametrised test. The first is always run and every so many after it, the others if asked for.

    A tuple is the values of several parameters.
    """
    return [
        pytest.param(*_parameters(value), marks=pytest.mark.slow if n % every else ()) for n, value in enumerate(values)
    ]


def _parameters(value: object) -> tuple[object, ...]:
    return cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
