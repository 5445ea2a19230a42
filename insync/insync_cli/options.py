"""Options of the command line. Those of a verb are the fields of one frozen attrs class, and they are read once.

    @attrs.frozen(kw_only=True)
    class Options:
        design: str = argument("DESIGN", "see: insync designs")
        count: int = option("N", "how many", positive, 3)
        output: Output = group(Output)

    given = read(Options, Usage("sample", "Passing behaviours to read.", EXAMPLE), argv)

The name of a field is the name of its option. Its default is the default, and `--help` tells it, so that the two
cannot differ. A field made by `group` holds another class of options, which several verbs share. argparse does the
parsing; nobody outside of this module sees its Namespace.
"""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast, overload

import attrs

from insync_cli import registry
from insync_cli.exits import InputError, UsageError, did_you_mean

if TYPE_CHECKING:
    from isr_lang import Constant, Design, Instance, Value

T = TypeVar("T")
Add = Callable[..., object]
"""`add_argument` of argparse, of the parser or of a group in it."""
Read = Callable[[str], object]
"""Makes a value of a word; argparse.ArgumentTypeError says what the word should have been."""

SPEC = "insync"
"""The key of an option's description in the metadata of its field."""
CONSTANT = "constant:"
"""Prefix of the parsed names of generated options, so that none can hide one of insync's own."""
KAFKA_SPELLINGS: Mapping[str, Mapping[str, str]] = {"acks": {"-1": "all"}}
"""Kafka's other words for values of settings; `true` and `false` are taken by every switch."""
WORKERS_PER_CORE, WORKERS_ANYWHERE = 8, 32
"""More workers than these are refused: they would only compete for the same cores, and for memory."""


@attrs.frozen
class Usage:
    """What `--help` says of a verb: its name, a sentence, and commands that work."""

    verb: str
    summary: str
    example: str


@attrs.frozen
class _Spec:
    """How a field is asked for. `group_shape` is a class of options, `title` the heading above them."""

    says: str = ""
    metavar: str | None = None
    read: Read = str
    choices: tuple[str, ...] = ()
    default: object = None
    is_required: bool = False
    positional: bool = False
    nargs: str | None = None
    flag: bool = False
    repeats: bool = False
    rival: str = ""
    name: str = ""
    group_shape: type[object] | None = None
    title: str = ""
    constants: Callable[[Design], Mapping[str, Value]] | None = None
    command: bool = False

    def help(self) -> str:
        """The sentence with the true default."""
        told = "" if self.flag else default_shown(self.default)
        return " ".join((self.says.replace("%", "%%"), f"(default {told})" if told else "")).strip()


def _field(spec: _Spec, value: object) -> object:
    return attrs.field(default=value, metadata={SPEC: spec})


def default_shown(value: object) -> str:
    """A default as one would type it; nothing where not giving the option is the default."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


# What the fields of a class of options are made of


@overload
def option(metavar: str, says: str, read: Callable[[str], T], default: T, *, name: str = "") -> T: ...
@overload
def option(metavar: str, says: str, read: Callable[[str], T], *, rival: str = "", name: str = "") -> T | None: ...
def option(
    metavar: str, says: str, read: Callable[[str], T], default: T | None = None, *, rival: str = "", name: str = ""
) -> T | None:
    """`--name WORD`. Options with the same `rival` exclude one another."""
    spec = _Spec(says, metavar, read, default=default, rival=rival, name=name)
    return cast("T | None", _field(spec, default))


def required_option(metavar: str, says: str, read: Callable[[str], T], *, name: str = "") -> T:
    """`--name WORD`, without which the verb cannot begin."""
    return cast("T", _field(_Spec(says, metavar, read, is_required=True, name=name), attrs.NOTHING))


def repeated_option(metavar: str, says: str, read: Callable[[str], T], *, name: str = "") -> tuple[T, ...]:
    """`--name WORD`, as often as one likes."""
    spec = _Spec(f"{says}; may be repeated", metavar, read, repeats=True, name=name)
    return cast("tuple[T, ...]", _field(spec, ()))


def several(metavar: str, says: str, read: Callable[[str], T]) -> tuple[T, ...]:
    """`--name WORD WORD`, with as many words as one likes."""
    return cast("tuple[T, ...]", _field(_Spec(says, metavar, read, repeats=True, nargs="+"), ()))


def flag(says: str, *, rival: str = "", name: str = "") -> bool:
    """`--name`, which is off unless given."""
    return cast("bool", _field(_Spec(says, flag=True, default=False, rival=rival, name=name), False))


@overload
def switch(says: str, default: bool) -> bool: ...
@overload
def switch(says: str) -> bool | None: ...
def switch(says: str, default: bool | None = None) -> bool | None:
    """`--name on|off`, or Kafka's `true` and `false`."""
    return cast("bool | None", _field(_Spec(says, "on|off", on_or_off, default=default), default))


@overload
def choice(words: Sequence[str], says: str, default: str) -> str: ...
@overload
def choice(words: Sequence[str], says: str) -> str | None: ...
def choice(words: Sequence[str], says: str, default: str | None = None) -> str | None:
    """`--name WORD` with one of these words."""
    return cast("str | None", _field(_Spec(says, choices=tuple(words), default=default), default))


def choices(words: Sequence[str], says: str) -> tuple[str, ...]:
    """`--name WORD` with one of these words, as often as one likes."""
    return cast("tuple[str, ...]", _field(_Spec(f"{says}; may be repeated", choices=tuple(words), repeats=True), ()))


def argument(metavar: str, says: str, read: Callable[[str], T], *, choices: Sequence[str] = ()) -> T:
    """A word without an option before it."""
    spec = _Spec(says, metavar, read, tuple(choices), is_required=True, positional=True)
    return cast("T", _field(spec, attrs.NOTHING))


@overload
def optional_argument(metavar: str, says: str, read: Callable[[str], T], default: T) -> T: ...
@overload
def optional_argument(metavar: str, says: str, read: Callable[[str], T]) -> T | None: ...
def optional_argument(metavar: str, says: str, read: Callable[[str], T], default: T | None = None) -> T | None:
    """The same, where it may be missing."""
    spec = _Spec(says, metavar, read, default=default, positional=True, nargs="?")
    return cast("T | None", _field(spec, default))


def arguments(metavar: str, says: str, read: Callable[[str], T], *, at_least: int = 0) -> tuple[T, ...]:
    """Several words without an option before them."""
    spec = _Spec(says, metavar, read, positional=True, nargs="+" if at_least else "*", repeats=True)
    return cast("tuple[T, ...]", _field(spec, ()))


def group(shape: type[T], title: str = "", about: str = "") -> T:
    """The options of another class, below a heading of their own."""
    return attrs.field(factory=shape, metadata={SPEC: _Spec(about, group_shape=shape, title=title)})


def constants(defaults: Callable[[Design], Mapping[str, Value]] = lambda _: {}, about: str = "") -> Mapping[str, Value]:
    """One option per constant of the design. `defaults` are those that are not the design's; `about` is said of all."""
    spec = _Spec(about or "fault budgets are bounds too", constants=defaults)
    return cast("Mapping[str, Value]", attrs.field(factory=dict, metadata={SPEC: spec}))


def without_secret(word: str) -> str:
    """A word without the key and secret that the URL of a store may have before its name."""
    return re.sub(r"(?<=://)[^/@:\s]*:[^/@\s]*@", "", word)


def command() -> tuple[str, ...]:
    """The whole command as it was typed, without secrets: files of results quote it."""
    return cast("tuple[str, ...]", _field(_Spec(command=True), ()))


# Words


def positive(text: str) -> int:
    digits = text.replace("_", "").replace(",", "")
    if not digits.isascii() or not digits.isdigit() or int(digits) < 1:
        raise argparse.ArgumentTypeError(f"a whole number from 1, not {text}")
    return int(digits)


def natural(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"a whole number from 0, not {text}")
    return int(text)


def workers_at_most(text: str) -> int:
    """How many processes or threads: no more than this machine could have a use for."""
    asked, cores = positive(text), os.cpu_count() or 1
    most = max(WORKERS_ANYWHERE, WORKERS_PER_CORE * cores)
    if asked > most:
        raise argparse.ArgumentTypeError(f"at most {most} on this machine, which has {cores} cores, not {text}")
    return asked


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"a number of seconds above 0, not {text}")
    return value


def rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"a number above 0, not {text}")
    return value


def size(text: str) -> int:
    """2G, 500M, 1.5GiB: bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt])?(?:i?b)?", text.strip(), re.IGNORECASE | re.ASCII)
    value = int(float(match[1]) * 1024 ** " kmgt".index((match[2] or " ").lower())) if match else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"a size such as 500M or 2G, not {text}")
    return value


def on_or_off(text: str) -> bool:
    """`on` and `off`, and Kafka's `true` and `false`."""
    known = {"on": True, "true": True, "off": False, "false": False}
    if text not in known:
        raise argparse.ArgumentTypeError(f"invalid choice: '{text}' (on or off)")
    return known[text]


# Options that several verbs have


def design_name(word: str) -> str:
    """The word, if a design has that name; otherwise UsageError with the nearest one."""
    registry.design_named(word)
    return word


OWN_DESIGNS = "--design-file"


@attrs.frozen(kw_only=True)
class OwnDesigns:
    """Where designs are that insync does not have. They are known before any other word is read."""

    design_file: tuple[Path, ...] = repeated_option(
        "FILE", "Python with designs of your own (docs/own-design.md)", Path
    )


@attrs.frozen(kw_only=True)
class World:
    """A design and its bounds and settings."""

    name: str = argument("DESIGN", "see: insync designs", design_name)
    own: OwnDesigns = group(OwnDesigns)
    constants: Mapping[str, Value] = constants()

    def __attrs_post_init__(self) -> None:
        """UsageError for a budget that was raised and has no effect with these settings."""
        registry.check_effects(self.design, self.constants)

    @property
    def design(self) -> Design:
        """The design that was meant, with what was changed of it."""
        return registry.design_named(self.name)

    def instance(self) -> Instance:
        """That design at these bounds; UsageError where they are out of range or contradict each other."""
        return registry.instance_of(self.design, self.constants)


@attrs.frozen(kw_only=True)
class TodaysWorld(World):
    """The same, where today's design need not be named."""

    name: str = optional_argument("DESIGN", "see: insync designs", design_name, "kip-966")


@attrs.frozen(kw_only=True)
class SmallerWorld(World):
    """A design from which actions may be left out."""

    without: tuple[str, ...] = repeated_option("ACTION", "leave this action out", str)

    @property
    def design(self) -> Design:
        return registry.design_less(self.name, self.without)


@attrs.frozen(kw_only=True)
class FairWorld(SmallerWorld):
    """A design whose assumptions of fairness may be changed, too."""

    unfair: tuple[str, ...] = repeated_option("ACTION", "for liveness, this action need not be fair", str)
    strong: tuple[str, ...] = repeated_option("ACTION", "for liveness, this action is strongly fair", str)

    @property
    def design(self) -> Design:
        return registry.design_of(self.name, self.without, self.unfair, self.strong)


@attrs.frozen(kw_only=True)
class Running:
    """How to explore: by which engine, with how many workers, and for how long at most."""

    engine: str | None = choice(tuple(registry.ENGINES), "who explores; without it, native where installed")
    workers: int | None = option("N", "how many explore at a time; without it, one per core", workers_at_most)
    max_states: int | None = option("N", "stop after N distinct states", positive)
    max_seconds: float | None = option("S", "stop after S seconds, the search for room included", seconds)

    @property
    def engine_name(self) -> str:
        return self.engine or registry.default_engine()


@attrs.frozen(kw_only=True)
class RunningEach(Running):
    """The same for many explorations: the limits are of each of them."""

    workers: int | None = option("N", "explorations at a time; without it, one per core", workers_at_most)
    max_states: int | None = option("N", "stop each exploration after N distinct states", positive)
    max_seconds: float | None = option("S", "stop each exploration after S seconds", seconds)


# Reading


def read_options(shape: type[T], usage: Usage, argv: Sequence[str]) -> T:
    """What was asked; UsageError, in one sentence, where that makes no sense. `--help` ends here."""
    own = _own_files(argv) if _asks_for(shape, OwnDesigns) else []
    registry.take_own(own)
    parser = Parser(usage.verb, usage.summary, usage.example)
    try:
        parser.add_fields(shape, argv)
    except argparse.ArgumentError as clash:
        files = ", ".join(map(str, own))
        raise InputError(
            f"{files}: a bound or setting has the name of an option of insync {usage.verb} ({clash.argument_name})"
        ) from None
    return parser.build_options(shape, parser.read(argv), tuple(argv))


def _own_files(argv: Sequence[str]) -> list[Path]:
    """The files of designs, which are needed to know what the other words mean."""
    given = [*(b for a, b in pairwise(argv) if a == OWN_DESIGNS)]
    given += [word.removeprefix(f"{OWN_DESIGNS}=") for word in argv if word.startswith(f"{OWN_DESIGNS}=")]
    return [Path(word) for word in dict.fromkeys(given)]


def _asks_for(shape: type[object], part: type[object]) -> bool:
    """Whether a class of options holds another one somewhere."""
    shapes = [spec.group_shape for spec, _ in _specs(shape) if spec.group_shape is not None]
    return part in shapes or any(_asks_for(n, part) for n in shapes)


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
        self.constants: dict[str, Constant] = {}

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message} (see {self.prog} --help)")

    def read(self, argv: Sequence[str]) -> Mapping[str, object]:
        """The words by the paths of their fields."""
        options, rest = self.parse_known_args(list(argv))
        if rest:
            self.refuse(rest[0], argv)
        return cast("Mapping[str, object]", vars(options))

    def refuse(self, argument: str, argv: Sequence[str]) -> NoReturn:
        if not argument.startswith("-"):
            self.error(f"did not expect '{argument}'")
        option = argument.split("=")[0]
        named = next((word for word in argv if self.constants and word in registry.designs()), None)
        if named and any(c.option == option for d in registry.designs().values() for c in d.constants()):
            raise UsageError(f"{named} has no bound or setting {option}; other designs do")
        self.error(f"there is no option {option}{did_you_mean(option, self.option_names())}")

    def option_names(self) -> list[str]:
        return [name for action in self._actions for name in action.option_strings if name.startswith("--")]

    def add_fields(self, shape: type[object], argv: Sequence[str], add: Add | None = None, path: str = "") -> None:
        """An option for each field of a class of options, and of those that it holds; `add` puts it below a heading."""
        rivals: dict[str, Add] = {}
        for spec, name in _specs(shape):
            if spec.group_shape is not None:
                titled = self.add_argument_group(spec.title, spec.says or None).add_argument if spec.title else add
                self.add_fields(spec.group_shape, argv, titled, f"{path}{name}.")
            elif spec.constants is not None:
                self.add_constants(shape, spec, argv)
            elif spec.rival:
                if spec.rival not in rivals:
                    rivals[spec.rival] = self.add_mutually_exclusive_group().add_argument
                _add(rivals[spec.rival], spec, name, path)
            elif not spec.command:
                _add(add or self.add_argument, spec, name, path)

    def add_constants(self, shape: type[object], about: _Spec, argv: Sequence[str]) -> None:
        """One option per constant of the design that argv names; without a design, of any."""
        designs = registry.designs()
        assert about.constants is not None, "it is called for a field that constants() makes"
        usual = next((str(spec.default) for spec, _ in _specs(shape) if spec.positional and spec.default), "")
        named_design = next((designs[word] for word in (*argv, usual) if word in designs), None)
        other = {d.name: about.constants(d) for d in ([named_design] if named_design else designs.values())}
        for design in [named_design] if named_design else designs.values():
            for constant in design.constants():
                self.constants.setdefault(constant.name, constant)
        bounds = self.add_argument_group("bounds", about.says)
        settings = self.add_argument_group("settings")
        for c in self.constants.values():
            of = [d for d in ([named_design] if named_design else designs.values()) if c in d.constants()]
            values = {d.name: other[d.name].get(c.name, d.defaults.get(c.name, c.default)) for d in of}
            open_ended = any(ANY in table.values() for table in other.values())
            (settings if c.names else bounds).add_argument(
                c.option,
                dest=CONSTANT + c.name,
                default=argparse.SUPPRESS,
                metavar="|".join(c.names) if c.names else f"N|{ANY}" if open_ended else "N",
                help=describe(c, values),
            )

    def build_options(self, shape: type[T], words: Mapping[str, object], argv: tuple[str, ...], path: str = "") -> T:
        """The class of options with its values."""
        values: dict[str, object] = {}
        for spec, name in _specs(shape):
            if spec.group_shape is not None:
                values[name] = self.build_options(spec.group_shape, words, argv, f"{path}{name}.")
            elif spec.constants is not None:
                values[name] = {
                    n: self.value(n, str(words[CONSTANT + n])) for n in self.constants if _is_given(n, words)
                }
            elif spec.command:
                values[name] = (*self.prog.split(), *map(without_secret, argv))
            else:
                value = words[path + name]
                values[name] = tuple(cast("list[object]", value or ())) if spec.repeats else value
        return shape(**values)

    def value(self, name: str, word: str) -> Value:
        """A constant's value, in Kafka's spelling or ours; the design judges whether it is one."""
        names = self.constants[name].names
        if set(names) == {"on", "off"}:
            word = {"true": "on", "false": "off"}.get(word, word)
        word = KAFKA_SPELLINGS.get(name, {}).get(word, word) if names else word
        return int(word) if re.fullmatch(r"-?\d+", word, re.ASCII) else word


ANY = "any"
"""The value of a bound that a proof leaves open."""


def _is_given(constant: str, words: Mapping[str, object]) -> bool:
    return CONSTANT + constant in words


def own_options(shape: type[object]) -> set[str]:
    """The names of the options of a class, and of those that it holds, but for the bounds and settings of designs."""
    names = set[str]()
    for spec, name in _specs(shape):
        if spec.group_shape is not None:
            names |= own_options(spec.group_shape)
        elif not (spec.positional or spec.command or spec.constants is not None):
            names.add(spec.name or name)
    return names


def _specs(shape: type[object]) -> list[tuple[_Spec, str]]:
    fields = attrs.fields(cast("type[attrs.AttrsInstance]", shape))
    return [(cast("_Spec", f.metadata[SPEC]), f.name) for f in fields]


def _add(add: Add, spec: _Spec, name: str, path: str) -> None:
    """One field as an argument of argparse; the parsed word is found by its path."""
    more: dict[str, object] = {"help": spec.help()}
    if spec.positional:
        word = path + name
        more |= {"nargs": spec.nargs} if spec.nargs else {}
    else:
        word = "--" + (spec.name or name).replace("_", "-")
        more |= {"dest": path + name, "required": spec.is_required}
    if spec.flag:
        more |= {"action": "store_true"}
    else:
        more |= {"metavar": spec.metavar, "type": spec.read}
        more |= {"choices": spec.choices} if spec.choices else {}
        if spec.repeats and not spec.positional:
            more |= {"action": "extend", "nargs": spec.nargs} if spec.nargs else {"action": "append"}
        more |= {"default": [] if spec.repeats else spec.default} if not spec.is_required else {}
    add(word, **more)


def describe(constant: Constant, defaults: Mapping[str, Value]) -> str:
    """What a constant is, its default (by design, where they differ), and its range."""
    extent = "" if constant.names else f", {constant.low} to {constant.high}"
    doc = " ".join(constant.doc.split()).rstrip(".").replace("%", "%%")
    values = list(defaults.values())
    usual = max(values, key=values.count)
    others = {value_text(v): [n for n, w in defaults.items() if w == v] for v in values if v != usual}
    told = "".join(f", {v} of {d[0]}{f' and {len(d) - 1} more' if d[1:] else ''}" for v, d in others.items())
    return f"{doc} (default {value_text(usual)}{told}{extent})"


def value_text(value: Value) -> str:
    """A constant's value as the command line takes it."""
    return ("off", "on")[value] if isinstance(value, bool) else str(value)


def command_options(constants: Mapping[str, Value], design: Design) -> str:
    """The constants that differ from the design's defaults, as one would type them."""
    table = {c.name: c for c in design.constants()}
    words: list[str] = []
    for name, value in constants.items():
        c = table[name]
        if value != design.defaults.get(name, c.default):
            words.append(f"{c.option} {value_text(value)}")
    return " ".join(words)
