"""A run file as text for people: never a stronger word than the run file has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from insync_cli import terminal
from insync_cli.families import family_of
from insync_cli.omissions import omissions_text, subject_and_ending
from insync_cli.options import value_text
from insync_cli.progress import human_size
from insync_cli.room_line import (
    base_sentence,
    notice_sentence,
    options_of,
    precursor_remark,
    precursor_sentence,
    room_sentence,
)
from insync_cli.runfile import PropertyLine, Run, uncovered_findings
from insync_cli.terminal import count
from isr_check.engine import Verdict

if TYPE_CHECKING:
    from rich.console import Console

    from isr_check.family import Family
    from isr_lang import Design, Instance, Value


@attrs.frozen
class Notes:
    """What the text says and the run file does not: why the search ended, and what was left out and why."""

    complete: bool
    stopped_by: str | None
    off_properties: Sequence[str]
    off_actions: Sequence[str]
    not_checked: Sequence[str]
    expected: dict[str, str]
    family: Family
    grown_bounds: Mapping[str, Value]
    """Bounds that nobody gave, larger than the faults need: at these values known mistakes are noticed."""
    decisive_names: Sequence[str]
    """The properties that decide the verdict of the whole; the others stand at the end of its line."""
    has_gaps: bool
    """Whether all that was asked holds, and the gaps of a strict coverage decide."""
    is_by_name: bool
    """Whether only some properties were asked, each by its name."""


def notes(
    instance: Instance,
    *,
    complete: bool,
    stopped_by: str | None,
    not_checked: Sequence[str],
    grown_bounds: Sequence[str],
    decisive_names: Sequence[str],
    has_gaps: bool,
    is_by_name: bool,
) -> Notes:
    return Notes(
        complete,
        stopped_by,
        instance.off_properties,
        instance.off_actions,
        not_checked,
        dict(instance.design.expected),
        family_of(instance.design),
        {name: instance.constants[name] for name in grown_bounds},
        decisive_names,
        has_gaps,
        is_by_name,
    )


def render(out: Console, run: Run, design: Design, about: Notes) -> None:
    out.print(f"{run['design']}: {design.summary}", style="bold")
    rows = world(design, run["bounds"])
    for name, what in (("unfair", "not fair"), ("strong", "strongly fair")):
        words = str(run["bounds"].get(name, ""))
        rows += [(what, ", ".join(words.split()))] if words else []
    if about.grown_bounds:
        fewer = ", one state of each orbit" if run["stats"]["unreduced"] is not None else ""
        rows += [("chosen", f"{options_of(about.grown_bounds)}, to notice known mistakes{fewer}")]
    rows += [("engine", f"{run['engine']}, {terminal.count(run['workers'], 'worker')}")]
    rows += [("model", run["model_hash"])]
    terminal.print_table(out, ("", ""), rows)
    out.print()
    rows = [(line["verdict"], line["name"], line["kind"], remark(line, run, about)) for line in run["properties"]]
    terminal.print_table(out, ("verdict", "property", "kind", ""), rows)
    terminal.print_lines(out, "Not checked (liveness: name them, or --liveness on)", about.not_checked)
    off = (("properties", about.off_properties), ("actions", about.off_actions))
    if any(names for _, names in off):
        out.print("\nOff at these settings", style="bold")
        terminal.print_table(out, ("", ""), [(kind, ", ".join(names)) for kind, names in off if names])
    findings = uncovered_findings(run) if about.complete else []
    terminal.print_lines(out, "Never exercised at these bounds", findings)
    out.print("\n" + statistics(run))
    for text in estimate_lines(run):
        out.print(text, soft_wrap=True)
    if not about.complete:
        out.print("coverage is not judged: not every state was seen")


def world(design: Design, bounds: Mapping[str, Value | None]) -> list[tuple[str, ...]]:
    """Rows of a table: every constant by kind, and the actions that are left out; None is any value."""
    constants = design.constants()
    rows: list[tuple[str, ...]] = []
    for title, constants_of_kind in (
        ("bounds", [c for c in constants if not c.names and not c.budget]),
        ("faults", [c for c in constants if c.budget]),
        ("settings", [c for c in constants if c.names]),
    ):
        given = ((c.option[2:], bounds[c.name]) for c in constants_of_kind)
        values = ", ".join(f"{option} {'any' if value is None else value_text(value)}" for option, value in given)
        rows += [(title, values)] if constants_of_kind else []
    without = str(bounds.get("without", ""))
    return rows + ([("without", ", ".join(without.split()))] if without else [])


def remark(line: PropertyLine, run: Run, about: Notes) -> str:
    """The remark beside a verdict: the number of steps, or why there is no answer."""
    name, word, depth = line["name"], line["verdict"], line["depth"]
    reason = about.expected.get(name)
    if word == Verdict.VIOLATED and line["kind"] == "eventually":
        return f"never, after a start and a loop of {count(depth or 0, 'step')} together"
    if word == Verdict.VIOLATED:
        return f"in {count(depth or 0, 'step')}" + (f"; expected: {reason}" if reason else "")
    if word == Verdict.UNKNOWN:
        return "walks end, so they say nothing of liveness" if run["stats"]["walks"] else "this engine cannot say"
    if word == Verdict.SAMPLED and depth is None:
        if name in run["without_encounter"]:
            return "what it speaks about was not met in these walks"
        what = "witness" if line["kind"] == "sometimes" else "violation"
        return f"no {what} in {count(run['stats']['walks'] or 0, 'walk')}" + new_states(run, "; one more is {} new")
    if line["kind"] == "sometimes" and depth == 0:
        return "true at the start, so nothing had to happen"
    if line["kind"] == "sometimes" and depth is not None:
        return f"witness in {count(depth or 0, 'step')}"
    if name in about.off_properties:
        return "not promised at these settings"
    if word == Verdict.VACUOUS and line["kind"] == "eventually" and run["stats"]["distinct"]:
        return "what it waits for never begins"
    if word == Verdict.TOO_SMALL:
        return too_small(name, run)
    if word == Verdict.VACUOUS and line["kind"] != "sometimes" and run["stats"]["distinct"]:
        return "what it speaks about never happens"
    if word == Verdict.VACUOUS:
        return "there is no initial state" if not run["stats"]["distinct"] else "no witness in the whole space"
    if word == Verdict.BUDGETED and line["kind"] == "eventually":
        return "undecided before every state and every step is known"
    if word == Verdict.BUDGETED and about.complete:
        return "not violated, but whether these bounds leave room for the faults is undecided"
    if word == Verdict.BUDGETED:
        return "no witness so far" if line["kind"] == "sometimes" else "no violation so far"
    if word == Verdict.HOLDS and (left := run["slack"].get(name)) is not None:
        return slack_text(left, about.family)
    return f"though it may fail at the defaults: {reason}" if reason else ""


def too_small(name: str, run: Run) -> str:
    """Why a promise that is not violated says too little: harm that is cut off, no room, or mistakes that it misses."""
    if run["precursor"] and name in run["precursor"]["promises"]:
        return precursor_remark(run["precursor"])
    mistakes = run["notice"]["unnoticed"].get(name, []) if run["notice"] else []
    has_room = not (run["room"] and run["room"]["lacking"])
    if has_room and not mistakes and run["notice"] and name in run["notice"]["short_of_base"]:
        return "not violated, but these bounds are small for a change of your own"
    if not mistakes or not has_room:
        return "not violated, but these bounds leave no room for the faults"
    more = f", and {len(mistakes) - 3} more" if len(mistakes) > 3 else ""
    return f"not violated, but within these bounds not known to be by: {', '.join(mistakes[:3])}{more}"


def too_small_parts(names: Sequence[str], run: Run, family: Family) -> list[str]:
    """The same of all of these promises: of each the first reason that there is."""
    precursor, room, notice = run["precursor"], run["room"], run["notice"]
    parts = [precursor_sentence(precursor, family)] if precursor else []
    others = [name for name in names if not precursor or name not in precursor["promises"]]
    if others and room and room["lacking"]:
        parts.append(room_sentence(room, family))
    elif others and notice:
        missing = [name for name in others if name in notice["unnoticed"]]
        small = [name for name in others if name not in notice["unnoticed"]]
        parts += [f"{', '.join(missing)} may miss known mistakes within these bounds"] if missing else []
        parts += [base_sentence(small, notice)] if small else []
    return parts


def slack_text(slack: Mapping[str, int], family: Family) -> str:
    """How much of the bounds was left when a promise of liveness came to pass."""
    if not all(slack.values()):
        return f"no slack: {family.aftermath} it ends only where the bounds are spent"
    changes = (f"{count(slack[bound], 'change')} of {what}" for bound, what in family.slack_words.items())
    return f"slack: {family.aftermath} it comes to pass with {' and '.join(changes)} to go"


def statistics(run: Run) -> str:
    s = run["stats"]
    reduced = ""
    if s["unreduced"] is not None and s["distinct"]:
        times = s["unreduced"] / s["distinct"]
        reduced = f"by symmetry {times:.1f} times fewer states than {s['unreduced']:,}\n"
    if s["walks"] and s["seconds"]:
        steps = sum(run["coverage"]["actions"].values())
        reduced = f"{count(steps, 'step')} at random ({steps / s['seconds']:,.0f} steps/s)\n"
    return reduced + (
        f"{distinct(run)} distinct states, {s['generated']:,} generated, depth {s['depth']}, "
        f"{s['seconds']:.1f} s ({s['distinct_per_second']:,.0f} states/s), {human_size(s['peak_rss_bytes'])}"
    )


def estimate_lines(run: Run) -> list[str]:
    """How much random walks have not met, what that means, and what it does not."""
    estimate = run["stats"]["estimate"]
    if estimate is None:
        return []
    walks, per_walk = estimate["walks"], estimate["meetings"] / estimate["walks"]
    return [
        f"{count(walks, 'walk')} met {per_walk:,.1f} states each, {estimate['new_per_walk']:,.3g} of them in no other "
        f"walk (means): so {new_states(run, '{}')} of what one more walk meets is new",
        f"walks can meet at least {estimate['least_states']:,} states, by estimate, and these met {distinct(run)}",
        "a state weighs as often as walks meet it, so this is no share of the states, and does not say that a promise "
        "holds",
    ]


def probes_text(witnesses: Sequence[PropertyLine]) -> list[str]:
    """How many probes were reached; one that is true at the start was not."""
    steps = sum(line["depth"] != 0 for line in witnesses)
    reached = [f"{count(steps, 'probe')} reached"] if steps else []
    start = len(witnesses) - steps
    return reached + ([f"{count(start, 'probe')} true at the start"] if start else [])


def indecisive_text(lines: Sequence[PropertyLine]) -> list[str]:
    """What speaks of nothing and decides nothing: probes that were not reached, liveness that nothing triggered."""
    probes = sum(line["kind"] == "sometimes" for line in lines)
    rest = len(lines) - probes
    parts = [f"{count(probes, 'probe')} not reached"] if probes else []
    return parts + ([f"{count(rest, 'liveness promise')} never triggered"] if rest else [])


def extent_text(run: Run, about: Notes) -> list[str]:
    """What is not in the verdict, where something is said to hold: actions left out, and promises that nobody asked."""
    without = str(run["bounds"].get("without", "")).split()
    off = [name for name in run["omissions"] if name in about.off_properties]
    rest = len(run["omissions"]) - len(off)
    rest_text = (
        omissions_text((len(run["omissions"]), "other promise", ""))
        if about.is_by_name
        else omissions_text((rest, "liveness promise", ""), (len(off), "promise", " off at these settings"))
    )
    return [*([f"left out: {', '.join(without)}"] if without else []), *([rest_text] if rest_text else [])]


def new_states(run: Run, text: str) -> str:
    """The text with the share of new states in one more random walk; nothing where there was none."""
    estimate = run["stats"]["estimate"]
    if estimate is None:
        return ""
    share = 100 * estimate["new_share"]
    return text.format(f"about {share:.0f}%" if share >= 10 or not share else f"about {max(share, 0.001):.1g}%")


def distinct(run: Run) -> str:
    stats = run["stats"]
    return f"{'about ' if stats['collision_policy'] == 'estimated' else ''}{stats['distinct']:,}"


def result_line(run: Run, about: Notes) -> str:
    """The one line to grep for: the verdict that decides the exit code, and what it means."""
    word = run["verdict"]
    if word == Verdict.SAMPLED:
        word = f"SAMPLED({run['stats']['walks']}, seed {run['seed']})"
    if about.has_gaps:
        word = "UNCOVERED"
    return f"insync check {run['design']}: {word} - {sentence(run, about)}"


def sentence(run: Run, about: Notes) -> str:
    lines = run["properties"]
    of = {word: [line["name"] for line in lines if line["verdict"] == word] for word in Verdict}
    after = f"after {distinct(run)} states"
    parts: list[str] = []
    if of[Verdict.VIOLATED]:
        parts.append(f"{', '.join(of[Verdict.VIOLATED])} violated")
    parts += too_small_parts(of[Verdict.TOO_SMALL], run, about.family)
    if vacuous := [name for name in of[Verdict.VACUOUS] if name in about.decisive_names]:
        parts.append(f"{', '.join(vacuous)} vacuous")
    if about.has_gaps:
        parts.append(f"coverage has {count(len(uncovered_findings(run)), 'gap')}")
    if of[Verdict.BUDGETED]:
        parts.append(f"stopped by {about.stopped_by or 'a limit'} {after}: {len(of[Verdict.BUDGETED])} undecided")
    if of[Verdict.UNKNOWN]:
        parts.append(f"{', '.join(of[Verdict.UNKNOWN])} unknown")
    if of[Verdict.SAMPLED]:
        witnesses = [line for line in lines if line["verdict"] == Verdict.SAMPLED and line["depth"] is not None]
        undecided = len(of[Verdict.SAMPLED]) - len(witnesses)
        walks = count(run["stats"]["walks"] or 0, "random walk")
        share = new_states(run, " (one more is {} new)")
        parts.append(f"{walks} through {distinct(run)} states{share}, and {undecided} undecided")
        parts += probes_text(witnesses)
    held_lines = [line for line in lines if line["verdict"] == Verdict.HOLDS]
    promises = [line["name"] for line in held_lines if line["kind"] == "always"]
    fair = [line["name"] for line in held_lines if line["kind"] == "eventually"]
    if promises:
        who, s = subject_and_ending(promises, "promise", by_name=about.is_by_name)
        parts.append(f"{who} hold{s} in every reachable state")
    if fair:
        who, s = subject_and_ending(fair, "liveness promise", by_name=about.is_by_name)
        parts.append(f"{who} hold{s} of every fair behaviour")
    if silent := [name for name, left in run["slack"].items() if not all(left.values())]:
        larger = " and ".join(sorted(f"--{bound.replace('_', '-')}" for bound in about.family.slack_words))
        parts.append(f"warning: no slack for {', '.join(silent)}; larger {larger} may show more")
    parts += probes_text([line for line in held_lines if line["kind"] == "sometimes"])
    parts += indecisive_text([line for line in lines if line["name"] not in about.decisive_names])
    parts += extent_text(run, about) if promises or fair else []
    text = "; ".join(parts) or "nothing was checked"
    noticed = notice_sentence(run["notice"], run["design"]) if run["notice"] else ""
    return f"{text} ({noticed})" if noticed else text
