"""What both servers' Java virtual machines have in common."""

from collections.abc import Sequence
from pathlib import Path

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
    """
    path = ":".join(map(str, classpath))
    lines = (*options, "-cp", path, *main)
    file.write_text("".join(f"{_quoted(line)}\n" for line in lines))
    return f"@{file}"


def _quoted(argument: str) -> str:
    return '"' + argument.replace("\\", "\\\\").replace('"', '\\"') + '"'
