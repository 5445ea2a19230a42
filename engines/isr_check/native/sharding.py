"""Kernels for states that are divided among owners; a state's hash says which owner has it.

    absorb    add a range of states, already representatives, to the visited set
    tally     count the states of a range by owner
    deal      sort the states of a range by owner
    locate    find the positions of a range of states in the visited set

The upper bits of a state's hash say the owner, the lower bits its place in a table, so the two are independent.
"""

from __future__ import annotations

import attrs

from isr_check.native.assembly import Code
from isr_check.native.kernels import BATCH, Job, Kernels, Marks, Program
from isr_check.native.visited import POSITION

MOST_OWNERS = 1 << 12
TAG = 24
"""How many bits of the hash say the owner."""


class Sharding(Kernels):
    """The kernels that divided states need beside those of an exploration."""

    def absorb(self) -> str:
        """Add the states START..END of SOURCE to the visited set."""
        code, job = self._kernel("absorb")
        source, hashes, table, states = (job(j) for j in (Job.SOURCE, Job.HASHES, Job.TABLE, Job.STATES))
        start, end, mask, free = job(Job.START), job(Job.END), job(Job.MASK), code.slot(job(Job.NEXT))
        batches = code.raw("udiv", code.raw("add", code.raw("sub", end, start), BATCH - 1), BATCH)
        with code.loop(0, batches) as (i, _):
            begin = code.raw("add", start, code.raw("mul", i, BATCH))
            n = code.raw("sub", code.least(code.raw("add", begin, BATCH), end), begin)
            at, position = self.visited.state(code, source, begin), code.load(free, 0)
            arguments = f"ptr {hashes}, ptr {table}, i64 {mask}, ptr {states}, i64 {position}"
            code.store(free, 0, code.value(f"call i64 @insert(ptr {at}, i64 {n}, {arguments})"))
        code.store("%job", Job.NEXT, code.load(free, 0))
        code.effect("ret void")
        return code.text()

    def _owner(self, code: Code, state: str, owners: str) -> str:
        upper = code.raw("lshr", self.visited.hash(code, state), POSITION.bit_length())
        return code.raw("lshr", code.raw("mul", upper, owners), TAG)

    def tally(self) -> str:
        """RESULTS[owner] counts the states START..END of SOURCE of each owner; there are MASK owners."""
        code, job = self._kernel("tally")
        source, results, owners = job(Job.SOURCE), job(Job.RESULTS), job(Job.MASK)
        with code.loop(job(Job.START), job(Job.END)) as (s, _):
            code.increase(results, self._owner(code, self.visited.state(code, source, s), owners), 1)
        code.effect("ret void")
        return code.text()

    def deal(self) -> str:
        """Copy the states START..END of SOURCE to OUT, each to the place RESULTS[owner], which then grows by one."""
        code, job = self._kernel("deal")
        source, out, results, owners = job(Job.SOURCE), job(Job.OUT), job(Job.RESULTS), job(Job.MASK)
        with code.loop(job(Job.START), job(Job.END)) as (s, _):
            state = self.visited.state(code, source, s)
            owner = self._owner(code, state, owners)
            target = self.visited.state(code, out, code.load(results, owner))
            for w in range(self.words):
                code.store(target, w, code.load(state, w))
            code.increase(results, owner, 1)
        code.effect("ret void")
        return code.text()

    def locate(self) -> str:
        """RESULTS[i]: the position in STATES of the state START+i of SOURCE, or 0."""
        code, job = self._kernel("locate")
        source, results, table, states = (job(j) for j in (Job.SOURCE, Job.RESULTS, Job.TABLE, Job.STATES))
        start, mask = job(Job.START), job(Job.MASK)
        with code.loop(start, job(Job.END)) as (s, _):
            at = self.visited.state(code, source, s)
            found = code.value(f"call i64 @find(ptr {at}, ptr {table}, i64 {mask}, ptr {states})")
            code.store(results, code.sub(s, start), found)
        code.effect("ret void")
        return code.text()


KERNELS = ("absorb", "tally", "deal", "locate")


def shard_program(program: Program) -> Program:
    """The module of an exploration with these kernels added."""
    writer = Sharding(program.layout, program.most, Marks(None, None), None)
    text = "\n".join([program.text, writer.absorb(), writer.tally(), writer.deal(), writer.locate()])
    return attrs.evolve(program, text=text, kernels=(*program.kernels, *KERNELS))
