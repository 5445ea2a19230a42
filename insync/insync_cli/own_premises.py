"""What the promises of somebody's own design speak about, where no family has a premise for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from insync_cli.families import family_of
from isr_check.worth import antecedent_of

if TYPE_CHECKING:
    from isr_lang import Design, Property


def own_premises(design: Design, names: Iterable[str]) -> dict[str, Property]:
    """By promise the probe of its antecedent; of designs that a file brings only, for ours have premises."""
    if not design.file:
        return {}
    family, promises = family_of(design), {p.name: p for p in design.properties}
    probes = {name: antecedent_of(promises[name]) for name in names if name in promises and not family.premises([name])}
    return {name: probe for name, probe in probes.items() if probe is not None}
