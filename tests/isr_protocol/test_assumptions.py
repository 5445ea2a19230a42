"""Settings that contradict each other are refused before anything is explored."""

import attrs
import pytest
from tests.support.models.ticket_desk import CAREFUL, HASTY, Desk

from isr_lang import Instance, ModelError, SettingError, assume


def test_contradictory_settings_are_refused_with_the_sentence_and_the_values() -> None:
    says = r"the desk hurries for more tickets than there are \(--rush 4, --tickets 3\)"
    with pytest.raises(SettingError, match=says):
        Instance(CAREFUL, {"rush": 4})
    assert Instance(CAREFUL, {"rush": 3}).constants["rush"] == 3


def test_a_design_made_from_another_assumes_the_same() -> None:
    with pytest.raises(SettingError, match="hurries"):
        Instance(HASTY, {"rush": 3})


def test_what_is_assumed_is_part_of_the_models_hash() -> None:
    assert attrs.evolve(CAREFUL, assumptions=()).model_hash() != CAREFUL.model_hash()


def test_an_assumption_about_the_state_is_refused() -> None:
    with pytest.raises(ModelError, match="over bounds and settings only"):
        assume(Desk().drawn <= 3, otherwise="too many")
