"""The words of an assertion in a stored query: each has one spelling and one meaning, to us and to every solver.

SMT-LIB has more than a proof needs, and a forger has all of it. `(! t :named x)` defines `x`, wherever it stands. `|x|`
and `x` are one symbol. So a formula could be read as that of the model, and be another one to a solver. Here a word is
a bracket, a number, an operator of OPERATORS, a variable that is bound around it, or a symbol that the query declares.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

OPERATORS: Final = frozenset(
    ("not", "and", "or", "=>", "=", "distinct", "ite", "+", "-", "*", "<", "<=", ">", ">=", "true", "false")
)
"""What insync's queries are made of. None of these is a name of anything else."""
BINDERS: Final = ("forall", "exists", "let")
SORTS: Final = ("Bool", "Int")
ATTRIBUTE, PATTERN = "!", ":pattern"
LANGUAGE: Final = OPERATORS | {*BINDERS, *SORTS, ATTRIBUTE, PATTERN, "_", "as", "match", "par", "assert", "define-fun"}
CHARACTERS: Final = re.compile(r"(?:[\t\n -~]|\r\n)*")
"""White space is a blank, a tab or the end of a line. What else Python takes for it, a solver may take for a letter.
A carriage return alone ends a remark to some."""
BLANKS: Final = " \t\r\n"
_WORD: Final = re.compile(r"\|[^|]*\||[()]|[^\s()|]+")
_NUMBER: Final = re.compile(r"0|[1-9][0-9]*")
_SYMBOL: Final = re.compile(r"\|[^|\\]*\||[A-Za-z~!@$%^&*_+=<>.?/-][0-9A-Za-z~!@$%^&*_+=<>.?/-]*")

Expression: TypeAlias = "str | list[Expression]"


def plain(symbol: str) -> str:
    """The symbol without the bars, which do not belong to its name."""
    return symbol[1:-1] if symbol.startswith("|") else symbol


def declared_once(symbols: Iterable[str]) -> Mapping[str, str]:
    """Names -> their spelling; ValueError if a name is spelled twice, or is a word of the language."""
    spelling: dict[str, str] = {}
    for symbol in symbols:
        name = plain(symbol)
        if name in LANGUAGE or not _SYMBOL.fullmatch(symbol):
            raise ValueError(f"it declares {symbol}, which is no name for a symbol")
        if spelling.setdefault(name, symbol) != symbol:
            raise ValueError(f"it declares {name} in two spellings")
    return spelling


def check_words(assertion: str, symbols: Mapping[str, str]) -> None:
    """ValueError unless each word of the assertion has one meaning where the query declares these symbols."""
    free, bound = _names(assertion)
    for word in sorted(free):
        if symbols.get(plain(word)) != word:
            raise ValueError(f"{word} is neither declared nor a word of a formula")
    for name in sorted(bound):
        if name in symbols:
            raise ValueError(f"{name} is a variable, and a symbol that is declared")


@lru_cache(maxsize=100_000)
def _names(assertion: str) -> tuple[frozenset[str], frozenset[str]]:
    """The symbols of an assertion that nothing in it binds, as they are spelled, and the names of what is bound."""
    if CHARACTERS.fullmatch(assertion) is None:
        raise ValueError("it has a character that no query should")
    free, bound = set[str](), set[str]()
    waiting: list[tuple[Expression, Mapping[str, str]]] = [(expression(assertion), {})]
    while waiting:
        part, variables = waiting.pop()
        if isinstance(part, str):
            _take_word(part, variables, free)
            continue
        if not part:
            raise ValueError("a pair of brackets has nothing in it")
        head, *rest = part
        if head in BINDERS:
            waiting += _bind(str(head), rest, variables, bound)
        elif head == ATTRIBUTE:
            raise ValueError("an attribute stands where none is a pattern")
        else:
            waiting += [(below, variables) for below in part]
    return frozenset(free), frozenset(bound)


def _take_word(word: str, variables: Mapping[str, str], free: set[str]) -> None:
    if word in OPERATORS or _NUMBER.fullmatch(word):
        return
    spelling = variables.get(plain(word))
    if spelling not in (None, word):
        raise ValueError(f"{plain(word)} is spelled in two ways")
    if spelling is None:
        if plain(word) in LANGUAGE or not _SYMBOL.fullmatch(word):
            raise ValueError(f"{word} is no word of a formula")
        free.add(word)


def _bind(
    binder: str, rest: Sequence[Expression], variables: Mapping[str, str], bound: set[str]
) -> list[tuple[Expression, Mapping[str, str]]]:
    """What there is to read below a binder, each with the variables around it."""
    if len(rest) != 2 or not isinstance(rest[0], list) or not rest[0]:
        raise ValueError(f"{binder} binds nothing, or has no body")
    own: dict[str, str] = {}
    below: list[tuple[Expression, Mapping[str, str]]] = []
    for pair in rest[0]:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise ValueError(f"{binder} binds something that is no variable")
        symbol, value = pair[0], pair[1]
        name = plain(symbol)
        if name in LANGUAGE or name in own or not _SYMBOL.fullmatch(symbol):
            raise ValueError(f"{binder} binds {symbol}, which is no name for a variable, or twice")
        own[name] = symbol
        if binder == "let":
            below.append((value, variables))
        elif value not in SORTS:
            raise ValueError(f"{binder} has a variable that is neither Int nor Bool")
    bound.update(own)
    inner = {**variables, **own}
    return [*below, *((part, inner) for part in _below(rest[1]))]


def _below(body: Expression) -> list[Expression]:
    """The body of a quantifier, and the terms of its patterns, which say when it is used and nothing else."""
    if not isinstance(body, list) or body[:1] != [ATTRIBUTE]:
        return [body]
    formula, attributes = body[1:2], body[2:]
    if not formula or not attributes or len(attributes) % 2:
        raise ValueError("an attribute is no pattern")
    terms: list[Expression] = [*formula]
    for key, value in zip(attributes[::2], attributes[1::2], strict=True):
        if key != PATTERN or not isinstance(value, list) or not value:
            raise ValueError("an attribute is no pattern")
        terms += value
    return terms


def expression(text: str) -> Expression:
    """The text as one expression; ValueError if it is none, or more."""
    stack: list[list[Expression]] = [[]]
    end = 0
    for word in _WORD.finditer(text):
        between = text[end : word.start()]
        if between.strip(BLANKS) or (
            not between and end and "(" not in (text[end - 1], word[0]) and ")" not in (text[end - 1], word[0])
        ):
            raise ValueError("two words are not apart")
        end = word.end()
        if word[0] == "(":
            stack.append([])
        elif word[0] == ")":
            done = stack.pop()
            if not stack:
                raise ValueError("a bracket too many")
            stack[-1].append(done)
        elif word[0].startswith("#"):  # a constant of SMT-LIB's, or a place among those around it (`certificate`)
            raise ValueError("a word that no formula has")
        else:
            stack[-1].append(word[0])
    if len(stack) != 1 or len(stack[0]) != 1 or text[end:].strip(BLANKS):
        raise ValueError("it is not one formula")
    return stack[0][0]
