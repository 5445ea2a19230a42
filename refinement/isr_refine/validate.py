"""Traces against the model: each line that names an action must be that step of the model, and lead to what it tells.

The level is that of full snapshots: before a step a node is as its last line left it, a message is as it was sent, and
after the step the model's variables of that node must be those of the line. What no line tells is left free. A line
that no step explains ends the trace: `Rejected`. What a network does and the model's does not (a message that comes
twice, an older fetch after a newer) is `outside`: counted, with its line, neither accepted silently nor called a fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import attrs

from isr_broker.snapshot import Json
from isr_broker.trace_reading import BadTrace, Event, Life, in_order
from isr_refine.observed import Fields, Mail, Row, Seen, fields, mails, number, own, rows, ruled
from isr_refine.stepping import ALTER, FETCH, Ranks, Stepper, Taken, at, mask
from isr_refine.verdict import STUTTERS, Refused, Rejected, Validated

_OF_CONTROLLER = ("controller_", "broker_")


@attrs.define
class Validator:
    """What the lines so far have told; `takes` one more."""

    settings: Mapping[str, str]
    done: Validated = attrs.field(factory=Validated)
    seen: dict[tuple[str, str], Seen] = attrs.field(factory=dict[tuple[str, str], Seen])
    rulings: dict[str, Fields] = attrs.field(factory=dict[str, Fields])
    replicas: dict[str, tuple[int, ...]] = attrs.field(factory=dict[str, tuple[int, ...]])
    news: dict[tuple[str, str], list[Fields]] = attrs.field(factory=dict[tuple[str, str], list[Fields]])
    brokers: dict[int, Fields] = attrs.field(factory=dict[int, Fields])
    mail: dict[str, Mail] = attrs.field(factory=dict[str, Mail])
    arrived: set[tuple[str, str, str]] = attrs.field(factory=set[tuple[str, str, str]])
    last_fetch: dict[tuple[str, int], str] = attrs.field(factory=dict[tuple[str, int], str])
    appended: dict[tuple[str, int, int], Row] = attrs.field(factory=dict[tuple[str, int, int], Row])
    lives: dict[str, str] = attrs.field(factory=dict[str, str])
    steppers: dict[int, Stepper] = attrs.field(factory=dict[int, Stepper])

    def takes(self, event: Event) -> None:
        """One more line; `Refused` if no step of the model explains it."""
        says, node = event.says, event.life.partition(".")[0]
        if self.lives.get(node) != event.life:
            self._begins(node)
            self.lives[node] = event.life
        self._hears(event, node)
        action, tp = says.get("action"), str(says.get("partition"))
        if isinstance(action, str):
            if action.startswith(_OF_CONTROLLER) != (node == "controller"):
                raise Refused(f"{action} is no action of {node}")
            if not isinstance(says.get("state"), dict):
                raise BadTrace(f"{event.life}, line {event.number + 1}: there is no state after {action}")
            (self._rules if node == "controller" else self._steps)(event, node, tp, action)
            self.done.steps[action] += 1
        else:
            told = str(says.get("input"))
            if told not in STUTTERS:
                raise Refused(f"no input is called {told}")
            if "log" in says:
                self.seen[node, tp] = Seen(rows(says.get("log")), {"high_watermark": says.get("high_watermark")})
            self.done.stutters[told] += 1
        self._sends(event, node)
        self.done.events += 1

    def _begins(self, node: str) -> None:
        """Another life: what the node knew in memory is gone."""
        if node == "controller":
            self.rulings.clear()
            return
        for key in [key for key in self.seen if key[0] == node]:
            self.seen[key] = Seen(self.seen[key].log, {})
        for key in [key for key in self.news if key[0] == node]:
            del self.news[key]

    def _hears(self, event: Event, node: str) -> None:
        received = event.says.get("received")
        if received is None:
            return
        mail = self.mail.get(str(received))
        if mail is None:
            raise Refused(f"the message {received} was sent by nobody")
        if mail.kind != event.says.get("input"):
            raise Refused(f"the message {received} is a {mail.kind}, not a {event.says.get('input')}")
        for partition in self._partitions(mail) if mail.kind == "Metadata" else []:
            self.news.setdefault((node, str(partition.get("partition"))), []).append(partition)
        if "action" in event.says:
            key = (event.life, mail.id, f"{event.says['action']} {event.says.get('partition')}")
            follower = number(mail.says.get("replica"))
            last = self.last_fetch.get((str(mail.says.get("partition")), follower))
            if key in self.arrived and mail.kind != "Metadata":
                self._outside(event, f"the {mail.kind} {mail.id} came twice")
            elif mail.kind == "FetchRequest" and last != mail.id:
                self._outside(event, f"a newer fetch was sent after {mail.id}")
            self.arrived.add(key)

    def _outside(self, event: Event, why: str) -> None:
        self.done.outside.append((event.life, event.number + 1, why))

    @staticmethod
    def _partitions(mail: Mail) -> list[Fields]:
        found = mail.says.get("partitions")
        return [fields(p) for p in found] if isinstance(found, list) else []

    def _sends(self, event: Event, node: str) -> None:
        for mail in mails(node, event.says.get("sent")):
            if mail.id in self.mail:
                raise Refused(f"the message {mail.id} is sent a second time")
            self.mail[mail.id] = mail
            tp = str(mail.says.get("partition"))
            if mail.kind == "FetchRequest":
                self.last_fetch[tp, int(node)] = mail.id
                self._agrees(mail, {"offset": self.seen[node, tp].end, **self._said(node, tp)})
            if mail.kind == "FetchResponse" and mail.says.get("error") == "NONE" and (node, tp) in self.seen:
                if mail.says.get("diverging") is None:
                    self._agrees(mail, {"high_watermark": self.seen[node, tp].state.get("high_watermark")})
                self._agrees(mail, self._said(node, tp))
            if mail.kind == "Metadata":
                self._announces(mail)

    def _said(self, node: str, tp: str) -> dict[str, object]:
        return {"leader_epoch": self.seen[node, tp].state.get("leader_epoch")}

    @staticmethod
    def _agrees(mail: Mail, wanted: Mapping[str, object]) -> None:
        wrong = {
            k: (str(v), str(mail.says.get(k))) for k, v in wanted.items() if v is not None and mail.says.get(k) != v
        }
        if wrong:
            raise Refused(f"the {mail.kind} {mail.id} says what its sender does not know", (), wrong)

    def _announces(self, mail: Mail) -> None:
        """Metadata tells who the replicas are; and, before its first line, the controller's state of a partition."""
        found = mail.says.get("brokers")
        for broker in [fields(b) for b in found] if isinstance(found, list) else []:
            self.brokers[number(broker.get("broker"))] = broker
        for partition in self._partitions(mail):
            tp, who = str(partition.get("partition")), partition.get("replicas")
            if tp not in self.replicas and isinstance(who, list) and who:
                self.replicas[tp] = tuple(sorted(b for b in who if isinstance(b, int)))
                state = {f"controller_{n}": partition.get(n) for n in ("leader", "partition_epoch", "isr", "elr")}
                self.rulings[tp] = {
                    **state,
                    "controller_epoch": partition.get("leader_epoch"),
                    "last_known_leader": partition.get("last_known_leader"),
                    "fenced": [b for b, known in self.brokers.items() if known.get("fenced")],
                    "shutting_down": [b for b, known in self.brokers.items() if known.get("shutting_down")],
                    "broker_epoch": {str(b): known.get("epoch") for b, known in self.brokers.items()},
                }

    def _stepper(self, ids: tuple[int, ...]) -> Stepper:
        if len(ids) not in self.steppers:
            minimum = min(int(self.settings.get("min.insync.replicas", "1")), len(ids))
            unclean = self.settings.get("unclean.leader.election.enable") == "true"
            reads = self.settings.get("insync.follower.reads") == "true"
            self.steppers[len(ids)] = Stepper(len(ids), minimum, unclean, reads)
        return self.steppers[len(ids)]

    # A broker's step

    def _steps(self, event: Event, node: str, tp: str, action: str) -> None:
        ids, me = self.replicas.get(tp, ()), int(node)
        if me not in ids:
            raise Refused(f"broker {me} is no replica of {tp}")
        before, state = self.seen.get((node, tp), Seen()), fields(event.says.get("state"))
        if action == "follower_truncates":
            end = number(state.get("log_end"))
            after = Seen([row for row in before.log if row[0] + row[2] <= end], state)
        else:
            after = Seen([*before.log, *self._written(event, tp, before, action)], state)
        if after.end != number(state.get("log_end")):
            raise Refused(f"the log ends at {after.end}, and the line says at {state.get('log_end')}")
        noted = [tuple(e) for e in rows(state.get("log_epochs"))]
        if [e for e in noted if e in after.epochs()] != after.epochs():
            raise Refused(f"the epochs of the log are {after.epochs()}, and the line says {noted}")
        stepper, mail = self._stepper(ids), self.mail.get(str(event.says.get("received")))
        if not stepper.knows(action):
            raise Refused(f"the model has no action {action}")
        said: Fields = mail.says if mail is not None else dict[str, Json]()
        diverging = fields(said.get("diverging"))
        extra = {number(said.get(k)) for k in ("offset", "high_watermark") if isinstance(said.get(k), int)}
        ranks = Ranks.of({*before.offsets(), *after.offsets(), *extra, number(diverging.get("end"))})
        told = before.variables(ids, me, ranks)
        wanted: dict[str, object] = own(state, ids, me, ranks)
        wanted["log"] = len(ranks.between(0, after.end))
        who = {
            "leader"
            if action.startswith("leader_")
            else "follower"
            if action.startswith("follower_")
            else "r": ids.index(me)
        }
        choices = [{**told, **slot} for slot in self._slots(event, node, tp, action, said, ranks)]
        gaps = len(ranks.between(before.end, after.end)) if action in ("follower_appends", "leader_appends") else 1
        follower = number(said.get("replica"))
        if mail is not None and mail.kind == "FetchRequest" and follower in ids:
            who["follower"] = ids.index(follower)
        found: list[Taken] = []
        for choice in choices:
            found += self._repeated(
                stepper, action, choice, max(1, gaps), after.end > before.end, who, before.end, ranks
            )
        self._compare(event, stepper, action, choices, who, found, wanted, ids.index(me))
        self.seen[node, tp] = after

    def _written(self, event: Event, tp: str, before: Seen, action: str) -> list[Row]:
        """The batches that the line appends: a leader's are new and its epoch's, a follower's those of a leader."""
        new, end = rows(event.says.get("wrote")), before.end
        for row in new:
            if len(row) != 7 or row[0] != end or row[2] < 1:
                raise Refused(f"a batch at {row[:1]} is appended to a log that ends at {end}")
            end = row[0] + row[2]
            known = self.appended.get((tp, row[0], row[1]))
            if action == "leader_appends":
                if row[1] != number(before.state.get("leader_epoch")):
                    raise Refused(f"a leader in epoch {before.state.get('leader_epoch')} writes in epoch {row[1]}")
                self.appended[tp, row[0], row[1]] = row
            elif known != row:
                raise Refused(f"no leader has written the batch at {row[0]} of epoch {row[1]} that is appended")
        return new

    def _slots(
        self, event: Event, node: str, tp: str, action: str, said: Fields, ranks: Ranks
    ) -> list[dict[str, object]]:
        """The variables that the step reads beside its own: the message, or the metadata that was learned."""
        ids = self.replicas[tp]
        n, i = len(ids), ids.index(int(node))
        match action:
            case "leader_answers_fetch" | "leader_answers_diverging":
                follower = number(said.get("replica"))
                if follower not in ids:
                    raise Refused(f"{action} without the fetch of a replica")
                f = ids.index(follower)
                slot = {"fetch": FETCH["REQUESTED"], "fetch_to": 1 + i, "fetch_epoch": number(said.get("leader_epoch"))}
                slot |= {"fetch_offset": ranks(number(said.get("offset")))}
                slot |= {"fetch_last_epoch": max(0, number(said.get("last_epoch")))}
                slot |= {"broker_epoch": max(0, number(said.get("broker_epoch")))}
                return [{name: at(n, f, value, 0) for name, value in slot.items()}]
            case "follower_appends":
                slot = {"fetch": FETCH["ANSWERED"], "fetch_epoch": number(said.get("leader_epoch"))}
                slot |= {"fetch_watermark": ranks(number(said.get("high_watermark")))}
                return [{name: at(n, i, value, 0) for name, value in slot.items()}]
            case "follower_truncates":
                diverging = fields(said.get("diverging"))
                end = number(diverging.get("end"))
                slot = {"fetch": FETCH["DIVERGED"], "fetch_offset": ranks(end)}
                slot |= {"fetch_last_epoch": max(0, number(diverging.get("epoch"))) if end else 0}
                return [{name: at(n, i, value, 0) for name, value in slot.items()}]
            case "leader_adopts_isr" | "leader_rolls_back":
                answer = "ACCEPTED" if said.get("error") == "NONE" else "REFUSED"
                return [{"alter": at(n, i, ALTER[answer], 0)}]
            case "becomes_leader" | "becomes_follower" | "leader_learns_isr":
                return [ruled(m, ids) for m in reversed(self.news.get((node, tp), []))]
            case "consumer_reads":
                return [{"position": p} for p in range(len(ranks.points))]
            case _:
                return [{}]

    @staticmethod
    def _repeated(
        stepper: Stepper,
        action: str,
        told: Mapping[str, object],
        times: int,
        appends: bool,
        who: Mapping[str, int],
        end: int,
        ranks: Ranks,
    ) -> list[Taken]:
        """One line may append several records of the model, which appends one at a time."""
        here = dict(told)
        found: list[Taken] = []
        for turn in range(times):
            if action == "follower_appends":
                i, record = who["follower"], ranks(end) + turn
                here = {**here, **{k: told[k] for k in ("fetch", "fetch_epoch", "fetch_watermark")}}
                written, size = cast("tuple[int, ...]", here["written_in"]), len(cast("tuple[int, ...]", told["fetch"]))
                if appends:
                    here["fetch_record"] = at(size, i, 1 + record, 0)
                here["written_in"] = (*written, *(0 for _ in range(record + 1 - len(written))))
            found = [t for t in stepper.steps(action, here) if all(t.parameters.get(k, v) == v for k, v in who.items())]
            if not found:
                return []
            here = {**here, **found[0].state}
        return found

    # The controller's step

    def _rules(self, event: Event, node: str, tp: str, action: str) -> None:
        state, ids = fields(event.says.get("state")), self.replicas.get(tp)
        if tp not in self.rulings or ids is None:
            self.done.unchecked += 1
            self.rulings[tp] = state
            return
        stepper, replica = self._stepper(ids), number(event.says.get("replica"), -1)
        if not stepper.knows(action) or replica not in ids:
            raise Refused(f"the model has no action {action} of {replica}")
        told, wanted = ruled(self.rulings[tp], ids), ruled(state, ids)
        i, n = ids.index(replica), len(ids)
        mail = self.mail.get(str(event.says.get("received")))
        if "alter_partition" in action:
            if mail is None or mail.kind != "AlterPartitionRequest":
                raise Refused(f"{action} without a request")
            members = [(m[0], m[1]) for m in rows(mail.says.get("isr"))]
            joins = [e for b, e in members if b in ids and not int(str(told["controller_isr"])) >> ids.index(b) & 1]
            told |= {
                "alter": at(n, i, ALTER["REQUESTED"], 0),
                "alter_isr": at(n, i, mask(ids, [b for b, _ in members]), 0),
                "alter_leader_epoch": at(n, i, number(mail.says.get("leader_epoch")), 0),
                "alter_partition_epoch": at(n, i, number(mail.says.get("partition_epoch")), 0),
                "alter_broker_epoch": at(n, i, joins[0] if joins else 0, 0),
            }
        everybody = (1 << n) - 1
        choices: list[dict[str, object]] = [
            {**told, "alive": alive, "clean_shutdown": clean}
            for alive in (everybody, everybody & ~(1 << i))
            for clean in (0, 1 << i)
        ]
        key = stepper.instance.actions[[a.name for a in stepper.instance.actions].index(action)].parameters[0][0]
        if action == "broker_restarts":
            wanted.pop("broker_epoch")
        found = [t for c in choices for t in stepper.steps(action, c)]
        if key in ("leader", "r"):
            found = [t for t in found if t.parameters[key] == i] or [
                t for t in found if t.parameters.get("successor") == i
            ]
        self._compare(event, stepper, action, choices, {}, found, wanted, None)
        self.rulings[tp] = state

    def _compare(
        self,
        event: Event,
        stepper: Stepper,
        action: str,
        choices: Iterable[Mapping[str, object]],
        who: Mapping[str, int],
        found: list[Taken],
        wanted: Mapping[str, object],
        place: int | None,
    ) -> None:
        """Some step must lead to what the line tells."""
        self.done.successors += len(found)
        nearest: dict[str, tuple[str, str]] | None = None
        for taken in found:
            wrong: dict[str, tuple[str, str]] = {}
            for name, value in wanted.items():
                model = taken.state.get(name)
                if place is not None:
                    model = cast("tuple[object, ...]", model)[place]
                if name == "log":
                    model = len(cast("tuple[object, ...]", model))
                if model != value:
                    wrong[name] = (str(model), str(value))
            if not wrong:
                return
            if nearest is None or len(wrong) < len(nearest):
                nearest = wrong
        if nearest is not None:
            waits = self.settings.get("insync.waits.for.joiners") == "true"
            model, told = nearest.get("high_watermark", ("0", "0"))
            if waits and len(nearest) == 1 and place is not None and told.isdigit() and int(told) < int(model):
                self._outside(event, "the watermark waits for who joins (insync.waits.for.joiners)")
                return
            raise Refused(f"{action} leads elsewhere in the model", (), nearest)
        guards = [g for choice in list(choices)[:1] for g in stepper.refusals(action, choice, who)]
        raise Refused(f"the model does not allow {action} here", guards)


def validate(lives: Iterable[Life]) -> Validated:
    """Every line in an order that no cause contradicts, to the end or to the first that is rejected."""
    known = list(lives)
    headers = [fields(life.header.get("settings")) for life in known if life.header]
    settings: Fields = headers[0] if headers else {}
    if settings.get("insync.design", "kip-966") != "kip-966":
        raise BadTrace(f"traces of {settings.get('insync.design')} are not validated; only those of kip-966")
    validator = Validator({name: str(value) for name, value in settings.items()})
    done, recent = validator.done, list[str]()
    for event in in_order(known):
        try:
            validator.takes(event)
        except Refused as no:
            action = str(event.says.get("action", event.says.get("input")))
            done.rejected = Rejected(
                event.life, event.number + 1, action, no.why, no.guards, no.differences, tuple(recent[-20:])
            )
            return done
        node = event.life.partition(".")[0]
        for sent in mails(node, event.says.get("sent")):
            recent.append(f"{node} -> {sent.kind} {sent.id}")
        del recent[:-40]
    return done
