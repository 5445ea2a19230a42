"""What the functions return: typed values, made of the report that a command writes as JSON, and shown as it prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import attrs
from cattrs.preconf.json import make_converter

from insync.errors import InsyncError, as_errors
from insync.frames import frame, whole_page

T = TypeVar("T")
Bound = int | str | bool
"""The value of a bound (a number) or of a setting (a word, or whether it is on)."""


@attrs.frozen
class View:
    """How an answer is shown: as text, as a part of a page, as JSON and, where there is one, as a page of its own."""

    text: str
    html: str
    json: str
    page: Callable[[], str] | None = None


@attrs.frozen(kw_only=True, repr=False, eq=False)
class Answer:
    """What every answer has. `str` and `repr` are what the command prints; in a notebook it shows itself as HTML.

    `exit_code`: the command's, from 0; each function says what its own mean. `command`: what one would type to ask the
    same. Source: `insync VERB --help`.
    """

    exit_code: int
    command: str
    _view: View

    def __str__(self) -> str:
        return self._view.text.rstrip("\n")

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """For notebooks: tables and, where there is one, the page in a frame. Nothing in it is loaded."""
        if self._view.page is None:
            return self._view.html
        try:
            return f"{self._view.html}\n{frame(self.page(), self.command)}"
        except InsyncError:  # the files of its traces are gone
            return self._view.html

    def to_json(self) -> str:
        """The whole report, as `--json` of the command writes it, in UTF-8's characters and with a line's end."""
        return self._view.json

    def page(self) -> str:
        """The answer as one page in HTML, which loads nothing and works offline.

        Of a violation, and of an audit, it is the page with the steps to walk through; making it may take seconds.
        Raises: InsyncError (65) where a trace that it shows is gone. Source: `insync show --html`.
        """
        if self._view.page is None:
            return whole_page(self._view.html, self.command)
        with as_errors():
            return self._view.page()


# Of check and prove


@attrs.frozen(kw_only=True)
class PropertyVerdict:
    """What was found of one property. Source: the `properties` of `run.json`.

    `name`: as `insync designs` has it. `kind`: always, eventually, or sometimes for a probe. `verdict`: HOLDS,
    VIOLATED, SAMPLED, BUDGETED, TOO SMALL, VACUOUS, UNKNOWN or ERROR. `steps`: of its counterexample or witness, from
    0; None where there is none. `trace`: the file of that behaviour, in ITF; None where there is none.
    """

    name: str
    kind: str
    verdict: str
    steps: int | None = attrs.field(alias="depth")
    trace: Path | None


@attrs.frozen(kw_only=True, repr=False, eq=False)
class CheckAnswer(Answer):
    """What an exploration found. Source: `run.json`, which is in `folder` beside the traces.

    `design`: its name. `bounds`: the value of every bound and setting, by name. `verdict`: of the weakest property that
    counts. `properties`: a verdict each, in the order of the model. `states`: distinct ones that were explored.
    `transitions`: steps that were taken, each once. `depth`: steps to the farthest state. `seconds`: of exploring.
    """

    design: str
    bounds: Mapping[str, Bound]
    verdict: str
    properties: tuple[PropertyVerdict, ...]
    states: int
    transitions: int
    depth: int
    seconds: float
    folder: Path

    def property_named(self, name: str) -> PropertyVerdict:
        """The verdict on one property. Raises: InsyncError (64) with the nearest name, where it was not asked."""
        for one in self.properties:
            if one.name == name:
                return one
        from insync_cli.exits import Exit, did_you_mean

        hint = did_you_mean(name, [one.name for one in self.properties])
        raise InsyncError(f"this answer has no property '{name}'{hint}", Exit.USAGE)


@attrs.frozen(kw_only=True)
class PromiseVerdict:
    """What a proof says of one promise. Source: the `promises` of `prove.json`.

    `name` and `kind`: as of a property. `verdict`: PROVED, VIOLATED, VACUOUS, BUDGETED, UNKNOWN or ERROR. `reason`: why
    it is not PROVED, in words.
    """

    name: str
    kind: str
    verdict: str
    reason: str


@attrs.frozen(kw_only=True)
class Obligation:
    """One question to the solver. Source: the `obligations` of `prove.json`.

    `conjunct`: of the invariant, or a promise. `action`: the one that has to keep it; None where no step is taken.
    `verdict`: proved, counterexample, unknown or error. `seconds`: of the solver. `trace`: the file of a counterexample
    to induction, in ITF; None where there is none.
    """

    conjunct: str
    action: str | None
    verdict: str
    seconds: float
    trace: Path | None


@attrs.frozen(kw_only=True, repr=False, eq=False)
class ProofAnswer(Answer):
    """What was proved. Source: `prove.json`, which is in `folder` beside the traces.

    `design`: its name. `bounds`: by name; None is any value. `verdict`: of the weakest promise, or PARTIAL where only a
    part of the proof was asked. `extent`: of which worlds the promises are proved, in words. `promises` and
    `obligations`: a verdict each. `seconds`: of everything.
    """

    design: str
    bounds: Mapping[str, Bound | None]
    verdict: str
    extent: str
    promises: tuple[PromiseVerdict, ...]
    obligations: tuple[Obligation, ...]
    seconds: float
    folder: Path


# Of audit


@attrs.frozen(kw_only=True)
class PartitionTrouble:
    """What is wrong with a partition now. `partition`: TOPIC-N. `trouble`: offline, under-minimum, under-replicated and
    so on, worst first. `says`: the same as a sentence. Source: `now` of the audit's JSON."""

    partition: str
    trouble: str
    says: str


@attrs.frozen(kw_only=True)
class TopicSettings:
    """What decides about a topic; None: not told. Source: `settings` of a row of the audit's JSON.

    `replicas`: how many, from 1. `min_insync`: min.insync.replicas. `unclean`: unclean.leader.election.enable. `flush`:
    whether every record is flushed before it is acknowledged. `in_rack`: the most replicas in one rack; 0 where racks
    were not told.
    """

    replicas: int
    min_insync: int | None
    unclean: bool | None
    flush: bool | None = attrs.field(alias="flushed")
    in_rack: int


@attrs.frozen(kw_only=True)
class SettingChange:
    """What prevents a loss. `settings`: each as NAME=VALUE or in words. `costs`: the price of it, in words. Source:
    `change` of an answer of the audit's JSON."""

    settings: tuple[str, ...]
    costs: tuple[str, ...]


@attrs.frozen(kw_only=True)
class FaultAnswer:
    """What becomes of acknowledged records by one fault. Source: `answers` of a row of the audit's JSON.

    `acks`: 1 or all. `fault`: its name. `verdict`: survives, lost (may be) or unknown. `because`: why, where that is
    not explored. `story`: the shortest way to the loss, a sentence each. `change`: what prevents it; None where nothing
    is known, or nothing is lost.
    """

    acks: str
    fault: str
    verdict: str
    because: str
    story: tuple[str, ...]
    change: SettingChange | None


@attrs.frozen(kw_only=True)
class DeedAnswer:
    """Whether Kafka as it is released loses a record by a deed. Source: `as_released` of a row of the audit's JSON.

    `deed`: its name. `says`: what is done, or comes late. `bug`: the one that it shows. `verdict`: lost (may be), none
    (found within small bounds, which is no promise) or unknown.
    """

    deed: str
    says: str
    bug: str
    verdict: str


@attrs.frozen(kw_only=True)
class TopicRow:
    """Topics that lose alike. Source: `rows` of the audit's JSON.

    `topics`: their names. `partitions`: how many these have. `settings`: what they share. `at_risk`: whether one
    failure may lose records that were acknowledged with acks=all. `notes`: what was assumed. `writes`: when writes
    stop, in words. `answers`: one for each acks and fault. `as_released`: of the release's own bugs; none where it has
    no design.
    """

    topics: tuple[str, ...]
    partitions: int
    settings: TopicSettings
    at_risk: bool
    notes: tuple[str, ...]
    writes: str
    answers: tuple[FaultAnswer, ...]
    as_released: tuple[DeedAnswer, ...]


@attrs.frozen(kw_only=True)
class KnownBug:
    """A bug of the release that loses acknowledged records. `name`: its case. `trigger`: what brings it about, in
    words. `show`: the command that shows it. Source: `bugs` of the audit's JSON."""

    name: str
    trigger: str
    show: str


@attrs.frozen(kw_only=True)
class BrokerDeed:
    """What a deed at one broker does to partitions, TOPIC-N each. Source: `restart` and `failure` of the audit's JSON.

    `loses`: may lose a record. `stops`: may have no leader, or refuse writes. `unknown`: cannot be decided, and
    `because` says why. `already`: those of `stops` that are no better now. `is_partial`: not every partition was told.
    """

    loses: tuple[str, ...]
    stops: tuple[str, ...]
    unknown: tuple[str, ...]
    because: str
    already: tuple[str, ...]
    is_partial: bool


@attrs.frozen(kw_only=True)
class BrokerOutlook:
    """A broker that runs. `broker`: its id. `restart`: a restart in order, now. `failure`: it is gone with its disk.
    Source: `brokers` of the audit's JSON."""

    broker: int
    restart: BrokerDeed
    failure: BrokerDeed


@attrs.frozen(kw_only=True, repr=False, eq=False)
class AuditAnswer(Answer):
    """What a cluster can lose, and how it is now. Source: the audit's JSON (docs/audit.md).

    `release`: the Kafka that runs, in words. `design`: the model that is asked. `now`: partitions in trouble, worst
    first. `rows`: topics that lose alike. `bugs`: known ones of the release. `notes`: what was assumed. `gaps`: what
    was not told. `brokers`: which may be restarted now, where that was asked; else None.
    """

    release: str
    design: str
    now: tuple[PartitionTrouble, ...]
    rows: tuple[TopicRow, ...]
    bugs: tuple[KnownBug, ...]
    notes: tuple[str, ...]
    gaps: tuple[str, ...]
    brokers: tuple[BrokerOutlook, ...] | None = None


# Of drill


@attrs.frozen(kw_only=True)
class Outcome:
    """A partition after a step. Source: `outcomes` of the drill's JSON.

    `records`: may be lost, unknown or safe. `service`: leaderless, refuses, at minimum, unknown or well, but for the
    time until a session ends. `awaits_session`: whether it may have no leader for that time. `because`: why it is
    unknown, in words.
    """

    records: str
    service: str
    awaits_session: bool
    because: str


@attrs.frozen(kw_only=True)
class PartitionOutcomes:
    """A partition through a runbook. `partition`: TOPIC-N. `in_reach`: whether the steps touch it. `outcomes`: before
    the first step, then after each. Source: `partitions` of the drill's JSON."""

    partition: str
    in_reach: bool = attrs.field(alias="touched")
    outcomes: tuple[Outcome, ...]


@attrs.frozen(kw_only=True)
class WorstPartition:
    """The partition that loses first. `partition`: TOPIC-N. `story`: how, a sentence each. Source: `worst` of the
    drill's JSON."""

    partition: str
    story: tuple[str, ...]


@attrs.frozen(kw_only=True)
class TopicSetting:
    """A setting of a topic, as it is to be before the first step. `topic`, `name`, `value`: as Kafka writes them.
    Source: `settings` of `mended` of the drill's JSON."""

    topic: str
    name: str
    value: str


@attrs.frozen(kw_only=True)
class SaferRunbook:
    """Other steps under which nothing is lost. `change`: what is different, in words, "" where only settings are.
    `steps`: as one types them. `settings`: what topics must have before. Source: `mended` of the drill's JSON."""

    change: str
    steps: tuple[str, ...]
    settings: tuple[TopicSetting, ...]


@attrs.frozen(kw_only=True, repr=False, eq=False)
class DrillAnswer(Answer):
    """What is lost by the steps of a runbook. Source: the drill's JSON (docs/drill.md).

    `decision`: whether to do it, as a sentence. `steps`: as they were read. `partitions`: each through all steps.
    `awaiting_session`: the partitions that may have no leader until the session of a broker ends, TOPIC-N each.
    `worst`: None where nothing is lost. `safer`: None where none was needed, or none was found. `notes`: what was
    assumed, and what would decide what is unknown. `protocols`: the designs that may run.
    """

    decision: str
    steps: tuple[str, ...]
    partitions: tuple[PartitionOutcomes, ...]
    awaiting_session: tuple[str, ...]
    worst: WorstPartition | None
    safer: SaferRunbook | None = attrs.field(alias="mended")
    notes: tuple[str, ...]
    protocols: tuple[str, ...]


# Of history


@attrs.frozen(kw_only=True)
class Quote:
    """A line of a history. `line`: its number, from 1. `text`: as it stands there. Source: `operations` of a
    witness."""

    line: int
    text: str


@attrs.frozen(kw_only=True)
class Witness:
    """One instance of an anomaly. Source: `witnesses` of `history.json`.

    `partition`: TOPIC-N; None where it is about several. `says`: what is wrong, as a sentence. `operations`: the lines
    that show it.
    """

    partition: str | None
    says: str
    operations: tuple[Quote, ...]


@attrs.frozen(kw_only=True)
class AnomalyVerdict:
    """What was found of one anomaly. Source: the `anomalies` of `history.json`.

    `number` and `name`: as `insync history --list` has them. `verdict`: VIOLATED, PERMITTED, HOLDS, MEASURED, VACUOUS
    or UNKNOWN. `count`: instances, from 0. `violations`: those of them that the claims forbid. `why`: what could not be
    judged, or the figure. `witnesses`: the least ones.
    """

    number: int
    name: str
    verdict: str
    count: int = attrs.field(alias="found")
    violations: int = attrs.field(alias="forbidden")
    why: str
    witnesses: tuple[Witness, ...]


@attrs.frozen(kw_only=True, repr=False, eq=False)
class HistoryAnswer(Answer):
    """What clients did and saw, judged. Source: `history.json` (docs/history.md).

    `history`: the file. `verdict`: the worst. `operations` and `partitions`: how many there are. `anomalies`: a verdict
    each, by number.
    """

    history: str
    verdict: str
    operations: int
    partitions: int
    anomalies: tuple[AnomalyVerdict, ...]


# Of replay


@attrs.frozen(kw_only=True)
class ActionReplay:
    """How much of an action was replayed. `action`: its name. `edges`: those within the bounds. `count`: those that
    were replayed. Source: `actions` of the replay's JSON."""

    action: str
    edges: int
    count: int


@attrs.frozen(kw_only=True, repr=False, eq=False)
class ReplayAnswer(Answer):
    """Whether the reference broker does what the model does. Source: the replay's JSON (docs/replay.md).

    `design`: its name. `complete`: whether every edge within the bounds was met. `states`: of the cores. `edges`: of
    the model, within the bounds. `count`: edges that were replayed. `actions`: the same of each. `mismatches`: how many
    there are of each kind, those of which there are none left out. `seconds`: of everything.
    """

    design: str
    complete: bool
    states: int
    edges: int
    count: int = attrs.field(alias="replayed")
    actions: tuple[ActionReplay, ...]
    mismatches: Mapping[str, int]
    seconds: float


_converter = make_converter(use_alias=True)
_converter.register_structure_hook_func(lambda shape: shape is View, lambda view, _: view)
_converter.register_structure_hook_func(lambda shape: shape is Path, lambda path, _: Path(path))


def answer_from(shape: type[T], report: Mapping[str, object], **more: object) -> T:
    """The answer that a report of a command holds, with what else it needs; other keys of the report are left out."""
    return _converter.structure({**report, **more}, shape)
