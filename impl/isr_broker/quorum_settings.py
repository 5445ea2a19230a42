"""What can be configured of a voter of the metadata quorum: Kafka's names, Kafka's defaults (QuorumConfig)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, cast

import attrs

from isr_broker.core.quorum_messages import VoterId
from isr_broker.environment import Address
from isr_broker.settings import MAX_INT, BadSetting, property_values, spelling

_VOTER: Final = re.compile(r"([0-9]{1,10})@(\[[^\]]+\]|[^:/@\[\]]+):([0-9]{1,5})")
_FEWEST: Final = 2
_HIGHEST_PORT: Final = 65_535


@attrs.frozen(kw_only=True)
class QuorumSettings:
    """The settings of a voter. Times are in milliseconds.

    `metadata_max_idle_interval_ms`: after how long without a record a leader writes a NoOp. Kafka's active controller
    does after 500; here nobody writes records, so the default is 0, never.
    """

    controller_quorum_voters: str = ""
    controller_quorum_election_timeout_ms: int = 1_000
    controller_quorum_fetch_timeout_ms: int = 2_000
    controller_quorum_election_backoff_max_ms: int = 1_000
    controller_quorum_request_timeout_ms: int = 2_000
    controller_quorum_retry_backoff_ms: int = 20
    metadata_max_idle_interval_ms: int = 0
    controller_listener_names: str = "CONTROLLER"
    socket_request_max_bytes: int = 104_857_600

    def __attrs_post_init__(self) -> None:
        for field in attrs.fields(type(self)):
            value, least = getattr(self, field.name), 0 if "idle" in field.name or "backoff" in field.name else 1
            if isinstance(value, int) and not least <= value <= MAX_INT:
                raise BadSetting(f"{spelling(field.name)}={value}: it must be at least {least}, and at most {MAX_INT}")
        if len(self.places()) < _FEWEST:
            raise BadSetting(
                f"controller.quorum.voters={self.controller_quorum_voters}: there must be {_FEWEST} at least,"
                " each as ID@HOST:PORT"
            )

    def places(self) -> dict[VoterId, Address]:
        """Where each voter is found; BadSetting if one is no ID@HOST:PORT (QuorumConfig.parseVoterConnections)."""
        places: dict[VoterId, Address] = {}
        for part in filter(None, self.controller_quorum_voters.split(",")):
            match = _VOTER.fullmatch(part.strip())
            if match is None or int(match[1]) > MAX_INT or int(match[3]) > _HIGHEST_PORT:
                raise BadSetting(f"controller.quorum.voters: {part.strip()!r} is no voter; one is ID@HOST:PORT")
            if int(match[1]) in places:
                raise BadSetting(f"controller.quorum.voters: {match[1]} is named twice")
            places[int(match[1])] = match[2].strip("[]"), int(match[3])
        return places

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> QuorumSettings:
        """Settings from a command line's `name=value`; BadSetting if one is not understood."""
        return cast("Callable[..., QuorumSettings]", cls)(**property_values(cls, properties))
