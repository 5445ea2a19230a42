"""The arguments of a function as the words of a command, so that both are read, and refused, by the same code."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from insync_cli.exits import UsageError
from insync_cli.options import Usage, own_options, without_secret
from insync_cli.terminal import QuietOutput

Word = str | int | float | Path
"""One word of a command. True and False are on and off."""
SILENT = QuietOutput(result_only=True)
"""No progress is told."""


def words_of(
    arguments: Sequence[Word], options: Mapping[str, Word | Sequence[Word] | None], flags: Mapping[str, bool]
) -> tuple[str, ...]:
    """The words. An option that is None is not given, and one with several values is given as often."""
    plain = [str(argument) for argument in arguments]
    named = [word for name, value in options.items() for word in _option(name, value)]
    named += [_option_name(name) for name, on in flags.items() if on]
    return (*named, "--", *plain) if any(word.startswith("-") for word in plain) else (*plain, *named)


def _option(name: str, value: Word | Sequence[Word] | None) -> Iterator[str]:
    if value is None:
        return
    for one in several(value):
        word = ("off", "on")[one] if isinstance(one, bool) else str(one)
        yield from (f"{_option_name(name)}={word}",) if word.startswith("-") else (_option_name(name), word)


def several(value: Word | Sequence[Word]) -> Sequence[Word]:
    """One value, or several, as several."""
    return (value,) if isinstance(value, Word) else value


def _option_name(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def command_of(usage: Usage, words: Sequence[str]) -> str:
    """What one would type to ask the same, without secrets."""
    return shlex.join(["insync", usage.verb, *map(without_secret, words)])


def check_bounds(bounds: Iterable[str], shape: type[object], usage: Usage) -> None:
    """UsageError for a bound or setting that the command would read as another of its options."""
    others = {"help", *own_options(shape)}
    for name in bounds:
        if name in others:
            raise UsageError(f"insync {usage.verb}: '{name}' is no bound or setting (see insync {usage.verb} --help)")
