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
    invocation = options.read_options(Options, USAGE, argv)
    design = invocation.world.design
    instance = registry.instance_of(design, invocation.world.constants)
    if invocation.tla is None and invocation.murphi is None:
        raise UsageError("say what to export: --tla DIR or --murphi FILE (see insync export --help)")
    invocation.output.check()
    files: list[Path] = []
    if invocation.tla is not None:
        files += write_tla(design, instance.constants, terminal.make_folder(invocation.tla, "--tla"))
    if invocation.murphi is not None:
        terminal.write_text(invocation.murphi, murphi(instance))
        files.append(invocation.murphi)
    report = {
        "schema": "insync/export/1",
        "design": design.name,
        "model_hash": design.model_hash(),
        "bounds": registry.bounds_of(instance),
        "files": [str(f) for f in files],
    }
    invocation.output.write(report)
    if invocation.output.for_people:
        out = invocation.output.console()
        for written in files:
            out.print(str(written), soft_wrap=True)
    return Exit.HOLDS
