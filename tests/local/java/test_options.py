"""Java's arguments survive their file."""

from pathlib import Path

from binwright.local.java.options import write_arguments


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
