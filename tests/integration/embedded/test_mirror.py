"""Jars come from whatever registry an Ivy settings file names."""

import hashlib
from pathlib import Path

import pytest

from binwright.local.jars import Artifact, ensure_jars, ivy_fetch
from binwright.local.java import find_java
from binwright.local.server import no_progress
from binwright.protocol.errors import EmbeddedError

pytestmark = pytest.mark.integration

CONTENT = b"a jar, as far as anybody here can tell"
GOOD = Artifact("org.x", "a_2.13", "1.0", "", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """An Ivy settings file that names a directory as the only registry."""
    mirror = tmp_path / "mirror" / "org" / "x" / "a_2.13" / "1.0"
    mirror.mkdir(parents=True)
    (mirror / GOOD.file_name).write_bytes(CONTENT)
    settings = tmp_path / "settings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="mirror"/><resolvers>'
        f'<ibiblio name="mirror" m2compatible="true" root="{(tmp_path / "mirror").as_uri()}/"/>'
        "</resolvers></ivysettings>"
    )
    return settings


async def fetched(settings: Path, home: Path, *artifacts: Artifact) -> tuple[Path, ...]:
    environment = {"BINWRIGHT_IVY_SETTINGS": str(settings)}
    fetch = ivy_fetch(await find_java(), "some", no_progress, environment)
    return await ensure_jars(artifacts, home, fetch, pause_s=0)


async def test_a_jar_comes_from_the_mirror(mirror: Path, tmp_path: Path) -> None:
    (path,) = await fetched(mirror, tmp_path / "jars", GOOD)
    assert path.read_bytes() == CONTENT


async def test_what_the_mirror_lacks_is_named_and_the_rest_is_kept(
    mirror: Path, tmp_path: Path
) -> None:
    absent = Artifact("org.x", "b", "2.0", "", 1, "0" * 64)
    with pytest.raises(EmbeddedError, match=r"1 of 2 jars.*org\.x:b:2\.0"):
        await fetched(mirror, tmp_path / "jars", GOOD, absent)
    assert [path.name for path in (tmp_path / "jars").glob("*.jar")] == [GOOD.file_name]


async def test_settings_that_do_not_exist_are_reported(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match="BINWRIGHT_IVY_SETTINGS names"):
        await fetched(tmp_path / "gone.xml", tmp_path / "jars", GOOD)
