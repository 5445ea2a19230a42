"""The cases of the quorum stand in the gallery beside a partition's, and their pages speak of voters.

Without these a page of a quorum could call a leader that resigned a leader, or speak of an in-sync set that it lacks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.support.pages import QUORUM_CORPUS, Opened, opened, trace_file
from tests.support.partition_words import PARTITION

from controller_protocol.controllers import CONTROLLERS
from insync_cli.families import family_of
from insync_cli.main import main
from insync_cli.registry import design_named
from isr_trace.cases import load_cases
from kraft_protocol.quorum import QUORUM

pytestmark = [pytest.mark.browser, pytest.mark.explores]

OF_A_PARTITION = "jepsen-2013"
OF_EACH_DESIGN = {case.name: design_named(case.design) for case in load_cases(QUORUM_CORPUS / "cases.toml").cases}
CASES, OF_CONTROLLERS = (
    sorted(name for name, design in OF_EACH_DESIGN.items() if family_of(design) is family)
    for family in (QUORUM, CONTROLLERS)
)
ALL = (*CASES, *OF_CONTROLLERS[:1], OF_A_PARTITION)
TEXTS = """[
    document.querySelector("main").innerText,
    ...[...document.querySelectorAll("main *")].flatMap((x) => [x.getAttribute("title"), x.getAttribute("aria-label")]),
    ...[...document.querySelectorAll("main title")].map((x) => x.textContent),
].filter(Boolean).join("\\n")"""
"""All that a reader sees, hovers over or is told."""


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases of the quorum, one of the controllers on it, and one of a partition, on one page."""
    html = tmp_path_factory.mktemp("gallery") / "gallery.html"
    traces = [str(trace_file(case)) for case in ALL]
    assert main(["show", *traces, "--html", str(html)]) == 0
    return html


@pytest.fixture
def tab(browser: Browser, gallery: Path) -> Generator[Opened]:
    with opened(browser, gallery) as found:
        yield found


def walk_to(tab: Opened, case: str, step: int | None = None) -> None:
    """Opens a case from the gallery, at the step where it breaks or at this one."""
    title = tab.value(f"insync.traces.find((t) => t.about.name === {case!r}).title")
    tab.page.locator(".thumb:not(.control) button", has_text=str(title)).first.click()
    if step is not None:
        tab.value(f"insync.go({step})")


def partition_words(tab: Opened) -> set[str]:
    """The words of a partition on the page, at every step of the trace that is open."""
    last = tab.value("insync.trace.last")
    assert isinstance(last, int)
    found = set[str]()
    for step in range(last + 1):
        tab.value(f"insync.go({step})")
        found |= set(PARTITION.findall(str(tab.value(TEXTS))))
    return found


def test_a_gallery_of_several_families_is_grouped_by_them(tab: Opened) -> None:
    assert tab.page.get_by_label("Group by").input_value() == "family"
    subjects = Counter(family_of(OF_EACH_DESIGN[case]).subject for case in ALL[:-1])
    assert subjects[QUORUM.subject] == len(CASES)
    *groups, _ = tab.texts("h2.group")
    assert sorted(groups) == sorted([*(f"{name}, {n}" for name, n in subjects.items()), "Replicas of a partition, 1"])
    assert tab.texts("h2.group")[-1] == f"Controls, {len(ALL)}"
    assert tab.page.locator("#voters-of-a-quorum .thumb svg").count() == len(CASES)
    tab.page.get_by_label("Filter traces").fill("voters of a quorum")
    assert tab.texts("h2.group") == [f"Voters of a quorum, {len(CASES)}", f"Controls, {len(CASES)}"]


@pytest.mark.parametrize("case", CASES)
def test_the_page_of_a_quorum_has_no_word_of_a_partition(case: str, tab: Opened) -> None:
    walk_to(tab, case)
    assert partition_words(tab) == set()
    voters = tab.value("insync.trace.rolesAt(0).replicas")
    assert tab.texts("#lanes .lane-name") == voters
    assert tab.texts("#scene .replica .t-name") == voters


def test_the_words_of_a_partition_are_seen_where_they_are(tab: Opened) -> None:
    walk_to(tab, OF_A_PARTITION)
    assert partition_words(tab) >= {"ISR", "in sync", "replica", "acked", "controller"}


def test_a_voter_has_its_state_its_epoch_and_its_vote(tab: Opened) -> None:
    walk_to(tab, "resigned-leader-20895", step=4)
    assert tab.texts("#scene .badge text") == ["candidate", "unattached", "unattached"]
    facts = tab.texts("#scene .replica .t-small")
    assert sum("vote for v1" in fact for fact in facts) == 2
    tab.value("insync.go(insync.trace.last)")
    assert tab.texts("#scene .badge text") == ["resigned", "follower", "prospective"]
    assert tab.page.locator("#scene .card-box.leads").count() == 0, "who resigned leads no more"
    events = tab.page.get_by_role("button", name="Next event").get_attribute("title")
    assert events == "state, vote, watermark, commit, up or down, loss (e)"
