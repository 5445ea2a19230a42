"""The steps of the controller: which states it may be in after a line, as far as one partition is concerned.

What the controller announces may be older than what it has decided last, and after a restart it may have lost what was
not durable. So a state of the search is a tuple of the latest decisions, the newest last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias, cast

import attrs

from isr_broker.snapshot import Json
from isr_validate.model_step import ALTER, ModelStep, ModelSteps, map_with, replica_set
from isr_validate.model_step import model_steps as stepper_of
from isr_validate.replica_state import ControllerState, controller_names, differences_between
from isr_validate.trace_lines import Level, Line, TraceLines
from isr_validate.trace_reader import partitions_of
from isr_validate.trace_values import Fields, SentMessage, fields, number, rows
from isr_validate.verdict import FailedAttempt, LineRefused

ControllerStates: TypeAlias = tuple[ControllerState, ...]

VOLATILE_DECISIONS: Final = 16
"""How many decisions may be not yet durable."""

HIDDEN_STEPS: Final = 5
"""Level `client`: how many steps of the controller may come before what it announces."""

HIDDEN_STATES: Final = 40_000
"""Level `client`: how many states are tried for that before the result is unknown."""

_HIDDEN_ACTIONS: Final = (
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

RETURN_ACTIONS: Final = (
    "controller_unfences",
    "controller_elects_returned",
    "controller_elects_last_known_leader",
)
"""The actions by which a heartbeat that was sent before the wish to shut down cancels that wish. It does so in Kafka:
a fenced broker whose heartbeat asks neither to be fenced nor to shut down is unfenced
(BrokerHeartbeatManager.calculateNextBrokerState)."""


@attrs.define
class ControllerSteps:
    """The steps of the controller about one partition. `outside`: lines that the model's environment never has."""

    lines: TraceLines
    tp: str
    outside: dict[int, str] = attrs.field(factory=dict[int, str])
    bounded: bool = False
    hidden_states: int = 0
    proposals: dict[int, SentMessage] = attrs.field(factory=dict[int, SentMessage])

    def __attrs_post_init__(self) -> None:
        for line in self.lines.by_owner.get(("controller", self.tp), []):
            if line.mail is not None and line.mail.kind == "AlterPartitionRequest":
                self.proposals[line.place] = line.mail

    @property
    def ids(self) -> tuple[int, ...]:
        """The replicas of the partition."""
        return self.lines.partitions[self.tp].ids

    def as_state(self, state: object) -> ControllerState | None:
        """The newest decision in a state of the search."""
        newest = cast("tuple[object, ...]", state)[-1] if isinstance(state, tuple) and state else None
        return newest if isinstance(newest, ControllerState) else None

    def first(self) -> ControllerStates:
        """The state before the first line."""
        return ()

    def after(self, line: Line, states: ControllerStates, attempts: list[FailedAttempt]) -> Iterator[ControllerStates]:
        """Every state after the line; failed attempts are added to `attempts`."""
        if line.begins:
            # After a restart it has what was durable: any of the decisions, the newest first.
            yield from ((controller,) for controller in reversed(states))
            return
        if line.controller is not None and not line.messages and line.action is None:
            yield (line.controller,)
            return
        try:
            candidates = [states]
            if line.action is not None:
                candidates = [
                    (*states, after)[-VOLATILE_DECISIONS:]
                    for after in self._check_action(line, states[-1], line.action)
                ]
        except LineRefused as no:
            attempts.append(FailedAttempt(str(states[-1]), no.why, no.guards, no.differences))
            return
        for state in candidates:
            yield from self._check_announced(line, line.messages, state, attempts)

    def _check_announced(
        self, line: Line, messages: tuple[SentMessage, ...], states: ControllerStates, attempts: list[FailedAttempt]
    ) -> Iterator[ControllerStates]:
        """The states in which all of these messages announce decisions; at level `client` after hidden steps."""
        if not messages:
            yield states
            return
        differs: dict[str, tuple[str, str]] = {}
        kept, has_successor = self._still_volatile(messages[0], states, differs), False
        told = iter([kept]) if kept is not None else iter(())
        if kept is None and self.lines.level is Level.CLIENT:
            told = self._hidden_paths(line, messages[0], states)
        for state in told:
            has_successor = True
            yield from self._check_announced(line, messages[1:], state, attempts)
        if not has_successor:
            attempts.append(
                FailedAttempt(
                    str(states[-1]),
                    f"the {messages[0].kind} {messages[0].id} announces what was not ruled",
                    (),
                    differs,
                )
            )

    def _still_volatile(
        self, mail: SentMessage, states: ControllerStates, differs: dict[str, tuple[str, str]]
    ) -> ControllerStates | None:
        """The decisions from the announced one on: older ones are durable now.

        None if no decision is what is announced.
        """
        match mail.kind:
            case "AlterPartitionResponse" if mail.says.get("error") == "NONE":
                version = number(mail.says.get("partition_epoch")) + 1
                right = [n for n, r in enumerate(states) if self._accepted(mail, r, version)]
                if not right:
                    differs["controller_partition_epoch"] = (
                        str(states[-1].controller_partition_epoch),
                        str(version),
                    )
                return states[right[0] :] if right else None
            case "HeartbeatAnswer" if (
                mail.says.get("error") == "NONE" and int(mail.to) in self.ids and self.lines.level is not Level.CLIENT
            ):
                who, fenced = int(mail.to), mail.says.get("fenced")
                right = [n for n, r in enumerate(states) if (who in r.fenced) == fenced]
                if not right or (mail.says.get("may_shut_down") is True and not fenced):
                    differs["fenced"] = (str(states[-1].fenced), f"{who}: {fenced}")
                    return None
                return states
            case "Metadata":
                return self._check_metadata(mail, states, differs)
            case "BrokerRegistered" if mail.says.get("error") == "NONE" and int(mail.to) in self.ids:
                i = self.ids.index(int(mail.to))
                right = [n for n, r in enumerate(states) if r.broker_epoch[i] == mail.says.get("broker_epoch")]
                if not right:
                    differs["broker_epoch"] = (str(states[-1].broker_epoch), str(mail.says.get("broker_epoch")))
                return states[right[0] :] if right else None
            case _:
                return states

    def _accepted(self, mail: SentMessage, controller: ControllerState, version: int) -> bool:
        epoch = (controller.controller_epoch, controller.controller_leader)
        return (controller.controller_partition_epoch, *epoch) == (version, mail.says.get("leader_epoch"), int(mail.to))

    def _check_metadata(
        self, mail: SentMessage, states: ControllerStates, differs: dict[str, tuple[str, str]]
    ) -> ControllerStates | None:
        """The same for Metadata: what it says of the partition and of each broker must be of some decision."""
        first = 0
        listed = mail.says.get("brokers")
        for broker in [fields(b) for b in listed] if isinstance(listed, list) else []:
            who = number(broker.get("broker"), -1)
            if who in self.ids and not any(self._check_clock(r, who, broker) for r in states):
                differs["fenced"] = (str(states[-1]), str(dict(broker)))
                return None
        for partition in partitions_of(mail):
            if str(partition.get("partition")) != self.tp or not partition.get("replicas"):
                continue
            told = ControllerState.from_snapshot(controller_names(partition), self.ids)
            right = [n for n, r in enumerate(states) if _same(r, told)]
            if not right:
                only = attrs.evolve(
                    told,
                    fenced=states[-1].fenced,
                    shutting_down=states[-1].shutting_down,
                    broker_epoch=states[-1].broker_epoch,
                )
                differs |= differences_between(states[-1], only)
                return None
            first = right[0]
        return states[first:]

    def _check_clock(self, controller: ControllerState, who: int, broker: Fields) -> bool:
        flags = (who in controller.fenced, who in controller.shutting_down)
        epoch = controller.broker_epoch[self.ids.index(who)] if controller.broker_epoch else 0
        return (*flags, epoch) == (broker.get("fenced"), broker.get("shutting_down"), broker.get("epoch"))

    # Hidden steps

    def _hidden_paths(self, line: Line, mail: SentMessage, states: ControllerStates) -> Iterator[ControllerStates]:
        """Level `client`: states with the announced decision, reached by steps that no line names, the shortest path
        first."""
        version = max(
            [number(mail.says.get("partition_epoch"), -1) + 1]
            + [number(p.get("partition_epoch")) for p in partitions_of(mail) if str(p.get("partition")) == self.tp]
        )
        if mail.kind != "AlterPartitionResponse" and version == 0:
            # It says nothing of the partition; a broker that returns may have been struck out, which makes a version.
            version = states[-1].controller_partition_epoch + (mail.kind == "BrokerRegistered")
        edge, visited = [states], {states[-1]}
        for _ in range(HIDDEN_STEPS):
            after: list[ControllerStates] = []
            for state in edge:
                for controller in self._hidden_step(line, state[-1], mail):
                    self.hidden_states += 1
                    if controller not in visited and controller.controller_partition_epoch <= version:
                        visited.add(controller)
                        following = (*state, controller)[-VOLATILE_DECISIONS:]
                        after.append(following)
                        if (kept := self._still_volatile(mail, following, {})) is not None:
                            yield kept
                if self.hidden_states > HIDDEN_STATES:
                    self.bounded = True
                    return
            edge = after
        self.bounded |= bool(edge)

    def _hidden_step(self, line: Line, controller: ControllerState, mail: SentMessage) -> Iterator[ControllerState]:
        """Every decision that one hidden step leads to."""
        epochs = {number(b.get("broker"), -1): b.get("epoch") for b in _brokers(mail)}
        epochs |= {number(mail.says.get("broker"), -1): mail.says.get("broker_epoch")}
        requests = [m for place, m in self.proposals.items() if place <= line.place][-4:]
        return self.decisions(controller, requests, epochs)

    def decisions(
        self, controller: ControllerState, requests: Iterable[SentMessage], epochs: Mapping[int, Json]
    ) -> Iterator[ControllerState]:
        """Every state after one step of the controller that no line names.

        It may accept one of these AlterPartition requests; `epochs` are those that brokers get when they register.
        """
        steps = self.model_steps()
        for action in _HIDDEN_ACTIONS:
            told = controller.variables(self.ids)
            slots = self.with_liveness(told)
            if action == "controller_accepts_alter_partition":
                slots = [self.with_request(told, m) for m in requests]
            for slot in slots:
                for taken in steps.steps(action, slot):
                    after = ControllerState.from_model(taken.state, self.ids)
                    if action.startswith("broker_restarts"):
                        who = self.ids[taken.parameters["r"]]
                        after = self._with_epoch(after, who, number(epochs.get(who), 0))
                    yield after

    # Steps that a line names

    def model_steps(self) -> ModelSteps:
        """The steps of the model with the partition's settings."""
        known = self.lines.partitions[self.tp]
        return stepper_of(self.lines.design, len(known.ids), known.minimum, known.unclean, self.lines.reads)

    def with_liveness(self, variables: Mapping[str, object]) -> list[Mapping[str, object]]:
        """The variables with all and with no brokers alive, and with clean shutdowns: no line of the controller has
        that."""
        n = len(self.ids)
        everybody = (1 << n) - 1
        return [
            {**variables, "alive": alive, "clean_shutdown": clean}
            for alive in (everybody, 0)
            for clean in (0, everybody)
        ]

    def with_request(self, variables: Mapping[str, object], mail: SentMessage) -> Mapping[str, object]:
        """The variables with this AlterPartition in flight."""
        ids = self.ids
        n, leader = len(ids), number(mail.says.get("leader"), -1)
        i = ids.index(leader) if leader in ids else 0
        members = [(m[0], m[1]) for m in rows(mail.says.get("isr")) if len(m) == 2]
        joins = [e for b, e in members if b in ids and not int(str(variables["controller_isr"])) >> ids.index(b) & 1]
        return {
            **variables,
            "alter": map_with(n, i, ALTER["REQUESTED"], 0),
            "alter_isr": map_with(n, i, replica_set(ids, [b for b, _ in members]), 0),
            "alter_leader_epoch": map_with(n, i, number(mail.says.get("leader_epoch")), 0),
            "alter_partition_epoch": map_with(n, i, number(mail.says.get("partition_epoch")), 0),
            "alter_broker_epoch": map_with(n, i, joins[0] if joins else 0, 0),
        }

    def _check_action(self, line: Line, controller: ControllerState, action: str) -> list[ControllerState]:
        steps, replica = self.model_steps(), number(line.event.says.get("replica"), -1)
        if not steps.has(action) or replica not in self.ids:
            raise LineRefused(f"the model has no action {action} of {replica}")
        variables, i = controller.variables(self.ids), self.ids.index(replica)
        choices = self.with_liveness(variables)
        if "alter_partition" in action:
            if line.mail is None or line.mail.kind != "AlterPartitionRequest" or line.mail.source != str(replica):
                raise LineRefused(f"{action} without a request")
            choices = [{**choice, **self.with_request(variables, line.mail)} for choice in choices[:1]]
        self._check_cause(line, action, replica)
        key = steps.instance.actions[[a.name for a in steps.instance.actions].index(action)].parameters[0][0]
        # With ZooKeeper a broker may be back before anybody noticed (KAFKA-7235).
        action_names = (action, "broker_restarts_unnoticed") if action == "broker_restarts" else (action,)
        found = [t for c in choices for name in action_names for t in steps.steps(name, c) if _of(t, key, i)]
        if not found:
            guards = [g for choice in choices[:1] for g in steps.false_guards(action, choice, {key: i})]
            raise LineRefused(f"the model does not allow {action} here", guards)
        after = list(dict.fromkeys(ControllerState.from_model(t.state, self.ids) for t in found))
        told_now = line.controller
        if action == "broker_restarts":
            broker_epochs = set(line.registration_epochs) or {controller.broker_epoch[i] + 1}
            if told_now is not None and len(told_now.broker_epoch) == len(self.ids):
                broker_epochs = (
                    {told_now.broker_epoch[i]} if told_now.broker_epoch[i] > controller.broker_epoch[i] else set[int]()
                )
            after = [self._with_epoch(r, replica, epoch) for epoch in sorted(broker_epochs) for r in after]
            if not after:
                raise LineRefused(f"{action} of {replica} without a new broker epoch")
        if line.is_overtaken and action in RETURN_ACTIONS:
            after += [attrs.evolve(r, shutting_down=tuple(b for b in r.shutting_down if b != replica)) for r in after]
            self.outside[line.place] = f"the Heartbeat {line.mail.id if line.mail else ''} was overtaken by a newer one"
        if (
            "broker_restarts_unnoticed" in action_names
            and replica in controller.shutting_down
            and told_now not in after
        ):
            # The process that wanted to stop is gone, and its wish with it. The model keeps the wish.
            after += [attrs.evolve(r, shutting_down=tuple(b for b in r.shutting_down if b != replica)) for r in after]
            self.outside[line.place] = f"broker {replica} wanted to stop, and is back before anybody noticed"
        if told_now is None:
            return after
        if told_now in after:
            return [told_now]
        raise LineRefused(
            f"{action} leads elsewhere in the model",
            (),
            min((differences_between(a, told_now) for a in after), key=len),
        )

    def _check_cause(self, line: Line, action: str, replica: int) -> None:
        """LineRefused unless a restart has its registration, and a shutdown the heartbeat that asks for it."""
        mail = line.mail
        if action == "broker_restarts" and (
            mail is None or mail.kind != "RegisterBroker" or mail.says.get("broker") != replica
        ):
            raise LineRefused(f"{action} of {replica} without its registration")
        if action in ("broker_asks_to_shut_down", "broker_shuts_down") and (
            mail is None or mail.says.get("broker") != replica or mail.says.get("wants_to_shut_down") is not True
        ):
            raise LineRefused(f"{action} of {replica} without its wish")

    def _with_epoch(self, controller: ControllerState, who: int, epoch: int) -> ControllerState:
        epochs = tuple(epoch if b == who else e for b, e in zip(self.ids, controller.broker_epoch, strict=True))
        return attrs.evolve(controller, broker_epoch=epochs)


def _brokers(mail: SentMessage) -> list[Fields]:
    listed = mail.says.get("brokers")
    return [fields(b) for b in listed] if isinstance(listed, list) else []


def _same(controller: ControllerState, announced_state: ControllerState) -> bool:
    """Whether two states agree in what a Metadata message says of a partition."""
    names = ("leader", "epoch", "partition_epoch", "isr", "elr")
    return controller.last_known_leader == announced_state.last_known_leader and all(
        getattr(controller, f"controller_{n}") == getattr(announced_state, f"controller_{n}") for n in names
    )


def _of(step: ModelStep, key: str, place: int) -> bool:
    """Whether the step is about this replica, or elects it."""
    return place in (step.parameters[key], step.parameters.get("successor"))
