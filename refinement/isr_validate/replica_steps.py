"""What a replica may have become with a line: the model's steps from what it was, and what the line says it became.

A hidden variable has every value that a step of the model may give it; what is told narrows it. A line without an
action changes nothing, but what it sends and answers must be what the replica then knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

import attrs

from isr_validate.line_values import Fields, Row, number, rows
from isr_validate.message_checks import ANSWERS, Speaker, parting_point, tells_parting, told_end
from isr_validate.model_step import ALTER, FETCH, Ranks, Stepper, Taken, at
from isr_validate.model_step import stepper as stepper_of
from isr_validate.replica_state import Held, Ruling, different
from isr_validate.trace_lines import LEARNS, Level, Line, Lines
from isr_validate.verdict import Refused, Way

APPENDS: Final = ("leader_appends", "follower_appends")


@attrs.define
class ReplicaSteps:
    """One replica's lines."""

    lines: Lines
    node: str
    tp: str
    outside: dict[int, str] = attrs.field(factory=dict[int, str])
    bounded: bool = False

    @property
    def speaker(self) -> Speaker:
        """Who looks at what the replica sends and answers."""
        return Speaker(self.node, self.ids, self.lines.partitions[self.tp].minimum, self.stepper().fences)

    @property
    def ids(self) -> tuple[int, ...]:
        """The replicas of the partition."""
        return self.lines.partitions[self.tp].ids

    def as_state(self, state: object) -> Held:
        """A state that the search has come to."""
        return state if isinstance(state, Held) else Held()

    def first(self) -> Held:
        """Nothing is known of it."""
        return Held()

    def after(self, line: Line, held: Held, ways: list[Way]) -> Iterator[Held]:
        """Every state after the line; how it fails goes to `ways`."""
        if line.begins:
            yield held.reborn()
            return
        if line.found is not None:
            yield line.found
            return
        seen: set[Held] = set()
        for before in self._learned(line, held):
            for action in line.actions:
                for after in self._tried(line, before, action, before is not held, ways):
                    if after not in seen:
                        seen.add(after)
                        yield after

    def _tried(self, line: Line, before: Held, action: str | None, learned: bool, ways: list[Way]) -> Iterator[Held]:
        try:
            afters = [before] if action is None else self._acts(line, before, action)
        except Refused as no:
            ways.append(Way(str(before), no.why, no.guards, no.differences))
            return
        for after in afters:
            try:
                for mail in line.sent:
                    self.speaker.speaks(mail, after, action)
                for answer in line.answers:
                    self.speaker.answers(answer, before, after, "learned" if learned and action is None else action)
            except Refused as no:
                ways.append(Way(str(after), no.why, no.guards, no.differences))
                continue
            yield after

    def _learned(self, line: Line, held: Held) -> Iterator[Held]:
        """The state, and where actions are hidden what it is after some news, the latest first; at most two lessons."""
        yield held
        if self.lines.level is not Level.CLIENT:
            return
        known = {held}
        edge = [held]
        for _ in range(2):
            after: list[Held] = []
            for state in edge:
                for news in reversed(self._news(line)):
                    if (news.controller_epoch, news.controller_partition_epoch) <= (
                        state.leader_epoch,
                        state.partition_epoch,
                    ) and state.leader is not None:
                        continue
                    after += self._lessons(line, state, news)
            edge = [state for state in dict.fromkeys(after) if state not in known]
            known |= set(edge)
            yield from edge

    def _news(self, line: Line) -> list[Ruling]:
        """What this life has heard of the partition up to the line."""
        return self.lines.news.get((self.node, self.tp), [])[slice(*line.news)]

    def _lessons(self, line: Line, held: Held, news: Ruling) -> list[Held]:
        ranks = Ranks.of(held.offsets())
        told = {**held.variables(self.ids, int(self.node), ranks), **news.variables(self.ids)}
        found: list[Held] = []
        for action in LEARNS:
            for taken in self.stepper().steps(action, told):
                if self.ids.index(int(self.node)) in taken.parameters.values():
                    found.append(
                        self._cut(held, taken, ranks).followed_by(taken.state, self.ids, int(self.node), ranks)
                    )
        return found

    def _cut(self, held: Held, taken: Taken, ranks: Ranks) -> Held:
        """With the log that the step leaves."""
        log = cast("tuple[tuple[int, ...], ...]", taken.state["log"])[self.ids.index(int(self.node))]
        return held.cut(ranks.points[len(log)])

    def stepper(self, acks: int = 1) -> Stepper:
        """The model with the partition's settings."""
        known = self.lines.partitions[self.tp]
        return stepper_of(self.lines.design, len(known.ids), known.minimum, known.unclean, self.lines.reads, acks)

    # An action

    def _acts(self, line: Line, before: Held, action: str) -> list[Held]:
        """The states after a step of the model; `Refused` if there is none, or none that the line tells."""
        ids, me = self.ids, int(self.node)
        steps = self.stepper(line.acks if line.acks is not None and action == "leader_appends" else 1)
        if not steps.knows(action):
            raise Refused(f"the model has no action {action}")
        new = self._appended(line, before, action)
        grown = before.with_rows(new)
        said: Fields = line.mail.says if line.mail is not None else {}
        told = None
        if line.state is not None:
            told = self._told(line, before, grown, action)
        ranks = self.ranks(line, before, grown, said, told)
        who = self.who(action, said)
        choices = [
            {**before.variables(ids, me, ranks), **slot} for slot in self.slots(line, before, action, said, ranks)
        ]
        found: list[Held] = []
        for choice in choices:
            times = max(1, len(ranks.between(before.end, grown.end)))
            for taken in repeated(steps, action, choice, times, bool(new), who, ranks(before.end)):
                tells_parting(line.sent, taken, ranks)
                left = grown if action in APPENDS else self._cut(grown, taken, ranks)
                found.append(left.followed_by(taken.state, ids, me, ranks))
        if not found:
            guards = [g for choice in choices[:1] for g in steps.refusals(action, choice, who)]
            raise Refused(f"the model does not allow {action} here", guards)
        if told is not None:
            return self._as_told(line, found, told, action)
        return self._held_back(before, found)

    def _told(self, line: Line, before: Held, grown: Held, action: str) -> Held:
        """The snapshot, of a log that it must agree with."""
        state = line.state or {}
        end = number(state.get("log_end"), -1)
        epochs = grown.cut(end).epochs
        noted = [(e[0], e[1]) for e in rows(state.get("log_epochs")) if len(e) == 2]
        if [e for e in noted if e in epochs] != list(epochs) or any(s < end for e, s in noted if (e, s) not in epochs):
            raise Refused("the epochs of the log are others", (), {"log_epochs": (str(list(epochs)), str(noted))})
        if "isr" in state and (state.get("leader") != int(self.node) or not self._begins(state, grown, noted)):
            raise Refused(f"{self.node} does not lead, or its epoch does not begin there")
        return Held.told(state, self.ids, epochs)

    def _begins(self, state: Fields, grown: Held, noted: Sequence[tuple[int, int]]) -> bool:
        """Its epoch begins where the leader says: as the log has it, or the file of epochs.

        Where a restart may go unnoticed, it leads again in the same epoch, which for it begins at its log end then
        (Partition.makeLeader); the model's begins with its first record, and keeps fewer out of the ISR.
        """
        epoch, told = state.get("leader_epoch"), number(state.get("start_of_own_epoch"))
        first = [next((s for e, s in known if e == epoch), grown.end) for known in (grown.epochs, noted)]
        later = self.stepper().knows("broker_restarts_unnoticed") and min(first) <= told <= grown.end
        return told in first or later

    def _as_told(self, line: Line, found: Sequence[Held], told: Held, action: str) -> list[Held]:
        """The one that the line tells; a watermark that waits for joiners is outside of the model."""
        wrong = [different(state, told) for state in found]
        if {} in wrong:
            return [told]
        nearest = min(wrong, key=len)
        model, line_says = nearest.get("high_watermark", ("0", "0"))
        if self.lines.waits and len(nearest) == 1 and line_says.isdigit() and int(line_says) < int(model):
            self.outside[line.place] = "the watermark waits for who joins (insync.waits.for.joiners)"
            return [told]
        raise Refused(f"{action} leads elsewhere in the model", (), nearest)

    def _held_back(self, before: Held, found: list[Held]) -> list[Held]:
        """Where nobody tells the watermark, and it may wait for who joins, each value that it may wait at."""
        if not self.lines.waits:
            return list(dict.fromkeys(found))
        every: list[Held] = []
        for state in found:
            points = {before.high_watermark, *(e for e in state.follower_end if e is not None)}
            between = sorted((p for p in points if before.high_watermark <= p < state.high_watermark), reverse=True)
            every += [state, *(attrs.evolve(state, high_watermark=p) for p in between)]
        return list(dict.fromkeys(every))

    def _appended(self, line: Line, before: Held, action: str) -> list[Row]:
        """The batches that the action appends, where the log ends."""
        if action not in APPENDS:
            if line.wrote and self.lines.level is not Level.CLIENT:
                raise Refused(f"{action} writes nothing")
            return []
        end, new = before.end, list[Row]()
        if action == "leader_appends" and not line.wrote:
            raise Refused("a leader appends nothing")
        for row in line.wrote:
            placed = (end, before.leader_epoch, *row[2:]) if row[0] < 0 else row
            if placed[0] != end:
                raise Refused(f"a batch at {placed[0]} is appended to a log that ends at {end}")
            if action == "leader_appends" and placed[1] != before.leader_epoch:
                raise Refused(f"a leader in epoch {before.leader_epoch} writes in epoch {placed[1]}")
            new.append(placed)
            end = placed[0] + placed[2]
        return new

    def ranks(self, line: Line, before: Held, grown: Held, said: Fields, told: Held | None) -> Ranks:
        """The offsets that the step knows of."""
        extra = {number(said.get(k)) for k in ("offset", "high_watermark") if isinstance(said.get(k), int)}
        extra |= {number(told_end(s).get("end")) for s in (said, *(mail.says for mail in line.sent))}
        extra |= {line.asked} if line.asked is not None else set()
        extra |= told.offsets() if told is not None else set()
        return Ranks.of({o for o in (*before.offsets(), *grown.offsets(), *extra) if o >= 0})

    def who(self, action: str, said: Fields) -> dict[str, int]:
        """The parameters that the line tells."""
        me = self.ids.index(int(self.node))
        name = action.partition("_")[0]
        who = {name if name in ("leader", "follower") else "r": me}
        if action.startswith("leader_answers"):
            follower = number(said.get("replica"), -1)
            if follower in self.ids:
                who["follower"] = self.ids.index(follower)
        return who

    def slots(self, line: Line, before: Held, action: str, said: Fields, ranks: Ranks) -> list[Mapping[str, object]]:
        """The variables that the step reads beside its own: the message, or the metadata that was learned."""
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
                follower, asks = number(said.get("replica"), -1), action.endswith(("epoch_end", "undefined_epoch"))
                if kind != ("OffsetForLeaderEpochRequest" if asks else "FetchRequest") or follower not in ids:
                    raise Refused(f"{action} without the fetch of a replica")
                slot = {
                    "fetch": FETCH["ASKED" if asks else "REQUESTED"],
                    "fetch_to": 1 + i,
                    "fetch_epoch": number(said.get("leader_epoch")),
                    "fetch_offset": ranks(number(said.get("offset"))),
                    "fetch_last_epoch": max(0, number(said.get("last_epoch"))),
                    "broker_epoch": max(0, number(said.get("broker_epoch"))),
                }
                return [{name: at(n, ids.index(follower), value, 0) for name, value in slot.items()}]
            case "follower_appends" | "follower_truncates" | "follower_truncates_to_watermark":
                told = told_end(said)
                if kind != ANSWERS[before.truncating] or bool(told) is (action == "follower_appends"):
                    raise Refused(f"{action} without such an answer to a fetch")
                wrong_epoch = self.stepper().fences and said.get("leader_epoch") != before.leader_epoch
                if said.get("error") != "NONE" or wrong_epoch or said.get("leader") != before.leader:
                    raise Refused(f"{action} with an answer of another leader or epoch, or an error")
                if (said.get("offset"), said.get("last_epoch")) != (before.end, before.last_epoch):
                    raise Refused(f"{action} with the answer to another fetch than that from {before.end}")
                slot = {"fetch": FETCH["ANSWERED"], "fetch_epoch": number(said.get("leader_epoch"))}
                slot |= {"fetch_watermark": ranks(max(0, number(said.get("high_watermark"))))}
                if told and number(told.get("end")) < 0:
                    slot = {"fetch": FETCH["UNDEFINED"]}
                elif told:
                    slot = {"fetch": FETCH["DIVERGED"], **parting_point(told, ranks)}
                return [{name: at(n, i, value, 0) for name, value in slot.items()}]
            case "leader_adopts_isr" | "leader_rolls_back":
                if kind != "AlterPartitionResponse" or said.get("leader_epoch") != before.leader_epoch:
                    raise Refused(f"{action} without an answer in this epoch")
                answer = "ACCEPTED" if said.get("error") == "NONE" else "REFUSED"
                return [{"alter": at(n, i, ALTER[answer], 0)}]
            case "becomes_leader" | "becomes_follower" | "leader_learns_isr":
                news = self._news(line)
                return [m.variables(ids) for m in reversed(news)]
            case "consumer_reads":
                positions = [ranks(line.asked)] if line.asked is not None else range(len(ranks.points))
                return [{"position": p} for p in positions]
            case _:
                return [{}]


def repeated(
    steps: Stepper,
    action: str,
    told: Mapping[str, object],
    times: int,
    appends: bool,
    who: Mapping[str, int],
    end: int,
) -> list[Taken]:
    """One line may append several records of the model, which appends one at a time."""
    here = dict(told)
    found: list[Taken] = []
    for turn in range(times):
        if action == "follower_appends":
            i, record = who["follower"], end + turn
            here = {**here, **{k: told[k] for k in ("fetch", "fetch_epoch", "fetch_watermark")}}
            written, size = cast("tuple[int, ...]", here["written_in"]), len(cast("tuple[int, ...]", told["fetch"]))
            if appends:
                here["fetch_record"] = at(size, i, 1 + record, 0)
            here["written_in"] = (*written, *(0 for _ in range(record + 1 - len(written))))
        found = [t for t in steps.steps(action, here) if all(t.parameters.get(k, v) == v for k, v in who.items())]
        if not found:
            return []
        here = {**here, **found[0].state}
    return found
