"""What the controller's ruling of a partition may have become with a line.

A state is what it ruled lately, the newest last: what is announced may be older than what is decided, and a restart
may forget what was not yet durable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, cast

import attrs

from isr_validate.line_values import Fields, Mail, fields, number, rows
from isr_validate.model_step import ALTER, Stepper, Taken, at, mask
from isr_validate.model_step import stepper as stepper_of
from isr_validate.replica_state import Ruling, announced, different
from isr_validate.trace_lines import Level, Line, Lines
from isr_validate.trace_reader import partitions_of
from isr_validate.verdict import Refused, Way

Rulings: TypeAlias = tuple[Ruling, ...]

REMEMBERED: Final = 16
"""How many rulings may wait for the disk."""

HIDDEN_STEPS: Final = 5
"""How many steps of the controller may be hidden before what it announces."""

HIDDEN_STATES: Final = 40_000
"""How many rulings are tried for that in all, before the answer is that it is not known."""

_HIDDEN: Final = (
    "controller_accepts_alter_partition",
    "controller_fences_outsider",
    "controller_fences_follower",
    "controller_fences_leader",
    "controller_fences_last_leader",
    "controller_unfences",
    "controller_elects_returned",
    "controller_elects_last_known_leader",
    "controller_moves_leadership",
    "controller_elects_unclean",
    "broker_asks_to_shut_down",
    "broker_shuts_down",
    "broker_restarts",
    "broker_restarts_unnoticed",
)

_OF_THE_RETURNED: Final = (
    "controller_unfences",
    "controller_elects_returned",
    "controller_elects_last_known_leader",
)
"""Where a heartbeat that is older than the wish to shut down makes an end of it: in Kafka, too, for a fenced broker
that does not ask to be fenced or to stop is unfenced (BrokerHeartbeatManager.calculateNextBrokerState)."""


@attrs.define
class ControllerSteps:
    """The controller's lines about one partition."""

    lines: Lines
    tp: str
    outside: dict[int, str] = attrs.field(factory=dict[int, str])
    bounded: bool = False
    hidden: int = 0
    proposals: dict[int, Mail] = attrs.field(factory=dict[int, Mail])

    def __attrs_post_init__(self) -> None:
        for line in self.lines.chains.get(("controller", self.tp), []):
            if line.mail is not None and line.mail.kind == "AlterPartitionRequest":
                self.proposals[line.place] = line.mail

    @property
    def ids(self) -> tuple[int, ...]:
        """The replicas of the partition."""
        return self.lines.partitions[self.tp].ids

    def as_state(self, state: object) -> Ruling | None:
        """The newest ruling of a state that the search has come to."""
        newest = cast("tuple[object, ...]", state)[-1] if isinstance(state, tuple) and state else None
        return newest if isinstance(newest, Ruling) else None

    def first(self) -> Rulings:
        """Nothing is known of it."""
        return ()

    def after(self, line: Line, rulings: Rulings, ways: list[Way]) -> Iterator[Rulings]:
        """Every state after the line; how it fails goes to `ways`."""
        if line.begins:
            # It comes back with what is durable: the newest if nobody had to wait for the disk.
            yield from ((ruling,) for ruling in reversed(rulings))
            return
        if line.ruling is not None and not line.sent and line.action is None:
            yield (line.ruling,)
            return
        try:
            found = [rulings]
            if line.action is not None:
                found = [(*rulings, after)[-REMEMBERED:] for after in self._acts(line, rulings[-1], line.action)]
        except Refused as no:
            ways.append(Way(str(rulings[-1]), no.why, no.guards, no.differences))
            return
        for state in found:
            yield from self._announcing(line, line.sent, state, ways)

    def _announcing(self, line: Line, sent: tuple[Mail, ...], rulings: Rulings, ways: list[Way]) -> Iterator[Rulings]:
        """What is announced was ruled, lately; where steps are hidden, by some of them."""
        if not sent:
            yield rulings
            return
        differs: dict[str, tuple[str, str]] = {}
        kept, led = self._kept(sent[0], rulings, differs), False
        told = iter([kept]) if kept is not None else iter(())
        if kept is None and self.lines.level is Level.CLIENT:
            told = self._reached(line, sent[0], rulings)
        for state in told:
            led = True
            yield from self._announcing(line, sent[1:], state, ways)
        if not led:
            ways.append(
                Way(str(rulings[-1]), f"the {sent[0].kind} {sent[0].id} announces what was not ruled", (), differs)
            )

    def _kept(self, mail: Mail, rulings: Rulings, differs: dict[str, tuple[str, str]]) -> Rulings | None:
        """The rulings that may still be undone by a restart; None if none of them is what the message says."""
        match mail.kind:
            case "AlterPartitionResponse" if mail.says.get("error") == "NONE":
                version = number(mail.says.get("partition_epoch")) + 1
                right = [n for n, r in enumerate(rulings) if self._accepted(mail, r, version)]
                if not right:
                    differs["controller_partition_epoch"] = (
                        str(rulings[-1].controller_partition_epoch),
                        str(version),
                    )
                return rulings[right[0] :] if right else None
            case "HeartbeatAnswer" if (
                mail.says.get("error") == "NONE" and int(mail.to) in self.ids and self.lines.level is not Level.CLIENT
            ):
                who, fenced = int(mail.to), mail.says.get("fenced")
                right = [n for n, r in enumerate(rulings) if (who in r.fenced) == fenced]
                if not right or (mail.says.get("may_shut_down") is True and not fenced):
                    differs["fenced"] = (str(rulings[-1].fenced), f"{who}: {fenced}")
                    return None
                return rulings
            case "Metadata":
                return self._shown(mail, rulings, differs)
            case "BrokerRegistered" if mail.says.get("error") == "NONE" and int(mail.to) in self.ids:
                i = self.ids.index(int(mail.to))
                right = [n for n, r in enumerate(rulings) if r.broker_epoch[i] == mail.says.get("broker_epoch")]
                if not right:
                    differs["broker_epoch"] = (str(rulings[-1].broker_epoch), str(mail.says.get("broker_epoch")))
                return rulings[right[0] :] if right else None
            case _:
                return rulings

    def _accepted(self, mail: Mail, ruling: Ruling, version: int) -> bool:
        epoch = (ruling.controller_epoch, ruling.controller_leader)
        return (ruling.controller_partition_epoch, *epoch) == (version, mail.says.get("leader_epoch"), int(mail.to))

    def _shown(self, mail: Mail, rulings: Rulings, differs: dict[str, tuple[str, str]]) -> Rulings | None:
        """What of the partition and of its brokers the message says, each of some ruling."""
        first = 0
        listed = mail.says.get("brokers")
        for broker in [fields(b) for b in listed] if isinstance(listed, list) else []:
            who = number(broker.get("broker"), -1)
            if who in self.ids and not any(self._knows(r, who, broker) for r in rulings):
                differs["fenced"] = (str(rulings[-1]), str(dict(broker)))
                return None
        for partition in partitions_of(mail):
            if str(partition.get("partition")) != self.tp or not partition.get("replicas"):
                continue
            told = Ruling.told(announced(partition), self.ids)
            right = [n for n, r in enumerate(rulings) if _same(r, told)]
            if not right:
                only = attrs.evolve(
                    told,
                    fenced=rulings[-1].fenced,
                    shutting_down=rulings[-1].shutting_down,
                    broker_epoch=rulings[-1].broker_epoch,
                )
                differs |= different(rulings[-1], only)
                return None
            first = right[0]
        return rulings[first:]

    def _knows(self, ruling: Ruling, who: int, broker: Fields) -> bool:
        flags = (who in ruling.fenced, who in ruling.shutting_down)
        epoch = ruling.broker_epoch[self.ids.index(who)] if ruling.broker_epoch else 0
        return (*flags, epoch) == (broker.get("fenced"), broker.get("shutting_down"), broker.get("epoch"))

    # Hidden steps

    def _reached(self, line: Line, mail: Mail, rulings: Rulings) -> Iterator[Rulings]:
        """Ways from the newest ruling to one that the message says, by steps that no line names, the shortest first."""
        version = max(
            [number(mail.says.get("partition_epoch"), -1) + 1]
            + [number(p.get("partition_epoch")) for p in partitions_of(mail) if str(p.get("partition")) == self.tp]
        )
        if mail.kind != "AlterPartitionResponse" and version == 0:
            # It says nothing of the partition; to strike who returns may have made a version.
            version = rulings[-1].controller_partition_epoch + (mail.kind == "BrokerRegistered")
        edge, seen = [rulings], {rulings[-1]}
        for _ in range(HIDDEN_STEPS):
            after: list[Rulings] = []
            for state in edge:
                for ruling in self._any(line, state[-1], mail):
                    self.hidden += 1
                    if ruling not in seen and ruling.controller_partition_epoch <= version:
                        seen.add(ruling)
                        following = (*state, ruling)[-REMEMBERED:]
                        after.append(following)
                        if (kept := self._kept(mail, following, {})) is not None:
                            yield kept
                if self.hidden > HIDDEN_STATES:
                    self.bounded = True
                    return
            edge = after
        self.bounded |= bool(edge)

    def _any(self, line: Line, ruling: Ruling, mail: Mail) -> Iterator[Ruling]:
        """Every ruling that one hidden step leads to."""
        steps = self.stepper()
        epochs = {number(b.get("broker"), -1): b.get("epoch") for b in _brokers(mail)}
        epochs |= {number(mail.says.get("broker"), -1): mail.says.get("broker_epoch")}
        for action in _HIDDEN:
            told = ruling.variables(self.ids)
            slots = self.lives(told)
            if action == "controller_accepts_alter_partition":
                slots = [self.proposed(told, m) for place, m in self.proposals.items() if place <= line.place][-4:]
            for slot in slots:
                for taken in steps.steps(action, slot):
                    after = Ruling.of(taken.state, self.ids)
                    if action.startswith("broker_restarts"):
                        who = self.ids[taken.parameters["r"]]
                        after = self._with_epoch(after, who, number(epochs.get(who), 0))
                    yield after

    # A step that is named

    def stepper(self) -> Stepper:
        """The model with the partition's settings."""
        known = self.lines.partitions[self.tp]
        return stepper_of(self.lines.design, len(known.ids), known.minimum, known.unclean, self.lines.reads)

    def lives(self, told: Mapping[str, object]) -> list[Mapping[str, object]]:
        """Who is alive, and whether it left the mark of a clean shutdown, no line of the controller tells."""
        n = len(self.ids)
        everybody = (1 << n) - 1
        return [
            {**told, "alive": alive, "clean_shutdown": clean} for alive in (everybody, 0) for clean in (0, everybody)
        ]

    def proposed(self, told: Mapping[str, object], mail: Mail) -> Mapping[str, object]:
        """The request as the model has it in flight."""
        ids = self.ids
        n, leader = len(ids), number(mail.says.get("leader"), -1)
        i = ids.index(leader) if leader in ids else 0
        members = [(m[0], m[1]) for m in rows(mail.says.get("isr")) if len(m) == 2]
        joins = [e for b, e in members if b in ids and not int(str(told["controller_isr"])) >> ids.index(b) & 1]
        return {
            **told,
            "alter": at(n, i, ALTER["REQUESTED"], 0),
            "alter_isr": at(n, i, mask(ids, [b for b, _ in members]), 0),
            "alter_leader_epoch": at(n, i, number(mail.says.get("leader_epoch")), 0),
            "alter_partition_epoch": at(n, i, number(mail.says.get("partition_epoch")), 0),
            "alter_broker_epoch": at(n, i, joins[0] if joins else 0, 0),
        }

    def _acts(self, line: Line, ruling: Ruling, action: str) -> list[Ruling]:
        steps, replica = self.stepper(), number(line.event.says.get("replica"), -1)
        if not steps.knows(action) or replica not in self.ids:
            raise Refused(f"the model has no action {action} of {replica}")
        told, i = ruling.variables(self.ids), self.ids.index(replica)
        choices = self.lives(told)
        if "alter_partition" in action:
            if line.mail is None or line.mail.kind != "AlterPartitionRequest" or line.mail.source != str(replica):
                raise Refused(f"{action} without a request")
            choices = [{**choice, **self.proposed(told, line.mail)} for choice in choices[:1]]
        self._cause(line, action, replica)
        key = steps.instance.actions[[a.name for a in steps.instance.actions].index(action)].parameters[0][0]
        # With ZooKeeper a broker may be back before anybody noticed (KAFKA-7235).
        named = (action, "broker_restarts_unnoticed") if action == "broker_restarts" else (action,)
        found = [t for c in choices for name in named for t in steps.steps(name, c) if _of(t, key, i)]
        if not found:
            guards = [g for choice in choices[:1] for g in steps.refusals(action, choice, {key: i})]
            raise Refused(f"the model does not allow {action} here", guards)
        after = list(dict.fromkeys(Ruling.of(t.state, self.ids) for t in found))
        told_now = line.ruling
        if action == "broker_restarts":
            given = set(line.joined) or {ruling.broker_epoch[i] + 1}
            if told_now is not None and len(told_now.broker_epoch) == len(self.ids):
                given = {told_now.broker_epoch[i]} if told_now.broker_epoch[i] > ruling.broker_epoch[i] else set[int]()
            after = [self._with_epoch(r, replica, epoch) for epoch in sorted(given) for r in after]
            if not after:
                raise Refused(f"{action} of {replica} without a new broker epoch")
        if line.overtaken and action in _OF_THE_RETURNED:
            after += [attrs.evolve(r, shutting_down=tuple(b for b in r.shutting_down if b != replica)) for r in after]
            self.outside[line.place] = f"the Heartbeat {line.mail.id if line.mail else ''} was overtaken by a newer one"
        if "broker_restarts_unnoticed" in named and replica in ruling.shutting_down and told_now not in after:
            # Its wish to stop is forgotten with the process that had it, which the model leaves as it is.
            after += [attrs.evolve(r, shutting_down=tuple(b for b in r.shutting_down if b != replica)) for r in after]
            self.outside[line.place] = f"broker {replica} wanted to stop, and is back before anybody noticed"
        if told_now is None:
            return after
        if told_now in after:
            return [told_now]
        raise Refused(
            f"{action} leads elsewhere in the model", (), min((different(a, told_now) for a in after), key=len)
        )

    def _cause(self, line: Line, action: str, replica: int) -> None:
        """A registration is of who registers; a heartbeat that a newer one overtook is outside of the model."""
        mail = line.mail
        if action == "broker_restarts" and (
            mail is None or mail.kind != "RegisterBroker" or mail.says.get("broker") != replica
        ):
            raise Refused(f"{action} of {replica} without its registration")
        if action in ("broker_asks_to_shut_down", "broker_shuts_down") and (
            mail is None or mail.says.get("broker") != replica or mail.says.get("wants_to_shut_down") is not True
        ):
            raise Refused(f"{action} of {replica} without its wish")

    def _with_epoch(self, ruling: Ruling, who: int, epoch: int) -> Ruling:
        epochs = tuple(epoch if b == who else e for b, e in zip(self.ids, ruling.broker_epoch, strict=True))
        return attrs.evolve(ruling, broker_epoch=epochs)


def _brokers(mail: Mail) -> list[Fields]:
    listed = mail.says.get("brokers")
    return [fields(b) for b in listed] if isinstance(listed, list) else []


def _same(ruling: Ruling, told: Ruling) -> bool:
    """As far as a partition in a message with metadata says it."""
    names = ("leader", "epoch", "partition_epoch", "isr", "elr")
    return ruling.last_known_leader == told.last_known_leader and all(
        getattr(ruling, f"controller_{n}") == getattr(told, f"controller_{n}") for n in names
    )


def _of(taken: Taken, key: str, place: int) -> bool:
    """The step is of this replica, or elects it."""
    return place in (taken.parameters[key], taken.parameters.get("successor"))
