"""What a replica sends to others and answers to clients must be what it knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

import attrs

from isr_validate.line_values import Fields, Mail, fields, number, rows
from isr_validate.model_step import Ranks, Taken
from isr_validate.replica_state import Held
from isr_validate.trace_lines import QUESTIONS, Answer
from isr_validate.verdict import Refused

ANSWERS: Final = ("FetchResponse", "OffsetForLeaderEpochResponse")
"""What a follower waits for: one that may fetch, and one that has to truncate first."""


@attrs.frozen
class Speaker:
    """A replica; `fences` if fetches and their answers are for one leader epoch."""

    node: str
    ids: tuple[int, ...]
    minimum: int
    fences: bool

    def speaks(self, mail: Mail, after: Held, action: str | None) -> None:
        """A message says what its sender knows."""
        wanted: dict[str, object] = {}
        said = mail.says
        match mail.kind:
            case "FetchRequest" | "OffsetForLeaderEpochRequest":
                if mail.kind != QUESTIONS[after.truncating]:
                    raise Refused(f"the {mail.kind} {mail.id} is not what such a follower asks")
                wanted = {"offset": after.end, "leader_epoch": after.leader_epoch, "last_epoch": after.last_epoch}
                if mail.to != str(after.leader):
                    wanted["to"] = after.leader
            case "FetchResponse" | "OffsetForLeaderEpochResponse" if said.get("error") == "NONE":
                wanted = {"leader_epoch": after.leader_epoch} if self.fences else {}
                wanted |= {} if told_end(said) else {"high_watermark": after.high_watermark}
                if after.leader != int(self.node):
                    wanted["leader"] = after.leader
            case "AlterPartitionRequest":
                wanted = {"leader_epoch": after.leader_epoch, "partition_epoch": after.partition_epoch}
                proposed = tuple(sorted(m[0] for m in rows(said.get("isr")) if m))
                if proposed != after.pending_isr:
                    raise Refused(
                        f"the AlterPartitionRequest {mail.id} proposes what its sender does not",
                        (),
                        {"pending_isr": (str(after.pending_isr), str(proposed))},
                    )
                if action == "leader_proposes_expansion":
                    self._members(said, after)
            case _:
                return
        wrong = {k: (str(v), str(said.get(k))) for k, v in wanted.items() if said.get(k) != v}
        if wrong:
            raise Refused(f"the {mail.kind} {mail.id} says what its sender does not know", (), wrong)

    def _members(self, said: Fields, after: Held) -> None:
        """Who is to join is named with the epoch of its life in which it fetched."""
        seen = dict(zip(self.ids, after.follower_broker_epoch or (0,) * len(self.ids), strict=True))
        for who, epoch in [(m[0], m[1]) for m in rows(said.get("isr")) if len(m) == 2]:
            if who not in after.isr and epoch != seen.get(who):
                raise Refused(
                    f"{who} is proposed as of epoch {epoch}", (), {"follower_broker_epoch": (str(seen), str(epoch))}
                )

    def answers(self, answer: Answer, before: Held, after: Held, action: str | None) -> None:
        """A client is told what the replica knows: an acknowledgement with acks=all only below the watermark."""
        leads, minimum = after.leader == int(self.node), self.minimum
        maximal = len({*after.isr, *after.pending_isr})
        match answer.kind, answer.error:
            case "Produce", "NONE" if answer.acks == -1 and answer.offset >= 0:
                if not leads or answer.end > after.high_watermark or maximal < minimum:
                    told = (f"{after.high_watermark}, ISR {after.isr}", f"acknowledged up to {answer.end}")
                    raise Refused("what is acknowledged is not committed", (), {"high_watermark": told})
            case "Produce", "NONE" if (
                answer.own and action == "leader_appends" and answer.offset not in (-1, before.end)
            ):
                raise Refused(f"a leader appends at {before.end}, and acknowledges {answer.offset}")
            case "Produce", "NONE" if answer.offset >= 0 and (not leads or answer.end > after.end):
                raise Refused(f"{answer.end} is acknowledged, and the log ends at {after.end}")
            case "Produce", "NOT_ENOUGH_REPLICAS" if not leads or len(after.isr) >= minimum:
                raise Refused(f"there are enough replicas: the ISR is {after.isr}, the minimum {minimum}")
            case "Produce", "NOT_ENOUGH_REPLICAS_AFTER_APPEND" if maximal >= minimum:
                raise Refused(f"there are enough replicas: the ISR is {after.isr}, the minimum {minimum}")
            case _, "NOT_LEADER_OR_FOLLOWER" if leads and action is None and not answer.halts:
                raise Refused(f"broker {self.node} leads")
            case "Consume", "NONE" if (
                answer.high_watermark != after.high_watermark or answer.end > after.high_watermark
            ):
                told = (str(after.high_watermark), f"{answer.high_watermark}, read up to {answer.end}")
                raise Refused("a consumer is told another watermark", (), {"high_watermark": told})
            case _:
                pass


def told_end(said: Fields) -> Fields:
    """Where an answer says that the logs part; empty if it does not."""
    return fields(said.get("diverging")) or fields(said.get("ends"))


def parting_point(told: Fields, ranks: Ranks) -> dict[str, int]:
    """The same as the model has it: without an epoch where nothing is in common."""
    end = number(told.get("end"))
    return {"fetch_offset": ranks(end), "fetch_last_epoch": max(0, number(told.get("epoch"))) if end else 0}


def tells_parting(sent: Iterable[Mail], taken: Taken, ranks: Ranks) -> None:
    """Where the logs part the leader says as the model's leader does."""
    for mail in sent:
        told = told_end(mail.says)
        if not told or number(told.get("end")) < 0 or "follower" not in taken.parameters:
            continue
        i, says = taken.parameters["follower"], parting_point(told, ranks)
        model = {name: cast("tuple[int, ...]", taken.state[name])[i] for name in says}
        model["fetch_last_epoch"] *= model["fetch_offset"] > 0
        if says != model:
            wrong = {name: (str(model[name]), str(says[name])) for name in says if model[name] != says[name]}
            raise Refused(f"the {mail.kind} {mail.id} tells of another place where the logs part", (), wrong)
