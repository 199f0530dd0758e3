"""Compiles Java, and packs what comes out into jars whose bytes depend on nothing else."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from tests.programs import ProgramMissing, run_program

COMPILE_S = 120.0
MANIFEST = "META-INF/MANIFEST.MF"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first that a zip can have


def jdk_program(name: str) -> str:
    """Return `javac` or `java`: of JAVA_HOME, or of the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=f"{home}/bin") if home else None
    if not (found := found or shutil.which(name)):
        raise ProgramMissing(f"no {name}: install a JDK, or set JAVA_HOME to one")
    return found


def compile_java(
    sources: Sequence[Path],
    classes: Path,
    classpath: Sequence[Path],
    release: int,
    lint: str = "all",
) -> None:
    """Compile `sources` into `classes`; every warning of `lint` is an error."""
    result = run_program(
        *(jdk_program("javac"), "--release", str(release), f"-Xlint:{lint}", "-Werror"),
        *("-d", str(classes), "-cp", ":".join(map(str, classpath))),
        *map(str, sources),
        timeout_s=COMPILE_S,
    )
    if result.returncode:
        raise RuntimeError(f"javac: {result.stdout}{result.stderr}")


def build_jar(
    sources: Path, jar: Path, classpath: Sequence[Path], release: int, lint: str = "all"
) -> Path:
    """Compile all sources of a directory, and pack them; return the jar.

    The same compiler gives the same bytes: entries are sorted, their time is a constant, and they
    are stored, since each zlib packs in its own way.
    """
    jar.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f"{jar.stem}-") as place:
        classes = Path(place)
        compile_java(sorted(sources.rglob("*.java")), classes, classpath, release, lint)
        entries = {MANIFEST: b"Manifest-Version: 1.0\r\n\r\n"}
        for file in sorted(classes.rglob("*.class")):
            entries[file.relative_to(classes).as_posix()] = file.read_bytes()
        part = jar.with_suffix(".part")
        with ZipFile(part, "w", ZIP_STORED) as packed:
            for name, content in entries.items():
                packed.writestr(ZipInfo(name, EPOCH), content)
        part.replace(jar)  # a Java that runs goes on with the file that it has open
    return jar


def print_progress(text: str) -> None:
    """Print what is fetched or built meanwhile."""
    sys.stderr.write(f"{text}\n")
