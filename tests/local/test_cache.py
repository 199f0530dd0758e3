"""Where the cache is, and how it is shared."""

import asyncio
from pathlib import Path

import pytest

from binwright.local.cache import cache_dir, file_lock
from binwright.protocol.errors import EmbeddedError, SettingsError


@pytest.mark.parametrize(
    ("environment", "path"),
    [
        ({"BINWRIGHT_CACHE": "/own", "XDG_CACHE_HOME": "/xdg", "HOME": "/h"}, "/own"),
        ({"XDG_CACHE_HOME": "/xdg", "HOME": "/h"}, "/xdg/binwright"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/binwright"),
        ({"HOME": "/h"}, "/h/.cache/binwright"),
    ],
)
def test_the_own_cache_variable_comes_before_xdg_and_home(
    environment: dict[str, str], path: str
) -> None:
    assert cache_dir(environment) == Path(path)


async def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    inside = 0
    most = 0

    async def enter() -> None:
        nonlocal inside, most
        async with file_lock(tmp_path / "made" / "lock", deadline_s=30):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(enter() for _ in range(3)))
    assert most == 1


async def test_a_timeout_names_what_was_waited_for(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    async with file_lock(lock, deadline_s=1):
        with pytest.raises(EmbeddedError, match=str(lock)):
            async with file_lock(lock, deadline_s=0):
                pass


def test_a_user_without_a_home_is_reported_how_to_name_a_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def homeless(_: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)
    with pytest.raises(SettingsError, match="BINWRIGHT_CACHE"):
        cache_dir({})
