"""Who may ask what where: `listeners`, `inter.broker.listener.name`, `controller.listener.names`, and TLS.

Without this file a stranger who reaches the port of clients could again register, shrink an ISR or fence a broker.
"""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import confluent_kafka.admin
import pytest
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined] # pyright: ignore[reportPrivateImportUsage]
from tests.isr_broker.test_wire import one_broker, said
from tests.support import clients
from tests.support.clusters import QUICK, Cluster

from isr_broker import server
from isr_broker.core import message_json
from isr_broker.core.effects import CONTROLLER
from isr_broker.core.messages import BrokerId, DeleteTopic, Error, RegisterBroker, TopicPartition
from isr_broker.core.record_batch import new_batch
from isr_broker.core.topics import uuid_of
from isr_broker.listener_names import BadListener, Listener, ListenerSettings
from isr_broker.listeners import OF_THE_CONTROLLER
from isr_broker.runtime import NO_CLUSTER_ID
from isr_broker.server import Server
from isr_broker.settings import BadSetting, Settings
from isr_broker.wire import protocol
from isr_broker.wire.protocol import Answer, Fields
from isr_cluster.ports import free_ports
from isr_cluster.processes import apart

HOST = "127.0.0.1"
TOPIC_AUTHORIZATION_FAILED = 29

# What the settings say


def test_a_listener_of_brokers_serves_clients_too_and_one_of_the_controller_nobody_else() -> None:
    named = ListenerSettings(
        listeners="replication://10.0.0.1:9094, PLAINTEXT://:9092,CONTROLLER://[::1]:0",
        protocols="PLAINTEXT:PLAINTEXT,REPLICATION:SSL,CONTROLLER:PLAINTEXT",
        inter_broker="Replication",
        controllers="controller",
    ).all()
    assert named == (
        Listener("PLAINTEXT", HOST, 9092, tls=False, clients=True, brokers=False, controller=False),
        Listener("REPLICATION", "10.0.0.1", 9094, tls=True, clients=True, brokers=True, controller=False),
        Listener("CONTROLLER", "::1", 0, tls=False, clients=False, brokers=False, controller=True),
    )
    assert ListenerSettings().all() == ()
    assert ListenerSettings(listeners="PLAINTEXT://:1").all() == (Listener("PLAINTEXT", HOST, 1),)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"listeners": "9092"}, "is no listener; one is NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://:65536"}, "is no listener"),
        ({"listeners": "PLAINTEXT://:-1"}, "is no listener"),
        ({"listeners": "PLAINTEXT://:1,plaintext://:2"}, "PLAINTEXT is named twice"),
        ({"listeners": "PLAINTEXT://:1,SSL://:1"}, "port 1 is named twice"),
        ({"listeners": "OWN://:1", "inter.broker.listener.name": "OWN"}, "no protocol for listener OWN"),
        ({"listeners": "SASL_SSL://:1,PLAINTEXT://:2"}, "no protocol for listener SASL_SSL"),
        (
            {
                "listeners": "PLAINTEXT://:1",
                "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT",
            },
            "here it can be PLAINTEXT or SSL",
        ),
        ({"listeners": "PLAINTEXT://:1", "listener.security.protocol.map": "PLAINTEXT"}, "is no pair"),
        ({"listeners": "PLAINTEXT://:1", "inter.broker.listener.name": "B"}, "must be one of PLAINTEXT"),
        ({"listeners": "PLAINTEXT://:1", "controller.listener.names": "PLAINTEXT"}, "must be one of none"),
        ({"listeners": "PLAINTEXT://:1", "advertised.listeners": "SSL://:1"}, "SSL, which is not among PLAINTEXT"),
        (
            {
                "listeners": "PLAINTEXT://:1,A://:2,B://:3",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,A:PLAINTEXT,B:PLAINTEXT",
            },
            "one listener for clients, and one for brokers",
        ),
        ({"inter.broker.listener.name": "B"}, "no listeners are named"),
        ({"listeners": "SSL://:1", "inter.broker.listener.name": "SSL"}, "ssl.keystore.location has to name"),
        ({"ssl.client.auth": "always"}, "none, requested, required"),
        ({"ssl.endpoint.identification.algorithm": "http"}, "https, or empty"),
    ],
)
def test_listeners_that_there_cannot_be_are_refused_in_a_sentence(settings: Mapping[str, str], complaint: str) -> None:
    with pytest.raises(BadSetting, match=complaint):
        Settings.from_properties(settings)


def test_the_advertised_place_is_told_by_name() -> None:
    named = ListenerSettings(listeners="PLAINTEXT://0.0.0.0:9092", advertised="PLAINTEXT://broker.example:19092")
    assert named.advertised_places() == {"PLAINTEXT": ("broker.example", 19092)}
    with pytest.raises(BadListener, match="CONTROLLER, which is not among PLAINTEXT"):
        ListenerSettings(listeners="PLAINTEXT://:1", advertised="CONTROLLER://:2").advertised_places()


@pytest.mark.parametrize("broker", [-1, -(2**31)])
@pytest.mark.parametrize("key", OF_THE_CONTROLLER)
def test_a_brokers_number_is_not_negative(key: int, broker: int) -> None:
    """CONTROLLER is -1: whoever registered so was a broker that the controller took for itself."""
    version = protocol.SERVED_VERSIONS[key][1]
    frame = said(one_broker(), protocol.ask(key, version, 1, "x", {"broker_id": broker, "incarnation_id": bytes(16)}))
    assert frame is not None
    error = protocol.parse_answer(key, version, frame[4:]).body.number("error_code")
    assert error == Error.INVALID_REQUEST.value


# A cluster whose brokers find each other, and the controller, elsewhere


class ApartCluster(Cluster):
    """Brokers with the listeners that `insync cluster up` gives them; `more` are settings of all."""

    def __init__(self, more: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.controller_port = free_ports(1)[0]
        self.more = dict(more or {})

    def __enter__(self) -> ApartCluster:
        super().__enter__()
        return self

    def start(self, broker: BrokerId) -> None:
        own = apart(self.ports, self.controller_port)[broker]
        settings = Settings.from_properties({**QUICK.properties(), **own, **self.more})
        server = Server(
            broker,
            settings,
            self.disks[broker],
            (HOST, self.ports[broker]),
            (HOST, self.controller_port),
            with_controller=broker == 1,
        )
        self.servers[broker] = server
        self.do(server.start())

    def port(self, name: str, broker: BrokerId = 1) -> int:
        return next(one.port for one in self.servers[broker].listeners if one.name == name)

    def registered(self) -> set[BrokerId]:
        controller = self.servers[1].runtime.controller
        assert controller is not None
        return set(controller.brokers)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ApartCluster]:
    with ApartCluster() as running:
        clients.create_topic(running.bootstrap, "t", 1, 2)
        running.in_sync("t")
        yield running


def answer(port: int, frame: bytes) -> bytes:
    """What is answered to a frame; nothing if the connection is closed instead."""
    with socket.create_connection((HOST, port), timeout=10) as connection:
        connection.sendall(frame)
        head = connection.recv(4, socket.MSG_WAITALL)
        return connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL) if head else b""


def ask(port: int, key: int, version: int, fields: Answer) -> Fields | None:
    frame = answer(port, protocol.ask(key, version, 1, "stranger", fields))
    return protocol.parse_answer(key, version, frame).body if frame else None


def keys(port: int) -> set[int]:
    body = ask(port, protocol.API_VERSIONS, 3, {})
    assert body is not None
    return {row.number("api_key") for row in body.all("api_keys")}


def registration(broker: BrokerId) -> Answer:
    listener = {"name": "PLAINTEXT", "host": HOST, "port": 1, "security_protocol": 0}
    cluster_id: Answer = {"broker_id": broker, "incarnation_id": b"i" * 16, "listeners": [listener]}
    return {**cluster_id, "cluster_id": "insync", "previous_broker_epoch": -1}


@pytest.mark.sockets
def test_clients_are_served_and_brokers_find_each_other(cluster: ApartCluster) -> None:
    producer = clients.Confluent(cluster.bootstrap, {"acks": "all"})
    assert producer.send_all("t", [b"x"] * 5) == list(range(5))
    assert clients.confluent_read(cluster.bootstrap, "t", 5) == [b"x"] * 5
    leader = cluster.leader("t")
    metadata = cluster.servers[1].runtime.node.brokers[leader]
    assert (metadata.port, metadata.peer_port) == (cluster.ports[leader], cluster.port("BROKERS", leader))


@pytest.mark.sockets
def test_whoever_reaches_clients_only_is_no_broker(cluster: ApartCluster) -> None:
    port = cluster.ports[1]
    assert keys(port) & set(OF_THE_CONTROLLER) == set()
    assert protocol.PRODUCE in keys(port)
    for key in OF_THE_CONTROLLER:
        version = protocol.SERVED_VERSIONS[key][1]
        assert ask(port, key, version, registration(77)) is None, f"API {key}"
    topic = TopicPartition("t", 0)
    for message in (RegisterBroker(broker=77, incarnation=1, cluster=NO_CLUSTER_ID), DeleteTopic(request=1, topic="t")):
        assert answer(port, message_json.encode([(77, CONTROLLER, message)], NO_CLUSTER_ID)) == b""
    assert cluster.registered() == {1, 2, 3}
    assert cluster.partition("t") is not None
    leader = cluster.leader("t")
    epoch = cluster.servers[1].runtime.node.partitions[topic].leader_epoch
    found = fetch_as_follower(cluster.ports[leader], uuid_of_topic(cluster), epoch)
    assert found == TOPIC_AUTHORIZATION_FAILED
    assert fetch_as_follower(cluster.port("BROKERS", leader), uuid_of_topic(cluster), epoch) == 0


@pytest.mark.sockets
def test_a_message_of_a_broker_is_refused_by_its_first_bytes_where_clients_come(cluster: ApartCluster) -> None:
    """Before anything of it is read: to read 100 MB of JSON takes 2.8 GB."""
    with socket.create_connection(("127.0.0.1", cluster.ports[1])) as stranger:
        stranger.settimeout(5)
        stranger.sendall(struct.pack(">ih", 100_000_000, message_json.PEER_API))
        assert stranger.recv(1) == b""


def uuid_of_topic(cluster: ApartCluster) -> bytes:
    partition = cluster.partition("t")
    assert partition is not None
    return uuid_of(partition.topic_id)


def fetch_as_follower(port: int, topic: bytes, epoch: int) -> int:
    """The error of a fetch that says it is of broker 2 or 3, in versions before and since KIP-903."""
    row = {"partition": 0, "current_leader_epoch": epoch, "fetch_offset": 0, "partition_max_bytes": 100}
    codes: set[int] = set()
    for version, name in ((12, {"topic": "t"}), (17, {"topic_id": topic})):
        fields: Answer = {
            "replica_id": 3,
            "replica_state": {"replica_id": 3, "replica_epoch": -1},
            "session_id": 0,
            "session_epoch": -1,
            "max_wait": 0,
            "min_bytes": 0,
            "max_bytes": 100,
            "topics": [{**name, "partitions": [row | {"last_fetched_epoch": -1, "log_start_offset": 0}]}],
        }
        body = ask(port, protocol.FETCH, version, fields)
        assert body is not None
        codes |= {p.number("error_code") for t in body.all("responses") for p in t.all("partitions")}
    (code,) = codes
    return code


@pytest.mark.sockets
def test_the_controllers_listener_serves_nobody_else(cluster: ApartCluster) -> None:
    port = cluster.port("CONTROLLER")
    assert keys(port) == {protocol.API_VERSIONS, *OF_THE_CONTROLLER}
    topic = {"name": "t", "partition_data": [{"index": 0, "records": new_batch(b"x")}]}
    assert ask(port, protocol.PRODUCE, 8, {"acks": 1, "timeout": 9, "topic_data": [topic]}) is None
    assert answer(port, message_json.encode([(9, 1, DeleteTopic(request=1, topic="t"))], NO_CLUSTER_ID)) == b""
    body = ask(port, protocol.BROKER_HEARTBEAT, 1, {"broker_id": 77, "broker_epoch": 5})
    assert body is not None


@pytest.mark.sockets
def test_where_one_listener_is_named_it_serves_everybody() -> None:
    """As before; the start of the process says so."""
    with Cluster(1) as one:
        assert set(OF_THE_CONTROLLER) <= keys(one.ports[1])


# TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority that all trust, a broker's and a client's key, and those of a stranger that it does not know."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here to make certificates")
    root = tmp_path_factory.mktemp("certificates")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=root, check=True, capture_output=True)

    for authority in ("ca", "other"):
        openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
            *("-keyout", f"{authority}.key", "-out", f"{authority}.pem", "-subj", f"/CN={authority}"),
        )
    for name, authority in (("broker", "ca"), ("client", "ca"), ("stranger", "other")):
        openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}.key"),
            *("-out", f"{name}.csr", "-subj", f"/CN={name}"),
        )
        (root / f"{name}.ext").write_text(f"subjectAltName=IP:{HOST}\n")
        openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key"),
            *("-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.crt"),
        )
        (root / f"{name}.pem").write_text((root / f"{name}.key").read_text() + (root / f"{name}.crt").read_text())
    return root


def mutual(certificates: Path) -> dict[str, str]:
    return {
        "ssl.keystore.location": str(certificates / "broker.pem"),
        "ssl.truststore.location": str(certificates / "ca.pem"),
        "ssl.client.auth": "required",
    }


def tries(port: int, context: Callable[[], ssl.SSLContext] | None) -> set[int]:
    """The APIs that are served to a connection, none if it is refused."""
    frame = protocol.ask(protocol.API_VERSIONS, 3, 1, "stranger", {})
    try:
        with socket.create_connection((HOST, port), timeout=10) as bare:
            connection = context().wrap_socket(bare, server_hostname=HOST) if context is not None else bare
            connection.sendall(frame)
            head = connection.recv(4)
            found = connection.recv(int.from_bytes(head, "big")) if len(head) == 4 else b""
        body = protocol.parse_answer(protocol.API_VERSIONS, 3, found).body if found else Fields({})
    except (OSError, ValueError, struct.error):
        return set()
    return {row.number("api_key") for row in body.all("api_keys")}


def context_with(certificates: Path, name: str) -> Callable[[], ssl.SSLContext]:
    def context() -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
        if name:
            made.load_cert_chain(str(certificates / f"{name}.pem"))
        return made

    return context


@pytest.mark.sockets
@pytest.mark.processes
def test_brokers_and_clients_show_certificates_where_that_is_required(certificates: Path) -> None:
    protocols = {"listener.security.protocol.map": "PLAINTEXT:SSL,BROKERS:SSL,CONTROLLER:SSL"}
    with ApartCluster({**mutual(certificates), **protocols}) as cluster:
        known = {
            "security.protocol": "SSL",
            "ssl.ca.location": str(certificates / "ca.pem"),
            "ssl.certificate.location": str(certificates / "client.crt"),
            "ssl.key.location": str(certificates / "client.key"),
        }
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": cluster.bootstrap, **known})
        (future,) = admin.create_topics([NewTopic("t", 1, 3)]).values()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        future.result(30)
        cluster.in_sync("t")
        producer = clients.Confluent(cluster.bootstrap, {"acks": "all", **known})
        assert producer.send_all("t", [b"x"] * 3) == [0, 1, 2]
        for name in ("PLAINTEXT", "BROKERS", "CONTROLLER"):
            port = cluster.port(name)
            assert tries(port, context_with(certificates, "client")), name
            for refused in (None, context_with(certificates, ""), context_with(certificates, "stranger")):
                assert tries(port, refused) == set(), name
        assert cluster.registered() == {1, 2, 3}


@pytest.mark.sockets
@pytest.mark.processes
def test_who_never_begins_to_speak_tls_has_a_connection_and_little_time(
    certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such connections once counted nowhere: 2,000 of them took 600 MB."""
    monkeypatch.setattr(server, "HANDSHAKE_SECONDS", 2.0)
    protocols = {"listener.security.protocol.map": "PLAINTEXT:SSL,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT"}
    with ApartCluster({**mutual(certificates), **protocols, "max.connections": "30"}) as cluster, ExitStack() as stack:
        port = cluster.port("PLAINTEXT")
        silent = [stack.enter_context(socket.create_connection((HOST, port), timeout=20)) for _ in range(60)]
        cluster.wait(lambda: len(cluster.servers[1].connections) >= 30, "all places are taken")
        assert len(cluster.servers[1].connections) == 30
        began = time.monotonic()
        assert [connection.recv(1) for connection in silent] == [b""] * len(silent)
        assert time.monotonic() - began < 15
        assert tries(port, context_with(certificates, "client"))
        assert tries(port, None) == set()


@pytest.mark.sockets
@pytest.mark.processes
def test_a_connection_that_the_broker_closes_does_not_wait_for_its_client(certificates: Path) -> None:
    """By TLS a client that says no goodbye once kept the socket for half a minute, and it counted nowhere."""
    protocols = {"listener.security.protocol.map": "PLAINTEXT:SSL,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT"}
    with ApartCluster({**mutual(certificates), **protocols}) as cluster, ExitStack() as stack:
        port, context = cluster.port("PLAINTEXT"), context_with(certificates, "client")()

        def descriptors() -> int:
            return len(os.listdir("/proc/self/fd"))

        def connects() -> ssl.SSLSocket:
            bare = stack.enter_context(socket.create_connection((HOST, port), timeout=20))
            return stack.enter_context(context.wrap_socket(bare, server_hostname=HOST))

        before = descriptors()
        silent = [connects() for _ in range(10)]
        for connection in silent:
            connection.sendall(struct.pack(">i", -5))
        # Each end is a descriptor of this process; the clients' stay.
        cluster.wait(lambda: descriptors() <= before + len(silent), "the broker has closed its ends", 10)
