"""Jars are what was pinned, fetched once, whoever comes."""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from binwright.local.jars import (
    FETCH_ATTEMPTS,
    Artifact,
    ensure_jars,
    failure_reason,
    locked_jars,
    module_file,
    parse_lock,
    proxy_flags,
    pyspark_jars_dir,
)
from binwright.protocol.errors import EmbeddedError

ROOT = Path(__file__).parents[2]
CONTENT = {"a": b"the jar of a", "b": b"the jar of b"}
JARS = tuple(
    Artifact("org.x", name, "1.0", "", len(data), hashlib.sha256(data).hexdigest())
    for name, data in CONTENT.items()
)


class Registry:
    """Gives what it holds, and counts who asked for what."""

    def __init__(self, content: dict[str, bytes]) -> None:
        self.content = content
        self.asked: list[list[str]] = []

    async def fetch(self, artifacts: Sequence[Artifact], directory: Path) -> str:
        self.asked.append([a.name for a in artifacts])
        await asyncio.sleep(0)  # let others come while it goes on
        for artifact in artifacts:
            if data := self.content.get(artifact.name):
                (directory / artifact.file_name).write_bytes(data)
        return "the line is cut" if len(self.content) < len(CONTENT) else ""


def named(directory: Path, name: str) -> list[Path]:
    return list(directory.rglob(name))


def test_a_lock_line_gives_all_that_is_known_of_a_jar() -> None:
    digest = "0" * 64
    text = f"# a comment\n\norg.x:a_2.13:1.0 12 {digest}\norg.x:b:2:linux 3 {digest}\n"
    plain, classified = parse_lock(text)
    assert plain == Artifact("org.x", "a_2.13", "1.0", "", 12, digest)
    assert [plain.file_name, classified.file_name] == ["a_2.13-1.0.jar", "b-2-linux.jar"]


@pytest.mark.parametrize("line", ["org.x:a 1 00", "org.x:a:1 many " + "0" * 64, "nonsense"])
def test_a_line_that_is_none_is_refused(line: str) -> None:
    with pytest.raises(EmbeddedError, match="lock"):
        parse_lock(line)


def test_the_shipped_locks_hold_the_broker_and_delta() -> None:
    assert len(locked_jars("kafka")) == 44
    assert [jar.name for jar in locked_jars("delta")] == ["delta-spark_4.2_2.13", "delta-storage"]


def test_the_object_store_s_lock_fits_the_hadoop_that_pyspark_ships() -> None:
    (hadoop,) = (jar for jar in locked_jars("s3") if jar.name == "hadoop-aws")
    assert (pyspark_jars_dir() / f"hadoop-client-api-{hadoop.revision}.jar").exists()


DELTA_NAMED = re.compile(
    r"io\.delta:delta-spark_[\w.]+:[\w.]*\w|delta-spark==[\w.]*\w|ARG DELTA=\S+"
)
MUST_NAME_DELTA = {
    "deploy/spark/Dockerfile",
    "docs/how-to/object-stores.md",
    "docs/how-to/spark-cluster.md",
    "pyproject.toml",
    "requirements/demo.txt",
}


def test_every_place_names_the_delta_of_the_package_that_pins_it() -> None:
    """Another version of its jars would open tables by other rules than the tested ones."""
    (jar, _) = locked_jars("delta")
    files = (
        *("deploy/spark/Dockerfile", "pyproject.toml", "requirements/demo.txt", "README.md"),
        *(str(each.relative_to(ROOT)) for each in ROOT.glob("deploy/**/*.yaml")),
        *(str(each.relative_to(ROOT)) for each in ROOT.glob("docs/**/*.md")),
    )
    named = {file: set(DELTA_NAMED.findall((ROOT / file).read_text())) for file in files}
    named = {file: versions for file, versions in named.items() if versions}
    assert named.keys() >= MUST_NAME_DELTA
    pinned = version("delta-spark")
    wanted = {str(jar), f"delta-spark=={pinned}", f"ARG DELTA={pinned}"}
    assert {file: versions - wanted for file, versions in named.items()} == {
        file: set() for file in named
    }


async def test_a_second_run_fetches_nothing(tmp_path: Path) -> None:
    registry = Registry(CONTENT)
    for _ in range(2):
        paths = await ensure_jars(JARS, tmp_path / "jars", registry.fetch)
    assert [path.read_bytes() for path in paths] == list(CONTENT.values())
    assert registry.asked == [["a", "b"]]


async def test_concurrent_processes_fetch_once(tmp_path: Path) -> None:
    registry = Registry(CONTENT)
    await asyncio.gather(*(ensure_jars(JARS, tmp_path, registry.fetch) for _ in range(3)))
    assert registry.asked == [["a", "b"]]


async def test_a_wrong_jar_is_deleted_and_reported(tmp_path: Path) -> None:
    registry = Registry({**CONTENT, "b": b"not the jar of b"})
    with pytest.raises(EmbeddedError) as raised:
        await ensure_jars(JARS, tmp_path, registry.fetch)
    message = str(raised.value)
    assert "b-1.0.jar" in message
    assert JARS[1].sha256 in message
    assert hashlib.sha256(b"not the jar of b").hexdigest() in message
    assert not named(tmp_path, "b-1.0.jar")


async def test_a_jar_that_was_damaged_in_the_cache_is_fetched_again(tmp_path: Path) -> None:
    registry = Registry(CONTENT)
    first, _ = await ensure_jars(JARS, tmp_path, registry.fetch)
    first.write_bytes(b"the jar of A")  # the same size
    await ensure_jars(JARS, tmp_path, registry.fetch)
    assert registry.asked == [["a", "b"], ["a"]]
    assert first.read_bytes() == CONTENT["a"]


async def test_a_missing_jar_is_fetched_again_then_named(tmp_path: Path) -> None:
    registry = Registry({"a": CONTENT["a"]})
    with pytest.raises(EmbeddedError, match=r"1 of 2 jars.* org\.x:b:1\.0 \(the line is cut\)"):
        await ensure_jars(JARS, tmp_path, registry.fetch, pause_s=0)
    assert registry.asked == [["a", "b"]] + [["b"]] * (FETCH_ATTEMPTS - 1)


async def test_remains_of_a_killed_process_are_deleted(tmp_path: Path) -> None:
    (tmp_path / ".part-left" / "ivy").mkdir(parents=True)
    await ensure_jars(JARS, tmp_path, Registry(CONTENT).fetch)
    assert not named(tmp_path, ".part-left")


OUTPUT = """
:::: ERRORS
\tServer access error at url http://x/a.pom (java.net.ConnectException: Connection refused)

\tServer access error at url http://x/a.jar (java.net.ConnectException: Connection refused)
"""


def test_the_module_asks_for_exactly_the_jars() -> None:
    plain = Artifact("org.x", "a&b", "1.0", "", 1, "0" * 64)
    classified = Artifact("org.x", "c", "2", "linux", 1, "0" * 64)
    dependencies = ET.fromstring(module_file([plain, classified])).findall(".//dependency")  # noqa: S314
    assert [d.attrib["name"] for d in dependencies] == ["a&b", "c"]
    assert {d.attrib["transitive"] for d in dependencies} == {"false"}
    artifact = dependencies[1].find("artifact")
    assert artifact is not None
    assert artifact.attrib["{http://ant.apache.org/ivy/extra}classifier"] == "linux"


@pytest.mark.parametrize(
    ("environment", "flags"),
    [
        ({}, ()),
        (
            {"HTTPS_PROXY": "http://me:secret@proxy.here:3128"},
            ("-Dhttps.proxyHost=proxy.here", "-Dhttps.proxyPort=3128"),
        ),
        ({"http_proxy": "http://proxy.here"}, ("-Dhttp.proxyHost=proxy.here",)),
    ],
)
def test_java_gets_the_proxies(environment: dict[str, str], flags: tuple[str, ...]) -> None:
    assert proxy_flags(environment) == flags


def test_ivys_error_is_reported_once() -> None:
    assert failure_reason(OUTPUT) == "java.net.ConnectException: Connection refused"
    assert failure_reason("module not found: org.x#a;1.0") == ""
