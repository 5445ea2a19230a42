"""`insync conform`: a system under test is driven through the state graph of the model and compared after each step.

The system must take each step that the model allows. The state after it must be the model's, including the messages and
answers in it. If the system lists its enabled steps, they must be exactly those that the model allows. docs/conform.md
states the protocol.
"""

from __future__ import annotations

from isr_conform import driving
from isr_conform.compared_run import BudgetSpent, ComparedRun
from isr_conform.conformance_result import ConformanceResult, Explain, Limits, Progress, nothing_known
from isr_conform.sut_client import ProcessClient, SutFailure
from isr_lang import Instance


def _drive(run: ComparedRun) -> None:
    limits, hello = run.limits, run.hello
    if limits.schedule is not None:
        driving.drive_schedule(run, limits.schedule)
    elif limits.walks is not None:
        driving.drive_walks(run, limits.walks)
    elif limits.paths:
        driving.drive_paths(run)
    elif hello.branches:
        driving.drive_tree(run)
    elif not hello.saves or limits.draws_edges:
        driving.drive_paths(run)
    elif hello.forgets:
        driving.drive_depth_first(run)
    else:
        driving.drive_every_edge(run)


def carried_out(run: ComparedRun) -> ConformanceResult:
    """What comes of the run; SutFailure if the system cannot be driven any further."""
    try:
        _drive(run)
        run.result.complete = True
    except BudgetSpent:
        pass
    except SutFailure as problem:
        raise SutFailure(f"{problem}{run.steps_so_far()}", problem.process_ended) from None
    run.count_totals()
    return run.result


def conform(
    instance: Instance,
    command: str,
    limits: Limits,
    *,
    patience: float = 10.0,
    progress: Progress = lambda what, done, of: None,
    explain: Explain = nothing_known,
) -> ConformanceResult:
    """Start the command, drive it, and end it; SutFailure if it does not start or answer, or breaks the protocol.

    `patience` is how many seconds each answer may take; `explain` says what is known of a difference.
    """
    client = ProcessClient(command, patience)
    try:
        return carried_out(ComparedRun(instance, client, limits, progress, explain))
    finally:
        client.close()
