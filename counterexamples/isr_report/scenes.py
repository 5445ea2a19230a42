"""Teaching scenes: scripted schedules with captions, each played on the model, so that a picture cannot lie.

Everything that a scene shows is computed from the model: a step that it does not allow, a change that a caption claims
and that the step does not make, a promise that is broken or kept otherwise than said, all are a `TraceError`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import attrs

from isr_lang import Value, show
from isr_trace.diff import changes
from isr_trace.replay import Evaluator, Move, Replay, Values, record
from isr_trace.trace import Trace, TraceError
from isr_visual.strip import Strip

STANDARD = Path(__file__).parent / "scenes.toml"


@attrs.frozen
class Beat:
    """One step: `do` as a trace names it, its caption, and changes that it must make."""

    do: str
    says: str
    shows: tuple[str, ...]


@attrs.frozen
class Scene:
    """`breaks`: the promise that the last step breaks, and no step before it; empty where none is broken at all.
    `refused_steps`: steps that are impossible in the end. `beside`: the design, with `beside_settings`, under which the
    same
    schedule is played once more; empty for none."""

    name: str
    title: str
    lesson: str
    design: str
    settings: Mapping[str, Value]
    without: tuple[str, ...]
    breaks: str
    refused_steps: tuple[str, ...]
    beats: tuple[Beat, ...]
    beside: str = ""
    beside_settings: Mapping[str, Value] = attrs.field(factory=dict[str, Value])


def load_scenes(path: Path = STANDARD) -> tuple[Scene, ...]:
    """The scenes in a file; TraceError with one sentence for whatever is wrong with it."""
    try:
        top = tomllib.loads(path.read_text(encoding="utf-8"))
        return tuple(_scene(cast("dict[str, object]", entry)) for entry in top["scene"])
    except OSError as problem:
        raise TraceError(f"{path}: cannot be read: {problem.strerror or problem}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise TraceError(f"{path}: not TOML: {problem}") from None
    except KeyError as problem:
        raise TraceError(f"{path}: a scene needs {problem}") from None


def _scene(entry: dict[str, object]) -> Scene:
    def words(value: object) -> tuple[str, ...]:
        return tuple(str(v) for v in cast("list[object]", value))

    beats = cast("list[dict[str, object]]", entry["beat"])
    beside = cast("dict[str, object]", entry.get("beside", {}))
    return Scene(
        str(entry["name"]),
        str(entry["title"]),
        str(entry["lesson"]),
        str(entry["design"]),
        cast("dict[str, Value]", entry["settings"]),
        words(entry.get("without", [])),
        str(entry.get("breaks", "")),
        words(entry.get("refused", [])),
        tuple(Beat(str(b["do"]), str(b["says"]), words(b["shows"])) for b in beats),
        str(beside.get("design", "")),
        cast("dict[str, Value]", beside.get("settings", {})),
    )


def play_scene(scene: Scene, evaluator: Evaluator) -> Trace:
    """The trace of the scene; TraceError unless the model does what the scene says, and all that it says."""
    replay = Replay(evaluator)
    initial, state = next(iter(replay.starts.items()))
    moves, states = list[Move](), [state]
    for i, beat in enumerate(scene.beats, 1):
        possible = {_text(evaluator, move): (move, after) for move, after in replay.successors(state).items()}
        if beat.do not in possible:
            raise TraceError(f"scene {scene.name}: step {i}, {beat.do}, is not possible there in {scene.design}")
        move, state = possible[beat.do]
        moves.append(move)
        states.append(state)
    for refused in scene.refused_steps:
        if any(_text(evaluator, move) == refused for move in replay.successors(state)):
            raise TraceError(f"scene {scene.name}: {refused} is said to be refused, but it is possible")
    _check_promises(scene, evaluator, states)
    trace = record(
        evaluator,
        initial,
        [(m.action, m.parameters) for m in moves],
        property_name=scene.breaks,
        verdict="VIOLATED" if scene.breaks else "",
        without=scene.without,
    )
    for i, beat in enumerate(scene.beats, 1):
        made = [str(change) for change in changes(trace, i)]
        untrue = [claim for claim in beat.shows if claim not in made]
        if untrue:
            raise TraceError(f"scene {scene.name}: step {i} does not make this change: {untrue[0]}")
    return trace


def _text(evaluator: Evaluator, move: Move) -> str:
    action = next(a for a in evaluator.instance.actions if a.name == move.action)
    given = zip(action.parameters, move.parameters, strict=True)
    return f"{move.action}({', '.join(f'{name}={show(value, type)}' for (name, type), value in given)})"


def _check_promises(scene: Scene, evaluator: Evaluator, states: list[Values]) -> None:
    strip = Strip(evaluator)
    for i, state in enumerate(states):
        broken = strip.broken_promises(states[i - 1] if i else None, state)
        if not scene.breaks and broken:
            raise TraceError(f"scene {scene.name}: step {i} breaks {broken[0]}, and the scene says nothing of it")
        if scene.breaks and (scene.breaks in broken) is not (i == len(states) - 1):
            when = "already in" if scene.breaks in broken else "not even in"
            raise TraceError(f"scene {scene.name}: {scene.breaks} is broken {when} step {i}")
