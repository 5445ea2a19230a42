"""The file `quorum-state`: the epoch, the vote and the leader of a voter, as Kafka has it (FileQuorumStateStore).

It is JSON, and one file takes the place of another as a whole. Version 0 is that of voters that never change; version 1
has the directory id of the vote in place of the voters, which are in the log. Ours has a CRC-32C of whose it is and of
the rest, which Kafka does not look at.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from typing import Final, cast

import attrs

from isr_broker.core.quorum_messages import VoterId
from isr_broker.core.record_batch import crc32c
from isr_broker.core.voter_state import QuorumState

NAME: Final = "quorum-state"
_NOBODY: Final = -1
_NO_DIRECTORY: Final = bytes(16)
_SHARED: Final = {"leaderId", "leaderEpoch", "votedId", "data_version"}
_KEYS: Final = {0: _SHARED | {"clusterId", "appliedOffset", "currentVoters"}, 1: _SHARED | {"votedDirectoryId"}}
_CRC: Final = "crc32c"
_END: Final = re.compile(rb'(\{.*),"crc32c":"([0-9a-f]{8})"\}')


class BadQuorumState(ValueError):
    """Bytes that are no quorum-state."""


@attrs.frozen
class QuorumStateFile:
    """What the file says: the state, in which version, and who votes, which version 1 leaves to the log."""

    quorum: QuorumState
    version: int
    voters: frozenset[VoterId]


def quorum_state_text(quorum: QuorumState, voters: Iterable[VoterId] | None, owner: bytes) -> bytes:
    """The contents of the file, of a node and a cluster as `owner` says them; in version 1 where no voters are told."""
    if voters is None:
        directory = base64.urlsafe_b64encode(quorum.vote_directory or _NO_DIRECTORY).rstrip(b"=").decode()
        changing = {
            "leaderId": _NOBODY if quorum.leader is None else quorum.leader,
            "leaderEpoch": quorum.epoch,
            "votedId": _NOBODY if quorum.vote is None else quorum.vote,
            "votedDirectoryId": directory,
            "data_version": 1,
        }
        return _with_crc(changing, owner)
    fields = {
        "clusterId": "",
        "leaderId": _NOBODY if quorum.leader is None else quorum.leader,
        "leaderEpoch": quorum.epoch,
        "votedId": _NOBODY if quorum.vote is None else quorum.vote,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": voter} for voter in sorted(voters)],
        "data_version": 0,
    }
    return _with_crc(fields, owner)


def _with_crc(fields: Mapping[str, object], owner: bytes) -> bytes:
    text = json.dumps(fields, separators=(",", ":")).encode()
    return b'%s,"%s":"%08x"}' % (text[:-1], _CRC.encode(), _crc(owner, text))


def _crc(owner: bytes, text: bytes) -> int:
    return crc32c(owner + text)


def parse_quorum_state(text: bytes, owner: bytes) -> QuorumStateFile:
    """What the contents of the file say; BadQuorumState if it is damaged, or another node's.

    One without a CRC is Kafka's, and taken.
    """
    try:
        fields = cast("object", json.loads(text))
    except ValueError as error:
        raise BadQuorumState(f"it is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise BadQuorumState("it is no JSON object")
    values = cast("dict[str, object]", fields)
    if _CRC in values:
        found = _END.fullmatch(text)
        if found is None or int(found[2], 16) != _crc(owner, found[1] + b"}"):
            raise BadQuorumState("its checksum is not that of what it says, or it is another node's")
        del values[_CRC]
    version = _number(values, "data_version", 0)
    if set(values) != _KEYS.get(version):
        raise BadQuorumState(f"data_version {version} has no fields {', '.join(sorted(values))}")
    named = [_number(values, name, _NOBODY) for name in ("leaderId", "votedId")]
    leader, vote = (None if voter == _NOBODY else voter for voter in named)
    directory = _directory(values) if version > 0 and vote is not None else None
    quorum = QuorumState(epoch=_number(values, "leaderEpoch", 0), vote=vote, leader=leader, vote_directory=directory)
    return QuorumStateFile(quorum, version, _voters(values) if version == 0 else frozenset())


def _number(values: dict[str, object], name: str, least: int) -> int:
    value = values.get(name)
    if type(value) is not int or value < least:
        raise BadQuorumState(f"{name} is {value!r}")
    return value


def _directory(values: dict[str, object]) -> bytes:
    text = values["votedDirectoryId"]
    try:
        directory = base64.urlsafe_b64decode(f"{text}==") if isinstance(text, str) else b""
    except binascii.Error:
        directory = b""
    if len(directory) != len(_NO_DIRECTORY):
        raise BadQuorumState(f"votedDirectoryId is {text!r}")
    return directory


def _voters(values: dict[str, object]) -> frozenset[VoterId]:
    """Kafka may leave them out, and says null then."""
    rows = values["currentVoters"]
    if rows is None:
        return frozenset()
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in cast("list[object]", rows)):
        raise BadQuorumState(f"currentVoters is {rows!r}")
    return frozenset(_number(row, "voterId", 0) for row in cast("list[dict[str, object]]", rows))
