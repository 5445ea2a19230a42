"""Cores: what refuted each question in an earlier proof, in a file, so that the next proof begins with that.

A core has no formulas. It names hypotheses by their conjunct, or as guards, and by their places, and the formulas are
those of the design as it is now; a solver is asked whether they suffice. So a core that is out of date, or wrong,
costs a question and proves nothing (strategy.Strategy goes on without it).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

import attrs

SCHEMA = "insync/cores/1"
MOST_CORES = 4
"""The most cores of one part of a goal; designs that differ can need different ones."""

GUARDS = "@guards"
"""The name by which a core calls the guards of the step, and what is known of its parameters."""
SOME, SIZES, VIEW, SECOND_WAY = "@some", "+sizes", "+view", "+second"

_USE = re.compile(r"([^\s:,]+):(\d+(?:,\d+)*)")
_NAMING = re.compile(rf"{SOME}=([^\s:]+):(\d+)")


@attrs.frozen
class Core:
    """Hypotheses that refuted a denied goal.

    `uses`: name of a hypothesis (of a conjunct after the step with a stroke: `name'`) -> the places of its formulas.
    `some`: an element gets a name: the properties that say that it exists, and the place of that witness among theirs.
    `sizes`: with the axioms that compare sizes of sets. `view`: with the ends of sequences in view. `way`: which
    options of the solver.
    """

    uses: tuple[tuple[str, tuple[int, ...]], ...]
    some: tuple[tuple[str, ...], int] | None = None
    sizes: bool = False
    view: bool = False
    way: int = 0

    def text(self) -> str:
        """The core as one line; `read` reads it."""
        words = [f"{name}:{','.join(map(str, places))}" for name, places in self.uses]
        if self.some is not None:
            words.append(f"{SOME}={','.join(self.some[0])}:{self.some[1]}")
        flags = (SIZES, self.sizes), (VIEW, self.view), (SECOND_WAY, self.way == 1)
        return " ".join([*words, *(word for word, there in flags if there)])

    @staticmethod
    def read(text: str) -> Core:
        """The core that `text` wrote; ValueError if it did not."""
        words = text.split(" ") if text else []
        flags = {w for w in words if w in (SIZES, VIEW, SECOND_WAY)}
        uses: list[tuple[str, tuple[int, ...]]] = []
        some: tuple[tuple[str, ...], int] | None = None
        for word in words:
            if (named := _NAMING.fullmatch(word)) is not None:
                some = tuple(named[1].split(",")), int(named[2])
            elif (use := _USE.fullmatch(word)) is not None:
                uses.append((use[1], tuple(map(int, use[2].split(",")))))
            elif word not in flags:
                raise ValueError(f"'{word}' is no part of a core")
        return Core(tuple(uses), some, SIZES in flags, VIEW in flags, int(SECOND_WAY in flags))


class BadCores(ValueError):
    """The file cannot be read as cores: one sentence says why."""


Learnt = tuple[str, int, Core]
"""A question, the number of a part of its goal, and what refuted that part."""


class Cores:
    """Cores by question and part of its goal; those that were learnt last come first."""

    def __init__(self) -> None:
        self._cores_by_question: dict[str, dict[int, list[Core]]] = {}

    def of(self, question: str, part: int) -> Sequence[Core]:
        return self._cores_by_question.get(question, {}).get(part, ())

    def missing(self, question: str, parts: int) -> int:
        """The number of parts of which no core is known, and which take long for that."""
        return sum(not self.of(question, part) for part in range(parts))

    def learn(self, learnt: Iterable[Learnt]) -> None:
        for question, part, core in learnt:
            known = self._cores_by_question.setdefault(question, {}).setdefault(part, [])
            known[:] = [core, *(c for c in known if c != core)][:MOST_CORES]

    def write(self, path: Path) -> None:
        """One line for each question: lists of a core and the parts that it refuted."""
        lines = [
            f"{json.dumps(q)}: {json.dumps(_group_cores(parts))}"
            for q, parts in sorted(self._cores_by_question.items())
        ]
        text = ",\n ".join(lines)
        path.write_text(f'{{"schema": "{SCHEMA}",\n"cores": {{\n {text}\n}}}}\n', encoding="utf-8")

    @staticmethod
    def read(path: Path) -> Cores:
        """The cores in a file; BadCores if it is none."""
        cores = Cores()
        try:
            said = cast("Mapping[str, object]", json.loads(path.read_text(encoding="utf-8")))
            if said["schema"] != SCHEMA:
                raise BadCores(f"{path} does not say {SCHEMA}")
            questions = cast("Mapping[str, Sequence[tuple[str, Sequence[int]]]]", said["cores"])
            for question, entries in questions.items():
                parts = cores._cores_by_question.setdefault(question, {})
                for text, numbers in entries:
                    core = Core.read(text)
                    for part in numbers:
                        parts.setdefault(int(part), []).append(core)
        except OSError as problem:
            raise BadCores(f"cannot read {path}: {(problem.strerror or str(problem)).lower()}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            if isinstance(problem, BadCores):
                raise
            raise BadCores(f"{path} has no cores of proofs ({problem})") from None
        return cores


def _group_cores(parts: Mapping[int, Sequence[Core]]) -> list[tuple[str, list[int]]]:
    """Each core with its parts: first the first core of every part, then the second of every part, and so on."""
    groups: list[tuple[str, list[int]]] = []
    for rank in range(MOST_CORES):
        same: dict[str, list[int]] = {}
        for part, cores in sorted(parts.items()):
            if rank < len(cores):
                same.setdefault(cores[rank].text(), []).append(part)
        groups += same.items()
    return groups
