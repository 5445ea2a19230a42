"""Models that others published, with the numbers that others published."""

import pytest
from tests.models import two_phase_commit

from isr_check.engine import Verdict
from isr_check.explorer import explore
from isr_lang import Instance


@pytest.mark.parametrize(("rms", "distinct"), two_phase_commit.PUBLISHED.items())
def test_two_phase_commit_has_as_many_states_as_published(rms: int, distinct: int) -> None:
    found = explore(Instance(two_phase_commit.DESIGN, {"rms": rms}))
    assert (found.complete, found.distinct) == (True, distinct)
    assert {f.verdict for f in found.findings} == {Verdict.EXHAUSTED}
