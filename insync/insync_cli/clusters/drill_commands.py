"""What to type for the steps of a runbook, where a tool of Kafka's does it: of the better one, where one was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from insync_cli import terminal
from insync_cli.clusters.audit_text import lines_to_type, some_names
from isr_audit.advice import ADDRESS, RAISE_BUG, AdviceStep, Tools, setting_command
from isr_audit.cluster import MIN_INSYNC
from isr_drill.runbook import START, STOP, WAIT, WAIT_REASSIGNED, RunbookStep

if TYPE_CHECKING:
    from rich.console import Console

    from insync_cli.clusters.drill_text import Answer
    from isr_drill.runbook import Stage

OF_STAGES: Final = (STOP, START, WAIT, WAIT_REASSIGNED)
OTHERWISE: Final = "no tool of Kafka's does it"
RAISES: Final = f"only while all replicas are in sync ({RAISE_BUG}: docs/raise-min-insync.md), and ask again then"


def show(out: Console, steps: Sequence[AdviceStep]) -> None:
    """Step by step, what to type."""
    out.print("\nWhat to type", style="bold")
    for n, step in enumerate(steps, 1):
        terminal.print_wrapped(out, f"{n}. {step.says}", 2)
        for line in lines_to_type(step):
            out.print(f"     {line}" if line.startswith("#") else f"     $ {line}", style="dim", soft_wrap=True)


def document(steps: Sequence[AdviceStep]) -> list[dict[str, object]]:
    """The same for --json."""
    return [{"says": step.says, "commands": list(step.commands)} for step in steps]


def advice(answer: Answer, bootstrap: str | None) -> Iterator[AdviceStep]:
    """What is to be set before, then each step. `bootstrap`: None where the cluster was described."""
    tools = Tools(bootstrap or ADDRESS, answer.runs.release)
    topics = {t.name: t for t in answer.cluster.topics}
    settings = answer.other.settings if answer.other is not None else ()
    for name, value in dict.fromkeys((s.name, s.value) for s in settings):
        whose = [topics[s.topic] for s in settings if (s.name, s.value) == (name, value)]
        how = RAISES if name == MIN_INSYNC else "it holds at once"
        commands = tuple(setting_command(t, name, value, tools) for t in whose)
        which = some_names([t.name for t in whose])
        yield AdviceStep(f"Before the first step, {name}={value} on {which}: {how}", commands)
    for step in (answer.other or answer).drill.steps:
        commands = tuple(commands_of(step, answer, tools))
        yield AdviceStep(step.text if commands else f"{step.text}: {OTHERWISE}", commands)


def commands_of(step: RunbookStep, answer: Answer, tools: Tools) -> Iterator[str]:
    """The lines of one step; none where no tool does it."""
    match step.text.split():
        case ["reassign", file]:
            yield tools.reassignment("execute", file)
        case ["cancel", file]:
            yield tools.reassignment("cancel", file)
        case ["elect", kind]:
            yield tools.election(kind)
        case ["set", name, setting]:
            topic = next((t for t in answer.cluster.topics if t.name == name), None)
            key, _, value = setting.partition("=")
            yield tools.default(setting) if topic is None else setting_command(topic, key, value, tools)
        case _ if step.stages and all(stage.kind in OF_STAGES for stage in step.stages):
            for stage in step.stages:
                yield from of_stage(stage, tools)
        case _:
            return


def of_stage(stage: Stage, tools: Tools) -> Iterator[str]:
    """The lines of a part of a step."""
    if stage.kind == WAIT:
        yield f"{tools.under_replicated()}  # until it prints nothing"
    elif stage.kind == WAIT_REASSIGNED:
        yield f"{tools.under_way()}  # until it names no partition"
    else:
        script = "kafka-server-stop.sh" if stage.kind == STOP else "kafka-server-start.sh -daemon server.properties"
        yield from (f"{script}  # on broker {broker}" for broker in stage.brokers)
