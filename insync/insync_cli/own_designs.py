"""Designs of somebody's own: a Python file that `--design-file` names, whose designs are known for this one command."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from linecache import cache, checkcache
from pathlib import Path
from traceback import TracebackException
from types import CodeType, ModuleType, TracebackType
from typing import TYPE_CHECKING

import attrs

from insync_cli.exits import InputError

if TYPE_CHECKING:
    from isr_lang import Design

NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
"""Names of designs are words of a command and parts of file names."""


def load(file: Path, known_designs: Mapping[str, Design], text: str | None = None) -> dict[str, Design]:
    """The designs in a file by name: its values of the type Design whose Python name does not begin with `_`.

    The file is run, as any program of its owner. `known_designs`: the designs that are known already, whose names the
    file's must differ from. `text`: what is in the file, where this machine does not have it. InputError says in a
    sentence with the line what is wrong with the file.
    """
    from isr_lang import Design

    if text is None:
        text = _text(file)
        checkcache(str(file))  # lines of the model are read through it
    else:
        cache[str(file)] = len(text), None, text.splitlines(keepends=True), str(file)
    module = _run(file, _compiled(file, text))
    known = {id(design) for design in known_designs.values()}
    designs: dict[str, Design] = {}
    for variable, value in vars(module).items():
        if not isinstance(value, Design) or variable.startswith("_") or id(value) in known:
            continue
        place = f"{file}:{_line_of(text, variable)}"
        if value.name in known_designs or value.name in designs:
            raise InputError(f"{place}: there is a design '{value.name}' already; give this one another name")
        _check(place, value)
        designs[value.name] = attrs.evolve(value, file=str(file))
    if not designs:
        raise InputError(f'{file}: no design is in it; make one by MINE = KIP_966.replacing("mine", ...)')
    return designs


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as problem:
        raise InputError(f"{file}: cannot be read: {(problem.strerror or str(problem)).lower()}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: it is not text in UTF-8") from None


def _compiled(file: Path, text: str) -> CodeType:
    try:
        return compile(text, str(file), "exec", dont_inherit=True)
    except SyntaxError as problem:
        raise InputError(f"{file}:{problem.lineno or 1}: it is not Python: {problem.msg}") from None
    except ValueError as problem:
        raise InputError(f"{file}: it is not Python: {problem}") from None


def _run(file: Path, code: CodeType) -> ModuleType:
    """The module that the file makes. What it prints goes to stderr: stdout is for the answer."""
    from isr_lang import ModelError

    module = ModuleType(f"own designs of {file}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module  # annotations of its classes are looked up there
    try:
        with redirect_stdout(sys.stderr):
            exec(code, vars(module))
    except ModelError as problem:
        own = problem.where.file == str(file)
        line = problem.where.line if own else _line_in(file, problem.__traceback__)
        raise InputError(f"{file}:{line}: {problem.message}") from None
    except (Exception, SystemExit) as problem:
        said = " ".join(str(TracebackException.from_exception(problem)).split())
        what = f"{type(problem).__name__}: {said}" if said else type(problem).__name__
        raise InputError(f"{file}:{_line_in(file, problem.__traceback__)}: {what}") from None
    return module


def _line_in(file: Path, trace: TracebackType | None) -> int:
    """The last line of the file that was being run."""
    line = 1
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == str(file) else line
        trace = trace.tb_next
    return line


def _line_of(text: str, variable: str) -> int:
    """Where the file gives a variable its value, the last time; 1 where it does so in another way."""
    names = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return max((n.lineno for n in names if n.id == variable), default=1)


def _check(place: str, design: Design) -> None:
    """InputError for what would otherwise come to light in the middle of an exploration."""
    from isr_check.engine import DEADLOCK, TYPE_OK
    from isr_lang import walk
    from isr_lang.instance import SettingError, check_constants

    if not NAME.fullmatch(design.name):
        raise InputError(f"{place}: a design is named by small letters, digits, '-', '.' and '_', not '{design.name}'")
    constants = [c.name for c in design.constants()]
    properties = [*(p.name for p in design.properties), TYPE_OK, DEADLOCK]
    for names, what in ((constants, "bounds or settings"), (properties, "properties")):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{place}: {design.name} has two {what} '{twice}'; give its own another name")
    base = design.based_on
    old = () if base is None else tuple(base.defaults)
    own = {name: value for name, value in design.defaults.items() if name in constants or name not in old}
    try:
        check_constants(design, own)
    except SettingError as problem:
        raise InputError(f"{place}: {problem}") from None
    known = {v.name: v.type for v in design.variables}
    bodies = [d.body for d in design.definitions()]
    for node in walk(*design.roots(), *bodies):
        if node.op == "variable" and known.get(node.attr[0]) != node.type:
            raise InputError(f"{place}: it speaks of a variable '{node.attr[0]}', which {design.name} does not have")
