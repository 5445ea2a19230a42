"""Scenarios as text: what goes wrong when, on which design, and what is to come of it.

    design kraft-3.5
    set min.insync.replicas 1
    at 500 crash 2
    at 3000 lose-power 1
    end 8000
    expect broken committed-only-grows

Times are milliseconds after clients have begun. One statement per line, `#` begins a comment. Brokers are 1, 2, 3 ...;
in `cut` there are `controller` and `clients`, too; `leader` is whom the controller takes to lead partition 0 just then.

| statement | |
|---|---|
| `design NAME`, `set NAME VALUE`, `brokers N` | what runs; settings by Kafka's names, over `simulate.QUICK` |
| `unclean forgiven` | what an unclean leader has not is lost by consent: only what is acknowledged since counts |
| `weather fair` or `weather bad` | whether messages are also lost, doubled and late by chance; fair unless said |
| `at T crash B` | the process dies (broker_crashes) |
| `at T lose-power B` | the machine dies, and with it all that was not flushed (broker_loses_power) |
| `at T shut-down B`, `at T start B` | stop in order; start again |
| `at T pause B for D` | the process does nothing for so long |
| `at T cut A -> B`, `at T cut A - B` | messages are lost in one direction, or in both |
| `at T slow A -> B by D`, `at T slow A - B by D` | messages sent from then on take so much longer |
| `at T join A -> B`, `at T join A - B`, `at T join all` | they arrive again, and in time |
| `at T lead B` | an admin puts B first in the order of assignment, and has the preferred leader elected |
| `at T retain B` | for a moment all old segments of a broker are too old (log.retention.ms) |
| `at T lose-tail B` | the end of a log is lost on a broker that does not run |
| `at T fill B` | the disk has room for little more, until the broker is started again |
| `at T remake topic` | the topic is deleted, and created again under its name |
| `at T rot metadata` | the controller dies, and a bit of its log flips; somebody mends it |
| `at T restart controller`, `at T pause controller for D` | with its durable log; as a process that hangs |
| `end T` | from then on everything works and runs, and the cluster must converge |
| `expect kept` | every promise was kept, and the cluster converged |
| `expect broken PROMISE` | this one was broken, whatever others were before |
| `expect took ACTION` | the action was taken at least once |
| `expect acked N` | at least so many writes were acknowledged, with whatever acks |
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import partial
from typing import Final

import attrs

from isr_broker.core.effects import CONTROLLER
from isr_broker.core.messages import BrokerId, ElectPreferredLeader, Millis
from isr_broker.runtime import Runtime
from isr_broker.settings import BadSetting, Settings
from isr_broker.storage.disk_memory import Everything, Nothing
from isr_sim.invariants import Invariants, Violation
from isr_sim.simulate import QUICK, Config, Outcome, Run
from isr_sim.world import FAIR, Weather, World

LEADER: Final = 0
"""Whoever leads when the statement is carried out; no broker has this number."""

CLIENTS: Final = -2

OF_A_BROKER: Final = ("crash", "lose-power", "shut-down", "start", "lead", "retain", "lose-tail", "fill")
DEEDS: Final = (*OF_A_BROKER, "pause", "cut", "slow", "join", "restart", "remake", "rot")
STATEMENTS: Final = ("design", "set", "brokers", "weather", "unclean", "at", "end", "expect")


class BadScenario(ValueError):
    """A text that is no scenario; the message says in which line, and what would be."""


@attrs.frozen
class Deed:
    """Something that is done to brokers, or to the ways between them, at a time."""

    at: Millis
    kind: str
    who: BrokerId = CONTROLLER
    to: BrokerId | None = None
    both: bool = False
    lasting: Millis = 0

    def __str__(self) -> str:
        match self.kind:
            case "cut" | "join" if self.to is None:
                what = "all"
            case "remake":
                what = "topic"
            case "rot":
                what = "metadata"
            case "slow":
                what = f"{_name(self.who)} {'-' if self.both else '->'} {_name(self.to)} by {self.lasting}"
            case "cut" | "join":
                what = f"{_name(self.who)} {'-' if self.both else '->'} {_name(self.to)}"
            case "pause":
                what = f"{_name(self.who)} for {self.lasting}"
            case _:
                what = _name(self.who)
        return f"at {self.at} {self.kind} {what}"


@attrs.frozen
class Expectation:
    """`kept`, `broken` a promise, `took` an action, or `acked` so many."""

    kind: str
    what: str = ""

    def __str__(self) -> str:
        return f"expect {self.kind} {self.what}".rstrip()

    def is_met_by(self, outcome: Outcome) -> bool:
        """Whether the run came to it."""
        match self.kind:
            case "kept":
                return outcome.promise is None
            case "broken":
                return outcome.promise == self.what
            case "took":
                return outcome.actions.get(self.what, 0) > 0
            case _:
                return outcome.acked >= int(self.what)


@attrs.frozen(kw_only=True)
class Scenario:
    """What was read; `str` gives the text again, without comments."""

    settings: tuple[tuple[str, str], ...] = ()
    brokers: int = 3
    bad_weather: bool = False
    forgives_unclean: bool = False
    deeds: tuple[Deed, ...] = ()
    end: Millis = 8_000
    expectations: tuple[Expectation, ...] = (Expectation("kept"),)

    def __str__(self) -> str:
        head = [f"design {v}" if n == "insync.design" else f"set {n} {v}" for n, v in self.settings]
        head += [f"brokers {self.brokers}"] if self.brokers != 3 else []
        head += ["weather bad"] if self.bad_weather else []
        head += ["unclean forgiven"] if self.forgives_unclean else []
        lines = [*head, *map(str, self.deeds), f"end {self.end}", *map(str, self.expectations)]
        return "\n".join(lines) + "\n"

    def config(self) -> Config:
        """How the simulator is to be set."""
        usual = Settings().properties()
        quick = {name: value for name, value in QUICK.properties().items() if value != usual[name]}
        copies = {"default.replication.factor": str(min(self.brokers, 3))}
        settings = Settings.from_properties({**quick, **copies, **dict(self.settings)})
        weather = Weather() if self.bad_weather else FAIR
        return Config(
            settings=settings,
            brokers=self.brokers,
            kinds=(),
            weather=weather,
            safety_ms=self.end,
            forgives_unclean=self.forgives_unclean,
        )


def _name(who: BrokerId | None) -> str:
    names = {CONTROLLER: "controller", CLIENTS: "clients", LEADER: "leader"}
    return "?" if who is None else names.get(who, str(who))


# Reading


def parse(text: str) -> Scenario:
    """The scenario of a text; BadScenario if it is none."""
    scenario, expectations = Scenario(expectations=()), list[Expectation]()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            if words[0] == "expect":
                expectations.append(_expectation(words[1:]))
            else:
                scenario = _with(scenario, words)
        except (BadScenario, BadSetting) as error:
            raise BadScenario(f"line {number}: {error}") from None
    for deed in scenario.deeds:
        for broker in (deed.who, deed.to):
            if broker is not None and broker > scenario.brokers:
                raise BadScenario(f"'{deed}': there are {scenario.brokers} brokers")
        if deed.at > scenario.end:
            raise BadScenario(f"'{deed}' is after the end, {scenario.end}")
    if not expectations:
        raise BadScenario("nothing is expected of it; 'expect kept' says that every promise is kept")
    deeds = tuple(sorted(scenario.deeds, key=lambda deed: deed.at))
    return attrs.evolve(scenario, deeds=deeds, expectations=tuple(expectations))


def _with(scenario: Scenario, words: list[str]) -> Scenario:
    match words:
        case ["design", name]:
            return _setting(scenario, "insync.design", name)
        case ["set", name, value]:
            return _setting(scenario, name, value)
        case ["brokers", count]:
            return attrs.evolve(scenario, brokers=_number(count, "a number of brokers", 1))
        case ["weather", "fair" | "bad" as weather]:
            return attrs.evolve(scenario, bad_weather=weather == "bad")
        case ["unclean", "forgiven"]:
            return attrs.evolve(scenario, forgives_unclean=True)
        case ["end", at]:
            return attrs.evolve(scenario, end=_number(at, "a time"))
        case ["at", at, *deed]:
            return attrs.evolve(scenario, deeds=(*scenario.deeds, _deed(_number(at, "a time"), deed)))
        case [name, *_] if name in STATEMENTS:
            raise BadScenario(f"'{' '.join(words)}' is incomplete, or too much")
        case _:
            raise BadScenario(f"there is no statement '{words[0]}'{_suggestion(words[0], STATEMENTS)}")


def _setting(scenario: Scenario, name: str, value: str) -> Scenario:
    """The setting beside those of the lines before, for some contradict each other."""
    changed = attrs.evolve(scenario, settings=(*(s for s in scenario.settings if s[0] != name), (name, value)))
    changed.config()
    return changed


def _deed(at: Millis, words: list[str]) -> Deed:
    match words:
        case [kind, who] if kind in OF_A_BROKER:
            return Deed(at, kind, _broker(who))
        case ["remake", "topic"]:
            return Deed(at, "remake")
        case ["rot", "metadata"]:
            return Deed(at, "rot")
        case ["pause", "controller", "for", lasting]:
            return Deed(at, "pause", CONTROLLER, lasting=_number(lasting, "a duration"))
        case ["pause", who, "for", lasting]:
            return Deed(at, "pause", _broker(who), lasting=_number(lasting, "a duration"))
        case ["restart", "controller"]:
            return Deed(at, "restart", CONTROLLER)
        case ["join", "all"]:
            return Deed(at, "join")
        case ["cut" | "join" as kind, who, "->" | "-" as way, to]:
            return Deed(at, kind, _end(who), _end(to), both=way == "-")
        case ["slow", who, "->" | "-" as way, to, "by", lasting]:
            late = _number(lasting, "a duration")
            return Deed(at, "slow", _end(who), _end(to), both=way == "-", lasting=late)
        case [name, *_] if name in DEEDS:
            raise BadScenario(f"'{' '.join(words)}' is not how {name} is said")
        case _:
            name = words[0] if words else ""
            raise BadScenario(f"nobody can '{name}'{_suggestion(name, DEEDS)}")


def _expectation(words: list[str]) -> Expectation:
    match words:
        case ["kept"]:
            return Expectation("kept")
        case ["broken" | "took" as kind, what]:
            return Expectation(kind, what)
        case ["acked", count]:
            return Expectation("acked", str(_number(count, "a number of writes")))
        case _:
            raise BadScenario("expected is one of: kept, broken PROMISE, took ACTION, acked N")


def _number(text: str, what: str, least: int = 0) -> int:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or int(text) < least:
        raise BadScenario(f"'{text}' is not {what}")
    return int(text)


def _broker(text: str) -> BrokerId:
    return LEADER if text == "leader" else _number(text, "a broker", 1)


def _end(text: str) -> BrokerId:
    return {"controller": CONTROLLER, "clients": CLIENTS}.get(text) or _broker(text)


def _suggestion(name: str, choices: tuple[str, ...]) -> str:
    close = get_close_matches(name, choices, n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else ""


# Running


@attrs.define(kw_only=True)
class WatchedPromises(Invariants):
    """Only these promises end a run, if any are named: a stronger one is often broken before that which is shown."""

    promises: frozenset[str] = frozenset()

    def check_step(self, world: World) -> None:
        """Every promise, but only the watched ones matter."""
        try:
            super().check_step(world)
        except Violation as violation:
            if not self.promises or violation.promise in self.promises:
                raise


def play(scenario: Scenario, seed: int, keeps_lines: bool = False) -> Outcome:
    """Carry the scenario out; the seed decides what it leaves open: delays, clocks, who is asked."""
    broken = frozenset(e.what for e in scenario.expectations if e.kind == "broken")
    run = Run(
        attrs.evolve(scenario.config(), keeps_lines=keeps_lines), seed, invariants=WatchedPromises(promises=broken)
    )
    try:
        run.set_up()
        run.world.weather = run.config.weather
        for deed in scenario.deeds:
            run.world.after(deed.at, partial(do, run, deed))
        run.world.run(run.world.now + scenario.end)
        healed = run.heal()
    except Violation as violation:
        run.world.note(f"violated: {violation}")
        return run.outcome(violation, 0)
    return run.outcome(None, healed)


def do(run: Run, deed: Deed) -> None:
    """One deed; on a broker that does not run only `start` does anything, on one that does it does nothing."""
    world, who = run.world, _who(run, deed.who)
    world.note(str(deed))
    if deed.kind in ("cut", "slow", "join"):
        pairs = _pairs(run, who, deed)
        world.cut = world.cut | pairs if deed.kind == "cut" else world.cut - pairs
        world.lag = {pair: late for pair, late in world.lag.items() if pair not in pairs}
        world.lag |= dict.fromkeys(pairs, deed.lasting) if deed.kind == "slow" else {}
        return
    if deed.kind == "lead":
        leads(world, who)
        return
    if deed.kind == "remake":
        run.admin.wants_another(world)
        return
    if deed.kind == "rot":
        run.faults.rots_metadata()
        return
    if who == CONTROLLER:
        if deed.kind == "restart":
            world.restart_controller()
        else:
            world.pause(world.seat, deed.lasting)
        return
    host = world.hosts[who]
    match deed.kind:
        case "start" if not host.alive:
            host.disk.room = None
            world.start(host)
        case "lose-tail" if not host.alive:
            run.faults.loses_tail(host)
        case "fill" if host.alive:
            run.faults.fills(host)
        case "retain" if host.alive:
            run.faults.retains(host)
        case "crash" if host.alive:
            world.stop(host, Everything())
        case "lose-power" if host.alive:
            run.invariants.lossy = True
            world.stop(host, Nothing())
        case "shut-down" if host.alive:
            world.shut_down(host)
        case "pause" if host.alive:
            world.pause(host, deed.lasting)
        case _:
            pass


def leads(world: World, broker: BrokerId) -> None:
    """Another order of assignment (AlterPartitionReassignments), and an election of the preferred leader by it."""

    def happens(runtime: Runtime, now: Millis) -> None:
        core = runtime.controller
        assert core is not None
        tp, partition = min(core.partitions.items())
        replicas = (broker, *(b for b in partition.replicas if b != broker))
        partitions = core.partitions.set(tp, attrs.evolve(partition, replicas=replicas))
        runtime.controller = attrs.evolve(core, partitions=partitions)
        elect = ElectPreferredLeader(request=0, partition=tp)
        runtime.receive_messages([(world.seat.broker, CONTROLLER, elect)], now)

    world.turn(world.seat, happens)


def _who(run: Run, who: BrokerId) -> BrokerId:
    """The broker itself; while nobody leads, `leader` is whoever led last."""
    if who != LEADER:
        return who
    partition = min(run.world.controller.partitions.items())[1]
    return next(b for b in (partition.leader, partition.last_known_leader, partition.replicas[0]) if b is not None)


def _pairs(run: Run, who: BrokerId, deed: Deed) -> set[tuple[BrokerId, BrokerId]]:
    if deed.to is None:
        return {*run.world.cut, *run.world.lag}
    clients = [*(p.identity for p in run.producers), *(c.identity for c in run.consumers)]
    sources, targets = (clients if end == CLIENTS else [end] for end in (who, _who(run, deed.to)))
    pairs = {(source, target) for source in sources for target in targets}
    return pairs | {(target, source) for source, target in pairs} if deed.both else pairs
