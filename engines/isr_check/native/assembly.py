"""Writing one LLVM function as text.

A value that is known while writing is a Python int or bool. A value known only when the function runs is the name of a
register: an i64 for an Int, an i1 for a Bit. Operations on known values are done at once. An operation that was written
before is not written again where its result still stands. So users of this class need not optimise.

It makes text and does not use llvmlite's builder, because text is ten times faster to make and needs no type but str.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager

UNROLL = ", !llvm.loop !0"
METADATA = ("!0 = distinct !{!0, !1}", '!1 = !{!"llvm.loop.unroll.full"}')
"""What is written at the branch that ends a loop that is to be unrolled; and in the module, what that means."""
Int = int | str
Bit = bool | str


class Code:
    """`parameters` are LLVM's, `ptr noalias %cells`; the registers that they name may be used."""

    def __init__(
        self,
        name: str,
        parameters: Iterable[str],
        returns: str = "void",
        attributes: str = "",
        inner: bool = True,
    ) -> None:
        linkage = "internal " if inner else ""
        self.head = f"define {linkage}{returns} @{name}({', '.join(parameters)}) nounwind {attributes}"
        self.slots: list[str] = []
        self.lines: list[str] = []
        self.count = 0
        self.block = "entry"
        self.result_layers: list[dict[object, object]] = [{}]

    def text(self) -> str:
        return "\n".join([f"{self.head} {{", "entry:", *self.slots, *self.lines, "}", ""])

    # what has been computed already, by scope: a conditional part forgets what it computed when it ends

    def known_result(self, key: object) -> object | None:
        for layer in reversed(self.result_layers):
            if (found := layer.get(key)) is not None:
                return found
        return None

    def remember(self, key: object, value: object) -> None:
        self.result_layers[-1][key] = value

    # instructions

    def fresh(self, prefix: str = "%v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def effect(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}")

    def value(self, instruction: str) -> str:
        """An instruction whose result may differ from time to time."""
        name = self.fresh()
        self.lines.append(f"  {name} = {instruction}")
        return name

    def pure(self, instruction: str) -> str:
        """An instruction that gives the same result wherever it stands in this function."""
        register = self.known_result(instruction)
        if register is None:
            register = self.value(instruction)
            self.remember(instruction, register)
        assert isinstance(register, str)
        return register

    def raw(self, operation: str, a: Int, b: Int) -> str:
        """A binary operation that is written every time, even if it was computed before."""
        return self.value(f"{operation} i64 {a}, {b}")

    def compare(self, relation: str, a: Int, b: Int) -> str:
        return self.value(f"icmp {relation} i64 {a}, {b}")

    def element(self, pointer: str, index: Int) -> str:
        return self.value(f"getelementptr inbounds i64, ptr {pointer}, i64 {index}")

    # numbers

    def add(self, a: Int, b: Int) -> Int:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return a if b == 0 else b
        return self.pure(f"add i64 {a}, {b}")

    def sub(self, a: Int, b: Int) -> Int:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self.pure(f"sub i64 {a}, {b}")

    def mul(self, a: Int, b: Int) -> Int:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1 or b == 1:
            return a if b == 1 else b
        return self.pure(f"mul i64 {a}, {b}")

    def bits_and(self, a: Int, b: Int) -> Int:
        if isinstance(a, int) and isinstance(b, int):
            return a & b
        return 0 if a == 0 or b == 0 else self.pure(f"and i64 {a}, {b}")

    def bits_or(self, a: Int, b: Int) -> Int:
        if isinstance(a, int) and isinstance(b, int):
            return a | b
        if a == 0 or b == 0:
            return a if b == 0 else b
        return self.pure(f"or i64 {a}, {b}")

    def bits_not(self, a: Int) -> Int:
        return ~a & (1 << 64) - 1 if isinstance(a, int) else self.pure(f"xor i64 {a}, -1")

    def shift_left(self, a: Int, b: Int) -> Int:
        if isinstance(a, int) and isinstance(b, int):
            return a << b
        return a if b == 0 else self.pure(f"shl i64 {a}, {b}")

    def shift_right(self, a: Int, b: Int) -> Int:
        if isinstance(a, int) and isinstance(b, int):
            return a >> b
        return a if b == 0 else self.pure(f"lshr i64 {a}, {b}")

    def population(self, a: Int) -> Int:
        if isinstance(a, int):
            return a.bit_count()
        return self.pure(f"call i64 @llvm.ctpop.i64(i64 {a})")

    def least(self, a: Int, b: Int) -> Int:
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return a if a == b else self.pure(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def greatest(self, a: Int, b: Int) -> Int:
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return a if a == b else self.pure(f"call i64 @llvm.smax.i64(i64 {a}, i64 {b})")

    def select(self, condition: Bit, a: Int, b: Int) -> Int:
        if isinstance(condition, bool):
            return a if condition else b
        return a if a == b else self.pure(f"select i1 {condition}, i64 {a}, i64 {b}")

    # truth

    def equal(self, a: Int, b: Int) -> Bit:
        if isinstance(a, int) and isinstance(b, int):
            return a == b
        return True if a == b else self.pure(f"icmp eq i64 {a}, {b}")

    def less(self, a: Int, b: Int) -> Bit:
        if isinstance(a, int) and isinstance(b, int):
            return a < b
        return False if a == b else self.pure(f"icmp slt i64 {a}, {b}")

    def at_most(self, a: Int, b: Int) -> Bit:
        return self.negate(self.less(b, a))

    def below(self, a: Int, size: int) -> Bit:
        """0 <= a < size."""
        if isinstance(a, int):
            return 0 <= a < size
        return self.pure(f"icmp ult i64 {a}, {size}") if size > 0 else False

    def negate(self, a: Bit) -> Bit:
        return not a if isinstance(a, bool) else self.pure(f"xor i1 {a}, true")

    def both(self, a: Bit, b: Bit) -> Bit:
        if a is False or b is False:
            return False
        if a is True or b is True or a == b:
            return b if a is True else a
        return self.pure(f"and i1 {a}, {b}")

    def either(self, a: Bit, b: Bit) -> Bit:
        if a is True or b is True:
            return True
        if a is False or b is False or a == b:
            return b if a is False else a
        return self.pure(f"or i1 {a}, {b}")

    def same(self, a: Bit, b: Bit) -> Bit:
        if isinstance(a, bool):
            return b if a else self.negate(b)
        if isinstance(b, bool):
            return a if b else self.negate(a)
        return True if a == b else self.pure(f"icmp eq i1 {a}, {b}")

    def select_bit(self, condition: Bit, a: Bit, b: Bit) -> Bit:
        if isinstance(condition, bool):
            return a if condition else b
        if a == b and type(a) is type(b):
            return a
        if isinstance(a, bool):
            return self.either(condition, b) if a else self.both(self.negate(condition), b)
        if isinstance(b, bool):
            return self.either(self.negate(condition), a) if b else self.both(condition, a)
        return self.pure(f"select i1 {condition}, i1 {a}, i1 {b}")

    def number(self, a: Bit) -> Int:
        return int(a) if isinstance(a, bool) else self.pure(f"zext i1 {a} to i64")

    def truth(self, a: Int) -> Bit:
        return a != 0 if isinstance(a, int) else self.pure(f"icmp ne i64 {a}, 0")

    # memory: arrays of i64

    def address(self, pointer: str, index: Int) -> str:
        return pointer if index == 0 else self.pure(f"getelementptr inbounds i64, ptr {pointer}, i64 {index}")

    def peek(self, pointer: str, index: Int) -> str:
        """An element of an array that nobody writes to while this function runs."""
        return self.pure(f"load i64, ptr {self.address(pointer, index)}, align 8")

    def load(self, pointer: str, index: Int) -> str:
        return self.value(f"load i64, ptr {self.address(pointer, index)}, align 8")

    def store(self, pointer: str, index: Int, value: Int) -> None:
        self.effect(f"store i64 {signed_value(value)}, ptr {self.address(pointer, index)}, align 8")

    def increase(self, pointer: str, index: Int, by: Int = 1) -> None:
        self.store(pointer, index, self.value(f"add i64 {self.load(pointer, index)}, {by}"))

    def include(self, pointer: str, index: Int, bits: Int) -> None:
        """Set these bits of an element, too."""
        self.store(pointer, index, self.value(f"or i64 {self.load(pointer, index)}, {signed_value(bits)}"))

    def slot(self, start: Int) -> str:
        """A local variable with its first value; read and written by load and store."""
        name = self.fresh("%s")
        self.slots.append(f"  {name} = alloca i64")
        self.store(name, 0, start)
        return name

    def space(self, size: int) -> str:
        """A local array, whose values are not known at first."""
        name = self.fresh("%s")
        self.slots.append(f"  {name} = alloca [{size} x i64]")
        return name

    def array(self, start: Sequence[Int]) -> str:
        """A local array with its first values."""
        name = self.space(len(start))
        for i, value in enumerate(start):
            self.store(name, i, value)
        return name

    # control

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    def join(self, name: str) -> None:
        """Begin a block to which any block may jump; no result computed before is used in it."""
        self.label(name)
        self.result_layers = [{} for _ in self.result_layers]

    def jump(self, name: str) -> None:
        self.effect(f"br label %{name}")

    def split(self, condition: Bit, then: str, otherwise: str) -> None:
        self.effect(f"br i1 {bit(condition)}, label %{then}, label %{otherwise}")

    def leave_if(self, condition: Bit, label: str) -> None:
        """Jump to the label if the condition holds."""
        rest = self.fresh("b")
        self.split(condition, label, rest)
        self.label(rest)

    @contextmanager
    def scope(self) -> Generator[None]:
        self.result_layers.append({})
        yield
        self.result_layers.pop()

    @contextmanager
    def when(self, condition: Bit, otherwise: Callable[[], None] | None = None) -> Generator[None]:
        """Code written inside the context runs if the condition holds; else the code that `otherwise` writes."""
        number = self.fresh("")
        then, other, end_label = f"then{number}", f"else{number}", f"done{number}"
        self.split(condition, then, other)
        self.label(other)
        if otherwise is not None:
            with self.scope():
                otherwise()
        self.jump(end_label)
        self.label(then)
        with self.scope():
            yield
        self.jump(end_label)
        self.label(end_label)

    def lazily(self, condition: Bit, write: Callable[[], Bit], otherwise: bool) -> Bit:
        """The value of `write()`, whose code runs only if the condition holds; else the value `otherwise`."""
        if isinstance(condition, bool):
            return write() if condition else otherwise
        number = self.fresh("")
        then, end_label, before = f"then{number}", f"done{number}", self.block
        self.split(condition, then, end_label)
        self.label(then)
        with self.scope():
            result = write()
        after = self.block
        self.jump(end_label)
        self.label(end_label)
        return self.value(f"phi i1 [ {bit(otherwise)}, %{before} ], [ {bit(result)}, %{after} ]")

    @contextmanager
    def loop(self, start: Int, end: Int, *, unrolled: bool = False) -> Generator[tuple[str, str]]:
        """A loop over i from `start` up to, not including, `end`; yields i and the label after the loop.

        `unrolled`: LLVM's best code has the body once for each i, so that places that depend on i are known.
        """
        number = self.fresh("")
        head, body, end_label = f"head{number}", f"body{number}", f"done{number}"
        counter = self.slot(start)
        self.jump(head)
        self.label(head)
        i = self.load(counter, 0)
        self.split(self.value(f"icmp slt i64 {i}, {end}"), body, end_label)
        self.label(body)
        with self.scope():
            yield i, end_label
        self.store(counter, 0, self.value(f"add i64 {i}, 1"))
        self.effect(f"br label %{head}{UNROLL if unrolled else ''}")
        self.label(end_label)

    @contextmanager
    def subsets(self, whole: Int) -> Generator[str]:
        """A loop over the subsets of a set of bits, in ascending order from the empty one."""
        number = self.fresh("")
        head, end_label = f"head{number}", f"done{number}"
        counter = self.slot(0)
        self.jump(head)
        self.label(head)
        subset = self.load(counter, 0)
        with self.scope():
            yield subset
        following = self.raw("and", self.raw("sub", subset, whole), whole)
        self.store(counter, 0, following)
        self.split(self.compare("ne", following, 0), head, end_label)
        self.label(end_label)


def bit(value: Bit) -> str:
    return value if isinstance(value, str) else str(value).lower()


def signed_value(value: Int) -> Int:
    """A known number in the range of a signed 64-bit integer, as LLVM reads an i64."""
    return value if isinstance(value, str) or value < 1 << 63 else value - (1 << 64)
