"""Every design of the quorum by its name on the command line: those of each module's DESIGNS, today's first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from isr_lang import Design
from isr_lang.design_table import DesignTable


def _modules() -> Iterator[tuple[Design, ...]]:
    """The designs of each module; the module is imported when somebody has come so far in the table."""
    import kraft_model

    yield kraft_model.DESIGNS
    from kraft_protocol.designs import releases

    yield releases.DESIGNS
    from kraft_protocol.designs import reports

    yield reports.DESIGNS
    from kraft_protocol.designs import cut_off

    yield cut_off.DESIGNS
    from kraft_protocol.designs import voter_changes

    yield voter_changes.DESIGNS
    from kraft_protocol.designs import waiting_fetches

    yield waiting_fetches.DESIGNS
    from kraft_protocol.designs import late_requests

    yield late_requests.DESIGNS
    from kraft_protocol.designs import formatting

    yield formatting.DESIGNS
    from kraft_protocol.designs import version_upgrade

    yield version_upgrade.DESIGNS
    from kraft_protocol.designs import dropped_rules

    yield dropped_rules.DESIGNS


DESIGNS: Mapping[str, Design] = DesignTable(_modules())
"""Today's first, then what was before it, reports of others with what mends them, and single rules taken out."""
