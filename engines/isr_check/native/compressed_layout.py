"""The visited set in fewer bytes, as LLVM functions: a state is numbers of words, and a table holds nothing else.

The words of a state are numbered, each place of the state by a *dictionary* of its own: an open-addressing table of
words, in which the number of a word is its slot. Slot 0 stays empty and is the number of the word 0. The numbers side
by side are the *root* of a state. Equal roots are equal states, so nothing is approximate.

An entry of the table is 64 bits: the root, above it the level of the state plus 1, and in the highest bit whether the
state is *done*, that is expanded. 0 is no entry. So the table is the list of every level, too: who reads it from one
end to the other finds the states of a level. Eight entries are a *bucket*, one cache line. An entry stands in the first
place that was free, from its bucket on, in its *segment*; behind the last bucket of a segment comes its first. Segments
let the table grow in place (compressed.py).

Several threads insert at once. The places of a bucket fill in order, and none is emptied while threads insert. A thread
claims the first free place, in a dictionary or in the table, by compare-and-swap from 0. If that succeeds the place was
free until now, so nobody has passed it and entered the same word or root behind it. If it fails, the thread looks again
at what stands there. A thread reads a bucket by vector instructions; processors read each aligned 64 bits of it whole,
so that it sees an entry or none. To set an entry done changes no bit of its root, and only the thread that expanded the
state does it. A word is the whole of its entry, so who has read a number finds its word.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, auto

from isr_check.native.assembly import Code, Int
from isr_check.native.kernels import BATCH

BUCKET = 8
"""Entries of a bucket."""
SEGMENTS = 32
"""A power of two: the upper bits of a root's hash say its segment."""
EXPANDED_BIT = 1 << 63
FIRST, SECOND = -7046029254386353131, -4658895280553007687
"""Odd factors of the hash."""


class Shape(IntEnum):
    """The places of the array that says how roots are made; behind them each dictionary's, `FIELDS` of them a word."""

    STAGE = 0
    """What a new entry has beside its root."""
    ROOTS = auto()
    """The mask of the bits of a root."""
    SEGMENT = auto()
    """Buckets of a segment."""
    FIELDS = auto()


class Field(IntEnum):
    """The places of one dictionary."""

    WORDS = 0
    MASK = auto()
    SHIFT = auto()
    COUNT = auto()
    """How many words have been entered."""
    MOVED = auto()
    """When roots are made anew: the array of the new numbers by old ones, or 0 where they stay."""


class Task(IntEnum):
    """The places of a kernel's argument."""

    SHAPE = 0
    OLD = auto()
    TABLE = auto()
    BUCKETS = auto()
    START = auto()
    END = auto()
    SOURCE = auto()
    OUT = auto()
    SLOTS = auto()
    FILTER = auto()
    WANTED = auto()
    COUNT = auto()


NUMBERS = frozenset({Task.BUCKETS, Task.START, Task.END, Task.FILTER, Task.WANTED, Task.COUNT})
KERNELS = ("absorb", "gather", "finish", "rehash", "renumber")
DECLARATIONS = (
    "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
    "declare i64 @llvm.cttz.i64(i64, i1)",
    "declare i64 @llvm.ctpop.i64(i64)",
)


def field(word: int, place: Field) -> int:
    """Where a dictionary's place is in the shape."""
    return int(Shape.FIELDS) + word * len(Field) + int(place)


class Roots:
    """Writes the module for states of `words` words."""

    def __init__(self, words: int) -> None:
        self.words = words

    def text(self) -> str:
        parts = [self.number(), self.claim(), self.insert(), self.absorb(), self.gather(), self.finish()]
        return "\n".join([*DECLARATIONS, *parts, self.rehash(), self.renumber()])

    # dictionaries

    def _slot(self, code: Code, word: str, mask: str) -> str:
        """Where to look for a word first."""
        mixed = code.raw("mul", word, FIRST)
        return code.raw("and", code.raw("xor", mixed, code.raw("lshr", mixed, 32)), mask)

    def number(self) -> str:
        """@number(word, dictionary, mask, count): the number of a word, which is entered if it is new."""
        parameters = ("i64 %word", "ptr %dictionary", "i64 %mask", "ptr %count")
        code = Code("number", parameters, "i64", "alwaysinline")
        slot = code.slot(0)
        code.leave_if(code.compare("eq", "%word", 0), "found")
        code.store(slot, 0, self._slot(code, "%word", "%mask"))
        code.jump("head")
        code.join("head")
        at = code.load(slot, 0)
        place = code.element("%dictionary", at)
        there = code.value(f"load atomic i64, ptr {place} monotonic, align 8")
        code.leave_if(code.compare("eq", there, "%word"), "found")
        code.leave_if(code.compare("ne", there, 0), "on")
        code.leave_if(code.compare("eq", at, 0), "on")
        pair = code.value(f"cmpxchg ptr {place}, i64 0, i64 %word monotonic monotonic, align 8")
        code.split(code.value(f"extractvalue {{ i64, i1 }} {pair}, 1"), "new", "lost")
        code.join("lost")
        rival = code.value(f"extractvalue {{ i64, i1 }} {pair}, 0")
        code.split(code.compare("eq", rival, "%word"), "found", "on")
        code.join("on")
        code.store(slot, 0, code.raw("and", code.raw("add", code.load(slot, 0), 1), "%mask"))
        code.jump("head")
        code.join("new")
        code.value("atomicrmw add ptr %count, i64 1 monotonic, align 8")
        code.jump("found")
        code.join("found")
        code.effect(f"ret i64 {code.load(slot, 0)}")
        return code.text()

    def _word_number(self, code: Code, word: str, w: int, shape: str) -> str:
        words, mask = self._words(code, w, shape), code.load(shape, field(w, Field.MASK))
        count = code.address(shape, field(w, Field.COUNT))
        return code.value(f"call i64 @number(i64 {word}, ptr {words}, i64 {mask}, ptr {count})")

    def _words(self, code: Code, w: int, shape: str) -> str:
        return code.value(f"inttoptr i64 {code.load(shape, field(w, Field.WORDS))} to ptr")

    # the table

    def hash(self, code: Code, words: Sequence[str]) -> str:
        """The hash of a state, by its words: it stays when they get other numbers."""
        h: Int = 0x243F6A8885A308D3
        for word in words:
            mixed = code.raw("mul", code.raw("xor", h, word), FIRST)
            h = code.raw("xor", mixed, code.raw("lshr", mixed, 32))
        spread = code.raw("mul", h, SECOND)
        return code.raw("xor", spread, code.raw("lshr", spread, 29))

    def home(self, code: Code, h: str, buckets: str) -> str:
        """The bucket at which to look first: the hash, as a part of all hashes, of the buckets."""
        wide = code.value(f"zext i64 {h} to i128")
        product = code.value(f"mul i128 {wide}, {code.value(f'zext i64 {buckets} to i128')}")
        return code.value(f"trunc i128 {code.value(f'lshr i128 {product}, 64')} to i64")

    def _line(self, code: Code, table: str, bucket: str) -> tuple[str, str]:
        """The address of a bucket, and its entries."""
        line = code.element(table, code.raw("mul", bucket, BUCKET))
        return line, code.value(f"load volatile <8 x i64>, ptr {line}, align 64")

    def _all(self, code: Code, value: str) -> str:
        """Eight times a value."""
        one = code.value(f"insertelement <8 x i64> poison, i64 {value}, i64 0")
        return code.value(f"shufflevector <8 x i64> {one}, <8 x i64> poison, <8 x i32> zeroinitializer")

    def _which(self, code: Code, truths: str) -> str:
        """Eight truths as the bits of a number."""
        return code.value(f"zext i8 {code.value(f'bitcast <8 x i1> {truths} to i8')} to i64")

    def claim(self) -> str:
        """@claim(hash, root, stage, table, buckets, segment, roots): enter a root; 1 if it is new, 0 if it is not."""
        parameters = (
            "i64 %hash",
            "i64 %root",
            "i64 %stage",
            "ptr %table",
            "i64 %buckets",
            "i64 %segment",
            "i64 %roots",
        )
        code = Code("claim", parameters, "i64", "alwaysinline")
        bucket = code.slot(self.home(code, "%hash", "%buckets"))
        root, roots = self._all(code, "%root"), self._all(code, "%roots")
        entry = code.raw("or", "%root", "%stage")
        code.jump("head")
        code.join("head")
        line, there = self._line(code, "%table", code.load(bucket, 0))
        free = code.value(f"icmp eq <8 x i64> {there}, zeroinitializer")
        alike = code.value(f"icmp eq <8 x i64> {code.value(f'and <8 x i64> {there}, {roots}')}, {root}")
        same = code.value(f"and <8 x i1> {alike}, {code.value(f'xor <8 x i1> {free}, {ONES}')}")
        code.leave_if(code.compare("ne", self._which(code, same), 0), "known")
        empty = self._which(code, free)
        code.leave_if(code.compare("eq", empty, 0), "on")
        lane = code.value(f"call i64 @llvm.cttz.i64(i64 {empty}, i1 true)")
        pair = code.value(f"cmpxchg ptr {code.element(line, lane)}, i64 0, i64 {entry} monotonic monotonic, align 8")
        code.split(code.value(f"extractvalue {{ i64, i1 }} {pair}, 1"), "new", "head")
        code.join("on")
        onward = code.raw("add", code.load(bucket, 0), 1)
        segment = code.raw("lshr", "%hash", 64 - SEGMENTS.bit_length() + 1)
        end = code.raw("mul", code.raw("add", segment, 1), "%segment")
        over = code.value(f"select i1 {code.compare('eq', onward, end)}, i64 %segment, i64 0")
        code.store(bucket, 0, code.raw("sub", onward, over))
        code.jump("head")
        code.join("new")
        code.effect("ret i64 1")
        code.join("known")
        code.effect("ret i64 0")
        return code.text()

    def _claim_call(self, code: Code, h: str, root: str, stage: str, table: str, buckets: str, shape: str) -> str:
        """The instruction that enters a root."""
        segment, roots = code.load(shape, Shape.SEGMENT), code.load(shape, Shape.ROOTS)
        arguments = f"i64 {stage}, ptr {table}, i64 {buckets}, i64 {segment}, i64 {roots}"
        return code.value(f"call i64 @claim(i64 {h}, i64 {root}, {arguments})")

    def insert(self) -> str:
        """@insert(out, n, pairs, table, buckets, shape, count): add n states; returns the count with the new ones.

        It is called where the other visited set's function of this name would be (kernels.py). `pairs` has room for two
        numbers of each state. The first pass fetches what the others read: buckets, and slots of dictionaries.
        """
        parameters = ("ptr %out", "i64 %n", "ptr %pairs", "ptr %table", "i64 %buckets", "ptr %shape", "i64 %count")
        code = Code("insert", parameters, "i64", "noinline", inner=False)
        dictionaries = [self._words(code, w, "%shape") for w in range(self.words)]
        masks = [code.load("%shape", field(w, Field.MASK)) for w in range(self.words)]
        with code.loop(0, "%n") as (k, _):
            state = code.element("%out", code.raw("mul", k, self.words))
            words = [code.load(state, w) for w in range(self.words)]
            h = self.hash(code, words)
            code.store("%pairs", code.raw("mul", k, 2), h)
            self._prefetch(code, code.element("%table", code.raw("mul", self.home(code, h, "%buckets"), BUCKET)))
            for word, dictionary, mask in zip(words, dictionaries, masks, strict=True):
                self._prefetch(code, code.element(dictionary, self._slot(code, word, mask)))
        with code.loop(0, "%n") as (k, _):
            root = self._root(code, code.element("%out", code.raw("mul", k, self.words)), "%shape")
            code.store("%pairs", code.raw("add", code.raw("mul", k, 2), 1), root)
        count, stage = code.slot("%count"), code.load("%shape", Shape.STAGE)
        with code.loop(0, "%n") as (k, _):
            pair = code.element("%pairs", code.raw("mul", k, 2))
            h, root = code.load(pair, 0), code.load(pair, 1)
            new = self._claim_call(code, h, root, stage, "%table", "%buckets", "%shape")
            code.store(count, 0, code.raw("add", code.load(count, 0), new))
        code.effect(f"ret i64 {code.load(count, 0)}")
        return code.text()

    def _prefetch(self, code: Code, address: str) -> None:
        code.effect(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 3, i32 1)")

    def _root(self, code: Code, state: str, shape: str) -> str:
        root = "0"
        for w in range(self.words):
            number = self._word_number(code, code.load(state, w), w, shape)
            root = code.raw("or", root, code.raw("shl", number, code.load(shape, field(w, Field.SHIFT))))
        return root

    # kernels

    def _kernel(self, name: str) -> tuple[Code, dict[Task, str]]:
        code = Code(name, ("ptr %task",), inner=False)
        fields = {place: code.load("%task", int(place)) for place in Task}
        for place in Task:
            if place not in NUMBERS:
                fields[place] = code.value(f"inttoptr i64 {fields[place]} to ptr")
        return code, fields

    def absorb(self) -> str:
        """Add the states START..END of SOURCE; COUNT grows by the number of the new ones."""
        code, task = self._kernel("absorb")
        pairs = code.array([0] * (2 * BATCH))
        count = code.slot(task[Task.COUNT])
        length = code.raw("sub", task[Task.END], task[Task.START])
        with code.loop(0, code.raw("udiv", code.raw("add", length, BATCH - 1), BATCH)) as (i, _):
            begin = code.raw("add", task[Task.START], code.raw("mul", i, BATCH))
            n = code.raw("sub", code.least(code.raw("add", begin, BATCH), task[Task.END]), begin)
            state = code.element(task[Task.SOURCE], code.raw("mul", begin, self.words))
            code.store(count, 0, code.value(
                f"call i64 @insert(ptr {state}, i64 {n}, ptr {pairs}, ptr {task[Task.TABLE]}, "
                f"i64 {task[Task.BUCKETS]}, ptr {task[Task.SHAPE]}, i64 {code.load(count, 0)})"
            ))  # fmt: skip
        code.store("%task", Task.COUNT, code.load(count, 0))
        code.effect("ret void")
        return code.text()

    def gather(self) -> str:
        """Write the states of the buckets START..END, those of whose entries the bits FILTER are WANTED.

        OUT gets the words of the states, SLOTS the entries' places in the table, COUNT the number of both.
        """
        code, task = self._kernel("gather")
        shape, table = task[Task.SHAPE], task[Task.TABLE]
        dictionaries = [self._words(code, w, shape) for w in range(self.words)]
        masks = [code.load(shape, field(w, Field.MASK)) for w in range(self.words)]
        shifts = [code.load(shape, field(w, Field.SHIFT)) for w in range(self.words)]
        chosen, expected_bits = self._all(code, task[Task.FILTER]), self._all(code, task[Task.WANTED])
        count, remaining_lanes = code.slot(0), code.slot(0)
        with code.loop(task[Task.START], task[Task.END]) as (b, _):
            line, there = self._line(code, table, b)
            bits = code.value(f"and <8 x i64> {there}, {chosen}")
            code.store(remaining_lanes, 0, self._which(code, code.value(f"icmp eq <8 x i64> {bits}, {expected_bits}")))
            head, body, rest = code.fresh("next"), code.fresh("take"), code.fresh("rest")
            code.jump(head)
            code.join(head)
            which = code.load(remaining_lanes, 0)
            code.split(code.compare("ne", which, 0), body, rest)
            code.join(body)
            lane = code.value(f"call i64 @llvm.cttz.i64(i64 {which}, i1 true)")
            code.store(remaining_lanes, 0, code.raw("and", which, code.raw("sub", which, 1)))
            entry = code.value(f"load atomic i64, ptr {code.element(line, lane)} monotonic, align 8")
            row = code.load(count, 0)
            state = code.element(task[Task.OUT], code.raw("mul", row, self.words))
            for w, (dictionary, mask, shift) in enumerate(zip(dictionaries, masks, shifts, strict=True)):
                number = code.raw("and", code.raw("lshr", entry, shift), mask)
                code.store(state, w, code.value(f"load i64, ptr {code.element(dictionary, number)}, align 8"))
            place = code.element(task[Task.SLOTS], row)
            code.store(place, 0, code.raw("add", code.raw("mul", b, BUCKET), lane))
            code.store(count, 0, code.raw("add", row, 1))
            code.jump(head)
            code.join(rest)
        code.store("%task", Task.COUNT, code.load(count, 0))
        code.effect("ret void")
        return code.text()

    def finish(self) -> str:
        """Set the entries at SLOTS[START..END] done."""
        code, task = self._kernel("finish")
        with code.loop(task[Task.START], task[Task.END]) as (i, _):
            place = code.element(task[Task.TABLE], code.load(task[Task.SLOTS], i))
            entry = code.value(f"load atomic i64, ptr {place} monotonic, align 8")
            done = code.raw("or", entry, -EXPANDED_BIT)
            code.effect(f"store atomic i64 {done}, ptr {place} monotonic, align 8")
        code.effect("ret void")
        return code.text()

    def rehash(self) -> str:
        """Enter the entries START..END of SOURCE, made by the shape OLD, with roots of the new shape."""
        code, task = self._kernel("rehash")
        old, shape = task[Task.OLD], task[Task.SHAPE]
        roots = code.load(old, Shape.ROOTS)
        number_slot = code.slot(0)
        with code.loop(task[Task.START], task[Task.END]) as (i, _):
            entry = code.load(task[Task.SOURCE], i)
            with code.when(code.compare("ne", entry, 0)):
                root, words = "0", list[str]()
                for w in range(self.words):
                    at = code.raw("lshr", entry, code.load(old, field(w, Field.SHIFT)))
                    code.store(number_slot, 0, code.raw("and", at, code.load(old, field(w, Field.MASK))))
                    words.append(code.load(code.element(self._words(code, w, old), code.load(number_slot, 0)), 0))
                    numbers = code.load(old, field(w, Field.MOVED))
                    with code.when(code.compare("ne", numbers, 0)):
                        numbered = code.element(code.value(f"inttoptr i64 {numbers} to ptr"), code.load(number_slot, 0))
                        code.store(number_slot, 0, code.load(numbered, 0))
                    placed = code.raw("shl", code.load(number_slot, 0), code.load(shape, field(w, Field.SHIFT)))
                    root = code.raw("or", root, placed)
                bits, newer = (code.value(f"call i64 @llvm.ctpop.i64(i64 {m})")
                               for m in (roots, code.load(shape, Shape.ROOTS)))  # fmt: skip
                level = code.raw("lshr", code.raw("and", entry, EXPANDED_BIT - 1), bits)
                stage = code.raw("or", code.raw("shl", level, newer), code.raw("and", entry, -EXPANDED_BIT))
                self._claim_call(code, self.hash(code, words), root, stage, task[Task.TABLE], task[Task.BUCKETS], shape)
        code.effect("ret void")
        return code.text()

    def renumber(self) -> str:
        """OUT[i] becomes the number of the word SOURCE[i], for START..END, in the first dictionary of the shape."""
        code, task = self._kernel("renumber")
        with code.loop(task[Task.START], task[Task.END]) as (i, _):
            number = self._word_number(code, code.load(task[Task.SOURCE], i), 0, task[Task.SHAPE])
            code.store(task[Task.OUT], i, number)
        code.effect("ret void")
        return code.text()


ONES = f"<{', '.join(['i1 true'] * BUCKET)}>"
