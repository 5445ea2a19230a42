"""`insync prove --proof FILE`: what is refuted is kept while it is proved, and stored when all of it is."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from insync_cli import registry, terminal
from insync_cli.progress import human_size

if TYPE_CHECKING:
    from isr_check.smt import Induction
    from isr_check.smt.obligations import Attempt, Decision
    from isr_check.smt.proof_file import Keeping
    from isr_lang import Property


class Keeper:
    """Does nothing where no proof is to be stored; otherwise keeps queries in a folder that it removes in the end."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self._keeping: Keeping | None = None

    def __enter__(self) -> Keeper:
        if self.file is not None:
            terminal.make_folder(self.file.parent, "--proof")
            self._folder = tempfile.TemporaryDirectory(prefix="insync-proof-")
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self.file is not None:
            self._folder.cleanup()

    def attempt(self, induction: Induction, attempt: Attempt) -> Attempt:
        """The same way to prove; what it refutes is kept, if it is to be stored."""
        if self.file is None:
            return attempt
        from isr_check.smt.proof_file import Keeping

        self._keeping = Keeping(induction, attempt, Path(self._folder.name))
        return self._keeping

    def store(self, decisions: Sequence[Decision], properties: Sequence[Property]) -> tuple[bool, str]:
        """Whether the proof is stored as it was asked for, and a sentence about it. It claims these properties."""
        if self.file is None or self._keeping is None:
            return True, ""
        from isr_check.smt.proof_file import NotStored, store

        try:
            left_out = registry.left_out(self._keeping.induction.design)
            claims = {p.name for p in properties}
            decisions = [(o, r) for o, r in decisions if o.kind != "implies" or o.conjunct in claims]
            store(self.file, self._keeping, decisions, properties, left_out=left_out)
        except NotStored as reason:
            return False, f"no proof is stored: {reason}"
        except OSError as problem:
            return False, f"no proof is stored: cannot write {self.file}: {terminal.reason(problem)}"
        size = human_size(self.file.stat().st_size)
        return True, f"the proof is stored ({size}); to check it again: insync certify {self.file}"
