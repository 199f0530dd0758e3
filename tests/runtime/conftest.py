"""No settings but a test's own."""

import pytest


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BINWRIGHT_SETTINGS", raising=False)
