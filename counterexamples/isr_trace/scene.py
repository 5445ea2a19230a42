"""The scene: one state of a replicated log as a picture in text, a row per replica, always in the same place.

    r1 L* [0@0 1@2|2@2]  epoch 2, isr {r1, r2}
    r2  * [0@0|1@2    ]  epoch 2, fetch requested
    r3 x  [0@0|       ]  epoch 1
          controller: leader r1, epoch 2, isr {r1, r2}
          clients: committed [0 1], acked {0}
          LOST: record 1 was acknowledged, and no replica has it

`L` leads, `*` is in the in-sync set, `x` is down; `1@2` is record 1 of leader epoch 2; the bar stands after
what the replica knows to be committed. What is drawn is found by the names and shapes of variables, all of
them in `ROLES`; a part without its variable is left out, and a model without logs has no scene at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from isr_lang.types import Type
from isr_trace.diff import Plain, as_expression, plain
from isr_trace.trace import State, Trace

LEGEND = "L leads, * in sync, x down; record@epoch; left of the bar: known to be committed"
LEGEND_WITHOUT_ISR = "L leads, x down; left of the bar: known to be committed"


# The shape of a role's value: one, several, or one per replica.
ONE, MANY, EACH = str, tuple, dict

ROLES: Mapping[str, tuple[type, tuple[str, ...]]] = {
    # of each replica
    "log": (EACH, ("log", "quorum_log")),
    "high watermark": (EACH, ("high_watermark", "quorum_end")),
    "epoch": (EACH, ("leader_epoch", "epoch", "term")),
    "role": (EACH, ("role",)),
    "vote": (EACH, ("vote",)),
    "support": (EACH, ("support",)),
    "follows": (EACH, ("leader",)),
    "own isr": (EACH, ("isr",)),
    "pending isr": (EACH, ("pending_isr",)),
    "fetch": (EACH, ("fetch",)),
    "alter": (EACH, ("alter",)),
    # of the whole
    "alive": (MANY, ("alive",)),
    "fenced": (MANY, ("fenced",)),
    "leader": (ONE, ("controller_leader", "leader")),
    "leaders": (MANY, ("quorum_leaders",)),
    "controller epoch": (ONE, ("controller_epoch",)),
    "isr": (MANY, ("controller_isr", "isr")),
    "elr": (MANY, ("controller_elr",)),
    # of records and clients
    "written in": (MANY, ("written_in",)),
    "committed": (MANY, ("committed", "quorum_committed")),
    "acked": (MANY, ("acked",)),
    "consumed": (MANY, ("consumed",)),
}
"""Role in the scene: the shape of its value, and the names its variable may have, the preferred one first."""

EVENTS = (
    "leader", "leaders", "isr", "role", "vote", "support", "high watermark", "committed", "acked", "alive",
)  # fmt: skip
CHOICES = (("vote", "vote for"), ("support", "supports"))
"""Whom somebody has chosen, by the role of the choice."""
NOBODY, LEADER = "none", "leader"


@attrs.frozen
class Row:
    """One replica."""

    name: str
    leads: bool
    in_sync: bool
    down: bool
    cells: tuple[str, ...]
    watermark: int | None
    remarks: tuple[str, ...]
    room: int
    """Characters between the brackets, so that all rows of a trace end in one column."""
    over: str
    """Of a leader: its ISR, or its maximal ISR while it has proposed another (KIP-497). It commits what all of these
    have."""

    def text(self) -> str:
        marks = f"{'x' if self.down else 'L' if self.leads else ' '}{'*' if self.in_sync else ' '}"
        line = f"{self.name} {marks} [{_cells_text(self.cells, self.watermark).ljust(self.room)}]"
        return f"{line}  {', '.join(self.remarks)}".rstrip()


@attrs.frozen
class Scene:
    """The rows and the lines below them; `losses` are those that say that something is gone."""

    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    losses: tuple[str, ...]

    def lines(self) -> list[str]:
        pad = " " * (max(len(r.name) for r in self.rows) + 4)
        return [r.text() for r in self.rows] + [pad + line for line in (*self.notes, *self.losses)]


def scene(trace: Trace, index: int) -> Scene | None:
    """The picture of a state, None when the model has no logs to draw."""
    view = View(trace, index)
    if not view.replicas:
        return None
    room = max(View(trace, i).width() for i in range(len(trace.states)))
    return Scene(tuple(view.row(r, room) for r in view.replicas), tuple(view.notes()), tuple(view.losses()))


def legend(trace: Trace) -> str:
    """What the marks of a scene mean: without an in-sync set nobody is in sync."""
    return LEGEND if "isr" in View(trace, 0).values_by_role else LEGEND_WITHOUT_ISR


def eventful(trace: Trace, index: int) -> bool:
    """Whether the step changes who leads, who is in sync, what is known as committed, acknowledged or lost;
    of a model without logs every step counts."""
    before, after = View(trace, index - 1), View(trace, index)
    if not after.replicas:
        return True
    changed = any(before.values_by_role.get(role) != after.values_by_role.get(role) for role in EVENTS)
    return changed or list(before.losses()) != list(after.losses())


class View:
    """A state by role: what the scene is drawn from; `names`: which variable has the role."""

    def __init__(self, trace: Trace, index: int) -> None:
        self._read_value(_plain(trace.states[index], trace.variables))

    @classmethod
    def of_values(cls, trace: Trace, values: Sequence[object]) -> View:
        """A state that the trace does not have, in the order of its variables."""
        return cls.of_plain(_plain(dict(zip(trace.variables, values, strict=True)), trace.variables))

    @classmethod
    def of_plain(cls, state: Mapping[str, Plain]) -> View:
        """A state of no trace, by the names of its variables."""
        view = cls.__new__(cls)
        view._read_value(state)
        return view

    def _read_value(self, state: Mapping[str, Plain]) -> None:
        self.values_by_role: dict[str, Plain] = {}
        self.names: dict[str, str] = {}
        for role, (shape, names) in ROLES.items():
            for name in names:
                value = state.get(name)
                if value is not None and isinstance(value, shape):
                    self.values_by_role[role], self.names[role] = value, name
                    break
        logs = self.values_by_role.get("log")
        drawable = isinstance(logs, dict) and all(isinstance(cells, tuple) for cells in logs.values())
        self.replicas = tuple(logs) if isinstance(logs, dict) and drawable else ()

    def each(self, role: str, replica: str) -> Plain | None:
        values = self.values_by_role.get(role)
        return values.get(replica) if isinstance(values, dict) else None

    def many(self, role: str) -> tuple[str, ...]:
        return _texts(self.values_by_role.get(role))

    def log(self, replica: str) -> tuple[str, ...]:
        return _texts(self.each("log", replica))

    def cells(self, replica: str) -> tuple[str, ...]:
        epochs = dict(enumerate(self.many("written in")))
        return tuple(
            f"{record}@{epochs[int(record)]}" if record.isdecimal() and int(record) in epochs else record
            for record in self.log(replica)
        )

    def width(self) -> int:
        return max((len(_cells_text(self.cells(r), 0)) for r in self.replicas), default=0)

    def down(self, replica: str) -> bool:
        return "alive" in self.values_by_role and replica not in self.many("alive")

    def leads(self, replica: str) -> bool:
        """By its own account where that is known (a deposed leader still acts), else by the controller's."""
        role = self.each("role", replica)
        if isinstance(role, str):
            return role == LEADER
        believes = self.each("follows", replica)
        leader = believes if believes is not None else self.values_by_role.get("leader")
        return replica in self.many("leaders") if leader is None else leader == replica

    def acting(self) -> bool:
        """Whether whoever was elected acts as leader of that epoch already; until then it can still be replaced."""
        elected, epoch = self.values_by_role.get("leader"), self.values_by_role.get("controller epoch")
        if not isinstance(elected, str) or elected not in self.replicas:
            return False
        own = self.each("epoch", elected)
        return self.leads(elected) and not self.down(elected) and (own is None or epoch is None or own == epoch)

    def row(self, replica: str, room: int) -> Row:
        watermark, epoch = self.each("high watermark", replica), self.each("epoch", replica)
        remarks = [f"epoch {epoch}"] if isinstance(epoch, str) else []
        role = self.each("role", replica)
        remarks += [role] if isinstance(role, str) and not self.down(replica) else []
        for role, words in CHOICES:
            choice = self.each(role, replica)
            remarks += [f"{words} {choice}"] if isinstance(choice, str) and choice != NOBODY else []
        for role, word in (("own isr", "isr"), ("pending isr", "asks for")):
            members = _texts(self.each(role, replica))
            remarks += [f"{word} {_set(members)}"] if members else []
        for message in ("fetch", "alter"):
            state = self.each(message, replica)
            remarks += [f"{message} {state}"] if isinstance(state, str) and state != NOBODY else []
        return Row(
            replica,
            self.leads(replica),
            replica in self.many("isr"),
            self.down(replica),
            self.cells(replica),
            int(watermark) if isinstance(watermark, str) and watermark.isdecimal() else None,
            tuple(remarks),
            room,
            self.over(replica),
        )

    def over(self, replica: str) -> str:
        """Of a leader that lives: its ISR with those that it has proposed, in the order of the replicas."""
        pending = _texts(self.each("pending isr", replica))
        members = {*_texts(self.each("own isr", replica)), *pending}
        if not members or not self.leads(replica) or self.down(replica):
            return ""
        return f"{'maximal ISR' if pending else 'ISR'} {_set(tuple(r for r in self.replicas if r in members))}"

    def notes(self) -> Iterator[str]:
        leader, epoch = self.values_by_role.get("leader"), self.values_by_role.get("controller epoch")
        parts: list[str] = []
        if isinstance(leader, str):
            parts.append("no leader" if leader == NOBODY else f"leader {leader}")
        if isinstance(epoch, str):
            parts.append(f"epoch {epoch}")
        parts += [f"isr {_set(self.many('isr'))}"] if "isr" in self.values_by_role else []
        parts += [f"{role} {_set(self.many(role))}" for role in ("elr", "fenced") if self.many(role)]
        if parts:
            yield "controller: " + ", ".join(parts)
        clients = [f"committed {_list(self.many('committed'))}"] if "committed" in self.values_by_role else []
        clients += [f"acked {_set(self.many('acked'))}"] if "acked" in self.values_by_role else []
        clients += [f"consumed {_list(self.many('consumed'))}"] if "consumed" in self.values_by_role else []
        if clients:
            yield "clients: " + ", ".join(clients)

    def losses(self) -> Iterator[str]:
        """In words: what was acknowledged or committed, and is where nobody can serve it.

        It is LOST once a leader acts without it. Before that it is AT RISK: another may still be elected, or an answer
        under way may bring it back.
        """
        acked = self.many("acked")
        nobody = "no replica" if "isr" in self.values_by_role else "nobody"
        for record in dict.fromkeys((*acked, *self.many("committed"))):
            was = f"record {record} was {'acknowledged' if record in acked else 'committed'}"
            holders = [r for r in self.replicas if record in self.log(r)]
            leader = self.values_by_role.get("leader")
            if not holders:
                yield f"{'LOST' if self.acting() else 'AT RISK'}: {was}, and {nobody} has it"
            elif isinstance(leader, str) and leader in self.replicas and leader not in holders:
                if self.acting():
                    yield f"LOST: {was}, and the leader {leader} does not have it"
                else:
                    yield f"AT RISK: {was}, and {leader}, which was elected, does not have it"
            elif all(self.down(r) for r in holders):
                yield f"UNAVAILABLE: {was}, and only {', '.join(holders)} has it, which is down"


ROLE_VARIABLES = frozenset(name for _, names in ROLES.values() for name in names)


def _plain(state: State, types: Mapping[str, Type | None]) -> dict[str, Plain]:
    """The variables of a state that have a role."""
    return {
        name: plain(as_expression(value, types.get(name))) for name, value in state.items() if name in ROLE_VARIABLES
    }


def _texts(value: Plain | None) -> tuple[str, ...]:
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, tuple) else ()


def _set(members: tuple[str, ...]) -> str:
    return "{" + ", ".join(members) + "}"


def _list(members: tuple[str, ...]) -> str:
    return "[" + " ".join(members) + "]"


def _cells_text(cells: tuple[str, ...], watermark: int | None) -> str:
    """The cells with a bar at the watermark; the bar takes the place of a space."""
    if watermark is None:
        return " ".join(cells)
    return " ".join(cells[:watermark]) + "|" + " ".join(cells[watermark:])
