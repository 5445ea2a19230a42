"""What larger bounds find: every design at usual settings, at the bounds that `check` chooses and at twice these.

    python bench/bounds.py [--results FILE] [--design D]... [--setting S]... [--replicas N] [--states N] [--seconds S]
                           [--table]

Each run is a process, and its answer goes to the file of results. What is in this file for the same model and the same
bounds is not run again, so that a run of hours can be stopped and goes on. `--table` runs nothing. The table is
that of docs/measurements/bounds.md. A promise that is HOLDS at the bounds chosen and VIOLATED at twice these stands
out, and the exit code is then 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import attrs

from insync_cli.registry import instance_with_room
from isr_lang import Design, SettingError, Value
from isr_protocol.by_name import DESIGNS
from isr_trace.cases import option

RESULTS = Path("runs/bounds.json")
SETTINGS: Mapping[str, Mapping[str, Value]] = {
    "nothing": {},
    "unclean on": {"unclean": True},
    "min-insync 1": {"min_insync": 1},
    "acks 1": {"acks": "1"},
    "two power losses": {"lossy_crashes": 2},
}
DOUBLED = ("log", "records", "epochs", "isr_changes")
CHOSEN, TWICE = "chosen", "twice"
PROMISES = ("always", "step")
FEWER = ("--symmetry", "on", "--reduction", "on")


@attrs.frozen
class Answer:
    """What one `check` said: of each promise its verdict, and how much was seen. `verdict` is that of the whole."""

    model_hash: str
    bounds: Mapping[str, int | str | bool]
    verdict: str
    promises: Mapping[str, str]
    distinct: int
    seconds: float


@attrs.frozen
class Question:
    """One row of the table: a design, what is set of it, and of how many replicas (None: its own)."""

    design: Design
    setting: str
    replicas: int | None

    @property
    def name(self) -> str:
        of = f" at {self.replicas} replicas" if self.replicas is not None else ""
        return f"{self.design.name}, {self.setting}{of}"

    def asked(self) -> dict[str, Value]:
        """What is given."""
        more: dict[str, Value] = {} if self.replicas is None else {"replicas": self.replicas}
        return {**more, **SETTINGS[self.setting]}

    def chosen(self) -> dict[str, Value]:
        """Every constant, as `check` chooses those that are not given."""
        return instance_with_room(self.design, self.asked()).constants

    def twice(self) -> dict[str, Value]:
        """The same with twice as much room, as far as the bounds go."""
        highest = {c.name: c.high for c in self.design.constants()}
        larger = self.chosen()
        return larger | {name: min(2 * cast("int", larger[name]), highest[name]) for name in DOUBLED if name in larger}


def questions(designs: Sequence[str], settings: Sequence[str], replicas: int | None) -> Iterator[Question]:
    """Every row that means something: the design has the setting, and with other values by default."""
    for design in (DESIGNS[name] for name in designs):
        constants = {c.name: c for c in design.constants()}
        for setting in settings:
            asked, own = SETTINGS[setting], design.defaults
            if not set(asked) <= set(constants):
                continue
            if asked and all(own.get(name, constants[name].default) == value for name, value in asked.items()):
                continue
            question = Question(design, setting, replicas)
            try:
                question.chosen()
            except (SettingError, Exception) as problem:  # such as more in-sync replicas required than there are
                print(f"{question.name}: {problem}", file=sys.stderr)
                continue
            yield question


def words_of(constants: Mapping[str, Value]) -> list[str]:
    """All of these as options, the defaults, too: none of them is then chosen by insync."""
    return " ".join(option(name, value) for name, value in constants.items()).split()


def check(design: Design, constants: Mapping[str, Value], states: int, seconds: float) -> Answer:
    """`insync check` of the design at these constants, in a process of its own."""
    promises = [p.name for p in design.properties if p.kind in PROMISES]
    limits = ["--max-states", str(states), "--max-seconds", str(seconds), "--workers", "1", "--memory", "4G"]
    with tempfile.TemporaryDirectory(prefix="insync-bounds-") as folder:
        words = ["check", design.name, *words_of(constants), *FEWER, *limits, "--out", folder]
        named = [word for name in promises for word in ("--property", name)]
        command = [sys.executable, "-m", "insync_cli.main", *words, *named, "--quiet", "--json", "-"]
        began = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    run = json.loads(done.stdout)
    verdicts = {line["name"]: line["verdict"] for line in run["properties"] if line["name"] in promises}
    return Answer(
        run["model_hash"], run["bounds"], run["verdict"], verdicts, run["stats"]["distinct"], time.monotonic() - began
    )


class Results:
    """The answers so far, in a file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        text = file.read_text(encoding="utf-8") if file.exists() else "{}"
        self.answers = {name: Answer(**answer) for name, answer in json.loads(text).items()}

    def stored(self, question: Question, size: str) -> Answer | None:
        """The answer, if there is one of this model at these bounds."""
        answer = self.answers.get(f"{question.name}: {size}")
        bounds = question.chosen() if size == CHOSEN else question.twice()
        same = answer is not None and answer.model_hash == question.design.model_hash() and answer.bounds == bounds
        return answer if same else None

    def save(self, question: Question, size: str, answer: Answer) -> None:
        self.answers[f"{question.name}: {size}"] = answer
        self.file.parent.mkdir(parents=True, exist_ok=True)
        beside = self.file.with_suffix(".partial")
        beside.write_text(
            json.dumps({name: attrs.asdict(a) for name, a in self.answers.items()}, indent=1) + "\n", encoding="utf-8"
        )
        os.replace(beside, self.file)


def flips(chosen: Answer, twice: Answer) -> list[str]:
    """The promises that are said to hold, and are broken where there is more room."""
    return [
        name
        for name, verdict in chosen.promises.items()
        if verdict == "HOLDS" and twice.promises.get(name) == "VIOLATED"
    ]


def cell(answer: Answer | None) -> str:
    """What was said, and how much was seen."""
    if answer is None:
        return "not run"
    broken = [name for name, verdict in answer.promises.items() if verdict == "VIOLATED"]
    count = {v: sum(w == v for w in answer.promises.values()) for v in dict.fromkeys(answer.promises.values())}
    others = [f"{n} {verdict}" for verdict, n in count.items() if verdict != "VIOLATED"]
    words = [f"VIOLATED: {', '.join(broken)}"] if broken else []
    return f"{', '.join((*words, *others))}; {answer.distinct:,} states"


def table(rows: Sequence[Question], results: Results) -> tuple[str, int]:
    """Markdown, and how many rows have a promise that does not hold in larger bounds."""
    lines = ["| design | set | at the bounds chosen | at twice these | lost with more room |", "|---|---|---|---|---|"]
    bad = 0
    for row in rows:
        chosen, twice = results.stored(row, CHOSEN), results.stored(row, TWICE)
        lost = flips(chosen, twice) if chosen and twice else []
        bad += bool(lost)
        text = f"**{', '.join(lost)}**" if lost else "none" if chosen and twice else "not known"
        lines.append(f"| {row.design.name} | {row.setting} | {cell(chosen)} | {cell(twice)} | {text} |")
    return "\n".join(lines), bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file of answers")
    parser.add_argument("--design", action="append", choices=list(DESIGNS), help="only this one; may be repeated")
    parser.add_argument("--setting", action="append", choices=list(SETTINGS), help="only this one; may be repeated")
    parser.add_argument("--replicas", type=int, help="of every design; without it, its own")
    parser.add_argument("--states", type=int, default=5_000_000, help="where a run ends")
    parser.add_argument("--seconds", type=float, default=120, help="where a run ends")
    parser.add_argument("--table", action="store_true", help="print what is known, and run nothing")
    options = parser.parse_args()
    results = Results(options.results)
    rows = list(questions(options.design or list(DESIGNS), options.setting or list(SETTINGS), options.replicas))
    for row in rows if not options.table else ():
        for size, constants in ((CHOSEN, row.asked()), (TWICE, row.twice())):
            if results.stored(row, size) is None:
                answer = check(row.design, constants, options.states, options.seconds)
                results.save(row, size, answer)
                print(f"{row.name}: {size}: {cell(answer)}; {answer.seconds:.0f} s", file=sys.stderr, flush=True)
    text, bad = table(rows, results)
    print(text)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
