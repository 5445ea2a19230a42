"""The rule for missing Debian packages: a visible skip at home, a failure under CI, else nothing."""

from collections.abc import Callable

import pytest


def test_a_missing_package_skips_at_home(needs_package: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install no-such-program"):
        needs_package("no-such-program")


def test_a_missing_package_fails_under_ci(
    needs_package: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-program not found"):
        needs_package("no-such-program")


def test_a_package_that_is_there_is_no_matter(needs_package: Callable[[str], None]) -> None:
    needs_package("sh")
