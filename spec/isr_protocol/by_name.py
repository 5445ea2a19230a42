"""Every design by its name on the command line: those of each module's DESIGNS, which has their order, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import RLock

from isr_lang import Design


def _modules() -> Iterator[tuple[Design, ...]]:
    """The designs of each module; the module is imported when somebody has come so far in the table."""
    import isr_model

    yield isr_model.DESIGNS
    from isr_protocol.designs import history

    yield history.DESIGNS
    from isr_protocol.designs import proposals

    yield proposals.DESIGNS
    from isr_protocol.designs import unclean_recovery

    yield unclean_recovery.DESIGNS
    from isr_protocol.designs import dropped_rules

    yield dropped_rules.DESIGNS
    from isr_protocol.designs import leader_bugs

    yield leader_bugs.DESIGNS
    from isr_protocol.designs import raised_minimum

    yield raised_minimum.DESIGNS
    from isr_protocol.designs import removed_replica

    yield removed_replica.DESIGNS
    from isr_protocol.designs import forgotten_proposal

    yield forgotten_proposal.DESIGNS
    from isr_protocol.designs import reassignment

    yield reassignment.DESIGNS
    from isr_protocol.designs import registration

    yield registration.DESIGNS
    from isr_protocol.designs import cleared_elr

    yield cleared_elr.DESIGNS
    from isr_protocol.designs import unclean_stops

    yield unclean_stops.DESIGNS
    from isr_protocol.designs import calm

    yield calm.DESIGNS
    from isr_protocol.designs import directories

    yield directories.DESIGNS
    from isr_protocol.designs import early_watermark

    yield early_watermark.DESIGNS
    from isr_protocol.designs import releases

    yield releases.DESIGNS


class _Designs(Mapping[str, Design]):
    """Imports modules in order, and no more of them than it takes to answer."""

    def __init__(self) -> None:
        self._coming, self._lock = _modules(), RLock()
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


DESIGNS: Mapping[str, Design] = _Designs()
"""Today's first, then back in time, then what was proposed instead, then single rules taken out and bugs.

To find a design takes the modules before it: none for today's, a seventh of a second for the last."""
