"""The steps of a replica: which states it may be in after a line of its trace.

A line with an action must be a step of the model. If it has a snapshot, one of the states after that step must agree
with it; if not, all of them are possible. A line without an action changes no variable. The messages and answers of
every line must agree with the state after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

import attrs

from isr_validate.message_checks import ANSWERS, MessageChecks, check_divergence, divergence, divergence_variables
from isr_validate.model_step import ALTER, FETCH, ModelStep, ModelSteps, OffsetRanks, map_with
from isr_validate.model_step import model_steps as stepper_of
from isr_validate.replica_state import ControllerState, ReplicaState, differences_between
from isr_validate.trace_lines import LEARNS, Level, Line, TraceLines
from isr_validate.trace_values import Fields, Row, number, rows
from isr_validate.verdict import FailedAttempt, LineRefused

APPENDS: Final = ("leader_appends", "follower_appends")


@attrs.define
class ReplicaSteps:
    """The steps of one replica. `outside` collects lines that the environment of the model never has."""

    lines: TraceLines
    node: str
    tp: str
    outside: dict[int, str] = attrs.field(factory=dict[int, str])
    bounded: bool = False

    @property
    def checks(self) -> MessageChecks:
        """The checks of what the replica sends and answers."""
        return MessageChecks(self.node, self.ids, self.lines.partitions[self.tp].minimum, self.model_steps().fences)

    @property
    def ids(self) -> tuple[int, ...]:
        """The replicas of the partition."""
        return self.lines.partitions[self.tp].ids

    def as_state(self, state: object) -> ReplicaState:
        """A state of the search as a ReplicaState."""
        return state if isinstance(state, ReplicaState) else ReplicaState()

    def first(self) -> ReplicaState:
        """The state before the first line."""
        return ReplicaState()

    def after(self, line: Line, replica: ReplicaState, attempts: list[FailedAttempt]) -> Iterator[ReplicaState]:
        """Every state after the line; failed attempts are added to `attempts`."""
        if line.begins:
            yield replica.after_restart()
            return
        if line.opened_replica is not None:
            yield line.opened_replica
            return
        visited: set[ReplicaState] = set()
        for before in self._after_metadata(line, replica):
            for action in line.actions:
                for after in self._take(line, before, action, before is not replica, attempts):
                    if after not in visited:
                        visited.add(after)
                        yield after

    def _take(
        self, line: Line, before: ReplicaState, action: str | None, has_learned: bool, attempts: list[FailedAttempt]
    ) -> Iterator[ReplicaState]:
        try:
            afters = [before] if action is None else self._check_action(line, before, action)
        except LineRefused as no:
            attempts.append(FailedAttempt(str(before), no.why, no.guards, no.differences))
            return
        for after in afters:
            try:
                for mail in line.messages:
                    self.checks.check_message(mail, after, action)
                for answer in line.answers:
                    self.checks.answers(answer, before, after, "learned" if has_learned and action is None else action)
            except LineRefused as no:
                attempts.append(FailedAttempt(str(after), no.why, no.guards, no.differences))
                continue
            yield after

    def _after_metadata(self, line: Line, replica: ReplicaState) -> Iterator[ReplicaState]:
        """The state; at level `client` also those after it learned metadata, the latest first, at most twice."""
        yield replica
        if self.lines.level is not Level.CLIENT:
            return
        visited = {replica}
        edge = [replica]
        for _ in range(2):
            after: list[ReplicaState] = []
            for state in edge:
                for news in reversed(self._news(line)):
                    if (news.controller_epoch, news.controller_partition_epoch) <= (
                        state.leader_epoch,
                        state.partition_epoch,
                    ) and state.leader is not None:
                        continue
                    after += self._learn(line, state, news)
            edge = [state for state in dict.fromkeys(after) if state not in visited]
            visited |= set(edge)
            yield from edge

    def _news(self, line: Line) -> list[ControllerState]:
        """The metadata of the partition that this life of the broker has received before the line."""
        return self.lines.metadata.get((self.node, self.tp), [])[slice(*line.news)]

    def _learn(self, line: Line, replica: ReplicaState, news: ControllerState) -> list[ReplicaState]:
        ranks = OffsetRanks.from_offsets(replica.offsets())
        told = {**replica.variables(self.ids, int(self.node), ranks), **news.variables(self.ids)}
        states: list[ReplicaState] = []
        for action in LEARNS:
            for taken in self.model_steps().steps(action, told):
                if self.ids.index(int(self.node)) in taken.parameters.values():
                    states.append(
                        self._cut(replica, taken, ranks).after_step(taken.state, self.ids, int(self.node), ranks)
                    )
        return states

    def _cut(self, replica: ReplicaState, step: ModelStep, ranks: OffsetRanks) -> ReplicaState:
        """The state with its log truncated as the step does."""
        log = cast("tuple[tuple[int, ...], ...]", step.state["log"])[self.ids.index(int(self.node))]
        return replica.truncated_to(ranks.points[len(log)])

    def model_steps(self, acks: int = 1) -> ModelSteps:
        """The steps of the model with the partition's settings."""
        known = self.lines.partitions[self.tp]
        return stepper_of(self.lines.design, len(known.ids), known.minimum, known.unclean, self.lines.reads, acks)

    # An action

    def _check_action(self, line: Line, before: ReplicaState, action: str) -> list[ReplicaState]:
        """The states after an action.

        LineRefused if the model does not allow it, or has none that the snapshot shows.
        """
        ids, me = self.ids, int(self.node)
        steps = self.model_steps(line.acks if line.acks is not None and action == "leader_appends" else 1)
        if not steps.has(action):
            raise LineRefused(f"the model has no action {action}")
        new = self._appended_batches(line, before, action)
        appended_state = before.with_batches(new)
        message_fields: Fields = line.mail.says if line.mail is not None else {}
        snapshot = None
        if line.state is not None:
            snapshot = self._snapshot_state(line, before, appended_state, action)
        ranks = self.ranks(line, before, appended_state, message_fields, snapshot)
        who = self.known_parameters(action, message_fields)
        choices = [
            {**before.variables(ids, me, ranks), **slot}
            for slot in self.message_variables(line, before, action, message_fields, ranks)
        ]
        states: list[ReplicaState] = []
        for choice in choices:
            times = max(1, len(ranks.between(before.end, appended_state.end)))
            for taken in repeat_step(steps, action, choice, times, bool(new), who, ranks(before.end)):
                check_divergence(line.messages, taken, ranks)
                left = appended_state if action in APPENDS else self._cut(appended_state, taken, ranks)
                states.append(left.after_step(taken.state, ids, me, ranks))
        if not states:
            guards = [g for choice in choices[:1] for g in steps.false_guards(action, choice, who)]
            raise LineRefused(f"the model does not allow {action} here", guards)
        if snapshot is not None:
            return self._match_snapshot(line, states, snapshot, action)
        return self._delayed_watermarks(before, states)

    def _snapshot_state(
        self, line: Line, before: ReplicaState, appended_state: ReplicaState, action: str
    ) -> ReplicaState:
        """The state in the snapshot; LineRefused if it does not agree with the log."""
        state = line.state or {}
        end = number(state.get("log_end"), -1)
        epochs = appended_state.truncated_to(end).epochs
        noted = [(e[0], e[1]) for e in rows(state.get("log_epochs")) if len(e) == 2]
        if [e for e in noted if e in epochs] != list(epochs) or any(s < end for e, s in noted if (e, s) not in epochs):
            raise LineRefused("the epochs of the log are others", (), {"log_epochs": (str(list(epochs)), str(noted))})
        if "isr" in state and (
            state.get("leader") != int(self.node) or not self._start_life(state, appended_state, noted)
        ):
            raise LineRefused(f"{self.node} does not lead, or its epoch does not begin there")
        return ReplicaState.from_snapshot(state, self.ids, epochs)

    def _start_life(
        self, state: Fields, appended_state: ReplicaState, snapshot_epochs: Sequence[tuple[int, int]]
    ) -> bool:
        """Whether the leader's epoch begins where the snapshot says, by its log or its file of leader epochs.

        If a restart may go unnoticed (KAFKA-7235), a broker leads again in the same epoch. For it the epoch then begins
        at its log end (Partition.makeLeader). In the model it begins with its first record, which keeps fewer followers
        out of the ISR.
        """
        epoch, life_line = state.get("leader_epoch"), number(state.get("start_of_own_epoch"))
        first = [
            next((s for e, s in known if e == epoch), appended_state.end)
            for known in (appended_state.epochs, snapshot_epochs)
        ]
        later = self.model_steps().has("broker_restarts_unnoticed") and min(first) <= life_line <= appended_state.end
        return life_line in first or later

    def _match_snapshot(
        self, line: Line, states: Sequence[ReplicaState], snapshot: ReplicaState, action: str
    ) -> list[ReplicaState]:
        """The state of the snapshot; LineRefused unless a state after the step agrees with it.

        A high watermark that waits for joining followers is outside of the model, and noted as such.
        """
        wrong = [differences_between(state, snapshot) for state in states]
        if {} in wrong:
            return [snapshot]
        nearest = min(wrong, key=len)
        model, line_says = nearest.get("high_watermark", ("0", "0"))
        if self.lines.waits and len(nearest) == 1 and line_says.isdigit() and int(line_says) < int(model):
            self.outside[line.place] = "the watermark waits for who joins (insync.waits.for.joiners)"
            return [snapshot]
        raise LineRefused(f"{action} leads elsewhere in the model", (), nearest)

    def _delayed_watermarks(self, before: ReplicaState, states: list[ReplicaState]) -> list[ReplicaState]:
        """The states after a step without a snapshot.

        If watermarks may wait for joining followers, with each lower value.
        """
        if not self.lines.waits:
            return list(dict.fromkeys(states))
        every: list[ReplicaState] = []
        for state in states:
            points = {before.high_watermark, *(e for e in state.follower_end if e is not None)}
            between = sorted((p for p in points if before.high_watermark <= p < state.high_watermark), reverse=True)
            every += [state, *(attrs.evolve(state, high_watermark=p) for p in between)]
        return list(dict.fromkeys(every))

    def _appended_batches(self, line: Line, before: ReplicaState, action: str) -> list[Row]:
        """The batches that the action appends; LineRefused unless they continue the log."""
        if action not in APPENDS:
            if line.wrote and self.lines.level is not Level.CLIENT:
                raise LineRefused(f"{action} writes nothing")
            return []
        end, new = before.end, list[Row]()
        if action == "leader_appends" and not line.wrote:
            raise LineRefused("a leader appends nothing")
        for row in line.wrote:
            batch = (end, before.leader_epoch, *row[2:]) if row[0] < 0 else row
            if batch[0] != end:
                raise LineRefused(f"a batch at {batch[0]} is appended to a log that ends at {end}")
            if action == "leader_appends" and batch[1] != before.leader_epoch:
                raise LineRefused(f"a leader in epoch {before.leader_epoch} writes in epoch {batch[1]}")
            new.append(batch)
            end = batch[0] + batch[2]
        return new

    def ranks(
        self,
        line: Line,
        before: ReplicaState,
        appended_state: ReplicaState,
        message_fields: Fields,
        snapshot: ReplicaState | None,
    ) -> OffsetRanks:
        """The ranks of all offsets that the step knows."""
        extra = {
            number(message_fields.get(k))
            for k in ("offset", "high_watermark")
            if isinstance(message_fields.get(k), int)
        }
        extra |= {number(divergence(s).get("end")) for s in (message_fields, *(mail.says for mail in line.messages))}
        extra |= {line.read_offset} if line.read_offset is not None else set()
        extra |= snapshot.offsets() if snapshot is not None else set()
        return OffsetRanks.from_offsets({o for o in (*before.offsets(), *appended_state.offsets(), *extra) if o >= 0})

    def known_parameters(self, action: str, message_fields: Fields) -> dict[str, int]:
        """The parameters of the action that the line names."""
        me = self.ids.index(int(self.node))
        name = action.partition("_")[0]
        who = {name if name in ("leader", "follower") else "r": me}
        if action.startswith("leader_answers"):
            follower = number(message_fields.get("replica"), -1)
            if follower in self.ids:
                who["follower"] = self.ids.index(follower)
        return who

    def message_variables(
        self, line: Line, before: ReplicaState, action: str, message_fields: Fields, ranks: OffsetRanks
    ) -> list[Mapping[str, object]]:
        """The variables of a message, or of the metadata, that the step reads beside the replica's own."""
        ids = self.ids
        n, i = len(ids), ids.index(int(self.node))
        kind = line.mail.kind if line.mail is not None else ""
        match action:
            case (
                "leader_answers_fetch"
                | "leader_answers_diverging"
                | "leader_answers_epoch_end"
                | "leader_answers_undefined_epoch"
            ):
                follower, asks = (
                    number(message_fields.get("replica"), -1),
                    action.endswith(("epoch_end", "undefined_epoch")),
                )
                if kind != ("OffsetForLeaderEpochRequest" if asks else "FetchRequest") or follower not in ids:
                    raise LineRefused(f"{action} without the fetch of a replica")
                slot = {
                    "fetch": FETCH["ASKED" if asks else "REQUESTED"],
                    "fetch_to": 1 + i,
                    "fetch_epoch": number(message_fields.get("leader_epoch")),
                    "fetch_offset": ranks(number(message_fields.get("offset"))),
                    "fetch_last_epoch": max(0, number(message_fields.get("last_epoch"))),
                    "broker_epoch": max(0, number(message_fields.get("broker_epoch"))),
                }
                return [{name: map_with(n, ids.index(follower), value, 0) for name, value in slot.items()}]
            case "follower_appends" | "follower_truncates" | "follower_truncates_to_watermark":
                divergence_point = divergence(message_fields)
                if kind != ANSWERS[before.truncating] or bool(divergence_point) is (action == "follower_appends"):
                    raise LineRefused(f"{action} without such an answer to a fetch")
                wrong_epoch = self.model_steps().fences and message_fields.get("leader_epoch") != before.leader_epoch
                if (
                    message_fields.get("error") != "NONE"
                    or wrong_epoch
                    or message_fields.get("leader") != before.leader
                ):
                    raise LineRefused(f"{action} with an answer of another leader or epoch, or an error")
                if (message_fields.get("offset"), message_fields.get("last_epoch")) != (before.end, before.last_epoch):
                    raise LineRefused(f"{action} with the answer to another fetch than that from {before.end}")
                slot = {"fetch": FETCH["ANSWERED"], "fetch_epoch": number(message_fields.get("leader_epoch"))}
                slot |= {"fetch_watermark": ranks(max(0, number(message_fields.get("high_watermark"))))}
                if divergence_point and number(divergence_point.get("end")) < 0:
                    slot = {"fetch": FETCH["UNDEFINED"]}
                elif divergence_point:
                    slot = {"fetch": FETCH["DIVERGED"], **divergence_variables(divergence_point, ranks)}
                return [{name: map_with(n, i, value, 0) for name, value in slot.items()}]
            case "leader_adopts_isr" | "leader_rolls_back":
                if kind != "AlterPartitionResponse" or message_fields.get("leader_epoch") != before.leader_epoch:
                    raise LineRefused(f"{action} without an answer in this epoch")
                answer = "ACCEPTED" if message_fields.get("error") == "NONE" else "REFUSED"
                return [{"alter": map_with(n, i, ALTER[answer], 0)}]
            case "becomes_leader" | "becomes_follower" | "leader_learns_isr" | "leader_hears_isr_again":
                news = self._news(line)
                return [m.variables(ids) for m in reversed(news)]
            case "consumer_reads":
                positions = [ranks(line.read_offset)] if line.read_offset is not None else range(len(ranks.points))
                return [{"position": p} for p in positions]
            case _:
                return [{}]


def repeat_step(
    steps: ModelSteps,
    action: str,
    variables: Mapping[str, object],
    times: int,
    appends: bool,
    who: Mapping[str, int],
    end: int,
) -> list[ModelStep]:
    """Take a step as often as the line appends records of the model, which appends one at a time."""
    here = dict(variables)
    model_steps: list[ModelStep] = []
    for turn in range(times):
        if action == "follower_appends":
            i, record = who["follower"], end + turn
            here = {**here, **{k: variables[k] for k in ("fetch", "fetch_epoch", "fetch_watermark")}}
            write, size = (
                cast("tuple[int, ...]", here["written_in"]),
                len(cast("tuple[int, ...]", variables["fetch"])),
            )
            if appends:
                here["fetch_record"] = map_with(size, i, 1 + record, 0)
            here["written_in"] = (*write, *(0 for _ in range(record + 1 - len(write))))
        model_steps = [t for t in steps.steps(action, here) if all(t.parameters.get(k, v) == v for k, v in who.items())]
        if not model_steps:
            return []
        here = {**here, **model_steps[0].state}
    return model_steps
