"""Jars with pinned sha256, fetched once and checked each time they are used.

Ivy fetches them, the resolver that pyspark ships: nothing but pip and a Java is needed.
"""

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from binwright.local.cache import file_lock, written_cache
from binwright.local.child import Child, Command
from binwright.local.java import Java
from binwright.local.server import ProgressCallback
from binwright.protocol.errors import EmbeddedError
from binwright.protocol.log_events import LogEvent
from binwright.runtime.logs import log

LOCK_S = 900.0  # somebody else's download
FETCH_ATTEMPTS = 3  # a fetch and two retries of what it left out
PAUSE_S = 2.0  # before the first retry, twice that before the second
ROUND_S, PROGRESS_S = 300.0, 0.5  # of one fetch by Ivy
BAR = 10  # characters: a line for each tenth

_LINE = re.compile(
    r"(?P<organisation>[^:\s]+):(?P<name>[^:\s]+):(?P<revision>[^:\s]+)(?::(?P<classifier>[^:\s]+))?"
    r" (?P<size>\d+) (?P<sha256>[0-9a-f]{64})"
)
_PART = ".part-"
_EXCEPTION = re.compile(r"\(((?:\w+\.)+\w+(?:Exception|Error): [^)]*)\)")
_CACHE = "ivy"
DELTA = "{delta-spark}"
"""Stands in locks for the version of this package."""
# Ivy's own default registry, without the descriptors: what we want is known exactly, and reading
# 44 of them and their parents takes four times as long as the jars.
_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""

JARS_MISSING = LogEvent.info("jars.missing", "Jars are missing in the cache and are downloaded.")
IVY_ENDED = LogEvent.debug("ivy.ended", "Ivy, which downloads jars, has ended.")


@dataclass(frozen=True, slots=True, order=True)
class Artifact:
    """One jar, exactly."""

    organisation: str
    name: str
    revision: str
    classifier: str  # mostly ""
    size: int  # bytes
    sha256: str
    extension: str = "jar"  # and its type, by Ivy's words

    @property
    def file_name(self) -> str:
        """The jar's name in the cache."""
        tail = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.revision}{tail}.{self.extension}"

    def __str__(self) -> str:
        return f"{self.organisation}:{self.name}:{self.revision}"


# Puts jars into a directory under their `file_name`. It may leave some out, and then returns why if
# it can tell; it checks none.
Fetch = Callable[[Sequence[Artifact], Path], Awaitable[str]]


def parse_lock(text: str) -> tuple[Artifact, ...]:
    """Read lines of `organisation:name:revision[:classifier] size sha256`, in their order.

    Raises:
        EmbeddedError: A line is not of that form.
    """
    lines = (line.strip() for line in text.splitlines())
    return tuple(_parse_line(line) for line in lines if line and not line.startswith("#"))


def locked_jars(name: str) -> tuple[Artifact, ...]:
    """Return the jars of a lock file that this package ships: "kafka", "delta" or "s3".

    The package delta-spark pins Delta's version; other versions than the locked one fail the sums.
    """
    text = Path(__file__).with_name(f"{name}.lock").read_text()
    return parse_lock(text.replace(DELTA, version("delta-spark")) if DELTA in text else text)


async def ensure_jars(
    artifacts: Sequence[Artifact], directory: Path, fetch: Fetch, *, pause_s: float = PAUSE_S
) -> tuple[Path, ...]:
    """Return the jars' paths in `directory`, in order; fetch those that are not there or not right.

    Every jar is read and compared with its sha256 each time: 45 MB take 30 ms, and there is no
    record to trust. Processes that come at once fetch once.

    Raises:
        SettingsError: The cache cannot be written.
        EmbeddedError: A fetched jar is not the one that is pinned, or could not be had.
    """
    if await asyncio.to_thread(_missing, artifacts, directory):
        with written_cache():
            async with file_lock(directory / ".lock", deadline_s=LOCK_S):
                await _fetch_missing(artifacts, directory, fetch, pause_s)
    return tuple(directory / a.file_name for a in artifacts)


async def _fetch_missing(
    artifacts: Sequence[Artifact], directory: Path, fetch: Fetch, pause_s: float
) -> None:
    _sweep(directory)
    why = ""
    for attempt in range(FETCH_ATTEMPTS):
        wanted = await asyncio.to_thread(_missing, artifacts, directory)
        if not wanted:
            return
        await asyncio.sleep(attempt * pause_s)
        log(JARS_MISSING, count=len(wanted), attempt=attempt + 1, directory=str(directory))
        with TemporaryDirectory(dir=directory, prefix=_PART) as scratch:
            why = await fetch(wanted, Path(scratch))
            for artifact in wanted:
                await asyncio.to_thread(_take, artifact, Path(scratch), directory)
    if wanted := await asyncio.to_thread(_missing, artifacts, directory):
        names = ", ".join(map(str, wanted))
        raise EmbeddedError(
            f"could not fetch {len(wanted)} of {len(artifacts)} jars in {FETCH_ATTEMPTS} tries: "
            f"{names} ({why or 'not found there'}). Look at the network; behind a mirror, set "
            "BINWRIGHT_IVY_SETTINGS to an Ivy settings file that names it; or put the files into "
            f"{directory} yourself"
        )


def _sweep(directory: Path) -> None:
    """Take away what a process left that was killed: we have the lock, so there is no other."""
    for left in directory.glob(f"{_PART}*"):
        shutil.rmtree(left, ignore_errors=True)


def _missing(artifacts: Sequence[Artifact], directory: Path) -> list[Artifact]:
    return [a for a in artifacts if _size_and_digest(directory / a.file_name) != (a.size, a.sha256)]


def _take(artifact: Artifact, source: Path, directory: Path) -> None:
    """Move a fetched jar to its place if it is the right one; leave it out if it did not come."""
    file = source / artifact.file_name
    if (actual := _size_and_digest(file)) is None:
        return
    if actual != (artifact.size, artifact.sha256):
        file.unlink()
        raise EmbeddedError(
            f"{artifact.file_name} ({artifact}) is not the file that is pinned, so it was deleted: "
            f"expected {artifact.size} bytes, sha256 {artifact.sha256}; "
            f"found {actual[0]} bytes, sha256 {actual[1]}. Something between here and the registry "
            "changes it: look at the proxy or mirror, then try again"
        )
    file.replace(directory / file.name)


def _size_and_digest(file: Path) -> tuple[int, str] | None:
    try:
        with file.open("rb") as handle:
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
            return handle.tell(), digest
    except FileNotFoundError:
        return None


def _parse_line(line: str) -> Artifact:
    if not (match := _LINE.fullmatch(line)):
        raise EmbeddedError(f"not a line of a jar lock: {line!r}")
    return Artifact(
        organisation=match["organisation"],
        name=match["name"],
        revision=match["revision"],
        classifier=match["classifier"] or "",
        size=int(match["size"]),
        sha256=match["sha256"],
    )


def ivy_fetch(
    java: Java, whose: str, progress: ProgressCallback, environment: Mapping[str, str] = os.environ
) -> Fetch:
    """Return a fetch through Ivy that tells people whose jars come, and how much of them."""

    async def fetch(artifacts: Sequence[Artifact], directory: Path) -> str:
        command = _prepared(artifacts, directory, java, environment)
        size = sum(artifact.size for artifact in artifacts)
        progress(fetched(whose, 0, size))
        child, shown = Child(command), 0
        try:
            # No error of its own: what has come by then is kept, and the next round goes on.
            with suppress(TimeoutError):
                async with asyncio.timeout(ROUND_S):
                    while child.returncode is None:
                        await asyncio.sleep(PROGRESS_S)
                        come = await asyncio.to_thread(_size_of, directory / _CACHE)
                        if come - shown >= size / BAR:
                            progress(fetched(whose, come, size))
                            shown = come
        finally:
            child.reap()
        _collect(artifacts, directory)
        message = command.log.read_text(errors="replace")
        log(IVY_ENDED, code=child.returncode, message=message)
        return failure_reason(message)

    return fetch


def fetched(whose: str, come: int, size: int) -> str:
    """Return how much of a download has come, of `size` bytes, as words with a bar."""
    full = min(BAR, BAR * come // size)
    bar = "█" * full + "░" * (BAR - full)
    return f"fetching {whose} jars {bar} {come / 1e6:.0f} of {size / 1e6:.0f} MB"


def _size_of(directory: Path) -> int:
    sizes = 0
    for file in directory.rglob("*.jar*"):
        with suppress(FileNotFoundError):  # Ivy renames a file that is complete
            sizes += file.stat().st_size
    return sizes


def failure_reason(message: str) -> str:
    """Return what hindered Ivy, from what it said: Java's words for it, or "" if it gave none."""
    reasons = dict.fromkeys(_EXCEPTION.findall(message))  # each once, in order
    return "; ".join(reasons)


def module_file(artifacts: Sequence[Artifact]) -> str:
    """Return the Ivy module that depends on exactly these jars, and on nothing they depend on."""
    lines = "".join(_dependency(a) for a in artifacts)
    return (
        '<ivy-module version="2.0" xmlns:e="http://ant.apache.org/ivy/extra">\n'
        '  <info organisation="binwright" module="embedded"/>\n'
        '  <configurations><conf name="default"/></configurations>\n'
        f"  <dependencies>\n{lines}  </dependencies>\n</ivy-module>\n"
    )


def proxy_flags(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return what Java must be told of the proxies that pip and curl read from the environment."""
    flags = []
    for scheme in ("http", "https"):
        name = f"{scheme}_proxy"
        proxy = urlsplit(environment.get(name) or environment.get(name.upper()) or "")
        if proxy.hostname:
            flags += [f"-D{scheme}.proxyHost={proxy.hostname}"]
            flags += [f"-D{scheme}.proxyPort={proxy.port}"] if proxy.port else []
    return tuple(flags)


def pyspark_jars_dir() -> Path:
    """Return the directory of the jars that pyspark ships, without importing it.

    Raises:
        EmbeddedError: pyspark is not installed, or is the client only.
    """
    spec = find_spec("pyspark")
    directory = Path(spec.origin).parent / "jars" if spec and spec.origin else None
    if directory is None or not directory.is_dir():
        raise EmbeddedError("the full pyspark is needed: pip install 'binwright[embedded]'")
    return directory


def _dependency(artifact: Artifact) -> str:
    classifier = f" e:classifier={quoteattr(artifact.classifier)}" if artifact.classifier else ""
    return (
        f"    <dependency org={quoteattr(artifact.organisation)} name={quoteattr(artifact.name)}"
        f' rev={quoteattr(artifact.revision)} transitive="false" conf="default->default">'
        f"<artifact name={quoteattr(artifact.name)} type={quoteattr(artifact.extension)}"
        f" ext={quoteattr(artifact.extension)}{classifier}/>"
        "</dependency>\n"
    )


def _prepared(
    artifacts: Sequence[Artifact], directory: Path, java: Java, environment: Mapping[str, str]
) -> Command:
    (directory / "ivy.xml").write_text(module_file(artifacts))
    settings = directory / "settings.xml"
    settings.write_text(_SETTINGS)
    if own := environment.get("BINWRIGHT_IVY_SETTINGS"):
        settings = Path(own).expanduser().absolute()
        if not settings.is_file():
            raise EmbeddedError(f"BINWRIGHT_IVY_SETTINGS names {settings}, which is no file")
    arguments = (
        *("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
        *proxy_flags(environment),
        *("-jar", str(max(pyspark_jars_dir().glob("ivy-*.jar")))),
        *("-settings", str(settings)),
        *("-ivy", str(directory / "ivy.xml")),
        *("-cache", str(directory / _CACHE)),
        *("-types", "bundle", *sorted({artifact.extension for artifact in artifacts})),
        *("-confs", "default"),
    )
    return Command(
        title="Ivy",
        argv=(str(java.binary), *arguments),
        directory=directory,
        log=directory / "ivy.log",
        # All of it: a proxy or a trust store may be named in JAVA_TOOL_OPTIONS.
        environment=environment,
    )


def _collect(artifacts: Sequence[Artifact], directory: Path) -> None:
    # Ivy's own "-retrieve" copies nothing at all when a single jar could not be had.
    for artifact in artifacts:
        module = directory / _CACHE / artifact.organisation / artifact.name
        for file in module.rglob(artifact.file_name):
            file.replace(directory / artifact.file_name)
