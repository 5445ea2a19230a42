"""One controller of a quorum as a process: `python -m isr_broker.controller --id 101 --data DIR name=value ...`.

It is a voter (`voter`) on whose log the controller stands. Settings are those of a voter and, for what the controller
decides, those of a broker. They must be the same for all controllers, or each that is elected sets its own.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial

import attrs

from isr_broker.controller_server import ControllerServer
from isr_broker.quorum_settings import QuorumSettings
from isr_broker.settings import Settings, spelling
from isr_broker.voter import Make, main


def controller_of(properties: Mapping[str, str]) -> tuple[QuorumSettings, Make]:
    """The settings of a controller's voter, and what makes one with the rest; BadSetting if one is not understood."""
    names = {spelling(field.name) for field in attrs.fields(QuorumSettings)}
    of_voter = {name: value for name, value in properties.items() if name in names}
    settings = Settings.from_properties({name: value for name, value in properties.items() if name not in names})
    return QuorumSettings.from_properties(of_voter), partial(ControllerServer, core_settings=settings)


if __name__ == "__main__":
    about = "One controller of a quorum."
    sys.exit(main(sys.argv[1:], "isr_broker.controller", about, controller_of))
