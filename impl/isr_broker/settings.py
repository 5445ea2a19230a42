"""What can be configured: Kafka's names, Kafka's defaults; and `insync.design`, which protocol of Kafka's history.

A setting is a field whose name is Kafka's with underscores; `from_properties` takes Kafka's spelling. Times are in
milliseconds, sizes in bytes, as the names say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final, TypeAlias, cast

import attrs

from isr_broker.designs import DESIGNS, KIP_966, PLANTED, Design
from isr_broker.listener_names import SSL, BadListener, ListenerSettings

Value: TypeAlias = int | bool | str | Design

MAX_SHORT: Final = 2**15 - 1
MAX_INT: Final = 2**31 - 1
MAX_LONG: Final = 2**63 - 1


RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The one `replica.selector.class` that there is beside none: a consumer reads in its own rack (KIP-392)."""


class BadSetting(ValueError):
    """A setting that does not exist, or a value that it cannot have; the message says which and what it may be."""


def spelling(field: str) -> str:
    """How Kafka writes the name of a field of settings."""
    return field.replace("_", ".")


@attrs.frozen(kw_only=True, cache_hash=True)
class Settings:
    """The settings of a broker and of its topics (kafka.server.KafkaConfig; LogConfig for those of a topic)."""

    # Who is in sync, and what a write needs
    min_insync_replicas: int = 1
    default_replication_factor: int = 1
    num_partitions: int = 1
    unclean_leader_election_enable: bool = False
    replica_lag_time_max_ms: int = 30_000
    auto_create_topics_enable: bool = True
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_seconds: int = 300

    # Fetching
    replica_fetch_wait_max_ms: int = 500
    replica_fetch_min_bytes: int = 1
    replica_fetch_max_bytes: int = 1_048_576
    replica_fetch_backoff_ms: int = 1_000
    replica_socket_timeout_ms: int = 30_000
    replica_fetch_response_max_bytes: int = 10_485_760
    max_incremental_fetch_session_cache_slots: int = 1_000
    replica_selector_class: str = ""
    fetch_max_bytes: int = 57_671_680
    message_max_bytes: int = 1_048_588
    socket_request_max_bytes: int = 104_857_600
    max_connections: int = 2**31 - 1

    # Sessions with the controller, and where the broker stands
    broker_rack: str = ""
    broker_session_timeout_ms: int = 9_000
    broker_heartbeat_interval_ms: int = 2_000
    initial_broker_registration_timeout_ms: int = 60_000
    controller_socket_timeout_ms: int = 30_000

    # Where it listens, and TLS there
    listeners: str = ""
    advertised_listeners: str = ""
    listener_security_protocol_map: str = ""
    inter_broker_listener_name: str = ""
    controller_listener_names: str = ""
    ssl_keystore_location: str = ""
    ssl_truststore_location: str = ""
    ssl_client_auth: str = "none"
    ssl_endpoint_identification_algorithm: str = "https"

    # The log
    log_segment_bytes: int = 1_073_741_824
    log_index_interval_bytes: int = 4_096
    log_flush_interval_messages: int = MAX_LONG
    log_flush_offset_checkpoint_interval_ms: int = 60_000
    log_retention_ms: int = 604_800_000
    log_retention_bytes: int = -1
    log_retention_check_interval_ms: int = 300_000
    producer_id_expiration_ms: int = 86_400_000
    replica_high_watermark_checkpoint_interval_ms: int = 5_000
    metadata_log_max_record_bytes_between_snapshots: int = 20_971_520

    # Consumer groups
    offsets_topic_num_partitions: int = 50
    offsets_topic_replication_factor: int = 3
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000

    # Ours: the version of the protocol; whether a follower serves consumers (KIP-392), as it must if they are sent to
    # one; and whether the watermark waits
    # for those about to join (Kafka's does: Partition.maybeIncrementLeaderHW, shouldWaitForReplicaToJoinIsr)
    insync_design: Design = KIP_966
    insync_follower_reads: bool = False
    insync_waits_for_joiners: bool = True

    # Ours: bytes of all connections that are neither answered nor taken (`flow`)
    insync_in_flight_max_bytes: int = 268_435_456

    # Ours: how many groups a broker coordinates, and bytes of their members and of what they commit (`group_room`)
    insync_groups_max: int = 10_000
    insync_groups_max_bytes: int = 67_108_864
    insync_offsets_max_bytes: int = 67_108_864

    # Ours: where each process writes which actions it took, and whether with states (docs/trace-format.md)
    insync_trace_dir: str = ""
    insync_trace_snapshots: bool = True

    # Ours: a file that notes what each flush made durable, so that whoever kills the process can take the rest away
    insync_flush_record: str = ""

    # Ours: whether records are written down before a truncation takes them (`storage/dropped_records.py`)
    insync_dropped_records: bool = False

    def __attrs_post_init__(self) -> None:
        _check_numbers(self)
        if self.log_retention_ms == 0:
            raise BadSetting("log.retention.ms=0: it must be at least 1, or -1 for ever")
        wait = self.replica_fetch_wait_max_ms
        for name in ("replica_socket_timeout_ms", "replica_lag_time_max_ms"):
            if wait > getattr(self, name):
                raise BadSetting(
                    f"replica.fetch.wait.max.ms={wait}: it must be at most {spelling(name)}={getattr(self, name)}"
                )
        if self.replica_selector_class not in ("", RACK_AWARE):
            raise BadSetting(f"replica.selector.class={self.replica_selector_class}: it must be {RACK_AWARE}, or empty")

        _check_listeners(self)

    def listener_settings(self) -> ListenerSettings:
        """What is said of listeners."""
        return ListenerSettings(
            listeners=self.listeners,
            advertised=self.advertised_listeners,
            protocols=self.listener_security_protocol_map,
            inter_broker=self.inter_broker_listener_name,
            controllers=self.controller_listener_names,
        )

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Settings:
        """Settings from a file's or a command line's `name=value`; BadSetting if one is not understood.

        A design brings the defaults of its time, which can be overridden.
        """
        values = dict(_DEFAULTS_OF_ITS_TIME.get(properties.get("insync.design", ""), {}))
        if properties.get("replica.selector.class"):
            values["insync_follower_reads"] = True
        values |= property_values(cls, properties)
        return cast("Callable[..., Settings]", cls)(**values)

    def properties(self) -> dict[str, str]:
        """All settings as `from_properties` takes them."""
        return {spelling(f.name): _print_value(getattr(self, f.name)) for f in attrs.fields(type(self))}


def property_values(cls: type[attrs.AttrsInstance], properties: Mapping[str, str]) -> dict[str, Value]:
    """The values of fields of settings from `name=value`, in Kafka's spelling; BadSetting if one is not understood."""
    fields_by_name = {spelling(field.name): field for field in attrs.fields(cls)}
    values: dict[str, Value] = {}
    for name, text in properties.items():
        if name not in fields_by_name:
            close = get_close_matches(name, fields_by_name, n=1, cutoff=0.5)
            meant = f"; did you mean {close[0]!r}?" if close else ""
            raise BadSetting(f"there is no setting {name!r}{meant}")
        field = fields_by_name[name]
        values[field.name] = _parse_value(name, text, field.default)
    return values


_BEFORE_2_5: Final[dict[str, Value]] = {"replica_lag_time_max_ms": 10_000, "broker_session_timeout_ms": 6_000}
"""Until KIP-537 (Kafka 2.5): `replica.lag.time.max.ms`, and `zookeeper.session.timeout.ms`, which stands here for the
session with the controller."""

_BEFORE_0_11: Final[dict[str, Value]] = {**_BEFORE_2_5, "unclean_leader_election_enable": True}
"""Until KIP-106 (Kafka 0.11) an unclean leader was elected unless somebody said no."""

_DEFAULTS_OF_ITS_TIME: Final[dict[str, dict[str, Value]]] = {
    "kafka-0.8": _BEFORE_0_11,
    "zookeeper": _BEFORE_0_11,
    "kip-101": _BEFORE_2_5,
    "kip-279": _BEFORE_2_5,
    "kip-320-first-try": _BEFORE_2_5,
    "kip-320": _BEFORE_2_5,
    "kip-497": {"broker_session_timeout_ms": 18_000},
}
"""What Kafka's defaults were in the releases that a design stands for, where they are not today's."""

_LOWEST: Final = {
    "min_insync_replicas": 1,
    "default_replication_factor": 1,
    "num_partitions": 1,
    "socket_request_max_bytes": 1,
    "max_connections": 1,
    "replica_lag_time_max_ms": 1,
    "replica_fetch_max_bytes": 1,
    "replica_fetch_response_max_bytes": 1,
    "replica_fetch_backoff_ms": 1,
    "replica_socket_timeout_ms": 1,
    "controller_socket_timeout_ms": 1,
    "broker_session_timeout_ms": 1,
    "broker_heartbeat_interval_ms": 1,
    "initial_broker_registration_timeout_ms": 1,
    "leader_imbalance_check_interval_seconds": 1,
    "log_segment_bytes": 1,
    "log_index_interval_bytes": 1,
    "log_flush_interval_messages": 1,
    "metadata_log_max_record_bytes_between_snapshots": 1,
    "log_retention_ms": -1,
    "log_retention_bytes": -1,
    "log_retention_check_interval_ms": 1,
    "producer_id_expiration_ms": 1,
    "group_max_size": 1,
    "offsets_topic_num_partitions": 1,
    "offsets_topic_replication_factor": 1,
    "offsets_retention_minutes": 1,
    "offsets_retention_check_interval_ms": 1,
    "insync_in_flight_max_bytes": 1_048_576,
    "insync_groups_max": 1,
}
"""The least number of a setting, where it is not 0."""

_LONGS: Final = frozenset(
    {
        "replica_lag_time_max_ms",
        "leader_imbalance_check_interval_seconds",
        "log_flush_interval_messages",
        "log_retention_ms",
        "log_retention_bytes",
        "log_retention_check_interval_ms",
        "offsets_retention_check_interval_ms",
        "replica_high_watermark_checkpoint_interval_ms",
        "metadata_log_max_record_bytes_between_snapshots",
    }
)
"""Numbers of 64 bits in Kafka; the others have 32."""

_HIGHEST: Final = {
    "offsets_topic_replication_factor": MAX_SHORT,
    "default_replication_factor": MAX_SHORT,
    **dict.fromkeys(_LONGS, MAX_LONG),
}


def _check_numbers(settings: Settings) -> None:
    """BadSetting if a number is out of its range (KafkaConfig, ServerLogConfigs, ReplicationConfigs)."""
    for field in attrs.fields(type(settings)):
        value, name = getattr(settings, field.name), field.name
        if not isinstance(value, int) or isinstance(value, bool):
            continue
        low, high = _LOWEST.get(name, 0), _HIGHEST.get(name, MAX_INT)
        if value < low:
            raise BadSetting(f"{spelling(name)}={value}: it must be at least {low}")
        if value > high:
            raise BadSetting(f"{spelling(name)}={value}: it must be at most {high}")


def _check_listeners(settings: Settings) -> None:
    """BadSetting if there cannot be such listeners (KafkaConfig.validateValues, SslConfigs)."""
    said = settings.listener_settings()
    try:
        named = said.all()
        said.advertised_places()
        tls = any(one.tls for one in named) or any(said.protocol_of(n) == SSL for n in said.controller_names)
    except BadListener as error:
        raise BadSetting(str(error)) from None
    if settings.ssl_client_auth not in _CLIENT_AUTH:
        allowed = ", ".join(_CLIENT_AUTH)
        raise BadSetting(f"ssl.client.auth={settings.ssl_client_auth}: it must be one of {allowed}")
    if settings.ssl_endpoint_identification_algorithm not in ("https", ""):
        raise BadSetting("ssl.endpoint.identification.algorithm: it must be https, or empty")
    if tls and not settings.ssl_keystore_location:
        raise BadSetting("a listener speaks TLS: ssl.keystore.location has to name a PEM file, a key and certificates")
    if tls and settings.ssl_client_auth != "none" and not settings.ssl_truststore_location:
        raise BadSetting("clients are to show certificates, so ssl.truststore.location has to name a PEM file")


_CLIENT_AUTH: Final = ("none", "requested", "required")


def whole_number(text: str) -> int | None:
    """The number that a text says, with blanks around it or not; None if it says none (ConfigDef.parseType)."""
    bare = text.strip()
    digits = bare[1:] if bare[:1] in ("+", "-") else bare
    return int(bare) if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS else None


_MOST_DIGITS: Final = 30
"""More than any number has that is in a range; a longer one takes long to read."""


def truth(text: str) -> bool | None:
    """The truth value that a text says, in any case; None if it says none (ConfigDef.parseType)."""
    return {"true": True, "false": False}.get(text.strip().lower())


def _parse_value(name: str, text: str, default: object) -> Value:
    match default:
        case str():
            return text
        case bool():
            said = truth(text)
            if said is None:
                raise BadSetting(f"{name}={text}: it must be true or false")
            return said
        case Design():
            known = DESIGNS | PLANTED
            if text not in known:
                raise BadSetting(f"{name}={text}: it must be one of {', '.join(DESIGNS)}")
            return known[text]
        case _:
            number = whole_number(text)
            if number is None:
                raise BadSetting(f"{name}={text}: it must be a whole number")
            return number


def _print_value(value: Value) -> str:
    match value:
        case bool():
            return str(value).lower()
        case Design():
            return value.name
        case _:
            return str(value)
