"""Builds the assignor for Java: `python -m tools.assignor_jar --output DIRECTORY`.

It is compiled against the kafka-clients jar that the embedded broker has, for Java 11 and later.
"""

import argparse
import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.programs import ROOT, ProgramMissing, run_program

from binwright.local.kafka import ensure_kafka

SOURCES = ROOT / "apps" / "java" / "assignor"
NAME = "binwright-assignor.jar"
RELEASE = 11  # what kafka-clients 4 itself needs
COMPILE_S = 120.0


def jdk_program(name: str) -> str:
    """Return `javac` or `jar`: of JAVA_HOME, or of the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=f"{home}/bin") if home else None
    if not (found := found or shutil.which(name)):
        raise ProgramMissing(f"no {name}: install a JDK, or set JAVA_HOME to one")
    return found


def compile_java(sources: Sequence[Path], classes: Path, classpath: Sequence[Path]) -> None:
    """Compile `sources` into `classes`; every warning is an error."""
    result = run_program(
        *(jdk_program("javac"), "--release", str(RELEASE), "-Xlint:all", "-Werror"),
        *("-d", str(classes), "-cp", ":".join(map(str, classpath))),
        *map(str, sources),
        timeout_s=COMPILE_S,
    )
    if result.returncode:
        raise RuntimeError(f"javac: {result.stdout}{result.stderr}")


def build_jar(directory: Path, kafka_jars: Sequence[Path]) -> Path:
    """Build the jar in `directory` and return it."""
    directory.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="binwright-assignor-") as classes:
        compile_java(sorted(SOURCES.rglob("*.java")), Path(classes), kafka_jars)
        made = directory / NAME
        result = run_program(
            jdk_program("jar"), "cf", str(made), "-C", classes, ".", timeout_s=COMPILE_S
        )
        if result.returncode:
            raise RuntimeError(f"jar: {result.stdout}{result.stderr}")
    return made


def _print_progress(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build"))
    output: Path = parser.parse_args().output
    _, jars = asyncio.run(ensure_kafka(_print_progress))
    sys.stdout.write(f"{build_jar(output, jars)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
