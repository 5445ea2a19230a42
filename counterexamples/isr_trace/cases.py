"""A corpus of historic bugs, such as `counterexamples/cases/cases.toml`: one table per case, read with care.

    [[case]]
    name = "hw-truncation-loss"            # the folder
    title = "Truncating to the high watermark loses a committed record"
    tracker = ["KAFKA-1211", "KIP-101"]    # where the world knows it from
    design = "zookeeper"                   # on which `check` must find it ...
    property = "committed-on-new-leader"   # ... by this property,
    settings = { replicas = 2, log = 1 }   # at these bounds and settings,
    without = ["controller_unfences"]      # less these actions (absent: with all).
    fixed_by = { design = "kip-101" }      # Nothing is found here (and with other `settings`, if given).
    result = "One or two sentences: what happens to whom."
    why_fails = "The reason, in the protocol's words."
    why_missed = "Why checking missed it before: what a check must have in it to see this."
    fix = "What fixed it; with `open = true`, for nobody has fixed it yet, what would."
    public = "What the public specifications find, and why ours differs where it does."
    operator = { lost = "...", under = "...", noticed = "..." }  # for who runs Kafka; absent: history.

    [[waiting]]
    name = "KAFKA-10101"
    bug = "The recovery point is persisted before the flush."
    needs = "a flush point apart from the log"

`fixed_by` and `fix` may be absent where nothing was to be fixed: the loss is what the setting means. `fixed_by` with
`to_depth = true` says that the fix was explored for as many steps, and not whole. `public` may be absent, too.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

import attrs

from isr_lang import Value
from isr_trace.codec import Json, items, table, word
from isr_trace.trace import TraceError

CASES = "counterexamples/cases"
"""The corpus of a partition's bugs, in a checkout."""


@attrs.frozen
class FixedBy:
    """Where the property holds at the same bounds; `settings` are those that differ from the case's.

    `to_depth`: it was explored for as many steps as the case has, and not in every reachable state.
    """

    design: str
    settings: Mapping[str, Value]
    to_depth: bool = False


@attrs.frozen
class ForOperators:
    """What somebody who runs Kafka asks first: what is lost, under which settings, how one would notice."""

    loss: str
    under: str
    symptom: str

    def answers(self) -> tuple[tuple[str, str], ...]:
        """Each question with its answer."""
        return (
            ("What is lost", self.loss),
            ("Under which settings", self.under),
            ("How one would notice", self.symptom),
        )


@attrs.frozen
class Case:
    """A historic bug: where it is found, by which property, and the prose that only people can write."""

    name: str
    title: str
    tracker: tuple[str, ...]
    design: str
    property_name: str
    settings: Mapping[str, Value]
    without: tuple[str, ...]
    fixed_by: FixedBy | None
    result: str
    why_fails: str
    why_missed: str
    fix: str
    public: str
    operator: ForOperators | None = None
    is_open: bool = False

    @property
    def command(self) -> str:
        """What finds it."""
        return command(self.design, self.settings, self.without, self.property_name)

    @property
    def fixed_command(self) -> str:
        """What finds nothing; empty where nothing was to be fixed."""
        if self.fixed_by is None:
            return ""
        settings = {**self.settings, **self.fixed_by.settings}
        return command(self.fixed_by.design, settings, self.without, self.property_name)


@attrs.frozen
class Waiting:
    """A bug that the model cannot express yet, and the part of it that is missing."""

    name: str
    bug: str
    needs: str


@attrs.frozen
class Corpus:
    cases: tuple[Case, ...]
    waiting: tuple[Waiting, ...]

    def case(self, name: str) -> Case:
        found = next((c for c in self.cases if c.name == name), None)
        if found is None:
            raise TraceError(f"there is no case '{name}'; there are {', '.join(c.name for c in self.cases)}")
        return found


def command(design: str, settings: Mapping[str, Value], without: Iterable[str], property_name: str) -> str:
    """`insync check` with these settings and without these actions, as one types it."""
    options = [option(name, value) for name, value in settings.items()]
    options += [f"--without {action}" for action in without]
    return " ".join(["insync check", design, *options, f"--property {property_name}"])


def option(name: str, value: Value) -> str:
    """A bound or setting as one types it."""
    typed = ("on" if value else "off") if isinstance(value, bool) else str(value)
    return f"--{name.replace('_', '-')} {typed}"


# reading

_PROSE = ("title", "design", "property", "result", "why_fails", "why_missed")
_KEYS = {"name", *_PROSE, "public", "tracker", "settings", "without", "fixed_by", "fix", "operator", "open"}


def load_cases(path: Path) -> Corpus:
    """The corpus in a file; TraceError with one sentence for whatever is wrong with it."""
    try:
        return _corpus(cast("dict[str, Json]", tomllib.loads(path.read_text(encoding="utf-8"))))
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: not TOML: {error}") from error
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from error


def _corpus(top: dict[str, Json]) -> Corpus:
    _check_keys(top, {"case", "waiting"}, "the file")
    cases = tuple(_case(table(c, "a case")) for c in items(top.get("case", []), "case"))
    waiting = tuple(_waiting(table(w, "a waiting bug")) for w in items(top.get("waiting", []), "waiting"))
    names = [c.name for c in cases] + [w.name for w in waiting]
    twice = [n for n in names if names.count(n) > 1]
    if twice:
        raise TraceError(f"two entries are named '{twice[0]}'")
    return Corpus(cases, waiting)


def _case(entry: dict[str, Json]) -> Case:
    name = word(entry.get("name"), "the name of a case")
    if re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) is None:
        raise TraceError(f"the name '{name}' should be small letters, digits and single hyphens")
    what = f"case '{name}'"
    _check_keys(entry, _KEYS, what)
    prose = {key: _prose(entry, key, what) for key in _PROSE}
    fixed_by = _fixed_by(entry, what)
    if (fixed_by is None) != ("fix" not in entry):
        raise TraceError(f"{what} should have both 'fix' and 'fixed_by', or neither")
    return Case(
        name=name,
        title=prose["title"],
        tracker=_words(entry, "tracker", what),
        design=prose["design"],
        property_name=prose["property"],
        settings=_settings(entry.get("settings", {}), f"settings of {what}"),
        without=_words(entry, "without", what),
        fixed_by=fixed_by,
        result=prose["result"],
        why_fails=prose["why_fails"],
        why_missed=prose["why_missed"],
        fix=_prose(entry, "fix", what) if "fix" in entry else "",
        public=_prose(entry, "public", what) if "public" in entry else "",
        operator=_operator(entry, what) if "operator" in entry else None,
        is_open=entry.get("open") is True,
    )


def _waiting(entry: dict[str, Json]) -> Waiting:
    name = word(entry.get("name"), "the name of a waiting bug")
    _check_keys(entry, {"name", "bug", "needs"}, f"waiting '{name}'")
    return Waiting(name, _prose(entry, "bug", f"waiting '{name}'"), _prose(entry, "needs", f"waiting '{name}'"))


def _fixed_by(entry: dict[str, Json], what: str) -> FixedBy | None:
    if "fixed_by" not in entry:
        return None
    fixed = table(entry["fixed_by"], f"fixed_by of {what}")
    _check_keys(fixed, {"design", "settings", "to_depth"}, f"fixed_by of {what}")
    settings = _settings(fixed.get("settings", {}), f"settings of fixed_by of {what}")
    return FixedBy(_prose(fixed, "design", f"fixed_by of {what}"), settings, fixed.get("to_depth") is True)


def _operator(entry: dict[str, Json], what: str) -> ForOperators:
    said = table(entry["operator"], f"operator of {what}")
    keys = ("lost", "under", "noticed")
    _check_keys(said, set(keys), f"operator of {what}")
    return ForOperators(*(_prose(said, key, f"operator of {what}") for key in keys))


def _settings(value: Json, what: str) -> dict[str, Value]:
    settings: dict[str, Value] = {}
    for name, setting in table(value, what).items():
        if not isinstance(setting, int | str):
            raise TraceError(f"{what}: {name} should be a number, a string, true or false")
        settings[name] = setting
    return settings


def _words(entry: dict[str, Json], key: str, what: str) -> tuple[str, ...]:
    return tuple(word(w, f"an item of {key} of {what}") for w in items(entry.get(key, []), f"{key} of {what}"))


def _prose(entry: dict[str, Json], key: str, what: str) -> str:
    if key not in entry:
        raise TraceError(f"{what} lacks '{key}'")
    text = word(entry[key], f"'{key}' of {what}").strip()
    if not text:
        raise TraceError(f"'{key}' of {what} is empty")
    return text


def _check_keys(entry: dict[str, Json], keys: set[str], what: str) -> None:
    for key in entry:
        if key not in keys:
            raise TraceError(f"{what} has the unknown key '{key}'; known are {', '.join(sorted(keys))}")
