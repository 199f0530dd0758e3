"""Members of a consumer group that are Java processes, and what they say."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.assignor_jar import NAME, RELEASE, SOURCES
from tools.java_jar import build_jar, compile_java

from binwright.local.java import LOG4J, Java, quick_jvm_flags
from binwright.local.kafka import ensure_kafka

HERE = Path(__file__).parent
END_S = 20.0
ASSIGNOR = "binwright.assignor.PlannedAssignor"
COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"


@dataclass(frozen=True, slots=True)
class Programs:
    """Java with the assignor and the test's consumer on its class path."""

    java: Java
    classpath: Sequence[Path]
    directory: Path  # for files of members

    def command(self, main: str, *arguments: str) -> list[str]:
        """Return the command line of a small JVM."""
        path = ":".join(map(str, self.classpath))
        flags = ("-Xmx64m", "-Xshare:auto", *quick_jvm_flags(self.directory))
        return [str(self.java.binary), *flags, "-cp", path, main, *arguments]


async def build_assignor(directory: Path) -> tuple[Path, Java, Sequence[Path]]:
    """Compile the assignor; return its jar, and the Java and the jars of Kafka that it is for."""
    java, jars = await ensure_kafka(print)
    jar = await asyncio.to_thread(build_jar, SOURCES, directory / NAME, jars, RELEASE)
    return jar, java, jars


async def build_programs(directory: Path, more: Sequence[Path] = ()) -> Programs:
    """Compile the assignor and the consumer into `directory`; `more` comes before Kafka's jars."""
    jar, java, jars = await build_assignor(directory)
    source = HERE / "java" / "ServingConsumer.java"
    await asyncio.to_thread(compile_java, [source], directory, jars, RELEASE)
    # Which plan the assignor follows is in its log, and the log goes where the rest is said.
    log4j = LOG4J + "logger.plans.name = binwright\nlogger.plans.level = info\n"
    (directory / "log4j2.properties").write_text(log4j)
    (directory / "tmp").mkdir(exist_ok=True)
    return Programs(java, (directory, jar, *more, *jars), directory)


def consumer_settings(servers: str, group: str, **other: str) -> dict[str, str]:
    """Return the settings of an ordinary consumer; `_` stands for the dots of a name."""
    deserializer = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    return {
        "bootstrap.servers": servers,
        "group.id": group,
        "key.deserializer": deserializer,
        "value.deserializer": deserializer,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
        "heartbeat.interval.ms": "500",
        "session.timeout.ms": "6000",
        "partition.assignment.strategy": ASSIGNOR,
        **{name.replace("_", "."): value for name, value in other.items()},
    }


@dataclass
class JavaMember:
    """A running `ServingConsumer`.

    Attributes:
        process: Its process.
        owned: What it reads now, by what it says.
        revoked: All that it ever had to give up, in order.
        lines: All that it said, without the times.
        served, late: Records so far.
    """

    process: asyncio.subprocess.Process
    owned: set[str] = field(default_factory=set)
    revoked: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    served: int = 0
    late: int = 0

    async def listen(self) -> None:
        """Take what it says until its output ends."""
        assert self.process.stdout
        async for line in self.process.stdout:
            self._take(line.decode(errors="replace").strip())

    def _take(self, line: str) -> None:
        match line.split(" "):
            case [_, "assigned", names]:
                self.owned |= set(filter(None, names.split(",")))
            case [_, "revoked" | "lost", names]:
                gone = list(filter(None, names.split(",")))
                self.revoked += gone
                self.owned -= set(gone)
            case [_, "served", count, "late", late]:
                self.served += int(count)
                self.late += int(late)
                return
        self.lines.append(line)

    async def stop(self) -> None:
        """End it as an orchestrator does: SIGTERM, and it leaves the group."""
        if self.process.returncode is None:
            self.process.terminate()
            try:
                async with asyncio.timeout(END_S):
                    await self.process.wait()
            except TimeoutError:
                self.process.kill()
                await self.process.wait()


async def start_member(
    programs: Programs,
    name: str,
    settings: Mapping[str, str],
    topic: str,
    *,
    service_us: int = 1000,
    sla_ms: int = 500,
) -> tuple[JavaMember, asyncio.Task[None]]:
    """Start a consumer; the task takes what it says."""
    file = programs.directory / f"{settings['group.id']}-{name}.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    arguments = (str(file), topic, str(service_us), str(sla_ms))
    process = await asyncio.create_subprocess_exec(
        *programs.command("ServingConsumer", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    member = JavaMember(process)
    return member, asyncio.create_task(member.listen())


@contextlib.asynccontextmanager
async def running_members(
    programs: Programs, settings: Mapping[str, str], topic: str, names: Sequence[str]
) -> AsyncIterator[list[JavaMember]]:
    """Run one consumer for each name, which is its `client.id`."""
    started = [
        await start_member(programs, name, {**settings, "client.id": name}, topic) for name in names
    ]
    try:
        yield [member for member, _ in started]
    finally:
        await asyncio.gather(*(member.stop() for member, _ in started))
        await asyncio.gather(*(task for _, task in started))
