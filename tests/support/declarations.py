"""What Java and JavaScript declare, found without a parser of either: types, methods, functions and fields.

Locals, parameters and the constants of an enum are not among them: the rule of `tests/support/names.py` for Python asks
less of these, too. Comments, and what stands between quotation marks, are left out first.
"""

import re
from collections.abc import Iterator

import attrs

QUOTE = r'"""(?:\\.|.)*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|`(?:\\.|[^`\\])*`'
NO_CODE = re.compile(rf"/\*.*?\*/|//[^\n]*|{QUOTE}", re.S)
ANNOTATION = re.compile(r"@(?!interface\b)[\w.]+(?:\s*\((?:[^()]|\([^()]*\))*\))?")
TYPE = re.compile(r"\b(?:class|interface|enum|record)\s+(\w+)")
MEMBER = re.compile(r"[\w>\]]\s+(\w+)\s*(?=\(|=|$)|^\s*(\w+)\s*\(")
"""A method, or a field: a word after a type. A constructor has no type before it; its name is the type's."""

SCRIPT = re.compile(
    r"""
    ^(?:const|let|var)\ (\w+)
    | \bfunction\*?\ (\w+)
    | \bclass\ (\w+)
    | ^\ \ (?:(?:static|async|get|set)\ )*[*#]*(\w+)(?:\([^;{}]*\)\ \{|\ =\ )
    | \bthis\.(\w+)\ (?:\?\?)?=(?!=)
    """,
    re.M | re.X,
)
"""A constant or a function of a file, a class, its methods, which are two columns in, and fields where they are set."""


@attrs.frozen
class Declaration:
    """A name, and the line that declares it."""

    line: int
    name: str


def of_java(source: str) -> Iterator[Declaration]:
    """What stands in the braces of a type, and the components of a record."""
    text, types, start, are_constants = NO_CODE.sub(_blanks, source), [True], 0, False
    text = ANNOTATION.sub(_blanks, text)
    for mark in re.finditer(r"[{};]", text):
        head = text[start : mark.start()]
        if types[-1] and mark.group() != "}" and not are_constants:
            yield from _of_head(text, start, head)
        are_constants = mark.group() == "{" and types[-1] and re.search(r"\benum\b", head) is not None
        if mark.group() == "{":
            types.append(types[-1] and TYPE.search(head) is not None)
        elif mark.group() == "}":
            types.pop()
        start = mark.end()


def _of_head(text: str, start: int, head: str) -> Iterator[Declaration]:
    if (named := TYPE.search(head)) is not None:
        yield Declaration(_line(text, start + named.start(1)), named.group(1))
        if named.group().startswith("record"):
            for part in re.finditer(r"(\w+)\s*(?=[,)])", head[named.end() :]):
                yield Declaration(_line(text, start + named.end() + part.start(1)), part.group(1))
    elif (member := MEMBER.search(head)) is not None:
        name = member.group(1) or member.group(2)
        yield Declaration(_line(text, start + member.start(member.lastindex or 0)), name)


def of_script(source: str) -> Iterator[Declaration]:
    """Constants and functions of the file, functions within, classes, their methods and fields."""
    text = NO_CODE.sub(_blanks, source)
    for match in SCRIPT.finditer(text):
        yield Declaration(_line(text, match.start(match.lastindex or 0)), match.group(match.lastindex or 0))


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _blanks(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())
