"""The steps of Kafka's replicas and of its controller: which states they may be in after a line of the agent.

Handlers run at the same time. A line's step was taken after another line, `since`, and before its own. So a search
tries the order of the lines first, and where that fails takes steps earlier, as far as their intervals allow, but no
more than `EARLY` at a time; if that bound was met the verdict is unknown, and never *rejected*.

A line that tells of no step, an answer, has to be true at some time of its interval. Such a line changes nothing, so it
is ticked off as soon as it is true.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

import attrs

from isr_validate.controller_steps import HIDDEN_STATES, ControllerSteps
from isr_validate.kafka_reader import KafkaLine
from isr_validate.model_step import OffsetRanks
from isr_validate.replica_state import ControllerState, ReplicaState, differences_between
from isr_validate.replica_steps import ReplicaSteps
from isr_validate.trace_lines import Level, Line
from isr_validate.trace_values import Fields, SentMessage, number, rows
from isr_validate.verdict import FailedAttempt, LineRefused

EARLY: Final = 4
"""How many steps may be taken before the lines in which they stand, at one time."""

STEPS_AT_ONCE: Final = 3
"""How many steps of the model one decision of the controller may be."""

NO_STEPS: Final = "no steps of the model lead to this decision"


@attrs.frozen
class KafkaState:
    """A replica, and the lines further on that are done with: steps that were taken, answers that were true.

    `empty_epoch`: the leader epoch in which it led without writing; Kafka's epoch cache has it, and no record does.
    """

    replica: ReplicaState = attrs.field(factory=ReplicaState)
    ticked_lines: frozenset[int] = frozenset()
    empty_epoch: int = 0

    def __str__(self) -> str:
        return str(self.replica)


@attrs.define
class KafkaReplicaSteps:
    """The steps of one of Kafka's replicas."""

    steps: ReplicaSteps
    chain: list[KafkaLine]
    open: list[tuple[int, ...]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        found: list[list[int]] = [[] for _ in self.chain]
        for line in self.chain:
            for index in range(line.first, line.index + 1):
                found[index].append(line.index)
        self.open = [tuple(indices) for indices in found]

    @property
    def outside(self) -> dict[int, str]:
        """Lines that the environment of the model never has."""
        return self.steps.outside

    @property
    def bounded(self) -> bool:
        """Whether not every order was tried."""
        return self.steps.bounded

    @property
    def follows_every_line(self) -> bool:
        """Whether what the agent tells of a replica's variables has to hold."""
        return self.steps.lines.level is not Level.CLIENT

    def first(self) -> KafkaState:
        """The state before the first line."""
        return KafkaState()

    def after(self, line: Line, state: KafkaState, attempts: list[FailedAttempt], /) -> Iterator[KafkaState]:
        """Every state after the line; failed attempts are added to `attempts`."""
        assert isinstance(line, KafkaLine)
        yield from self._after(line, state, attempts, 0)

    def _after(
        self, line: KafkaLine, state: KafkaState, attempts: list[FailedAttempt], depth: int
    ) -> Iterator[KafkaState]:
        if line.begins:
            yield KafkaState(state.replica.after_restart(), frozenset(), state.empty_epoch)
            return
        state = self._with_true_answers(line.index, state)
        if line.index in state.ticked_lines:
            yield attrs.evolve(state, ticked_lines=state.ticked_lines - {line.index})
            return
        if line.checks:
            yield from self._last_chance(line, state, attempts)
        else:
            yield from self._after_step(line, state, attempts)
            for raised in self._raised_states(line.index, state):
                yield from self._after_step(line, raised, [])
        early = [
            self.chain[i]
            for i in self.open[line.index]
            if i != line.index and not self.chain[i].checks and i not in state.ticked_lines
        ]
        if early and depth >= EARLY:
            self.steps.bounded = True
            return
        for other in early:
            for after in self._after_step(other, state, []):
                ticked = attrs.evolve(after, ticked_lines=after.ticked_lines | {other.index})
                yield from self._after(line, ticked, attempts, depth + 1)

    # Answers

    def _with_true_answers(self, index: int, state: KafkaState) -> KafkaState:
        """The state with every answer done that is true now."""
        true = [
            i
            for i in self.open[index]
            if self.chain[i].checks
            and i not in state.ticked_lines
            and self._untrue(self.chain[i], state.replica) is None
        ]
        return attrs.evolve(state, ticked_lines=state.ticked_lines | set(true)) if true else state

    def _untrue(self, line: KafkaLine, replica: ReplicaState) -> LineRefused | None:
        """Why an answer is not true now; None if it is."""
        try:
            for answer in line.answers:
                self.steps.checks.answers(answer, replica, replica, None)
            if line.watermark is not None and line.watermark != replica.high_watermark:
                differs = (str(replica.high_watermark), str(line.watermark))
                raise LineRefused("an answer tells another watermark", (), {"high_watermark": differs})
        except LineRefused as no:
            return no
        return None

    def _last_chance(self, line: KafkaLine, state: KafkaState, attempts: list[FailedAttempt]) -> Iterator[KafkaState]:
        """An answer that was never true by its own line; at level `client` the watermark may have moved unseen."""
        for raised in self._raised_states(line.index, state):
            if line.index in raised.ticked_lines:
                yield attrs.evolve(raised, ticked_lines=raised.ticked_lines - {line.index})
                return
        no = self._untrue(line, state.replica)
        if no is not None:
            attempts.append(FailedAttempt(str(state), no.why, no.guards, no.differences))

    def _raised_states(self, index: int, state: KafkaState) -> Iterator[KafkaState]:
        """At level `client`: the states whose watermark has moved unseen, as far as each open answer needs it."""
        if self.follows_every_line:
            return
        open_now = [self.chain[i] for i in self.open[index] if self.chain[i].checks and i not in state.ticked_lines]
        wanted = {w for line in open_now for w in (line.watermark, *(a.end for a in line.answers)) if w is not None}
        for watermark in sorted(w for w in wanted if w > state.replica.high_watermark):
            moved = self._moved_to(state.replica, watermark)
            if not moved:
                return
            state = self._with_true_answers(index, attrs.evolve(state, replica=moved[0]))
            yield state

    def _moved_to(self, replica: ReplicaState, watermark: int) -> list[ReplicaState]:
        """The replica with its watermark moved there, if the model allows it."""
        ids, me = self.steps.ids, int(self.steps.node)
        ranks = OffsetRanks.from_offsets({*replica.offsets(), max(0, watermark)})
        told = replica.variables(ids, me, ranks)
        taken = self.steps.model_steps().steps("leader_moves_watermark", told)
        after = [replica.after_step(t.state, ids, me, ranks) for t in taken if t.parameters["leader"] == ids.index(me)]
        return [one for one in after if one.high_watermark == watermark]

    # Steps

    def _after_step(self, line: KafkaLine, state: KafkaState, attempts: list[FailedAttempt]) -> Iterator[KafkaState]:
        """The states after the step of a line alone."""
        if line.opened_replica is not None:
            yield attrs.evolve(state, replica=line.opened_replica)
            return
        mine: list[FailedAttempt] = []
        before = state.replica
        line = self._as_logged(line, state)
        for after in (
            self._with_restarted_log(line, before, mine)
            if line.start is not None
            else self.steps.after(line, before, mine)
        ):
            wrong = self._differences(line, after)
            if wrong:
                mine.append(FailedAttempt(str(after), "the step leads elsewhere in the model", (), wrong))
                continue
            if line.what == "leads" and before.pending_isr and after.partition_epoch == before.partition_epoch:
                self.outside[line.place] = "a leader hears the metadata that it has, and forgets what it has proposed"
            yield attrs.evolve(state, replica=after, empty_epoch=self._empty_epoch(state, after))
        attempts += mine

    def _with_restarted_log(
        self, line: KafkaLine, before: ReplicaState, attempts: list[FailedAttempt]
    ) -> list[ReplicaState]:
        """A follower has begun its log again where its leader's begins (`UnifiedLog.truncateFullyAndStartAt`).

        That is as if it had what its leader has deleted, all of it committed, and of no epoch that it knows. It does so
        only where its log ends before that (`AbstractFetcherThread.fetchOffsetAndTruncate`).
        """
        start = line.start or 0
        if before.leader in (None, int(self.steps.node)) or start <= before.end:
            why = f"a follower begins its log again at {start}, but it leads, follows nobody, or has more than that"
            attempts.append(FailedAttempt(str(before), why))
            return []
        self.outside[line.place] = "a follower begins its log where its leader's begins"
        return [attrs.evolve(before, end=start, epochs=(), high_watermark=start)]

    def _differences(self, line: KafkaLine, after: ReplicaState) -> Mapping[str, tuple[str, str]]:
        """The variables for which a line tells other values than the model has after the step."""
        if not self.follows_every_line:
            return {}
        wrong = {n: (str(getattr(after, n)), str(v)) for n, v in line.variables.items() if getattr(after, n) != v}
        ends = dict(zip(self.steps.ids, after.follower_end or (None,) * len(self.steps.ids), strict=True))
        wrong |= {f"follower_end of {b}": (str(ends.get(b)), str(e)) for b, e in line.ends.items() if ends.get(b) != e}
        return wrong

    def _as_logged(self, line: KafkaLine, state: KafkaState) -> KafkaLine:
        """The line with the epoch of the last record where Kafka tells another.

        It tells that of its epoch cache, which has epochs without a record. And a follower that has begun its log
        again tells none, and its leader takes what comes before for its own (`Partition.readRecords`).
        """
        mail = line.mail
        if mail is not None and mail.says.get("begins") is True:
            says = {**mail.says, "last_epoch": state.replica.epoch_at(number(mail.says.get("offset")) - 1)}
            return attrs.evolve(line, mail=SentMessage(mail.id, mail.source, mail.to, mail.kind, says))
        if mail is None or mail.kind != "FetchResponse" or not state.empty_epoch:
            return line
        if mail.says.get("last_epoch") != state.empty_epoch or state.replica.last_epoch == state.empty_epoch:
            return line
        says = {**mail.says, "last_epoch": state.replica.last_epoch}
        return attrs.evolve(line, mail=SentMessage(mail.id, mail.source, mail.to, mail.kind, says))

    def _empty_epoch(self, state: KafkaState, after: ReplicaState) -> int:
        """The last leader epoch that began at the log's end and wrote nothing."""
        if after.leader == int(self.steps.node) and after.leader_epoch != state.replica.leader_epoch:
            return after.leader_epoch
        return state.empty_epoch if after.end == state.replica.end else 0


# The controller


@attrs.define
class KafkaControllerSteps:
    """The steps of Kafka's controller about one partition, from `__cluster_metadata`.

    A decision is up to `STEPS_AT_ONCE` steps of the model: one heartbeat of a broker that shuts down, for example, is
    two. The partition epoch counts Kafka's decisions then.
    """

    inner: ControllerSteps
    proposals: list[Fields]
    withdrawals: list[Fields]

    @property
    def outside(self) -> dict[int, str]:
        """Decisions that are several steps of the model."""
        return self.inner.outside

    @property
    def bounded(self) -> bool:
        """Whether not every step was tried."""
        return self.inner.bounded

    def first(self) -> ControllerState:
        """The state before the first line."""
        return ControllerState()

    def after(self, line: Line, state: ControllerState, attempts: list[FailedAttempt], /) -> Iterator[ControllerState]:
        """Every state after a decision; failed attempts are added to `attempts`."""
        assert isinstance(line, KafkaLine)
        if line.controller is not None and not state.controller_epoch:
            yield line.controller
            return
        if line.reorders:
            after = attrs.evolve(state, controller_partition_epoch=state.controller_partition_epoch + 1)
            if self._agrees(line, after, 0) is not None:
                self.outside[line.place] = "the replicas are preferred in another order"
                yield after
                return
        led = False
        for after in self._after_decision(line, state):
            led = True
            yield after
        if not led and not self.inner.bounded:
            told = line.controller
            refused = told is not None and any(_proposes(one, told) for one in self.withdrawals)
            why = "the controller accepts a proposal that it has refused" if refused else NO_STEPS
            differs = differences_between(state, told) if told is not None else {}
            attempts.append(FailedAttempt(str(state), why, (), differs))

    def _after_decision(self, line: KafkaLine, state: ControllerState) -> Iterator[ControllerState]:
        """Every state after a decision, by the fewest steps first."""
        edge, visited, agreement_turn = [state], {state}, STEPS_AT_ONCE + 1
        told = line.controller
        newest = state.controller_epoch + STEPS_AT_ONCE if told is None else told.controller_epoch
        for turn in range(STEPS_AT_ONCE + 1):
            for one in edge:
                if (right := self._agrees(line, one, turn)) is not None:
                    agreement_turn = min(agreement_turn, turn)
                    yield right
            if turn > agreement_turn or turn == STEPS_AT_ONCE:
                break  # what else may have happened can wait until a later decision tells of it
            following = dict.fromkeys(n for one in edge for n in self._next(line, one))
            edge = [n for n in following if n not in visited and n.controller_epoch <= newest]
            visited.update(edge)
            if self.inner.hidden_states > HIDDEN_STATES:
                self.inner.bounded = True
                return

    def _agrees(self, line: KafkaLine, state: ControllerState, turn: int) -> ControllerState | None:
        """The state, if a line about a broker or about the partition agrees with it."""
        says = line.event.says
        if line.what == "broker":
            who = number(says.get("broker"), -1)
            flags = (who in state.fenced, who in state.shutting_down)
            epoch = state.broker_epoch[self.inner.ids.index(who)] if state.broker_epoch else -1
            right = (*flags, epoch) == (says.get("fenced"), says.get("shutting_down"), says.get("epoch"))
            return state if right else None
        decision = cast("ControllerState", line.controller)
        names = ("controller_leader", "controller_isr", "controller_elr", "controller_epoch")
        if any(getattr(state, name) != getattr(decision, name) for name in names):
            return None
        if state.controller_partition_epoch == decision.controller_partition_epoch:
            return state
        if turn < 2 or not decision.controller_partition_epoch < state.controller_partition_epoch:
            return None
        self.inner.outside[line.place] = f"{turn} steps of the model are one decision"
        return attrs.evolve(state, controller_partition_epoch=decision.controller_partition_epoch)

    def _next(self, line: KafkaLine, state: ControllerState) -> Iterator[ControllerState]:
        """Every state after one step of the model, by a proposal that a leader made or without one."""
        says = line.event.says
        epoch = number(says.get("epoch"), -1) if line.what == "broker" else -1
        for after in self.inner.decisions(state, self._slots(state), {number(says.get("broker"), -1): epoch}):
            self.inner.hidden_states += 1
            yield after

    def _slots(self, state: ControllerState) -> list[SentMessage]:
        """The proposals about the metadata as they are."""
        now = (state.controller_epoch, state.controller_partition_epoch, state.controller_leader)
        return [
            SentMessage("", str(p["leader"]), "controller", "AlterPartitionRequest", p)
            for p in self.proposals
            if (p.get("leader_epoch"), p.get("partition_epoch"), p.get("leader")) == now
        ]


def _proposes(proposal: Fields, decision: ControllerState) -> bool:
    """Whether a decision is what a leader has proposed."""
    members = tuple(sorted(member[0] for member in rows(proposal.get("isr"))))
    wanted = (proposal.get("leader_epoch"), number(proposal.get("partition_epoch")) + 1, members)
    return wanted == (decision.controller_epoch, decision.controller_partition_epoch, decision.controller_isr)
