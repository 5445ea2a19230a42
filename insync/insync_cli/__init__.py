"""The command line. It reads options, calls the packages that do the work, and prints; no protocol knowledge is here.

A verb is a module with `run(argv) -> int`, which reads top to bottom: read, run, judge, show.

    USAGE = Usage("sample", "Passing behaviours to read, from seeded random walks.", EXAMPLE)

    @attrs.frozen(kw_only=True)
    class Options:
        world: options.SmallerWorld = group(options.SmallerWorld)
        count: int = option("N", "how many", positive, 3)
        output: QuietOutput = group(QuietOutput)

    def run(argv: Sequence[str]) -> int:
        given = options.read(Options, USAGE, argv)
        ...

To add a verb: write its module into the folder of what a person wants by it, and name it in `main.GROUPS`.
`options` makes options of the fields, and is the only module that knows argparse. A design's bounds and settings are
options by themselves (`options.World`). What goes wrong is raised as one of the exceptions of `exits`, as a sentence.
"""
