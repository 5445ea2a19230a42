"""Command line options: what every verb shares, and those generated from the constants of the designs."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn, cast

from insync_cli import registry
from insync_cli.exits import UsageError, did_you_mean

if TYPE_CHECKING:
    from isr_lang import Constant, Design, Value

CONSTANT = "constant:"
"""Prefix of the parsed names of generated options, so that none can hide one of insync's own."""


class Parser(argparse.ArgumentParser):
    """argparse with the house's manners: a mistake is one sentence with the nearest spelling, exit 64."""

    def __init__(self, verb: str, summary: str, example: str) -> None:
        super().__init__(
            prog=f"insync {verb}",
            description=summary,
            epilog="example:\n" + "\n".join(f"  {line}" for line in example.splitlines()),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.add_argument("--plain", action="store_true", help="no colour, no boxes, no moving line: for logs")

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message} (see {self.prog} --help)")

    def read(self, argv: Sequence[str]) -> argparse.Namespace:
        options, rest = self.parse_known_args(list(argv))
        design = cast("str | None", getattr(options, "design", None))
        if design is not None:
            registry.design_named(design)
        if rest:
            self.refuse(rest[0], design)
        return options

    def refuse(self, argument: str, design: str | None) -> NoReturn:
        if not argument.startswith("-"):
            self.error(f"did not expect '{argument}'")
        option = argument.split("=")[0]
        if design and any(c.option == option for d in registry.designs().values() for c in d.constants()):
            raise UsageError(f"{design} has no bound or setting {option}; other designs do")
        self.error(f"there is no option {option}{did_you_mean(option, self.option_names())}")

    def option_names(self) -> list[str]:
        return [name for action in self._actions for name in action.option_strings if name.startswith("--")]

    def add_json(self) -> None:
        self.add_argument("--json", metavar="FILE|-", help="the report as JSON, to a file or (-) to stdout")

    def add_without(self) -> None:
        """Actions to leave out. They belong to the design, so they are judged with it."""
        self.add_argument(
            "--without", action="append", default=[], metavar="ACTION", help="leave this action out; repeatable"
        )

    def add_fairness(self) -> None:
        """Which actions liveness takes to be fair; that is part of the design, too."""
        group = self.add_argument_group("liveness")
        group.add_argument(
            "--liveness", choices=("on", "off"), default="off", help="check also what must come to pass; default off"
        )
        for option, says in (("unfair", "this action need not be fair"), ("strong", "this action is strongly fair")):
            group.add_argument(f"--{option}", action="append", default=[], metavar="ACTION", help=f"{says}; repeatable")

    def add_running(self) -> None:
        """How to explore: engine, workers and limits."""
        group = self.add_argument_group("running")
        group.add_argument("--engine", choices=list(registry.ENGINES), help="default: native where installed")
        group.add_argument("--workers", type=positive, metavar="N", default=None, help="default: all cores")
        group.add_argument("--max-states", type=positive, metavar="N", help="stop after N distinct states")
        group.add_argument("--max-seconds", type=seconds, metavar="S", help="stop after S seconds")

    def add_constants(self, argv: Sequence[str]) -> None:
        """One option per constant of the design that argv names; without a design, of any."""
        known = registry.designs()
        named = next((known[word] for word in argv if word in known), None)
        constants: dict[str, Constant] = {}
        for design in [named] if named else known.values():
            for constant in design.constants():
                constants.setdefault(constant.name, constant)
        bounds = self.add_argument_group("bounds", "fault budgets are bounds too")
        settings = self.add_argument_group("settings")
        for c in constants.values():
            default = named.defaults.get(c.name, c.default) if named else c.default
            (settings if c.names else bounds).add_argument(
                c.option,
                dest=CONSTANT + c.name,
                default=argparse.SUPPRESS,
                metavar="|".join(c.names) if c.names else "N",
                help=describe(c, default),
            )


def design_given(options: argparse.Namespace) -> Design:
    """The design that was named, less the actions that were to be left out, with the fairness asked for."""
    without, unfair, strong = (
        cast("list[str]", getattr(options, name, [])) for name in ("without", "unfair", "strong")
    )
    return registry.design_of(cast("str", options.design), without, unfair, strong)


def describe(constant: Constant, default: Value) -> str:
    extent = "" if constant.names else f", {constant.low} to {constant.high}"
    doc = " ".join(constant.doc.split()).rstrip(".").replace("%", "%%")
    return f"{doc} (default {shown(default)}{extent})"


def shown(value: Value) -> str:
    """A constant's value as the command line takes it."""
    return ("off", "on")[value] if isinstance(value, bool) else str(value)


def constants_given(options: argparse.Namespace) -> dict[str, Value]:
    """The generated options that were given; whole numbers as numbers, the rest for the design to judge."""
    given = cast("dict[str, object]", vars(options))
    return {k.removeprefix(CONSTANT): _value(str(v)) for k, v in given.items() if k.startswith(CONSTANT)}


def _value(text: str) -> Value:
    return int(text) if re.fullmatch(r"-?\d+", text, re.ASCII) else text


def command_options(constants: Mapping[str, Value], design: Design) -> str:
    """The constants that differ from the design's defaults, as one would type them."""
    table = {c.name: c for c in design.constants()}
    words: list[str] = []
    for name, value in constants.items():
        c = table[name]
        if value != design.defaults.get(name, c.default):
            words.append(f"{c.option} {shown(value)}")
    return " ".join(words)


def positive(text: str) -> int:
    digits = text.replace("_", "").replace(",", "")
    if not digits.isascii() or not digits.isdigit() or int(digits) < 1:
        raise argparse.ArgumentTypeError(f"a whole number from 1, not {text}")
    return int(digits)


def natural(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"a whole number from 0, not {text}")
    return int(text)


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"a number of seconds above 0, not {text}")
    return value


def size(text: str) -> int:
    """2G, 500M, 1.5GiB: bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt])?(?:i?b)?", text.strip(), re.IGNORECASE | re.ASCII)
    value = int(float(match[1]) * 1024 ** " kmgt".index((match[2] or " ").lower())) if match else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"a size such as 500M or 2G, not {text}")
    return value
