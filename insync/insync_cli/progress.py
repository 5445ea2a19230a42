"""Progress on stderr, and the two ways a person or a machine stops a run: Ctrl-C and the memory limit."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Protocol, TypeVar

from insync_cli.runfile import peak_rss

if TYPE_CHECKING:
    from isr_check.engine import Progress

T = TypeVar("T")


class Tell(Protocol):
    """Says how many things of a kind are done, and of how many, if that is known."""

    def __call__(self, what: str, finished_count: int, total: int | None = None, /) -> None: ...


LINE_EVERY = 5.0
"""Seconds between two lines where no terminal can redraw one."""

REDRAW_EVERY = 0.2

PAST = 400
"""So many moments of work that grows are remembered; of more, every other one."""


def resident() -> int:
    """Bytes of memory held now; where the system does not tell, the most ever held."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return peak_rss()


class Brake:
    """Asked by the engine whether to stop; afterwards `reason` says who pulled it."""

    def __init__(self, memory: int | None = None) -> None:
        self.memory = memory
        self.reason: str | None = None

    def __call__(self) -> bool:
        if self.reason is None and self.memory is not None and resident() > self.memory:
            self.reason = f"the memory limit of {human_size(self.memory)}"
        return self.reason is not None

    def pull(self, number: int, _: FrameType | None) -> None:
        if self.reason is not None:
            raise KeyboardInterrupt  # a second Ctrl-C does not wait for the engine
        self.reason = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name

    def __enter__(self) -> Brake:
        try:
            self._before = {n: signal.signal(n, self.pull) for n in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # only the main thread may listen for signals
            self._before = {}
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


@contextmanager
def ended_in_order() -> Generator[threading.Event]:
    """An event that the first Ctrl-C or TERM sets, for work that then ends in order; a second one does not wait."""
    stop_request = threading.Event()

    def stops(number: int, _: FrameType | None) -> None:
        if stop_request.is_set():
            raise KeyboardInterrupt
        stop_request.set()

    before = {number: signal.signal(number, stops) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop_request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interruptible() -> Generator[None]:
    """Until it ends, TERM and HUP stop a run as Ctrl-C does: by KeyboardInterrupt, so that partial results are kept."""

    def stop(number: int, _: FrameType | None) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    try:
        before = {n: signal.signal(n, stop) for n in (signal.SIGTERM, signal.SIGHUP)}
    except ValueError:  # only the main thread may listen for signals
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def silent(what: str, finished_count: int, total: int | None = None, /) -> None:
    """Tells nobody."""


def telling(things: Sequence[T], what: str, tell: Tell) -> Iterator[T]:
    """The things one after another; those before are told to be done."""
    for n, thing in enumerate(things):
        tell(what, n, len(things))
        yield thing


class Stage:
    """A part of the work: what is counted in it, since when, and how many things were known when so many were done."""

    def __init__(self, what: str, began: float) -> None:
        self.what, self.began = what, began
        self.finished_count, self.grows = 0, False
        self.total: int | None = None
        self.share: float | None = None
        self._past: list[tuple[int, int]] = []

    def at(self, finished_count: int, total: int | None, *, grows: bool = False, share: float | None = None) -> None:
        self.finished_count, self.total, self.grows, self.share = finished_count, total, grows, share
        if grows and total is not None:
            self._past.append((finished_count, total))
            if len(self._past) > PAST:
                del self._past[::2]

    def parts(self, now: float) -> list[str]:
        """How much is done, and how long the rest takes where one can tell; else how long it took so far."""
        finished_count, total = self.finished_count, self.total
        amount = (
            f"{finished_count:,} of {total:,} {self.what}" if total is not None else f"{finished_count:,} {self.what}"
        )
        if total is None or not 0 < finished_count < total:
            return [amount if finished_count else self.what, f"{human_time(now - self.began)} so far"]
        if self.share:
            return [amount, f"estimate {human_time((now - self.began) * (1 / self.share - 1))} more"]
        each = (now - self.began) / finished_count
        if not self.grows:
            return [amount, f"estimate {human_time(each * (total - finished_count))} more"]
        new = self._new_for_each()
        if new is None:
            return [amount, f"at least {human_time(each * (total - finished_count))} more"]
        return [amount, f"estimate {human_time(each * (total - finished_count) / (1 - new))} more"]

    def _new_for_each(self) -> float | None:
        """How many things became known for each of the last quarter that was done; None while as many do, or nearly."""
        before = next(((d, t) for d, t in reversed(self._past) if d <= 0.75 * self.finished_count), None)
        if before is None or self.total is None:
            return None
        new = (self.total - before[1]) / (self.finished_count - before[0])
        return new if new < 0.9 else None


class Ticker:
    """One line that is redrawn in a terminal, a line every few seconds elsewhere, nothing when quiet."""

    def __init__(
        self, *, quiet: bool, plain: bool, clock: Callable[[], float] = time.monotonic, memory: int | None = None
    ) -> None:
        self.quiet, self.clock, self.memory = quiet, clock, memory
        self.redraws = not plain and sys.stderr.isatty()
        self.levels: dict[int, int] = {}
        self.last = clock()
        self.stage = Stage("", self.last)
        self.line_length, self.page = 0, ""

    def __enter__(self) -> Ticker:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def __call__(self, at: Progress) -> None:
        self.levels[at.depth] = at.frontier
        now = self.clock()
        if self.memory is not None and at.state_bytes and not self.quiet:
            sys.stderr.write(forecast(self.memory, at.state_bytes) + "\n")
            self.memory = None
        self.name_page(at.page)
        if self._due(now):
            self.draw(self.parts(at), now)

    def name_page(self, page: str) -> None:
        """Say once where the page about the work is, if there is one."""
        if page and page != self.page and not self.quiet:
            self.close()
            sys.stderr.write(f"the work of this run in Spark's own words: {page}\n")
        self.page = page or self.page

    def count(
        self, finished_count: int, total: int | None, what: str, *, grows: bool = False, share: float | None = None
    ) -> None:
        """Tell how many things are done and how long the rest takes.

        `grows`: more become known on the way. `share`: how much of the work is done, where things are not alike.
        """
        now = self.clock()
        if self._due(now):
            if finished_count < self.stage.finished_count:  # it is counted anew
                self.stage = Stage(what, now)
            self.stage.what = what
            self.stage.at(finished_count, total, grows=grows, share=share)
            self.draw(self.stage.parts(now), now)

    def count_each(self, things: Iterable[T], total: int | None, what: str) -> Iterator[T]:
        """The things as they come, counted."""
        for n, thing in enumerate(things, 1):
            self.count(n, total, what)
            yield thing

    @contextmanager
    def meanwhile(self, what: str) -> Generator[Tell]:
        """Tell how long the block has taken so far, and how far it is, where it says so: `tell("lines", 20, 100)`.

        Each other word begins another stage, with an estimate of its own. A thread draws, so the block must not fork.
        """
        over = threading.Event()
        self.stage = Stage(what, self.clock())

        def record_progress(what: str, finished_count: int, total: int | None = None) -> None:
            if what != self.stage.what or finished_count < self.stage.finished_count:
                self.stage = Stage(what, self.clock())
            self.stage.finished_count, self.stage.total = finished_count, total

        def tell() -> None:
            while not over.wait(REDRAW_EVERY):
                now = self.clock()
                if self._due(now):
                    self.draw(self.stage.parts(now), now)

        teller = threading.Thread(target=tell, daemon=True)
        teller.start()
        try:
            yield record_progress
        finally:
            over.set()
            teller.join()
            self.close()

    def _due(self, now: float) -> bool:
        return not self.quiet and now - self.last >= (REDRAW_EVERY if self.redraws else LINE_EVERY)

    def draw(self, parts: Sequence[str], now: float) -> None:
        """Write the parts as one line. Where the terminal is too narrow, the parts in the middle are left out."""
        self.last = now
        if self.redraws:
            line = fitting(parts, shutil.get_terminal_size().columns - 1)
            sys.stderr.write("\r" + line.ljust(self.line_length))
            self.line_length = len(line)
        else:
            sys.stderr.write(" · ".join(parts) + "\n")
        sys.stderr.flush()

    def line(self, at: Progress) -> str:
        """The line of a log, which has room for every part."""
        return " · ".join(self.parts(at))

    def parts(self, at: Progress) -> list[str]:
        rate = at.distinct / at.seconds if at.seconds > 0 else 0.0
        repeats = 1 - at.distinct / at.generated if at.generated > at.distinct else 0.0
        total = estimate(list(self.levels.values()))
        size = f", {human_size(int(total * at.state_bytes))}" if total and at.state_bytes else ""
        others = at.page or at.beside  # who works elsewhere has memory of its own
        parts = [
            f"depth {at.depth}",
            *([f"estimate {two_digits(total)} states in all{size}"] if total else []),
            f"frontier {at.frontier:,}",
            f"{at.distinct:,} states",
            f"{rate:,.0f} states/s",
            f"{repeats:.0%} duplicates",
            human_size(resident()) + (" in this process" if others else ""),
        ]
        parts += ["the rest in files"] if at.on_disk else []
        parts += at.beside
        left = (total - at.distinct) / rate if total and rate else 0.0
        return [*parts, f"estimate {human_time(left)} more"] if left > 0 else parts

    def close(self) -> None:
        if self.line_length:
            sys.stderr.write("\r" + " " * self.line_length + "\r")
            sys.stderr.flush()
            self.line_length = 0


def fitting(parts: Sequence[str], width: int) -> str:
    """The parts in one line of a width. The last (an estimate) and the first stay longest; a line that wraps cannot be
    redrawn."""
    kept = list(parts)
    while len(" · ".join(kept)) > width and len(kept) > 2:
        del kept[-2]
    line = " · ".join(kept)
    return line if len(line) <= width else kept[0][:width] if len(kept) == 1 else _shortened_pair(kept, width)


def _shortened_pair(two: Sequence[str], width: int) -> str:
    """Two parts that do not fit: as much of the first as there is room for beside the second."""
    first, last = two
    room = width - len(last) - 3
    return f"{first[:room]} · {last}" if room >= 8 else first[:width]


def human_time(seconds: float) -> str:
    """Two digits are enough for a guess."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def estimate(levels: list[int]) -> int | None:
    """All states, extrapolated from the sizes of the levels; None while their growth does not slow down.

    Levels of a breadth-first search rise and fall about like a bell curve: the ratio of neighbours shrinks
    by a steady factor, taken here over the last four levels.
    """
    if len(levels) < 8 or min(levels[-5:]) < 1:
        return None
    ratios = [b / a for a, b in zip(levels[-5:], levels[-4:], strict=False)]
    factor = (ratios[-1] / ratios[0]) ** (1 / (len(ratios) - 1))
    if factor > 0.995:
        return None
    total, size, ratio = float(sum(levels)), float(levels[-1]), ratios[-1]
    while size >= 1 and total < 1e15:
        ratio *= factor
        size *= ratio
        total += size
    return int(total)


def forecast(memory: int, state_bytes: float) -> str:
    """Before a run with a memory limit: how far it will go without files."""
    held = max(0, memory - resident())
    return (
        f"estimate: at {state_bytes:.0f} bytes a state, {human_size(memory)} hold about "
        f"{two_digits(int(held / state_bytes))} states; more are compressed, then go to files"
    )


def two_digits(n: int) -> str:
    """An estimate deserves two digits."""
    scale = max(1, 10 ** (len(str(n)) - 2))
    return f"{round(n / scale) * scale:,}"


def human_size(size: int) -> str:
    amount = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit != "GB" else f"{amount:.1f} GB"
        amount /= 1024
    return f"{amount:.1f} TB"
