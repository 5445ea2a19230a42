"""The visited set as LLVM functions: one array of states and one open-addressing table of their positions.

States stand in the array in the order in which they were found. An entry of the table has 24 bits of the state's hash,
its *tag*, and the 40-bit position. 0 means no entry, so position 0 is not used. Several threads may insert at once,
each into its own part of the array. A thread first writes the state there, and then claims an entry of the table by
compare-and-swap. If another thread was faster, its state is in the array already, to be compared with.
"""

from __future__ import annotations

from isr_check.native.assembly import Code, Int

POSITION = (1 << 40) - 1
"""A mask of the bits of an entry that hold the position."""


class Visited:
    """Writes the functions of the visited set, for states of `words` words."""

    def __init__(self, words: int) -> None:
        self.words = words

    def texts(self) -> list[str]:
        return [self.insert(), self.find(), self.enter(), self.strike_out()]

    def _function(self, name: str, parameters: tuple[str, ...], returns: str) -> Code:
        code = Code(name, parameters, returns, "noinline")
        return code

    def hash(self, code: Code, pointer: str) -> str:
        """The hash of the words at the pointer; every bit of it depends on every bit of the state."""
        h: Int = 0x243F6A8885A308D3
        for w in range(self.words):
            mixed = code.raw("mul", code.raw("xor", h, code.load(pointer, w)), -7046029254386353131)
            h = code.raw("xor", mixed, code.raw("lshr", mixed, 32))
        spread = code.raw("mul", h, -4658895280553007687)
        return code.raw("xor", spread, code.raw("lshr", spread, 29))

    def _prefetch(self, code: Code, address: str) -> None:
        code.effect(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 3, i32 1)")

    def _same(self, code: Code, a: str, b: str) -> str:
        differences: Int = 0
        for w in range(self.words):
            difference = code.raw("xor", code.load(a, w), code.load(b, w))
            differences = code.raw("or", differences, difference)
        return code.compare("eq", differences, 0)

    def state(self, code: Code, array: str, position: Int) -> str:
        return code.element(array, code.raw("mul", position, self.words))

    def _probe(self, code: Code, h: str, tag: str, slot: str, missing: str) -> tuple[str, str]:
        """Write a walk through the table from the hash's slot to an entry with the tag.

        At an empty entry it jumps to the label `missing`. Code that follows runs at an entry with the tag. Returns that
        entry, and the label to which to jump to walk on.
        """
        head, on, start = code.fresh("probe"), code.fresh("on"), code.fresh("start")
        code.jump(start)
        code.join(on)
        code.store(slot, 0, code.raw("and", code.raw("add", code.load(slot, 0), 1), "%mask"))
        code.jump(head)
        code.join(start)
        code.store(slot, 0, code.raw("and", h, "%mask"))
        code.jump(head)
        code.join(head)
        address = code.element("%table", code.load(slot, 0))
        entry = code.value(f"load atomic i64, ptr {address} acquire, align 8")
        code.leave_if(code.compare("eq", entry, 0), missing)
        code.leave_if(code.compare("ne", code.raw("lshr", entry, 40), tag), on)
        return entry, on

    def insert(self) -> str:
        """@insert(out, n, hashes, table, mask, states, next): add n states; returns the next free position.

        It makes three passes: fetch the slots, fetch the states there, compare. So the cache misses of all n overlap.
        """
        visited = ("ptr %table", "i64 %mask", "ptr %states", "i64 %next")
        code = self._function("insert", ("ptr %out", "i64 %n", "ptr %hashes", *visited), "i64")
        with code.loop(0, "%n") as (k, _):
            h = self.hash(code, self.state(code, "%out", k))
            code.store("%hashes", k, h)
            self._prefetch(code, code.element("%table", code.raw("and", h, "%mask")))
        with code.loop(0, "%n") as (k, _):
            home = code.element("%table", code.raw("and", code.load("%hashes", k), "%mask"))
            entry = code.value(f"load atomic i64, ptr {home} monotonic, align 8")
            self._prefetch(code, self.state(code, "%states", code.raw("and", entry, POSITION)))
        free, slot = code.slot("%next"), code.slot(0)
        with code.loop(0, "%n") as (k, _):
            self._insert_one(code, k, free, slot)
        code.effect(f"ret i64 {code.load(free, 0)}")
        return code.text()

    def _insert_one(self, code: Code, k: str, free: str, slot: str) -> None:
        h = code.load("%hashes", k)
        tag = code.raw("lshr", h, 40)
        mine = self.state(code, "%out", k)
        missing, end_label, compare = code.fresh("missing"), code.fresh("known"), code.fresh("compare")
        won_label, lost_label = code.fresh("won"), code.fresh("lost")
        entry, on = self._probe(code, h, tag, slot, missing)
        probe_block = code.block
        code.jump(compare)
        code.join(missing)
        position = code.load(free, 0)
        target = self.state(code, "%states", position)
        for w in range(self.words):
            code.store(target, w, code.load(mine, w))
        claim = code.raw("or", code.raw("shl", tag, 40), position)
        place = code.element("%table", code.load(slot, 0))
        pair = code.value(f"cmpxchg ptr {place}, i64 0, i64 {claim} acq_rel acquire, align 8")
        code.split(code.value(f"extractvalue {{ i64, i1 }} {pair}, 1"), won_label, lost_label)
        code.join(won_label)
        code.store(free, 0, code.raw("add", position, 1))
        code.jump(end_label)
        code.join(lost_label)
        rival = code.value(f"extractvalue {{ i64, i1 }} {pair}, 0")
        code.leave_if(code.compare("ne", code.raw("lshr", rival, 40), tag), on)
        beaten = code.block
        code.jump(compare)
        code.join(compare)
        either = code.value(f"phi i64 [ {entry}, %{probe_block} ], [ {rival}, %{beaten} ]")
        theirs = self.state(code, "%states", code.raw("and", either, POSITION))
        code.split(self._same(code, mine, theirs), end_label, on)
        code.join(end_label)

    def find(self) -> str:
        """@find(state, table, mask, states): the position of a state, 0 if it is not there."""
        code = self._function("find", ("ptr %state", "ptr %table", "i64 %mask", "ptr %states"), "i64")
        h = self.hash(code, "%state")
        entry, on = self._probe(code, h, code.raw("lshr", h, 40), code.slot(0), "missing")
        position = code.raw("and", entry, POSITION)
        code.split(self._same(code, "%state", self.state(code, "%states", position)), "same", on)
        code.join("same")
        code.effect(f"ret i64 {position}")
        code.join("missing")
        code.effect("ret i64 0")
        return code.text()

    def enter(self) -> str:
        """@enter(states, start, end, hashes, table, mask): enter at most BATCH states that the table does not have."""
        parameters = ("ptr %states", "i64 %start", "i64 %end", "ptr %hashes", "ptr %table", "i64 %mask")
        code = self._function("enter", parameters, "void")
        with code.loop("%start", "%end") as (s, _):
            h = self.hash(code, self.state(code, "%states", s))
            code.store("%hashes", code.raw("sub", s, "%start"), h)
            self._prefetch(code, code.element("%table", code.raw("and", h, "%mask")))
        slot = code.slot(0)
        with code.loop("%start", "%end") as (s, _):
            h = code.load("%hashes", code.raw("sub", s, "%start"))
            entry = code.raw("or", code.raw("shl", code.raw("lshr", h, 40), 40), s)
            head, on, end_label = code.fresh("head"), code.fresh("on"), code.fresh("entered")
            code.store(slot, 0, code.raw("and", h, "%mask"))
            code.jump(head)
            code.join(head)
            place = code.element("%table", code.load(slot, 0))
            pair = code.value(f"cmpxchg ptr {place}, i64 0, i64 {entry} monotonic monotonic, align 8")
            code.split(code.value(f"extractvalue {{ i64, i1 }} {pair}, 1"), end_label, on)
            code.join(on)
            code.store(slot, 0, code.raw("and", code.raw("add", code.load(slot, 0), 1), "%mask"))
            code.jump(head)
            code.join(end_label)
        code.effect("ret void")
        return code.text()

    def strike_out(self) -> str:
        """@strike_out(source, start, end, hashes, table, mask, states, marks): mark table entries found in source."""
        visited = ("ptr %hashes", "ptr %table", "i64 %mask", "ptr %states", "ptr %marks")
        code = self._function("strike_out", ("ptr %source", "i64 %start", "i64 %end", *visited), "void")
        with code.loop("%start", "%end") as (s, _):
            h = self.hash(code, self.state(code, "%source", s))
            code.store("%hashes", code.raw("sub", s, "%start"), h)
            self._prefetch(code, code.element("%table", code.raw("and", h, "%mask")))
        slot = code.slot(0)
        with code.loop("%start", "%end") as (s, _):
            h = code.load("%hashes", code.raw("sub", s, "%start"))
            missing, same = code.fresh("missing"), code.fresh("same")
            entry, on = self._probe(code, h, code.raw("lshr", h, 40), slot, missing)
            position = code.raw("and", entry, POSITION)
            mine, theirs = self.state(code, "%source", s), self.state(code, "%states", position)
            code.split(self._same(code, mine, theirs), same, on)
            code.join(same)
            mark = code.value(f"getelementptr inbounds i8, ptr %marks, i64 {position}")
            code.effect(f"store i8 1, ptr {mark}")
            code.jump(missing)
            code.join(missing)
        code.effect("ret void")
        return code.text()
