"""A class archive is really made, and really used, by the Java that has none of its own."""

import asyncio
from pathlib import Path

import pytest

from binwright.local.child import Command, run_to_end
from binwright.local.class_data import ClassDataArchive, archive_in_background, class_data_archive
from binwright.local.jars import pyspark_jars_dir
from binwright.local.java import find_java
from binwright.runtime.environment import clean_environment

pytestmark = pytest.mark.integration

DEADLINE_S = 300.0  # made at the lowest priority, beside whatever else runs


async def run(archive: ClassDataArchive, home: Path, *options: str) -> str:
    """Run a small program under the archive's options and return what it said."""
    classpath = str(archive.classpath[0])
    command = Command(
        title="a small program",
        argv=(
            *(str(archive.java.binary), *archive.options(), *options, "-XX:-UsePerfData"),
            *("-cp", classpath, "org.apache.ivy.Main", "-version"),
        ),
        directory=home,
        log=home / "log",
        environment=clean_environment({}),
    )
    code, child = await run_to_end(command, deadline_s=DEADLINE_S)
    assert code == 0, child.tail()
    return command.log.read_text()


@pytest.mark.usefixtures("only_the_wheel")
async def test_the_first_run_makes_an_archive_and_the_next_starts_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BINWRIGHT_CACHE", str(tmp_path / "cache"))
    ivy = max(pyspark_jars_dir().glob("ivy-*.jar"))
    archive = class_data_archive("ivy", await find_java(), (ivy,), tmp_path)
    assert "shared objects file" not in await run(archive, tmp_path, "-Xlog:class+load")
    async with archive_in_background(archive, after_s=0), asyncio.timeout(DEADLINE_S):
        while not archive.file.exists():  # noqa: ASYNC110 - files tell nobody
            await asyncio.sleep(0.1)
    message = await run(archive, tmp_path, "-Xlog:class+load")
    assert "org.apache.ivy.Main source: shared objects file" in message
