"""What the controller reads beside the settings of its group."""

import pytest

from binwright.controller.settings import ControllerProgramSettings
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings import load


@pytest.mark.parametrize(
    ("values", "result"),
    [
        ({"namespaces": ["a"]}, "it needs kubernetes.groups = true"),
        ({"namespaces": ["a", "*"], "groups": True}, "and stands alone"),
        ({"namespaces": ["a", "a"], "groups": True}, "named twice: a"),
        ({"namespaces": ["A"], "groups": True}, "should match pattern"),
    ],
)
def test_invalid_values_are_reported(values: dict[str, object], result: str) -> None:
    with pytest.raises(SettingsError, match=result):
        load(ControllerProgramSettings, kubernetes=values)
