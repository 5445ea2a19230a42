"""Any broker as a system under test: a file says how one of its brokers is started, and what is done to it otherwise.

`read_system_description` reads the file (docs/own-broker.md has its keys); `GivenProcesses` is the cluster. Each broker
is a process in the foreground; what is not said is done by signals.
"""

from __future__ import annotations

import difflib
import signal
import string
import subprocess
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

import attrs

from isr_cluster.admin import Admin, RequestRefused
from isr_cluster.identity import CONTROLLER_BROKER
from isr_cluster.processes import Address, System

FAULTS: Final = ("stop", "kill", "pause", "partition", "slow", "power", "full-disk", "controller")
"""What may be done to brokers and the links between them; `controller` is the loss of broker 1 as the controller."""
PLACES: Final = (
    *("id", "host", "port", "found_host", "found_port", "data", "properties", "flush_record", "cluster"),
    *("controller_host", "controller_port", "first_host", "first_port"),
)
"""What stands in braces in a command."""
COMMANDS: Final[tuple[str, ...]] = ("start", "stop", "kill", "pause", "resume")
KEYS: Final = (*COMMANDS, "name", "brokers", "logs", "orderly_exits", "settings", "cannot")
BROKERS: Final = 4
WITHIN: Final = 60.0
"""Seconds for a command that is to end."""


class BadDescription(Exception):
    """The file does not describe a system; the message is one sentence with the file's name."""


@attrs.frozen(kw_only=True)
class Description:
    """What the file says; commands run in its folder."""

    folder: Path
    name: str
    commands: Mapping[str, tuple[str, ...]]
    brokers: int = BROKERS
    logs: str = ""
    orderly_exits: frozenset[int] = frozenset({0})
    settings: Mapping[str, str] = attrs.field(factory=dict[str, str])
    cannot: Mapping[str, str] = attrs.field(factory=dict[str, str])

    def uses(self, place: str) -> bool:
        """Whether the command that starts a broker is told this."""
        return any(f"{{{place}}}" in word for word in self.commands["start"])


def read_system_description(path: Path) -> Description:
    """The system that a file describes; BadDescription if it does not."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadDescription(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadDescription(f"{path} is not TOML: {error}") from None
    for key in table:
        if key not in KEYS:
            raise BadDescription(f"{path} has a key '{key}'{_nearest(key, KEYS)}; they are {', '.join(KEYS)}")
    commands = {key: _words(path, key, table[key]) for key in COMMANDS if key in table}
    if not commands.get("start"):
        raise BadDescription(f'{path} does not say how to start a broker: start = ["program", "--port", "{{port}}"]')
    if ("pause" in commands) != ("resume" in commands):
        raise BadDescription(f"{path} needs both of pause and resume, or neither")
    brokers = table.get("brokers", BROKERS)
    if type(brokers) is not int or brokers not in (1, BROKERS):
        raise BadDescription(f"{path}: brokers is {BROKERS}, or 1 for a system that is one process, not {brokers!r}")
    exits = table.get("orderly_exits", [0])
    if not isinstance(exits, list) or not all(isinstance(code, int) for code in cast("list[object]", exits)):
        raise BadDescription(f"{path}: orderly_exits is a list of exit codes, as [0, 143]")
    logs, name = table.get("logs", ""), table.get("name", path.stem)
    if not isinstance(logs, str) or not isinstance(name, str) or not name:
        raise BadDescription(f"{path}: name and logs are texts")
    _check_places(path, "logs", [logs])
    cannot = _table(path, "cannot", table.get("cannot", {}))
    for fault in cannot:
        if fault not in FAULTS:
            raise BadDescription(
                f"{path}: there is no fault '{fault}'{_nearest(fault, FAULTS)}; they are {', '.join(FAULTS)}"
            )
    description = Description(
        folder=path.resolve().parent,
        name=name,
        commands=commands,
        brokers=brokers,
        logs=logs,
        orderly_exits=frozenset(cast("list[int]", exits)),
        settings=_table(path, "settings", table.get("settings", {})),
    )
    return attrs.evolve(description, cannot={**_implied(description), **cannot})


def _implied(description: Description) -> dict[str, str]:
    """What cannot be done because of what the file leaves out."""
    cannot: dict[str, str] = {}
    if not description.logs:
        cannot["power"] = cannot["full-disk"] = "its file does not say where its logs are (logs)"
    elif not description.uses("flush_record"):
        cannot["power"] = "it does not note what it has flushed ({flush_record})"
    return cannot


def _words(path: Path, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in cast("list[object]", value)):
        raise BadDescription(f'{path}: {key} is a list of words, as ["program", "--port", "{{port}}"]')
    words = tuple(cast("list[str]", value))
    _check_places(path, key, words)
    return words


def _check_places(path: Path, key: str, words: Iterable[str]) -> None:
    for word in words:
        try:
            places = [place for _, place, _, _ in string.Formatter().parse(word) if place is not None]
        except ValueError as error:
            raise BadDescription(f"{path}: {key} has '{word}': {error}") from None
        for place in places:
            if place not in PLACES:
                known = ", ".join(f"{{{p}}}" for p in PLACES)
                raise BadDescription(f"{path}: {key} has '{{{place}}}'{_nearest(place, PLACES)}; there are {known}")


def _table(path: Path, key: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in cast("dict[str, object]", value).values()):
        raise BadDescription(f"{path}: [{key}] is a table of texts")
    return cast("dict[str, str]", value)


def _nearest(word: str, choices: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else ""


@attrs.define(kw_only=True)
class GivenProcesses(System):
    """The brokers of a described system. `records` are the files into which they may note what they flushed."""

    description: Description
    controller: tuple[Address, Address]
    records: Mapping[int, Path] = attrs.field(factory=dict[int, Path])

    def logs(self, broker: int) -> Path | None:
        """Where the file says that they are."""
        where = self.description.logs
        return self.description.folder / self._fill_places(broker, [where])[0] if where else None

    def command(self, broker: int) -> list[str]:
        """The file's start; the folder for data is there, and the settings are in the file of properties."""
        data = self.data(broker).resolve()
        data.mkdir(parents=True, exist_ok=True)
        settings = {**self.properties, **self.own.get(broker, {}), **self.description.settings}
        self._properties(broker).write_text("".join(f"{k}={v}\n" for k, v in settings.items()), encoding="utf-8")
        program, *words = self._fill_places(broker, self.description.commands["start"])
        beside = self.description.folder / program
        return [str(beside) if "/" in program and beside.exists() else program, *words]

    def serves(self, broker: int) -> bool:
        """It answers, and knows of a broker."""
        try:
            with Admin(self.found_at(broker), 2.0) as admin:
                return bool(admin.brokers())
        except RequestRefused:
            return False

    def stop(self, broker: int, number: signal.Signals = signal.SIGTERM) -> int:
        """The same; the exit codes of an orderly end count as 0."""
        code = super().stop(broker, number)
        return 0 if number is signal.SIGTERM and code in self.description.orderly_exits else code

    def ends(self, broker: int, process: subprocess.Popen[str], number: signal.Signals) -> None:
        """By the file's command, or by the signal."""
        key = "stop" if number is signal.SIGTERM else "kill"
        if key not in self.description.commands or not self._does(broker, key):
            super().ends(broker, process, number)

    def kill(self, broker: int) -> bool:
        """By the file's command, after which any end is its; else by a signal."""
        if "kill" not in self.description.commands:
            return super().kill(broker)
        self.stop(broker, signal.SIGKILL)
        return True

    def pause(self, broker: int) -> bool:
        """The file's command, which is believed; else a signal."""
        return self._does(broker, "pause") if "pause" in self.description.commands else super().pause(broker)

    def resume(self, broker: int) -> None:
        """Likewise."""
        if "resume" in self.description.commands:
            self._does(broker, "resume")
        else:
            super().resume(broker)

    def _does(self, broker: int, key: str) -> bool:
        """Run one of the file's commands to its end; whether it ended well."""
        words = self._fill_places(broker, self.description.commands[key])
        try:
            ran = subprocess.run(
                words,
                cwd=self.description.folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=WITHIN,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self.tell(f"broker {broker}: {key}: {error}")
            return False
        for line in (ran.stdout + ran.stderr).splitlines():
            self.tell(f"broker {broker}: {key}: {line}")
        return ran.returncode == 0

    def _properties(self, broker: int) -> Path:
        return self.root.resolve() / f".server-{broker}.properties"

    def _fill_places(self, broker: int, words: Sequence[str]) -> list[str]:
        """Words with what stands in braces."""
        (host, port), (found_host, found_port) = self.listens_at(broker), self.found_at(broker)
        first_host, first_port = self.found_at(CONTROLLER_BROKER)
        record = self.records.get(broker)
        places = {
            "id": broker,
            "host": host,
            "port": port,
            "found_host": found_host,
            "found_port": found_port,
            "data": self.data(broker).resolve(),
            "properties": self._properties(broker),
            "flush_record": record.resolve() if record is not None else "",
            "cluster": self.cluster,
            "controller_host": self.controller[0][0],
            "controller_port": self.controller[0][1],
            "first_host": first_host,
            "first_port": first_port,
        }
        return [word.format_map(places) for word in words]
