"""The folder of an exploration: what it writes there, and what it resumes from.

    states/level=7/bucket-0003.parquet   the states of a level that belong to a bucket, packed: word0, word1, ...
    actions/level=7.parquet              how often each action was taken in the states of a level: action, taken
    commits/0007.json                    level 7 is complete: how many states each bucket has, and all counts so far
    plan.json, kernels.ll                the question, and the kernels for it
    sets/                                visited sets, while the exploration runs; they can be rebuilt from the above

A file gets its name when it is complete. A level counts once its commit is there. What tasks wrote for a level without
a commit is written again, under the same names. So no level is lost, and none is counted twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from isr_check.engine import BadCheckpoint
from isr_check.native.memory import Words

Json = dict[str, object]
SCHEMA = "insync/levels/1"
BLOCK = 1 << 20
"""States that are read or written at a time."""


class _Groups(Protocol):
    def read_row_group(self, i: int) -> pa.Table: ...


class _Metadata(Protocol):
    num_rows: int


_write_table = cast("Callable[[pa.Table, Path], None]", vars(pq)["write_table"])
_read_metadata = cast("Callable[[Path], _Metadata]", vars(pq)["read_metadata"])


def part(folder: str | Path, level: int, bucket: int) -> Path:
    return Path(folder) / "states" / f"level={level}" / f"bucket-{bucket:04d}.parquet"


def columns(words: int) -> pa.Schema:
    """The columns of states: signed 64-bit integers, because Spark has no others."""
    return pa.schema([pa.field(f"word{w}", pa.int64(), nullable=False) for w in range(words)])


def write_states(path: Path, states: Words) -> None:
    """Write states to a file, completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = columns(states.shape[1])
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    with (
        partial.open("wb") as file,
        pq.ParquetWriter(
            file, schema, compression="zstd", compression_level=1, use_dictionary=False, write_page_checksum=True
        ) as writer,
    ):
        for start in range(0, len(states), BLOCK):
            block = states[start : start + BLOCK].view(np.int64)
            arrays = [pa.array(np.ascontiguousarray(block[:, w])) for w in range(block.shape[1])]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=BLOCK)
    partial.replace(path)


def read_states(path: Path, words: int) -> Iterator[Words]:
    """Read states from a file, block by block; BadCheckpoint if it is damaged."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for group in range(file.num_row_groups):
                table = cast("_Groups", file).read_row_group(group)
                block = np.empty((table.num_rows, words), dtype=np.int64)
                for w in range(words):
                    block[:, w] = table.column(w).to_numpy()
                yield block.view(np.uint64)
    except FileNotFoundError:
        raise BadCheckpoint(f"{path} is missing") from None
    except (OSError, pa.ArrowException):
        raise BadCheckpoint(f"{path} was changed or damaged after it was written") from None


def count_states(path: Path) -> int:
    """The number of states in a file, -1 if it is no such file."""
    try:
        return _read_metadata(path).num_rows
    except (OSError, pa.ArrowException):
        return -1


@attrs.frozen
class Commit:
    """The record that a level is complete.

    Of this level: `sizes` maps each bucket to its number of states, `sent` counts the states that tasks sent to the
    buckets that own them, and `spent` has seconds of processor time by kind of work.

    Of all levels so far: `taken` counts steps by action, `refused` refusals by guard, and `expanded` expanded states.
    `found` maps the bit of a check to the level at which it was decided. `orbits` counts the states in the orbits seen,
    with symmetry. `seconds` is the time by the clock.
    """

    level: int
    sizes: dict[int, int]
    taken: tuple[int, ...]
    refused: tuple[int, ...]
    expanded: int
    found: dict[int, int]
    orbits: int
    seconds: float
    sent: int
    spent: dict[str, float]

    @property
    def states(self) -> int:
        return sum(self.sizes.values())


class Store:
    """The folder of one exploration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self, plan: Json) -> None:
        """Begin an exploration; files of an earlier one are removed."""
        self.discard()
        for name in ("states", "actions", "commits", "sets"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        _write_json(self.folder / "plan.json", {**plan, "schema": SCHEMA})

    def discard(self) -> None:
        """Remove what an exploration writes, and nothing else."""
        for name in ("states", "actions", "commits", "sets", "trace", "graph"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in ("plan.json", "kernels.ll"):
            (self.folder / name).unlink(missing_ok=True)

    def forget_sets(self) -> None:
        for name in ("sets", "trace"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def plan(self) -> Json:
        """The plan of the exploration in this folder; BadCheckpoint if there is none."""
        file = self.folder / "plan.json"
        try:
            plan = _read_json(file)
        except FileNotFoundError:
            raise BadCheckpoint(f"there is no exploration by Spark in {self.folder}") from None
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            raise BadCheckpoint(f"{file} was changed or damaged after it was written") from None
        if plan.get("schema") != SCHEMA:
            raise BadCheckpoint(f"{file} was written by another version")
        return plan

    # levels

    def commit(self, commit: Commit) -> None:
        _write_json(self.folder / "commits" / f"{commit.level:04d}.json", {**attrs.asdict(commit), **_named(commit)})

    def commits(self) -> list[Commit]:
        """The commits of all complete levels, in order."""
        found = [_commit(file) for file in sorted((self.folder / "commits").glob("[0-9]*.json"))]
        if [c.level for c in found] != list(range(len(found))):
            raise BadCheckpoint(f"a level is missing in {self.folder / 'commits'}")
        return found

    def settle(self, commits: Sequence[Commit]) -> None:
        """Remove files of levels without a commit; BadCheckpoint if a file of a complete level is missing."""
        for folder in (self.folder / "states").glob("level=*"):
            if int(folder.name.partition("=")[2]) >= len(commits):
                shutil.rmtree(folder)
        for c in commits:
            for bucket, size in c.sizes.items():
                if count_states(path := part(self.folder, c.level, bucket)) != size:
                    raise BadCheckpoint(f"{path} does not have the {size} states that it had")
        self.forget_sets()
        (self.folder / "sets").mkdir()

    def write_actions(self, level: int, taken: Mapping[str, int]) -> None:
        table = pa.table({"action": list(taken), "taken": pa.array(list(taken.values()), pa.int64())})
        _write_table(table, self.folder / "actions" / f"level={level}.parquet")


def _named(commit: Commit) -> Json:
    """The tables of a commit with text keys, as JSON needs them."""
    tables = {"sizes": commit.sizes, "found": commit.found}
    return {name: {str(k): v for k, v in table.items()} for name, table in tables.items()}


def _commit(file: Path) -> Commit:
    try:
        said = _read_json(file)
        tables = {
            name: {int(k): v for k, v in cast("dict[str, int]", said[name]).items()} for name in ("sizes", "found")
        }
        return Commit(
            cast("int", said["level"]),
            tables["sizes"],
            tuple(cast("list[int]", said["taken"])),
            tuple(cast("list[int]", said["refused"])),
            cast("int", said["expanded"]),
            tables["found"],
            cast("int", said["orbits"]),
            cast("float", said["seconds"]),
            cast("int", said["sent"]),
            cast("dict[str, float]", said["spent"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BadCheckpoint(f"{file} was changed or damaged after it was written") from None


def _seal(content: Json) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read_json(path: Path) -> Json:
    """The content of a file that `_write_json` has written; ValueError if it was changed."""
    said = cast("Json", json.loads(path.read_text(encoding="utf-8")))
    seal = said.pop("sha256")
    if seal != _seal(said):
        raise ValueError(path)
    return said


def _write_json(path: Path, content: Json) -> None:
    partial = path.with_suffix(".part")
    with partial.open("w", encoding="utf-8") as file:
        json.dump({**content, "sha256": _seal(content)}, file, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
