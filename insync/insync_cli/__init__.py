"""The command line. It reads options, calls the packages that do the work, and prints; no protocol knowledge is here.

A verb is a module with `run(argv) -> int`, which reads top to bottom: read, run, judge, show.

    from collections.abc import Sequence

    import attrs

    from insync_cli import options
    from insync_cli.exits import Exit
    from insync_cli.options import Usage, group, option, positive
    from insync_cli.terminal import QuietOutput

    EXAMPLE = "insync count kip-966 --times 3"
    USAGE = Usage("count", "The actions of a design, as often as one likes.", EXAMPLE)

    @attrs.frozen(kw_only=True)
    class Options:
        world: options.SmallerWorld = group(options.SmallerWorld)
        times: int = option("N", "how often", positive, 1)
        output: QuietOutput = group(QuietOutput)

    def run(argv: Sequence[str]) -> int:
        chosen = options.read_options(Options, USAGE, argv)
        for _ in range(chosen.times):
            print(len(chosen.world.design.actions))
        return Exit.HOLDS

    assert run(["kip-966", "--times", "3"]) == 0

To add a verb: write its module into the folder of what a person wants by it, and name it in `main.GROUPS`.
A design's bounds and settings are options by themselves (`options.World`). What goes wrong is raised as one of the
exceptions of `exits`, as a sentence.

Reading order: `main` (finds the verb), `options` (makes options of fields, and alone knows argparse), `exits`.

- The verbs: `model/` (check and its kin), `view/` (show), `proof/`, `conformance/`, `clusters/`, `review/` (report).
- What they find by name: `registry` (designs, instances, properties, engines), `families` (of which model a design is),
  `own_designs`, `places` (where they read and write), `tracefiles`, `runfile`, `version`.
- What they print with: `terminal`, `progress`; `sheet` (as HTML, for notebooks).
- What they share beside: `room_line` (what room the bounds leave), `own_premises`, `omissions` (what a verdict is
  not about), `workers` (processes), `on_spark`.
"""
