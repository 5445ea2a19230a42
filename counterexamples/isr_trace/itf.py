"""Traces as files: ITF, Apalache's JSON trace format, with what is ours under `#meta`.

Other ITF viewers open our files, and files of other programs open here, as variables only; so do TLC's, with actions.
The text is a function of the trace alone: fixed order, one step or one variable per line.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import cast

from isr_lang import Value
from isr_lang.types import Scalar, Type
from isr_trace import tlc
from isr_trace.codec import (
    Json,
    decode,
    encode,
    excerpt,
    items,
    scalar_from,
    scalars,
    table,
    type_from,
    whole,
    word,
)
from isr_trace.trace import SCHEMA, ActionNote, Minimisation, State, Step, Trace, TraceError, require_version

FORMAT = "https://apalache-mc.org/docs/adr/015adr-trace.html"
_SCHEMAS = "insync/trace/"
OF_OTHERS = {
    r"^(?:State )?\d+: <|^TLC2 Version|^/\\ \w+ = ": "it is TLC's text, which is not read; with -dumpTrace json FILE "
    "TLC writes the counterexample as JSON, which is",
    r"^-{4,} *MODULE \w+ *-{4,}|^State\d+ ==": "it is TLA+; where Apalache wrote it, give the file beside it that ends "
    "in .itf.json",
}
"""What a line of somebody else's text looks like -> what to give in its place."""


# writing


def write_itf(trace: Trace, path: Path) -> None:
    """Write the file whole or not at all; TraceError when that is impossible."""
    write_text(path, itf_text(trace))


def write_text(path: Path, text: str) -> None:
    """Replace the file in one step, so that nobody ever reads half of it. A device or a pipe is written to."""
    special = path.exists() and not path.is_file()
    partial = path if special else path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8", newline="\n")
        if not special:
            partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            if not special:
                partial.unlink(missing_ok=True)
        raise TraceError(f"cannot write {path}: {error.strerror or error}") from error


def itf_text(trace: Trace) -> str:
    """The file of a trace, to the byte."""
    parts: list[tuple[str, str]] = []
    if not trace.foreign:
        parts.append(("#meta", _lines(_meta(trace), 1)))
    parts.append(("vars", _compact(list(trace.variables))))
    if trace.loop is not None:
        parts.append(("loop", str(trace.loop)))
    parts.append(("states", _list_text([_state(trace, i) for i in range(len(trace.states))], 1)))
    return _block(parts, 0) + "\n"


def _meta(trace: Trace) -> dict[str, str]:
    types = [t for t in trace.variables.values() if t is not None]
    notes = trace.actions.values()
    all_types = chain(types, trace.initial_types.values(), *(n.parameters.values() for n in notes))
    meta: dict[str, Json] = {
        "format": "ITF",
        "format-description": FORMAT,
        "schema": SCHEMA,
        "design": trace.design,
        "model_hash": trace.model_hash,
        "constants": dict(trace.constants),
        "property": trace.property_name,
        "kind": trace.kind,
        "verdict": trace.verdict,
        "promise": trace.promise,
    }
    for key, actions in (("without", trace.without), ("unfair", trace.unfair), ("strong", trace.strong)):
        if actions:
            meta[key] = list(actions)
    if trace.anywhere:
        meta["anywhere"] = True
    if trace.design_file:
        meta["design_file"] = trace.design_file
    fields = {key: _compact(value) for key, value in meta.items()}
    if trace.minimisation is not None:
        m = trace.minimisation
        fields["minimised"] = _compact({"from": m.before, "to": m.after, "shortest": m.shortest})
    fields["types"] = _lines({k: _compact(v) for k, v in scalars(all_types).items()}, 2)
    typed = {name: str(t) for name, t in trace.variables.items() if t is not None}
    fields["variables"] = _lines({name: _compact(t) for name, t in typed.items()}, 2)
    fields["actions"] = _lines({name: _compact(_note(note)) for name, note in trace.actions.items()}, 2)
    fields["initial"] = _compact(_parameters(trace.initial, trace.initial_types))
    fields["initial_types"] = _compact({n: str(t) for n, t in trace.initial_types.items()})
    fields["steps"] = _list_text([_compact(_step(trace, step)) for step in trace.steps], 2)
    return fields


def _note(note: ActionNote) -> Json:
    return {"parameters": {n: str(t) for n, t in note.parameters.items()}, "does": note.does}


def _parameters(values: Mapping[str, object], types: Mapping[str, Type]) -> dict[str, Json]:
    return {name: encode(value, types[name]) for name, value in values.items()}


def _step(trace: Trace, step: Step) -> Json:
    fields: dict[str, Json] = {
        "action": step.action,
        "parameters": _parameters(step.parameters, trace.actions[step.action].parameters),
    }
    fields |= {"actor": step.actor} if step.actor else {}
    fields |= {"peer": step.peer} if step.peer else {}
    fields |= {"after": step.after} if step.after is not None else {}
    return fields


def _state(trace: Trace, index: int) -> str:
    parts = [("#meta", _compact({"index": index}))]
    for name, value in trace.states[index].items():
        type = trace.variables.get(name)
        parts.append((name, _compact(encode(value, type) if type is not None else value)))
    return _block(parts, 2)


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _block(parts: Iterable[tuple[str, str]], depth: int) -> str:
    pad = "  " * (depth + 1)
    inner = ",\n".join(f"{pad}{_compact(key)}: {value}" for key, value in parts)
    return f"{{\n{inner}\n{'  ' * depth}}}" if inner else "{}"


def _lines(values: Mapping[str, str], depth: int) -> str:
    return _block(values.items(), depth)


def _list_text(values: list[str], depth: int) -> str:
    pad = "  " * (depth + 1)
    inner = ",\n".join(pad + value for value in values)
    return f"[\n{inner}\n{'  ' * depth}]" if inner else "[]"


# reading


def read_itf(path: Path, model_hash: str | None = None) -> Trace:
    """The trace in a file; TraceError with one sentence when it is none.

    With `model_hash` the trace must also be of that version of its model.
    """
    try:
        trace = trace_from_text(_text(path))
        if model_hash is not None:
            require_version(trace, model_hash)
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from error
    return trace


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise TraceError(f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise TraceError("not a trace: it is not text in UTF-8") from error


def trace_from_text(text: str) -> Trace:
    """The trace that the text of a file describes."""
    if not text.strip():
        raise TraceError("not a trace: the file is empty")
    for mark, what in OF_OTHERS.items():
        if re.search(mark, text, re.MULTILINE):
            raise TraceError(what)
    try:
        return trace_from(cast("Json", json.loads(text)))
    except json.JSONDecodeError as error:
        if _cut_off(text[error.pos :].strip(), error.msg):
            raise TraceError(f"cut off: it ends in the middle, at line {error.lineno}") from error
        raise TraceError(f"not a trace: it is not JSON at line {error.lineno} ({error.msg})") from error
    except TraceError:
        raise
    except (ValueError, RecursionError) as error:
        raise TraceError("not a trace: it is not JSON that anyone could read") from error


def _cut_off(rest: str, complaint: str) -> bool:
    """Whether the text ended where JSON had to go on, rather than went on wrongly."""
    unfinished = any(word.startswith(rest) for word in ("true", "false", "null", "-"))
    return unfinished or complaint.startswith("Unterminated")


def trace_from(value: Json) -> Trace:
    """The trace that a parsed ITF document describes."""
    top = table(value, "a trace")
    if tlc.KEY in top:
        return tlc.trace_of_tlc(top)
    if "states" not in top:
        raise TraceError("not a trace: it is JSON, but has no states")
    states = [table(s, f"state {i}") for i, s in enumerate(items(top["states"], "the states"))]
    if not states:
        raise TraceError("the trace has no states")
    meta = top.get("#meta")
    schema = cast("dict[str, Json]", meta).get("schema") if isinstance(meta, dict) else None
    loop = whole(top["loop"], "loop") if top.get("loop") is not None else None
    if not isinstance(schema, str) or not schema.startswith(_SCHEMAS):
        return _foreign(states, loop)
    if schema != SCHEMA:
        raise TraceError(f'written by another version of insync: it says {excerpt(schema)}, this one reads "{SCHEMA}"')
    return _ours(cast("dict[str, Json]", meta), states, loop)


def _foreign(states: list[dict[str, Json]], loop: int | None) -> Trace:
    names: dict[str, Type | None] = {name: None for s in states for name in s if name != "#meta"}
    if not names:
        raise TraceError("the trace has no variables")
    plain = tuple({name: s[name] for name in names if name in s} for s in states)
    return Trace("", "", {}, "", "", "", "", names, {}, {}, {}, (), plain, None, loop)


def _ours(meta: dict[str, Json], states: list[dict[str, Json]], loop: int | None) -> Trace:
    scalar_types = {name: scalar_from(name, v) for name, v in table(meta.get("types"), "#meta.types").items()}
    variables = _types(meta.get("variables"), "#meta.variables", scalar_types)
    notes = {
        name: _note_from(name, table(note, f"action {name}"), scalar_types)
        for name, note in table(meta.get("actions"), "#meta.actions").items()
    }
    listed = items(meta.get("steps"), "#meta.steps")
    steps = tuple(_step_from(i, table(s, f"step {i}"), notes) for i, s in enumerate(listed, 1))
    if len(steps) != len(states) - 1:
        raise TraceError(f"{len(states)} states do not fit {len(steps)} steps")
    initial_types = _types(meta.get("initial_types"), "#meta.initial_types", scalar_types)
    text = {key: word(meta.get(key), f"#meta.{key}") for key in ("design", "model_hash", "kind", "verdict", "promise")}
    if not text["design"]:
        raise TraceError("#meta.design should name a design")
    return Trace(
        property_name=word(meta.get("property"), "#meta.property"),
        constants={k: _constant(k, v) for k, v in table(meta.get("constants"), "#meta.constants").items()},
        variables=dict(variables),
        actions=notes,
        initial=_values(table(meta.get("initial"), "#meta.initial"), initial_types, "the initial state"),
        initial_types=initial_types,
        steps=steps,
        states=tuple(_state_from(i, s, variables) for i, s in enumerate(states)),
        minimisation=_minimisation_from(meta.get("minimised")),
        loop=loop,
        without=_words(meta, "without"),
        unfair=_words(meta, "unfair"),
        strong=_words(meta, "strong"),
        anywhere=meta.get("anywhere") is True,
        design_file=word(meta.get("design_file", ""), "#meta.design_file"),
        **text,
    )


def _words(meta: dict[str, Json], key: str) -> tuple[str, ...]:
    return tuple(word(a, f"an item of #meta.{key}") for a in items(meta.get(key, []), f"#meta.{key}"))


def _types(value: Json, what: str, scalar_types: Mapping[str, Scalar]) -> dict[str, Type]:
    return {name: type_from(word(t, f"{what}.{name}"), scalar_types) for name, t in table(value, what).items()}


def _constant(name: str, value: Json) -> Value:
    if not isinstance(value, int | str):
        raise TraceError(f"the constant {name} should be a number, a truth value or a string")
    return value


def _note_from(name: str, note: dict[str, Json], scalar_types: Mapping[str, Scalar]) -> ActionNote:
    parameters = _types(note.get("parameters"), f"the parameters of {name}", scalar_types)
    return ActionNote(parameters, word(note.get("does"), f"the sentence of {name}"))


def _step_from(index: int, step: dict[str, Json], notes: Mapping[str, ActionNote]) -> Step:
    action = word(step.get("action"), f"the action of step {index}")
    if action not in notes:
        raise TraceError(f"the action {action} of step {index} is not explained")
    given = table(step.get("parameters"), f"the parameters of step {index}")
    after = step.get("after")
    return Step(
        action,
        _values(given, notes[action].parameters, f"step {index}"),
        word(step.get("actor", ""), f"the actor of step {index}"),
        word(step.get("peer", ""), f"the peer of step {index}"),
        whole(after, f"'after' of step {index}") if after is not None else None,
    )


def _state_from(index: int, state: dict[str, Json], variables: Mapping[str, Type]) -> State:
    return _values({k: v for k, v in state.items() if k != "#meta"}, variables, f"state {index}")


def _values(expressions: dict[str, Json], types: Mapping[str, Type], where: str) -> dict[str, object]:
    if set(expressions) != set(types):
        wrong = sorted(set(expressions) ^ set(types))
        raise TraceError(
            f"{where} should have values for exactly {', '.join(types) or 'nothing'}; see {', '.join(wrong)}"
        )
    values: dict[str, object] = {}
    for name, type in types.items():
        try:
            values[name] = decode(expressions[name], type)
        except TraceError as error:
            raise TraceError(f"'{name}' of {where}: {error}") from error
    return values


def _minimisation_from(value: Json) -> Minimisation | None:
    if value is None:
        return None
    record = table(value, "#meta.minimised")
    before, after = (whole(record.get(k), f"#meta.minimised.{k}") for k in ("from", "to"))
    return Minimisation(before, after, record.get("shortest") is True)
