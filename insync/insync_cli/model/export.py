"""`insync export`: a design as TLA+ for all bounds, or as Murphi at the bounds given."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from insync_cli import old_options as options
from insync_cli import registry, terminal
from insync_cli.exits import Exit, UsageError
from isr_check.export import murphi, write_tla

EXAMPLE = """\
insync export kip-966 --tla tla/
insync export kip-966 --murphi kip-966.m --replicas 2"""


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("export", "A design for other people's checkers.", EXAMPLE)
    p.add_argument("design", metavar="DESIGN", help="see: insync designs")
    p.add_without()
    p.add_argument("--tla", metavar="DIR", help="a TLA+ module, and a .cfg with these bounds per property")
    p.add_argument("--murphi", metavar="FILE", help="a Murphi model at these bounds, for rumur")
    p.add_json()
    p.add_constants(argv)
    return p.read(argv)


def run(given: Namespace) -> int:
    design = options.design_given(given)
    instance = registry.instance_of(design, options.constants_given(given))
    folder, file = cast("str | None", given.tla), cast("str | None", given.murphi)
    target = cast("str | None", given.json)
    if folder is None and file is None:
        raise UsageError("say what to export: --tla DIR or --murphi FILE (see insync export --help)")
    terminal.check_json_target(target)
    files: list[Path] = []
    if folder is not None:
        files += write_tla(design, instance.constants, terminal.make_folder(Path(folder), "--tla"))
    if file is not None:
        terminal.write_text(Path(file), murphi(instance))
        files.append(Path(file))
    report = {
        "schema": "insync/export/1",
        "design": design.name,
        "model_hash": design.model_hash(),
        "bounds": registry.bounds_of(instance),
        "files": [str(f) for f in files],
    }
    terminal.write_json(target, report)
    if target != "-":
        out = terminal.console(plain=cast("bool", given.plain))
        for written in files:
            out.print(str(written), soft_wrap=True)
    return Exit.HOLDS
