"""A scene is what the model does: every planted lie in one is found."""

from pathlib import Path

import attrs
import pytest

from insync_cli.main import main
from insync_cli.view.scenes import evaluator_of, page_of
from isr_report.scenes import Scene, load_scenes, play_scene
from isr_trace.trace import TraceError

SCENES = {s.name: s for s in load_scenes()}
QUORUM = SCENES["isr-is-not-a-quorum"]
LAST = SCENES["last-replica-standing"]
CRASH = "broker_crashes(r=r2, checkpoint=0)"


@pytest.mark.parametrize("scene", SCENES.values(), ids=list(SCENES))
def test_the_model_plays_every_scene_as_its_captions_say(scene: Scene) -> None:
    trace = play_scene(scene, evaluator_of(scene))
    assert len(trace.steps) == len(scene.beats)
    assert all(beat.shows for beat in scene.beats), "every caption rests on a change"


def lying(scene: Scene, index: int, *, do: str = "", shows: tuple[str, ...] = ()) -> Scene:
    beats = list(scene.beats)
    true = beats[index]
    beats[index] = attrs.evolve(true, do=do or true.do, shows=shows or true.shows)
    return attrs.evolve(scene, beats=tuple(beats))


@pytest.mark.parametrize(
    ("scene", "said"),
    [
        (lying(QUORUM, 2, do="controller_elects_unclean(leader=r2)"), "step 3, .* is not possible there in kip-966"),
        (lying(QUORUM, 4, shows=("committed + 0",)), "step 5 does not make this change: committed"),
        (
            attrs.evolve(QUORUM, refused_steps=(CRASH,), settings={**QUORUM.settings, "crashes": 1}),
            "is said to be refused, but it is possible",
        ),
        (attrs.evolve(QUORUM, breaks="acked-survives"), "acked-survives is broken not even in step 11"),
        (attrs.evolve(LAST, breaks=""), "step 9 breaks leaders-complete, and the scene says nothing"),
        (attrs.evolve(LAST, beats=LAST.beats[:-1]), "is broken not even in step 10"),
    ],
)
def test_a_scene_that_lies_is_refused(scene: Scene, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        play_scene(scene, evaluator_of(scene))


def test_today_the_last_replica_is_not_believed() -> None:
    """The same schedule under kip-966 stops where the ISR's last member is trusted."""
    with pytest.raises(TraceError, match="is not possible there in kip-966"):
        play_scene(attrs.evolve(LAST, design="kip-966"), evaluator_of(attrs.evolve(LAST, design="kip-966")))


@pytest.mark.long
def test_the_page_of_a_scene_says_its_captions() -> None:
    text = page_of(LAST, play_scene(LAST, evaluator_of(LAST)))
    assert LAST.beats[-1].says in text


@pytest.mark.long
def test_scenes_are_listed_told_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenes"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in SCENES)
    assert main(["scenes", QUORUM.name, "--itf", str(tmp_path / "x.itf.json")]) == 0
    assert QUORUM.beats[-1].says in capsys.readouterr().out
    assert main(["show", str(tmp_path / "x.itf.json")]) == 0
    assert main(["scenes", "isr-is-a-quorum"]) == 64
    assert "did you mean 'isr-is-not-a-quorum'" in capsys.readouterr().err
