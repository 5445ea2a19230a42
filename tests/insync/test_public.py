"""What is public in Python: its names, its types, its docstrings, and that it costs nothing to import.

Without it a parameter could come without a word, a type could be Any, and `import insync` could take a second.
"""

import inspect
import re
import subprocess
import sys
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import attrs
import pytest

import insync

TOP = Path(__file__).resolve().parents[2]
NAMES = {name: cast("object", getattr(insync, name)) for name in insync.__all__}
FUNCTIONS = {name: cast("Callable[..., object]", f) for name, f in NAMES.items() if inspect.isfunction(f)}
CLASSES = {name: c for name, c in NAMES.items() if isinstance(c, type)}
VALUES = {name: c for name, c in CLASSES.items() if attrs.has(c)}


def quoted(text: str) -> set[str]:
    """The words in back-quotes."""
    return set(re.findall(r"`(\w+)(?:=\w+)?`", text))


def lacks_of_function(function: Callable[..., object]) -> list[str]:
    """What a docstring of a function does not say: its parameters, errors, exit codes and source."""
    text = " ".join((inspect.getdoc(function) or "").split())
    missing = [name for name in inspect.signature(function).parameters if name not in quoted(text)]
    return missing + [word for word in ("Exit codes:", "Raises: InsyncError", "Source:") if word not in text]


def public_fields(shape: type[attrs.AttrsInstance]) -> list[str]:
    """Those of its own that are no private ones."""
    own = inspect.get_annotations(shape)
    return [field.name for field in attrs.fields(shape) if field.name in own and not field.name.startswith("_")]


def lacks_of_value(shape: type[attrs.AttrsInstance]) -> list[str]:
    """What a docstring of a class does not say: its fields, and where they come from."""
    text = shape.__doc__ or ""
    missing = [name for name in public_fields(shape) if name not in quoted(text)]
    return missing + ([] if "Source:" in text else ["Source:"])


def test_the_public_names_are_those_that_python_lists() -> None:
    assert dir(insync) == sorted(insync.__all__)
    assert sorted(FUNCTIONS) == ["audit", "check", "drill", "history", "prove", "replay"]
    assert {*FUNCTIONS, *VALUES, "InsyncError"} == set(insync.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'chekc'"):
        cast("object", getattr(insync, "chekc"))  # noqa: B009
    assert (TOP / "insync" / "insync" / "py.typed").exists()


def test_every_value_that_an_answer_holds_is_public() -> None:
    held = {
        t.__name__ for shape in VALUES.values() for hint in hints(shape).values() for t in parts(hint) if attrs.has(t)
    }
    assert held - {"View"} <= set(VALUES)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_its_parameters_exit_codes_errors_and_source(name: str) -> None:
    assert not lacks_of_function(FUNCTIONS[name])


@pytest.mark.parametrize("name", VALUES)
def test_a_value_says_its_fields_and_their_source(name: str) -> None:
    assert not lacks_of_value(VALUES[name])


@pytest.mark.parametrize("name", CLASSES)
def test_a_public_method_says_what_it_gives(name: str) -> None:
    methods = [m for m in vars(CLASSES[name]).values() if inspect.isfunction(m) and not m.__name__.startswith("_")]
    assert not [m.__name__ for m in methods if not inspect.getdoc(m)]


def hints(thing: object) -> dict[str, object]:
    """The types of a function or a class, with the names that only type checkers import."""
    import insync.answers as answers

    return cast("dict[str, object]", typing.get_type_hints(thing, localns=dict(vars(answers))))


def parts(hint: object) -> Iterator[type]:
    """A type and all those in it."""
    if hint is typing.Any:
        raise AssertionError("Any")
    if isinstance(hint, types.GenericAlias | types.UnionType) or typing.get_origin(hint) is not None:
        for part in typing.get_args(hint):
            yield from parts(part)
    elif isinstance(hint, type):
        yield hint


def untyped(thing: object, names: set[str]) -> set[str]:
    """The parameters or fields whose type is missing or has Any in it."""
    of = hints(thing)
    missing = names - set(of)
    for name, hint in of.items():
        try:
            list(parts(hint))
        except AssertionError:
            missing.add(name)
    return missing


@pytest.mark.parametrize("name", [*FUNCTIONS, *VALUES])
def test_no_public_type_is_any(name: str) -> None:
    if name in FUNCTIONS:
        assert not untyped(FUNCTIONS[name], {*inspect.signature(FUNCTIONS[name]).parameters, "return"})
    else:
        assert not untyped(VALUES[name], set(public_fields(VALUES[name])))


@pytest.mark.processes
def test_to_import_it_imports_neither_libraries_nor_anything_else_of_ours() -> None:
    program = """
from __future__ import annotations
import sys, time, typing
before, began = set(sys.modules), time.process_time()
import insync
print(time.process_time() - began, *sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    seconds, *modules = done.stdout.split()
    assert modules == ["insync"]
    assert float(seconds) < 0.1


@pytest.mark.processes
@pytest.mark.parametrize("options", [(), ("-P",)])
def test_at_the_top_of_a_checkout_it_is_the_package_and_not_the_source_root(options: tuple[str, ...]) -> None:
    command = [sys.executable, *options, "-c", "import insync; print(insync.__file__)"]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == TOP / "insync" / "insync" / "__init__.py"


# The checks can fail


def test_what_is_missing_is_seen() -> None:
    def asks(design: str, seconds, deep: dict[str, list[typing.Any]]) -> None:  # type: ignore[no-untyped-def] # pyright: ignore
        """Asks `design` for so many seconds. Source: nowhere."""

    @attrs.frozen
    class Value:
        """A value: `size`."""

        size: int
        unit: str

    assert lacks_of_function(asks) == ["seconds", "deep", "Exit codes:", "Raises: InsyncError"]  # pyright: ignore
    assert lacks_of_value(Value) == ["unit", "Source:"]
    assert untyped(asks, {"design", "seconds", "deep"}) == {"seconds", "deep"}  # pyright: ignore
