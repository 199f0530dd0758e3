"""A container engine for all tests here; they are skipped, with the reason, without one."""

import pytest

from .engine import provide_base_image


@pytest.fixture(scope="session", autouse=True)
def base(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The base image of the Dockerfiles, provided once."""
    provide_base_image(tmp_path_factory.mktemp("base"))


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BINWRIGHT_SETTINGS", raising=False)
