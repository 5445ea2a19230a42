"""The verdicts of a run file as the matrix tells them: of its bounds alone.

`insync check` calls a promise TOO SMALL, too, where its bounds would miss a known mistake. The matrix and the report do
not ask that, and say so (docs/report.md).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from isr_check.engine import Verdict


def within_bounds(run: Mapping[str, object]) -> dict[str, str]:
    """Property -> verdict, as it would be if nobody had asked which mistakes the bounds notice."""
    notice = cast("Mapping[str, Mapping[str, Sequence[str]]] | None", run.get("notice"))
    unnoticed: Collection[str] = notice["unnoticed"] if notice is not None else ()
    room = cast("Mapping[str, object] | None", run["room"])
    small = room is not None and room["lacking"] is not None
    lines = cast("Sequence[Mapping[str, str]]", run["properties"])

    def word(name: str, verdict: str) -> str:
        return Verdict.HOLDS if verdict == Verdict.TOO_SMALL and name in unnoticed and not small else verdict

    return {line["name"]: word(line["name"], line["verdict"]) for line in lines}
