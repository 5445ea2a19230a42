"""Entry point of the console script `insync`: finds the verb and imports only what it needs."""

from __future__ import annotations

import errno
import importlib
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import cast

from insync_cli.exits import MEANING, Exit, Problem, UsageError, did_you_mean

FIRST = "start here"
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    FIRST: {
        "audit": ("insync_cli.clusters.audit", "what your own cluster can lose, and which settings prevent it"),
        "bugs": ("insync_cli.clusters.bugs", "known ways in which a release of Kafka loses acknowledged records"),
        "drill": ("insync_cli.clusters.drill", "what is lost if you take these steps, now, on your cluster"),
        "check": (
            "insync_cli.model.check",
            "explore a design: a verdict per promise, and a shortest counterexample",
        ),
        "show": ("insync_cli.view.show", "a trace: in the terminal, as a diagram, or as a page to walk through"),
        "designs": ("insync_cli.model.designs", "the designs of Kafka's history, and what each changed"),
        "report": ("insync_cli.review.report", "one page for a design review, each claim with its command"),
        "cluster": ("insync_cli.clusters.cluster", "brokers as real processes, for any client of Kafka's"),
    },
    "ask the model": {
        "sample": ("insync_cli.model.sample", "diverse behaviours in which nothing goes wrong"),
        "mutate": ("insync_cli.model.mutate", "drop one guard at a time: which promise notices?"),
        "export": ("insync_cli.model.export", "the design for other checkers: TLA+, Murphi"),
    },
    "see": {
        "explain": ("insync_cli.view.explain", "why a trace violates its promise, with the values that decide it"),
        "minimise": ("insync_cli.view.minimise", "the same violation with fewer and calmer steps"),
        "graph": ("insync_cli.view.graph", "the state graph of small bounds, as a picture: broken states are marked"),
        "scenes": ("insync_cli.view.scenes", "teaching scenes with captions, played on the model first"),
    },
    "prove": {
        "prove": ("insync_cli.proof.prove", "prove promises by induction, for every value of the open bounds"),
        "certify": ("insync_cli.proof.certify", "compare a stored proof with the model, and ask two solvers again"),
    },
    "hold a broker to the model": {
        "replay": ("insync_cli.conformance.replay", "every edge of the model, run on the reference broker's cores"),
        "conform": ("insync_cli.conformance.conform", "any implementation, driven along the edges of the model"),
        "validate": ("insync_cli.conformance.validate", "traces of brokers: is each line a step of the model?"),
        "traces": ("insync_cli.conformance.traces", "a dataset of traces: walks, or covers of edges or pairs"),
        "kills": ("insync_cli.conformance.kills", "bugs planted in model and broker alike: which check finds which?"),
        "found": ("insync_cli.conformance.found", "bugs found here in Apache Kafka, shown on Apache Kafka"),
        "kafka": ("insync_cli.conformance.kafka", "Apache Kafka's own releases, for conform to drive"),
        "coverage": ("insync_cli.conformance.coverage", "how much the replay has seen, each as x of y"),
    },
    "run clusters": {
        "topics": ("insync_cli.clusters.topics", "the topics of a running cluster: leader, epoch, ISR, ELR"),
        "broker": ("insync_cli.clusters.broker", "one broker of a cluster"),
        "experiment": ("insync_cli.clusters.experiment", "real brokers under faults: what is lost, beside the verdict"),
        "simulate": ("insync_cli.clusters.simulate", "the broker's own code in a hostile world, one history per seed"),
        "history": ("insync_cli.clusters.history", "check what clients did and saw for 29 anomalies of a log"),
    },
    "report": {
        "matrix": ("insync_cli.review.matrix", "the guarantees: designs x settings x faults, each cell a run"),
    },
}
"""What a person wants -> verb -> its module, which has `run(argv)`, and one line of help."""

VERBS = {verb: entry for group in GROUPS.values() for verb, entry in group.items()}

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""No room to write, which is not a bug in insync: it is said in a sentence."""

MOMENT = 1.0
"""Seconds for which a process may go on after its last line."""
Run = Callable[[Sequence[str]], int]


def usage() -> str:
    verbs = "\n".join(
        "\n".join([f"{group}:", *(f"  {name:<12}{summary}" for name, (_, summary) in verbs.items()), ""])
        for group, verbs in GROUPS.items()
    )
    codes = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in MEANING.items())
    return f"""usage: insync VERB ...   (insync VERB --help has an example)

Kafka's in-sync-replica protocol, stated once and explored exhaustively.

{verbs}
options:
  --help      this text
  --version   the version

exit codes:
{codes}

example:
  insync check kafka-0.8 --property acked-survives
"""


def dispatch(arguments: Sequence[str]) -> int:
    verb = arguments[0] if arguments else "--help"
    if verb in ("--help", "-h", "help"):
        print(usage(), end="")
        return Exit.HOLDS if arguments else Exit.USAGE
    if verb in ("--version", "-V"):
        from insync_cli.version import version

        print(f"insync {version()}")
        return Exit.HOLDS
    if verb not in VERBS:
        raise UsageError(f"there is no verb '{verb}'{did_you_mean(verb, VERBS)} (insync --help lists them)")
    module = vars(importlib.import_module(VERBS[verb][0]))
    return cast("Run", module["run"])(arguments[1:])


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is the answer (insync_cli.exits)."""
    # NumPy starts a thread of linear algebra per processor, which nothing here uses: a tenth of a second a command.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        code = dispatch(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return int(code)
    except Problem as problem:
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
    except OSError as problem:
        if problem.errno not in FULL:
            return bug(problem)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left cannot be written there
        where = problem.filename or "the output"
        print(f"insync: cannot write {where}: {(problem.strerror or '').lower()}", file=sys.stderr)
        return int(Exit.USAGE)
    except Exception as problem:
        return bug(problem)


def bug(problem: Exception) -> int:
    """What should not have happened, with all that helps to find out why it did."""
    import traceback

    traceback.print_exception(problem)
    print(f"insync: this is a bug in insync ({type(problem).__name__}: {problem})", file=sys.stderr)
    return int(Exit.INTERNAL)


def command() -> None:
    """What a shell starts: it ends with the exit code of `main`, at most a moment after the verdict.

    Better machine code may still be in the making then (`isr_check.native.machine`). Who waits for the exit code does
    not wait for that.
    """
    code = main()
    until = time.monotonic() + MOMENT
    others = [t for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon]
    for thread in others:
        thread.join(max(0.0, until - time.monotonic()))
    if any(thread.is_alive() for thread in others):
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    command()
