"""The state that stands for all that make no difference from it (isr_check.reduction), as an LLVM function."""

from __future__ import annotations

from collections.abc import Iterable

from isr_check.native.assembly import Bit, Code, Int
from isr_check.native.layout import Layout
from isr_check.reduction import Reduction
from isr_check.reduction_rules import JoinRule, VersionRule

ALL = (1 << 64) - 1


class Merging:
    """Writes @merged(words), which changes a packed state in place. It does what Reduction.representative says."""

    def __init__(self, layout: Layout, reduction: Reduction) -> None:
        self.layout, self.reduction, self.exact = layout, reduction, type(layout)(layout.instance)
        # Inlined into the loop over the successors, it came out as wrong machine code (llvmlite with LLVM 22).
        self.code = Code("merged", ("ptr %words",), attributes="noinline")
        self.words: list[Int] = [self.code.peek("%words", w) for w in range(layout.words)]

    def text(self) -> str:
        for rule in self.reduction.version_rules:
            keys = range(len(self._cells(rule.versions)))
            passed = [self._version_has_passed(rule, key) for key in keys]
            for key in keys:
                self._blank(rule, key, passed[key])
        for join in self.reduction.join_rules:
            for key in range(len(self._cells(join.members))):
                self._join(join, key)
        for w, word in enumerate(self.words):
            self.code.store("%words", w, word)
        self.code.effect("ret void")
        return self.code.text()

    def _cells(self, variable: str, key: int | None = None) -> list[int]:
        """The variable's cells, or those at a key."""
        places = enumerate(self.layout.places)
        return [i for i, p in places if p.variable == variable and (key is None or p.keys[0][1] == key)]

    def _value(self, variable: str, key: int | None = None) -> Int:
        (cell,) = self._cells(variable, key)
        at, code = self.layout.cells[cell], self.code
        return code.add(code.bits_and(code.shift_right(self.words[at.word], at.shift), at.mask), at.low)

    def _version_has_passed(self, rule: VersionRule, key: int) -> Bit:
        now, code = self._value(rule.current), self.code
        first = self.reduction.first(rule.versions)
        return code.both(code.less(first, now), code.less(self._value(rule.versions, key), now))

    def _blank(self, rule: VersionRule, key: int, condition: Bit) -> None:
        """All cells of a word at once; with slack one by one, for a value out of range stays."""
        masks, firsts = [0] * len(self.words), [0] * len(self.words)
        for name in rule.blank:
            for cell in self._cells(name, key):
                at = self.layout.cells[cell]
                if self.layout.slack.number:
                    first = self.reduction.first(name) - at.low << at.shift
                    self._replace(at.word, at.mask << at.shift, first, self.code.both(condition, self._is_free(cell)))
                    continue
                masks[at.word] |= at.mask << at.shift
                firsts[at.word] |= self.reduction.first(name) - at.low << at.shift
        for w, mask in enumerate(masks):
            if mask:
                self._replace(w, mask, firsts[w], condition)

    def _is_free(self, cell: int) -> Bit:
        """Whether the cell holds a value of its type."""
        (low, high), at, code = self.exact.range(self.layout.places[cell].type), self.layout.cells[cell], self.code
        value = code.bits_and(code.shift_right(self.words[at.word], at.shift), at.mask)
        return code.below(code.sub(value, low - at.low), high - low + 1)

    def _join(self, join: JoinRule, key: int) -> None:
        code, phase, members = self.code, self._value(join.phase, key), self._value(join.members, key)
        free, passed = (
            self._among(phase, join.phases),
            self._any(self._version_has_passed(r, key) for r in join.version_rules),
        )
        free = code.either(free, code.both(passed, self._among(phase, join.waiting)))
        (cell,) = self._cells(join.members, key)
        at = self.layout.cells[cell]
        joint = code.shift_left(code.bits_or(members, self._value(join.beside, key)), at.shift)
        self._replace(at.word, at.mask << at.shift, joint, code.both(free, code.truth(members)))

    def _among(self, value: Int, values: tuple[int, ...]) -> Bit:
        return self._any(self.code.equal(value, v) for v in values)

    def _any(self, bits: Iterable[Bit]) -> Bit:
        found: Bit = False
        for bit in bits:
            found = self.code.either(found, bit)
        return found

    def _replace(self, word: int, mask: int, by: Int, condition: Bit) -> None:
        """Replace some bits of a word where the condition holds."""
        code, old = self.code, self.words[word]
        self.words[word] = code.select(condition, code.bits_or(code.bits_and(old, ~mask & ALL), by), old)
