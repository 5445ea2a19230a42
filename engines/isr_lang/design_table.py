"""Designs by name, of several modules, each imported when somebody has come so far in the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import RLock

from isr_lang.design import Design


class DesignTable(Mapping[str, Design]):
    """Designs by name, in the order of `modules`, a generator that imports a module and yields its designs.

    No more modules are imported than it takes to answer.
    """

    def __init__(self, modules: Iterator[tuple[Design, ...]]) -> None:
        self._coming, self._lock = modules, RLock()
        self._designs: dict[str, Design] = {}

    def _imports_more(self) -> bool:
        """One module more; whether there was one."""
        with self._lock:
            more = next(self._coming, ())
            self._designs |= {design.name: design for design in more}
        return bool(more)

    def __getitem__(self, name: str) -> Design:
        while name not in self._designs and self._imports_more():
            pass
        return self._designs[name]

    def __iter__(self) -> Iterator[str]:
        place = 0
        while place < len(self._designs) or self._imports_more():
            yield list(self._designs)[place]
            place += 1

    def __len__(self) -> int:
        return sum(1 for _ in self)
