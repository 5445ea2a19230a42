"""The representative of a state's orbit, as LLVM functions over packed states.

@exchange<g> renames two neighbouring elements of a symmetric sort in place. The cells under one element change places
with those under the other, and so do the elements themselves in sets and other values. All cells that are equally far
apart in a word move at once.

@representative sorts the elements by a *key*: what the state says of each element without naming another. Among
elements with equal keys it tries all orders, by exchanges that pass each order once, and takes the least state. Neither
choice depends on the names, so all states of an orbit have the same representative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from isr_check.native.assembly import Bit, Code, Int
from isr_check.native.layout import Cell, Layout
from isr_check.symmetry import Symmetry
from isr_lang.types import BoolType, ChoiceType, MaybeType, NumberType, Scalar, SetType, SortType, Type

KEY = 62
"""The most bits of a key; what does not fit is left out of it."""

Word = list[Int]


class Renaming:
    """Writes the functions for a layout that was made for the symmetry."""

    def __init__(self, layout: Layout, symmetry: Symmetry) -> None:
        self.layout, self.symmetry, self.words = layout, symmetry, layout.words
        self.pairs = list(zip(symmetry.sorts, symmetry.sizes, strict=True))
        self.generators = [(sort, i) for sort, size in self.pairs for i in range(size - 1)]

    def texts(self) -> list[str]:
        exchanges = [self._exchange(g, sort, i) for g, (sort, i) in enumerate(self.generators)]
        return [*self._walks(), *exchanges, self._step(), self._representative()]

    # exchanging two elements

    def _exchange(self, g: int, sort: SortType, i: int) -> str:
        """@exchange(words)"""
        code = Code(f"exchange{g}", ("ptr noalias %words",), attributes="alwaysinline")
        words: Word = [code.peek("%words", w) for w in range(self.words)]
        for depth in range(max((len(p.keys) for p in self.layout.places), default=0)):
            self._move_cells(code, words, sort, i, depth)
        self._change_values(code, words, sort, i)
        for w, word in enumerate(words):
            code.store("%words", w, word)
        code.effect("ret void")
        return code.text()

    def _move_cells(self, code: Code, words: Word, sort: SortType, i: int, depth: int) -> None:
        """Cells whose key at this depth is i change places with those where it is i + 1."""
        partner: dict[object, Cell] = {}
        moves: dict[tuple[int, int, int], int] = {}
        for place, cell in zip(self.layout.places, self.layout.cells, strict=True):
            if len(place.keys) <= depth or place.keys[depth][0] != sort or cell.width == 0:
                continue
            at = place.keys[depth][1]
            if at not in (i, i + 1):
                continue
            rest = (place.variable, place.keys[:depth], place.keys[depth + 1 :], place.part)
            if rest not in partner:
                partner[rest] = cell
                continue
            a, b = sorted((partner[rest], cell), key=lambda c: c.shift)
            move = a.word, b.word, b.shift - a.shift
            moves[move] = moves.get(move, 0) | a.mask << a.shift
        for (wa, wb, distance), mask in moves.items():
            shifted = code.shift_right(words[wb], distance)
            differs = code.bits_and(_xor(code, shifted, words[wa]), mask)
            words[wa] = _xor(code, words[wa], differs)
            words[wb] = _xor(code, words[wb], code.shift_left(differs, distance))

    def _change_values(self, code: Code, words: Word, sort: SortType, i: int) -> None:
        """In every cell of a set, a maybe or the sort itself the two elements change places."""
        first: dict[tuple[int, int, int], int] = {}
        for place, cell in zip(self.layout.places, self.layout.cells, strict=True):
            low = _first_number(place.type, sort)
            if isinstance(place.type, SetType) and place.type.of == sort:
                first[cell.word, 0, 0] = first.get((cell.word, 0, 0), 0) | 1 << cell.shift + i
            elif low is not None:
                kind = cell.word, cell.width, low
                first[kind] = first.get(kind, 0) | 1 << cell.shift
        for (w, width, low), bits in first.items():
            word = words[w]
            if width == 0:
                differs = code.bits_and(_xor(code, code.shift_right(word, 1), word), bits)
                words[w] = _xor(code, word, code.bits_or(differs, code.shift_left(differs, 1)))
                continue
            one, other = low + i, low + i + 1
            hit = code.bits_or(_equals(code, word, width, bits, one), _equals(code, word, width, bits, other))
            for k in range(width):
                if (one ^ other) >> k & 1:
                    words[w] = _xor(code, words[w], code.shift_left(hit, k))

    # keys

    def _key(self, code: Code, words: Word, sort: SortType, element: int) -> Int:
        """The key of an element: what the state says of it without naming any other."""
        key: Int = 0
        width = 0
        for part, bits in self._parts(code, words, sort, element):
            if width + bits <= KEY:
                key = code.bits_or(key, code.shift_left(part, width))
                width += bits
        return key

    def _parts(self, code: Code, words: Word, sort: SortType, element: int) -> Iterator[tuple[Int, int]]:
        """The parts of a key and their widths in bits: where the element is mentioned, then its own cells."""
        own: list[Cell] = []
        for place, cell in zip(self.layout.places, self.layout.cells, strict=True):
            keys = [(key, at) for key, at in place.keys if key in self.symmetry.sorts]
            if cell.width == 0 or keys not in ([], [(sort, element)]):
                continue
            if keys and not _names(place.type, self.symmetry.sorts):
                own.append(cell)
                continue
            value = code.bits_and(code.shift_right(words[cell.word], cell.shift), cell.mask)
            if isinstance(place.type, SetType) and place.type.of == sort:
                yield code.bits_and(code.shift_right(value, element), 1), 1
                if keys:
                    yield code.population(value), cell.width.bit_length()
            elif (low := _first_number(place.type, sort)) is not None:
                yield code.number(code.equal(value, low + element)), 1
        for word, shift, width in sorted(_runs(own), key=lambda run: -run[2]):
            yield code.bits_and(code.shift_right(words[word], shift), (1 << width) - 1), width

    # the representative

    def _walks(self) -> list[str]:
        """Two tables: for each pattern of equal neighbouring keys, the exchanges that pass all orders of these."""
        moves: list[int] = []
        begins = [0]
        for pattern in range(1 << len(self.generators)):
            moves += self._walk(pattern)
            begins.append(len(moves))
        return [_array("walks", "i8", moves or [0]), _array("walk", "i64", begins)]

    def _walk(self, pattern: int) -> list[int]:
        walk: list[int] = []
        base = 0
        for _, size in self.pairs:
            start = 0
            for i in range(size):
                if i == size - 1 or not pattern >> base + i & 1:
                    walk = weave(walk, [base + start + m for m in exchanges(i + 1 - start)])
                    start = i + 1
            base += size - 1
        return walk

    def _step(self) -> str:
        """@exchange(words, which)"""
        code = Code("exchange", ("ptr noalias %words", "i64 %which"), attributes="noinline")
        labels = [code.fresh("case") for _ in self.generators]
        table = " ".join(f"i64 {g}, label %{label}" for g, label in enumerate(labels))
        code.effect(f"switch i64 %which, label %{labels[0]} [ {table} ]")
        for g, label in enumerate(labels):
            code.join(label)
            code.effect(f"call void @exchange{g}(ptr %words)")
            code.effect("ret void")
        return code.text()

    def _representative(self) -> str:
        """@representative(words): replace a state by its orbit's representative; returns how many renamings keep it."""
        code = Code("representative", ("ptr %words",), "i64", "noinline")
        pattern = code.slot(0)
        base = 0
        for sort, size in self.pairs:
            self._sort(code, sort, size, base, pattern)
            base += size - 1
        same = code.slot(1)
        equal = code.load(pattern, 0)
        with code.when(code.truth(equal)):
            self._least(code, equal, same)
        code.effect(f"ret i64 {code.load(same, 0)}")
        return code.text()

    def _sort(self, code: Code, sort: SortType, size: int, base: int, pattern: str) -> None:
        words: Word = [code.load("%words", w) for w in range(self.words)]
        keys = [code.slot(self._key(code, words, sort, element)) for element in range(size)]
        for last in range(size - 1, 0, -1):
            for i in range(last):
                a, b = code.load(keys[i], 0), code.load(keys[i + 1], 0)
                with code.when(code.compare("sgt", a, b)):
                    code.effect(f"call void @exchange{base + i}(ptr %words)")
                    code.store(keys[i], 0, b)
                    code.store(keys[i + 1], 0, a)
        for i, (one, other) in enumerate(pairwise(keys)):
            tied = code.number(code.compare("eq", code.load(one, 0), code.load(other, 0)))
            code.include(pattern, 0, code.shift_left(tied, base + i))

    def _least(self, code: Code, pattern: str, same: str) -> None:
        """Try all orders of the elements with equal keys, and keep the one whose words are least."""
        candidate = code.array([code.load("%words", w) for w in range(self.words)])
        begin, end = (code.value(f"load i64, ptr {code.element('@walk', p)}") for p in (pattern, code.add(pattern, 1)))
        with code.loop(begin, end) as (m, _):
            place = code.value(f"getelementptr inbounds i8, ptr @walks, i64 {m}")
            which = code.value(f"zext i8 {code.value(f'load i8, ptr {place}')} to i64")
            code.effect(f"call void @exchange(ptr {candidate}, i64 {which})")
            less, equal = self._compare(code, candidate)
            code.store(same, 0, code.raw("add", code.load(same, 0), code.number(equal)))
            with code.when(less):
                for w in range(self.words):
                    code.store("%words", w, code.load(candidate, w))
                code.store(same, 0, 1)

    def _compare(self, code: Code, candidate: str) -> tuple[Bit, Bit]:
        less: Bit = False
        equal: Bit = True
        for w in range(self.words):
            a, b = code.load(candidate, w), code.load("%words", w)
            less = code.either(less, code.both(equal, code.compare("ult", a, b)))
            equal = code.both(equal, code.compare("eq", a, b))
        return less, equal


def exchanges(size: int) -> list[int]:
    """Exchanges of neighbours that pass each order of so many things once (Steinhaus, Johnson and Trotter)."""
    if size < 2:
        return []
    walk, last = list[int](), size - 1
    inner = exchanges(last)
    for turn in range(len(inner) + 1):
        down = turn % 2 == 0
        walk += range(last - 1, -1, -1) if down else range(last)
        if turn < len(inner):
            walk.append(inner[turn] + (1 if down else 0))
    return walk


def weave(one: Sequence[int], other: Sequence[int]) -> list[int]:
    """A walk through all pairs of places: `one` forwards, a step of `other`, `one` backwards, a step of `other`..."""
    walk = list(one)
    for turn, move in enumerate(other):
        walk += [move, *(one if turn % 2 else reversed(one))]
    return walk


def _runs(cells: Sequence[Cell]) -> list[tuple[int, int, int]]:
    """Neighbouring cells merged to runs of bits: (word, shift, width)."""
    runs: list[tuple[int, int, int]] = []
    for cell in sorted(cells, key=lambda c: (c.word, c.shift)):
        if runs and runs[-1][0] == cell.word and runs[-1][1] + runs[-1][2] == cell.shift:
            runs[-1] = (cell.word, runs[-1][1], runs[-1][2] + cell.width)
        else:
            runs.append((cell.word, cell.shift, cell.width))
    return runs


def _array(name: str, type: str, values: Sequence[int]) -> str:
    inner = ", ".join(f"{type} {v}" for v in values)
    return f"@{name} = private unnamed_addr constant [{len(values)} x {type}] [{inner}]"


def _xor(code: Code, a: Int, b: Int) -> Int:
    return code.pure(f"xor i64 {a}, {b}")


def _equals(code: Code, word: Int, width: int, lowest: int, value: int) -> Int:
    """A mask of the cells that hold the value; `lowest` has the lowest bit of each cell, and so has the result."""
    hit: Int = lowest
    for k in range(width):
        plane = code.shift_right(word, k)
        hit = code.bits_and(hit, plane if value >> k & 1 else code.bits_not(plane))
    return hit


def _first_number(type: Type, sort: SortType) -> int | None:
    """The number of the sort's first element in a cell of the type; None if the cell holds no element or many."""
    if isinstance(type, MaybeType):
        return 1 if type.of == sort else None
    return 0 if type == sort else None


def _names(type: Type, sorts: Sequence[SortType]) -> bool:
    """Whether a value of the type names elements."""
    of: Scalar | Type = type.of if isinstance(type, MaybeType | SetType) else type
    return not isinstance(of, BoolType | NumberType | ChoiceType) and of in sorts
