"""Where a broker listens, for whom, in Kafka's names: `listeners`, `inter.broker.listener.name` and their kin.

A listener of brokers serves clients, too, as in Kafka; one of the controller serves nobody else. What a listener does
not serve is refused (`listeners`). docs: AbstractKafkaConfig.listeners, KafkaConfig.validateValues, ListenerName.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

PLAINTEXT: Final = "PLAINTEXT"
SSL: Final = "SSL"
_PROTOCOLS: Final = (PLAINTEXT, SSL)
_LISTENER: Final = re.compile(r"([A-Za-z0-9_.-]+)://(\[[^\]]*\]|[^:/\[\]]*):([0-9]{1,5})")
_LOOPBACK: Final = "127.0.0.1"
_HIGHEST_PORT: Final = 65_535


class BadListener(ValueError):
    """Listeners that there cannot be; the message says which and why."""


@attrs.frozen
class Listener:
    """One listener: its name, where it is, whether it speaks TLS, and whom it serves.

    `clients`: producers, consumers and admins. `brokers`: followers, and what the controller tells. `controller`: what
    only brokers ask the controller, which is on the process that has such a listener.
    """

    name: str
    host: str
    port: int
    tls: bool = False
    clients: bool = True
    brokers: bool = True
    controller: bool = True


@attrs.frozen(kw_only=True)
class ListenerSettings:
    """The settings, as they are written: `listeners`, `listener.security.protocol.map` and so on."""

    listeners: str = ""
    advertised: str = ""
    protocols: str = ""
    inter_broker: str = ""
    controllers: str = ""

    def protocol_of(self, name: str) -> str:
        """PLAINTEXT or SSL; a listener whose name is no protocol is in the map (Kafka: so is the controller's)."""
        protocols = {PLAINTEXT: PLAINTEXT, SSL: SSL}
        protocols = _pairs(self.protocols) if self.protocols else protocols
        if name not in protocols:
            raise BadListener(f"listener.security.protocol.map has no protocol for listener {name}")
        if protocols[name] not in _PROTOCOLS:
            raise BadListener(
                f"listener {name} is to speak {protocols[name]}; here it can be {' or '.join(_PROTOCOLS)}"
            )
        return protocols[name]

    @property
    def controller_names(self) -> tuple[str, ...]:
        """The names of listeners of the controller."""
        return tuple(name.strip().upper() for name in self.controllers.split(",") if name.strip())

    @property
    def inter_broker_name(self) -> str:
        """The listener on which brokers find each other (security.inter.broker.protocol is PLAINTEXT by default)."""
        return self.inter_broker.strip().upper() or PLAINTEXT

    def all(self) -> tuple[Listener, ...]:
        """The listeners in their order, that of clients first; BadListener if there cannot be such."""
        if not self.listeners.strip():
            if self.advertised or self.protocols or self.inter_broker or self.controllers:
                raise BadListener("no listeners are named, so nothing can be said of them")
            return ()
        places = _places("listeners", self.listeners)
        peers, controllers = self.inter_broker_name, self.controller_names
        brokers = [name for name in places if name not in controllers]
        if peers not in brokers:
            raise BadListener(f"inter.broker.listener.name={peers}: it must be one of {', '.join(brokers) or 'none'}")
        if len(brokers) > _MOST_FOR_BROKERS:
            raise BadListener(f"{', '.join(brokers)}: there is one listener for clients, and one for brokers")
        listeners = [
            Listener(
                name,
                host or _LOOPBACK,
                port,
                tls=self.protocol_of(name) == SSL,
                clients=name not in controllers,
                brokers=name == peers,
                controller=name in controllers or (name == peers and not controllers),
            )
            for name, (host, port) in places.items()
        ]
        return tuple(sorted(listeners, key=lambda one: (one.controller and not one.clients, one.brokers)))

    def advertised_places(self) -> Mapping[str, tuple[str, int]]:
        """Where others find a listener, by its name, where that is not where it listens (`advertised.listeners`)."""
        places = _places("advertised.listeners", self.advertised) if self.advertised.strip() else {}
        known = {one.name for one in self.all() if one.clients}
        unknown = sorted(set(places) - known)
        if unknown:
            raise BadListener(f"advertised.listeners has {unknown[0]}, which is not among {', '.join(sorted(known))}")
        return places


_MOST_FOR_BROKERS: Final = 2
"""Listeners that are not the controller's: metadata tell clients one address of a broker, and brokers another."""


def _places(setting: str, text: str) -> dict[str, tuple[str, int]]:
    """Host and port by name; names are the same in any case (ListenerName.normalised)."""
    places: dict[str, tuple[str, int]] = {}
    for part in text.split(","):
        match = _LISTENER.fullmatch(part.strip())
        if match is None or int(match[3]) > _HIGHEST_PORT:
            raise BadListener(f"{setting}: {part.strip()!r} is no listener; one is NAME://HOST:PORT")
        name, place = match[1].upper(), (match[2].strip("[]"), int(match[3]))
        if name in places:
            raise BadListener(f"{setting}: {name} is named twice")
        if place[1] and place[1] in (port for _, port in places.values()):
            raise BadListener(f"{setting}: port {place[1]} is named twice")
        places[name] = place
    return places


def _pairs(text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in text.split(","):
        name, colon, protocol = part.strip().partition(":")
        if not (name and colon and protocol):
            raise BadListener(f"listener.security.protocol.map: {part.strip()!r} is no pair; one is NAME:PROTOCOL")
        pairs[name.strip().upper()] = protocol.strip().upper()
    return pairs
