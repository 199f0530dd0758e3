"""What a controller needs to lead a group, from its settings."""

import sys

import pytest

from binwright.controller.group_context import group_context
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.group import load_settings


def test_other_sections_give_the_ages_of_late_measurements_and_rows() -> None:
    settings = load_settings(monitor={"window_s": 20.0}, lake={"freshness_s": 20.0})
    config = group_context(settings).config
    assert (config.stale_s, config.on_time_s) == (60.0, 80.0)
    assert (config.settings, config.topics) == (settings.controller, settings.landed_topics)


def test_a_packing_that_cannot_run_here_is_a_wrong_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    settings = load_settings(controller={"packing": "exact:2"})
    with pytest.raises(SettingsError, match=r"^controller\.packing: packing 'exact:2' needs scipy"):
        group_context(settings)
