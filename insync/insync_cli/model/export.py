"""`insync export`: a design as TLA+ for all bounds, or as Murphi at the bounds given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from insync_cli import options, registry, terminal
from insync_cli.exits import Exit, UsageError
from insync_cli.options import Usage, group, option
from insync_cli.terminal import Output
from isr_check.export import murphi, write_tla

EXAMPLE = """\
insync export kip-966 --tla tla/
insync export kip-966 --murphi kip-966.m --replicas 2"""
USAGE = Usage("export", "A design for other people's checkers.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    world: options.SmallerWorld = group(options.SmallerWorld)
    tla: Path | None = option("DIR", "a TLA+ module, and a .cfg with these bounds per property", Path)
    murphi: Path | None = option("FILE", "a Murphi model at these bounds, for rumur", Path)
    output: Output = group(Output)


def run(argv: Sequence[str]) -> int:
    given = options.read(Options, USAGE, argv)
    design = given.world.design
    instance = registry.instance_of(design, given.world.constants)
    if given.tla is None and given.murphi is None:
        raise UsageError("say what to export: --tla DIR or --murphi FILE (see insync export --help)")
    given.output.check()
    files: list[Path] = []
    if given.tla is not None:
        files += write_tla(design, instance.constants, terminal.make_folder(given.tla, "--tla"))
    if given.murphi is not None:
        terminal.write_text(given.murphi, murphi(instance))
        files.append(given.murphi)
    report = {
        "schema": "insync/export/1",
        "design": design.name,
        "model_hash": design.model_hash(),
        "bounds": registry.bounds_of(instance),
        "files": [str(f) for f in files],
    }
    given.output.write(report)
    if given.output.for_people:
        out = given.output.console()
        for written in files:
            out.print(str(written), soft_wrap=True)
    return Exit.HOLDS
