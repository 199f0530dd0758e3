"""Settings of scaled groups that are refused, with what to do."""

import sys
import zoneinfo
from collections.abc import Iterator

import pytest
from pydantic import ValidationError

from binwright.scaler.settings import ScaledGroupSettings, ScheduleSettings


@pytest.fixture
def no_zone_data(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No time zone data, neither of the system nor of a package."""
    before = zoneinfo.TZPATH
    for name in {"tzdata", *(name for name in sys.modules if name.startswith("tzdata."))}:
        monkeypatch.setitem(sys.modules, name, None)
    zoneinfo.reset_tzpath(to=[])
    zoneinfo.ZoneInfo.clear_cache()
    yield
    zoneinfo.reset_tzpath(to=before)
    zoneinfo.ZoneInfo.clear_cache()


@pytest.mark.usefixtures("no_zone_data")
def test_missing_time_zone_data_are_no_wrong_name() -> None:
    with pytest.raises(ValidationError, match="install the package tzdata"):
        ScheduleSettings(time_zone="Europe/Paris")


def test_a_time_zone_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValidationError, match="no such time zone: 'Europe/Pariss'"):
        ScheduleSettings(time_zone="Europe/Pariss")


def test_names_are_stripped_and_checked() -> None:
    group = ScaledGroupSettings(group=" orders\n", topics=("clicks\n",))
    assert (group.group, group.topics) == ("orders", ("clicks",))
    for wrong in ({"group": "\n"}, {"group": "a\x1bb"}, {"group": "a", "topics": ("b c",)}):
        with pytest.raises(ValidationError):
            ScaledGroupSettings.model_validate(wrong)
