"""An engine, for all tests here; skipped, with the reason, where there is none."""

import pytest

from .engine import provide_base


@pytest.fixture(scope="session", autouse=True)
def base(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The image that ours are built on is here."""
    provide_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BINWRIGHT_SETTINGS", raising=False)
