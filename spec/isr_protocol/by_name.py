"""Every design by its name on the command line: those of each module's DESIGNS, which has their order, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from isr_lang import Design
from isr_lang.design_table import DesignTable


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
    from isr_protocol.designs import earlier_releases

    yield earlier_releases.DESIGNS


DESIGNS: Mapping[str, Design] = DesignTable(_modules())
"""Today's first, then back in time, then what was proposed instead, then single rules taken out and bugs.

To find a design takes the modules before it: none for today's, a seventh of a second for the last."""
