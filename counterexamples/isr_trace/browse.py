"""Walking through a trace in a terminal, one beat at a time, at the reader's pace and backwards too."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from isr_trace.scene import eventful
from isr_trace.show import beat, ending, heading
from isr_trace.trace import Trace

HELP = (
    "Enter or n: next, p: previous, 0 to {last}: go there, f: first, l: last, e: next event, "
    "v: all variables, /word: next beat that says it, q: leave"
)


def browse(trace: Trace, console: Console, ask: Callable[[str], str] = input) -> None:
    """Show beat after beat as `ask` answers; ends with q, or where the answers end."""
    walk = Walk(trace)
    for line in (*heading(trace), Text(HELP.format(last=walk.last), style="dim")):
        console.print(line, soft_wrap=True)
    while True:
        for line in (Text(), *beat(trace, walk.at, full=walk.full), Text(walk.message)):
            console.print(line, soft_wrap=True, highlight=False)
        try:
            answer = ask(f"T{walk.at} of {walk.last} > ").strip()
        except (EOFError, KeyboardInterrupt):
            console.print()
            return
        if answer in ("q", "quit"):
            return
        walk.go(answer)


class Walk:
    """Where the reader is; `message` is what the last answer has to be told about."""

    def __init__(self, trace: Trace) -> None:
        self.trace, self.at, self.full, self.message = trace, 0, False, ""
        self.last = len(trace.states) - 1

    def go(self, answer: str) -> None:
        self.full, self.message = False, ""
        match answer:
            case "" | "n" if self.at == self.last and self.trace.loop is not None:
                self.at, self.message = min(self.trace.loop + 1, self.last), ending(self.trace).plain
            case "" | "n":
                self._to(self.at + 1 if self.at < self.last else None, "this is the last beat")
            case "p":
                self._to(self.at - 1 if self.at else None, "this is the first beat")
            case "f":
                self.at = 0
            case "l":
                self.at = self.last
            case "v":
                self.full = True
            case "e":
                later = range(self.at + 1, self.last + 1)
                self._to(next((i for i in later if eventful(self.trace, i)), None), "no more events")
            case _ if answer.isdecimal():
                self._to(int(answer) if int(answer) <= self.last else None, f"the last beat is T{self.last}")
            case _ if answer.startswith("/") and len(answer) > 1:
                self._to(self._saying(answer[1:]), f"no beat says '{answer[1:]}'")
            case _:
                self.message = HELP.format(last=self.last)

    def _to(self, beat: int | None, otherwise: str) -> None:
        self.at, self.message = (self.at, otherwise) if beat is None else (beat, "")

    def _saying(self, word: str) -> int | None:
        """The next beat that contains the word, from the start again after the end."""
        order = [*range(self.at + 1, self.last + 1), *range(self.at + 1)]
        return next((i for i in order if any(word in line.plain for line in beat(self.trace, i))), None)
