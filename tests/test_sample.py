"""A sample of a family and the rest of it are all of it.

Without this, a value could be in neither `make test` nor `make slow`, and nobody would miss it.
"""

import pytest
from tests.support.sample import sample


@pytest.mark.parametrize("every", [1, 3, 100])
@pytest.mark.parametrize("values", [[], ["a"], list(range(10)), [(n, str(n)) for n in range(7)]], ids=len)
def test_the_quick_part_and_the_slow_part_are_all_values(values: list[object], every: int) -> None:
    rows = sample(iter(values), every)
    given = [row.values if type(values[0]) is tuple else row.values[0] for row in rows]
    assert given == values
    quick = [n for n, row in enumerate(rows) if not row.marks]
    assert quick == list(range(0, len(values), every)), "the first always, and every so many after it"
    assert {mark.name for row in rows for mark in row.marks} <= {"slow"}
