"""More replicas than the whole protocol is explored with: what survives by the coarse model, and never more than is so.

Without these it could call safe what the protocol loses, or its table could be of another protocol.
"""

from __future__ import annotations

import itertools
from typing import Final

import pytest
from tests.support.coarse_answers import healthy, is_safe, runbooks

from isr_audit.answers import answer_among, is_of_whole_disks, read_table
from isr_audit.audit import SURVIVES, UNKNOWN, AnswerSource, audit_rows, no_exploration
from isr_audit.coarse import COARSE_DESIGNS, survives, survivors
from isr_audit.questions import CRASH, CRASH_AND_POWER, DISK, POWER, Fault, Settings, loss_question
from isr_audit.releases import running
from isr_lang import Design
from isr_protocol.by_name import DESIGNS

SINGLE: Final = (CRASH, POWER, DISK)
SMALL: Final = [(r, m, u) for r in (1, 2, 3) for m in range(1, r + 1) for u in (False, True)]


@pytest.mark.parametrize("design", COARSE_DESIGNS)
@pytest.mark.parametrize("fault", SINGLE, ids=lambda fault: fault.name)
def test_with_few_replicas_it_says_what_the_whole_protocol_says(design: str, fault: Fault) -> None:
    """Up to three replicas both are explored, and differ nowhere."""
    runs, compared = read_table(), 0
    for replicas, minimum, unclean in SMALL:
        full = answer_among(runs, loss_question(design, Settings(replicas, minimum, unclean, "all"), fault))
        if full is None or (fault is DISK and full.path is not None and not is_of_whole_disks(full)):
            continue
        compared += 1
        assert is_safe(design, replicas, minimum, fault, unclean=unclean) == (full.path is None), (replicas, minimum)
    assert compared >= 10


@pytest.mark.parametrize("design", COARSE_DESIGNS)
def test_the_table_is_what_is_explored_now(design: str) -> None:
    for minimum, unclean, fault in itertools.product((1, 2, 4), (False, True), SINGLE):
        row = (design, 4, minimum, unclean, fault.name)
        assert (row in survivors()) == is_safe(design, 4, minimum, fault, unclean=unclean), row


def other_hash(_: Design) -> str:
    return "another"


def test_a_loss_is_no_survivor_and_another_protocol_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(4, 2, unclean=False, acks="all")
    assert survives("kip-966", settings, DISK)
    assert not survives("kip-966", Settings(4, 1, unclean=False, acks="all"), DISK)
    assert not survives("kip-966", Settings(4, 2, unclean=False, acks="1"), DISK)
    assert not survives("kip-320", settings, DISK)
    assert not survives("kip-966", Settings(6, 2, unclean=False, acks="all"), DISK)
    survivors.cache_clear()
    monkeypatch.setattr(type(DESIGNS["kip-966"]), "model_hash", other_hash)
    assert not survives("kip-966", settings, DISK), "its design has changed since"
    survivors.cache_clear()


def test_every_order_of_two_faults_is_asked() -> None:
    texts = set(runbooks(CRASH_AND_POWER, 4))
    assert "kill 1; power-loss 2; start 1; start 2" in texts
    assert "kill 1; power-loss 2; start 2; start 1" in texts
    assert "power-loss 3; start 3; kill 1; start 1" in texts
    assert "power-loss 1; start 1; kill 1; start 1" in texts


@pytest.mark.parametrize(("replicas", "verdict"), [(4, SURVIVES), (5, SURVIVES), (6, UNKNOWN)])
def test_the_audit_says_it(replicas: int, verdict: str) -> None:
    cluster = healthy(replicas, 2, unclean=False)
    (row,) = audit_rows(cluster, running(cluster, (4, 1), True), AnswerSource(read_table(), no_exploration))
    lines = {x.fault.name: x for x in row.lines if x.acks == "all"}
    assert {lines[f.name].verdict for f in (POWER, DISK)} == {verdict}
    assert ("coarse model" in lines[DISK.name].because) == (verdict == SURVIVES)
    assert lines[CRASH.name].verdict == SURVIVES, "it is proved for any number of replicas"
