"""Bugs that the running release has, from the corpus and from those found here, with what triggers them."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import attrs

from isr_audit.releases import KRAFT, Running, release_of

TABLE = Path(__file__).parent / "bugs.toml"


@attrs.frozen
class Bug:
    """`page`: where a checkout describes it; `show`: the command that shows it. See the top of bugs.toml."""

    name: str
    page: str
    trigger: str
    show: str
    designs: tuple[str, ...] = ()
    reproduced: tuple[str, ...] = ()
    affected: tuple[str, ...] = ()
    mended: str = ""
    elr: bool = False

    def applies(self, to: Running) -> bool:
        """Whether what runs may have it: its design has, or a release as old has and no newer was found without."""
        if self.designs:
            return to.design in self.designs
        if self.affected:
            told = f"{to.version}."
            return any(told.startswith(f"{one}.") or f"{one}.".startswith(told) for one in self.affected)
        if to.design != "kip-966" and (self.elr or to.design not in dict(KRAFT).values()):
            return False
        oldest = min(r for r in map(release_of, self.reproduced) if r is not None)
        return to.release is None or to.release[:2] >= oldest[:2]

    def evidence(self, to: Running) -> str:
        """On what it was seen, and whether that is what runs."""
        if self.designs:
            return f"found by the model on {self.designs[0]}"
        if self.affected:
            return f"in {', '.join(self.affected)}; mended in {self.mended}"
        told = f"reproduced on {', '.join(self.reproduced)}"
        ran = to.release is None or any(f"{release}.".startswith(f"{to.version}.") for release in self.reproduced)
        return told if ran else f"{told}; {to.version} was not run"


@cache
def bugs() -> tuple[Bug, ...]:
    """All of them, those found here first."""
    top = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return tuple(
        Bug(
            name=b["name"],
            page=b["page"],
            trigger=b["trigger"],
            show=b["show"],
            designs=tuple(b.get("designs", ())),
            reproduced=tuple(b.get("reproduced", ())),
            affected=tuple(b.get("affected", ())),
            mended=b.get("mended", ""),
            elr=b.get("elr", False),
        )
        for b in top["bug"]
    )
