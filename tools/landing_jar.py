"""Builds the extension of Spark servers, and its lock: `python -m tools.landing_jar`.

The jar is committed, since who installs binwright has no compiler of Java; the lock has its sum and
those of its sources, in the format of sha256sum. It is compiled against the Spark and the Delta of
this environment, by a JDK of 17: another one gives other bytes.
"""

import argparse
import asyncio
import hashlib
import re
import sys
from pathlib import Path

from tests.programs import ROOT, ProgramMissing, run_program
from tools.java_jar import build_jar, jdk_program, print_progress

from binwright.local.java import find_java
from binwright.local.spark import LANDING_JAR, classpath, delta_jars

SOURCES = ROOT / "apps" / "java" / "landing"
LOCK = LANDING_JAR.with_name("landing.lock")
RELEASE = 17
JDK = re.compile(r"javac 17[.\s]")
# Scala's class files name annotations, and Spark's manifests jars, that are nowhere.
LINT = "all,-classfile,-path"
VERSION_S = 30.0


def javac_of_17() -> bool:
    """Tell whether the compiler is the one that the committed jar is of."""
    try:
        done = run_program(jdk_program("javac"), "-version", timeout_s=VERSION_S)
    except ProgramMissing:
        return False
    return JDK.match(done.stdout + done.stderr + "\n") is not None


async def build_landing_jar(jar: Path) -> None:
    """Build the jar from its sources."""
    delta = await delta_jars(await find_java(), print_progress)
    others = [each for each in classpath(delta) if each != LANDING_JAR]
    await asyncio.to_thread(build_jar, SOURCES, jar, others, RELEASE, LINT)


def lock_text(jar: Path) -> str:
    """Return the lock of a jar and of the sources as they are."""
    names = {jar: jar.name}
    names |= {file: str(file.relative_to(ROOT)) for file in sorted(SOURCES.rglob("*.java"))}
    sums = ((hashlib.sha256(file.read_bytes()).hexdigest(), name) for file, name in names.items())
    return "".join(f"{sum_}  {name}\n" for sum_, name in sums)


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    if not javac_of_17():
        sys.stderr.write("no javac of 17: install that JDK, or set JAVA_HOME to it\n")
        return 1
    asyncio.run(build_landing_jar(LANDING_JAR))
    LOCK.write_text(lock_text(LANDING_JAR))
    sys.stdout.write(f"{LANDING_JAR}\n{LOCK}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
