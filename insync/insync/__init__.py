"""insync in Python: the questions of the command line as functions, whose answers are typed values.

    import insync

    answer = insync.check("kafka-0.8", properties="acked-survives")
    assert answer.verdict == "VIOLATED"
    assert answer.exit_code == 12
    assert answer.property_named("acked-survives").steps == 6

An answer shows itself: in a terminal as its command prints, in a notebook as tables, and as a page where there is one.
What cannot be answered is an `InsyncError` with the sentence and the exit code of the command. docs/python.md has each
function by example. What `__all__` does not name is private.

Each function asks what its verb asks of the same functions of `insync_cli`, by the same words. Nothing is imported
before it is needed, so that `import insync` takes milliseconds.

Reading order: `questions` (the functions), `words` (their arguments as those of a command), `answers` (what they
return), `frames` (a page within a notebook), `errors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from insync.answers import (
        ActionReplay,
        AnomalyVerdict,
        Answer,
        AuditAnswer,
        BrokerDeed,
        BrokerOutlook,
        CheckAnswer,
        DeedAnswer,
        DrillAnswer,
        FaultAnswer,
        HistoryAnswer,
        KnownBug,
        Obligation,
        Outcome,
        PartitionOutcomes,
        PartitionTrouble,
        PromiseVerdict,
        ProofAnswer,
        PropertyVerdict,
        Quote,
        ReplayAnswer,
        SaferRunbook,
        SettingChange,
        TopicRow,
        TopicSetting,
        TopicSettings,
        Witness,
        WorstPartition,
    )
    from insync.errors import InsyncError
    from insync.questions import audit, check, drill, history, prove, replay

__all__ = [
    "ActionReplay",
    "AnomalyVerdict",
    "Answer",
    "AuditAnswer",
    "BrokerDeed",
    "BrokerOutlook",
    "CheckAnswer",
    "DeedAnswer",
    "DrillAnswer",
    "FaultAnswer",
    "HistoryAnswer",
    "InsyncError",
    "KnownBug",
    "Obligation",
    "Outcome",
    "PartitionOutcomes",
    "PartitionTrouble",
    "PromiseVerdict",
    "ProofAnswer",
    "PropertyVerdict",
    "Quote",
    "ReplayAnswer",
    "SaferRunbook",
    "SettingChange",
    "TopicRow",
    "TopicSetting",
    "TopicSettings",
    "Witness",
    "WorstPartition",
    "audit",
    "check",
    "drill",
    "history",
    "prove",
    "replay",
]

if not TYPE_CHECKING:  # a type checker sees the names above, and no others

    def __getattr__(name: str) -> object:
        """A public name. Its module is imported now, and the modules are tried from the lightest on."""
        if name not in __all__:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        from importlib import import_module

        modules = (import_module(f"{__name__}.{module}") for module in ("questions", "errors", "answers"))
        value = next(vars(module)[name] for module in modules if name in vars(module))
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted(__all__)
