"""Every design of the quorum by its name on the command line, today's first."""

from __future__ import annotations

from collections.abc import Mapping

import kraft_model
from isr_lang import Design
from kraft_protocol.designs import dropped_rules, releases, reports

DESIGNS: Mapping[str, Design] = {
    design.name: design
    for designs in (kraft_model.DESIGNS, releases.DESIGNS, reports.DESIGNS, dropped_rules.DESIGNS)
    for design in designs
}
