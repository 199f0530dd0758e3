"""Fetch jars with Ivy, the resolver that pyspark ships: nothing but pip and a Java is needed."""

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

import structlog

from binwright.local.java.installation import Java
from binwright.local.java.jars import Artifact, Fetch, ProgressCallback
from binwright.local.process.child import Child, Command
from binwright.protocol.errors import EmbeddedError

ROUND_S = 300.0
PROGRESS_S = 0.5

_EXCEPTION = re.compile(r"\(((?:\w+\.)+\w+(?:Exception|Error): [^)]*)\)")
_log = structlog.get_logger()
_CACHE = "ivy"
# Ivy's own default registry, without the descriptors: what we want is known exactly, and reading
# 44 of them and their parents takes four times as long as the jars.
_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""


def ivy_fetch(
    java: Java, whose: str, progress: ProgressCallback, environment: Mapping[str, str] = os.environ
) -> Fetch:
    """Return a fetch through Ivy that tells people whose jars come, and how many have."""

    async def fetch(artifacts: Sequence[Artifact], directory: Path) -> str:
        command = _prepared(artifacts, directory, java, environment)
        progress(f"fetching {whose} jars: {len(artifacts)} to come")
        child, result = Child(command), 0
        try:
            # No error of its own: what has come by then is kept, and the next round goes on.
            with suppress(TimeoutError):
                async with asyncio.timeout(ROUND_S):
                    while child.returncode is None:
                        await asyncio.sleep(PROGRESS_S)
                        come = command.log.read_text(errors="replace").count("[SUCCESSFUL ]")
                        if come > result:
                            progress(f"fetching {whose} jars: {come} of {len(artifacts)}")
                            result = come
        finally:
            child.reap()
        _collect(artifacts, directory)
        message = command.log.read_text(errors="replace")
        _log.debug("ivy.ended", code=child.returncode, message=message)
        return failure_reason(message)

    return fetch


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
        f'<artifact name={quoteattr(artifact.name)} type="jar" ext="jar"{classifier}/>'
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
        *("-types", "jar", "bundle"),
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
