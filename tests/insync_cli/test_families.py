"""A model of another kind brings one object, and every verb asks that; nobody asks whose design it is.

Without these, what is known of Kafka's replication would be said of a design that has nothing to do with it.
"""

import importlib.metadata
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs
import pytest
from tests.support.models import ticket_desk

from insync_cli import families
from insync_cli.exits import UsageError
from insync_cli.families import UNKNOWN, family_of
from insync_cli.main import main
from insync_cli.registry import design_named, designs
from insync_cli.version import version
from isr_check.engine import Engine, Exploration, Limits, Verdict
from isr_check.family import Family, Lines, ProofPlan, Slack, Worth
from isr_check.room_search import find_room
from isr_lang import Bool, Conjunct, Design, Instance, Property, Value, always, sometimes
from isr_protocol.by_name import DESIGNS
from isr_protocol.in_sync_replicas import IN_SYNC_REPLICAS

# A second family, complete in a page


@sometimes
def somebody_draws(s: ticket_desk.Desk) -> Bool:
    """A ticket is drawn."""
    return s.drawn > 0


@sometimes
def more_served_than_drawn(s: ticket_desk.Desk) -> Bool:
    """Somebody is served who drew no ticket, which a careful desk never does."""
    return s.served > s.drawn


@always
def never_ahead(s: ticket_desk.Desk) -> Bool:
    """The conjunct that proves itself."""
    return s.served <= s.drawn


class Desks(Family):
    state = ticket_desk.Desk
    fault_story = "the jams, and the last customer"
    safer: Mapping[str, Value] = {"calls": "0"}

    def designs(self) -> Mapping[str, Design]:
        return ticket_desk.DESIGNS

    def planted_bugs(self) -> Mapping[str, Design]:
        return {"shut": ticket_desk.CAREFUL.without("reopens").replacing("shut", "Stays shut.", because="of a bug.")}

    def constants_with_room(self, design: Design, constants: Mapping[str, Value]) -> Mapping[str, Value]:
        return {"tickets": 2, **constants}

    def premises(self, names: Iterable[str]) -> tuple[Property, ...]:
        return tuple(somebody_draws for name in names if name == "never-back")

    def worth(
        self,
        instance: Instance,
        exploration: Exploration,
        names: Sequence[str],
        engine: Engine,
        limits: Limits,
        progress: object = None,
        search_progress: object = None,
    ) -> Worth:
        design = instance.design.promising(*self.milestones())
        left = find_room(design, self.milestones(), instance.constants, {}, engine, limits)
        findings = (
            attrs.evolve(f, verdict=Verdict.TOO_SMALL) if f.verdict is Verdict.HOLDS else f
            for f in exploration.findings
            if f.name in names
        )
        return Worth(attrs.evolve(exploration, findings=tuple(findings)), left)

    def slack(
        self, instance: Instance, exploration: Exploration, names: Sequence[str]
    ) -> tuple[Exploration, Mapping[str, Slack]]:
        return exploration, {"never-back": {"tickets": 1}}

    def milestones(self) -> tuple[Property, ...]:
        return (more_served_than_drawn,)

    def proof_plan(self) -> ProofPlan:
        return ProofPlan(("never-ahead",), (), {"tickets": 1, "rush": 1, "paper_jams": 0})

    def invariant(self, design: Design) -> tuple[Conjunct, ...]:
        return (Conjunct(never_ahead),)

    def ways_to_set(self, settings: Mapping[str, Value]) -> Lines:
        return tuple(("hang a sign", f"{name} is {value}") for name, value in settings.items())


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The desk's designs are of a family of their own, beside Kafka's."""
    monkeypatch.setattr(families, "families", lambda: (IN_SYNC_REPLICAS, Desks(), UNKNOWN))
    monkeypatch.setattr("insync_cli.registry.default_engine", lambda: "reference")
    monkeypatch.chdir(tmp_path)


def report(*words: str) -> dict[str, object]:
    main([*words, "--json", "answer.json", "--out", "run"])
    answer: dict[str, object] = json.loads(Path("answer.json").read_text(encoding="utf-8"))
    return answer


def test_every_design_of_the_table_is_of_the_first_family() -> None:
    assert {family_of(design) for design in DESIGNS.values()} == {IN_SYNC_REPLICAS}


def test_a_design_that_no_model_claims_has_nothing_but_its_verdicts(desk: Path) -> None:
    answer = report("check", "careful", "--property", "never-back")
    assert answer["room"] is None
    assert answer["slack"] == {}
    assert main(["prove", "careful"]) == 64


KAFKAS = re.compile(r"kafka|kip-|topic|producer|acks|replica", re.IGNORECASE)
"""What a design of no model has nothing to do with."""


def answer_about_hasty(capsys: pytest.CaptureFixture[str], option: str = "") -> tuple[str, list[str]]:
    """All that `check` says of a broken promise, and of it the lines below the heading of what to do now."""
    assert main(f"check hasty --property never-ahead --out run{option}".split()) == 12
    text = capsys.readouterr().out
    return text, text.split("What to do now\n")[1].split("\n\n")[0].splitlines()


def test_what_to_do_of_a_design_of_no_model_says_nothing_of_kafka(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(Path(ticket_desk.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    text, lines = answer_about_hasty(capsys, " --design-file own.py")
    assert KAFKAS.findall(text) == []
    assert lines[0].startswith("  careful keeps the promise: Serves in order.")
    assert [line.strip().split(":")[0] for line in lines[1:]] == ["ask whether that is always so", "see it on a page"]


@pytest.mark.usefixtures("second")
def test_what_to_do_asks_the_family_of_the_design(capsys: pytest.CaptureFixture[str]) -> None:
    _, lines = answer_about_hasty(capsys)
    assert lines[0].startswith("  hasty --calls 0 keeps the promise.")
    assert lines[1] == "  hang a sign: calls is 0"


@pytest.mark.usefixtures("second")
def test_the_designs_of_every_family_are_known_by_name() -> None:
    assert list(designs()) == [*DESIGNS, *ticket_desk.DESIGNS]
    assert len(designs()) == len(DESIGNS) + len(ticket_desk.DESIGNS)
    assert designs()["careful"] is ticket_desk.DESIGNS["careful"]
    with pytest.raises(KeyError):
        designs()["kip-321"]


@pytest.mark.usefixtures("second")
def test_the_planted_bugs_of_every_family_are_found_by_name() -> None:
    assert design_named("shut").summary == "Stays shut."
    assert design_named("truncate-to-watermark").based_on is DESIGNS["kip-966"]
    assert not {"shut", "truncate-to-watermark"} & set(designs())
    with pytest.raises(UsageError, match="there is no design 'kip-321'"):
        design_named("kip-321")


@pytest.mark.usefixtures("second")
def test_check_asks_the_family_of_the_design(capsys: pytest.CaptureFixture[str]) -> None:
    answer = report("check", "careful", "--property", "never-back")
    assert isinstance(answer["bounds"], dict)
    assert answer["bounds"]["tickets"] == 2
    assert answer["slack"] == {"never-back": {"tickets": 1}}
    assert answer["verdict"] == "TOO SMALL"
    assert answer["room"] == {"lacking": "more-served-than-drawn", "cut": {}, "enough": {}, "complete": True}
    line = capsys.readouterr().out.splitlines()[-1]
    assert "no behaviour exists with all of this: the jams, and the last customer. What is missing first: some" in line


@pytest.mark.usefixtures("second")
@pytest.mark.solver
@pytest.mark.processes
def test_prove_asks_the_family_of_the_design() -> None:
    assert main(["prove", "careful", "--look", "0", "--json", "proof.json", "--out", "run"]) == 0
    assert [p["name"] for p in json.loads(Path("proof.json").read_text(encoding="utf-8"))["promises"]] == [
        "never-ahead"
    ]


# One instance for one question


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What is folded from now on: the design with its properties, and the constants."""
    folded: list[tuple[str, str]] = []
    fold = Instance.__init__

    def counted(
        self: Instance,
        design: Design,
        constants: Mapping[str, Value] | None = None,
        *,
        unbounded: Mapping[str, int] | None = None,
    ) -> None:
        fold(self, design, constants, unbounded=unbounded)
        folded.append((f"{design.name} {design.model_hash()}", json.dumps(self.constants)))

    monkeypatch.setattr(Instance, "__init__", counted)
    return folded


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "names"),
    [
        (
            "check kip-966 --replicas 2 --property acked-survives",
            ["kip-966", "kip-966"],
        ),  # as asked, and watched for room
        ("check kip-966 --replicas 2 --property lagging-follower-returns --isr-changes 4", ["kip-966", "kip-966"]),
        pytest.param(
            "check kip-966 --replicas 2 --isr-changes 2 --property acked-survives",
            ["kip-966"] * 4,  # and at larger bounds, of which the least is search_progress for
            marks=pytest.mark.explores,
        ),
        ("check kafka-0.8 --property acked-survives", None),  # the README's
        ("check kafka-15583 --property leaders-complete", ["kafka-15583", "kip-966"]),  # and what mends it
        ("show jepsen-2013", ["kafka-0.8", "jepsen-halt"]),
        ("explain jepsen-2013", ["kafka-0.8", "kafka-0.8", "jepsen-halt"]),  # and with more room
        ("sample kip-966 --replicas 2", ["kip-966"]),
        pytest.param(
            "prove kip-966 --replicas 2 --only requests-of-isr --action broker_crashes",
            ["kip-966"],
            marks=[pytest.mark.solver, pytest.mark.processes],
        ),
    ],
)
def test_a_question_is_folded_once(
    command: str,
    names: list[str] | None,
    questions: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    main(command.split())
    assert names is None or [design.split()[0] for design, _ in questions] == names
    assert max(Counter(questions).values()) == 1


@pytest.mark.processes
def test_a_campaign_folds_a_choice_of_bounds_once_before_its_processes_begin(
    desk: Path, questions: list[tuple[str, str]]
) -> None:
    main(["mutate", "careful", "--tickets", "2", "--workers", "2"])
    assert len(questions) == 1


@pytest.mark.parametrize("verb", ["replay", "coverage"])
def test_what_drives_our_broker_refuses_a_design_of_another_model(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no replica in it, so that nothing may be read off its bounds before that is asked."""
    assert main([verb, "kraft"]) == 65
    assert "the cores are compared with" in capsys.readouterr().err


OTHERS = """
import sys
from insync_cli.families import family_of
from insync_cli.registry import design_named
family_of(design_named(sys.argv[1]))
print(sorted({name.partition(".")[0] for name in sys.modules} & {"kraft_protocol", "controller_protocol"}))
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    ("design", "imported"), [("kip-966", []), ("kraft", ["kraft_protocol"])], ids=["partition", "quorum"]
)
def test_no_family_is_imported_that_comes_after_that_of_the_design(design: str, imported: list[str]) -> None:
    """Else every check of a partition would begin with the models of the quorum and of controllers."""
    command = [sys.executable, "-c", OTHERS, design]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == str(imported)


def test_the_version_is_that_of_the_distribution() -> None:
    assert version() == importlib.metadata.version("insync")
