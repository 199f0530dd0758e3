"""Fetch jars with Ivy, the resolver that pyspark ships: nothing but pip and a Java is needed."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from binwright.core.errors import EmbeddedError
from binwright.embedded.jars import Artifact, Fetch, Say
from binwright.embedded.java import Java
from binwright.embedded.process import Child, Command

FETCH_S = 600.0
PROGRESS_S = 0.5

_PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
# Ivy's own default registry, without the descriptors: what we want is known exactly, and reading
# 44 of them and their parents takes four times as long as the jars.
_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""


def ivy_fetch(
    java: Java, title: str, say: Say, environment: Mapping[str, str] = os.environ
) -> Fetch:
    """Return a fetch through Ivy; `title` tells people whose jars they are."""

    async def fetch(artifacts: Sequence[Artifact], directory: Path) -> None:
        (directory / "ivy.xml").write_text(module_file(artifacts))
        settings = directory / "settings.xml"
        settings.write_text(_SETTINGS)
        if own := environment.get("BINWRIGHT_IVY_SETTINGS"):
            settings = Path(own).expanduser().absolute()
        if not settings.is_file():
            raise EmbeddedError(f"BINWRIGHT_IVY_SETTINGS names {settings}, which is no file")
        command = Command(
            title=f"fetching {title}",
            argv=(str(java.binary), *_arguments(directory, settings, environment)),
            directory=directory,
            log=directory / "ivy.log",
            # All of it: a proxy or a trust store may be named in JAVA_TOOL_OPTIONS.
            environment=environment,
        )
        await _run(command, len(artifacts), say)

    return fetch


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


def pyspark_jars() -> Path:
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


def _arguments(directory: Path, settings: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    ivy = max(pyspark_jars().glob("ivy-*.jar"))
    return (
        *("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
        *proxy_flags(environment),
        *("-jar", str(ivy)),
        *("-settings", str(settings)),
        *("-ivy", str(directory / "ivy.xml")),
        *("-cache", str(directory / "ivy")),
        *("-retrieve", str(directory / _PATTERN)),
        *("-types", "jar", "bundle"),
        *("-confs", "default"),
    )


async def _run(command: Command, count: int, say: Say) -> None:
    """Run Ivy and tell how far it is; which jars came is for the caller to see."""
    child, told = Child(command), -1
    try:
        async with asyncio.timeout(FETCH_S):
            while child.returncode is None:
                if (done := command.log.read_text(errors="replace").count("[SUCCESSFUL ]")) > told:
                    say(f"{command.title}: {done} of {count}")
                    told = done
                await asyncio.sleep(PROGRESS_S)
    except TimeoutError as exc:
        raise EmbeddedError(
            f"{command.title} was not done after {FETCH_S:.0f} s, {told} of {count} had come: "
            "try again on a faster network; what has come is kept by a mirror only"
        ) from exc
    finally:
        child.reap()
