"""What earlier proofs have learnt: with it a proof begins, and `insync prove --learn FILE` adds to it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from insync_cli import terminal
from insync_cli.exits import InputError

if TYPE_CHECKING:
    from isr_check.smt.cores import Cores
    from isr_check.smt.obligations import Decision


class Learner:
    """Begins with the cores in `file`, and writes them with those that were found; without one, with `stored_file`."""

    def __init__(self, file: Path | None, stored_file: Path | None) -> None:
        from isr_check.smt.cores import BadCores, Cores

        self.file = file
        known = file or stored_file
        if file is not None:
            terminal.make_folder(file.parent, "--learn")
        try:
            self.cores: Cores = Cores.read(known) if known is not None and known.exists() else Cores()
        except BadCores as problem:
            raise InputError(str(problem)) from None

    def store(self, decisions: Sequence[Decision]) -> str:
        """A sentence about what was learnt, and where it is now."""
        from isr_check.smt import Proved

        if self.file is None:
            return ""
        lessons = [learnt for _, result in decisions if isinstance(result, Proved) for learnt in result.learnt]
        self.cores.learn(lessons)
        try:
            self.cores.write(self.file)
        except OSError as problem:
            raise InputError(f"cannot write {self.file}: {terminal.reason(problem)}") from None
        return f"{terminal.count(len(lessons), 'question')} learnt: {self.file}"
