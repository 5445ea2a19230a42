"""The names of variables that mean something to the picture, beyond those of the scene in text (isr_trace.scene).

A model without these variables is drawn without the part; nothing else in this package names a variable.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from isr_trace.scene import EACH, MANY, ONE
from isr_trace.scene import ROLES as OF_THE_SCENE


@attrs.frozen
class Mail:
    """A variable that holds, per replica, the one message of that replica: its question or the answer to it.

    `to` names the variable with the receiver of a question, or the one who receives them all; `fields`: what is worth
    saying of a message, by the value that stands for it.
    """

    variable: str
    questions: Mapping[str, str]
    answers: Mapping[str, str]
    to: str
    fields: Mapping[str, Mapping[str, str]]

    def variables(self) -> list[str]:
        """Every variable that a message is made of."""
        named = [name for said in self.fields.values() for name in said.values()]
        return list(dict.fromkeys([self.variable, self.to, *named]))


MAIL = (
    Mail(
        "fetch",
        {"requested": "fetch", "asked": "epoch end?"},
        {"answered": "records", "diverged": "diverging", "undefined": "unknown epoch"},
        "fetch_to",
        {
            "requested": {"from": "fetch_offset", "epoch": "fetch_epoch", "last epoch": "fetch_last_epoch"},
            "asked": {"last epoch": "fetch_last_epoch", "epoch": "fetch_epoch"},
            "answered": {"record": "fetch_record", "watermark": "fetch_watermark"},
            "diverged": {"epoch": "fetch_last_epoch", "ends at": "fetch_offset"},
        },
    ),
    Mail(
        "alter",
        {"requested": "AlterPartition"},
        {"accepted": "accepted", "refused": "refused"},
        "controller",
        {"requested": {"isr": "alter_isr", "epoch": "alter_leader_epoch", "version": "alter_partition_epoch"}},
    ),
)

FOLLOWER_END = "follower_end"
"""What each leader knows of each follower's log end."""

METADATA = (("partition_epoch", "controller_partition_epoch"), ("leader_epoch", "controller_epoch"))
"""What a replica learns of the controller: its own variable, and the controller's."""

CLIENTS, CONTROLLER = "clients", "controller"

LEADER, LOG, ACKED = "controller_leader", "log", "acked"
"""Who was elected, what each replica holds, what producers were promised: for the survival lane."""

SHAPES: Mapping[type, str] = {ONE: "one", MANY: "many", EACH: "each"}

ROOM = {"epochs": 1, "isr_changes": 1}
"""Bounds that would forbid an election only because the explored world ends there, and how much they need."""


def roles() -> dict[str, object]:
    """Everything the page needs to know about names."""
    return {
        "scene": {role: [SHAPES[shape], list(names)] for role, (shape, names) in OF_THE_SCENE.items()},
        "mail": [attrs.asdict(mail) for mail in MAIL],
        "seen": FOLLOWER_END,
    }
