"""The store of an exploration: what it writes there, and what it resumes from.

    states/level=7/bucket-0003-5f0c.parquet   the states of a level that belong to a bucket, packed: word0, word1, ...
    actions/level=7.parquet                   how often each action was taken in the states of a level: action, taken
    commits/0007.json                         level 7 is complete: which files it has, and all counts so far
    plan.json, kernels.ll                     the question, and the kernels for it

A commit is one file that is put at once, with a hash of what it says: one that was written by half is none. A level
counts once its commit is there, and a file of states once a commit names it. Each attempt at a task gives its file a
name of its own. So an attempt that was overtaken by another, or died, leaves a file that nobody reads and that is
removed in the end.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import BinaryIO, Protocol, cast

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from isr_check.engine import BadCheckpoint
from isr_check.native.buffers import Words
from isr_pipeline.locations import Location, first_line

Json = dict[str, object]
SCHEMA = "insync/levels/2"
BLOCK = 1 << 20
"""States that are read or written at a time."""
KERNELS = "kernels.ll"


class _Groups(Protocol):
    def read_row_group(self, i: int) -> pa.Table: ...


class _Metadata(Protocol):
    num_rows: int


_write_table = cast("Callable[[pa.Table, BinaryIO], None]", vars(pq)["write_table"])
_read_metadata = cast("Callable[[BinaryIO], _Metadata]", vars(pq)["read_metadata"])


_names = count()


def new_name() -> int:
    """A number that no other attempt at a task has: a hash of who asks for it, when, and how many it has had."""
    asked = f"{socket.gethostname()} {os.getpid()} {time.time_ns()} {next(_names)}"
    return int.from_bytes(hashlib.sha256(asked.encode()).digest()[:8], "big") >> 1


def part(place: Location, level: int, bucket: int, name: int, kind: str = "states") -> Location:
    """The file of a bucket at a level that one attempt has written."""
    return place / kind / f"level={level}" / f"bucket-{bucket:04d}-{name:016x}.parquet"


def columns(words: int) -> pa.Schema:
    """The columns of states: signed 64-bit integers, because Spark has no others."""
    return pa.schema([pa.field(f"word{w}", pa.int64(), nullable=False) for w in range(words)])


def write_states(file: Location, states: Words) -> None:
    """Write states to a file that nobody knows of yet."""
    schema = columns(states.shape[1])
    with (
        file.open_for_writing() as stream,
        pq.ParquetWriter(
            stream, schema, compression="zstd", compression_level=1, use_dictionary=False, write_page_checksum=True
        ) as writer,
    ):
        for start in range(0, len(states), BLOCK):
            block = states[start : start + BLOCK].view(np.int64)
            arrays = [pa.array(np.ascontiguousarray(block[:, w])) for w in range(block.shape[1])]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=BLOCK)


def read_states(file: Location, words: int) -> Iterator[Words]:
    """Read states from a file, block by block; BadCheckpoint if it is damaged."""
    try:
        with file.open_for_reading() as stream, pq.ParquetFile(stream, page_checksum_verification=True) as parquet:
            for group in range(parquet.num_row_groups):
                table = cast("_Groups", parquet).read_row_group(group)
                block = np.empty((table.num_rows, words), dtype=np.int64)
                for w in range(words):
                    block[:, w] = table.column(w).to_numpy()
                yield block.view(np.uint64)
    except FileNotFoundError:
        raise BadCheckpoint(f"{file} is missing") from None
    except (OSError, pa.ArrowException) as problem:
        raise BadCheckpoint(damage_text(file, problem)) from None


def damage_text(file: Location, problem: Exception) -> str:
    """What is said of a file that cannot be read. What another machine keeps may also be out of reach for a while."""
    said = f"{file} was changed or damaged after it was written"
    return said if file.here else f"{said}, or it cannot be reached: {first_line(problem)}"


def count_states(file: Location) -> int:
    """The number of states in a file, -1 if it is no such file."""
    try:
        with file.open_for_reading() as stream:
            return _read_metadata(stream).num_rows
    except (OSError, pa.ArrowException):
        return -1


@attrs.frozen
class Remaking:
    """Visited sets that tasks had to make again: how many, of how many states, and the seconds that tasks took for it.

    `states` counts those that were read from the store; what the task had on its disk needs no reading.
    """

    buckets: int = 0
    states: int = 0
    seconds: float = 0.0

    def __add__(self, other: Remaking) -> Remaking:
        return Remaking(self.buckets + other.buckets, self.states + other.states, self.seconds + other.seconds)


@attrs.frozen
class Commit:
    """The record that a level is complete.

    Of this level: `sizes` maps each bucket to its number of states, `names` to the name of its file, `sent` counts the
    states that tasks sent to the buckets that own them, `spent` has seconds of processor time by kind of work, and
    `remade` says which visited sets were made again for it.

    Of all levels so far: `taken` counts steps by action, `refused` refusals by guard, and `expanded` expanded states.
    `found` maps the bit of a check to the level at which it was decided. `orbits` counts the states in the orbits seen,
    with symmetry. `seconds` is the time by the clock.
    """

    level: int
    sizes: dict[int, int]
    names: dict[int, int]
    taken: tuple[int, ...]
    refused: tuple[int, ...]
    expanded: int
    found: dict[int, int]
    orbits: int
    seconds: float
    sent: int
    spent: dict[str, float]
    remade: Remaking = Remaking()

    @property
    def states(self) -> int:
        return sum(self.sizes.values())

    def file(self, place: Location, bucket: int) -> Location:
        """The file of a bucket that has states at this level."""
        return part(place, self.level, bucket, self.names[bucket])


class Store:
    """The store of one exploration."""

    def __init__(self, place: Location) -> None:
        self.place = place

    def begin(self, plan: Json) -> None:
        """Begin an exploration; files of an earlier one are removed."""
        self.discard()
        _put_json(self.place / "plan.json", {**plan, "schema": SCHEMA})

    def discard(self) -> None:
        """Remove what an exploration writes, and nothing else. What says that the rest is there goes first."""
        for name in ("plan.json", KERNELS):
            (self.place / name).delete()
        for name in ("commits", "states", "actions", "trace", "graph"):
            (self.place / name).delete_folder()

    def plan(self) -> Json:
        """The plan of the exploration in this store; BadCheckpoint if there is none."""
        file = self.place / "plan.json"
        try:
            plan = _read_json(file)
        except FileNotFoundError:
            raise BadCheckpoint(f"there is no exploration by Spark in {self.place}") from None
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as problem:
            raise BadCheckpoint(damage_text(file, problem)) from None
        if plan.get("schema") != SCHEMA:
            raise BadCheckpoint(f"{file} was written by another version")
        return plan

    # levels

    def commit(self, commit: Commit) -> None:
        _put_json(self._commit_file(commit.level), {**attrs.asdict(commit), **_text_key_tables(commit)})

    def _commit_file(self, level: int) -> Location:
        return self.place / "commits" / f"{level:04d}.json"

    def commit_of(self, level: int) -> Commit:
        """The commit of a complete level; BadCheckpoint if it is not there, or damaged."""
        return _commit(self._commit_file(level))

    def commits(self) -> list[Commit]:
        """The commits of all complete levels, in order. A last one that was written by half is none."""
        folder = self.place / "commits"
        names = sorted(name for name in folder.files() if name.endswith(".json"))
        if names != [f"{level:04d}.json" for level in range(len(names))]:
            raise BadCheckpoint(f"a level is missing in {folder}")
        commit_list = list[Commit]()
        for level in range(len(names)):
            try:
                commit_list.append(self.commit_of(level))
            except BadCheckpoint:
                if level + 1 < len(names):
                    raise
        return commit_list

    def settle(self, commits: Sequence[Commit]) -> None:
        """Remove files that no commit names; BadCheckpoint if one that a commit names is missing or cut."""
        for commit in commits:
            for bucket, size in commit.sizes.items():
                if count_states(file := commit.file(self.place, bucket)) != size:
                    raise BadCheckpoint(f"{file} does not have the {size} states that it had")
        self.tidy(commits)

    def tidy(self, commits: Sequence[Commit]) -> None:
        """Remove what only tasks needed: files of attempts that do not count, and marks of counterexamples."""
        counts = {str(c.file(self.place, bucket)) for c in commits for bucket in c.names}
        for name in (self.place / "states").files():
            if str(file := self.place / "states" / name) not in counts:
                file.delete()
        (self.place / "trace").delete_folder()

    def write_actions(self, level: int, steps_by_action: Mapping[str, int]) -> None:
        table = pa.table(
            {"action": list(steps_by_action), "taken": pa.array(list(steps_by_action.values()), pa.int64())}
        )
        with (self.place / "actions" / f"level={level}.parquet").open_for_writing() as stream:
            _write_table(table, stream)


def _text_key_tables(commit: Commit) -> Json:
    """The tables of a commit with text keys, as JSON needs them."""
    tables = {"sizes": commit.sizes, "names": commit.names, "found": commit.found}
    return {name: {str(k): v for k, v in table.items()} for name, table in tables.items()}


def _commit(file: Location) -> Commit:
    try:
        content = _read_json(file)
        tables = {
            name: {int(k): v for k, v in cast("dict[str, int]", content[name]).items()}
            for name in ("sizes", "names", "found")
        }
        return Commit(
            cast("int", content["level"]),
            tables["sizes"],
            tables["names"],
            tuple(cast("list[int]", content["taken"])),
            tuple(cast("list[int]", content["refused"])),
            cast("int", content["expanded"]),
            tables["found"],
            cast("int", content["orbits"]),
            cast("float", content["seconds"]),
            cast("int", content["sent"]),
            cast("dict[str, float]", content["spent"]),
            Remaking(**cast("dict[str, int]", content["remade"])),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise BadCheckpoint(damage_text(file, problem)) from None


def _seal(content: Json) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read_json(file: Location) -> Json:
    """The content of a file that `_put_json` has written; ValueError if it is not that."""
    said = cast("Json", json.loads(file.read()))
    seal = said.pop("sha256")
    if seal != _seal(said):
        raise ValueError(file)
    return said


def _put_json(file: Location, content: Json) -> None:
    file.put(json.dumps({**content, "sha256": _seal(content)}, sort_keys=True).encode())
