"""Entry point of the console script `insync`: finds the verb and imports only what it needs."""

from __future__ import annotations

import importlib
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import cast

from insync_cli.exits import MEANING, Exit, Inconclusive, InputError, UsageError, Vacuous, did_you_mean

VERBS: dict[str, tuple[str, str]] = {
    "designs": (
        "insync_cli.model.designs",
        "the designs: what each changes, which guarantees are expected to fail",
    ),
    "check": (
        "insync_cli.model.check",
        "explore a design; a verdict per property, counterexamples saved and shown",
    ),
    "prove": (
        "insync_cli.proof.prove",
        "prove by induction, with bounds left open: conjunct x action, and what follows",
    ),
    "show": ("insync_cli.view.show", "a trace in the terminal, as a diagram, or as a page to walk through offline"),
    "explain": (
        "insync_cli.view.explain",
        "why a trace violates its property: the failed conjunct with its values",
    ),
    "minimise": ("insync_cli.view.minimise", "the same violation with fewer and calmer steps"),
    "sample": ("insync_cli.model.sample", "diverse passing traces to read"),
    "traces": (
        "insync_cli.conformance.traces",
        "a dataset of traces: walks, covers of edges or pairs; followed by the cores",
    ),
    "export": ("insync_cli.model.export", "the design for other people's checkers: TLA+, Murphi"),
    "certify": ("insync_cli.proof.certify", "a stored proof, checked again by two solvers without our code"),
    "history": ("insync_cli.clusters.history", "check what clients did and saw for 29 anomalies of a log"),
    "replay": ("insync_cli.conformance.replay", "every edge of the model, on the broker's cores"),
    "conform": (
        "insync_cli.conformance.conform",
        "any implementation, driven along the edges of the model: docs/conform.md",
    ),
    "kafka": ("insync_cli.conformance.kafka", "Apache Kafka's releases that `insync conform --sut kafka` can drive"),
    "coverage": ("insync_cli.conformance.coverage", "how much the replay has seen, each as x of y"),
    "validate": ("insync_cli.conformance.validate", "traces of brokers against the model: each line a step of it"),
    "kills": ("insync_cli.conformance.kills", "bugs planted in model and broker alike: which check finds which?"),
    "mutate": ("insync_cli.model.mutate", "drop one guard at a time: which property notices?"),
    "matrix": ("insync_cli.review.matrix", "the guarantees: designs x settings x fault budgets, each cell a run"),
    "scenes": ("insync_cli.view.scenes", "teaching scenes: captioned schedules, checked against the model"),
    "report": ("insync_cli.review.report", "one page for a design review, made from run files and traces"),
    "simulate": ("insync_cli.clusters.simulate", "the broker's own code in a hostile world, one history per seed"),
    "cluster": ("insync_cli.clusters.cluster", "a cluster of real processes for Kafka's clients"),
    "experiment": (
        "insync_cli.clusters.experiment",
        "real brokers, partitions and clients: what is lost, and the model's verdict",
    ),
    "broker": ("insync_cli.clusters.broker", "one broker of a cluster"),
    "topics": ("insync_cli.clusters.topics", "the topics of a running cluster: leader, epoch, ISR, ELR"),
}
"""Verb -> its module (`parser(argv)`, `run(options)`) and one line of help."""

Parse = Callable[[Sequence[str]], Namespace]
Run = Callable[[Namespace], int]


def usage() -> str:
    verbs = "\n".join(f"  {name:<12}{summary}" for name, (_, summary) in VERBS.items())
    codes = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in MEANING.items())
    return f"""usage: insync VERB ...   (insync VERB --help has an example)

Kafka's in-sync-replica protocol, stated once and explored exhaustively.

verbs:
{verbs}

options:
  --help      this text
  --version   the version

exit codes:
{codes}

example:
  insync check kafka-0.8 --property acked-survives
"""


def version() -> str:
    from importlib.metadata import version

    return version("insync")


def dispatch(arguments: Sequence[str]) -> int:
    verb = arguments[0] if arguments else "--help"
    if verb in ("--help", "-h", "help"):
        print(usage(), end="")
        return Exit.HOLDS if arguments else Exit.USAGE
    if verb in ("--version", "-V"):
        print(f"insync {version()}")
        return Exit.HOLDS
    if verb not in VERBS:
        raise UsageError(f"there is no verb '{verb}'{did_you_mean(verb, VERBS)} (insync --help lists them)")
    module = vars(importlib.import_module(VERBS[verb][0]))
    options = cast("Parse", module["parser"])(arguments[1:])
    options.command = ["insync", *arguments]
    return cast("Run", module["run"])(options)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is the answer (insync_cli.exits)."""
    try:
        code = dispatch(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return int(code)
    except (UsageError, InputError, Inconclusive, Vacuous) as problem:
        print(f"insync: {problem}", file=sys.stderr)
        return int(problem.exit)
    except SystemExit as done:  # argparse has printed its help
        return done.code if isinstance(done.code, int) else 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left has no reader
        return int(Exit.PIPE)
    except KeyboardInterrupt:
        print("insync: interrupted", file=sys.stderr)
        return int(Exit.INCONCLUSIVE)
    except Exception as bug:
        import traceback

        traceback.print_exc()
        print(f"insync: this is a bug in insync ({type(bug).__name__}: {bug})", file=sys.stderr)
        return int(Exit.INTERNAL)


if __name__ == "__main__":
    sys.exit(main())
