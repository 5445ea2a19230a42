"""What the documents behind the designs argue about, computed: sizes of quorums, minima, a network in two, slow
followers, and what lagging means.

Nothing here is a verdict of a checker; docs/trade-offs.md has the sentences that it answers."""

from __future__ import annotations

from fractions import Fraction
from html import escape
from math import inf, isfinite

from isr_report import charts
from isr_report.availability import (
    Controller,
    best_minimum,
    either,
    in_sync_unavailable,
    majority_unavailable,
    split_in_sync,
    split_majority,
)
from isr_report.charts import ACCENT, BAD, GOOD, QUIET, WARM, Series
from isr_report.html import table
from isr_report.lagging import OLD_LAG_MS, Rule, verdicts
from isr_report.latency import PERCENTS, World, simulate, summary

POINTS = 24
"""Steps from never down to always down."""
NODES = (3, 5)
DOWN = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(7, 10))
FAILURES, SINGLE = (1, 2), 1
LAGS_MS = (2_000, 10_000, 30_000)
LATE_MS = 1_000.0
UNTIL_MS = 90_000.0
THOUSAND = 1_000
PERCENTILES = tuple(f"p{percent}, ms" for percent in PERCENTS)


def chances() -> str:
    """How much of the time writes go on, whatever part of it a node is down."""
    return f"{_curves()}{_minima()}{_copies()}{_splits()}"


def _curves() -> str:
    title = "<h3>From never down to always down</h3>"
    if not charts.available():
        return f'{title}<p class="quiet">{charts.MISSING}</p>'
    n = NODES[0]
    at = [Fraction(i, POINTS) for i in range(1, POINTS)]
    x = [float(p) for p in at]

    def line(name: str, colour: str, y: list[float]) -> Series:
        return Series(name, colour, x, y, marker="", has_line=True)

    lines = [
        line("one node", QUIET, x),
        line(f"majority of {n}", BAD, [float(majority_unavailable(n, p)) for p in at]),
    ]
    for minimum, colour in zip(range(1, n + 1), (ACCENT, GOOD, WARM), strict=True):
        lines.append(
            line(f"ISR, min {minimum}", colour, [float(in_sync_unavailable(n, minimum, p).no_acks) for p in at])
        )
    about = f"Part of all time without acks=all, by the part for which each of {n} nodes is down"
    ticks = [float(Fraction(i, 4)) for i in range(5)]
    svg = charts.chart(
        lines, "part of its time that a node is down", "part of all time without acks=all",
        logs="", ticks=ticks, about=about, size=(9.2, 3.9),
    )  # fmt: skip
    half = float(majority_unavailable(n, Fraction(1, 2)))
    caption = (
        f"Where a node is down for half of the time a majority of {n} is, too: {half:g}. Below, the majority is better "
        "than one node, above it is worse (Peleg and Wool). An in-sync set with a minimum of a majority waits as often "
        "as the majority does; it may be set to wait less, or more."
    )
    return f'{title}<figure class="chart wide">{svg}<figcaption>{caption}</figcaption></figure>'


def _minima() -> str:
    rows = [
        (
            f"{n}",
            f"{float(p):g}",
            ", ".join(f"{float(either(n, m, p)):.2e}" for m in range(1, n + 1)),
            f"{best_minimum(n, p)}",
        )
        for n in NODES
        for p in DOWN
    ]
    header = ("nodes", "each down for", "refused writes and records gone together, by minimum from one up", "least at")
    about = (
        "A small minimum loses records, a large one refuses writes: a write is refused while fewer nodes are up than "
        "the minimum, and a record is gone while all are down that had to have it. Both counted alike:"
    )
    return f"<h3>The minimum in between</h3><p>{about}</p>{table(header, rows, numbers=(0, 1, 3))}"


def _copies() -> str:
    rows: list[tuple[str, ...]] = []
    for f in FAILURES:
        for p in DOWN[:2]:
            many, few = 2 * f + 1, f + 1
            odds = in_sync_unavailable(few, SINGLE, p)
            whole = in_sync_unavailable(many, few, p)
            rows.append(
                (
                    f"{f}",
                    f"{float(p):g}",
                    f"{many}: {float(majority_unavailable(many, p)):.2e}",
                    f"{few}, min {SINGLE}: {float(odds.no_acks):.2e}",
                    f"{many}, min {few}: {float(whole.no_acks):.2e}",
                )
            )
    header = ("failures", "each down for", "majority, copies", "ISR, copies", "ISR with as many copies")
    about = (
        "So many failures may happen and no acknowledged record is lost, as long as every disk keeps what it has. The "
        "in-sync set needs fewer copies for it; with a minimum of one it keeps nothing through the loss of the one "
        "disk that had to have it, which the last column does."
    )
    return f"<h3>Copies for so many failures</h3><p>{about}</p>{table(header, rows, numbers=(0, 1))}"


def _splits() -> str:
    n = NODES[0]
    rows: list[tuple[str, ...]] = []
    for beside in range(1, n):
        for controller in Controller:
            goes = (split_in_sync(n, m, beside, controller).value for m in range(1, n + 1))
            rows.append((f"{beside} of {n}", controller.value, split_majority(n, beside).value, *goes))
    header = ("the leader reaches", "the controller is", "majority", *(f"ISR, min {m}" for m in range(1, n + 1)))
    about = (
        "A network in two, with the leader among some of the replicas: when acknowledged writes go on. A leader in the "
        "minority whom the controller still hears goes on leading, and waits with any minimum that its side does not "
        "reach; a majority elects on the other side."
    )
    return f"<h3>Partitions</h3><p>{about}</p>{table(header, rows)}"


def waits() -> str:
    """A slow follower: what a write waits for, by rule and by how long a follower may lag."""
    rows: list[tuple[str, ...]] = []
    for late in (inf, LATE_MS):
        for lag in LAGS_MS:
            found = simulate(World(until_ms=UNTIL_MS, late_ms=late, lag_ms=float(lag), look_ms=lag / 4))
            waits_by_rule = summary(found)
            what = "stops" if not isfinite(late) else f"is {late:,.0f} ms late"
            out = (
                "never" if found.put_out_at is None else f"after {(found.put_out_at - World().from_ms) / THOUSAND:g} s"
            )
            for rule, (p50, p99, most) in waits_by_rule.items():
                last = out if rule == "in-sync set" else "is not waited for"
                rows.append((what, f"{lag:,}", rule, f"{p50:,.1f}", f"{p99:,.1f}", f"{most:,.0f}", last))
    world = World()
    header = ("one follower", "may lag, ms", "acknowledged by", *PERCENTILES, "longest, ms", "put out")
    about = (
        f"Simulated: {world.replicas} replicas, a write every {world.every_ms:g} ms for {UNTIL_MS / THOUSAND:g} s, "
        f"delays of {world.mean_ms:g} ms on average; one follower fails after {world.from_ms / THOUSAND:g} s. A leader "
        f"alone (acks={SINGLE}) waits for nobody. A follower that is late, but never as late as it may be, is waited "
        "for by every write."
    )
    return f"<h3>One slow follower</h3><p>{about}</p>{table(header, rows, numbers=(1, 3, 4, 5))}"


def lagging() -> str:
    """The same followers by three rules."""

    def moment_text(at: int | None) -> str:
        return "stays" if at is None else f"out after {at / THOUSAND:g} s"

    rows = [(escape(name), *(moment_text(by[r]) for r in Rule)) for name, by in verdicts().items()]
    about = f"Three followers of one leader, by the rules of different releases; the time is {OLD_LAG_MS:,} ms in both."
    header = ("a follower that", *(escape(r.value) for r in Rule))
    return f"<h3>What lagging means</h3><p>{about}</p>{table(header, rows)}"
