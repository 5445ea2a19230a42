"""A controller of a quorum on a port: what `voter_server` does for a voter, and messages from and to brokers."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from isr_broker.controller_runtime import ControllerRuntime
from isr_broker.core import message_json
from isr_broker.core.effects import CONTROLLER
from isr_broker.core.message_json import Parcel
from isr_broker.core.messages import Admin, BrokerId, FetchMetadata, Message
from isr_broker.core.stamps import bare
from isr_broker.environment import Address
from isr_broker.links import Channel, Link, clock, parcels_in
from isr_broker.settings import Settings
from isr_broker.storage.quorum_disk import QuorumDisk
from isr_broker.voter_runtime import VoterRuntime
from isr_broker.voter_server import VoterServer
from isr_broker.wire.decoder import BadFrame
from isr_broker.wire.quorum_channel import Outcome


@attrs.define
class ControllerServer(VoterServer):
    """One controller; `core_settings` are those of its core."""

    core_settings: Settings = attrs.field(factory=Settings)
    links: dict[Address, Link] = attrs.field(factory=dict[Address, Link])

    def made_of(self, files: QuorumDisk) -> VoterRuntime:
        """A voter on which the controller stands."""
        return ControllerRuntime(
            self.quorum, self.settings, files, self, core_settings=self.core_settings, post=self.post
        )

    def post(self, to: BrokerId, address: Address, message: Message) -> None:
        """Send a message to a broker, or lose it."""
        link = self.links.get(address)
        if link is None:
            link = self.links[address] = Link(address, self.quorum.cluster, lambda lost: None)
        link.put((CONTROLLER, to, message))

    def calls(self) -> Sequence[Channel[Outcome] | Link]:
        """Those to brokers, too."""
        return (*VoterServer.calls(self), *self.links.values())

    def hears(self, frame: bytes) -> bool:
        """What brokers ask in frames of their own: news of the metadata, and what admins want."""
        if not message_json.is_peer(frame):
            return False
        parcels = parcels_in(frame, self.quorum.cluster)
        if not all(is_for_controller(parcel) for parcel in parcels):
            raise BadFrame("a message that is for no controller")
        runtime = self.runtime
        assert isinstance(runtime, ControllerRuntime)
        self.does(lambda: runtime.receive_messages(parcels, clock()))
        return True


def is_for_controller(parcel: Parcel) -> bool:
    """Whether a message is one that brokers send to the controller so."""
    _, to, envelope = parcel
    return to == CONTROLLER and isinstance(bare(envelope), FetchMetadata | Admin)
