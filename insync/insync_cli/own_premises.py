"""What the promises of somebody's own design speak about, where no family has a premise for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from insync_cli import registry
from isr_check.worth import antecedent_of

if TYPE_CHECKING:
    from isr_lang import Design, Property


def own_premises(design: Design, names: Iterable[str]) -> dict[str, Property]:
    """By promise the probe of its antecedent, of promises that no design of ours makes: of ours somebody looked."""
    if not design.file:
        return {}
    ours = {p.name for d in registry.designs().values() if not d.file for p in d.properties}
    promises = {p.name: p for p in design.properties if p.name not in ours}
    probes = {name: antecedent_of(promises[name]) for name in names if name in promises}
    return {name: probe for name, probe in probes.items() if probe is not None}
