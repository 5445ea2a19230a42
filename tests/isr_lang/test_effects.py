"""A budget for what the settings switch off is refused, and a switch that would give it an effect is named.

Without these, `--joiners 1` with a fixed set of voters would be explored as if it said something.
"""

import pytest

from insync_cli import options, registry
from insync_cli.exits import Exit, UsageError
from insync_cli.main import main
from isr_lang.effects import constants_that_decide, without_effect


@pytest.mark.parametrize("verb", ["check", "conform --sut nothing", "sample", "export", "graph", "mutate"])
@pytest.mark.parametrize("budget", ["--joiners", "--changes"])
def test_a_budget_without_effect_is_refused_by_every_verb(
    verb: str, budget: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *more = verb.split()
    assert main([first, *more, "kraft", "--voters", "2", budget, "1"]) == Exit.USAGE
    assert f"{budget} 1 has no effect in kraft with these settings; it takes --dynamic on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("design", "constants"),
    [
        ("kraft", {"dynamic": "on", "joiners": 1, "changes": 1}),
        ("kraft", {"joiners": 0, "changes": 0}),
        ("kraft-853", {"changes": 2}),
        ("kraft", {"restarts": 1, "lost_disks": 1, "snapshots": 1, "writes": 2}),
        ("kip-966", {"crashes": 1, "consumers": 1, "sessions_lost": 1, "unnoticed": 1, "shutdowns": 1}),
    ],
)
def test_a_budget_with_an_effect_and_none_at_all_are_taken(design: str, constants: dict[str, int | str]) -> None:
    constants_taken = options.World(name=design, constants=constants).instance().constants
    assert {name: constants_taken[name] for name in constants if name != "dynamic"} == {
        name: value for name, value in constants.items() if name != "dynamic"
    }


def test_what_no_switch_gives_an_effect_says_what_it_bounds() -> None:
    with pytest.raises(UsageError, match=r"it bounds .*, which are not there"):
        options.World(name="kraft-controllers", constants={"consumers": 1})


def test_a_bound_of_a_size_decides_and_one_of_what_is_off_does_not() -> None:
    design = registry.design_named("kraft")
    deciding = constants_that_decide(registry.instance_of(design, {}))
    assert {"voters", "epochs", "log", "writes"} <= deciding
    assert not {"joiners", "changes"} & deciding
    assert [c.name for c in without_effect(design, {"changes": 1, "restarts": 1})] == ["changes"]
