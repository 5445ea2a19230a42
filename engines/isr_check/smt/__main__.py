"""The table of obligations, for whoever looks for an inductive invariant.

python -m isr_check.smt some_model:DESIGN some_invariant:CONJUNCTS size=3 top=free --only some-conjunct
    --actions some_action --seconds 10 --wanted a-property
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from importlib import import_module
from typing import cast

from isr_check.smt.matrix import table
from isr_lang import Design, Property
from isr_lang import Value as Setting


def _load_object(path: str) -> object:
    module, _, name = path.partition(":")
    return cast("object", getattr(import_module(module), name))


def _setting(text: str) -> tuple[str, Setting | None]:
    name, _, value = text.partition("=")
    return name, None if value == "free" else int(value) if value.isdigit() else value


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m isr_check.smt", description=__doc__)
    parser.add_argument("design", help="module:NAME of a design")
    parser.add_argument("conjuncts", help="module:NAME of the conjuncts, properties that always hold")
    parser.add_argument("settings", nargs="*", help="name=value, or name=free")
    parser.add_argument("--only", nargs="*", default=[], help="conjuncts by name, type-ok among them")
    parser.add_argument("--actions", nargs="*", default=[], help="actions by name")
    parser.add_argument("--wanted", nargs="*", default=[], help="properties of the design that should follow")
    parser.add_argument("--seconds", type=float, default=10.0, help="limit for one question to the solver")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--shown", type=int, default=3, help="counterexamples that are printed in full")
    parser.add_argument("--core", action="store_true", help="say which hypotheses each proof uses")
    options = parser.parse_args()
    design = cast("Design", _load_object(options.design))
    listed = cast("Iterable[object]", _load_object(options.conjuncts))
    conjuncts = [cast("Property", getattr(c, "promise", c)) for c in listed]
    table(
        design,
        dict(map(_setting, options.settings)),
        [c for c in conjuncts if c.kind == "always"],
        [design.property_named(name) for name in options.wanted],
        only=options.only,
        actions=options.actions,
        seconds=options.seconds,
        workers=options.workers,
        core=options.core,
        most_counterexamples=options.shown,
    )


main()
