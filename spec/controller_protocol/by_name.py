"""Every design of controllers and their quorum by its name on the command line, the whole first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from isr_lang import Design
from isr_lang.design_table import DesignTable


def _modules() -> Iterator[tuple[Design, ...]]:
    """The designs of each module; the module is imported when somebody has come so far in the table."""
    import controller_model

    yield controller_model.DESIGNS
    from controller_protocol.designs import reports

    yield reports.DESIGNS
    from controller_protocol.designs import one_controller

    yield one_controller.DESIGNS
    from controller_protocol.designs import sessions

    yield sessions.DESIGNS
    from controller_protocol.designs import busy_log

    yield busy_log.DESIGNS
    from controller_protocol.designs import activation

    yield activation.DESIGNS
    from controller_protocol.designs import renouncing

    yield renouncing.DESIGNS
    from controller_protocol.designs import dropped_rules

    yield dropped_rules.DESIGNS
    from kraft_protocol import abstract_quorum

    yield abstract_quorum.DESIGNS


DESIGNS: Mapping[str, Design] = DesignTable(_modules())
"""Controllers on reliable disks, what was reported of them with what mends it, the comparison with one, the quorum."""
