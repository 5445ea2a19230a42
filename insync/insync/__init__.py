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
        Answer,
        AuditAnswer,
        CheckAnswer,
        DrillAnswer,
        HistoryAnswer,
        ProofAnswer,
        ReplayAnswer,
    )
    from insync.errors import InsyncError
    from insync.questions import audit, check, drill, history, prove, replay

__all__ = [
    "Answer",
    "AuditAnswer",
    "CheckAnswer",
    "DrillAnswer",
    "HistoryAnswer",
    "InsyncError",
    "ProofAnswer",
    "ReplayAnswer",
    "audit",
    "check",
    "drill",
    "history",
    "prove",
    "replay",
]

if not TYPE_CHECKING:  # a type checker sees the names above, and no others

    def __getattr__(name: str) -> object:
        """A public name, whose module is imported now."""
        if name not in __all__:
            raise AttributeError(f"module 'insync' has no attribute '{name}'")
        import insync.questions as questions

        value = vars(questions).get(name)
        if value is None:
            import insync.answers as answers

            value = vars(answers).get(name)
        if value is None:
            import insync.errors as errors

            value = vars(errors)[name]
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted(__all__)
