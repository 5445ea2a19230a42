"""Every page reads as CONTRIBUTING.md asks: short sentences, one thought each.

Without these the figures, dates and caveats go back into the sentences that carry the ideas, one at a time.
"""

from pathlib import Path

import pytest
from tests.support import prose

TOP = Path(__file__).resolve().parent.parent
PAGES = sorted(
    path.relative_to(TOP).as_posix()
    for path in (
        *TOP.glob("*.md"),
        *TOP.glob("docs/**/*.md"),
        *TOP.glob("found/**/*.md"),
        *TOP.glob("counterexamples/cases/**/*.md"),
    )
)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_read_once(page: str) -> None:
    read = prose.prose_of((TOP / page).read_text(encoding="utf-8"))
    longest = max(read.sentences, key=lambda sentence: len(sentence.split()), default="")
    assert read.mean <= prose.MEAN, f"{read.mean:.1f} words a sentence; the longest: {longest}"
    assert read.long_share <= prose.LONG_SHARE, f"{read.long_share:.0%} over {prose.LONG} words; the longest: {longest}"
    assert read.semicolons <= prose.SEMICOLONS, f"{read.semicolons:.2f} semicolons a sentence"


# The counter sees what it is there for, and nothing else


def test_code_tables_and_headings_are_no_prose() -> None:
    page = "# A heading; with one\n\n| a | b |\n|---|---|\n| x; | y |\n\n    code; here\n\n```\nmore; code\n```\n"
    assert prose.prose_of(page).sentences == ()


def test_a_paragraph_is_its_sentences_over_all_its_lines() -> None:
    assert prose.prose_of("One two three. Four\nfive `a; b. C`. Six\n    seven.").lengths == (3, 3, 2)


def test_list_items_are_sentences() -> None:
    assert prose.prose_of("- one two\n- three [four five](six.md) seven\n").lengths == (2, 4)


def test_a_long_sentence_and_a_semicolon_are_seen() -> None:
    read = prose.prose_of(f"{'word ' * 31}end. Short one; here.")
    assert (read.long_share, read.semicolons, read.mean > prose.MEAN) == (0.5, 0.5, True)
