"""A class archive is made beside the server that needed it, once."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.waiting import until

from binwright.local.class_data import (
    MAX_ARCHIVES,
    ClassDataArchive,
    archive_in_background,
    class_data_archive,
)
from binwright.local.java import Java

# Stands in for `java -Xshare:dump`: copies the list of classes into the archive.
DUMPER = f"""#!{sys.executable}
import pathlib, sys
lines = pathlib.Path(sys.argv[1].removeprefix("@")).read_text().splitlines()
options = dict(line.strip('"').split("=", 1) for line in lines if "=" in line)
listed = pathlib.Path(options["-XX:SharedClassListFile"]).read_text()
if "broken" in listed:
    sys.exit("cannot verify it")
pathlib.Path(options["-XX:SharedArchiveFile"]).write_text(listed)
"""
DEADLINE_S = 30.0


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassDataArchive:
    monkeypatch.setenv("BINWRIGHT_CACHE", str(tmp_path / "cache"))
    binary = tmp_path / "java"
    binary.write_text(DUMPER)
    binary.chmod(0o755)
    jar = tmp_path / "a.jar"
    jar.touch()
    return class_data_archive(
        "broker", Java(binary, "17", "17 of somebody", "PATH"), (jar,), tmp_path
    )


def archives(archive: ClassDataArchive) -> set[str]:
    return {path.name for path in archive.file.parent.glob("*.jsa")}


async def test_the_first_run_lists_and_the_next_uses(archive: ClassDataArchive) -> None:
    assert archive.options() == (f"-XX:DumpLoadedClassList={archive.class_list}",)
    archive.class_list.write_text("java/lang/Object id: 0\njava/lang/Str")
    async with archive_in_background(archive, after_s=0):
        await until(archive.file.exists)
    assert archive.file.read_text() == "java/lang/Object id: 0\n", "the line in the making is out"
    assert archive.options()[0] == f"-XX:SharedArchiveFile={archive.file}"


async def test_a_server_that_ends_early_leaves_no_archive(archive: ClassDataArchive) -> None:
    async with archive_in_background(archive, after_s=600):
        pass
    assert not archive.file.parent.exists()


async def test_an_archive_that_cannot_be_made_is_not_tried_again(archive: ClassDataArchive) -> None:
    archive.class_list.write_text("broken\n")
    refusal = archive.file.with_suffix(".log")
    async with archive_in_background(archive, after_s=0):
        await until(refusal.exists)
    assert "cannot verify it" in refusal.read_text()
    archive.class_list.write_text("java/lang/Object id: 0\n")
    async with archive_in_background(archive, after_s=0):
        await asyncio.sleep(0)
    assert not archive.file.exists()


async def test_the_longest_unused_ones_go(archive: ClassDataArchive) -> None:
    archive.file.parent.mkdir(parents=True)
    for age in range(MAX_ARCHIVES + 1):
        old = archive.file.with_name(f"broker-{age}.jsa")
        old.touch()
        os.utime(old, (1_000 - age, 1_000 - age))
    archive.class_list.write_text("java/lang/Object id: 0\n")
    async with archive_in_background(archive, after_s=0):
        await until(archive.file.exists)
        await until(lambda: len(archives(archive)) == MAX_ARCHIVES)
    youngest = {f"broker-{age}.jsa" for age in range(MAX_ARCHIVES - 1)}
    assert archives(archive) == {archive.file.name, *youngest}


def test_another_jar_or_java_means_another_archive(
    archive: ClassDataArchive, tmp_path: Path
) -> None:
    java, classpath = archive.java, archive.classpath
    assert class_data_archive("broker", java, classpath, tmp_path).file == archive.file
    classpath[0].write_text("another")
    assert class_data_archive("broker", java, classpath, tmp_path).file != archive.file
    classpath[0].write_text("")
    newer = Java(java.binary, "17", "17 of somebody else", "PATH")
    assert class_data_archive("broker", newer, classpath, tmp_path).file != archive.file


def test_an_archive_of_another_user_is_used_as_it_is(
    archive: ClassDataArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.file.parent.mkdir(parents=True)
    archive.file.touch()

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "utime", refused)
    assert f"-XX:SharedArchiveFile={archive.file}" in archive.options()


async def test_a_cache_that_cannot_be_written_disturbs_no_server(
    archive: ClassDataArchive,
) -> None:
    archive.file.parent.parent.parent.mkdir(exist_ok=True)
    archive.file.parent.parent.touch()  # a file where the cache's directory would be
    archive.class_list.write_text("java/lang/Object id: 0\n")
    with capture_logs() as logs:
        async with archive_in_background(archive, after_s=0):
            await until(lambda: any(each["event"] == "archive.failed" for each in logs))
