"""What can be configured of a voter of the metadata quorum: Kafka's names, Kafka's defaults (QuorumConfig)."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Final, cast

import attrs

from isr_broker.core.quorum_messages import VoterId, VoterNode, VoterSet
from isr_broker.environment import Address
from isr_broker.settings import MAX_INT, BadSetting, property_values, spelling

_VOTER: Final = re.compile(r"([0-9]{1,10})@(\[[^\]]+\]|[^:/@\[\]]+):([0-9]{1,5})")
_FIRST_VOTER: Final = re.compile(_VOTER.pattern + r":([A-Za-z0-9_-]{22})")
_SERVER: Final = re.compile(r"(\[[^\]]+\]|[^:/@\[\]]+):([0-9]{1,5})")
_LISTENER: Final = re.compile(r"([A-Z_]+)://(\[[^\]]+\]|[^:/@\[\]]+):([0-9]{1,5})")
_FEWEST: Final = 2
_HIGHEST_PORT: Final = 65_535


@attrs.frozen(kw_only=True)
class QuorumSettings:
    """The settings of a voter. Times are in milliseconds.

    `controller_quorum_voters` are those that never change. With `controller_quorum_bootstrap_servers` in their place
    the log has the voters, each known by its disk (kraft.version 1). Then `listeners` says where this one listens.
    `metadata_max_idle_interval_ms`: after how long without a record a leader writes a NoOp. Kafka's active controller
    does after 500; here nobody writes records, so the default is 0, never.
    """

    controller_quorum_voters: str = ""
    controller_quorum_bootstrap_servers: str = ""
    listeners: str = ""
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
        if self.dynamic:
            self.servers()
            self.listener()
        elif len(self.places()) < _FEWEST:
            raise BadSetting(
                f"controller.quorum.voters={self.controller_quorum_voters}: there must be {_FEWEST} at least,"
                " each as ID@HOST:PORT"
            )

    @property
    def dynamic(self) -> bool:
        """Voters change, and are known by their directory ids."""
        return bool(self.controller_quorum_bootstrap_servers) and not self.controller_quorum_voters

    def servers(self) -> dict[VoterId, Address]:
        """Whom to ask for the leader, with the numbers that Kafka gives them: the smallest that there are."""
        matches = [_SERVER.fullmatch(part.strip()) for part in self.controller_quorum_bootstrap_servers.split(",")]
        if not all(match is not None and int(match[2]) <= _HIGHEST_PORT for match in matches):
            raise BadSetting(
                f"controller.quorum.bootstrap.servers={self.controller_quorum_bootstrap_servers}: each is HOST:PORT"
            )
        places = [(match[1].strip("[]"), int(match[2])) for match in matches if match is not None]
        return {-MAX_INT - 1 + number: place for number, place in enumerate(places)}

    def listener(self) -> Address:
        """Where this voter listens, if its quorum does not say so."""
        match = _LISTENER.fullmatch(self.listeners.strip())
        if match is None or match[1] != self.controller_listener_names:
            name = self.controller_listener_names
            raise BadSetting(f"listeners={self.listeners}: with bootstrap servers it must be {name}://HOST:PORT")
        return match[2].strip("[]"), int(match[3])

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


def initial_controllers(text: str, listener: str = "CONTROLLER") -> VoterSet:
    """The first voters of a quorum whose voters change; BadSetting if one is no ID@HOST:PORT:DIRECTORY.

    DynamicVoters.parse.
    """
    voters = VoterSet()
    for part in text.split(","):
        match = _FIRST_VOTER.fullmatch(part.strip())
        if match is None or int(match[1]) > MAX_INT or int(match[3]) > _HIGHEST_PORT or int(match[1]) in voters:
            raise BadSetting(f"--initial-controllers: {part.strip()!r} is no voter; one is ID@HOST:PORT:DIRECTORY")
        directory = base64.urlsafe_b64decode(f"{match[4]}==")
        voters = voters.set(int(match[1]), VoterNode(directory, ((listener, match[2].strip("[]"), int(match[3])),)))
    return voters
