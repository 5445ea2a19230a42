"""What "lagging" meant, and means: three rules by which a leader puts a follower out, asked of the same run.

- *messages*: it lacks more than so many (`replica.lag.max.messages`, 4,000 by default; 0.8, removed by KIP-16 in 0.9).
- *last fetch*: it has not fetched for so long (`replica.lag.time.max.ms` in 0.8, 10 s by default).
- *caught up*: it has not had everything for so long (`replica.lag.time.max.ms` since 0.9, KIP-16; 10 s by default, 30 s
  since KIP-537 in 2.5). Had everything: up to the log end at its previous fetch (Replica.updateFetchStateOrThrow).

The rules are looked at each time that something happens, so that they differ in nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

import attrs

MESSAGES, OLD_LAG_MS, LAG_MS = 4_000, 10_000, 30_000


class Rule(Enum):
    """How a leader decides that a follower lags."""

    MESSAGES = "messages behind (0.8)"
    LAST_FETCH = "time since its last fetch (0.8)"
    CAUGHT_UP = "time since it had everything (since 0.9)"


@attrs.frozen
class Moment:
    """In milliseconds; the leader's log ends at `end`, and if the follower fetches, it fetches from `fetched` on, so
    has all before it."""

    at: int
    end: int
    fetched: int | None = None


def run(seconds: int, *, a_second: int, fetches: Mapping[int, int], burst: tuple[int, int] = (0, 0)) -> list[Moment]:
    """A second is a moment: `a_second` records come in each, `burst[1]` more in second `burst[0]`; `fetches` says in
    which second the follower fetches from where, and stands for what it does in that second."""
    moments, end = list[Moment](), 0
    for second in range(seconds + 1):
        end += a_second + (burst[1] if second == burst[0] else 0)
        moments.append(Moment(second * 1_000, end, fetches.get(second)))
    return moments


def put_out(moments: Sequence[Moment], rule: Rule, *, lag_ms: int) -> int | None:
    """When the follower lags by the rule, in milliseconds; None if it never does. At first it has everything."""
    fetched_at = caught_up_at = before_at = 0
    position = before_end = 0
    for m in moments:
        if m.fetched is not None:
            position, fetched_at = m.fetched, m.at
            if m.fetched >= m.end:
                caught_up_at = m.at
            elif m.fetched >= before_end:
                caught_up_at = max(caught_up_at, before_at)
            before_at, before_end = m.at, m.end
        lags = {
            Rule.MESSAGES: m.end - position > MESSAGES,
            Rule.LAST_FETCH: m.at - fetched_at > lag_ms,
            Rule.CAUGHT_UP: position < m.end and m.at - caught_up_at > lag_ms,
        }
        if lags[rule]:
            return m.at
    return None


def followers(seconds: int = 60, a_second: int = 100, burst: int = 5_000) -> Mapping[str, Sequence[Moment]]:
    """Three followers: one that is well while a producer sends a burst, one that fetches all the time and is too slow,
    one that stops after ten seconds."""
    well = {s: a_second * s + (burst if s > 20 else 0) for s in range(1, seconds + 1)}
    slow = {s: s * (a_second * 4 // 5) for s in range(1, seconds + 1)}
    stopped = {s: a_second * s for s in range(1, 11)}
    return {
        "well, and a producer sends a burst": run(seconds, a_second=a_second, fetches=well, burst=(20, burst)),
        "fetches every second, four fifths of what comes": run(seconds, a_second=a_second, fetches=slow),
        "stops": run(seconds, a_second=a_second, fetches=stopped),
    }


def verdicts(lag_ms: int = OLD_LAG_MS) -> Mapping[str, Mapping[Rule, int | None]]:
    """By follower and rule, when it is put out."""
    return {name: {r: put_out(moments, r, lag_ms=lag_ms) for r in Rule} for name, moments in followers().items()}
